// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of contexts: only what can be seen or made from inside the module, such as
 * the last generation of a slot, pages that are given back, and the counters at every
 * step.  tools/test/device proves what a process sees.
 */
#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/random.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "commands.h"
#include "operation_model.h"
#include "options.h"
#include "patience.h"

#define MODEL_STEPS	50000

static int context_suite_init(struct kunit *test)
{
	test->priv = twheel_context_create();
	KUNIT_ASSERT_NOT_NULL(test, test->priv);
	return 0;
}

static void context_suite_exit(struct kunit *test)
{
	twheel_context_destroy(test->priv);
}

/* The event of an id, from inside. */
static struct event *event_of(struct kunit *test, u64 id)
{
	struct context *context = test->priv;
	u32 number = (u32)id >> EVENT_INDEX_BITS;
	struct event_page *page;

	KUNIT_ASSERT_LT(test, number, context->events.nr_numbers);
	page = context->events.numbers[number].page;
	KUNIT_ASSERT_NOT_NULL(test, page);
	return &page->slots[id % EVENT_PAGE_SLOTS];
}

/* --- ids and memory --------------------------------------------------------- */

static void slot_with_the_last_generation_is_retired(struct kunit *test)
{
	struct event *event;
	u64 id, i;

	KUNIT_ASSERT_EQ(test, add(test, HOUR_NS, &id), 0);
	event = event_of(test, id);
	event->node.tag = EVENT_GENERATION_MAX;
	id = (u64)EVENT_GENERATION_MAX << 32 | (u32)id;
	KUNIT_EXPECT_EQ(test, cancel(test, id), 0);
	for (i = 0; i < 200; i++) {
		u64 other;

		KUNIT_ASSERT_EQ(test, add(test, HOUR_NS, &other), 0);
		KUNIT_ASSERT_NE(test, (u32)other, (u32)id);
	}
}

static void page_of_retired_slots_leaves_its_number_unused(struct kunit *test)
{
	enum { NR = 2 * EVENT_PAGE_EVENTS };
	struct context *context = test->priv;
	u64 *ids = kunit_kcalloc(test, NR, sizeof(*ids), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, ids);
	for (i = 0; i < NR; i++)
		KUNIT_ASSERT_EQ(test, add(test, HOUR_NS, &ids[i]), 0);
	/* Two pages become empty and one of them is kept: use up the slots of both. */
	for (i = 0; i < NR; i++) {
		event_of(test, ids[i])->node.tag = EVENT_GENERATION_MAX;
		ids[i] = (u64)EVENT_GENERATION_MAX << 32 | (u32)ids[i];
	}
	for (i = 0; i < NR; i++)
		KUNIT_ASSERT_EQ(test, cancel(test, ids[i]), 0);
	KUNIT_EXPECT_EQ(test, context->events.nr_numbers, 2U);
	KUNIT_EXPECT_EQ(test, add(test, HOUR_NS, &ids[0]), 0);
	KUNIT_EXPECT_EQ(test, (u32)ids[0] >> EVENT_INDEX_BITS, 2U);
	KUNIT_EXPECT_EQ(test, context->events.nr_numbers, 3U);
}

/* Cancel all events, page by page in a random order; an empty page is given back. */
static void cancel_page_by_page(struct kunit *test, const u64 *ids, unsigned int pages)
{
	unsigned int step = 1 + 2 * (get_random_u32() % (pages / 2)), i, k;

	for (i = 0; i < pages; i++) {
		const u64 *page = ids + i * step % pages * EVENT_PAGE_EVENTS;

		for (k = 0; k < EVENT_PAGE_EVENTS; k++)
			KUNIT_ASSERT_EQ(test, cancel(test, page[k]), 0);
	}
}

