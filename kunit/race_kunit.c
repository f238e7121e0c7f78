// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of races: threads on all CPUs, interrupts and the timers' own functions use
 * the same timers at the same time.
 *
 * In whatever order: no function runs twice at the same time; each arming of an idle timer
 * ends in exactly one call or one cancel; when a _sync call returns, the function it ended
 * is not running.
 */
#include <kunit/test.h>
#include <linux/irq_work.h>
#include <linux/mutex.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "counter.h"
#include "options.h"

/* --- anything goes ---------------------------------------------------------- */

#define RACE_TIMERS	8
#define RACE_ROUNDS	5000

/**
 * struct race - timers that all CPUs use, and counts of what they did
 * @counters: the timers; the function of each runs a little longer than that of the last.
 * @armed: armings that found a timer idle.
 * @cancelled: cancels that found it armed.
 * @replaced: armings and modifications that found it armed.
 * @postpones: the CPUs postpone timers too, which neither arms nor ends one.
 * @sync: the CPUs use cancel_sync too, which can cancel more than one arming while it
 *	waits and counts as one.
 */
struct race {
	struct counter counters[RACE_TIMERS];
	bool postpones;
	bool sync;
	atomic_t armed;
	atomic_t cancelled;
	atomic_t replaced;
};

static struct race *race_make(struct kunit *test)
{
	struct race *race = kunit_kzalloc(test, sizeof(*race), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, race);
	for (i = 0; i < RACE_TIMERS; i++) {
		counter_init(&race->counters[i]);
		race->counters[i].linger_us = i * 10;
	}
	return race;
}

/* An action that any context may do, chosen by the bits of @number. */
static void race_act(struct race *race, u32 number)
{
	struct twheel_timer *timer = &race->counters[number % RACE_TIMERS].timer;
	u64 delay_ns = (number >> 8) % 300000;
	u64 slack_ns = number >> 31 ? delay_ns / 2 : 0;

	if (race->postpones && number & BIT(7)) {
		twheel_timer_postpone(timer, ktime_get_ns() + delay_ns);
		return;
	}
	switch ((number >> 4) % 8) {
	case 0 ... 3:
		if (twheel_timer_arm(timer, delay_ns, slack_ns, TWHEEL_TIMER_REL))
			atomic_inc(&race->replaced);
		else
			atomic_inc(&race->armed);
		break;
	case 4:
		if (twheel_timer_modify(timer, delay_ns, slack_ns, TWHEEL_TIMER_REL))
			atomic_inc(&race->replaced);
		break;
	case 5 ... 6:
		if (twheel_timer_cancel(timer))
			atomic_inc(&race->cancelled);
		break;
	default:
		twheel_timer_pending(timer);
	}
}

/* The same action in an interrupt. */
struct race_interrupt {
	struct irq_work work;
	struct race *race;
	u32 number;
};

static void race_interrupt(struct irq_work *work)
{
	struct race_interrupt *interrupt =
		container_of(work, struct race_interrupt, work);

	race_act(interrupt->race, interrupt->number);
}

static void race_run(void *data)
{
	struct race *race = data;
	struct race_interrupt interrupt = {
		.work = IRQ_WORK_INIT_HARD(race_interrupt),
		.race = race,
	};
	unsigned int i;

	for (i = 0; i < rounds_of(RACE_ROUNDS); i++) {
		u32 number = get_random_u32();
		struct counter *counter = &race->counters[number % RACE_TIMERS];

		if (i % 16 == 0) {
			interrupt.number = number;
			irq_work_queue(&interrupt.work);
			irq_work_sync(&interrupt.work);
		} else if (race->sync && i % 16 == 1) {
			if (twheel_timer_cancel_sync(&counter->timer))
				atomic_inc(&race->cancelled);
		} else {
			race_act(race, number);
		}
		/* Let some timers become due before they are cancelled or replaced. */
		udelay(number % 64);
		cond_resched();
	}
}

static void race_settle(struct kunit *test, struct race *race)
{
	int calls = 0, armed, ended;
	unsigned int i;

	for (i = 0; i < RACE_TIMERS; i++) {
		struct counter *counter = &race->counters[i];

		if (twheel_timer_shutdown(&counter->timer))
			atomic_inc(&race->cancelled);
		KUNIT_EXPECT_FALSE(test, counter->overlapped);
		KUNIT_EXPECT_EQ(test, atomic_read(&counter->inside), 0);
		calls += atomic_read(&counter->calls);
	}
	armed = atomic_read(&race->armed);
	ended = atomic_read(&race->cancelled) + calls;
	kunit_info(test, "%d armed, %d replaced, %d cancelled, %d called", armed,
		   atomic_read(&race->replaced), ended - calls, calls);
	KUNIT_EXPECT_GT(test, calls, 0);
	if (race->sync)
		KUNIT_EXPECT_LE(test, ended, armed);
	else
		KUNIT_EXPECT_EQ(test, ended, armed);
}

