// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of deadlines: the tick at which a postponed event waits, what the base
 * counts, a model, and stores on all CPUs.  The suite stores to the words as a process
 * does that maps them.  tools/test/device proves what a process sees.
 */
#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/log2.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "counter.h"
#include "deadline_model.h"
#include "options.h"
#include "patience.h"
#include "spy.h"

#define MODEL_STEPS	20000

static int deadline_suite_init(struct kunit *test)
{
	test->priv = twheel_context_create();
	KUNIT_ASSERT_NOT_NULL(test, test->priv);
	return 0;
}

static void deadline_suite_exit(struct kunit *test)
{
	twheel_context_destroy(test->priv);
}

static void make_words(struct kunit *test, u32 nr)
{
	KUNIT_ASSERT_EQ(test, configure_deadlines(test, nr), 0);
}

static struct event *event_of(struct kunit *test, u64 id)
{
	struct context *context = test->priv;
	struct event *event = event_find(&context->events, id);

	KUNIT_ASSERT_NOT_NULL(test, event);
	return event;
}

static u64 nr_postponed(struct kunit *test)
{
	struct context *context = test->priv;

	return atomic64_read(&context->nr_postponed);
}

/* The length of a tick is 2^shift ns. Read the shift off an event of another context. */
static unsigned int tick_shift(struct kunit *test)
{
	struct context *context = test->priv;
	struct twheel_cmd cmd = {
		.op = TWHEEL_OP_ADD,
		.flags = TWHEEL_ABS,
		.time_ns = BIT_ULL(62),
	};
	unsigned int shift;

	test->priv = twheel_context_create();
	KUNIT_ASSERT_NOT_NULL(test, test->priv);
	KUNIT_ASSERT_EQ(test, run(test, &cmd), 0);
	shift = 62 - ilog2(wheel_due(&event_of(test, cmd.id)->node.wheel));
	twheel_context_destroy(test->priv);
	test->priv = context;
	return shift;
}

#define SOON_NS		(20 * NSEC_PER_MSEC)

/*
 * Add an event that is due soon, and store another time before it is due; return when the
 * event is due by the first time.
 */
static u64 add_and_store(struct kunit *test, u32 index, u64 slack_ns, u64 time_ns, u64 *id)
{
	for (;;) {
		u64 soon_ns = ktime_get_ns() + SOON_NS;

		store(test, index, soon_ns);
		KUNIT_ASSERT_EQ(test, add_deadline(test, index, slack_ns, id), 0);
		store(test, index, time_ns);
		if (ktime_get_ns() < soon_ns)
			return soon_ns;
		KUNIT_ASSERT_EQ(test, cancel(test, *id), 0);
	}
}

/* The tick at which an event is due on its wheel, read without a lock. */
static u64 tick_of(const struct event *event)
{
	struct wheel_node node = { .place = READ_ONCE(event->node.wheel.place) };

	return wheel_due(&node);
}

/* Wait until a postponed event is on the wheel for that tick. */
static void wait_until_it_waits_for(struct kunit *test, u64 id, u64 tick)
{
	const struct event *event = event_of(test, id);

	KUNIT_ASSERT_TRUE(test, sleep_until(tick_of(event) == tick, 1000));
}

/* Wait until events were postponed @nr times. */
static void wait_until_postponed(struct kunit *test, u64 nr)
{
	sleep_until(nr_postponed(test) >= nr, 1000);
	KUNIT_ASSERT_GE(test, nr_postponed(test), nr);
}

/* Read a record that is expected soon. */
static void read_soon(struct kunit *test, struct twheel_record *record)
{
	sleep_until(twheel_context_readable(test->priv), 500);
	read_record(test, record, CONTEXT_NONBLOCK);
	KUNIT_EXPECT_GE(test, record->fired_ns, record->due_ns);
}

/* --- what becomes of an event ----------------------------------------------- */

