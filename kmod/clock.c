// SPDX-License-Identifier: GPL-2.0
/*
 * What happens to clocks: they are set, and time namespaces shift them.
 *
 * The only notice that a module gets of CLOCK_REALTIME being set comes from inside
 * of the timekeeper, under its locks.  So it is handed on: an irq_work, then a
 * work that queues the work of each watch.  All of that takes a while, in which
 * the clock may be set again or read.  Hence nobody relies on the notice itself:
 * whether the clock was set is whether its offset to CLOCK_MONOTONIC is the one
 * that was there before.  Leap seconds change it too, and time that was slept.
 */
#include <linux/irq_work.h>
#include <linux/mutex.h>
#include <linux/nsproxy.h>
#include <linux/pvclock_gtod.h>
#include <linux/time_namespace.h>

#include "clock.h"

static LIST_HEAD(watches);
static DEFINE_MUTEX(watches_mutex);

/**
 * clock_offset_ns() - by how much CLOCK_REALTIME is ahead of CLOCK_MONOTONIC
 *
 * Context: any but NMI.
 */
s64 clock_offset_ns(void)
{
	return ktime_to_ns(ktime_mono_to_real(0));
}

/**
 * clock_namespace_ns() - by how much the current task's clock is ahead of the host's
 * @clock: the clock.
 *
 * Context: a task.
 */
s64 clock_namespace_ns(enum base_clock clock)
{
#ifdef CONFIG_TIME_NS
	const struct timens_offsets *offsets =
		&current->nsproxy->time_ns->offsets;

	switch (clock) {
	case BASE_MONOTONIC:
		return timespec64_to_ns(&offsets->monotonic);
	case BASE_BOOTTIME:
		return timespec64_to_ns(&offsets->boottime);
	default:
		return 0;
	}
#else
	return 0;
#endif
}

/**
 * clock_watch_tell() - let a watch's function be called
 * @watch: the watch, before clock_watch_end().
 */
void clock_watch_tell(struct clock_watch *watch)
{
	queue_work(system_unbound_wq, &watch->work);
}

static void tell_watches(struct work_struct *work)
{
	struct clock_watch *watch;

	mutex_lock(&watches_mutex);
	list_for_each_entry(watch, &watches, list) {
		clock_watch_tell(watch);
		cond_resched();
	}
	mutex_unlock(&watches_mutex);
}

static DECLARE_WORK(tell_work, tell_watches);

static void queue_tell_work(struct irq_work *work)
{
	schedule_work(&tell_work);
}

static DEFINE_IRQ_WORK(set_work, queue_tell_work);

/* Inside of the timekeeper. */
static int timekeeper_changed(struct notifier_block *block,
			      unsigned long was_set, void *timekeeper)
{
	if (was_set)
		irq_work_queue(&set_work);
	return NOTIFY_OK;
}

static struct notifier_block notifier = {
	.notifier_call = timekeeper_changed,
};

/**
 * clock_watch_begin() - ask to be told when CLOCK_REALTIME was set
 * @watch: the watch, which stays until clock_watch_end().
 * @function: called in a task some time after, perhaps once for several times.
 *
 * Context: a task; sleeps.
 */
void clock_watch_begin(struct clock_watch *watch, work_func_t function)
{
	INIT_WORK(&watch->work, function);
	mutex_lock(&watches_mutex);
	list_add(&watch->list, &watches);
	mutex_unlock(&watches_mutex);
}

/**
 * clock_watch_end() - do not ask any more
 * @watch: the watch; its function has returned and is not called again.
 *
 * Context: a task; sleeps.
 */
void clock_watch_end(struct clock_watch *watch)
{
	mutex_lock(&watches_mutex);
	list_del(&watch->list);
	mutex_unlock(&watches_mutex);
	cancel_work_sync(&watch->work);
}

/**
 * clock_init() - before the first watch
 *
 * Return: 0 or an errno.
 */
int clock_init(void)
{
	return pvclock_gtod_register_notifier(&notifier);
}

/**
 * clock_exit() - after the last one
 */
void clock_exit(void)
{
	pvclock_gtod_unregister_notifier(&notifier);
	irq_work_sync(&set_work);
	cancel_work_sync(&tell_work);
}
