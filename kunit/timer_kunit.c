// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of the timers for other modules, from task, softirq and hardirq
 * context and with several CPUs at the same timers.
 */
#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/irq_work.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "../kmod/twheel.h"

#define HOUR_NS		(3600ULL * NSEC_PER_SEC)

/* A timer that counts. */
struct counter {
	struct twheel_timer timer;
	struct completion called;
	atomic_t calls;
	atomic_t inside;
	bool overlapped;
	u64 at_ns;
	unsigned int rearm;	/* so many times, */
	u64 rearm_ns;		/* each time for this */
	unsigned int linger_us;	/* how long a call takes */
	bool left;		/* the last call has returned, as far as it can tell */
};

static void count_call(struct twheel_timer *timer)
{
	struct counter *counter = container_of(timer, struct counter, timer);

	if (atomic_inc_return(&counter->inside) > 1)
		counter->overlapped = true;
	counter->left = false;
	counter->at_ns = ktime_get_ns();
	atomic_inc(&counter->calls);
	if (counter->rearm) {
		counter->rearm--;
		twheel_timer_arm(timer, counter->rearm_ns, TWHEEL_TIMER_REL);
	}
	complete(&counter->called);
	udelay(counter->linger_us);
	counter->left = true;
	atomic_dec(&counter->inside);
}

static struct counter *counter_make(struct kunit *test)
{
	struct counter *counter = kunit_kzalloc(test, sizeof(*counter), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, counter);
	init_completion(&counter->called);
	twheel_timer_setup(&counter->timer, count_call);
	return counter;
}

static void timer_is_called_once_and_never_early(struct kunit *test)
{
	static const u64 delays_ns[] = { 0, 1, 65536, 100000, 1000000, 20000000,
					 300000000 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(delays_ns); i++) {
		struct counter *counter = counter_make(test);
		u64 armed_ns = ktime_get_ns();

		KUNIT_EXPECT_EQ(test, twheel_timer_arm(&counter->timer, delays_ns[i],
						       TWHEEL_TIMER_REL), 0);
		wait_for_completion(&counter->called);
		KUNIT_EXPECT_FALSE(test, twheel_timer_shutdown(&counter->timer));
		KUNIT_EXPECT_EQ(test, atomic_read(&counter->calls), 1);
		KUNIT_EXPECT_GE(test, counter->at_ns, armed_ns + delays_ns[i]);
	}
}

static void absolute_time_is_kept(struct kunit *test)
{
	struct counter *counter = counter_make(test);
	u64 due_ns = ktime_get_ns() + 5 * NSEC_PER_MSEC;

	twheel_timer_arm(&counter->timer, due_ns, TWHEEL_TIMER_ABS);
	wait_for_completion(&counter->called);
	KUNIT_EXPECT_GE(test, counter->at_ns, due_ns);
	twheel_timer_shutdown(&counter->timer);
}

static void past_time_is_not_called_under_the_callers_locks(struct kunit *test)
{
	struct counter *counter = counter_make(test);
	unsigned long flags;

	local_irq_save(flags);
	twheel_timer_arm(&counter->timer, 1, TWHEEL_TIMER_ABS);
	KUNIT_EXPECT_EQ(test, atomic_read(&counter->calls), 0);
	local_irq_restore(flags);
	wait_for_completion(&counter->called);
	twheel_timer_shutdown(&counter->timer);
}

static void unknown_flags_are_refused(struct kunit *test)
{
	struct counter *counter = counter_make(test);

	KUNIT_EXPECT_EQ(test, twheel_timer_arm(&counter->timer, 0, 2), -EINVAL);
	KUNIT_EXPECT_EQ(test, twheel_timer_modify(&counter->timer, 0, 4), -EINVAL);
	KUNIT_EXPECT_FALSE(test, twheel_timer_pending(&counter->timer));
}

static void arming_again_replaces_the_time(struct kunit *test)
{
	struct counter *counter = counter_make(test);
	u64 armed_ns;

	twheel_timer_arm(&counter->timer, HOUR_NS, TWHEEL_TIMER_REL);
	armed_ns = ktime_get_ns();
	KUNIT_EXPECT_EQ(test, twheel_timer_arm(&counter->timer, NSEC_PER_MSEC,
					       TWHEEL_TIMER_REL), 1);
	wait_for_completion(&counter->called);
	KUNIT_EXPECT_GE(test, counter->at_ns, armed_ns + NSEC_PER_MSEC);
	KUNIT_EXPECT_FALSE(test, twheel_timer_shutdown(&counter->timer));
	KUNIT_EXPECT_EQ(test, atomic_read(&counter->calls), 1);
}