static void each_arming_is_called_or_cancelled_or_replaced(struct kunit *test)
{
	struct race *race = race_make(test);

	run_on_all_cpus(test, race_run, race);
	race_settle(test, race);
}

static void cancel_sync_may_meet_anything(struct kunit *test)
{
	struct race *race = race_make(test);

	race->sync = true;
	run_on_all_cpus(test, race_run, race);
	race_settle(test, race);
}

static void each_arming_ends_once_also_if_it_is_postponed(struct kunit *test)
{
	struct race *race = race_make(test);

	race->postpones = true;
	run_on_all_cpus(test, race_run, race);
	race_settle(test, race);
}

/* --- postponed from everywhere ---------------------------------------------- */

#define MOVED_ROUNDS	150

/**
 * struct moved - a timer that one CPU arms for soon, and postpones in one piece with that
 * @timer: the timer.
 * @lock: held for writing to begin and end a round, for reading to
 * @open: do something to the timer in it.
 * @not_before_ns: the time that it was postponed to; no CPU uses an earlier one.
 * @armed: armings that found it idle.
 * @ended: cancels that found it armed.
 * @calls: number of calls of its function.
 * @inside: number of calls in progress.
 * @early: a call came before the time that the timer was postponed to.
 * @overlapped: two calls were in progress at the same time.
 */
struct moved {
	struct twheel_timer timer;
	rwlock_t lock;		/* guards @open */
	bool open;
	u64 not_before_ns;
	atomic_t armed;
	atomic_t ended;
	atomic_t calls;
	atomic_t inside;
	bool early;
	bool overlapped;
};

static void moved_call(struct twheel_timer *timer)
{
	struct moved *moved = container_of(timer, struct moved, timer);

	if (ktime_get_ns() < READ_ONCE(moved->not_before_ns))
		moved->early = true;
	if (atomic_inc_return(&moved->inside) > 1)
		moved->overlapped = true;
	atomic_inc(&moved->calls);
	udelay(get_random_u32() % 16);
	atomic_dec(&moved->inside);
}

/* An action that any CPU may do in a round. */
static void moved_act(struct moved *moved, u32 number)
{
	struct twheel_timer *timer = &moved->timer;
	u64 time_ns = moved->not_before_ns + (number >> 8) % NSEC_PER_MSEC;

	switch (number % 16) {
	case 0:
		if (!twheel_timer_arm(timer, time_ns, 0, TWHEEL_TIMER_ABS))
			atomic_inc(&moved->armed);
		break;
	case 1:
		twheel_timer_modify(timer, time_ns, number >> 16, TWHEEL_TIMER_ABS);
		break;
	case 2:
		if (twheel_timer_cancel(timer))
			atomic_inc(&moved->ended);
		break;
	default:
		twheel_timer_postpone(timer, time_ns);
	}
}

static void moved_act_if_open(struct moved *moved, u32 number)
{
	unsigned long flags;

	read_lock_irqsave(&moved->lock, flags);
	if (moved->open)
		moved_act(moved, number);
	read_unlock_irqrestore(&moved->lock, flags);
}

static void moved_open(struct moved *moved, bool open)
{
	write_lock_irq(&moved->lock);
	moved->open = open;
	write_unlock_irq(&moved->lock);
}

/* Arm for an earlier time than postponed to, so that the base looks at the timer. */
static void moved_begin(struct moved *moved)
{
	local_irq_disable();
	WRITE_ONCE(moved->not_before_ns, ktime_get_ns() + NSEC_PER_MSEC);
	atomic_add(!twheel_timer_arm(&moved->timer, 200000, 0, TWHEEL_TIMER_REL),
		   &moved->armed);
	twheel_timer_postpone(&moved->timer, moved->not_before_ns);
	local_irq_enable();
	moved_open(moved, true);
}

static void moved_end(struct moved *moved)
{
	moved_open(moved, false);
	atomic_add(twheel_timer_cancel_sync(&moved->timer), &moved->ended);
}

