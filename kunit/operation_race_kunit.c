// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of races between operations: threads on all CPUs, timers and the
 * operations' own functions use the same operations at the same time.
 *
 * The suite counts the results of calls and the calls of functions.  In whatever order:
 * each wait ends in exactly one way, which both counts show; try_complete() is never
 * called twice at the same time; and no function is called after cancel_sync has
 * returned.
 */
#include <kunit/test.h>
#include <linux/mutex.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "counter.h"
#include "options.h"
#include "tally.h"

#define RACE_OPERATIONS	16
#define RACE_KEYS	8
#define RACE_WAITS	6250	/* few, or the kernel reports a hung task */

static int race_suite_init(struct kunit *test)
{
	struct twheel_registry *registry = kunit_kzalloc(test, sizeof(*registry),
							 GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, registry);
	KUNIT_ASSERT_EQ(test, twheel_registry_init(registry), 0);
	test->priv = registry;
	return 0;
}

static void race_suite_exit(struct kunit *test)
{
	if (test->priv)
		twheel_registry_destroy(test->priv);
}

/* --- everything at once ----------------------------------------------------- */

/**
 * struct race - operations that all CPUs use, and counts of what they did
 * @registry: where their keys are.
 * @tallies: the operations.
 * @owners: held to begin and cancel the waits of an operation.
 * @again: functions let their operation wait again, and there are no owners.
 * @begun: number of waits that began.
 * @at_once: number of waits that ended before the call returned, by its result,
 * @checked: by a check,
 * @forced: by twheel_operation_complete(),
 * @cancelled: by cancel_sync.
 * @survived: number of times that a function was called after cancel_sync.
 */
struct race {
	struct twheel_registry *registry;
	struct tally tallies[RACE_OPERATIONS];
	struct mutex owners[RACE_OPERATIONS];	/* held to begin and cancel waits */
	bool again;
	atomic_t begun;
	atomic_t at_once;
	atomic_t checked;
	atomic_t forced;
	atomic_t cancelled;
	atomic_t survived;
};

/* Half of the operations wait for an hour, the others for some ticks. */
static u64 random_delay_ns(u32 number)
{
	return number % 2 ? HOUR_NS : (number >> 1) % 300000;
}

static void race_watch(struct race *race, struct tally *tally)
{
	u32 number = get_random_u32();
	u64 keys[] = {
		number % RACE_KEYS,
		number / RACE_KEYS % RACE_KEYS,
		number / RACE_KEYS / RACE_KEYS % RACE_KEYS,
	};
	int ret = twheel_try_complete_else_watch(&tally->operation, keys,
						 (number >> 9) % 4,
						 random_delay_ns(number >> 11), 0,
						 TWHEEL_TIMER_REL);

	if (ret < 0)
		return;
	atomic_inc(&race->begun);
	atomic_add(ret, &race->at_once);
}

static void race_check(struct race *race, u32 number)
{
	atomic_add(twheel_check_and_complete(race->registry, number % RACE_KEYS),
		   &race->checked);
}

/* An action that any context may do. */
static void race_act(struct race *race, struct tally *tally, u32 number)
{
	if (number % 4)
		race_check(race, number >> 2);
	else
		atomic_add(twheel_operation_complete(&tally->operation),
			   &race->forced);
}

static void race_ask(struct tally *tally)
{
	u32 number = get_random_u32();

	tally->holds = number % 4 == 0;
	udelay((number >> 8) % 8);
}

static void race_end(struct tally *tally)
{
	u32 number = get_random_u32();
	struct race *race = tally->data;

	if (race->again && number % 2)
		race_watch(race, tally);
	else if (number % 8 == 0)
		race_act(race, &race->tallies[(number >> 3) % RACE_OPERATIONS],
			 number >> 8);
	else
		udelay((number >> 8) % 16);
}

static struct race *race_make(struct kunit *test)
{
	struct race *race = kunit_kzalloc(test, sizeof(*race), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, race);
	race->registry = test->priv;
	for (i = 0; i < RACE_OPERATIONS; i++) {
		tally_init(&race->tallies[i], test->priv);
		race->tallies[i].ask = race_ask;
		race->tallies[i].end = race_end;
		race->tallies[i].data = race;
		mutex_init(&race->owners[i]);
	}
	return race;
}

