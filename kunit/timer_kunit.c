// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of the timers for other modules: what each call does, from task, softirq and
 * hardirq context. race_kunit.c makes such calls on the same timers at the same time.
 */
#include <kunit/test.h>
#include <linux/log2.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "../kmod/compat.h"
#include "counter.h"
#include "patience.h"
#include "places.h"
#include "spy.h"
#include "ticks.h"

#define DAY_NS		(24 * HOUR_NS)

/* --- places to call from ---------------------------------------------------- */

static void go_to_task_with_interrupts_off(struct errand *errand)
{
	unsigned long flags;

	local_irq_save(flags);
	errand_do(errand, in_task() && irqs_disabled());
	local_irq_restore(flags);
}

static void errand_irq_work(struct irq_work *work)
{
	errand_do(container_of(work, struct errand, irq_work), in_hardirq());
}

static void go_to_hardirq(struct errand *errand)
{
	errand->irq_work = IRQ_WORK_INIT_HARD(errand_irq_work);
	irq_work_queue(&errand->irq_work);
	irq_work_sync(&errand->irq_work);
}

static enum hrtimer_restart errand_hrtimer(struct hrtimer *hrtimer)
{
	errand_do(container_of(hrtimer, struct errand, hrtimer), in_hardirq());
	return HRTIMER_NORESTART;
}

/* In the function of a timer of the kernel's own. */
static void go_to_hrtimer(struct errand *errand)
{
	twheel_hrtimer_setup(&errand->hrtimer, errand_hrtimer, CLOCK_MONOTONIC,
			     HRTIMER_MODE_REL_HARD);
	hrtimer_start(&errand->hrtimer, NSEC_PER_MSEC, HRTIMER_MODE_REL_HARD);
	wait_for_completion(&errand->done);
	hrtimer_cancel(&errand->hrtimer);
}

struct timer_errand {
	struct twheel_timer timer;
	struct errand *errand;
};

static void errand_timer(struct twheel_timer *timer)
{
	errand_do(container_of(timer, struct timer_errand, timer)->errand,
		  in_serving_softirq());
}

/* In the function of a twheel timer: the base is running and knows the present tick. */
static void go_to_timer(struct errand *errand)
{
	struct timer_errand timer_errand = { .errand = errand };

	twheel_timer_setup(&timer_errand.timer, errand_timer);
	twheel_timer_arm(&timer_errand.timer, 0, 0, TWHEEL_TIMER_REL);
	wait_for_completion(&errand->done);
	twheel_timer_shutdown(&timer_errand.timer);
}

static const struct place places[] = {
	{ "task", go_to_task },
	{ "task with interrupts off", go_to_task_with_interrupts_off },
	{ "softirq", go_to_softirq },
	{ "hardirq", go_to_hardirq },
	{ "hrtimer in hardirq", go_to_hrtimer },
	{ "timer of ours", go_to_timer },
};

KUNIT_ARRAY_PARAM(place, places, place_name);

/* --- ticks ------------------------------------------------------------------ */

/* The tick that an armed timer waits for. */
static u64 due_tick(const struct counter *counter)
{
	return wheel_due(&counter->timer.node.wheel);
}

/* The length of a tick is 2^shift ns. Read the shift off a time that is a whole tick. */
static unsigned int tick_shift(struct kunit *test)
{
	struct counter *counter = counter_make(test);
	unsigned int shift;

	twheel_timer_arm(&counter->timer, BIT_ULL(62), 0, TWHEEL_TIMER_ABS);
	shift = 62 - ilog2(due_tick(counter));
	twheel_timer_shutdown(&counter->timer);
	return shift;
}

/* --- one call --------------------------------------------------------------- */

/* A timer and the values to arm it with. */
struct arming {
	struct counter *counter;
	u64 time_ns;
	u64 slack_ns;
	unsigned int flags;
	int ret;
	u64 before_ns;		/* time just before it was armed, */
	u64 after_ns;		/* and just after it */
	u64 tick;		/* tick that it then waited for */
	u64 tick_ns;		/* length of a tick, if the test needs it */
	int calls;		/* calls that were made by then */
};

static void arm(void *data)
{
	struct arming *arming = data;
	unsigned long flags;

	/* A timer whose time is past is called as soon as interrupts are on. */
	local_irq_save(flags);
	arming->before_ns = ktime_get_ns();
	arming->ret = twheel_timer_arm(&arming->counter->timer, arming->time_ns,
				       arming->slack_ns, arming->flags);
	arming->tick = due_tick(arming->counter);
	arming->after_ns = ktime_get_ns();
	arming->calls = atomic_read(&arming->counter->calls);
	local_irq_restore(flags);
}

static void timer_is_called_once_and_never_early(struct kunit *test)
{
	static const u64 delays_ns[] = { 0, 1, 65536, 100000, 1000000, 20000000,
					 300000000 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(delays_ns); i++) {
		struct arming arming = {
			.counter = counter_make(test),
			.time_ns = delays_ns[i],
			.flags = TWHEEL_TIMER_REL,
		};

		do_there(test, arm, &arming);
		KUNIT_EXPECT_EQ(test, arming.ret, 0);
		wait_for_completion(&arming.counter->called);
		KUNIT_EXPECT_FALSE(test, twheel_timer_shutdown(&arming.counter->timer));
		KUNIT_EXPECT_EQ(test, atomic_read(&arming.counter->calls), 1);
		KUNIT_EXPECT_GE(test, arming.counter->at_ns,
				arming.before_ns + delays_ns[i]);
	}
}

static void absolute_time_is_kept(struct kunit *test)
{
	unsigned int shift = tick_shift(test);
	struct arming arming = {
		.counter = counter_make(test),
		.time_ns = ktime_get_ns() + 50 * NSEC_PER_MSEC,
		.flags = TWHEEL_TIMER_ABS,
	};

	do_there(test, arm, &arming);
	/* If the machine stood still for long, compare with the next tick. */
	if (arming.after_ns < arming.time_ns)
		KUNIT_EXPECT_EQ(test, arming.tick,
				first_tick(arming.time_ns, shift));
	wait_for_completion(&arming.counter->called);
	KUNIT_EXPECT_GE(test, arming.counter->at_ns, arming.time_ns);
	twheel_timer_shutdown(&arming.counter->timer);
}

/* Arm a timer in that context for a past time: it waits for the next tick. */
static void expect_next_tick(struct kunit *test, void (*arm_it)(void *data),
			     struct arming *arming)
{
	unsigned int shift = tick_shift(test);

	arming->counter = counter_make(test);
	arming->flags = TWHEEL_TIMER_ABS;
	do_there(test, arm_it, arming);
	KUNIT_EXPECT_EQ(test, arming->ret, 0);
	KUNIT_EXPECT_EQ(test, arming->calls, 0);
	KUNIT_EXPECT_GE(test, arming->tick, (arming->before_ns >> shift) + 1);
	KUNIT_EXPECT_LE(test, arming->tick, (arming->after_ns >> shift) + 1);
	wait_for_completion(&arming->counter->called);
	twheel_timer_shutdown(&arming->counter->timer);
	KUNIT_EXPECT_EQ(test, atomic_read(&arming->counter->calls), 1);
}

static void past_time_goes_to_the_next_tick(struct kunit *test)
{
	static const u64 times_ns[] = { 0, 1, NSEC_PER_MSEC };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(times_ns); i++) {
		struct arming arming = { .time_ns = times_ns[i] };

		expect_next_tick(test, arm, &arming);
	}
}

static void arm_for_this_tick(void *data)
{
	struct arming *arming = data;

	arming->time_ns = round_down(ktime_get_ns(), arming->tick_ns);
	arm(arming);
}

static void tick_that_has_begun_is_past(struct kunit *test)
{
	struct arming arming = { .tick_ns = BIT_ULL(tick_shift(test)) };

	expect_next_tick(test, arm_for_this_tick, &arming);
}

/* Each call, and the result that it must have after the calls before it. */
struct usage {
	struct counter *counter;
	int answers[14];
};

static const int expected_answers[] = {
	0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, -EINVAL, -EINVAL, 0
};

static_assert(ARRAY_SIZE(expected_answers) == sizeof_field(struct usage, answers) / sizeof(int));

