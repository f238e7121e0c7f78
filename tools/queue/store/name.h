/* SPDX-License-Identifier: GPL-2.0 */
/* Which names tubes, keys and schedules may have. */
#ifndef QUEUE_STORE_NAME_H
#define QUEUE_STORE_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* 1 to TUBE_NAME_MAX letters, digits and bytes of "-+/;.$_()", the first of which is not '-'. */
bool name_is_tube(const char *name, size_t len);

/* The bytes of a key, and of the name of a schedule, beside letters and digits. */
#define NAME_KEY_BYTES	"-+/;.$_():@,="

/* 1 to JOB_KEY_MAX letters, digits and bytes of NAME_KEY_BYTES. */
bool name_is_key(const char *key, size_t len);

#endif /* QUEUE_STORE_NAME_H */