static void modify_leaves_an_idle_timer_alone(struct kunit *test)
{
	struct counter *counter = counter_make(test);

	KUNIT_EXPECT_EQ(test, twheel_timer_modify(&counter->timer, 0,
						  TWHEEL_TIMER_REL), 0);
	KUNIT_EXPECT_FALSE(test, twheel_timer_pending(&counter->timer));
	twheel_timer_arm(&counter->timer, HOUR_NS, TWHEEL_TIMER_REL);
	KUNIT_EXPECT_EQ(test, twheel_timer_modify(&counter->timer, 0,
						  TWHEEL_TIMER_REL), 1);
	wait_for_completion(&counter->called);
	twheel_timer_shutdown(&counter->timer);
}

static void cancelled_timer_is_not_called(struct kunit *test)
{
	struct counter *counter = counter_make(test);
	struct counter *later = counter_make(test);

	twheel_timer_arm(&counter->timer, 2 * NSEC_PER_MSEC, TWHEEL_TIMER_REL);
	KUNIT_EXPECT_TRUE(test, twheel_timer_pending(&counter->timer));
	KUNIT_EXPECT_TRUE(test, twheel_timer_cancel(&counter->timer));
	KUNIT_EXPECT_FALSE(test, twheel_timer_pending(&counter->timer));
	KUNIT_EXPECT_FALSE(test, twheel_timer_cancel(&counter->timer));
	twheel_timer_arm(&later->timer, 4 * NSEC_PER_MSEC, TWHEEL_TIMER_REL);
	wait_for_completion(&later->called);
	KUNIT_EXPECT_EQ(test, atomic_read(&counter->calls), 0);
	twheel_timer_shutdown(&later->timer);
}

static void time_beyond_all_clocks_is_never(struct kunit *test)
{
	struct counter *counter = counter_make(test);

	twheel_timer_arm(&counter->timer, U64_MAX, TWHEEL_TIMER_ABS);
	KUNIT_EXPECT_TRUE(test, twheel_timer_pending(&counter->timer));
	twheel_timer_arm(&counter->timer, U64_MAX, TWHEEL_TIMER_REL);
	KUNIT_EXPECT_TRUE(test, twheel_timer_pending(&counter->timer));
	KUNIT_EXPECT_TRUE(test, twheel_timer_shutdown(&counter->timer));
}

static void timer_that_was_shut_down_refuses_to_be_armed(struct kunit *test)
{
	struct counter *counter = counter_make(test);

	twheel_timer_arm(&counter->timer, HOUR_NS, TWHEEL_TIMER_REL);
	KUNIT_EXPECT_TRUE(test, twheel_timer_shutdown(&counter->timer));
	KUNIT_EXPECT_EQ(test, twheel_timer_arm(&counter->timer, 0, TWHEEL_TIMER_REL),
			-ESHUTDOWN);
	KUNIT_EXPECT_FALSE(test, twheel_timer_pending(&counter->timer));
}

static void function_may_arm_its_timer_again(struct kunit *test)
{
	struct counter *counter = counter_make(test);

	counter->rearm = 20;
	counter->rearm_ns = 100000;
	twheel_timer_arm(&counter->timer, 0, TWHEEL_TIMER_REL);
	while (atomic_read(&counter->calls) < 21)
		wait_for_completion(&counter->called);
	twheel_timer_shutdown(&counter->timer);
	KUNIT_EXPECT_EQ(test, atomic_read(&counter->calls), 21);
	KUNIT_EXPECT_FALSE(test, counter->overlapped);
}

static void cancel_sync_waits_for_the_function(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < 50; i++) {
		struct counter *counter = counter_make(test);

		counter->linger_us = 300;
		twheel_timer_arm(&counter->timer, 0, TWHEEL_TIMER_REL);
		wait_for_completion(&counter->called);
		KUNIT_EXPECT_FALSE(test, twheel_timer_cancel_sync(&counter->timer));
		KUNIT_EXPECT_TRUE(test, counter->left);
	}
}

static void cancel_sync_ends_a_timer_that_arms_itself(struct kunit *test)
{
	struct counter *counter = counter_make(test);
	int calls;

	counter->rearm = UINT_MAX;
	twheel_timer_arm(&counter->timer, 0, TWHEEL_TIMER_REL);
	wait_for_completion(&counter->called);
	twheel_timer_cancel_sync(&counter->timer);
	calls = atomic_read(&counter->calls);
	KUNIT_EXPECT_FALSE(test, twheel_timer_pending(&counter->timer));
	KUNIT_EXPECT_EQ(test, atomic_read(&counter->inside), 0);
	twheel_timer_shutdown(&counter->timer);
	KUNIT_EXPECT_EQ(test, atomic_read(&counter->calls), calls);
}

/* Frees its timer as the last thing that it does. */
struct suicide {
	struct twheel_timer timer;
	struct completion *done;
};