static void race_cancel(struct race *race, struct tally *tally)
{
	int calls;

	atomic_add(twheel_operation_cancel_sync(&tally->operation),
		   &race->cancelled);
	if (race->again)
		return;
	calls = atomic_read(&tally->asked) + tally_calls(tally);
	udelay(get_random_u32() % 32);
	if (atomic_read(&tally->inside) ||
	    calls != atomic_read(&tally->asked) + tally_calls(tally))
		atomic_inc(&race->survived);
}

/* An action on an operation that the task owns, if operations have owners. */
static void race_own(struct race *race, unsigned int index, u32 number)
{
	struct tally *tally = &race->tallies[index];

	/* If the operation has an owner, do something else. */
	if (!race->again && !mutex_trylock(&race->owners[index]))
		return;
	if (number % 4)
		race_watch(race, tally);
	else
		race_cancel(race, tally);
	if (!race->again)
		mutex_unlock(&race->owners[index]);
}

static void race_run(void *data)
{
	struct race *race = data;

	while (atomic_read(&race->begun) < rounds_of(RACE_WAITS)) {
		u32 number = get_random_u32();
		unsigned int index = number % RACE_OPERATIONS;

		number /= RACE_OPERATIONS;
		if (number % 8 == 0) {
			local_bh_disable();
			race_act(race, &race->tallies[index], number >> 3);
			local_bh_enable();
		} else if (number % 8 < 3) {
			race_act(race, &race->tallies[index], number >> 3);
		} else {
			race_own(race, index, number >> 3);
		}
		cond_resched();
	}
}

/* Compare the counts of both sides when the race is over. */
static void race_settle(struct kunit *test, struct race *race)
{
	int completed = 0, expired = 0, begun, cancelled, told, least;
	unsigned int i;

	for (i = 0; i < RACE_OPERATIONS; i++) {
		struct tally *tally = &race->tallies[i];

		race_cancel(race, tally);
		KUNIT_EXPECT_FALSE(test, tally->overlapped);
		KUNIT_EXPECT_EQ(test, atomic_read(&tally->inside), 0);
		completed += atomic_read(&tally->completed);
		expired += atomic_read(&tally->expired);
		mutex_destroy(&race->owners[i]);
	}
	begun = atomic_read(&race->begun);
	cancelled = atomic_read(&race->cancelled);
	told = atomic_read(&race->at_once) + atomic_read(&race->checked) +
	       atomic_read(&race->forced);
	kunit_info(test, "%d begun: %d at once, %d checked, %d forced, %d expired, %d cancelled",
		   begun, atomic_read(&race->at_once), atomic_read(&race->checked),
		   atomic_read(&race->forced), expired, cancelled);
	KUNIT_EXPECT_EQ(test, completed, told);
	/* A cancel_sync that has to wait may end several waits, but is counted once. */
	if (race->again)
		KUNIT_EXPECT_LE(test, completed + expired + cancelled, begun);
	else
		KUNIT_EXPECT_EQ(test, completed + expired + cancelled, begun);
	KUNIT_EXPECT_EQ(test, atomic_read(&race->survived), 0);
	KUNIT_EXPECT_EQ(test, watched_keys(race->registry), 0);

	least = rounds_of(RACE_WAITS) / 100;
	KUNIT_EXPECT_GT(test, atomic_read(&race->at_once), least);
	KUNIT_EXPECT_GT(test, atomic_read(&race->checked), least);
	KUNIT_EXPECT_GT(test, atomic_read(&race->forced), least);
	KUNIT_EXPECT_GT(test, expired, least);
	KUNIT_EXPECT_GT(test, cancelled, least);
}

static const unsigned int rounds[] = { 1, 2, 3, 4 };

static void round_name(const unsigned int *round, char *name)
{
	snprintf(name, KUNIT_PARAM_DESC_SIZE, "round %u", *round);
}