/* Also while the array of page numbers grows and pages are given back in any order. */
static void id_leads_to_its_event_wherever_its_page_is(struct kunit *test)
{
	enum { PAGES = 64, NR = PAGES * EVENT_PAGE_EVENTS, ROUNDS = 4 };
	u64 *ids = kvcalloc(NR * ROUNDS, sizeof(*ids), GFP_KERNEL);
	struct context *context = test->priv;
	unsigned int round, i;

	KUNIT_ASSERT_NOT_NULL(test, ids);
	for (round = 0; round < ROUNDS; round++) {
		u64 *mine = ids + round * NR;

		for (i = 0; i < NR; i++) {
			KUNIT_ASSERT_EQ(test, add(test, HOUR_NS + i, &mine[i]), 0);
			event_of(test, mine[i])->data = i;
		}
		for (i = 0; i < NR; i++) {
			struct event *event = event_find(&context->events, mine[i]);

			KUNIT_ASSERT_NOT_NULL(test, event);
			KUNIT_ASSERT_EQ(test, event->data, (u64)i);
			KUNIT_ASSERT_EQ(test, event_id(event), mine[i]);
		}
		for (i = 0; i < round * NR; i++)
			KUNIT_ASSERT_NULL(test, event_find(&context->events, ids[i]));
		cancel_page_by_page(test, mine, PAGES);
	}
	KUNIT_EXPECT_EQ(test, context->events.nr_numbers, (u32)PAGES);
	kvfree(ids);
}

static void empty_pages_but_one_are_given_back(struct kunit *test)
{
	enum { NR = 200 };
	struct context *context = test->priv;
	u64 *ids = kunit_kcalloc(test, NR, sizeof(*ids), GFP_KERNEL);
	unsigned int i, pages = 0;

	KUNIT_ASSERT_NOT_NULL(test, ids);
	for (i = 0; i < NR; i++)
		KUNIT_ASSERT_EQ(test, add(test, HOUR_NS, &ids[i]), 0);
	for (i = 0; i < NR; i++)
		KUNIT_ASSERT_EQ(test, cancel(test, ids[i]), 0);
	for (i = 0; i < context->events.nr_numbers; i++)
		pages += !!context->events.numbers[i].page;
	KUNIT_EXPECT_EQ(test, pages, 1U);
}

/* --- what is ARMED ---------------------------------------------------------- */

/*
 * ENTER calls context_has_armed() without a lock, also while another task runs commands: a
 * far event counts as ARMED at every moment, however many events are READY.
 */
static void armed_event_is_seen_while_a_batch_adds_and_cancels(struct kunit *test)
{
	struct context *context = test->priv;
	struct context_batch *batch = &context->batch;
	unsigned int i;
	u64 far;

	KUNIT_EXPECT_FALSE(test, context_has_armed(context));
	KUNIT_ASSERT_EQ(test, add(test, DAY_NS, &far), 0);
	KUNIT_EXPECT_TRUE(test, context_has_armed(context));
	KUNIT_ASSERT_EQ(test, twheel_context_begin(context, CONTEXT_BLOCK), 0);
	for (i = 0; i < 10; i++) {
		struct twheel_cmd cmd = { .op = TWHEEL_OP_ADD };

		KUNIT_EXPECT_EQ(test, twheel_command_run(batch, &cmd), 0);
		KUNIT_EXPECT_TRUE(test, context_has_armed(context));
		if (i % 2)
			continue;
		cmd = (struct twheel_cmd){ .op = TWHEEL_OP_CANCEL, .id = cmd.id };
		KUNIT_EXPECT_EQ(test, twheel_command_run(batch, &cmd), 0);
		KUNIT_EXPECT_TRUE(test, context_has_armed(context));
	}
	twheel_context_end(batch);
	KUNIT_EXPECT_TRUE(test, context_has_armed(context));
	KUNIT_EXPECT_EQ(test, cancel(test, far), 0);
	KUNIT_EXPECT_FALSE(test, context_has_armed(context));
}

/* --- periodic events -------------------------------------------------------- */