static void free_timer(struct twheel_timer *timer)
{
	struct suicide *suicide = container_of(timer, struct suicide, timer);
	struct completion *done = suicide->done;

	kfree(suicide);
	complete(done);
}

static void function_may_free_its_timer(struct kunit *test)
{
	DECLARE_COMPLETION_ONSTACK(done);
	unsigned int i;

	for (i = 0; i < 100; i++) {
		struct suicide *suicide = kzalloc(sizeof(*suicide), GFP_KERNEL);

		KUNIT_ASSERT_NOT_NULL(test, suicide);
		suicide->done = &done;
		twheel_timer_setup(&suicide->timer, free_timer);
		twheel_timer_arm(&suicide->timer, i * 10000, TWHEEL_TIMER_REL);
	}
	for (i = 0; i < 100; i++)
		wait_for_completion(&done);
}

static void many_timers_are_each_called_once(struct kunit *test)
{
	enum { NR = 2000 };
	struct counter *counters = kvcalloc(NR, sizeof(*counters), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, counters);
	for (i = 0; i < NR; i++) {
		init_completion(&counters[i].called);
		twheel_timer_setup(&counters[i].timer, count_call);
		twheel_timer_arm(&counters[i].timer,
				 get_random_u32() % (50 * NSEC_PER_MSEC),
				 TWHEEL_TIMER_REL);
	}
	for (i = 0; i < NR; i++) {
		wait_for_completion(&counters[i].called);
		twheel_timer_shutdown(&counters[i].timer);
	}
	for (i = 0; i < NR; i++)
		KUNIT_ASSERT_EQ(test, atomic_read(&counters[i].calls), 1);
	kvfree(counters);
}

/* Arms its timer in hardirq context. */
struct hardirq_armer {
	struct irq_work work;
	struct counter *counter;
	bool in_hardirq;
};

static void arm_in_hardirq(struct irq_work *work)
{
	struct hardirq_armer *armer = container_of(work, struct hardirq_armer, work);

	armer->in_hardirq = in_hardirq();
	twheel_timer_arm(&armer->counter->timer, 100000, TWHEEL_TIMER_REL);
	twheel_timer_modify(&armer->counter->timer, HOUR_NS, TWHEEL_TIMER_REL);
	twheel_timer_cancel(&armer->counter->timer);
	twheel_timer_arm(&armer->counter->timer, 200000, TWHEEL_TIMER_REL);
}

static void timer_can_be_used_in_hardirq_context(struct kunit *test)
{
	struct hardirq_armer armer = { .counter = counter_make(test) };

	init_irq_work(&armer.work, arm_in_hardirq);
	irq_work_queue(&armer.work);
	irq_work_sync(&armer.work);
	KUNIT_EXPECT_TRUE(test, armer.in_hardirq || IS_ENABLED(CONFIG_PREEMPT_RT));
	wait_for_completion(&armer.counter->called);
	twheel_timer_shutdown(&armer.counter->timer);
	KUNIT_EXPECT_EQ(test, atomic_read(&armer.counter->calls), 1);
}

/*
 * Threads on all CPUs do what they like to a few timers.  What was armed has been
 * called, or was cancelled or armed again before.
 */
#define RACE_TIMERS	8
#define RACE_ROUNDS	20000

struct race {
	struct counter counters[RACE_TIMERS];
	atomic_t armed;		/* armings that found the timer idle */
	atomic_t cancelled;	/* cancels that found it armed */
	atomic_t threads;
	struct completion done;
};

static int race_thread(void *data)
{
	struct race *race = data;
	unsigned int i;

	for (i = 0; i < RACE_ROUNDS; i++) {
		u32 number = get_random_u32();
		struct twheel_timer *timer =
			&race->counters[number % RACE_TIMERS].timer;
		u64 delay_ns = (number >> 8) % 400000;

		switch ((number >> 4) % 8) {
		case 0 ... 3:
			if (!twheel_timer_arm(timer, delay_ns, TWHEEL_TIMER_REL))
				atomic_inc(&race->armed);
			break;
		case 4:
			twheel_timer_modify(timer, delay_ns, TWHEEL_TIMER_REL);
			break;
		case 5 ... 6:
			if (twheel_timer_cancel(timer))
				atomic_inc(&race->cancelled);
			break;
		default:
			twheel_timer_pending(timer);
		}
		cond_resched();
	}
	if (atomic_dec_and_test(&race->threads))
		complete(&race->done);
	return 0;
}

