/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the suites of the timers share: a timer that counts, work for all CPUs.
 */
#ifndef TWHEEL_COUNTER_H
#define TWHEEL_COUNTER_H

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/smp.h>

#include "../kmod/twheel.h"

#define HOUR_NS		(3600ULL * NSEC_PER_SEC)

/**
 * struct counter - a timer that counts its calls
 * @timer: the timer; its function is counter_call().
 * @called: completed by each call.
 * @calls: how many there were.
 * @inside: how many are under way.
 * @overlapped: two were under way at once.
 * @at_ns: when the last one began.
 * @cpu: where that was.
 * @rearm: how often the function arms its timer again,
 * @rearm_ns: and for how long each time.
 * @linger_us: how long a call takes.
 */
struct counter {
	struct twheel_timer timer;
	struct completion called;
	atomic_t calls;
	atomic_t inside;
	bool overlapped;
	u64 at_ns;
	unsigned int cpu;
	unsigned int rearm;
	u64 rearm_ns;
	unsigned int linger_us;
};

static inline void counter_call(struct twheel_timer *timer)
{
	struct counter *counter = container_of(timer, struct counter, timer);

	if (atomic_inc_return(&counter->inside) > 1)
		counter->overlapped = true;
	counter->at_ns = ktime_get_ns();
	counter->cpu = smp_processor_id();
	atomic_inc(&counter->calls);
	if (counter->rearm) {
		counter->rearm--;
		twheel_timer_arm(timer, counter->rearm_ns, 0, TWHEEL_TIMER_REL);
	}
	complete(&counter->called);
	/* By the clock: udelay() can take less on an emulated processor. */
	while (ktime_get_ns() < counter->at_ns + counter->linger_us * NSEC_PER_USEC)
		cpu_relax();
	atomic_dec(&counter->inside);
}

static inline void counter_init(struct counter *counter)
{
	init_completion(&counter->called);
	twheel_timer_setup(&counter->timer, counter_call);
}

/* Counters that are freed with the test. */
static inline struct counter *counters_make(struct kunit *test, unsigned int nr)
{
	struct counter *counters = kunit_kcalloc(test, nr, sizeof(*counters),
						 GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, counters);
	for (i = 0; i < nr; i++)
		counter_init(&counters[i]);
	return counters;
}

static inline struct counter *counter_make(struct kunit *test)
{
	return counters_make(test, 1);
}

/* The same work for several threads. */
struct crew {
	void (*work)(void *data);
	void *data;
	struct completion done;
};

static inline int crew_thread(void *data)
{
	struct crew *crew = data;

	crew->work(crew->data);
	/* Ends in the kernel proper: the module may be unloaded by then. */
	kthread_complete_and_exit(&crew->done, 0);
}

/* Do @work on each CPU, in a thread that stays there, all at the same time. */
static inline void run_on_all_cpus(struct kunit *test, void (*work)(void *data),
				   void *data)
{
	struct crew crew = { .work = work, .data = data };
	unsigned int cpu, threads = 0;
	bool failed = false;

	init_completion(&crew.done);
	for_each_online_cpu(cpu) {
		struct task_struct *task =
			kthread_create_on_cpu(crew_thread, &crew, cpu, "twheel/%u");

		if (IS_ERR(task)) {
			failed = true;
			break;
		}
		wake_up_process(task);
		threads++;
	}
	while (threads--)
		wait_for_completion(&crew.done);
	KUNIT_ASSERT_FALSE(test, failed);
}

#endif /* TWHEEL_COUNTER_H */