static void word_that_says_never_parks_its_event(struct kunit *test)
{
	unsigned int shift = tick_shift(test);
	static const u64 times_ns[] = { NEVER_NS, NEVER_NS + 1, U64_MAX };
	struct twheel_record record;
	unsigned int i;
	u64 id;

	make_words(test, 1);
	for (i = 0; i < ARRAY_SIZE(times_ns); i++) {
		u64 due_ns;

		add_and_store(test, 0, 0, times_ns[i], &id);
		wait_until_it_waits_for(test, id, NEVER_NS >> shift);
		/* A store does not arm it again, a MODIFY does. */
		due_ns = ktime_get_ns();
		store(test, 0, due_ns);
		KUNIT_EXPECT_EQ(test, query(test, id), TWHEEL_ARMED);
		KUNIT_EXPECT_EQ(test, wheel_due(&event_of(test, id)->node.wheel),
				NEVER_NS >> shift);
		KUNIT_EXPECT_EQ(test, modify_deadline(test, id, 0), 0);
		KUNIT_EXPECT_EQ(test, query(test, id), TWHEEL_READY);
		read_record(test, &record, CONTEXT_NONBLOCK);
		KUNIT_EXPECT_EQ(test, record.due_ns, due_ns);
	}
}

static void postponed_event_keeps_its_slack(struct kunit *test)
{
	static const u64 slacks_ns[] = {
		0, 1, 65536, 65537, 262143, NSEC_PER_MSEC, 20 * NSEC_PER_MSEC
	};
	unsigned int shift = tick_shift(test), i;
	u64 id;

	make_words(test, ARRAY_SIZE(slacks_ns));
	for (i = 0; i < ARRAY_SIZE(slacks_ns); i++) {
		u64 due_ns = ktime_get_ns() + DAY_NS + (get_random_u64() >> 14);

		add_and_store(test, i, slacks_ns[i], due_ns, &id);
		wait_until_it_waits_for(test, id,
					roundest_tick(due_ns, slacks_ns[i], shift));
		KUNIT_EXPECT_EQ(test, event_of(test, id)->slack_ns, slacks_ns[i]);
	}
}

/* --- lists ------------------------------------------------------------------ */

/* The entry of an event in a list. */
static struct twheel_entry entry_of(struct kunit *test, u64 id)
{
	struct twheel_entry entry;
	u64 cursor = 0;

	while (list_entries(test, &cursor, &entry, 1) == 1)
		if (entry.id == id)
			return entry;
	KUNIT_FAIL(test, "event %llx is not listed", id);
	return (struct twheel_entry){};
}

static int watch(struct kunit *test, u64 id, u64 key)
{
	struct twheel_cmd cmd = {
		.op = TWHEEL_OP_WATCH,
		.id = id,
		.value = 1,
		.key = key,
	};

	return run(test, &cmd);
}

static int signal(struct kunit *test, u64 key)
{
	struct twheel_cmd cmd = { .op = TWHEEL_OP_SIGNAL, .value = 7, .key = key };

	return run(test, &cmd);
}

/* Watches stay while the operation is postponed, and end when it expires. */
static void postponed_operation_keeps_its_watches(struct kunit *test)
{
	unsigned int shift = tick_shift(test);
	struct twheel_record record;
	u64 due_ns, id;
	int ret;

	make_words(test, 1);
	add_and_store(test, 0, 0, NEVER_NS, &id);
	KUNIT_ASSERT_EQ(test, watch(test, id, 1), 0);
	wait_until_it_waits_for(test, id, NEVER_NS >> shift);
	KUNIT_EXPECT_EQ(test, entry_of(test, id).watches, 1U);
	KUNIT_EXPECT_EQ(test, signal(test, 1), 1);
	read_record(test, &record, CONTEXT_NONBLOCK);
	KUNIT_EXPECT_EQ(test, record.reason, (u32)TWHEEL_COMPLETED);
	KUNIT_EXPECT_EQ(test, record.flags, (u32)TWHEEL_RECORD_SIGNAL);
	KUNIT_EXPECT_EQ(test, record.value, 7ULL);
	KUNIT_EXPECT_EQ(test, record.key, 1ULL);

	due_ns = ktime_get_ns() + 3 * SOON_NS;
	add_and_store(test, 0, 0, due_ns, &id);
	ret = watch(test, id, 1);
	/* If the machine stood still, the event is READY already. */
	if (ret)
		KUNIT_EXPECT_EQ(test, ret, -EALREADY);
	read_soon(test, &record);
	KUNIT_EXPECT_EQ(test, record.reason, (u32)TWHEEL_EXPIRED);
	KUNIT_EXPECT_EQ(test, record.due_ns, due_ns);
	KUNIT_EXPECT_EQ(test, signal(test, 1), 0);
}

