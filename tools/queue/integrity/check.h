/* SPDX-License-Identifier: GPL-2.0 */
/* A full check of a store: twheelq check. */
#ifndef QUEUE_INTEGRITY_CHECK_H
#define QUEUE_INTEGRITY_CHECK_H

#include <stdio.h>
#include "queue/store/config.h"

/*
 * Read the whole store and check that it is consistent: blocks, records, indexes, keys, counts.
 * Prints a line to @out for each error; returns the number of errors, or a negative errno.
 */
int store_check(const struct store_config *config, FILE *out);

#endif /* QUEUE_INTEGRITY_CHECK_H */