/* An unread periodic event costs nothing, however many of its turns pass. */
static void unread_periodic_event_is_on_no_wheel(struct kunit *test)
{
	struct context *context = test->priv;
	struct twheel_cmd cmd = {
		.op = TWHEEL_OP_ADD,
		.time_ns = NSEC_PER_MSEC,
		.interval_ns = 2 * NSEC_PER_MSEC,
	};
	u64 id;

	KUNIT_ASSERT_EQ(test, run(test, &cmd), 0);
	id = cmd.id;
	KUNIT_ASSERT_EQ(test, twheel_context_wait(context), 0);
	KUNIT_EXPECT_EQ(test, query(test, id), TWHEEL_READY);
	KUNIT_EXPECT_PTR_EQ(test, context->ready.next, &event_of(test, id)->ready);
	usleep_range(8000, 9000);
	KUNIT_EXPECT_EQ(test, READ_ONCE(context->nr_ready), 1ULL);
	KUNIT_EXPECT_EQ(test, query(test, id), TWHEEL_READY);
	KUNIT_EXPECT_EQ(test, cancel(test, id), 0);
	expect_nothing_to_read(test);
}

/* --- when a context is readable --------------------------------------------- */

static void context_is_readable_when_it_is_full(struct kunit *test)
{
	struct twheel_config config = {
		.clockid = CLOCK_MONOTONIC,
		.max_events = 2,
		.wake_count = 3,
		.wake_delay_ns = HOUR_NS,
	};
	u64 ids[2];

	KUNIT_ASSERT_EQ(test, twheel_context_configure(test->priv, &config), 0);
	KUNIT_EXPECT_EQ(test, add(test, 0, &ids[0]), 0);
	KUNIT_EXPECT_FALSE(test, twheel_context_readable(test->priv));
	KUNIT_EXPECT_EQ(test, add(test, HOUR_NS, &ids[1]), 0);
	KUNIT_EXPECT_TRUE(test, twheel_context_readable(test->priv));
	KUNIT_EXPECT_EQ(test, cancel(test, ids[1]), 0);
	KUNIT_EXPECT_FALSE(test, twheel_context_readable(test->priv));
}

/* --- operations ------------------------------------------------------------- */

static void operations_agree_with_plain_arrays_at_every_step(struct kunit *test)
{
	struct operation_model *model = kunit_kzalloc(test, sizeof(*model),
						      GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, model);
	model->test = test;
	prandom_seed_state(&model->random, seed_of(test));
	while (model->step < rounds_of(MODEL_STEPS)) {
		model_step(model);
		cond_resched();
	}
	model_end(model);
	kunit_info(test, "%llu added, %llu completed, %llu cancelled", model->added,
		   model->completed, model->cancelled);
	KUNIT_EXPECT_GT(test, model->completed, rounds_of(MODEL_STEPS) / 100ULL);
}

/* --- counters --------------------------------------------------------------- */

/* Random commands: the test counts, and the context must count the same. */
static void counters_add_up_at_every_step(struct kunit *test)
{
	enum { STEPS = 20000, SLOTS = 200 };
	struct context *context = test->priv;
	u64 added = 0, cancelled = 0, finished = 0;
	u64 *ids = kunit_kcalloc(test, SLOTS, sizeof(*ids), GFP_KERNEL);
	unsigned int step;

	KUNIT_ASSERT_NOT_NULL(test, ids);
	for (step = 0; step < rounds_of(STEPS); step++) {
		u32 number = get_random_u32();
		u64 *id = &ids[number % SLOTS];
		u64 delay_ns = number % (2 * NSEC_PER_MSEC);
		struct twheel_record record;

		switch ((number >> 16) % 8) {
		case 0 ... 3:
			if (query(test, *id) != -ENOENT)
				break;
			KUNIT_ASSERT_EQ(test, add(test, delay_ns, id), 0);
			added++;
			break;
		case 4:
			modify(test, *id, delay_ns);
			break;
		case 5:
			cancelled += !cancel(test, *id);
			break;
		default:
			finished += read_records(test, &record, 1,
						 CONTEXT_NONBLOCK) > 0;
		}
		KUNIT_ASSERT_EQ(test, context->counts.added, added);
		KUNIT_ASSERT_EQ(test, context->counts.cancelled, cancelled);
		KUNIT_ASSERT_EQ(test, context->counts.finished, finished);
		KUNIT_ASSERT_LE(test, READ_ONCE(context->nr_ready),
				added - cancelled - finished);
	}
	while (added > cancelled + finished) {
		struct twheel_record record;

		read_record(test, &record, CONTEXT_BLOCK);
		KUNIT_ASSERT_GE(test, record.fired_ns, record.due_ns);
		finished++;
	}
	KUNIT_EXPECT_EQ(test, context->counts.finished, finished);
	KUNIT_EXPECT_FALSE(test, twheel_context_readable(context));
}

