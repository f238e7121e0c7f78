// SPDX-License-Identifier: GPL-2.0
/*
 * Delayed operations that several threads try to end while their time comes, with
 * an account of every operation.
 *
 * It goes in rounds.  In each a leader arms a few operations that are due within a
 * window, and reads; workers try to end them meanwhile, each in its own way and its
 * own order.  The window follows what happens: it is made longer when most of the
 * operations expire and shorter when few do, so that the commands come around the
 * due times however fast the machine is.
 *
 * What the results of the commands say of an operation, what its record says and
 * what fdinfo counts must agree.
 */
#include <errno.h>
#include <pthread.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "device.h"
#include "util.h"

#define ROUND		64		/* operations of a round */
#define CALL		4		/* operations of a worker's call */
#define SHARE		4		/* operations due at the same time */
#define MAX_WORKERS	5
#define MOST		(~0ULL)
#define ENOUGH_S	200

/* A key that every operation watches, too, and that is never signalled. */
#define IDLE_KEY	MOST

/* How operations end; what a worker does. */
enum way { BY_TIME, BY_SIGNAL, BY_COMPLETE, BY_CANCEL, BY_QUIET, BY_CLOSE, WAYS };

/* No end: a worker that gives operations another time. */
#define MODIFIES	WAYS

static const char * const way_names[WAYS] = {
	"time", "signal", "complete", "cancel", "quiet", "close",
};

/* An operation of this round, and how often the commands say that it ended. */
struct operation {
	__u64 id;
	__u64 due_ns;
	atomic_uint ended[WAYS];
	atomic_uint tried;
	atomic_uint modified;
	unsigned int records;
	struct twheel_record record;
};

struct race;

struct worker {
	struct race *race;
	unsigned int way;
	int fd;				/* BY_CLOSE: its own */
	__u64 seed;
	pthread_t thread;
};

struct race {
	int fd;
	bool closes;			/* the context ends with the round */
	size_t nr_workers;
	struct worker workers[MAX_WORKERS];
	struct operation operations[ROUND];
	__u64 first;			/* the data of the first of them */
	__u64 window_ns;
	__u64 tick_ns;
	__u64 enough_ns;		/* when it ends, if all was met */
	__u64 seed;
	pthread_barrier_t start;
	atomic_size_t working;
	atomic_bool over;
	unsigned long total[WAYS];	/* by how they ended */
	unsigned long suppressed;	/* ended, and cancelled unread */
	unsigned long late;		/* commands came, and did not end it */
	unsigned long near;		/* completed within two ticks of their time */
};

/* --- workers ---------------------------------------------------------------- */

/* An operation needs a signal on one key or on both. */
static __u64 key_of(const struct race *race, size_t which, unsigned int nr)
{
	return 2 * (race->first + which) + nr;
}

static __u64 value_of(const struct race *race, size_t which)
{
	return 1 + race->first + which;
}

static size_t fill_way(struct worker *worker, struct twheel_cmd *cmds,
		       size_t which)
{
	struct race *race = worker->race;
	__u64 id = race->operations[which].id;
	__u64 value = value_of(race, which);

	switch (worker->way) {
	case BY_SIGNAL:
		cmds[0] = make_signal(key_of(race, which, 0), value);
		cmds[1] = make_signal(key_of(race, which, 1), value);
		return 2;
	case BY_QUIET:
		cmds[0] = make_quiet(key_of(race, which, 0));
		cmds[1] = make_quiet(key_of(race, which, 1));
		return 2;
	case BY_COMPLETE:
		cmds[0] = make_complete(id, value);
		return 1;
	case BY_CANCEL:
		cmds[0] = make_cmd(TWHEEL_OP_CANCEL, id);
		return 1;
	default:
		cmds[0] = make_modify(id, 0, next_random(&worker->seed) %
				      race->window_ns);
		return 1;
	}
}

static void account_result(struct worker *worker, size_t which,
			   const struct twheel_cmd *cmd)
{
	struct operation *operation = &worker->race->operations[which];

	operation->tried++;
	switch (cmd->op) {
	case TWHEEL_OP_SIGNAL:
		ASSERT_GE(cmd->result, 0);
		operation->ended[worker->way] += cmd->result;
		break;
	case TWHEEL_OP_MODIFY:
		/* Ended early, or its record was read. */
		if (cmd->result && cmd->result != -EALREADY)
			ASSERT_EQ(cmd->result, -ENOENT);
		operation->modified += !cmd->result;
		break;
	default:
		if (cmd->result && cmd->result != -ENOENT)
			ASSERT_EQ(cmd->result, worker->way == BY_COMPLETE ?
				  -EALREADY : 0);
		operation->ended[worker->way] += !cmd->result;
		break;
	}
}