/* --- clocks ----------------------------------------------------------------- */

/* Move CLOCK_REALTIME. */
static void step_clock(struct kunit *test, s64 by_ns)
{
	struct timespec64 time;

	ktime_get_real_ts64(&time);
	time = timespec64_add(time, ns_to_timespec64(by_ns));
	KUNIT_ASSERT_EQ(test, do_settimeofday64(&time), 0);
}

/* Set the clock back before or after an event was postponed; false: it was due already. */
static bool set_back(struct kunit *test, u64 lead_ns, bool waits_on)
{
	u64 begin_ns = ktime_get_ns(), soon_ns = ktime_get_real_ns() + lead_ns;
	u64 postponed = nr_postponed(test), left_ns = lead_ns, read_ns, id;
	s64 step_ns = lead_ns + 300 * NSEC_PER_MSEC;
	struct twheel_record record;
	bool in_time;

	store(test, 0, soon_ns);
	KUNIT_ASSERT_EQ(test, add_deadline(test, 0, 0, &id), 0);
	store(test, 0, soon_ns + lead_ns);
	if (waits_on) {
		while (nr_postponed(test) == postponed && query(test, id) == TWHEEL_ARMED)
			usleep_range(100, 200);
		left_ns = nr_postponed(test) > postponed ? 2 * lead_ns : 0;
	}
	step_clock(test, -step_ns);
	in_time = ktime_get_ns() - begin_ns < left_ns;
	read_soon(test, &record);
	read_ns = ktime_get_real_ns();
	step_clock(test, step_ns);
	KUNIT_EXPECT_GE(test, record.due_ns, soon_ns);
	if (in_time)
		KUNIT_EXPECT_GE(test, read_ns, record.due_ns);
	return in_time;
}

static bool set_back_before_it_comes_out(struct kunit *test, u64 lead_ns)
{
	return set_back(test, lead_ns, false);
}

static bool set_back_after_it_came_out(struct kunit *test, u64 lead_ns)
{
	return set_back(test, lead_ns, true);
}

static void setting_the_clock_back_makes_no_word_early(struct kunit *test)
{
	struct twheel_config config = { .clockid = CLOCK_REALTIME, .nr_deadlines = 1 };

	KUNIT_ASSERT_EQ(test, twheel_context_configure(test->priv, &config), 0);
	attempt_in_time(test, SOON_NS, set_back_before_it_comes_out);
	attempt_in_time(test, SOON_NS, set_back_after_it_came_out);
}

/* --- what the base does ----------------------------------------------------- */

enum { CROWD = 3000 };

/* An entry in the wait queue of poll() that counts how often it is woken. */
struct sleeper {
	wait_queue_entry_t entry;
	atomic_t woken;
};

static int note_wake(wait_queue_entry_t *entry, unsigned int mode, int flags, void *key)
{
	atomic_inc(&container_of(entry, struct sleeper, entry)->woken);
	return 0;
}

/* Store the same time to all words. */
static void store_all(struct kunit *test, u64 time_ns)
{
	unsigned int i;

	for (i = 0; i < CROWD; i++)
		store(test, i, time_ns);
}