static void use_timer(void *data)
{
	struct usage *usage = data;
	struct twheel_timer *timer = &usage->counter->timer;
	int *answer = usage->answers;

	*answer++ = twheel_timer_pending(timer);
	*answer++ = twheel_timer_cancel(timer);
	*answer++ = twheel_timer_modify(timer, 0, 0, TWHEEL_TIMER_REL);
	*answer++ = twheel_timer_arm(timer, HOUR_NS, 0, TWHEEL_TIMER_REL);
	*answer++ = twheel_timer_pending(timer);
	*answer++ = twheel_timer_modify(timer, DAY_NS, HOUR_NS, TWHEEL_TIMER_REL);
	*answer++ = twheel_timer_arm(timer, HOUR_NS, HOUR_NS, TWHEEL_TIMER_REL);
	*answer++ = twheel_timer_cancel(timer);
	*answer++ = twheel_timer_pending(timer);
	*answer++ = twheel_timer_cancel(timer);
	*answer++ = twheel_timer_modify(timer, HOUR_NS, 0, TWHEEL_TIMER_REL);
	*answer++ = twheel_timer_arm(timer, 0, 0, 2);
	*answer++ = twheel_timer_modify(timer, 0, 0, 4);
	*answer++ = twheel_timer_arm(timer, NSEC_PER_MSEC, 0, TWHEEL_TIMER_REL);
}

static void every_call_answers_what_the_ones_before_it_left(struct kunit *test)
{
	struct usage usage = { .counter = counter_make(test) };
	unsigned int i;

	do_there(test, use_timer, &usage);
	for (i = 0; i < ARRAY_SIZE(expected_answers); i++)
		KUNIT_EXPECT_EQ_MSG(test, usage.answers[i], expected_answers[i],
				    "answer %u", i);
	wait_for_completion(&usage.counter->called);
	KUNIT_EXPECT_FALSE(test, twheel_timer_shutdown(&usage.counter->timer));
	KUNIT_EXPECT_EQ(test, atomic_read(&usage.counter->calls), 1);
}

/* --- arm, modify, cancel, shutdown ------------------------------------------ */

static void arming_again_replaces_the_time(struct kunit *test)
{
	struct counter *counter = counter_make(test);
	u64 armed_ns;

	twheel_timer_arm(&counter->timer, HOUR_NS, 0, TWHEEL_TIMER_REL);
	armed_ns = ktime_get_ns();
	KUNIT_EXPECT_EQ(test, twheel_timer_arm(&counter->timer, NSEC_PER_MSEC, 0,
					       TWHEEL_TIMER_REL), 1);
	wait_for_completion(&counter->called);
	KUNIT_EXPECT_GE(test, counter->at_ns, armed_ns + NSEC_PER_MSEC);
	KUNIT_EXPECT_FALSE(test, twheel_timer_shutdown(&counter->timer));
	KUNIT_EXPECT_EQ(test, atomic_read(&counter->calls), 1);
}

static void modify_makes_it_earlier_later_or_the_same(struct kunit *test)
{
	unsigned int shift = tick_shift(test);
	struct counter *counter = counter_make(test);
	u64 due_ns = ktime_get_ns() + DAY_NS;
	static const u64 later_ns[] = { 0, HOUR_NS, 7 * HOUR_NS, 3 * HOUR_NS, 0, 0 };
	unsigned int i;

	twheel_timer_arm(&counter->timer, due_ns, 0, TWHEEL_TIMER_ABS);
	for (i = 0; i < ARRAY_SIZE(later_ns); i++) {
		KUNIT_EXPECT_EQ(test, twheel_timer_modify(&counter->timer,
							  due_ns + later_ns[i], 0,
							  TWHEEL_TIMER_ABS), 1);
		KUNIT_EXPECT_EQ(test, due_tick(counter),
				first_tick(due_ns + later_ns[i], shift));
	}
	KUNIT_EXPECT_TRUE(test, twheel_timer_shutdown(&counter->timer));
}

static void modify_leaves_an_idle_timer_alone(struct kunit *test)
{
	struct counter *counter = counter_make(test);

	KUNIT_EXPECT_EQ(test, twheel_timer_modify(&counter->timer, 0, 0,
						  TWHEEL_TIMER_REL), 0);
	KUNIT_EXPECT_FALSE(test, twheel_timer_pending(&counter->timer));
	twheel_timer_arm(&counter->timer, 0, 0, TWHEEL_TIMER_REL);
	wait_for_completion(&counter->called);
	KUNIT_EXPECT_FALSE(test, twheel_timer_cancel_sync(&counter->timer));
	KUNIT_EXPECT_EQ(test, twheel_timer_modify(&counter->timer, 0, 0,
						  TWHEEL_TIMER_REL), 0);
	KUNIT_EXPECT_FALSE(test, twheel_timer_shutdown(&counter->timer));
	KUNIT_EXPECT_EQ(test, atomic_read(&counter->calls), 1);
}

/* A later timer on the same wheel shows that the tick of this one is over. */
static bool cancel_in_time(struct kunit *test, u64 lead_ns)
{
	struct counter *counter = counter_make(test);
	struct counter *later = counter_make(test);
	bool was_pending, cancelled, is_pending, in_time;
	u64 due_ns;

	migrate_disable();
	due_ns = ktime_get_ns() + lead_ns;
	twheel_timer_arm(&counter->timer, HOUR_NS, 0, TWHEEL_TIMER_REL);
	twheel_timer_modify(&counter->timer, due_ns, 0, TWHEEL_TIMER_ABS);
	was_pending = twheel_timer_pending(&counter->timer);
	cancelled = twheel_timer_cancel(&counter->timer);
	is_pending = twheel_timer_pending(&counter->timer);
	in_time = ktime_get_ns() < due_ns;
	twheel_timer_arm(&later->timer, due_ns + NSEC_PER_MSEC, 0, TWHEEL_TIMER_ABS);
	migrate_enable();
	wait_for_completion(&later->called);
	twheel_timer_shutdown(&counter->timer);
	twheel_timer_shutdown(&later->timer);
	if (!in_time)
		return false;
	KUNIT_EXPECT_TRUE(test, was_pending);
	KUNIT_EXPECT_TRUE(test, cancelled);
	KUNIT_EXPECT_FALSE(test, is_pending);
	KUNIT_EXPECT_EQ(test, atomic_read(&counter->calls), 0);
	return true;
}

static void cancelled_timer_is_not_called(struct kunit *test)
{
	attempt_in_time(test, 200 * NSEC_PER_MSEC, cancel_in_time);
}

static void time_beyond_all_clocks_is_never(struct kunit *test)
{
	static const u64 times_ns[] = { NEVER_NS, NEVER_NS + 1, U64_MAX };
	struct counter *counter = counter_make(test);
	unsigned int shift = tick_shift(test);
	unsigned int i, flags;

	for (i = 0; i < ARRAY_SIZE(times_ns); i++) {
		for (flags = TWHEEL_TIMER_REL; flags <= TWHEEL_TIMER_ABS; flags++) {
			twheel_timer_arm(&counter->timer, times_ns[i], 0, flags);
			KUNIT_EXPECT_TRUE(test, twheel_timer_pending(&counter->timer));
			KUNIT_EXPECT_EQ(test, due_tick(counter), NEVER_NS >> shift);
			twheel_timer_arm(&counter->timer, times_ns[i], U64_MAX, flags);
			KUNIT_EXPECT_EQ(test, due_tick(counter), NEVER_NS >> shift);
		}
	}
	KUNIT_EXPECT_TRUE(test, twheel_timer_shutdown(&counter->timer));
}

static void timer_that_was_shut_down_refuses_to_be_armed(struct kunit *test)
{
	struct counter *counter = counter_make(test);

	twheel_timer_arm(&counter->timer, HOUR_NS, 0, TWHEEL_TIMER_REL);
	KUNIT_EXPECT_TRUE(test, twheel_timer_shutdown(&counter->timer));
	KUNIT_EXPECT_EQ(test, twheel_timer_arm(&counter->timer, 0, 0,
					       TWHEEL_TIMER_REL), -ESHUTDOWN);
	KUNIT_EXPECT_EQ(test, twheel_timer_modify(&counter->timer, 0, 0,
						  TWHEEL_TIMER_REL), -ESHUTDOWN);
	KUNIT_EXPECT_FALSE(test, twheel_timer_pending(&counter->timer));
	KUNIT_EXPECT_FALSE(test, twheel_timer_cancel(&counter->timer));
	KUNIT_EXPECT_FALSE(test, twheel_timer_shutdown(&counter->timer));

	twheel_timer_setup(&counter->timer, counter_call);
	KUNIT_EXPECT_EQ(test, twheel_timer_arm(&counter->timer, 0, 0,
					       TWHEEL_TIMER_REL), 0);
	wait_for_completion(&counter->called);
	KUNIT_EXPECT_FALSE(test, twheel_timer_shutdown(&counter->timer));
}

