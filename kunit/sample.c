// SPDX-License-Identifier: GPL-2.0
/*
 * A heart and a watchdog: how another module uses twheel's timers.
 *
 * Each beat arms the next one and gives the watchdog more time; the last beat cancels the
 * watchdog.
 */
#include <linux/module.h>
#include <linux/time64.h>

#include "../kmod/twheel.h"

static unsigned int beats = 10;
module_param(beats, uint, 0444);
MODULE_PARM_DESC(beats, "How many beats are left (at first: 10)");
static ulong period_ms = 20;
module_param(period_ms, ulong, 0444);
MODULE_PARM_DESC(period_ms, "The time between two of them (default 20)");
static ulong patience_ms = 60000;
module_param(patience_ms, ulong, 0444);
MODULE_PARM_DESC(patience_ms, "How long the watchdog waits for one (default 60000)");

static struct twheel_timer heart, watchdog;

/* Called in softirq context. With slack, a timer can share the interrupt of others. */
static void beat(struct twheel_timer *timer)
{
	u64 period_ns = period_ms * NSEC_PER_MSEC;

	if (--beats) {
		twheel_timer_modify(&watchdog, patience_ms * NSEC_PER_MSEC, 0, TWHEEL_TIMER_REL);
		twheel_timer_arm(timer, period_ns, period_ns / 8, TWHEEL_TIMER_REL);
	} else if (twheel_timer_cancel(&watchdog)) {
		pr_info("twheel_sample: it is over, and the watchdog sleeps\n");
	}
}

static void bark(struct twheel_timer *timer)
{
	pr_info("twheel_sample: the watchdog barks, %u beats were left\n", beats);
}

static int __init sample_init(void)
{
	twheel_timer_setup(&heart, beat);
	twheel_timer_setup(&watchdog, bark);
	twheel_timer_arm(&watchdog, patience_ms * NSEC_PER_MSEC, 0, TWHEEL_TIMER_REL);
	twheel_timer_arm(&heart, period_ms * NSEC_PER_MSEC, 0, TWHEEL_TIMER_REL);
	return 0;
}
module_init(sample_init);

/* After a shutdown no function runs or will run, so that the module can go. */
static void __exit sample_exit(void)
{
	twheel_timer_shutdown(&heart);
	twheel_timer_shutdown(&watchdog);
}
module_exit(sample_exit);

MODULE_DESCRIPTION("Sample user of twheel's timers");
MODULE_LICENSE("GPL");