/* Add an event to each word, in order, in one batch. */
static void add_crowd(struct kunit *test, u64 data)
{
	struct context *context = test->priv;
	unsigned int i, failed = 0;

	KUNIT_ASSERT_EQ(test, twheel_context_begin(context, CONTEXT_BLOCK), 0);
	for (i = 0; i < CROWD; i++) {
		struct twheel_cmd cmd = {
			.op = TWHEEL_OP_ADD,
			.flags = TWHEEL_DEADLINE,
			.data = data + i,
			.key = i,
		};

		failed += !!twheel_command_run(&context->batch, &cmd);
	}
	twheel_context_end(&context->batch);
	KUNIT_ASSERT_EQ(test, failed, 0U);
}

/*
 * Make a crowd that is due at one tick, and postpone it. If the machine stood still for
 * long, the first time is over already. Return the first time.
 */
static u64 make_crowd(struct kunit *test, u64 data, u64 lead_ns, u64 later_ns)
{
	u64 soon_ns = ktime_get_ns() + lead_ns;

	store_all(test, soon_ns);
	add_crowd(test, data);
	store_all(test, soon_ns + later_ns);
	return soon_ns;
}

/* The base of this CPU for events with words; as base_here(). */
static const struct base *deadlines_base_here(struct kunit *test)
{
	struct spy spy = { .kind = BASE_DEADLINES };
	struct twheel_cmd cancel = { .op = TWHEEL_OP_CANCEL };

	store(test, 0, S64_MAX);
	if (spy_begin(&spy)) {
		KUNIT_EXPECT_EQ(test, add_deadline(test, 0, 0, &cancel.id), 0);
		spy_end(&spy);
		KUNIT_EXPECT_EQ(test, run(test, &cancel), 0);
	}
	KUNIT_ASSERT_NOT_NULL(test, spy.base);
	return spy.base;
}

static void crowd_that_waits_on_wakes_nobody_and_does_not_expire(struct kunit *test)
{
	struct context *context = test->priv;
	struct sleeper *sleeper = kunit_kzalloc(test, sizeof(*sleeper), GFP_KERNEL);
	const struct base *base;
	u64 soon_ns, expired, postponed;
	struct twheel_record record;
	unsigned int i, wrong = 0;
	struct event *event;
	u64 cursor = 0;
	bool in_time;

	need_tracepoints(test);
	KUNIT_ASSERT_NOT_NULL(test, sleeper);
	make_words(test, CROWD);
	init_waitqueue_func_entry(&sleeper->entry, note_wake);
	migrate_disable();
	base = deadlines_base_here(test);
	expired = READ_ONCE(base->nr_expired);
	postponed = READ_ONCE(base->nr_postponed);
	add_wait_queue(&context->pollers, &sleeper->entry);
	soon_ns = make_crowd(test, 0, NSEC_PER_SEC, HOUR_NS);
	in_time = ktime_get_ns() < soon_ns;
	migrate_enable();
	if (!in_time)
		kunit_skip(test, "the machine stood still");
	wait_until_postponed(test, CROWD);
	KUNIT_EXPECT_EQ(test, nr_postponed(test), (u64)CROWD);
	KUNIT_EXPECT_EQ(test, READ_ONCE(base->nr_postponed) - postponed, (u64)CROWD);
	KUNIT_EXPECT_EQ(test, READ_ONCE(base->nr_expired) - expired, 0ULL);
	KUNIT_EXPECT_LE(test, READ_ONCE(base->most_touched), (unsigned int)BASE_BATCH);
	KUNIT_EXPECT_EQ(test, atomic_read(&sleeper->woken), 0);
	KUNIT_EXPECT_EQ(test, READ_ONCE(context->nr_ready), 0ULL);
	KUNIT_EXPECT_FALSE(test, twheel_context_readable(context));
	KUNIT_EXPECT_TRUE(test, context_has_armed(context));
	expect_nothing_to_read(test);
	for (i = 0; i < CROWD; i++) {
		struct twheel_entry entry;

		KUNIT_ASSERT_EQ(test, list_entries(test, &cursor, &entry, 1), (ssize_t)1);
		event = event_of(test, entry.id);
		wrong += event_state(event) != EVENT_ARMED;
		wrong += event->node.base != base->number;
		wrong += entry.due_ns != soon_ns + HOUR_NS;
	}
	KUNIT_EXPECT_EQ(test, wrong, 0U);

	/* The wait queue entry does work: an event that is due wakes it. */
	store(test, 0, 0);
	KUNIT_EXPECT_EQ(test, add_deadline(test, 0, 0, &record.id), 0);
	KUNIT_EXPECT_GT(test, atomic_read(&sleeper->woken), 0);
	remove_wait_queue(&context->pollers, &sleeper->entry);
}