/* --- the budget of a CPU ------------------------------------------------------ */

#define RIVAL_CALLS	100

/**
 * struct rivals - a timer whose function takes its time, beside events on another clock
 * @timer: the timer, on this CPU as the events are.
 * @linger_ns: how long the timer's function takes.
 * @calls: number of calls to make, each for the next tick.
 * @nr: number of calls so far.
 * @at_ns: when each call began, on CLOCK_MONOTONIC.
 * @ahead_ns: how far the clock of the events is ahead of that.
 */
struct rivals {
	struct twheel_timer timer;
	u64 linger_ns;
	unsigned int calls;
	unsigned int nr;
	u64 at_ns[RIVAL_CALLS];
	s64 ahead_ns;
};

static void rival_call(struct twheel_timer *timer)
{
	struct rivals *rivals = container_of(timer, struct rivals, timer);
	u64 now_ns = ktime_get_ns();

	rivals->at_ns[rivals->nr] = now_ns;
	if (rivals->nr + 1 < rivals->calls)
		twheel_timer_arm(timer, 0, 0, TWHEEL_TIMER_REL);
	while (ktime_get_ns() < now_ns + rivals->linger_ns)
		cpu_relax();
	/* Pairs with rivals_wait(). */
	smp_store_release(&rivals->nr, rivals->nr + 1);
}

static struct rivals *rivals_make(struct kunit *test, u64 linger_ns, unsigned int calls)
{
	struct twheel_config config = {
		.flags = TWHEEL_CONFIG_CPU,
		.clockid = CLOCK_BOOTTIME,
		.cpu = smp_processor_id(),
	};
	struct rivals *rivals = kunit_kzalloc(test, sizeof(*rivals), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, rivals);
	KUNIT_ASSERT_EQ(test, twheel_context_configure(test->priv, &config), 0);
	twheel_timer_setup(&rivals->timer, rival_call);
	rivals->linger_ns = linger_ns;
	rivals->calls = calls;
	rivals->ahead_ns = ktime_to_ns(ktime_mono_to_any(0, TK_OFFS_BOOT));
	return rivals;
}

static void rivals_wait(struct rivals *rivals)
{
	/* Pairs with rival_call(). */
	while (smp_load_acquire(&rivals->nr) < rivals->calls)
		usleep_range(1000, 2000);
}

/*
 * Arm the timer, and an event for @after_ns later; wait for the event and for the last call
 * of the timer's function. Return when the event fired, on CLOCK_MONOTONIC, or 0 if the
 * machine stood still until they were due.
 */
static u64 rivals_meet(struct kunit *test, struct rivals *rivals, u64 after_ns)
{
	u64 due_ns = ktime_get_ns() + 20 * NSEC_PER_MSEC;
	struct twheel_cmd cmd = {
		.op = TWHEEL_OP_ADD,
		.flags = TWHEEL_ABS,
		.time_ns = due_ns + rivals->ahead_ns + after_ns,
	};
	struct twheel_record record;
	bool in_time;

	rivals->nr = 0;
	twheel_timer_arm(&rivals->timer, due_ns, 0, TWHEEL_TIMER_ABS);
	KUNIT_EXPECT_EQ(test, run(test, &cmd), 0);
	in_time = ktime_get_ns() < due_ns;
	read_record(test, &record, CONTEXT_BLOCK);
	rivals_wait(rivals);
	return in_time ? record.fired_ns - rivals->ahead_ns : 0;
}

