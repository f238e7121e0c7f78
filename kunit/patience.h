/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How suites live with a machine that stands still, for moments or for a minute.
 *
 * What has to come is waited for by so many sleeps, and not until some time has passed:
 * a standstill takes one of them, and what had no time to come is not missed.
 *
 * What has to be done before a time is attempted with little time, and if the clock shows
 * that this was over too soon, again with twice as much.
 */
#ifndef TWHEEL_PATIENCE_H
#define TWHEEL_PATIENCE_H

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/ktime.h>

/* Far more than enough, and on a busy machine less than what KUnit gives a test. */
#define PATIENCE_US	(30 * USEC_PER_SEC)

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

/*
 * Attempt it with more and more time, until once the machine did not stand still too long:
 * @attempt says if so, and judges only then.
 */
static inline void attempt_in_time(struct kunit *test, u64 lead_ns,
				   bool (*attempt)(struct kunit *test, u64 lead_ns))
{
	for (; lead_ns < 60 * NSEC_PER_SEC; lead_ns *= 2)
		if (attempt(test, lead_ns))
			return;
	KUNIT_FAIL(test, "there was too little time again and again");
}

#endif /* TWHEEL_PATIENCE_H */