KUNIT_ARRAY_PARAM(round, rounds, round_name);

static void each_wait_ends_in_exactly_one_way(struct kunit *test)
{
	struct race *race = race_make(test);

	run_on_all_cpus(test, race_run, race);
	race_settle(test, race);
}

static void operations_may_watch_again_while_others_cancel_them(struct kunit *test)
{
	struct race *race = race_make(test);

	race->again = true;
	run_on_all_cpus(test, race_run, race);
	race_settle(test, race);
}

/* --- memory that goes in the functions -------------------------------------- */

#define MAYFLIES	1500

/**
 * struct swarm - operations that live for one wait
 * @registry: where their keys are.
 * @died: number of operations freed.
 * @ended: number of operations that calls have completed.
 * @completed: number of calls of on_complete().
 */
struct swarm {
	struct twheel_registry *registry;
	atomic_t died;
	atomic_t ended;
	atomic_t completed;
};

struct mayfly {
	struct twheel_operation operation;
	struct swarm *swarm;
};

static bool mayfly_try_complete(struct twheel_operation *operation)
{
	return get_random_u32() % 8 == 0;
}

static void mayfly_on_expiration(struct twheel_operation *operation)
{
	struct mayfly *mayfly = container_of(operation, struct mayfly, operation);
	struct swarm *swarm = mayfly->swarm;

	kfree(mayfly);
	atomic_inc(&swarm->died);
}

static void mayfly_on_complete(struct twheel_operation *operation)
{
	atomic_inc(&container_of(operation, struct mayfly, operation)->swarm->completed);
	mayfly_on_expiration(operation);
}

static const struct twheel_operation_ops mayfly_ops = {
	.try_complete = mayfly_try_complete,
	.on_complete = mayfly_on_complete,
	.on_expiration = mayfly_on_expiration,
};

static void breed_one(struct swarm *swarm)
{
	u64 keys[] = { get_random_u32() % RACE_KEYS, get_random_u32() % RACE_KEYS };
	struct mayfly *mayfly = kzalloc(sizeof(*mayfly), GFP_KERNEL);
	int ret = -ENOMEM;

	if (mayfly) {
		mayfly->swarm = swarm;
		twheel_operation_setup(&mayfly->operation, swarm->registry,
				       &mayfly_ops);
		ret = twheel_try_complete_else_watch(&mayfly->operation, keys, 2,
						     get_random_u32() % 1000000, 0,
						     TWHEEL_TIMER_REL);
	}
	if (ret >= 0) {
		atomic_add(ret, &swarm->ended);
		return;
	}
	kfree(mayfly);
	atomic_inc(&swarm->died);
}

static void breed(void *data)
{
	struct swarm *swarm = data;
	unsigned int i;

	for (i = 0; i < rounds_of(MAYFLIES); i++) {
		breed_one(swarm);
		atomic_add(twheel_check_and_complete(swarm->registry, i % RACE_KEYS),
			   &swarm->ended);
		cond_resched();
	}
}

static void functions_on_all_cpus_may_free_their_operations(struct kunit *test)
{
	struct swarm swarm = { .registry = test->priv };
	int all = rounds_of(MAYFLIES) * num_online_cpus();

	run_on_all_cpus(test, breed, &swarm);
	while (atomic_read(&swarm.died) < all)
		cond_resched();
	kunit_info(test, "%d of %d were completed", atomic_read(&swarm.ended), all);
	KUNIT_EXPECT_EQ(test, atomic_read(&swarm.died), all);
	KUNIT_EXPECT_EQ(test, atomic_read(&swarm.completed),
			atomic_read(&swarm.ended));
	KUNIT_EXPECT_GT(test, atomic_read(&swarm.completed), 0);
	KUNIT_EXPECT_LT(test, atomic_read(&swarm.completed), all);
}

/* --- many keys, coming and going -------------------------------------------- */

#define CROWD		64
#define CROWD_ROUNDS	60

struct crowd {
	struct twheel_registry *registry;
	atomic_t wrong;
};

/*
 * Each CPU uses keys of its own, so that the results are known, in a table that all CPUs
 * share.
 */