/* One call on a few operations. */
static void try_to_end(struct worker *worker, const size_t *which, size_t nr)
{
	struct twheel_cmd cmds[2 * CALL];
	size_t of[2 * CALL], filled = 0, i;

	for (i = 0; i < nr; i++) {
		size_t more = fill_way(worker, cmds + filled, which[i]);

		while (more--)
			of[filled++] = which[i];
	}
	ASSERT_EQ(submit(worker->fd, cmds, filled), filled);
	for (i = 0; i < filled; i++)
		account_result(worker, of[i], &cmds[i]);
}

/* All of the operations, or half where others work too, in an order of its own. */
static void work_on_round(struct worker *worker)
{
	size_t nr = worker->race->nr_workers > 1 ? ROUND / 2 : ROUND;
	size_t order[ROUND], i;

	for (i = 0; i < ROUND; i++) {
		size_t other = next_random(&worker->seed) % (i + 1);

		order[i] = order[other];
		order[other] = i;
	}
	for (i = 0; i < nr; i += CALL)
		try_to_end(worker, order + i, CALL);
	if (worker->race->closes)
		ASSERT_EQ(close(worker->fd), 0);
}

static void *run_worker(void *arg)
{
	struct worker *worker = arg;
	struct race *race = worker->race;

	for (;;) {
		pthread_barrier_wait(&race->start);
		if (race->over)
			return NULL;
		work_on_round(worker);
		race->working--;
	}
}

/* --- the leader ------------------------------------------------------------- */

static void arm_round(struct race *race)
{
	struct twheel_cmd cmds[4 * ROUND];
	__u64 due_ns = 0;
	size_t i, k;

	memset(race->operations, 0, sizeof(race->operations));
	for (i = 0; i < ROUND; i++) {
		struct twheel_cmd *cmd = &cmds[4 * i];

		if (i % SHARE == 0)
			due_ns = monotonic_ns() + race->tick_ns +
				 next_random(&race->seed) % race->window_ns;
		race->operations[i].due_ns = due_ns;
		cmd[0] = make_add(TWHEEL_ABS, due_ns, race->first + i);
		cmd[0].quorum = 1 + i % 2;
		cmd[1] = make_watch(0, key_of(race, i, 0), value_of(race, i));
		cmd[2] = make_level(0, IDLE_KEY, MOST);
		/* One more that a quorum of 1 does not wait for. */
		cmd[3] = make_watch(0, key_of(race, i, i % 2),
				    i % 2 ? value_of(race, i) : MOST);
	}
	ASSERT_EQ(submit(race->fd, cmds, ARRAY_SIZE(cmds)), ARRAY_SIZE(cmds));
	for (i = 0; i < ROUND; i++) {
		ASSERT_EQ(cmds[4 * i].result, 0);
		race->operations[i].id = cmds[4 * i].id;
		/* Its time may have come already. */
		for (k = 1; k < 4; k++)
			if (cmds[4 * i + k].result)
				ASSERT_EQ(cmds[4 * i + k].result, -EALREADY);
	}
}

static void take_records(struct race *race)
{
	struct twheel_record records[ROUND];
	long nr = read_records(race->fd, records, ROUND), i;

	if (nr < 0)
		ASSERT_EQ(nr, -EAGAIN);
	for (i = 0; i < nr; i++) {
		size_t which = records[i].data - race->first;

		test_about("data %llu", records[i].data);
		ASSERT_LT(which, ROUND);
		race->operations[which].record = records[i];
		race->operations[which].records++;
	}
}

/* How many operations of the round are gone. */
static size_t count_gone(struct race *race)
{
	size_t gone = 0, i;

	for (i = 0; i < ROUND; i++) {
		struct operation *operation = &race->operations[i];

		gone += operation->records + operation->ended[BY_CANCEL] +
			operation->ended[BY_QUIET];
	}
	return gone;
}