/* Return false if some were armed late, or came out after the later time too. */
static bool postpone_in_order(struct kunit *test, u64 lead_ns)
{
	/* They name one word more. */
	enum { BEFORE = 100, THEIRS = CROWD };
	u64 postponed = nr_postponed(test), later_ns = 2 * lead_ns, soon_ns, i;
	struct twheel_record record;
	unsigned int wrong = 0;
	bool in_time;

	migrate_disable();
	soon_ns = make_crowd(test, BEFORE, lead_ns, later_ns);
	store(test, THEIRS, soon_ns + later_ns);
	for (i = 0; i < BEFORE; i++) {
		struct twheel_cmd cmd = {
			.op = TWHEEL_OP_ADD,
			.flags = TWHEEL_DEADLINE,
			.data = i,
			.key = THEIRS,
		};

		KUNIT_ASSERT_EQ(test, run(test, &cmd), 0);
	}
	in_time = ktime_get_ns() < soon_ns;
	migrate_enable();
	for (i = 0; i < BEFORE + CROWD; i++) {
		read_soon(test, &record);
		wrong += record.data != i || record.due_ns != soon_ns + later_ns;
	}
	expect_nothing_to_read(test);
	postponed = nr_postponed(test) - postponed;
	KUNIT_EXPECT_LE(test, postponed, (u64)CROWD);
	if (!in_time || postponed < CROWD)
		return false;
	KUNIT_EXPECT_EQ(test, wrong, 0U);
	return true;
}

/*
 * Postponed events come after events that were armed for the same tick before, and among
 * themselves in the order of arming.
 */
static void crowd_that_is_postponed_keeps_its_order(struct kunit *test)
{
	make_words(test, CROWD + 1);
	attempt_in_time(test, NSEC_PER_SEC, postpone_in_order);
}

/* Add a plain event to a context on CLOCK_REALTIME, due when CLOCK_MONOTONIC is @due_ns. */
static void add_by_wall(struct kunit *test, struct context *wall, u64 due_ns)
{
	struct twheel_config config = { .clockid = CLOCK_REALTIME };
	struct twheel_cmd cmd = {
		.op = TWHEEL_OP_ADD,
		.flags = TWHEEL_ABS,
		.time_ns = due_ns + ktime_get_real_ns() - ktime_get_ns(),
	};
	struct context *mine = test->priv;

	test->priv = wall;
	KUNIT_EXPECT_EQ(test, twheel_context_configure(wall, &config), 0);
	KUNIT_EXPECT_EQ(test, run(test, &cmd), 0);
	test->priv = mine;
}

/* When the next record's event became READY, on CLOCK_MONOTONIC. */
static u64 read_fired_ns(struct kunit *test, struct context *context)
{
	struct twheel_record record = {};
	struct context *mine = test->priv;

	test->priv = context;
	sleep_until(twheel_context_readable(context), 500);
	read_record(test, &record, CONTEXT_NONBLOCK);
	test->priv = mine;
	if (context->clock != BASE_REALTIME)
		return record.fired_ns;
	return record.fired_ns - (ktime_get_real_ns() - ktime_get_ns());
}

/* Let softirqs run on this CPU only when a time has passed; false: it had before. */
static bool keep_softirqs_until(u64 time_ns)
{
	bool in_time;

	while (ktime_get_ns() + NSEC_PER_MSEC < time_ns)
		usleep_range(100, 200);
	local_bh_disable();
	in_time = ktime_get_ns() < time_ns;
	while (ktime_get_ns() < time_ns + 5 * NSEC_PER_MSEC)
		cpu_relax();
	local_bh_enable();
	return in_time;
}