/* An event that becomes due while a timer of a module runs again and again gets the next turn. */
static void bases_of_a_cpu_take_turns(struct kunit *test)
{
	u64 after_ns = 10 * NSEC_PER_MSEC, fired_ns;
	unsigned int i, nr = 0, tries = 0;
	struct rivals *rivals;

	migrate_disable();
	rivals = rivals_make(test, 1500 * NSEC_PER_USEC, RIVAL_CALLS);
	do {
		fired_ns = rivals_meet(test, rivals, after_ns);
	} while (!fired_ns && ++tries < 20);
	migrate_enable();
	for (i = 0; i < RIVAL_CALLS; i++)
		nr += rivals->at_ns[i] > rivals->at_ns[0] + after_ns &&
		      rivals->at_ns[i] < fired_ns;
	/*
	 * The call that was running then, one that came sooner after a pause, and some to
	 * spare.
	 */
	KUNIT_EXPECT_LE(test, nr, 5U);
	twheel_timer_shutdown(&rivals->timer);
}

/* --- in hard interrupt context ---------------------------------------------- */

/* What the first wake-up found of those who poll a file, or wait to read. */
struct witness {
	wait_queue_entry_t entry;
	struct context *context;
	u64 nr_ready;
	bool in_hardirq;
	bool woken;
};

static int witness_wake(wait_queue_entry_t *entry, unsigned int mode, int sync, void *key)
{
	struct witness *witness = container_of(entry, struct witness, entry);

	if (witness->woken)
		return 0;
	witness->nr_ready = READ_ONCE(witness->context->nr_ready);
	witness->in_hardirq = in_hardirq();
	/* Pairs with wait_for_ready(). */
	smp_store_release(&witness->woken, true);
	return 0;
}

static void wait_for_ready(struct kunit *test, const struct witness *witness, u64 nr)
{
	/* Pairs with witness_wake(). */
	KUNIT_EXPECT_TRUE(test, sleep_until(smp_load_acquire(&witness->woken), 1000));
	KUNIT_EXPECT_TRUE(test, sleep_until(READ_ONCE(witness->context->nr_ready) == nr,
					    1000));
}

/* Arm @nr events for one time; false: it may have come before all were armed. */
static bool arm_at_once(struct kunit *test, unsigned int nr, u64 lead_ns)
{
	struct twheel_cmd cmd = {
		.op = TWHEEL_OP_ADD,
		.flags = TWHEEL_ABS,
		.time_ns = ktime_get_ns() + lead_ns,
	};
	unsigned int i;

	for (i = 0; i < nr; i++)
		KUNIT_EXPECT_EQ(test, run(test, &cmd), 0);
	return ktime_get_ns() + NSEC_PER_MSEC / 2 < cmd.time_ns;
}

/* Let @nr events of one time wake; false: what was found says nothing. */
static bool watch(struct kunit *test, struct witness *witness, unsigned int nr, u64 lead_ns)
{
	struct twheel_record record;
	unsigned int i;
	bool in_time;

	*witness = (struct witness){ .context = test->priv };
	init_waitqueue_func_entry(&witness->entry, witness_wake);
	add_wait_queue(&witness->context->pollers, &witness->entry);
	in_time = arm_at_once(test, nr, lead_ns);
	wait_for_ready(test, witness, nr);
	remove_wait_queue(&witness->context->pollers, &witness->entry);
	for (i = 0; i < nr; i++)
		read_record(test, &record, CONTEXT_BLOCK);
	return in_time;
}

static bool attempt_alone(struct kunit *test, u64 lead_ns)
{
	struct witness witness;

	if (!watch(test, &witness, 1, lead_ns))
		return false;
	KUNIT_EXPECT_TRUE(test, witness.in_hardirq);
	KUNIT_EXPECT_EQ(test, witness.nr_ready, 1ULL);
	return true;
}

static void lone_event_is_ready_in_the_hard_interrupt(struct kunit *test)
{
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		kunit_skip(test, "wake-ups may sleep");
	attempt_in_time(test, 2 * NSEC_PER_MSEC, attempt_alone);
}

/*
 * The events are near enough to be on level 0 of the wheel: a crowd that has to be moved
 * down first is left to the softirq whole.
 */
static void hard_interrupt_leaves_a_crowd_to_the_softirq(struct kunit *test)
{
	enum { CROWD = 30, ATTEMPTS = 1000 };
	u64 lead_ns = 3 * NSEC_PER_MSEC;
	struct witness witness;
	unsigned int i;

	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		kunit_skip(test, "wake-ups may sleep");
	for (i = 0; i < ATTEMPTS; i++)
		if (watch(test, &witness, CROWD, lead_ns) && witness.in_hardirq)
			break;
	KUNIT_EXPECT_LT(test, i, (unsigned int)ATTEMPTS);
	KUNIT_EXPECT_LE(test, witness.nr_ready, 8ULL);
}