static void check_record_of(struct race *race, size_t which)
{
	struct operation *operation = &race->operations[which];
	const struct twheel_record *record = &operation->record;
	__u64 value = value_of(race, which);

	ASSERT_EQ(record->id, operation->id);
	if (!operation->modified)
		ASSERT_EQ(record->due_ns, operation->due_ns);
	if (operation->ended[BY_SIGNAL]) {
		check_completed(record, value, key_of(race, which, which % 2));
	} else if (operation->ended[BY_COMPLETE]) {
		check_completed(record, value, 0);
	} else {
		check_record(record);
		operation->ended[BY_TIME] = 1;
	}
}

/*
 * Check what is known of an operation, and count it.  One that was ended may be
 * cancelled unread; else it is gone in one way.
 */
static void account_operation(struct race *race, size_t which)
{
	struct operation *operation = &race->operations[which];
	unsigned int early = operation->ended[BY_SIGNAL] +
			     operation->ended[BY_COMPLETE];
	unsigned int gone = operation->records + operation->ended[BY_CANCEL] +
			    operation->ended[BY_QUIET];
	unsigned int way;

	test_about("operation %llu, number %zu of its round",
		   race->first + which, which);
	ASSERT_LE(early + operation->ended[BY_QUIET], 1);
	if (!race->closes)
		ASSERT_EQ(gone, 1);
	ASSERT_LE(gone, 1);
	if (operation->records)
		check_record_of(race, which);
	else if (!gone)
		operation->ended[BY_CLOSE] = 1;

	for (way = 0; way < WAYS; way++)
		race->total[way] += operation->ended[way];
	if (early && operation->ended[BY_CANCEL])
		race->suppressed++;
	if (operation->tried && !early && gone == operation->records)
		race->late++;
	if (early && operation->records &&
	    operation->record.fired_ns + 2 * race->tick_ns >
	    operation->record.due_ns)
		race->near++;
}

/* The next window, such that a quarter to a half of @nr operations expire. */
static __u64 adapt_window(__u64 window_ns, __u64 tick_ns, size_t expired,
			  size_t nr)
{
	if (expired > nr / 2)
		window_ns += window_ns / 4;
	else if (expired < nr / 4)
		window_ns -= window_ns / 4;
	if (window_ns < tick_ns)
		return tick_ns;
	return window_ns < NSEC_PER_SEC ? window_ns : NSEC_PER_SEC;
}

static void run_round(struct race *race)
{
	unsigned long expired = race->total[BY_TIME];
	size_t i;

	arm_round(race);
	race->working = race->nr_workers;
	pthread_barrier_wait(&race->start);
	while (race->working) {
		poll_events(race->fd, 1);
		take_records(race);
	}
	while (count_gone(race) < ROUND) {
		wait_readable(race->fd);
		take_records(race);
	}
	for (i = 0; i < ROUND; i++)
		account_operation(race, i);
	race->window_ns = adapt_window(race->window_ns, race->tick_ns,
				       race->total[BY_TIME] - expired, ROUND);
	race->first += ROUND;
}

static void race_setup(struct race *race, const unsigned int *ways, size_t nr)
{
	size_t i;

	memset(race, 0, sizeof(*race));
	race->fd = device_open_nonblock();
	race->tick_ns = get_info(race->fd).tick_ns;
	race->window_ns = 20 * race->tick_ns;
	race->enough_ns = monotonic_ns() + ENOUGH_S * NSEC_PER_SEC;
	race->nr_workers = nr;
	ASSERT_EQ(pthread_barrier_init(&race->start, NULL, 1 + nr), 0);
	for (i = 0; i < nr; i++) {
		race->workers[i].race = race;
		race->workers[i].way = ways[i];
		race->workers[i].fd = race->fd;
		race->workers[i].seed = i;
		race->workers[i].thread = start_thread(run_worker,
						       &race->workers[i]);
	}
}

static void race_end(struct race *race)
{
	size_t i;

	race->over = true;
	pthread_barrier_wait(&race->start);
	for (i = 0; i < race->nr_workers; i++)
		join_thread(race->workers[i].thread);
}

static bool ends_by_value(const struct race *race)
{
	return race->total[BY_SIGNAL] + race->total[BY_COMPLETE];
}

/* Each way has ended an operation, and the races that are looked for were met. */
static bool has_met_all(const struct race *race)
{
	size_t i;

	if (!race->total[BY_TIME] || !race->late || (ends_by_value(race) && !race->near) ||
	    (race->closes && !race->total[BY_CLOSE]))
		return false;
	for (i = 0; i < race->nr_workers; i++)
		if (race->workers[i].way != MODIFIES && !race->total[race->workers[i].way])
			return false;
	return true;
}

