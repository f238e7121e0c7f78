// SPDX-License-Identifier: GPL-2.0
/*
 * Clocks that are set, and the offsets of time namespaces.
 *
 * The only notice that a module gets when CLOCK_REALTIME is set comes from inside the
 * timekeeper, under its locks.  So it is handed on: by an irq_work, and then by a work
 * that queues the work of each notice.  That takes a while, in which the clock may be set
 * again, even back to what it was, or read.  So the sets are counted where the timekeeper
 * tells of them: each change of the offset to CLOCK_MONOTONIC.  Leap seconds and suspending
 * change that, too.
 */
#include <linux/irq_work.h>
#include <linux/mutex.h>
#include <linux/nsproxy.h>
#include <linux/pvclock_gtod.h>
#include <linux/time_namespace.h>
#include <linux/timekeeper_internal.h>

#include "clock.h"
#include "compat.h"

static LIST_HEAD(notices);
static DEFINE_MUTEX(notices_mutex);

/* How often the offset has changed, and what it is; written under the timekeeper's locks. */
static unsigned long nr_sets;
static ktime_t last_offset;

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
 * clock_nr_sets() - how often CLOCK_REALTIME was set since the module was loaded
 *
 * Who has read a time of the clock as it was set sees the set counted.
 *
 * Context: any but NMI.
 */
unsigned long clock_nr_sets(void)
{
	/*
	 * The vDSO shows a new time before timekeeper_changed() is called.  Who asks the
	 * timekeeper itself for the time has to wait until both are done.
	 */
	ktime_get_coarse_real();
	return READ_ONCE(nr_sets);
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
 * clock_notice_give() - queue the work of a notice
 * @notice: the notice, before clock_notice_end().
 */
void clock_notice_give(struct clock_notice *notice)
{
	queue_work(twheel_unbound_wq, &notice->work);
}

static void give_notices(struct work_struct *work)
{
	struct clock_notice *notice;

	mutex_lock(&notices_mutex);
	list_for_each_entry(notice, &notices, list) {
		clock_notice_give(notice);
		cond_resched();
	}
	mutex_unlock(&notices_mutex);
}

static DECLARE_WORK(notices_work, give_notices);

static void queue_notices_work(struct irq_work *work)
{
	schedule_work(&notices_work);
}

static DEFINE_IRQ_WORK(set_work, queue_notices_work);

/* Called inside the timekeeper, under its locks, which readers of the clock wait for. */
static int timekeeper_changed(struct notifier_block *block,
			      unsigned long was_set, void *timekeeper)
{
	const struct timekeeper *now = timekeeper;

	if (now->offs_real != last_offset) {
		last_offset = now->offs_real;
		WRITE_ONCE(nr_sets, nr_sets + 1);
		irq_work_queue(&set_work);
	}
	return NOTIFY_OK;
}

static struct notifier_block notifier = {
	.notifier_call = timekeeper_changed,
};

/**
 * clock_notice_begin() - let a function be called after CLOCK_REALTIME was set
 * @notice: the notice, which stays until clock_notice_end().
 * @function: called in a task some time after the clock was set; it may be called once if
 *	the clock was set several times.
 *
 * Context: a task; sleeps.
 */
void clock_notice_begin(struct clock_notice *notice, work_func_t function)
{
	INIT_WORK(&notice->work, function);
	mutex_lock(&notices_mutex);
	list_add(&notice->list, &notices);
	mutex_unlock(&notices_mutex);
}

/**
 * clock_notice_end() - end a notice
 * @notice: the notice; afterwards its function has returned and is not called again.
 *
 * Context: a task; sleeps.
 */
void clock_notice_end(struct clock_notice *notice)
{
	mutex_lock(&notices_mutex);
	list_del(&notice->list);
	mutex_unlock(&notices_mutex);
	cancel_work_sync(&notice->work);
}

/**
 * clock_init() - register for the notices of the timekeeper, before the first notice
 *
 * Return: 0 or an errno.
 */
int clock_init(void)
{
	return pvclock_gtod_register_notifier(&notifier);
}

/**
 * clock_exit() - unregister, after the last notice has ended
 */
void clock_exit(void)
{
	pvclock_gtod_unregister_notifier(&notifier);
	irq_work_sync(&set_work);
	cancel_work_sync(&notices_work);
}
