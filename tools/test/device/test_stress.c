// SPDX-License-Identifier: GPL-2.0
/*
 * Threads that arm, modify, cancel and read the events of one context at once,
 * with an account of every event.
 *
 * Each thread owns a table of entries, one for each event that it will ever
 * arm; the data of an event leads to its entry.  An event ends by a record or
 * by a CANCEL that returned 0, and must end exactly once.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "device.h"
#include "util.h"

#define MAX_THREADS	4
#define BATCH		16

struct entry {
	_Atomic __u64 id;		/* 0 until known to all threads */
	__u64 not_before_ns;		/* of its owner: since the last arming */
	__u64 record_id;
	__u64 record_due_ns;
	atomic_uchar records;
	atomic_uchar cancels;
};

struct stress;

struct commander {
	struct stress *stress;
	struct entry *entries;
	atomic_size_t armed;		/* the first entries, in use so far */
	__u64 seed;
};

struct stress {
	int fd;
	size_t threads;
	size_t nr;			/* entries of each thread */
	struct entry *entries;		/* threads * nr */
	struct commander commanders[MAX_THREADS];
	__u64 longest_ns;		/* the longest delay */
	atomic_size_t running;
};

static __u64 random_below(struct commander *commander, __u64 end)
{
	return next_random(&commander->seed) % end;
}

/* One of the events that a thread armed last, of which some may have ended. */
static struct entry *recent_entry(struct commander *commander,
				  struct commander *owner)
{
	size_t armed = owner->armed;
	size_t back = 1 + random_below(commander, 4 * BATCH);

	return &owner->entries[back < armed ? armed - back : 0];
}

static void arm_batch(struct commander *commander)
{
	struct stress *stress = commander->stress;
	__u64 delays_ns[BATCH], before_ns;
	struct twheel_cmd cmds[BATCH];
	size_t nr = stress->nr - commander->armed, i;
	struct entry *entries;

	if (nr > BATCH)
		nr = BATCH;
	entries = commander->entries + commander->armed;
	for (i = 0; i < nr; i++) {
		delays_ns[i] = random_below(commander, stress->longest_ns);
		cmds[i] = make_add(0, delays_ns[i],
				   entries + i - stress->entries);
	}
	before_ns = monotonic_ns();
	ASSERT_EQ(submit(stress->fd, cmds, nr), nr);
	for (i = 0; i < nr; i++) {
		ASSERT_EQ(cmds[i].result, 0);
		entries[i].not_before_ns = before_ns + delays_ns[i];
		entries[i].id = cmds[i].id;
	}
	commander->armed += nr;
}

static void modify_one(struct commander *commander)
{
	struct entry *entry = recent_entry(commander, commander);
	__u64 delay_ns = random_below(commander,
				      commander->stress->longest_ns);
	__u64 before_ns = monotonic_ns();
	int result = modify(commander->stress->fd, entry->id, 0, delay_ns);

	if (!result)
		entry->not_before_ns = before_ns + delay_ns;
	else
		ASSERT_EQ(result, -ENOENT);
}

/* Cancel an event of any thread. */
static void cancel_one(struct commander *commander)
{
	struct stress *stress = commander->stress;
	size_t owner = random_below(commander, stress->threads);
	struct entry *entry = recent_entry(commander,
					   &stress->commanders[owner]);
	int result;

	if (!entry->id)
		return;
	result = cancel(stress->fd, entry->id);
	if (!result)
		entry->cancels++;
	else
		ASSERT_EQ(result, -ENOENT);
}

static void query_one(struct commander *commander)
{
	struct entry *entry = recent_entry(commander, commander);
	int state = query(commander->stress->fd, entry->id, NULL);

	if (state != TWHEEL_ARMED && state != TWHEEL_READY)
		ASSERT_EQ(state, -ENOENT);
}

static void *run_commander(void *arg)
{
	struct commander *commander = arg;
	size_t i;

	while (commander->armed < commander->stress->nr) {
		arm_batch(commander);
		for (i = 0; i < BATCH / 2; i++) {
			modify_one(commander);
			cancel_one(commander);
		}
		query_one(commander);
	}
	commander->stress->running--;
	return NULL;
}