/*
 * More rounds, up to ten times as many, where a busy machine has not met all by then.  There a
 * round can take a second: so it is enough to have met all if that has taken so long.
 */
static bool needs_more(const struct race *race, size_t operations)
{
	if (has_met_all(race))
		return race->first < operations && monotonic_ns() < race->enough_ns;
	return race->first < 10 * operations;
}

/* Print how the operations ended; each way in which they could was taken. */
static void check_ways(const struct race *race)
{
	unsigned int way;
	size_t i;

	printf("# %llu operations ended:", race->first);
	for (way = 0; way < WAYS; way++)
		printf(" %lu by %s", race->total[way], way_names[way]);
	printf("; %lu suppressed, %lu late, %lu near, window %llu us\n",
	       race->suppressed, race->late, race->near,
	       race->window_ns / NSEC_PER_USEC);
	ASSERT_GT(race->total[BY_TIME], 0);
	ASSERT_GT(race->late, 0);
	if (ends_by_value(race))
		ASSERT_GT(race->near, 0);
	for (i = 0; i < race->nr_workers; i++) {
		way = race->workers[i].way;
		test_about("worker %zu", i);
		if (way != MODIFIES)
			ASSERT_GT(race->total[way], 0);
	}
}

static void check_fdinfo(const struct race *race)
{
	struct counters counters = get_counters(race->fd);

	test_about("the sums");
	check_sum(&counters);
	check_nothing_ready(race->fd);
	ASSERT_EQ(counters.added, race->first);
	ASSERT_EQ(counters.armed, 0);
	ASSERT_EQ(counters.ready, 0);
	ASSERT_EQ(counters.completed,
		  race->total[BY_SIGNAL] + race->total[BY_COMPLETE]);
	ASSERT_EQ(counters.cancelled,
		  race->total[BY_CANCEL] + race->total[BY_QUIET]);
	ASSERT_EQ(counters.finished,
		  counters.added - counters.cancelled);
	ASSERT_EQ(counters.records, counters.finished);
}

static void run_race(size_t operations, const unsigned int *ways, size_t nr)
{
	struct race race;

	race_setup(&race, ways, nr);
	/* Where CPUs seldom run at the same time, it takes more until it was close. */
	while (needs_more(&race, operations))
		run_round(&race);
	race_end(&race);
	check_ways(&race);
	check_fdinfo(&race);
}

TEST(race_of_signals_and_time_ends_each_operation_once)
{
	static const unsigned int ways[] = { BY_SIGNAL };

	run_race(test_count(150000), ways, ARRAY_SIZE(ways));
}

TEST(race_of_complete_and_time_ends_each_operation_once)
{
	static const unsigned int ways[] = { BY_COMPLETE };

	run_race(test_count(150000), ways, ARRAY_SIZE(ways));
}

TEST(race_of_quiet_signals_and_time_ends_each_operation_once)
{
	static const unsigned int ways[] = { BY_QUIET };

	run_race(test_count(100000), ways, ARRAY_SIZE(ways));
}

TEST(race_of_signals_and_cancel_and_time_ends_each_operation_once)
{
	static const unsigned int ways[] = { BY_SIGNAL, BY_CANCEL };

	run_race(test_count(150000), ways, ARRAY_SIZE(ways));
}

TEST(race_of_two_threads_of_signals_and_time_ends_each_operation_once)
{
	static const unsigned int ways[] = { BY_SIGNAL, BY_SIGNAL };

	run_race(test_count(100000), ways, ARRAY_SIZE(ways));
}

TEST(race_of_all_ways_and_time_ends_each_operation_once)
{
	static const unsigned int ways[] = {
		BY_SIGNAL, BY_COMPLETE, BY_CANCEL, BY_QUIET,
	};

	run_race(test_count(250000), ways, ARRAY_SIZE(ways));
}

TEST(race_of_all_ways_and_modify_and_time_ends_each_operation_once)
{
	static const unsigned int ways[] = {
		BY_SIGNAL, BY_COMPLETE, BY_CANCEL, BY_QUIET, MODIFIES,
	};

	run_race(test_count(100000), ways, ARRAY_SIZE(ways));
}

/* --- keys that many operations share ---------------------------------------- */

#define CROWD		192		/* operations of a round */
#define CROWD_KEYS	4
#define CROWD_SIGNALS	12		/* of each thread in a round */