/* --- slack ------------------------------------------------------------------ */

static void slack_chooses_the_roundest_tick(struct kunit *test)
{
	enum { ROUNDS = 2000 };
	unsigned int shift = tick_shift(test);
	struct counter *counter = counter_make(test);
	unsigned int i;

	for (i = 0; i < ROUNDS; i++) {
		u64 due_ns = ktime_get_ns() + DAY_NS + (get_random_u64() >> 14);
		/* Slack of any magnitude, from none to two weeks. */
		u64 slack_ns = get_random_u64() >> (14 + get_random_u32() % 50);
		int ret = i % 2 ?
			twheel_timer_arm(&counter->timer, due_ns, slack_ns,
					 TWHEEL_TIMER_ABS) :
			twheel_timer_modify(&counter->timer, due_ns, slack_ns,
					    TWHEEL_TIMER_ABS);

		KUNIT_ASSERT_EQ(test, ret, i > 1 ? 1 : 0);
		if (i)
			KUNIT_ASSERT_EQ(test, due_tick(counter),
					roundest_tick(due_ns, slack_ns, shift));
	}
	KUNIT_EXPECT_TRUE(test, twheel_timer_shutdown(&counter->timer));
}

static void slack_below_a_tick_changes_nothing(struct kunit *test)
{
	unsigned int shift = tick_shift(test);
	struct counter *counter = counter_make(test);
	u64 tick = (ktime_get_ns() + DAY_NS) >> shift;
	u64 due_ns[] = {
		tick << shift,
		(tick << shift) + 1,
		((tick + 1) << shift) - 1,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(due_ns); i++) {
		twheel_timer_arm(&counter->timer, due_ns[i], BIT_ULL(shift) - 1,
				 TWHEEL_TIMER_ABS);
		KUNIT_EXPECT_EQ(test, due_tick(counter), first_tick(due_ns[i], shift));
	}
	twheel_timer_shutdown(&counter->timer);
}

static void slack_of_a_relative_time_is_kept_too(struct kunit *test)
{
	unsigned int shift = tick_shift(test);
	unsigned int i;

	for (i = 0; i < 40; i++) {
		struct arming arming = {
			.counter = counter_make(test),
			.time_ns = DAY_NS,
			.slack_ns = BIT_ULL(i),
			.flags = TWHEEL_TIMER_REL,
		};

		do_there(test, arm, &arming);
		KUNIT_EXPECT_GE(test, arming.tick,
				first_tick(arming.before_ns + DAY_NS, shift));
		KUNIT_EXPECT_LE(test, arming.tick,
				max(first_tick(arming.after_ns + DAY_NS, shift),
				    (arming.after_ns + DAY_NS + BIT_ULL(i)) >> shift));
		twheel_timer_shutdown(&arming.counter->timer);
	}
}

static void slack_saturates(struct kunit *test)
{
	unsigned int shift = tick_shift(test);
	struct counter *counter = counter_make(test);
	u64 due_ns = ktime_get_ns() + DAY_NS;

	twheel_timer_arm(&counter->timer, due_ns, U64_MAX, TWHEEL_TIMER_ABS);
	KUNIT_EXPECT_TRUE(test, twheel_timer_pending(&counter->timer));
	KUNIT_EXPECT_GE(test, due_tick(counter), first_tick(due_ns, shift));
	KUNIT_EXPECT_LE(test, due_tick(counter), NEVER_NS >> shift);
	twheel_timer_arm(&counter->timer, NEVER_NS - 1, U64_MAX, TWHEEL_TIMER_ABS);
	KUNIT_EXPECT_EQ(test, due_tick(counter), NEVER_NS >> shift);
	KUNIT_EXPECT_TRUE(test, twheel_timer_shutdown(&counter->timer));
}

static void timer_with_slack_is_called_once_and_never_early(struct kunit *test)
{
	static const u64 slacks_ns[] = { 0, 1, 65535, 65536, 1000000, 16777216 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(slacks_ns); i++) {
		struct arming arming = {
			.counter = counter_make(test),
			.time_ns = NSEC_PER_MSEC,
			.slack_ns = slacks_ns[i],
			.flags = TWHEEL_TIMER_REL,
		};

		do_there(test, arm, &arming);
		wait_for_completion(&arming.counter->called);
		KUNIT_EXPECT_GE(test, arming.counter->at_ns,
				arming.before_ns + NSEC_PER_MSEC);
		KUNIT_EXPECT_FALSE(test, twheel_timer_shutdown(&arming.counter->timer));
		KUNIT_EXPECT_EQ(test, atomic_read(&arming.counter->calls), 1);
	}
}

static void neighbours_with_slack_share_a_tick(struct kunit *test)
{
	enum { NR = 100, SPREAD_TICKS = 1000, SLACK_TICKS = 256 };
	unsigned int shift = tick_shift(test);
	struct counter *counters = counters_make(test, NR);
	u64 tick = (ktime_get_ns() + DAY_NS) >> shift, last = 0;
	unsigned int i, distinct = 0;

	for (i = 0; i < NR; i++) {
		twheel_timer_arm(&counters[i].timer,
				 (tick + i * SPREAD_TICKS / NR) << shift,
				 (u64)SLACK_TICKS << shift, TWHEEL_TIMER_ABS);
		distinct += due_tick(&counters[i]) != last;
		last = due_tick(&counters[i]);
	}
	KUNIT_EXPECT_LE(test, distinct, SPREAD_TICKS / SLACK_TICKS + 2U);
	for (i = 0; i < NR; i++)
		KUNIT_EXPECT_TRUE(test, twheel_timer_shutdown(&counters[i].timer));
}

/* --- postpone ----------------------------------------------------------------- */

/* Arm a timer for soon, and store other times before it can be due. */
struct postponement {
	struct counter *counter;
	unsigned int flags;	/* slack to arm it with */
	u64 soon_ns;		/* time that it was armed for, or a little before */
	u64 last_ns;		/* time that was stored last */
	bool pending;
};

static void arm_for_soon(struct postponement *postponement)
{
	u64 soon_ns = NSEC_PER_MSEC;

	postponement->soon_ns = ktime_get_ns() + soon_ns;
	if (postponement->flags & TWHEEL_TIMER_ABS)
		soon_ns = postponement->soon_ns;
	twheel_timer_arm(&postponement->counter->timer, soon_ns, 0,
			 postponement->flags);
}

/* Store later and later times, never, and an earlier time again: the last one counts. */
static void arm_and_postpone(void *data)
{
	static const u64 later_ns[] = {
		NSEC_PER_MSEC, HOUR_NS, DAY_NS, NEVER_NS, U64_MAX, 3 * NSEC_PER_MSEC
	};
	struct postponement *postponement = data;
	struct twheel_timer *timer = &postponement->counter->timer;
	unsigned long flags;
	unsigned int i;

	local_irq_save(flags);
	arm_for_soon(postponement);
	postponement->pending = true;
	for (i = 0; i < ARRAY_SIZE(later_ns); i++) {
		postponement->last_ns = postponement->soon_ns + later_ns[i];
		if (later_ns[i] >= NEVER_NS)
			postponement->last_ns = later_ns[i];
		twheel_timer_postpone(timer, postponement->last_ns);
		postponement->pending &= twheel_timer_pending(timer);
	}
	local_irq_restore(flags);
}

/* Wait for the call, far longer than a timer that goes by its time needs. */
static void wait_for_call(struct kunit *test, struct counter *counter)
{
	KUNIT_ASSERT_TRUE(test, wait_patiently(&counter->called));
}

/* The timer is pending until it is called, which is not before that time. */
static void expect_pending_until(struct kunit *test, struct counter *counter, u64 time_ns)
{
	sleep_until(!twheel_timer_pending(&counter->timer), 500);
	KUNIT_EXPECT_GE(test, ktime_get_ns(), time_ns);
	wait_for_call(test, counter);
	KUNIT_EXPECT_GE(test, counter->at_ns, time_ns);
	KUNIT_EXPECT_FALSE(test, twheel_timer_shutdown(&counter->timer));
	KUNIT_EXPECT_EQ(test, atomic_read(&counter->calls), 1);
}