static void move_mine_and_others(void *data)
{
	struct moved *all = data, *mine = &all[smp_processor_id()];
	unsigned int i;

	for (i = 0; i < rounds_of(MOVED_ROUNDS); i++) {
		moved_begin(mine);
		while (ktime_get_ns() < mine->not_before_ns + NSEC_PER_MSEC) {
			moved_act_if_open(&all[get_random_u32() % nr_cpu_ids],
					  get_random_u32());
			udelay(get_random_u32() % 16);
			cond_resched();
		}
		moved_end(mine);
	}
}

static void timer_is_never_called_before_any_of_the_times_stored(struct kunit *test)
{
	struct moved *all = kunit_kcalloc(test, nr_cpu_ids, sizeof(*all), GFP_KERNEL);
	int calls = 0, armed = 0, ended = 0;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, all);
	for (i = 0; i < nr_cpu_ids; i++) {
		twheel_timer_setup(&all[i].timer, moved_call);
		rwlock_init(&all[i].lock);
	}
	run_on_all_cpus(test, move_mine_and_others, all);
	for (i = 0; i < nr_cpu_ids; i++) {
		KUNIT_EXPECT_FALSE(test, twheel_timer_shutdown(&all[i].timer));
		KUNIT_EXPECT_FALSE(test, all[i].early);
		KUNIT_EXPECT_FALSE(test, all[i].overlapped);
		calls += atomic_read(&all[i].calls);
		armed += atomic_read(&all[i].armed);
		ended += atomic_read(&all[i].ended);
	}
	kunit_info(test, "%d armed, %d cancelled, %d called", armed, ended, calls);
	KUNIT_EXPECT_EQ(test, armed, ended + calls);
	KUNIT_EXPECT_GT(test, calls, 0);
}

/* --- functions that take their time, armed from everywhere ------------------ */

#define CROWD_ROUNDS	2000

static void arm_all_the_time(void *data)
{
	struct race *race = data;
	unsigned int i;

	for (i = 0; i < rounds_of(CROWD_ROUNDS); i++) {
		struct counter *counter = &race->counters[i % RACE_TIMERS];
		bool armed = twheel_timer_arm(&counter->timer, 0, 0,
					      TWHEEL_TIMER_REL);

		atomic_inc(armed ? &race->replaced : &race->armed);
		/* Arm again while the function runs, or soon after. */
		udelay(get_random_u32() % 100);
		cond_resched();
	}
}

static void function_never_runs_twice_at_once(struct kunit *test)
{
	struct race *race = race_make(test);
	unsigned int i;

	for (i = 0; i < RACE_TIMERS; i++)
		race->counters[i].linger_us = 100;
	run_on_all_cpus(test, arm_all_the_time, race);
	race_settle(test, race);
}

/* --- what is over after a _sync call ---------------------------------------- */

#define SYNC_ROUNDS	500

/**
 * struct owned - timers that have one owner at a time, whose CPU they move to
 * @counters: the timers.
 * @owners: who holds one of these owns the timer.
 * @armed: armings.
 * @cancelled: number of armings that were cancelled.
 * @survived: number of timers that were not at rest after cancel_sync.
 */
struct owned {
	struct counter *counters;
	struct mutex owners[RACE_TIMERS];	/* held by the owner of the timer */
	atomic_t armed;
	atomic_t cancelled;
	atomic_t survived;
};

/* End the arming of the last owner, whose CPU may be running it, and arm the timer here. */
static void cancel_sync_and_arm(void *data)
{
	struct owned *owned = data;
	unsigned int i;

	for (i = 0; i < rounds_of(SYNC_ROUNDS); i++) {
		unsigned int index = get_random_u32() % RACE_TIMERS;
		struct counter *counter = &owned->counters[index];

		mutex_lock(&owned->owners[index]);
		if (twheel_timer_cancel_sync(&counter->timer))
			atomic_inc(&owned->cancelled);
		if (atomic_read(&counter->inside) ||
		    twheel_timer_pending(&counter->timer))
			atomic_inc(&owned->survived);
		twheel_timer_arm(&counter->timer, get_random_u32() % 200000,
				 get_random_u32() % 100000, TWHEEL_TIMER_REL);
		atomic_inc(&owned->armed);
		mutex_unlock(&owned->owners[index]);
		udelay(get_random_u32() % 100);
		cond_resched();
	}
}