/* The same with many operations: only the key of a record says which way ended it. */
struct crowd {
	int fd;
	__u64 first;
	__u64 window_ns;
	__u64 tick_ns;
	__u64 seed;
	pthread_barrier_t start;
	atomic_size_t working;
	atomic_bool over;
	atomic_ulong signalled[CROWD_KEYS];	/* the sums of the results */
	atomic_ulong quieted;
	unsigned long completed[CROWD_KEYS];	/* what records tell */
	unsigned long expired;
	unsigned char records[CROWD];
};

static void *signal_crowd(void *arg)
{
	struct crowd *crowd = arg;
	__u64 seed = thread_id();
	unsigned int i;

	for (;;) {
		pthread_barrier_wait(&crowd->start);
		if (crowd->over)
			return NULL;
		for (i = 0; i < CROWD_SIGNALS; i++) {
			__u64 key = next_random(&seed) % CROWD_KEYS;
			int ended = signal_key(crowd->fd, key,
					       next_random(&seed) % CROWD);

			ASSERT_GE(ended, 0);
			crowd->signalled[key] += ended;
		}
		crowd->working--;
	}
}

static void *quieten_crowd(void *arg)
{
	struct crowd *crowd = arg;
	__u64 seed = thread_id();

	for (;;) {
		__u64 nr;
		int ended;

		pthread_barrier_wait(&crowd->start);
		if (crowd->over)
			return NULL;
		/* At different times, in most rounds. */
		for (nr = next_random(&seed) % 40; nr; nr--)
			signal_key(crowd->fd, CROWD_KEYS, 1);
		ended = signal_quietly(crowd->fd,
				       next_random(&seed) % (CROWD_KEYS + 1));
		ASSERT_GE(ended, 0);
		crowd->quieted += ended;
		crowd->working--;
	}
}

static void arm_crowd(struct crowd *crowd)
{
	struct twheel_cmd cmds[3 * CROWD];
	size_t i, k;

	for (i = 0; i < CROWD; i++) {
		struct twheel_cmd *cmd = &cmds[3 * i];

		cmd[0] = make_add(0, next_random(&crowd->seed) %
				  crowd->window_ns, crowd->first + i);
		cmd[0].quorum = 1 + i % 2;
		for (k = 1; k <= 2; k++) {
			__u64 need = 1 + next_random(&crowd->seed) %
					 (2 * CROWD);

			cmd[k] = make_watch(0, (i + k) % CROWD_KEYS, need);
			if (need < CROWD && i % 3 == k)
				cmd[k].flags = TWHEEL_LEVEL;
		}
	}
	memset(crowd->records, 0, sizeof(crowd->records));
	ASSERT_EQ(submit(crowd->fd, cmds, ARRAY_SIZE(cmds)), ARRAY_SIZE(cmds));
	for (i = 0; i < ARRAY_SIZE(cmds); i++) {
		if (i % 3 == 0 || cmds[i].result)
			ASSERT_EQ(cmds[i].result, i % 3 ? -EALREADY : 0);
	}
}

static size_t take_crowd(struct crowd *crowd)
{
	struct twheel_record records[CROWD];
	long nr = read_records(crowd->fd, records, CROWD), i;

	if (nr < 0)
		ASSERT_EQ(nr, -EAGAIN);
	for (i = 0; i < nr; i++) {
		const struct twheel_record *record = &records[i];
		size_t which = record->data - crowd->first;

		test_about("data %llu", record->data);
		ASSERT_LT(which, CROWD);
		ASSERT_EQ(crowd->records[which], 0);
		crowd->records[which]++;
		if (record->reason == TWHEEL_EXPIRED) {
			check_record(record);
			crowd->expired++;
			continue;
		}
		check_completed(record, record->value, record->key);
		ASSERT_NE(record->value, 0);
		ASSERT_LT(record->key, CROWD_KEYS);
		crowd->completed[record->key]++;
	}
	return nr < 0 ? 0 : nr;
}

static void run_crowd_round(struct crowd *crowd)
{
	unsigned long expired = crowd->expired, quieted = crowd->quieted;
	size_t read = 0, key;

	arm_crowd(crowd);
	crowd->working = 3;
	pthread_barrier_wait(&crowd->start);
	while (crowd->working) {
		poll_events(crowd->fd, 1);
		read += take_crowd(crowd);
	}
	while (read + crowd->quieted - quieted < CROWD) {
		wait_readable(crowd->fd);
		read += take_crowd(crowd);
	}
	ASSERT_EQ(read + crowd->quieted - quieted, CROWD);
	for (key = 0; key < CROWD_KEYS; key++)
		ASSERT_EQ(crowd->signalled[key], crowd->completed[key]);
	crowd->window_ns = adapt_window(crowd->window_ns, crowd->tick_ns,
					crowd->expired - expired, CROWD);
	crowd->first += CROWD;
}