static void postponed_timer_is_called_at_the_last_time_stored(struct kunit *test)
{
	unsigned int flags;

	for (flags = TWHEEL_TIMER_REL; flags <= TWHEEL_TIMER_ABS; flags++) {
		struct postponement postponement = {
			.counter = counter_make(test),
			.flags = flags,
		};

		do_there(test, arm_and_postpone, &postponement);
		KUNIT_EXPECT_TRUE(test, postponement.pending);
		expect_pending_until(test, postponement.counter, postponement.last_ns);
	}
}

static void arm_and_store_an_earlier_time(void *data)
{
	struct postponement *postponement = data;
	struct twheel_timer *timer = &postponement->counter->timer;
	unsigned long flags;

	local_irq_save(flags);
	arm_for_soon(postponement);
	twheel_timer_postpone(timer, postponement->soon_ns + HOUR_NS);
	twheel_timer_postpone(timer, postponement->soon_ns - NSEC_PER_MSEC / 2);
	postponement->pending = twheel_timer_pending(timer);
	local_irq_restore(flags);
}

/*
 * The earlier time counts when the older time comes, not before, and the timer is not lost.
 */
static void earlier_time_is_seen_when_the_older_one_comes(struct kunit *test)
{
	struct postponement postponement = { .counter = counter_make(test) };

	do_there(test, arm_and_store_an_earlier_time, &postponement);
	KUNIT_EXPECT_TRUE(test, postponement.pending);
	expect_pending_until(test, postponement.counter, postponement.soon_ns);
}

/* The tick of a timer that may come out meanwhile. */
static u64 present_tick(const struct counter *counter)
{
	struct wheel_node node = {
		.place = READ_ONCE(counter->timer.node.wheel.place),
	};

	return wheel_due(&node);
}

/*
 * Make a timer that was armed for soon, with that slack, and was postponed. If the machine
 * stood still until the later time, it was called.
 */
static struct counter *make_postponed(struct kunit *test, u64 time_ns, u64 slack_ns)
{
	struct counter *counter = counter_make(test);
	u64 armed_tick;

	local_irq_disable();
	twheel_timer_arm(&counter->timer, NSEC_PER_MSEC, slack_ns, TWHEEL_TIMER_REL);
	twheel_timer_postpone(&counter->timer, time_ns);
	armed_tick = due_tick(counter);
	local_irq_enable();
	while (present_tick(counter) == armed_tick && twheel_timer_pending(&counter->timer))
		usleep_range(100, 200);
	return counter;
}

static void time_can_be_stored_again_while_it_waits_on(struct kunit *test)
{
	unsigned int shift = tick_shift(test);
	u64 first_ns = ktime_get_ns() + 200 * NSEC_PER_MSEC;
	struct counter *counter = make_postponed(test, first_ns, 0);

	/* True unless the machine stood still for long. */
	if (twheel_timer_pending(&counter->timer))
		KUNIT_EXPECT_EQ(test, due_tick(counter), first_tick(first_ns, shift));
	twheel_timer_postpone(&counter->timer, first_ns - 100 * NSEC_PER_MSEC);
	expect_pending_until(test, counter, first_ns);

	counter = make_postponed(test, first_ns + 200 * NSEC_PER_MSEC, 0);
	twheel_timer_postpone(&counter->timer, first_ns + 300 * NSEC_PER_MSEC);
	wait_for_call(test, counter);
	KUNIT_EXPECT_GE(test, counter->at_ns, first_ns + 200 * NSEC_PER_MSEC);
	twheel_timer_shutdown(&counter->timer);
}

static void postponed_for_ever_it_waits_to_be_armed(struct kunit *test)
{
	static const u64 times_ns[] = { NEVER_NS, NEVER_NS + 1, U64_MAX };
	unsigned int shift = tick_shift(test);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(times_ns); i++) {
		struct counter *counter = make_postponed(test, times_ns[i], i * 1000000);
		u64 armed_ns;

		KUNIT_EXPECT_TRUE(test, twheel_timer_pending(&counter->timer));
		KUNIT_EXPECT_EQ(test, due_tick(counter), NEVER_NS >> shift);
		armed_ns = ktime_get_ns();
		KUNIT_EXPECT_EQ(test, twheel_timer_modify(&counter->timer, NSEC_PER_MSEC, 0,
							  TWHEEL_TIMER_REL), 1);
		expect_pending_until(test, counter, armed_ns + NSEC_PER_MSEC);
	}
}

/*
 * Arming forgets a time that was stored before, whether the base has looked at it or not.
 */
static void arming_forgets_what_was_stored(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < 6; i++) {
		struct counter *counter;
		u64 armed_ns;

		if (i < 2) {
			counter = make_postponed(test, ktime_get_ns() + HOUR_NS, 0);
		} else {
			counter = counter_make(test);
			/* Arming forgets the time of an idle timer too. */
			if (i < 4)
				twheel_timer_arm(&counter->timer, DAY_NS, 0,
						 TWHEEL_TIMER_REL);
			twheel_timer_postpone(&counter->timer, ktime_get_ns() + HOUR_NS);
		}
		if (i == 4)
			twheel_timer_arm(&counter->timer, DAY_NS, 0, TWHEEL_TIMER_REL);
		armed_ns = ktime_get_ns();
		if (i % 2)
			twheel_timer_arm(&counter->timer, NSEC_PER_MSEC, 0,
					 TWHEEL_TIMER_REL);
		else
			twheel_timer_modify(&counter->timer, armed_ns + NSEC_PER_MSEC, 0,
					    TWHEEL_TIMER_ABS);
		expect_pending_until(test, counter, armed_ns + NSEC_PER_MSEC);
	}
}

static void idle_timer_cannot_be_postponed(struct kunit *test)
{
	struct counter *counter = counter_make(test);

	twheel_timer_postpone(&counter->timer, 0);
	twheel_timer_postpone(&counter->timer, ktime_get_ns());
	twheel_timer_postpone(&counter->timer, ktime_get_ns() + HOUR_NS);
	KUNIT_EXPECT_FALSE(test, twheel_timer_pending(&counter->timer));
	KUNIT_EXPECT_FALSE(test, twheel_timer_cancel(&counter->timer));
	KUNIT_EXPECT_EQ(test, twheel_timer_modify(&counter->timer, 0, 0, TWHEEL_TIMER_REL),
			0);
	KUNIT_EXPECT_FALSE(test, twheel_timer_shutdown(&counter->timer));
	twheel_timer_postpone(&counter->timer, ktime_get_ns());
	KUNIT_EXPECT_FALSE(test, twheel_timer_pending(&counter->timer));
	KUNIT_EXPECT_EQ(test, twheel_timer_arm(&counter->timer, 0, 0, TWHEEL_TIMER_REL),
			-ESHUTDOWN);
	KUNIT_EXPECT_EQ(test, atomic_read(&counter->calls), 0);
}

static bool (*const endings[])(struct twheel_timer *timer) = {
	twheel_timer_cancel, twheel_timer_cancel_sync, twheel_timer_shutdown
};

/* A later timer on the same wheel shows that the ticks of these are over. */
static void postponed_timer_that_was_ended_is_not_called(struct kunit *test)
{
	struct counter *waiting[ARRAY_SIZE(endings)], *waited_on[ARRAY_SIZE(endings)];
	struct counter *later = counter_make(test);
	unsigned int i, ended = 0, pending = 0, called = 0;
	bool in_time;
	u64 due_ns;

	migrate_disable();
	due_ns = ktime_get_ns() + 200 * NSEC_PER_MSEC;
	for (i = 0; i < ARRAY_SIZE(endings); i++) {
		waiting[i] = counter_make(test);
		twheel_timer_arm(&waiting[i]->timer, due_ns, 0, TWHEEL_TIMER_ABS);
		twheel_timer_postpone(&waiting[i]->timer, due_ns + NSEC_PER_MSEC);
		waited_on[i] = make_postponed(test, due_ns, 0);
	}
	for (i = 0; i < ARRAY_SIZE(endings); i++) {
		ended += endings[i](&waiting[i]->timer);
		ended += endings[i](&waited_on[i]->timer);
		pending += twheel_timer_pending(&waiting[i]->timer);
		pending += twheel_timer_pending(&waited_on[i]->timer);
	}
	/* If the machine stood still, the timer was called before it could be ended. */
	in_time = ktime_get_ns() < due_ns;
	twheel_timer_arm(&later->timer, due_ns + 5 * NSEC_PER_MSEC, 0, TWHEEL_TIMER_ABS);
	migrate_enable();
	wait_for_call(test, later);
	twheel_timer_shutdown(&later->timer);
	KUNIT_EXPECT_EQ(test, pending, 0U);
	for (i = 0; i < ARRAY_SIZE(endings); i++) {
		ended += atomic_read(&waiting[i]->calls);
		ended += atomic_read(&waited_on[i]->calls);
		called += atomic_read(&waiting[i]->calls);
		called += atomic_read(&waited_on[i]->calls);
		KUNIT_EXPECT_FALSE(test, twheel_timer_shutdown(&waiting[i]->timer));
		KUNIT_EXPECT_FALSE(test, twheel_timer_shutdown(&waited_on[i]->timer));
	}
	KUNIT_EXPECT_EQ(test, ended, 2U * (unsigned int)ARRAY_SIZE(endings));
	if (in_time)
		KUNIT_EXPECT_EQ(test, called, 0U);
}

