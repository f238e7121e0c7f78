/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Waiting on a machine that may stand still, for a moment or for a minute.
 *
 * A test that waits for something counts sleeps, not time: a standstill costs one sleep
 * only, so the test does not give up before the machine had time to run.
 *
 * A test that must do something before a time tries with little time first. If the clock
 * shows that the time was over too soon, it tries again with twice as much.
 */
#ifndef TWHEEL_PATIENCE_H
#define TWHEEL_PATIENCE_H

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/ktime.h>

/* Far more than needed, and on a busy machine still less than KUnit's timeout. */
#define PATIENCE_US	(30 * USEC_PER_SEC)

/*
 * Evaluate @condition until it is true, with sleeps of @us between; false: it is still
 * not true after all sleeps.
 */
#define sleep_until(condition, us)						\
({										\
	const unsigned long sleep_us = (us);					\
	unsigned long slept_us = 0;						\
	bool is_true;								\
										\
	while (!(is_true = (condition)) && slept_us < PATIENCE_US) {		\
		usleep_range(sleep_us, 2 * sleep_us);				\
		slept_us += sleep_us;						\
	}									\
	is_true;								\
})

/* Return false if it was not completed. */
static inline bool wait_patiently(struct completion *completion)
{
	return sleep_until(try_wait_for_completion(completion), 1000);
}

/*
 * Call @attempt with more and more time until it returns true: the machine did not stand
 * still too long. @attempt judges only then.
 */
static inline void attempt_in_time(struct kunit *test, u64 lead_ns,
				   bool (*attempt)(struct kunit *test, u64 lead_ns))
{
	for (; lead_ns < 60 * NSEC_PER_SEC; lead_ns *= 2)
		if (attempt(test, lead_ns))
			return;
	KUNIT_FAIL(test, "the machine stood still in each attempt");
}

#endif /* TWHEEL_PATIENCE_H */