/* Signals of each key, a quiet one and the time have ended operations. */
static bool crowd_has_met_all(const struct crowd *crowd)
{
	size_t key;

	for (key = 0; key < CROWD_KEYS; key++)
		if (!crowd->completed[key])
			return false;
	return crowd->expired && crowd->quieted;
}

/* As needs_more(): the window has to be found first, and on a slow kernel that takes rounds. */
static bool crowd_needs_more(const struct crowd *crowd, size_t operations)
{
	return crowd->first < operations ||
	       (!crowd_has_met_all(crowd) && crowd->first < 10 * operations);
}

static void check_crowd(struct crowd *crowd)
{
	struct counters counters = get_counters(crowd->fd);
	unsigned long completed = 0;
	size_t key;

	for (key = 0; key < CROWD_KEYS; key++) {
		ASSERT_GT(crowd->completed[key], 0);
		completed += crowd->completed[key];
	}
	printf("# %llu operations ended: %lu by time %lu by signal %lu by quiet; window %llu us\n",
	       crowd->first, crowd->expired, completed, crowd->quieted,
	       crowd->window_ns / NSEC_PER_USEC);
	ASSERT_GT(crowd->expired, 0);
	ASSERT_GT(crowd->quieted, 0);
	check_sum(&counters);
	check_nothing_ready(crowd->fd);
	ASSERT_EQ(counters.added, crowd->first);
	ASSERT_EQ(counters.armed, 0);
	ASSERT_EQ(counters.ready, 0);
	ASSERT_EQ(counters.completed, completed);
	ASSERT_EQ(counters.cancelled, crowd->quieted);
	ASSERT_EQ(counters.records, completed + crowd->expired);
}

TEST(race_of_signals_on_shared_keys_and_time_ends_each_operation_once)
{
	const size_t operations = test_count(100000);
	struct crowd crowd = { .fd = device_open_nonblock() };
	pthread_t threads[3];
	size_t i;

	crowd.tick_ns = get_info(crowd.fd).tick_ns;
	crowd.window_ns = 50 * crowd.tick_ns;
	ASSERT_EQ(pthread_barrier_init(&crowd.start, NULL, 4), 0);
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		threads[i] = start_thread(i ? signal_crowd : quieten_crowd,
					  &crowd);
	while (crowd_needs_more(&crowd, operations))
		run_crowd_round(&crowd);
	crowd.over = true;
	pthread_barrier_wait(&crowd.start);
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		join_thread(threads[i]);
	check_crowd(&crowd);
}

/* --- close ------------------------------------------------------------------ */

/*
 * A round with a context of its own.  Each thread has a descriptor, which it closes
 * when it has done its part; the last close ends what is left.
 */
static void run_closing_round(struct race *race)
{
	unsigned long late = race->late;
	size_t i;

	race->fd = device_open_nonblock();
	for (i = 0; i < race->nr_workers; i++) {
		race->workers[i].fd = dup(race->fd);
		ASSERT_GE(race->workers[i].fd, 0);
	}
	arm_round(race);
	race->working = race->nr_workers;
	pthread_barrier_wait(&race->start);
	for (i = 0; i < race->first / ROUND % 5; i++)
		take_records(race);
	ASSERT_EQ(close(race->fd), 0);
	while (race->working)
		poll(NULL, 0, 1);
	for (i = 0; i < ROUND; i++)
		account_operation(race, i);
	race->window_ns = adapt_window(race->window_ns, race->tick_ns,
				       race->late - late, ROUND);
	race->first += ROUND;
}

TEST(race_of_close_and_all_ways_ends_each_operation_once_at_most)
{
	static const unsigned int ways[] = {
		BY_SIGNAL, BY_COMPLETE, BY_CANCEL, BY_QUIET,
	};
	const size_t operations = test_count(100000);
	long long armed = armed_on_machine();
	struct race race;

	race_setup(&race, ways, ARRAY_SIZE(ways));
	race.closes = true;
	while (needs_more(&race, operations))
		run_closing_round(&race);
	race_end(&race);
	check_ways(&race);
	ASSERT_GT(race.total[BY_CLOSE], 0);
	wait_armed_on_machine(armed);
}