/* A function that postpones its timer, which is idle the first time and armed then. */
struct putting_off {
	struct twheel_timer timer;
	struct completion called;
	unsigned int calls;
	u64 not_before_ns;
	bool early;
	bool pending;		/* without arming it first */
};

static void put_off(struct twheel_timer *timer)
{
	struct putting_off *putting_off = container_of(timer, struct putting_off, timer);
	u64 now_ns = ktime_get_ns();

	putting_off->early |= now_ns < putting_off->not_before_ns;
	twheel_timer_postpone(timer, now_ns + HOUR_NS);
	putting_off->pending |= twheel_timer_pending(timer);
	if (putting_off->calls++ < 10) {
		twheel_timer_arm(timer, 0, 0, TWHEEL_TIMER_REL);
		putting_off->not_before_ns = now_ns + 2 * NSEC_PER_MSEC;
		twheel_timer_postpone(timer, putting_off->not_before_ns);
	}
	complete(&putting_off->called);
}

static void function_may_postpone_its_timer(struct kunit *test)
{
	struct putting_off putting_off = {};
	unsigned int i;

	init_completion(&putting_off.called);
	twheel_timer_setup(&putting_off.timer, put_off);
	twheel_timer_arm(&putting_off.timer, 0, 0, TWHEEL_TIMER_REL);
	for (i = 0; i <= 10; i++)
		if (!wait_patiently(&putting_off.called))
			break;
	KUNIT_EXPECT_FALSE(test, twheel_timer_shutdown(&putting_off.timer));
	KUNIT_EXPECT_EQ(test, putting_off.calls, 11U);
	KUNIT_EXPECT_FALSE(test, putting_off.early);
	KUNIT_EXPECT_FALSE(test, putting_off.pending);
}

static void postponed_timer_keeps_its_slack(struct kunit *test)
{
	unsigned int shift = tick_shift(test);
	unsigned int i;

	for (i = 0; i < 40; i++) {
		/*
		 * Slack in whole ticks, which a postponed timer keeps exactly, up to some
		 * 70 ms.
		 */
		u64 ticks = i < 2 ? i : get_random_u32() % (1U << (i / 4 + 1));
		u64 time_ns = ktime_get_ns() + DAY_NS + (get_random_u64() >> 14);
		struct counter *counter = make_postponed(test, time_ns, ticks << shift);

		KUNIT_EXPECT_EQ(test, due_tick(counter),
				roundest_tick(time_ns, ticks << shift, shift));
		KUNIT_EXPECT_TRUE(test, twheel_timer_shutdown(&counter->timer));
	}
}

/* Slack that is not in whole ticks, or is longer: never too early and never too late. */
static void any_slack_of_a_postponed_timer_is_kept_within_its_bounds(struct kunit *test)
{
	static const u64 slacks_ns[] = { 1, 65535, 65537, 100000, 1000000, 16777217 };
	unsigned int shift = tick_shift(test);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(slacks_ns); i++) {
		u64 time_ns = ktime_get_ns() + DAY_NS + (get_random_u64() >> 14);
		struct counter *counter;

		counter = make_postponed(test, time_ns, slacks_ns[i]);
		KUNIT_EXPECT_GE(test, due_tick(counter), first_tick(time_ns, shift));
		KUNIT_EXPECT_LE(test, due_tick(counter),
				max(first_tick(time_ns, shift),
				    (time_ns + slacks_ns[i]) >> shift));
		KUNIT_EXPECT_TRUE(test, twheel_timer_shutdown(&counter->timer));
	}
}

/* All CPUs postpone a timer that the first CPU has armed. */
static void postpone_anothers(void *data)
{
	struct postponement *postponement = data;

	twheel_timer_postpone(&postponement->counter->timer, postponement->last_ns);
}

static void postponed_timer_is_called_on_the_cpu_that_armed_it(struct kunit *test)
{
	struct postponement postponement = { .counter = counter_make(test) };
	struct counter *counter = postponement.counter;
	unsigned int cpu;
	u16 base;

	migrate_disable();
	cpu = smp_processor_id();
	twheel_timer_arm(&counter->timer, 50 * NSEC_PER_MSEC, 0, TWHEEL_TIMER_REL);
	base = counter->timer.node.base;
	migrate_enable();
	postponement.last_ns = ktime_get_ns() + 100 * NSEC_PER_MSEC;
	run_on_all_cpus(test, postpone_anothers, &postponement);
	wait_for_call(test, counter);
	KUNIT_EXPECT_FALSE(test, twheel_timer_shutdown(&counter->timer));
	KUNIT_EXPECT_EQ(test, counter->cpu, cpu);
	KUNIT_EXPECT_EQ(test, counter->timer.node.base, base);
	KUNIT_EXPECT_EQ(test, atomic_read(&counter->calls), 1);
}

enum { CROWD = 3000 };

/* Timers of one tick, postponed before that tick can have come. */
static void arm_and_postpone_crowd(struct counter *counters, u64 due_ns, u64 later_ns)
{
	unsigned int i;

	for (i = 0; i < CROWD; i++) {
		local_irq_disable();
		twheel_timer_arm(&counters[i].timer, due_ns, 0, TWHEEL_TIMER_ABS);
		twheel_timer_postpone(&counters[i].timer, later_ns);
		local_irq_enable();
	}
}

/* Wait until all timers wait for that tick. */
static void wait_until_crowd_waits_for(const struct counter *counters, u64 tick)
{
	unsigned int i;

	for (i = 0; i < CROWD; i++)
		while (present_tick(&counters[i]) != tick)
			usleep_range(1000, 2000);
}

/*
 * They are put back without being called or counted as expired, in short holds of the lock.
 */
static void crowd_that_waits_on_does_not_expire(struct kunit *test)
{
	struct counter *counters = counters_make(test, CROWD);
	unsigned int shift = tick_shift(test), i, wrong = 0;
	u64 due_ns, expired, postponed;
	const struct base *base;

	need_tracepoints(test);
	migrate_disable();
	base = base_here(test);
	expired = READ_ONCE(base->nr_expired);
	postponed = READ_ONCE(base->nr_postponed);
	due_ns = ktime_get_ns() + 100 * NSEC_PER_MSEC;
	arm_and_postpone_crowd(counters, due_ns, due_ns + HOUR_NS);
	migrate_enable();
	wait_until_crowd_waits_for(counters, first_tick(due_ns + HOUR_NS, shift));
	KUNIT_EXPECT_EQ(test, READ_ONCE(base->nr_postponed) - postponed, (u64)CROWD);
	KUNIT_EXPECT_EQ(test, READ_ONCE(base->nr_expired) - expired, 0ULL);
	KUNIT_EXPECT_LE(test, READ_ONCE(base->most_touched), (unsigned int)BASE_BATCH);
	for (i = 0; i < CROWD; i++) {
		wrong += counters[i].timer.node.base != base->number;
		wrong += !twheel_timer_shutdown(&counters[i].timer);
		wrong += atomic_read(&counters[i].calls);
	}
	KUNIT_EXPECT_EQ(test, wrong, 0U);
}

/*
 * Return false if some were armed for a tick that had begun, or while others were postponed
 * already, or came out after the later time too.
 */