static void use_many_keys(void *data)
{
	u64 first = (u64)smp_processor_id() << 32;
	struct crowd *crowd = data;
	struct tally *tally = kzalloc(sizeof(*tally), GFP_KERNEL);
	unsigned int round, i;
	u64 keys[CROWD];

	if (!tally) {
		atomic_inc(&crowd->wrong);
		return;
	}
	tally_init(tally, crowd->registry);
	for (round = 0; round < rounds_of(CROWD_ROUNDS); round++) {
		for (i = 0; i < CROWD; i++)
			keys[i] = first + (u64)round * CROWD + i;
		tally->holds = false;
		if (twheel_try_complete_else_watch(&tally->operation, keys, CROWD,
						   HOUR_NS, 0, TWHEEL_TIMER_REL))
			atomic_inc(&crowd->wrong);
		tally->holds = true;
		if (twheel_check_and_complete(crowd->registry,
					      keys[round % CROWD]) != 1)
			atomic_inc(&crowd->wrong);
		cond_resched();
	}
	if (atomic_read(&tally->completed) != rounds_of(CROWD_ROUNDS))
		atomic_inc(&crowd->wrong);
	kfree(tally);
}

static void keys_come_and_go_on_all_cpus(struct kunit *test)
{
	struct crowd crowd = { .registry = test->priv };

	run_on_all_cpus(test, use_many_keys, &crowd);
	KUNIT_EXPECT_EQ(test, atomic_read(&crowd.wrong), 0);
	KUNIT_EXPECT_EQ(test, watched_keys(test->priv), 0);
}

/* --- who meets the timer's function on its way ------------------------------ */

#define MEETINGS	5
#define MEETING_ROUNDS	200
#define MEETING_US	100	/* time to enter the queue */

/**
 * struct meeting - three CPUs and the lock of a registry
 * @tally: the operation.
 * @cancel: the second one cancels it; else it completes it.
 * @step: the step that the three have reached.
 * @ret: the result of the second one's call.
 * @at_rest: after that call, the timer's function did not run any more.
 * @first: CPU that holds the lock,
 * @second: CPU that waits for it,
 * @third: CPU whose timer's function will wait for it.
 *
 * The first holds the lock.  The second asks for it, and when it waits in the queue
 * behind the first, the third lets the operation's time come there, so that the
 * timer's function is the last in the queue, unless a CPU is too slow.
 */
struct meeting {
	struct tally tally;
	bool cancel;
	atomic_t step;
	int ret;
	bool at_rest;
	unsigned int first, second, third;
};

static void wait_for_step(struct meeting *meeting, int step)
{
	while (atomic_read(&meeting->step) < step)
		cond_resched();
}

static void hold_lock(struct meeting *meeting)
{
	struct twheel_operation *operation = &meeting->tally.operation;
	spinlock_t *lock = &operation->registry->lock;

	wait_for_step(meeting, 1);
	spin_lock_bh(lock);
	atomic_set(&meeting->step, 2);
	while (atomic_read(&meeting->step) < 3)
		cpu_relax();
	/* This time only decides how often the CPUs meet. */
	udelay(MEETING_US);
	atomic_set(&meeting->step, 4);
	while (twheel_timer_pending(&operation->timer))
		cpu_relax();
	udelay(MEETING_US);
	spin_unlock_bh(lock);
}

static void queue_for_lock(struct meeting *meeting)
{
	struct twheel_operation *operation = &meeting->tally.operation;

	wait_for_step(meeting, 2);
	atomic_set(&meeting->step, 3);
	if (meeting->cancel)
		meeting->ret = twheel_operation_cancel_sync(operation);
	else
		meeting->ret = twheel_operation_complete(operation);
	meeting->at_rest = !operation->armed && !atomic_read(&meeting->tally.inside);
}

static void let_time_come(struct meeting *meeting)
{
	static const u64 key;

	twheel_try_complete_else_watch(&meeting->tally.operation, &key, 1, HOUR_NS, 0,
				       TWHEEL_TIMER_REL);
	atomic_set(&meeting->step, 1);
	wait_for_step(meeting, 4);
	twheel_timer_modify(&meeting->tally.operation.timer, 0, 0, TWHEEL_TIMER_REL);
}