/* --- the same beside tasks that wait for more records ------------------------ */

#define READERS_MAX	20

static int read_until_signal(void *context)
{
	allow_signal(SIGTERM);
	twheel_context_wait(context);
	while (!kthread_should_stop())
		usleep_range(100, 200);
	return 0;
}

static unsigned int nr_readers(struct context *context)
{
	struct list_head *entry;
	unsigned int nr = 0;

	spin_lock_irq(&context->readers.lock);
	list_for_each(entry, &context->readers.head)
		nr++;
	spin_unlock_irq(&context->readers.lock);
	return nr;
}

static void stop_readers(struct task_struct **tasks, unsigned int nr)
{
	while (nr--) {
		send_sig(SIGTERM, tasks[nr], 0);
		kthread_stop(tasks[nr]);
	}
}

/* Let tasks wait in read(); false: they are not as many. */
static bool start_readers(struct kunit *test, struct task_struct **tasks, unsigned int nr)
{
	struct context *context = test->priv;
	unsigned int i;

	for (i = 0; i < nr; i++) {
		tasks[i] = kthread_run(read_until_signal, context, "twheel-reader");
		if (IS_ERR(tasks[i]))
			break;
	}
	if (i == nr && sleep_until(nr_readers(context) == nr, 1000))
		return true;
	stop_readers(tasks, i);
	KUNIT_FAIL(test, "%u of %u readers wait", nr_readers(context), nr);
	return false;
}

/*
 * Let one event wake those who read(), with a witness behind @nr tasks for which it is not
 * enough.  There is a wake-up because a task in ENTER might need only one record.
 */
static bool watch_behind(struct kunit *test, struct witness *witness, unsigned int nr,
			 u64 lead_ns)
{
	struct task_struct *tasks[READERS_MAX];
	struct context *context = test->priv;
	struct twheel_record record;
	bool in_time;

	context->wake_count = 1000;
	context->wake_delay_ns = U64_MAX;
	context->nr_waiting = 1;
	if (!start_readers(test, tasks, nr))
		return true;
	*witness = (struct witness){ .context = context };
	init_waitqueue_func_entry(&witness->entry, witness_wake);
	add_wait_queue_exclusive(&context->readers, &witness->entry);
	in_time = arm_at_once(test, 1, lead_ns);
	wait_for_ready(test, witness, 1);
	remove_wait_queue(&context->readers, &witness->entry);
	stop_readers(tasks, nr);
	context->nr_waiting = 0;
	context->wake_count = 1;
	read_record(test, &record, CONTEXT_BLOCK);
	return in_time;
}

static bool attempt_behind_few(struct kunit *test, u64 lead_ns)
{
	struct witness witness = {};

	if (!watch_behind(test, &witness, 7, lead_ns))
		return false;
	KUNIT_EXPECT_TRUE(test, witness.in_hardirq);
	return true;
}

static bool attempt_behind_many(struct kunit *test, u64 lead_ns)
{
	struct witness witness = {};

	if (!watch_behind(test, &witness, READERS_MAX, lead_ns))
		return false;
	KUNIT_EXPECT_TRUE(test, witness.woken);
	KUNIT_EXPECT_FALSE(test, witness.in_hardirq);
	return true;
}

static void hard_interrupt_looks_at_few_of_the_tasks_that_wait(struct kunit *test)
{
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		kunit_skip(test, "wake-ups may sleep");
	attempt_in_time(test, 2 * NSEC_PER_MSEC, attempt_behind_few);
	attempt_in_time(test, 2 * NSEC_PER_MSEC, attempt_behind_many);
}

/* --- a task that waits for the mutex ---------------------------------------- */

/* More than a long call does in ten turns. */
#define MANY	6000