static bool postpone_in_order(struct kunit *test, u64 lead_ns)
{
	struct counter *counters = counters_make(test, CROWD);
	unsigned int i, wrong = 0, disordered = 0;
	u64 due_ns, later_ns, postponed;
	const struct base *base;
	bool in_time;

	migrate_disable();
	base = base_here(test);
	postponed = READ_ONCE(base->nr_postponed);
	due_ns = ktime_get_ns() + lead_ns;
	later_ns = due_ns + 2 * lead_ns;
	arm_and_postpone_crowd(counters, due_ns, later_ns);
	in_time = ktime_get_ns() < due_ns;
	migrate_enable();
	for (i = 0; i < CROWD; i++) {
		wait_for_call(test, &counters[i]);
		twheel_timer_shutdown(&counters[i].timer);
		wrong += counters[i].at_ns < later_ns;
		wrong += atomic_read(&counters[i].calls) != 1;
		disordered += i && counters[i].at_ns < counters[i - 1].at_ns;
	}
	KUNIT_EXPECT_EQ(test, wrong, 0U);
	if (!in_time || READ_ONCE(base->nr_postponed) - postponed < CROWD)
		return false;
	KUNIT_EXPECT_EQ(test, disordered, 0U);
	return true;
}

/* Timers come out, are put back and are called in the order of arming. */
static void crowd_that_is_postponed_keeps_its_order(struct kunit *test)
{
	need_tracepoints(test);
	attempt_in_time(test, NSEC_PER_SEC, postpone_in_order);
}

/* Return false if the timers' tick had begun when both were armed. */
static bool run_in_two_parts(struct kunit *test, u64 lead_ns)
{
	struct counter *counters = counters_make(test, 2);
	const struct base *base;
	u64 due_ns, interrupts;
	bool in_time;
	unsigned int i;

	counters[0].linger_us = 10 * USEC_PER_MSEC;
	migrate_disable();
	base = base_here(test);
	interrupts = READ_ONCE(base->interrupts);
	due_ns = ktime_get_ns() + lead_ns;
	for (i = 0; i < 2; i++)
		twheel_timer_arm(&counters[i].timer, due_ns, 0, TWHEEL_TIMER_ABS);
	in_time = ktime_get_ns() < due_ns;
	migrate_enable();
	wait_for_call(test, &counters[1]);
	interrupts = READ_ONCE(base->interrupts) - interrupts;
	for (i = 0; i < 2; i++)
		twheel_timer_shutdown(&counters[i].timer);
	if (in_time)
		KUNIT_EXPECT_EQ(test, interrupts, 2ULL);
	return in_time;
}

/* The first timer uses up the time of its run.  The pause after it has one interrupt: its end. */
static void pause_of_a_run_takes_no_interrupts(struct kunit *test)
{
	need_tracepoints(test);
	attempt_in_time(test, 100 * NSEC_PER_MSEC, run_in_two_parts);
}

/*
 * Events may be put off for the length of a lag, so it must not be too long.  The base is told that
 * a run used up its time a millisecond ago; then a run measures how long it lags behind.
 */
static void lag_is_as_long_as_the_time_since_its_first_run(struct kunit *test)
{
	struct counter *counter = counters_make(test, 1);
	u64 since_ns, length_ns;
	struct base *base;

	need_tracepoints(test);
	migrate_disable();
	base = (struct base *)base_here(test);
	since_ns = ktime_get_ns() - NSEC_PER_MSEC;
	WRITE_ONCE(base->lag.length_ns, 0);
	WRITE_ONCE(base->lag.since_ns, since_ns);
	twheel_timer_arm(&counter->timer, 0, 0, TWHEEL_TIMER_REL);
	migrate_enable();
	wait_for_call(test, counter);
	length_ns = READ_ONCE(base->lag.length_ns);
	KUNIT_EXPECT_GE(test, length_ns, (u64)NSEC_PER_MSEC);
	KUNIT_EXPECT_LE(test, length_ns, ktime_get_ns() - since_ns);
	twheel_timer_shutdown(&counter->timer);
}

/* --- the function ----------------------------------------------------------- */

/* What a function found, and what it did. */
struct witness {
	struct twheel_timer timer;
	struct counter *other;
	struct completion called;
	bool softirq;		/* it was called in softirq context */
	bool interrupts;	/* interrupts were on */
	int answers[8];
};

static void look_around(struct twheel_timer *timer)
{
	struct witness *witness = container_of(timer, struct witness, timer);
	struct twheel_timer *other = &witness->other->timer;
	int *answer = witness->answers;

	witness->softirq = in_serving_softirq() && !in_hardirq();
	witness->interrupts = !irqs_disabled();
	*answer++ = twheel_timer_pending(timer);
	*answer++ = twheel_timer_modify(timer, 0, 0, TWHEEL_TIMER_REL);
	*answer++ = twheel_timer_arm(timer, HOUR_NS, 0, TWHEEL_TIMER_REL);
	*answer++ = twheel_timer_pending(timer);
	*answer++ = twheel_timer_cancel(timer);
	*answer++ = twheel_timer_cancel(other);
	*answer++ = twheel_timer_arm(other, HOUR_NS, 0, TWHEEL_TIMER_REL);
	*answer++ = twheel_timer_modify(other, 0, 0, TWHEEL_TIMER_REL);
	complete(&witness->called);
}

static void function_may_use_its_own_and_other_timers(struct kunit *test)
{
	static const int expected[] = { 0, 0, 0, 1, 1, 1, 0, 1 };
	struct witness witness = { .other = counter_make(test) };
	unsigned int i;

	init_completion(&witness.called);
	twheel_timer_setup(&witness.timer, look_around);
	twheel_timer_arm(&witness.other->timer, HOUR_NS, 0, TWHEEL_TIMER_REL);
	twheel_timer_arm(&witness.timer, 0, 0, TWHEEL_TIMER_REL);
	wait_for_completion(&witness.called);
	KUNIT_EXPECT_FALSE(test, twheel_timer_shutdown(&witness.timer));

	KUNIT_EXPECT_TRUE(test, witness.softirq);
	KUNIT_EXPECT_TRUE(test, witness.interrupts);
	for (i = 0; i < ARRAY_SIZE(expected); i++)
		KUNIT_EXPECT_EQ_MSG(test, witness.answers[i], expected[i],
				    "answer %u", i);
	wait_for_completion(&witness.other->called);
	KUNIT_EXPECT_FALSE(test, twheel_timer_shutdown(&witness.other->timer));
}

static void function_may_arm_its_timer_again(struct kunit *test)
{
	struct counter *counter = counter_make(test);
	unsigned int i;

	counter->rearm = 20;
	counter->rearm_ns = 100000;
	twheel_timer_arm(&counter->timer, 0, 0, TWHEEL_TIMER_REL);
	for (i = 0; i <= 20; i++)
		wait_for_completion(&counter->called);
	KUNIT_EXPECT_FALSE(test, twheel_timer_shutdown(&counter->timer));
	KUNIT_EXPECT_EQ(test, atomic_read(&counter->calls), 21);
	KUNIT_EXPECT_FALSE(test, counter->overlapped);
}

static void cancel_sync_ends_a_timer_that_arms_itself(struct kunit *test)
{
	struct counter *counter = counter_make(test);
	int calls;

	counter->rearm = UINT_MAX;
	twheel_timer_arm(&counter->timer, 0, 0, TWHEEL_TIMER_REL);
	wait_for_completion(&counter->called);
	twheel_timer_cancel_sync(&counter->timer);
	calls = atomic_read(&counter->calls);
	KUNIT_EXPECT_FALSE(test, twheel_timer_pending(&counter->timer));
	KUNIT_EXPECT_EQ(test, atomic_read(&counter->inside), 0);
	KUNIT_EXPECT_FALSE(test, twheel_timer_shutdown(&counter->timer));
	KUNIT_EXPECT_EQ(test, atomic_read(&counter->calls), calls);
}

static void shutdown_ends_a_timer_that_arms_itself(struct kunit *test)
{
	struct counter *counter = counter_make(test);
	int calls;

	counter->rearm = UINT_MAX;
	counter->linger_us = 100;
	twheel_timer_arm(&counter->timer, 0, 0, TWHEEL_TIMER_REL);
	wait_for_completion(&counter->called);
	twheel_timer_shutdown(&counter->timer);
	calls = atomic_read(&counter->calls);
	KUNIT_EXPECT_EQ(test, atomic_read(&counter->inside), 0);
	KUNIT_EXPECT_FALSE(test, twheel_timer_pending(&counter->timer));
	KUNIT_EXPECT_EQ(test, atomic_read(&counter->calls), calls);
}

/* A function that frees its timer as its last action. */
struct mayfly {
	struct twheel_timer timer;
	struct completion *died;
};