static void threads_on_all_cpus_lose_and_double_nothing(struct kunit *test)
{
	struct race *race = kunit_kzalloc(test, sizeof(*race), GFP_KERNEL);
	unsigned int i, cpu;
	int calls = 0;

	KUNIT_ASSERT_NOT_NULL(test, race);
	init_completion(&race->done);
	for (i = 0; i < RACE_TIMERS; i++) {
		init_completion(&race->counters[i].called);
		race->counters[i].linger_us = i * 10;
		twheel_timer_setup(&race->counters[i].timer, count_call);
	}
	atomic_set(&race->threads, num_online_cpus() + 1);
	for_each_online_cpu(cpu) {
		struct task_struct *task = kthread_create_on_cpu(race_thread, race,
								 cpu, "race/%u");

		KUNIT_ASSERT_FALSE(test, IS_ERR(task));
		wake_up_process(task);
	}
	race_thread(race);
	wait_for_completion(&race->done);

	for (i = 0; i < RACE_TIMERS; i++) {
		if (twheel_timer_shutdown(&race->counters[i].timer))
			atomic_inc(&race->cancelled);
		KUNIT_EXPECT_FALSE(test, race->counters[i].overlapped);
		calls += atomic_read(&race->counters[i].calls);
	}
	kunit_info(test, "%d armed, %d cancelled, %d called\n",
		   atomic_read(&race->armed), atomic_read(&race->cancelled), calls);
	KUNIT_EXPECT_EQ(test, atomic_read(&race->armed),
			atomic_read(&race->cancelled) + calls);
}

/* Arm, and take back with cancel_sync what may be running by then. */
static int sync_thread(void *data)
{
	struct race *race = data;
	unsigned int index = atomic_dec_return(&race->threads) % RACE_TIMERS;
	struct counter *counter = &race->counters[index];
	unsigned int i;

	for (i = 0; i < RACE_ROUNDS / 10; i++) {
		if (!twheel_timer_arm(&counter->timer,
				      get_random_u32() % 200000, TWHEEL_TIMER_REL))
			atomic_inc(&race->armed);
		udelay(get_random_u32() % 200);
		if (twheel_timer_cancel_sync(&counter->timer))
			atomic_inc(&race->cancelled);
		if (atomic_read(&counter->inside) ||
		    twheel_timer_pending(&counter->timer))
			counter->overlapped = true;
		cond_resched();
	}
	complete(&race->done);
	return 0;
}

static void nothing_runs_after_cancel_sync(struct kunit *test)
{
	struct race *race = kunit_kzalloc(test, sizeof(*race), GFP_KERNEL);
	unsigned int i;
	int calls = 0;

	KUNIT_ASSERT_NOT_NULL(test, race);
	init_completion(&race->done);
	atomic_set(&race->threads, RACE_TIMERS);
	for (i = 0; i < RACE_TIMERS; i++) {
		init_completion(&race->counters[i].called);
		race->counters[i].linger_us = i * 10;
		twheel_timer_setup(&race->counters[i].timer, count_call);
	}
	/* Not bound to a CPU, so that timers move between bases. */
	for (i = 0; i < RACE_TIMERS; i++) {
		struct task_struct *task = kthread_run(sync_thread, race, "sync");

		KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	}
	for (i = 0; i < RACE_TIMERS; i++)
		wait_for_completion(&race->done);
	for (i = 0; i < RACE_TIMERS; i++) {
		KUNIT_EXPECT_FALSE(test, race->counters[i].overlapped);
		calls += atomic_read(&race->counters[i].calls);
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&race->armed),
			atomic_read(&race->cancelled) + calls);
}

static struct kunit_case timer_cases[] = {
	KUNIT_CASE(timer_is_called_once_and_never_early),
	KUNIT_CASE(absolute_time_is_kept),
	KUNIT_CASE(past_time_is_not_called_under_the_callers_locks),
	KUNIT_CASE(unknown_flags_are_refused),
	KUNIT_CASE(arming_again_replaces_the_time),
	KUNIT_CASE(modify_leaves_an_idle_timer_alone),
	KUNIT_CASE(cancelled_timer_is_not_called),
	KUNIT_CASE(time_beyond_all_clocks_is_never),
	KUNIT_CASE(timer_that_was_shut_down_refuses_to_be_armed),
	KUNIT_CASE(function_may_arm_its_timer_again),
	KUNIT_CASE(cancel_sync_waits_for_the_function),
	KUNIT_CASE(cancel_sync_ends_a_timer_that_arms_itself),
	KUNIT_CASE(function_may_free_its_timer),
	KUNIT_CASE(many_timers_are_each_called_once),
	KUNIT_CASE(timer_can_be_used_in_hardirq_context),
	KUNIT_CASE(threads_on_all_cpus_lose_and_double_nothing),
	KUNIT_CASE(nothing_runs_after_cancel_sync),
	{}
};

static struct kunit_suite timer_suite = {
	.name = "twheel_timer",
	.test_cases = timer_cases,
};
kunit_test_suite(timer_suite);

MODULE_DESCRIPTION("KUnit suite of twheel's timers");
MODULE_LICENSE("GPL");