static void nothing_runs_after_cancel_sync(struct kunit *test)
{
	struct owned *owned = kunit_kzalloc(test, sizeof(*owned), GFP_KERNEL);
	unsigned int i;
	int calls = 0;

	KUNIT_ASSERT_NOT_NULL(test, owned);
	owned->counters = counters_make(test, RACE_TIMERS);
	for (i = 0; i < RACE_TIMERS; i++) {
		mutex_init(&owned->owners[i]);
		owned->counters[i].linger_us = 100 + i * 10;
	}
	run_on_all_cpus(test, cancel_sync_and_arm, owned);
	for (i = 0; i < RACE_TIMERS; i++) {
		struct counter *counter = &owned->counters[i];

		if (twheel_timer_shutdown(&counter->timer))
			atomic_inc(&owned->cancelled);
		KUNIT_EXPECT_FALSE(test, counter->overlapped);
		calls += atomic_read(&counter->calls);
		mutex_destroy(&owned->owners[i]);
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&owned->survived), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&owned->armed),
			atomic_read(&owned->cancelled) + calls);
	KUNIT_EXPECT_GT(test, calls, 0);
}

/* All CPUs cancel timers whose functions arm them again, until they are quiet. */
#define RESTLESS_TIMERS	32

struct restless {
	struct counter *counters;
	atomic_t survived;
};

static void cancel_the_restless(void *data)
{
	struct restless *restless = data;
	unsigned int i;

	for (i = 0; i < RESTLESS_TIMERS; i++) {
		struct counter *counter = &restless->counters[i];

		twheel_timer_cancel_sync(&counter->timer);
		if (twheel_timer_pending(&counter->timer) ||
		    atomic_read(&counter->inside))
			atomic_inc(&restless->survived);
	}
}

static void timers_that_arm_themselves_end_when_all_cpus_cancel_them(struct kunit *test)
{
	struct restless restless = {
		.counters = counters_make(test, RESTLESS_TIMERS),
	};
	unsigned int i;

	for (i = 0; i < RESTLESS_TIMERS; i++) {
		restless.counters[i].rearm = UINT_MAX;
		restless.counters[i].rearm_ns = i * 50000;
		twheel_timer_arm(&restless.counters[i].timer, 0, 0,
				 TWHEEL_TIMER_REL);
		wait_for_completion(&restless.counters[i].called);
	}
	run_on_all_cpus(test, cancel_the_restless, &restless);
	KUNIT_EXPECT_EQ(test, atomic_read(&restless.survived), 0);
	for (i = 0; i < RESTLESS_TIMERS; i++) {
		KUNIT_EXPECT_FALSE(test, restless.counters[i].overlapped);
		KUNIT_EXPECT_FALSE(test,
				   twheel_timer_shutdown(&restless.counters[i].timer));
	}
}

/* --- shutdown --------------------------------------------------------------- */

#define DOOMED_TIMERS	200

/**
 * struct doomed - timers that one CPU shuts down while the others arm them
 * @counters: the timers.
 * @calls: number of calls of each before it was shut down.
 * @current_one: the timer that the others arm; DOOMED_TIMERS: they may stop.
 * @ends: the CPU that shuts them down.
 * @postpones: the others postpone it too.
 * @survived: number of timers that were not at rest after the shutdown.
 */
struct doomed {
	struct counter *counters;
	int calls[DOOMED_TIMERS];
	unsigned int current_one;
	unsigned int ends;
	bool postpones;
	unsigned int survived;
};

static void shut_down_one(struct doomed *doomed, unsigned int i)
{
	struct counter *counter = &doomed->counters[i];
	struct twheel_timer *timer = &counter->timer;

	twheel_timer_arm(timer, 0, 0, TWHEEL_TIMER_REL);
	wait_for_completion(&counter->called);
	twheel_timer_shutdown(timer);
	doomed->calls[i] = atomic_read(&counter->calls);
	if (atomic_read(&counter->inside) || twheel_timer_pending(timer) ||
	    twheel_timer_arm(timer, 0, 0, TWHEEL_TIMER_REL) != -ESHUTDOWN)
		doomed->survived++;
}

static void doom(void *data)
{
	struct doomed *doomed = data;
	unsigned int i;

	if (smp_processor_id() == doomed->ends) {
		for (i = 0; i < DOOMED_TIMERS; i++) {
			WRITE_ONCE(doomed->current_one, i);
			shut_down_one(doomed, i);
		}
		WRITE_ONCE(doomed->current_one, DOOMED_TIMERS);
		return;
	}
	while ((i = READ_ONCE(doomed->current_one)) < DOOMED_TIMERS) {
		struct twheel_timer *timer = &doomed->counters[i].timer;

		/* A timer that is always replaced or postponed would never be called. */
		if (!twheel_timer_pending(timer))
			twheel_timer_arm(timer, get_random_u32() % 100000, 0,
					 TWHEEL_TIMER_REL);
		if (doomed->postpones && get_random_u32() % 16 == 0)
			twheel_timer_postpone(timer, ktime_get_ns() +
						     get_random_u32() % 100000);
		cond_resched();
	}
}