static void free_timer(struct twheel_timer *timer)
{
	struct mayfly *mayfly = container_of(timer, struct mayfly, timer);
	struct completion *died = mayfly->died;

	kfree(mayfly);
	complete(died);
}

static void function_may_free_its_timer(struct kunit *test)
{
	DECLARE_COMPLETION_ONSTACK(died);
	unsigned int i;

	for (i = 0; i < 100; i++) {
		struct mayfly *mayfly = kzalloc(sizeof(*mayfly), GFP_KERNEL);

		KUNIT_ASSERT_NOT_NULL(test, mayfly);
		mayfly->died = &died;
		twheel_timer_setup(&mayfly->timer, free_timer);
		twheel_timer_arm(&mayfly->timer, i * 10000, 0, TWHEEL_TIMER_REL);
	}
	for (i = 0; i < 100; i++)
		wait_for_completion(&died);
}

/* --- many timers, several CPUs ---------------------------------------------- */

static void many_timers_are_each_called_once(struct kunit *test)
{
	enum { NR = 2000 };
	struct counter *counters = kvcalloc(NR, sizeof(*counters), GFP_KERNEL);
	unsigned int i, wrong = 0;

	KUNIT_ASSERT_NOT_NULL(test, counters);
	for (i = 0; i < NR; i++) {
		counter_init(&counters[i]);
		twheel_timer_arm(&counters[i].timer,
				 get_random_u32() % (50 * NSEC_PER_MSEC),
				 get_random_u32() % (10 * NSEC_PER_MSEC),
				 TWHEEL_TIMER_REL);
	}
	for (i = 0; i < NR; i++) {
		wait_for_completion(&counters[i].called);
		wrong += twheel_timer_shutdown(&counters[i].timer);
	}
	for (i = 0; i < NR; i++)
		wrong += atomic_read(&counters[i].calls) != 1;
	KUNIT_EXPECT_EQ(test, wrong, 0U);
	kvfree(counters);
}

static void arm_one_here(void *data)
{
	struct counter *counters = data;

	twheel_timer_arm(&counters[smp_processor_id()].timer, NSEC_PER_MSEC, 0,
			 TWHEEL_TIMER_REL);
}

static void timer_is_called_on_the_cpu_that_armed_it(struct kunit *test)
{
	struct counter *counters = counters_make(test, nr_cpu_ids);
	unsigned int cpu;

	run_on_all_cpus(test, arm_one_here, counters);
	for_each_online_cpu(cpu) {
		wait_for_completion(&counters[cpu].called);
		twheel_timer_shutdown(&counters[cpu].timer);
		KUNIT_EXPECT_EQ(test, counters[cpu].cpu, cpu);
		KUNIT_EXPECT_EQ(test, atomic_read(&counters[cpu].calls), 1);
	}
}

/* A timer that one CPU runs while another one arms it again. */
struct pair {
	struct twheel_timer timer;
	struct completion called;
	struct completion armer_is_there;
	unsigned int runner, armer;	/* CPUs */
	unsigned int calls;
	unsigned int cpus[2];		/* CPUs of the calls */
	bool armed_again;
	int ret;
	bool pending;
};

static void wait_to_be_armed(struct twheel_timer *timer)
{
	struct pair *pair = container_of(timer, struct pair, timer);

	if (pair->calls < 2)
		pair->cpus[pair->calls] = smp_processor_id();
	pair->calls++;
	complete(&pair->called);
	/* Pairs with the store in do_half(). */
	while (!smp_load_acquire(&pair->armed_again))
		cpu_relax();
}

static void do_half(void *data)
{
	struct pair *pair = data;
	unsigned int cpu = smp_processor_id();

	/* While the function runs, nothing else runs on its CPU. */
	if (cpu == pair->runner) {
		wait_for_completion(&pair->armer_is_there);
		twheel_timer_arm(&pair->timer, 0, 0, TWHEEL_TIMER_REL);
	} else if (cpu == pair->armer) {
		complete(&pair->armer_is_there);
		wait_for_completion(&pair->called);
		pair->ret = twheel_timer_arm(&pair->timer, 0, 0, TWHEEL_TIMER_REL);
		pair->pending = twheel_timer_pending(&pair->timer);
		/* Pairs with the load in wait_to_be_armed(). */
		smp_store_release(&pair->armed_again, true);
	}
}

static void timer_armed_while_its_function_runs_stays_on_that_cpu(struct kunit *test)
{
	struct pair pair = {
		.runner = cpumask_first(cpu_online_mask),
		.armer = cpumask_last(cpu_online_mask),
	};

	if (pair.runner == pair.armer)
		kunit_skip(test, "needs two CPUs");
	init_completion(&pair.called);
	init_completion(&pair.armer_is_there);
	twheel_timer_setup(&pair.timer, wait_to_be_armed);
	run_on_all_cpus(test, do_half, &pair);
	wait_for_completion(&pair.called);
	KUNIT_EXPECT_FALSE(test, twheel_timer_shutdown(&pair.timer));
	KUNIT_EXPECT_EQ(test, pair.ret, 0);
	KUNIT_EXPECT_TRUE(test, pair.pending);
	KUNIT_EXPECT_EQ(test, pair.calls, 2U);
	KUNIT_EXPECT_EQ(test, pair.cpus[0], pair.runner);
	KUNIT_EXPECT_EQ(test, pair.cpus[1], pair.runner);
}

/* A timer whose function lingers on one CPU while another one waits for it. */
struct farewell {
	struct counter *counter;
	struct completion waiter_is_there;
	unsigned int runner, waiter;	/* CPUs */
	bool (*end)(struct twheel_timer *timer);
	bool ran;			/* when it was waited for */
	bool runs;			/* after that */
	bool was_armed;
};

static void arm_or_end(void *data)
{
	struct farewell *farewell = data;
	struct counter *counter = farewell->counter;
	unsigned int cpu = smp_processor_id();

	if (cpu == farewell->runner) {
		wait_for_completion(&farewell->waiter_is_there);
		twheel_timer_arm(&counter->timer, 0, 0, TWHEEL_TIMER_REL);
	} else if (cpu == farewell->waiter) {
		complete(&farewell->waiter_is_there);
		while (!atomic_read(&counter->calls))
			cond_resched();
		farewell->ran = atomic_read(&counter->inside);
		farewell->was_armed = farewell->end(&counter->timer);
		farewell->runs = atomic_read(&counter->inside);
	}
}

static void expect_waiting(struct kunit *test, bool (*end)(struct twheel_timer *timer))
{
	struct farewell farewell = {
		.runner = cpumask_first(cpu_online_mask),
		.waiter = cpumask_last(cpu_online_mask),
		.end = end,
	};
	unsigned int linger_us;

	if (farewell.runner == farewell.waiter)
		kunit_skip(test, "needs two CPUs");
	init_completion(&farewell.waiter_is_there);
	/* The machine may stand still for so long that the function has ended before. */
	for (linger_us = 5000; !farewell.ran && linger_us < USEC_PER_SEC; linger_us *= 2) {
		farewell.counter = counter_make(test);
		farewell.counter->linger_us = linger_us;
		run_on_all_cpus(test, arm_or_end, &farewell);
		KUNIT_EXPECT_FALSE(test, farewell.was_armed);
		KUNIT_EXPECT_FALSE(test, farewell.runs);
		twheel_timer_shutdown(&farewell.counter->timer);
	}
	KUNIT_EXPECT_TRUE(test, farewell.ran);
}

static void cancel_sync_waits_for_a_function_on_another_cpu(struct kunit *test)
{
	expect_waiting(test, twheel_timer_cancel_sync);
}

static void shutdown_waits_for_a_function_on_another_cpu(struct kunit *test)
{
	expect_waiting(test, twheel_timer_shutdown);
}

/*
 * The first CPU arms the timer; the others in turn arm it while it is on another CPU's
 * wheel.
 */
static void arm_what_another_cpu_has_armed(void *data)
{
	struct arming *arming = data;

	twheel_timer_arm(&arming->counter->timer, DAY_NS, 0, TWHEEL_TIMER_REL);
	twheel_timer_arm(&arming->counter->timer, HOUR_NS, 0, TWHEEL_TIMER_REL);
}

