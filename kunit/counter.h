/* SPDX-License-Identifier: GPL-2.0 */
/* Shared by the suites of timers: a timer that counts its calls, and work for all CPUs. */
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
 * @calls: number of calls.
 * @inside: number of calls in progress.
 * @overlapped: two calls were in progress at the same time.
 * @at_ns: when the last call began.
 * @cpu: the CPU of the last call.
 * @rearm: number of times that the function still arms its timer again,
 * @rearm_ns: and the delay each time.
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
	/* Wait by the clock: udelay() can be too short on an emulated processor. */
	while (ktime_get_ns() < counter->at_ns + counter->linger_us * NSEC_PER_USEC)
		cpu_relax();
	atomic_dec(&counter->inside);
}

static inline void counter_init(struct counter *counter)
{
	init_completion(&counter->called);
	twheel_timer_setup(&counter->timer, counter_call);
}

/* Allocate counters, which KUnit frees with the test. */
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

/* Work that several threads do. */
struct crew {
	void (*work)(void *data);
	void *data;
	struct completion done;
};

static inline int crew_thread(void *data)
{
	struct crew *crew = data;

	crew->work(crew->data);
	/* End the thread outside of this module, which may be unloaded by then. */
	kthread_complete_and_exit(&crew->done, 0);
}

/* Run @work on all CPUs at the same time, in one thread bound to each. */
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