static void meet(void *data)
{
	struct meeting *meeting = data;
	unsigned int cpu = smp_processor_id();

	if (cpu == meeting->first)
		hold_lock(meeting);
	else if (cpu == meeting->second)
		queue_for_lock(meeting);
	else if (cpu == meeting->third)
		let_time_come(meeting);
}

static void meeting_begin(struct kunit *test, struct meeting *meeting, bool cancel)
{
	if (num_online_cpus() < 3)
		kunit_skip(test, "needs three CPUs");
	*meeting = (struct meeting){
		.cancel = cancel,
		.first = cpumask_first(cpu_online_mask),
	};
	meeting->second = cpumask_next(meeting->first, cpu_online_mask);
	meeting->third = cpumask_next(meeting->second, cpu_online_mask);
	tally_init(&meeting->tally, test->priv);
	run_on_all_cpus(test, meet, meeting);
}

/* In that case the timer's function calls on_complete(). */
static void operation_completed_when_its_time_has_come_does_not_expire(struct kunit *test)
{
	struct meeting *meeting = kunit_kzalloc(test, sizeof(*meeting), GFP_KERNEL);
	unsigned int round, met = 0;

	KUNIT_ASSERT_NOT_NULL(test, meeting);
	for (round = 0; round < MEETING_ROUNDS && met < MEETINGS; round++) {
		struct tally *tally = &meeting->tally;

		meeting_begin(test, meeting, false);
		wait_for_completion(&tally->ended);
		KUNIT_EXPECT_FALSE(test, twheel_operation_cancel_sync(&tally->operation));
		KUNIT_EXPECT_EQ(test, atomic_read(&tally->completed), meeting->ret);
		KUNIT_EXPECT_EQ(test, atomic_read(&tally->expired), !meeting->ret);
		/*
		 * The timer's function called on_complete(), not the CPU that completed it.
		 */
		met += meeting->ret && tally->softirq;
	}
	kunit_info(test, "met in %u of %u rounds", met, round);
	KUNIT_EXPECT_GT(test, met, 0U);
}

static void cancel_sync_waits_for_a_timer_whose_time_has_come(struct kunit *test)
{
	struct meeting *meeting = kunit_kzalloc(test, sizeof(*meeting), GFP_KERNEL);
	unsigned int round, met = 0;

	KUNIT_ASSERT_NOT_NULL(test, meeting);
	for (round = 0; round < MEETING_ROUNDS && met < MEETINGS; round++) {
		struct tally *tally = &meeting->tally;

		meeting_begin(test, meeting, true);
		KUNIT_EXPECT_TRUE(test, meeting->at_rest);
		KUNIT_EXPECT_EQ(test, atomic_read(&tally->completed), 0);
		KUNIT_EXPECT_EQ(test, atomic_read(&tally->expired), !meeting->ret);
		met += meeting->ret;
	}
	kunit_info(test, "met in %u of %u rounds", met, round);
	KUNIT_EXPECT_GT(test, met, 0U);
}

static struct kunit_case race_cases[] = {
	KUNIT_CASE_PARAM(each_wait_ends_in_exactly_one_way, round_gen_params),
	KUNIT_CASE_PARAM(operations_may_watch_again_while_others_cancel_them,
			 round_gen_params),
	KUNIT_CASE(functions_on_all_cpus_may_free_their_operations),
	KUNIT_CASE(keys_come_and_go_on_all_cpus),
	KUNIT_CASE(operation_completed_when_its_time_has_come_does_not_expire),
	KUNIT_CASE(cancel_sync_waits_for_a_timer_whose_time_has_come),
	{}
};

static struct kunit_suite race_suite = {
	.name = "twheel_operation_race",
	.init = race_suite_init,
	.exit = race_suite_exit,
	.test_cases = race_cases,
};

kunit_test_suite(race_suite);

MODULE_DESCRIPTION("KUnit suite of races between operations of other modules");
MODULE_LICENSE("GPL");
