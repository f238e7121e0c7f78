// SPDX-License-Identifier: GPL-2.0
/*
 * A module that uses timers wrongly, for tools/test/misuse: the kernel's debugging options
 * have to report it. Never load it on a machine that is in use.
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "../kmod/twheel.h"

static char *what = "";
module_param(what, charp, 0444);
MODULE_PARM_DESC(what, "wait_under_lock, free_armed or set_up_armed");

static DEFINE_SPINLOCK(owners_lock);
static bool called;

static void take_owners_lock(struct twheel_timer *timer)
{
	spin_lock_bh(&owners_lock);
	called = true;
	spin_unlock_bh(&owners_lock);
}

static struct twheel_timer *arm_one(u64 time_ns)
{
	struct twheel_timer *timer = kzalloc(sizeof(*timer), GFP_KERNEL);

	if (timer) {
		twheel_timer_setup(timer, take_owners_lock);
		twheel_timer_arm(timer, time_ns, 0, TWHEEL_TIMER_REL);
	}
	return timer;
}

/* The function is not running, so nothing hangs; but it could run. */
static int wait_under_lock(void)
{
	struct twheel_timer *timer = arm_one(0);

	if (!timer)
		return -ENOMEM;
	while (!READ_ONCE(called))
		usleep_range(1000, 2000);
	spin_lock_bh(&owners_lock);
	twheel_timer_shutdown(timer);
	spin_unlock_bh(&owners_lock);
	kfree(timer);
	return 0;
}

static int free_armed(void)
{
	kfree(arm_one(3600ULL * NSEC_PER_SEC));
	return 0;
}

static int set_up_armed(void)
{
	struct twheel_timer *timer = arm_one(3600ULL * NSEC_PER_SEC);

	if (timer)
		twheel_timer_setup(timer, take_owners_lock);
	return 0;
}

static int __init misuse_init(void)
{
	if (!strcmp(what, "wait_under_lock"))
		return wait_under_lock();
	if (!strcmp(what, "free_armed"))
		return free_armed();
	if (!strcmp(what, "set_up_armed"))
		return set_up_armed();
	return -EINVAL;
}
module_init(misuse_init);

MODULE_DESCRIPTION("Wrong uses of twheel's timers, for a test");
MODULE_LICENSE("GPL");