static void account_record(struct stress *stress,
			   const struct twheel_record *record)
{
	struct entry *entry;

	check_record(record);
	ASSERT_LT(record->data, stress->threads * stress->nr);
	entry = &stress->entries[record->data];
	entry->record_id = record->id;
	entry->record_due_ns = record->due_ns;
	entry->records++;
}

static void *run_reader(void *arg)
{
	struct stress *stress = arg;
	struct twheel_record records[100];
	long ret, i;

	do {
		poll_events(stress->fd, 10);
		ret = read_records(stress->fd, records, ARRAY_SIZE(records));
		for (i = 0; i < ret; i++)
			account_record(stress, &records[i]);
		if (ret < 0)
			ASSERT_EQ(ret, -EAGAIN);
	} while (stress->running || get_counters(stress->fd).armed ||
		 get_counters(stress->fd).ready);
	return NULL;
}

static void check_account(struct stress *stress)
{
	size_t nr = stress->threads * stress->nr, cancels = 0, records = 0, i;
	struct counters counters = get_counters(stress->fd);

	for (i = 0; i < nr; i++) {
		struct entry *entry = &stress->entries[i];

		test_about("event %zu", i);
		ASSERT_EQ(entry->cancels + entry->records, 1);
		if (entry->records) {
			ASSERT_EQ(entry->record_id, entry->id);
			ASSERT_GE(entry->record_due_ns, entry->not_before_ns);
		}
		cancels += entry->cancels;
		records += entry->records;
	}
	test_about("the sums");
	check_sum(&counters);
	ASSERT_EQ(counters.added, nr);
	ASSERT_EQ(counters.armed, 0);
	ASSERT_EQ(counters.ready, 0);
	ASSERT_EQ(counters.cancelled, cancels);
	ASSERT_EQ(counters.finished, records);
	ASSERT_EQ(counters.records, records);
}

static void stress(size_t threads, size_t readers, size_t events,
		   __u64 longest_ns)
{
	pthread_t command_threads[MAX_THREADS], read_threads[MAX_THREADS];
	struct stress stress = {
		.fd = device_open_nonblock(),
		.threads = threads,
		.nr = events / threads,
		.longest_ns = longest_ns,
		.running = threads,
	};
	size_t i;

	stress.entries = map_pages(threads * stress.nr *
				   sizeof(*stress.entries));
	for (i = 0; i < threads; i++) {
		struct commander *commander = &stress.commanders[i];

		commander->stress = &stress;
		commander->entries = stress.entries + i * stress.nr;
		commander->seed = i;
	}
	for (i = 0; i < threads; i++)
		command_threads[i] = start_thread(run_commander,
						  &stress.commanders[i]);
	for (i = 0; i < readers; i++)
		read_threads[i] = start_thread(run_reader, &stress);
	for (i = 0; i < threads; i++)
		join_thread(command_threads[i]);
	for (i = 0; i < readers; i++)
		join_thread(read_threads[i]);
	check_account(&stress);
}

TEST(stress_events_due_at_once_end_exactly_once)
{
	stress(2, 1, test_count(80000), NSEC_PER_USEC);
}

TEST(stress_events_due_within_a_tick_end_exactly_once)
{
	stress(2, 1, test_count(80000), 65 * NSEC_PER_USEC);
}

TEST(stress_events_due_soon_end_exactly_once)
{
	stress(3, 1, test_count(100000), 5 * NSEC_PER_MSEC);
}

TEST(stress_events_due_later_end_exactly_once)
{
	stress(4, 2, test_count(100000), 500 * NSEC_PER_MSEC);
}

/* Threads that open, arm and close contexts of their own. */
static void *open_arm_and_close(void *arg)
{
	size_t *rounds = arg, i;

	for (i = 0; i < *rounds; i++) {
		int fd = device_open_nonblock();

		add_many(fd, 0, i % 8 * 30 * NSEC_PER_USEC, 20, NULL);
		add_many(fd, 0, FAR_NS, 20, NULL);
		if (i % 3 == 0)
			wait_record(fd);
		close(fd);
	}
	return NULL;
}

TEST(stress_contexts_of_many_threads_come_and_go)
{
	pthread_t threads[MAX_THREADS];
	size_t rounds = test_count(2000), i;

	for (i = 0; i < MAX_THREADS; i++)
		threads[i] = start_thread(open_arm_and_close, &rounds);
	for (i = 0; i < MAX_THREADS; i++)
		join_thread(threads[i]);
}
