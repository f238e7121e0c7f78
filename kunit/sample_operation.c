// SPDX-License-Identifier: GPL-2.0
/*
 * A request that waits for three acks, but not for ever: how another module uses
 * twheel's operations.  A timer brings the acks.
 */
#include <linux/module.h>
#include <linux/time64.h>

#include "../kmod/twheel.h"

static ulong period_ms = 20, patience_ms = 60000;
module_param(period_ms, ulong, 0444);
MODULE_PARM_DESC(period_ms, "The time between two acks (default 20)");
module_param(patience_ms, ulong, 0444);
MODULE_PARM_DESC(patience_ms, "How long the request waits (default 60000)");

static struct twheel_registry registry;
static struct twheel_operation request;
static struct twheel_timer source;
static const u64 key = 1;	/* the key of the condition that each ack changes */
static atomic_t acks;

/* Change the condition first, then check its key. Called in softirq context. */
static void ack(struct twheel_timer *timer)
{
	atomic_inc(&acks);
	twheel_check_and_complete(&registry, key);
	twheel_timer_arm(timer, period_ms * NSEC_PER_MSEC, 0, TWHEEL_TIMER_REL);
}

static bool has_enough(struct twheel_operation *operation)
{
	return atomic_read(&acks) >= 3;
}

static void answer(struct twheel_operation *operation)
{
	pr_info("twheel_sample: answered after %d acks\n", atomic_read(&acks));
}

static void give_up(struct twheel_operation *operation)
{
	pr_info("twheel_sample: gave up after %d acks\n", atomic_read(&acks));
}

static const struct twheel_operation_ops ops = {
	.try_complete = has_enough,
	.on_complete = answer,
	.on_expiration = give_up,
};

static int __init sample_init(void)
{
	int ret = twheel_registry_init(&registry);

	if (ret)
		return ret;
	twheel_operation_setup(&request, &registry, &ops);
	ret = twheel_try_complete_else_watch(&request, &key, 1, patience_ms * NSEC_PER_MSEC,
					     0, TWHEEL_TIMER_REL);
	if (ret < 0) {
		twheel_registry_destroy(&registry);
		return ret;
	}
	twheel_timer_setup(&source, ack);
	return twheel_timer_arm(&source, period_ms * NSEC_PER_MSEC, 0, TWHEEL_TIMER_REL);
}
module_init(sample_init);

/* End first what checks, then what waits, then the registry that both use. */
static void __exit sample_exit(void)
{
	twheel_timer_shutdown(&source);
	twheel_operation_cancel_sync(&request);
	twheel_registry_destroy(&registry);
}
module_exit(sample_exit);

MODULE_DESCRIPTION("Sample user of twheel's operations");
MODULE_LICENSE("GPL");