static bool let_pass(struct kunit *test, u64 lead_ns)
{
	struct context *wall = twheel_context_create();
	u64 soon_ns, fired_ns, last_ns = 0;
	unsigned int i;
	bool in_time;

	KUNIT_ASSERT_NOT_NULL(test, wall);
	migrate_disable();
	soon_ns = make_crowd(test, 0, lead_ns, 0);
	add_by_wall(test, wall, soon_ns);
	in_time = keep_softirqs_until(soon_ns);
	migrate_enable();
	fired_ns = read_fired_ns(test, wall);
	for (i = 0; i < CROWD; i++)
		last_ns = read_fired_ns(test, test->priv);
	twheel_context_destroy(wall);
	if (in_time)
		KUNIT_EXPECT_LT(test, fired_ns, last_ns);
	return in_time;
}

/* Both are due at once, and the kernel calls hrtimers of CLOCK_MONOTONIC first. */
static void crowd_lets_an_event_of_another_clock_pass(struct kunit *test)
{
	make_words(test, CROWD);
	attempt_in_time(test, SOON_NS, let_pass);
}

/* --- anything goes ---------------------------------------------------------- */

/* One step in a hundred, or more, saw that an event had been postponed. */
static bool model_saw_enough(const struct deadline_model *model, u64 steps)
{
	return model->least > steps / 100;
}

/* On a machine that is slow, more is READY before anybody has looked, so take more steps. */
static bool model_needs_more(const struct deadline_model *model, u64 steps)
{
	return model->step < steps ||
	       (!model_saw_enough(model, steps) && model->step < 10 * steps);
}

static void events_agree_with_plain_arrays_at_every_step(struct kunit *test)
{
	struct deadline_model *model = kunit_kzalloc(test, sizeof(*model), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, model);
	model->test = test;
	model->shift = tick_shift(test);
	prandom_seed_state(&model->random, seed_of(test));
	make_words(test, MODEL_WORDS);
	migrate_disable();
	while (model_needs_more(model, rounds_of(MODEL_STEPS)) &&
	       READ_ONCE(test->status) == KUNIT_SUCCESS) {
		model_step(model);
		cond_resched();
	}
	model_end(model);
	migrate_enable();
	kunit_info(test, "%llu added, %llu cancelled, %llu completed; postponed %llu to %llu times, %llu by the context",
		   model->added, model->cancelled, model->completed, model->least,
		   model->most, nr_postponed(test));
	KUNIT_EXPECT_TRUE(test, model_saw_enough(model, rounds_of(MODEL_STEPS)));
}

/* --- races ------------------------------------------------------------------ */

/*
 * All CPUs but the first store later and later times into words of their own, while the
 * first CPU reads records and adds the events again. A record must not have a value that
 * was replaced before its time came. Exception: an event that is due when it is added, as
 * ADD reads the word a little before the clock.
 */
#define RACE_STORES	1000
#define RACE_OWN_WORDS	3

/*
 * If the CPUs seldom run at the same time, store more until events were postponed so often.
 */
#define RACE_POSTPONED	100
#define RACE_STORES_MAX	10000

/* A store on one CPU and a clock read on another are ordered if they are so far apart. */
#define RACE_MARGIN_NS	2000

/**
 * struct race_word - what was stored into a word, by its only writer
 * @nr: number of values.
 * @values: the values.
 * @replaced: the next value was stored before the time of this one.
 * @seen: a record had this value.
 */
struct race_word {
	unsigned int nr;
	u64 values[RACE_STORES_MAX + 1];
	bool replaced[RACE_STORES_MAX + 1];
	bool seen[RACE_STORES_MAX + 1];
};

