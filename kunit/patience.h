/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How suites wait for what has to come: for so many sleeps, and not until some time has
 * passed.  A machine that stands still for a minute takes one of them, so that what has
 * had no time to come is not missed.
 */
#ifndef TWHEEL_PATIENCE_H
#define TWHEEL_PATIENCE_H

#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/types.h>

/* Far more than enough. */
#define PATIENCE_US	(60 * USEC_PER_SEC)

/* Sleep for @us; false: that much was slept already. */
static inline bool sleep_again(unsigned long *slept_us, unsigned int us)
{
	if (*slept_us >= PATIENCE_US)
		return false;
	usleep_range(us, 2 * us);
	*slept_us += us;
	return true;
}

/* False: it was not completed. */
static inline bool wait_patiently(struct completion *completion)
{
	unsigned long slept_us = 0;

	while (!try_wait_for_completion(completion))
		if (!sleep_again(&slept_us, 1000))
			return false;
	return true;
}

#endif /* TWHEEL_PATIENCE_H */
