// SPDX-License-Identifier: GPL-2.0
/*
 * A task that waits for a timer's function which it has preempted, as is possible on
 * PREEMPT_RT only: the wait must let the function run on and return. The module loads only
 * if the function was preempted and has returned.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/sched.h>

#include "../kmod/twheel.h"

static struct twheel_timer timer;
static DECLARE_COMPLETION(started);
static bool returned;

/* The woken task has a higher priority and preempts this function at once. */
static void take_time(struct twheel_timer *timer)
{
	complete(&started);
	mdelay(10);
	WRITE_ONCE(returned, true);
}

static int __init wait_init(void)
{
	bool preempted;

	twheel_timer_setup(&timer, take_time);
	sched_set_fifo(current);
	migrate_disable();
	twheel_timer_arm(&timer, 0, 0, TWHEEL_TIMER_REL);
	wait_for_completion(&started);
	preempted = !READ_ONCE(returned);
	twheel_timer_shutdown(&timer);
	migrate_enable();
	sched_set_normal(current, 0);

	pr_info("twheel_wait: the function was %spreempted and has %sreturned\n",
		preempted ? "" : "not ", READ_ONCE(returned) ? "" : "not ");
	return preempted && READ_ONCE(returned) ? 0 : -EBUSY;
}
module_init(wait_init);

static void __exit wait_exit(void)
{
}
module_exit(wait_exit);

MODULE_DESCRIPTION("Wait for a timer's function that was preempted");
MODULE_LICENSE("GPL");