/**
 * struct race - words that are stored to, and their one reader
 * @test: the test.
 * @words: the words.
 * @nr: number of words.
 * @next: number of words that have a writer.
 * @reader: the CPU that reads.
 * @writers: number of CPUs that are still storing.
 * @armed: the reader has armed all events.
 * @last: no more is stored, and the events were added after that.
 * @records: number of records read.
 * @wrong: number of records with a value that was never stored, or that came early.
 * @lost: number of events that did not come at the end.
 */
struct race {
	struct kunit *test;
	struct race_word *words;
	unsigned int nr;
	atomic_t next;
	unsigned int reader;
	atomic_t writers;
	struct completion armed;
	bool last;
	u64 records;
	unsigned int wrong;
	unsigned int lost;
};

static void race_store(struct race *race, unsigned int index)
{
	struct race_word *word = &race->words[index];
	u64 last_ns = word->values[word->nr - 1];
	u64 time_ns = max(last_ns + 1, ktime_get_ns() + get_random_u32() % 3000000);

	if (word->nr > RACE_STORES_MAX)
		return;
	word->values[word->nr] = time_ns;
	/* Pairs with race_find(). */
	smp_store_release(&word->nr, word->nr + 1);
	store(race->test, index, time_ns);
	/* Read the clock after all CPUs can see the word. */
	smp_mb();
	word->replaced[word->nr - 2] = ktime_get_ns() + RACE_MARGIN_NS < last_ns;
}

static bool race_goes_on(const struct race *race, unsigned int stores)
{
	return stores < RACE_OWN_WORDS * rounds_of(RACE_STORES) ||
	       (stores < RACE_OWN_WORDS * RACE_STORES_MAX &&
		nr_postponed(race->test) < RACE_POSTPONED);
}

static void race_write(struct race *race)
{
	unsigned int first = atomic_add_return(RACE_OWN_WORDS, &race->next) - RACE_OWN_WORDS;
	unsigned int i;

	wait_for_completion(&race->armed);
	for (i = 0; race_goes_on(race, i); i++) {
		race_store(race, first + get_random_u32() % RACE_OWN_WORDS);
		udelay(get_random_u32() % 100);
		/* Let some events become due. */
		if (i % 64 == 0)
			usleep_range(3000, 6000);
		cond_resched();
	}
	atomic_dec(&race->writers);
}