static void expect_no_call_after_shutdown(struct kunit *test, bool postpones)
{
	struct doomed *doomed = kunit_kzalloc(test, sizeof(*doomed), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, doomed);
	doomed->counters = counters_make(test, DOOMED_TIMERS);
	doomed->ends = cpumask_last(cpu_online_mask);
	doomed->postpones = postpones;
	for (i = 0; i < DOOMED_TIMERS; i++)
		doomed->counters[i].linger_us = i % 8 * 20;
	run_on_all_cpus(test, doom, doomed);
	KUNIT_EXPECT_EQ(test, doomed->survived, 0U);
	for (i = 0; i < DOOMED_TIMERS; i++) {
		KUNIT_EXPECT_EQ(test, atomic_read(&doomed->counters[i].calls),
				doomed->calls[i]);
		KUNIT_EXPECT_FALSE(test, doomed->counters[i].overlapped);
	}
}

static void timer_is_never_called_after_shutdown(struct kunit *test)
{
	expect_no_call_after_shutdown(test, false);
}

static void timer_that_is_postponed_is_never_called_after_shutdown(struct kunit *test)
{
	expect_no_call_after_shutdown(test, true);
}

/* --- memory that goes in the function --------------------------------------- */

#define MAYFLIES	300

/* A timer that lives for one call. */
struct mayfly {
	struct twheel_timer timer;
	atomic_t *died;
};

static void die(struct twheel_timer *timer)
{
	struct mayfly *mayfly = container_of(timer, struct mayfly, timer);
	atomic_t *died = mayfly->died;

	kfree(mayfly);
	atomic_inc(died);
}

/* One in four is shut down before it is called. */
static void breed(void *data)
{
	atomic_t *died = data;
	unsigned int i;

	for (i = 0; i < rounds_of(MAYFLIES); i++) {
		struct mayfly *mayfly = kzalloc(sizeof(*mayfly), GFP_KERNEL);

		if (!mayfly) {
			atomic_inc(died);
			continue;
		}
		mayfly->died = died;
		twheel_timer_setup(&mayfly->timer, die);
		twheel_timer_arm(&mayfly->timer, HOUR_NS, 0, TWHEEL_TIMER_REL);
		if (i % 4 == 0 && twheel_timer_shutdown(&mayfly->timer))
			die(&mayfly->timer);
		else
			twheel_timer_modify(&mayfly->timer,
					    get_random_u32() % 1000000, 0,
					    TWHEEL_TIMER_REL);
	}
}

static void functions_on_all_cpus_may_free_their_timers(struct kunit *test)
{
	atomic_t died = ATOMIC_INIT(0);
	int all = rounds_of(MAYFLIES) * num_online_cpus();

	run_on_all_cpus(test, breed, &died);
	while (atomic_read(&died) < all)
		cond_resched();
	KUNIT_EXPECT_EQ(test, atomic_read(&died), all);
}

static struct kunit_case race_cases[] = {
	KUNIT_CASE(each_arming_is_called_or_cancelled_or_replaced),
	KUNIT_CASE(cancel_sync_may_meet_anything),
	KUNIT_CASE(each_arming_ends_once_also_if_it_is_postponed),
	KUNIT_CASE(timer_is_never_called_before_any_of_the_times_stored),
	KUNIT_CASE(function_never_runs_twice_at_once),
	KUNIT_CASE(nothing_runs_after_cancel_sync),
	KUNIT_CASE(timers_that_arm_themselves_end_when_all_cpus_cancel_them),
	KUNIT_CASE(timer_is_never_called_after_shutdown),
	KUNIT_CASE(timer_that_is_postponed_is_never_called_after_shutdown),
	KUNIT_CASE(functions_on_all_cpus_may_free_their_timers),
	{}
};

static struct kunit_suite race_suite = {
	.name = "twheel_race",
	.test_cases = race_cases,
};

kunit_test_suite(race_suite);

MODULE_DESCRIPTION("KUnit suite of races between twheel's timers");
MODULE_LICENSE("GPL");
