/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Finds the base that a timer or an event is armed on, for suites that look at it. The
 * tracepoints tell which it is.
 */
#ifndef TWHEEL_SPY_H
#define TWHEEL_SPY_H

#include <kunit/test.h>
#include <linux/module.h>
#include <linux/tracepoint.h>

#include "../kmod/base.h"

/**
 * struct spy - waits for the tracepoint of a node that is armed
 * @notifier: called for each module that has tracepoints.
 * @arm: the tracepoint of arming; NULL: it was not found.
 * @node: the node; NULL: any, on this CPU.
 * @kind: the kind of its base.
 * @base: the base that it was armed on.
 */
struct spy {
	struct notifier_block notifier;
	struct tracepoint *arm;
	const struct twheel_node *node;
	enum base_kind kind;
	const struct base *base;
};

#ifdef CONFIG_TRACEPOINTS
static inline void spy_arm(void *data, const struct base *base,
			   const struct twheel_node *node, u64 due_ns, u64 fires_ns)
{
	struct spy *spy = data;

	if (base->kind == spy->kind &&
	    (spy->node ? node == spy->node : base->cpu == smp_processor_id()))
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

/* Begin to wait; false: there are no tracepoints. */
static inline bool spy_begin(struct spy *spy)
{
	spy->notifier.notifier_call = spy_module;
	if (register_tracepoint_module_notifier(&spy->notifier))
		return false;
	unregister_tracepoint_module_notifier(&spy->notifier);
	return spy->arm && !tracepoint_probe_register(spy->arm, spy_arm, spy);
}

static inline void spy_end(struct spy *spy)
{
	tracepoint_probe_unregister(spy->arm, spy_arm, spy);
	tracepoint_synchronize_unregister();
}
#else
static inline bool spy_begin(struct spy *spy)
{
	return false;
}

static inline void spy_end(struct spy *spy) { }
#endif

static inline void spy_do_nothing(struct twheel_timer *timer) { }

/* Skip a test that needs base_here() where there are no tracepoints. */
static inline void need_tracepoints(struct kunit *test)
{
	if (!IS_ENABLED(CONFIG_TRACEPOINTS))
		kunit_skip(test, "the kernel has no CONFIG_TRACEPOINTS");
}

/*
 * The base of this CPU for timers. It exists as long as the module; its lock is not held.
 */
static inline const struct base *base_here(struct kunit *test)
{
	struct twheel_timer *timer = kunit_kzalloc(test, sizeof(*timer), GFP_KERNEL);
	struct spy spy = { .kind = BASE_TIMERS };

	KUNIT_ASSERT_NOT_NULL(test, timer);
	spy.node = &timer->node;
	twheel_timer_setup(timer, spy_do_nothing);
	if (spy_begin(&spy)) {
		twheel_timer_arm(timer, S64_MAX, 0, TWHEEL_TIMER_ABS);
		spy_end(&spy);
	}
	twheel_timer_shutdown(timer);
	KUNIT_ASSERT_NOT_NULL(test, spy.base);
	return spy.base;
}

#endif /* TWHEEL_SPY_H */