static void timer_can_be_armed_and_cancelled_from_any_cpu(struct kunit *test)
{
	struct arming arming = { .counter = counter_make(test) };

	run_on_all_cpus(test, arm_what_another_cpu_has_armed, &arming);
	KUNIT_EXPECT_TRUE(test, twheel_timer_pending(&arming.counter->timer));
	KUNIT_EXPECT_TRUE(test, twheel_timer_cancel_sync(&arming.counter->timer));
	KUNIT_EXPECT_FALSE(test, twheel_timer_shutdown(&arming.counter->timer));
	KUNIT_EXPECT_EQ(test, atomic_read(&arming.counter->calls), 0);
}

/* --- the budget of a run ------------------------------------------------------ */

/*
 * Slow functions get at most about half of the CPU. The test asserts only how long they
 * take at least, so other work on the machine does no harm.
 */

static void wait_for_calls(struct counter *counters, unsigned int nr, int calls)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		while (atomic_read(&counters[i].calls) < calls ||
		       atomic_read(&counters[i].inside))
			usleep_range(1000, 2000);
}

/*
 * Run 64 functions of 200 us at one tick; return the time from the first to the last one.
 */
static u64 run_slow_functions(struct kunit *test, struct counter *counters)
{
	enum { NR = 64 };
	u64 due_ns, first_ns = U64_MAX, last_ns = 0;
	unsigned int i;

	migrate_disable();
	due_ns = ktime_get_ns() + 20 * NSEC_PER_MSEC;
	for (i = 0; i < NR; i++) {
		counters[i].linger_us = 200;
		twheel_timer_arm(&counters[i].timer, due_ns, 0, TWHEEL_TIMER_ABS);
	}
	migrate_enable();
	wait_for_calls(counters, NR, 1);
	for (i = 0; i < NR; i++) {
		first_ns = min(first_ns, counters[i].at_ns);
		last_ns = max(last_ns, counters[i].at_ns);
		if (i)
			KUNIT_EXPECT_GE(test, counters[i].at_ns,
					counters[i - 1].at_ns);
		twheel_timer_shutdown(&counters[i].timer);
	}
	return last_ns - first_ns;
}

static void time_is_looked_at_between_functions(struct kunit *test)
{
	u64 took_ns = run_slow_functions(test, counters_make(test, 64));

	/* 63 * 200 us of work, in runs of a little more than 1 ms with pauses between. */
	KUNIT_EXPECT_GT(test, took_ns, 63ULL * 200 * 1000 * 3 / 2);
}

/* Arm a timer for the next tick and cancel it, again and again until told to stop. */
struct nuisance {
	struct counter *counter;
	struct completion stopped;
	bool stop;
};

static int arm_again_and_again(void *data)
{
	struct nuisance *nuisance = data;

	while (!READ_ONCE(nuisance->stop)) {
		twheel_timer_arm(&nuisance->counter->timer, 0, 0, TWHEEL_TIMER_REL);
		twheel_timer_cancel(&nuisance->counter->timer);
		cond_resched();
	}
	kthread_complete_and_exit(&nuisance->stopped, 0);
}

static void pause_is_not_cut_short_by_what_is_armed(struct kunit *test)
{
	struct counter *counters = counters_make(test, 65);
	struct nuisance nuisance = { .counter = &counters[64] };
	struct task_struct *task;
	u64 took_ns;

	init_completion(&nuisance.stopped);
	/*
	 * From the base's own CPU, arming programs the hrtimer; from another CPU, it kicks
	 * the base.
	 */
	task = kthread_run(arm_again_and_again, &nuisance, "twheel/nuisance");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	took_ns = run_slow_functions(test, counters);
	WRITE_ONCE(nuisance.stop, true);
	wait_for_completion(&nuisance.stopped);
	twheel_timer_shutdown(&nuisance.counter->timer);
	KUNIT_EXPECT_GT(test, took_ns, 63ULL * 200 * 1000 * 3 / 2);
}

static void slow_function_that_arms_its_timer_leaves_half_of_the_cpu(struct kunit *test)
{
	struct counter *counter = counter_make(test);
	u64 armed_ns = ktime_get_ns();

	counter->linger_us = 3000;
	counter->rearm = 20;
	twheel_timer_arm(&counter->timer, 0, 0, TWHEEL_TIMER_REL);
	wait_for_calls(counter, 1, 21);
	KUNIT_EXPECT_GT(test, counter->at_ns - armed_ns,
			20ULL * 3000 * 1000 * 9 / 5);
	twheel_timer_shutdown(&counter->timer);
}

static struct kunit_case timer_cases[] = {
	KUNIT_CASE_PARAM(timer_is_called_once_and_never_early, place_gen_params),
	KUNIT_CASE_PARAM(absolute_time_is_kept, place_gen_params),
	KUNIT_CASE_PARAM(past_time_goes_to_the_next_tick, place_gen_params),
	KUNIT_CASE_PARAM(tick_that_has_begun_is_past, place_gen_params),
	KUNIT_CASE_PARAM(every_call_answers_what_the_ones_before_it_left,
			 place_gen_params),
	KUNIT_CASE(arming_again_replaces_the_time),
	KUNIT_CASE(modify_makes_it_earlier_later_or_the_same),
	KUNIT_CASE(modify_leaves_an_idle_timer_alone),
	KUNIT_CASE(cancelled_timer_is_not_called),
	KUNIT_CASE(time_beyond_all_clocks_is_never),
	KUNIT_CASE(timer_that_was_shut_down_refuses_to_be_armed),
	KUNIT_CASE(slack_chooses_the_roundest_tick),
	KUNIT_CASE(slack_below_a_tick_changes_nothing),
	KUNIT_CASE_PARAM(slack_of_a_relative_time_is_kept_too, place_gen_params),
	KUNIT_CASE(slack_saturates),
	KUNIT_CASE_PARAM(timer_with_slack_is_called_once_and_never_early,
			 place_gen_params),
	KUNIT_CASE(neighbours_with_slack_share_a_tick),
	KUNIT_CASE_PARAM(postponed_timer_is_called_at_the_last_time_stored,
			 place_gen_params),
	KUNIT_CASE_PARAM(earlier_time_is_seen_when_the_older_one_comes,
			 place_gen_params),
	KUNIT_CASE(time_can_be_stored_again_while_it_waits_on),
	KUNIT_CASE(postponed_for_ever_it_waits_to_be_armed),
	KUNIT_CASE(arming_forgets_what_was_stored),
	KUNIT_CASE(idle_timer_cannot_be_postponed),
	KUNIT_CASE(postponed_timer_that_was_ended_is_not_called),
	KUNIT_CASE(function_may_postpone_its_timer),
	KUNIT_CASE(postponed_timer_keeps_its_slack),
	KUNIT_CASE(any_slack_of_a_postponed_timer_is_kept_within_its_bounds),
	KUNIT_CASE(postponed_timer_is_called_on_the_cpu_that_armed_it),
	KUNIT_CASE(crowd_that_waits_on_does_not_expire),
	KUNIT_CASE(crowd_that_is_postponed_keeps_its_order),
	KUNIT_CASE(pause_of_a_run_takes_no_interrupts),
	KUNIT_CASE(lag_is_as_long_as_the_time_since_its_first_run),
	KUNIT_CASE(function_may_use_its_own_and_other_timers),
	KUNIT_CASE(function_may_arm_its_timer_again),
	KUNIT_CASE(cancel_sync_ends_a_timer_that_arms_itself),
	KUNIT_CASE(shutdown_ends_a_timer_that_arms_itself),
	KUNIT_CASE(function_may_free_its_timer),
	KUNIT_CASE(many_timers_are_each_called_once),
	KUNIT_CASE(timer_is_called_on_the_cpu_that_armed_it),
	KUNIT_CASE(timer_armed_while_its_function_runs_stays_on_that_cpu),
	KUNIT_CASE(cancel_sync_waits_for_a_function_on_another_cpu),
	KUNIT_CASE(shutdown_waits_for_a_function_on_another_cpu),
	KUNIT_CASE(timer_can_be_armed_and_cancelled_from_any_cpu),
	KUNIT_CASE(time_is_looked_at_between_functions),
	KUNIT_CASE(pause_is_not_cut_short_by_what_is_armed),
	KUNIT_CASE(slow_function_that_arms_its_timer_leaves_half_of_the_cpu),
	{}
};

static struct kunit_suite timer_suite = {
	.name = "twheel_timer",
	.test_cases = timer_cases,
};

kunit_test_suite(timer_suite);

MODULE_DESCRIPTION("KUnit suite of twheel's timers");
MODULE_LICENSE("GPL");