/**
 * struct long_call - a task that lists all events, and reads them
 * @test: the test.
 * @entries: for MANY entries.
 * @records: for MANY records.
 * @nr_listed: how many were listed.
 * @read: how many bytes were read.
 * @nr_sleeps: how often the task slept in both.
 * @done: both calls have returned.
 */
struct long_call {
	struct kunit *test;
	struct twheel_entry *entries;
	struct twheel_record *records;
	ssize_t nr_listed;
	ssize_t read;
	unsigned long nr_sleeps;
	struct completion done;
};

static int list_and_read(void *arg)
{
	struct long_call *call = arg;
	unsigned long nr_sleeps = current->nvcsw;
	u64 cursor = 0;

	call->nr_listed = list_entries(call->test, &cursor, call->entries, MANY);
	call->read = read_records(call->test, call->records, MANY, CONTEXT_BLOCK);
	call->nr_sleeps = current->nvcsw - nr_sleeps;
	complete(&call->done);
	return 0;
}

/* As a task of low priority, below others that have its CPU for ever. */
static void long_calls_do_not_wait_for_a_task_that_has_no_cpu(struct kunit *test)
{
	struct long_call call = {
		.test = test,
		.entries = kunit_kcalloc(test, MANY, sizeof(*call.entries), GFP_KERNEL),
		.records = kunit_kcalloc(test, MANY, sizeof(*call.records), GFP_KERNEL),
	};
	struct context *context = test->priv;
	unsigned int i;
	bool over;
	u64 id;

	KUNIT_ASSERT_NOT_NULL(test, call.entries);
	KUNIT_ASSERT_NOT_NULL(test, call.records);
	for (i = 0; i < MANY; i++)
		KUNIT_ASSERT_EQ(test, add(test, 0, &id), 0);
	init_completion(&call.done);
	atomic_inc(&context->nr_locking);
	KUNIT_ASSERT_FALSE(test, IS_ERR(kthread_run(list_and_read, &call, "twheel-long")));
	over = wait_patiently(&call.done);
	KUNIT_EXPECT_TRUE(test, over);
	/* If it does wait, it goes on now. */
	atomic_dec(&context->nr_locking);
	while (!over) {
		wake_up_all(&context->giving_way);
		over = wait_for_completion_timeout(&call.done, 1);
	}
	KUNIT_EXPECT_EQ(test, call.nr_listed, (ssize_t)MANY);
	KUNIT_EXPECT_EQ(test, call.read, (ssize_t)(MANY * sizeof(*call.records)));
	/* Once in each call, unless a task is woken for nothing. */
	KUNIT_EXPECT_LE(test, call.nr_sleeps, 4UL);
}

static struct kunit_case context_cases[] = {
	KUNIT_CASE(armed_event_is_seen_while_a_batch_adds_and_cancels),
	KUNIT_CASE(slot_with_the_last_generation_is_retired),
	KUNIT_CASE(page_of_retired_slots_leaves_its_number_unused),
	KUNIT_CASE(id_leads_to_its_event_wherever_its_page_is),
	KUNIT_CASE(empty_pages_but_one_are_given_back),
	KUNIT_CASE(unread_periodic_event_is_on_no_wheel),
	KUNIT_CASE(context_is_readable_when_it_is_full),
	KUNIT_CASE(bases_of_a_cpu_take_turns),
	KUNIT_CASE(lone_event_is_ready_in_the_hard_interrupt),
	KUNIT_CASE(hard_interrupt_leaves_a_crowd_to_the_softirq),
	KUNIT_CASE(hard_interrupt_looks_at_few_of_the_tasks_that_wait),
	KUNIT_CASE(long_calls_do_not_wait_for_a_task_that_has_no_cpu),
	KUNIT_CASE(operations_agree_with_plain_arrays_at_every_step),
	KUNIT_CASE(counters_add_up_at_every_step),
	{}
};

static struct kunit_suite context_suite = {
	.name = "twheel_context",
	.init = context_suite_init,
	.exit = context_suite_exit,
	.test_cases = context_cases,
};

kunit_test_suite(context_suite);

MODULE_DESCRIPTION("KUnit suite of twheel's contexts");
MODULE_LICENSE("GPL");
TWHEEL_IMPORT_FOR_KUNIT();
