/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What all tests of the library need.
 */
#ifndef LIB_TEST_WHEEL_H
#define LIB_TEST_WHEEL_H

#include "test/device/device.h"
#include "test/device/harness.h"
#include "test/device/util.h"
#include "lib/libtwheel.h"
#include "intercept.h"

/* A new wheel; one with words; one for so many events. */
struct twheel *open_wheel(void);
struct twheel *open_words(__u32 nr);
struct twheel *open_limited(__u64 max_events);

/* Room for records. */
struct twheel_records make_records(unsigned int room);

/* Wait for the next record, and check that it is of an event that expired. */
struct twheel_record wait_one(struct twheel *wheel);

/* The counters of fdinfo. */
struct counters counters_of(const struct twheel *wheel);

#endif /* LIB_TEST_WHEEL_H */
