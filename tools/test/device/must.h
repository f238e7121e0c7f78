/* SPDX-License-Identifier: GPL-2.0 */
/* What has to hold in a fuzzer, which is not a test of harness.h: else it ends by SIGABRT. */
#ifndef DEVICE_TEST_MUST_H
#define DEVICE_TEST_MUST_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static inline void must(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "does not hold: %s\n", what);
	abort();
}

#define MUST(condition)	must(condition, #condition)

#endif /* DEVICE_TEST_MUST_H */
