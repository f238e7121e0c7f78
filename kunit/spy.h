/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What suites need that look at a base: which it is.  The tracepoints tell, as they do
 * every module.
 */
#ifndef TWHEEL_SPY_H
#define TWHEEL_SPY_H

#include <kunit/test.h>
#include <linux/module.h>
#include <linux/tracepoint.h>

#include "../kmod/base.h"

/**
 * struct spy - who waits to be told of a timer that is armed
 * @notifier: tells of modules with tracepoints,
 * @arm: of which one is for what is armed; NULL: it was not found.
 * @node: that of the timer.
 * @base: where it was armed.
 */
struct spy {
	struct notifier_block notifier;
	struct tracepoint *arm;
	const struct twheel_node *node;
	const struct base *base;
};

#ifdef CONFIG_TRACEPOINTS
static inline void spy_arm(void *data, const struct base *base,
			   const struct twheel_node *node, u64 due_ns, u64 fires_ns)
{
	struct spy *spy = data;

	if (node == spy->node)
		spy->base = base;
}

static inline int spy_module(struct notifier_block *notifier, unsigned long action,
			     void *data)
{
	struct spy *spy = container_of(notifier, struct spy, notifier);
	const struct module *module = ((struct tp_module *)data)->mod;
	unsigned int i;

	for (i = 0; i < module->num_tracepoints; i++) {
		struct tracepoint *tracepoint =
			tracepoint_ptr_deref(&module->tracepoints_ptrs[i]);

		if (action == MODULE_STATE_COMING &&
		    !strcmp(tracepoint->name, "twheel_arm"))
			spy->arm = tracepoint;
	}
	return NOTIFY_OK;
}

/* Arm the timer for a far time, and be told of it; false: there is no telling. */
static inline bool spy_on(struct spy *spy, struct twheel_timer *timer)
{
	spy->notifier.notifier_call = spy_module;
	spy->node = &timer->node;
	if (register_tracepoint_module_notifier(&spy->notifier))
		return false;
	unregister_tracepoint_module_notifier(&spy->notifier);
	if (!spy->arm || tracepoint_probe_register(spy->arm, spy_arm, spy))
		return false;
	twheel_timer_arm(timer, S64_MAX, 0, TWHEEL_TIMER_ABS);
	tracepoint_probe_unregister(spy->arm, spy_arm, spy);
	tracepoint_synchronize_unregister();
	return spy->base;
}
#else
static inline bool spy_on(struct spy *spy, struct twheel_timer *timer)
{
	return false;
}
#endif

static inline void spy_do_nothing(struct twheel_timer *timer) { }

/* For tests that ask for a base, before they do anything. */
static inline void need_tracepoints(struct kunit *test)
{
	if (!IS_ENABLED(CONFIG_TRACEPOINTS))
		kunit_skip(test, "the kernel has no CONFIG_TRACEPOINTS");
}

/*
 * The base of this CPU, for CLOCK_MONOTONIC, to be looked at without its lock: it stays
 * as long as the module.
 */
static inline const struct base *base_here(struct kunit *test)
{
	struct twheel_timer *timer = kunit_kzalloc(test, sizeof(*timer), GFP_KERNEL);
	struct spy spy = {};

	KUNIT_ASSERT_NOT_NULL(test, timer);
	twheel_timer_setup(timer, spy_do_nothing);
	spy_on(&spy, timer);
	twheel_timer_shutdown(timer);
	KUNIT_ASSERT_NOT_NULL(test, spy.base);
	return spy.base;
}

#endif /* TWHEEL_SPY_H */