/* Return the index of a value of the word, or -ENOENT. */
static int race_find(const struct race_word *word, u64 time_ns)
{
	/* Pairs with race_store(). */
	unsigned int low = 0, high = smp_load_acquire(&word->nr);

	while (low < high) {
		unsigned int middle = (low + high) / 2;

		if (word->values[middle] == time_ns)
			return middle;
		if (word->values[middle] < time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return -ENOENT;
}

/* When the events were added. */
static u64 race_added_ns[NR_CPUS * RACE_OWN_WORDS];

static void race_add_again(struct race *race, unsigned int index)
{
	struct twheel_cmd cmd = {
		.op = TWHEEL_OP_ADD,
		.flags = TWHEEL_DEADLINE,
		.data = index,
		.key = index,
	};

	race->wrong += !!run(race->test, &cmd);
	race_added_ns[index] = ktime_get_ns();
}

static void race_was_read(struct race *race, const struct twheel_record *record)
{
	unsigned int index = record->data;
	struct race_word *word = &race->words[index];
	int which = race_find(word, record->due_ns);

	race->records++;
	if (which < 0 || record->fired_ns < record->due_ns ||
	    (race->last && which != word->nr - 1))
		race->wrong++;
	else if (record->fired_ns > race_added_ns[index])
		word->seen[which] = true;
}

/* Read some records; with @again, add the events again. */
static unsigned int race_read(struct race *race, bool again)
{
	struct twheel_record records[8];
	ssize_t i, bytes = read_records(race->test, records, ARRAY_SIZE(records),
					CONTEXT_NONBLOCK);
	unsigned int nr = bytes > 0 ? bytes / sizeof(records[0]) : 0;

	for (i = 0; i < nr; i++) {
		race_was_read(race, &records[i]);
		if (again)
			race_add_again(race, records[i].data);
	}
	return nr;
}

/* Read each event once more; return how many of them do not come. */
static unsigned int race_drain(struct race *race)
{
	unsigned int left = race->nr;

	sleep_until(!(left -= race_read(race, false)), 500);
	return left;
}

static void race_read_all(struct race *race)
{
	unsigned int i;

	for (i = 0; i < race->nr; i++)
		race_add_again(race, i);
	complete_all(&race->armed);
	while (atomic_read(&race->writers)) {
		race_read(race, true);
		usleep_range(20, 50);
	}
	race->lost = race_drain(race);
	/* No word changes any more: now each event comes for the last value. */
	for (i = 0; i < race->nr; i++)
		race_add_again(race, i);
	race->last = true;
	race->lost += race_drain(race);
}

static void race_run(void *data)
{
	struct race *race = data;

	if (smp_processor_id() == race->reader)
		race_read_all(race);
	else
		race_write(race);
}

static void stores_of_all_cpus_are_seen_in_time_and_lose_nothing(struct kunit *test)
{
	struct race race = {
		.test = test,
		.nr = (num_online_cpus() - 1) * RACE_OWN_WORDS,
		.reader = cpumask_first(cpu_online_mask),
		.writers = ATOMIC_INIT(num_online_cpus() - 1),
	};
	unsigned int i, k, seen = 0, replaced = 0, stale = 0;

	if (!race.nr)
		kunit_skip(test, "needs two CPUs");
	make_words(test, race.nr);
	race.words = kvcalloc(race.nr, sizeof(*race.words), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, race.words);
	init_completion(&race.armed);
	for (i = 0; i < race.nr; i++) {
		race.words[i].values[0] = ktime_get_ns() + 10 * NSEC_PER_MSEC;
		race.words[i].nr = 1;
		store(test, i, race.words[i].values[0]);
	}
	run_on_all_cpus(test, race_run, &race);
	for (i = 0; i < race.nr; i++) {
		const struct race_word *word = &race.words[i];

		for (k = 0; k < word->nr; k++) {
			seen += word->seen[k];
			replaced += word->replaced[k];
			stale += word->seen[k] && word->replaced[k];
		}
	}
	kunit_info(test, "%llu records, %u values seen, %u replaced in time, %llu times postponed",
		   race.records, seen, replaced, nr_postponed(test));
	KUNIT_EXPECT_EQ(test, stale, 0U);
	KUNIT_EXPECT_EQ(test, race.wrong, 0U);
	KUNIT_EXPECT_EQ(test, race.lost, 0U);
	KUNIT_EXPECT_GT(test, seen, 0U);
	KUNIT_EXPECT_GT(test, replaced, 0U);
	KUNIT_EXPECT_GT(test, nr_postponed(test), 0ULL);
	expect_nothing_to_read(test);
	kvfree(race.words);
}

static struct kunit_case deadline_cases[] = {
	KUNIT_CASE(word_that_says_never_parks_its_event),
	KUNIT_CASE(postponed_event_keeps_its_slack),
	KUNIT_CASE(postponed_operation_keeps_its_watches),
	KUNIT_CASE(setting_the_clock_back_makes_no_word_early),
	KUNIT_CASE(crowd_that_waits_on_wakes_nobody_and_does_not_expire),
	KUNIT_CASE(crowd_that_is_postponed_keeps_its_order),
	KUNIT_CASE(crowd_lets_an_event_of_another_clock_pass),
	KUNIT_CASE(events_agree_with_plain_arrays_at_every_step),
	KUNIT_CASE(stores_of_all_cpus_are_seen_in_time_and_lose_nothing),
	{}
};

static struct kunit_suite deadline_suite = {
	.name = "twheel_deadline",
	.init = deadline_suite_init,
	.exit = deadline_suite_exit,
	.test_cases = deadline_cases,
};

kunit_test_suite(deadline_suite);

MODULE_DESCRIPTION("KUnit suite of twheel's deadlines in shared memory");
MODULE_LICENSE("GPL");
TWHEEL_IMPORT_FOR_KUNIT();
