// SPDX-License-Identifier: GPL-2.0
/*
 * Deadlines in shared memory against each other: threads that store, threads that arm,
 * change and read, and a process that wants the kernel to do nothing but look at words.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "device.h"
#include "util.h"

static int open_on_cpu(int cpu, __u32 nr_deadlines)
{
	struct twheel_config config = deadlines_config(CLOCK_MONOTONIC, nr_deadlines);

	config.flags = TWHEEL_CONFIG_CPU;
	config.cpu = cpu;
	return device_open_configured(O_RDWR | O_NONBLOCK | O_CLOEXEC, &config);
}

/* --- stores, commands and reads at once ------------------------------------- */

/*
 * Each word is stored to by one thread, always a later time, and its index is in the low
 * bits of all that it says; what it said, and when the store was over, is kept.  So at
 * the end each record can be held against what its word had said when it fired.
 */
#define WORDS		64
#define STORERS		2
#define COMMANDERS	2
#define BATCH		16

/* The most that a store moves a word beyond now. */
#define LONGEST_NS	(20 * NSEC_PER_MSEC)

struct stored {
	__u64 value;
	__u64 until_ns;		/* by then the store was over */
};

struct word {
	struct stored *history;
	size_t room;
	size_t nr;		/* of its storer, until that has ended */
};

/* An event, from its ADD on; all but the records are of the thread that added it. */
struct event {
	__u64 id;
	__u64 word;
	__u64 least_ns;		/* what the word said before it was armed last */
	__u64 armed_ns;		/* the time after that */
	unsigned int cancels;
	struct twheel_record record;
	unsigned int records;	/* of the reader, as @record */
};

struct race {
	_Atomic __u64 *words;
	int fd;
	struct word history[WORDS];
	struct event *events;
	size_t nr;		/* for each commander */
	atomic_uint next_storer;
	atomic_uint next_commander;
	atomic_uint commanding;
	atomic_bool stop;
	__u64 stopped_ns;	/* when all stores were over */
	size_t stores;
};

static void store_later(struct race *race, size_t index, __u64 value)
{
	struct word *word = &race->history[index];
	struct stored *stored = &word->history[word->nr];

	/* The last place is for the end. */
	if (word->nr == word->room - !race->stop)
		return;
	value = value / WORDS * WORDS + index;
	if (value <= race->words[index])
		value = race->words[index] + WORDS;
	stored->value = value;
	race->words[index] = value;
	stored->until_ns = monotonic_ns();
	word->nr++;
}

/*
 * Store for a while, and let the words come for a while.  At the end all say a later time,
 * for what is still armed.
 */
static void *run_storer(void *arg)
{
	struct race *race = arg;
	size_t me = race->next_storer++, index;
	__u64 seed = 100 + me;

	while (!race->stop) {
		size_t times = next_random(&seed) % 2000;

		while (times--) {
			index = next_random(&seed) % (WORDS / STORERS) * STORERS + me;
			store_later(race, index,
				    monotonic_ns() + next_random(&seed) % LONGEST_NS);
		}
		poll(NULL, 0, next_random(&seed) % 20);
	}
	for (index = me; index < WORDS; index += STORERS)
		store_later(race, index, monotonic_ns() + 5 * SOON_NS);
	return NULL;
}

static void note_armed(struct event *event, __u64 word, __u64 least_ns)
{
	event->word = word;
	event->least_ns = least_ns;
	event->armed_ns = monotonic_ns();
}

static void race_add(struct race *race, struct event *events, __u64 *seed)
{
	struct twheel_cmd cmds[BATCH];
	__u64 least_ns[BATCH];
	size_t i;

	for (i = 0; i < BATCH; i++) {
		__u64 index = next_random(seed) % WORDS;

		cmds[i] = make_deadline_add(index, events + i - race->events);
		least_ns[i] = race->words[index];
	}
	ASSERT_EQ(submit(race->fd, cmds, BATCH), BATCH);
	for (i = 0; i < BATCH; i++) {
		ASSERT_EQ(cmds[i].result, 0);
		events[i].id = cmds[i].id;
		note_armed(&events[i], cmds[i].key, least_ns[i]);
	}
}

static void race_modify(struct race *race, struct event *event, __u64 *seed)
{
	__u64 index = next_random(seed) % WORDS;
	__u64 least_ns = race->words[index];
	int result = modify_deadline(race->fd, event->id, index);

	if (!result)
		note_armed(event, index, least_ns);
	else
		ASSERT_EQ(result, -ENOENT);
}

static void race_cancel(struct race *race, struct event *event)
{
	int result = cancel(race->fd, event->id);

	if (!result)
		event->cancels++;
	else
		ASSERT_EQ(result, -ENOENT);
}

/* The due time told for an event is one that its word had after it was armed. */
static void check_told(const struct event *event, __u64 due_ns)
{
	ASSERT_EQ(due_ns % WORDS, event->word);
	ASSERT_GE(due_ns, event->least_ns);
}

static void race_query(struct race *race, struct event *event)
{
	struct twheel_cmd answer;
	int state = query(race->fd, event->id, &answer);

	if (state == -ENOENT)
		return;
	ASSERT(state == TWHEEL_ARMED || state == TWHEEL_READY);
	check_told(event, answer.time_ns);
}

static void race_list(struct race *race, struct event *first, struct event *end)
{
	struct twheel_entry entries[64];
	struct twheel_list list = make_list(entries, ARRAY_SIZE(entries));
	long nr, i;

	while ((nr = device_ioctl(race->fd, TWHEEL_IOC_LIST, &list)) > 0) {
		for (i = 0; i < nr; i++) {
			struct event *event = &race->events[entries[i].data];

			ASSERT_EQ(entries[i].deadline - 1, entries[i].due_ns % WORDS);
			if (event < first || event >= end)
				continue;
			ASSERT_EQ(entries[i].id, event->id);
			check_told(event, entries[i].due_ns);
		}
	}
	ASSERT_EQ(nr, 0);
}

static void *run_commander(void *arg)
{
	struct race *race = arg;
	size_t me = race->next_commander++, done, i;
	struct event *first = race->events + me * race->nr;
	__u64 seed = 200 + me;

	for (done = 0; done < race->nr; done += BATCH) {
		struct event *recent = first + (done > 8 * BATCH ? done - 8 * BATCH : 0);
		size_t nr = first + done + BATCH - recent;

		race_add(race, first + done, &seed);
		for (i = 0; i < 4; i++) {
			race_modify(race, &recent[next_random(&seed) % nr], &seed);
			race_query(race, &recent[next_random(&seed) % nr]);
		}
		race_cancel(race, &recent[next_random(&seed) % nr]);
		if (done % (64 * BATCH) == 0)
			race_list(race, first, first + done + BATCH);
	}
	race->commanding--;
	return NULL;
}

static void account_records(struct race *race)
{
	struct twheel_record records[100];
	long nr, i;

	poll_events(race->fd, 10);
	nr = read_records(race->fd, records, ARRAY_SIZE(records));
	for (i = 0; i < nr; i++) {
		struct event *event = &race->events[records[i].data];

		check_record(&records[i]);
		ASSERT_LT(records[i].data, COMMANDERS * race->nr);
		event->record = records[i];
		event->records++;
	}
	if (nr < 0)
		ASSERT_EQ(nr, -EAGAIN);
}

static void *run_reader(void *arg)
{
	struct race *race = arg;

	do {
		account_records(race);
	} while (race->commanding || !race->stop || get_counters(race->fd).armed ||
		 get_counters(race->fd).ready);
	return NULL;
}

/* Check that the word said this at some time. */
static void check_was_said(const struct word *word, __u64 value)
{
	size_t low = 0, high = word->nr;

	while (high - low > 1) {
		size_t middle = (low + high) / 2;

		if (word->history[middle].value <= value)
			low = middle;
		else
			high = middle;
	}
	ASSERT_EQ(word->history[low].value, value);
}

/* The last value whose store was over before this time. */
static __u64 said_before(const struct word *word, __u64 time_ns)
{
	size_t low = 0, high = word->nr;

	while (high - low > 1) {
		size_t middle = (low + high) / 2;

		if (word->history[middle].until_ns < time_ns)
			low = middle;
		else
			high = middle;
	}
	return word->history[low].value;
}

/*
 * The value that is in a record is one of its word; of those at and after the arming; and
 * if the event has waited since then, the kernel has not missed a store that was over
 * when it fired.
 */
static void check_due(struct race *race, const struct event *event)
{
	const struct word *word = &race->history[event->word];
	__u64 due_ns = event->record.due_ns;

	ASSERT_EQ(event->record.id, event->id);
	check_told(event, due_ns);
	check_was_said(word, due_ns);
	if (event->record.fired_ns > event->armed_ns)
		ASSERT_GE(due_ns, said_before(word, event->record.fired_ns));
	if (event->record.fired_ns > race->stopped_ns)
		ASSERT_EQ(due_ns, race->words[event->word]);
}

static void check_race(struct race *race)
{
	struct counters counters = get_counters(race->fd);
	long long records = 0, cancels = 0, waited = 0, late = 0;
	size_t i;

	for (i = 0; i < COMMANDERS * race->nr; i++) {
		struct event *event = &race->events[i];

		test_about("event %zu", i);
		ASSERT_EQ(event->records + event->cancels, 1);
		records += event->records;
		cancels += event->cancels;
		if (!event->records)
			continue;
		check_due(race, event);
		waited += event->record.fired_ns > event->armed_ns;
		late += event->record.fired_ns > race->stopped_ns;
	}
	test_about("the sums");
	check_sum(&counters);
	ASSERT_EQ(counters.added, COMMANDERS * race->nr);
	ASSERT_EQ(counters.armed, 0);
	ASSERT_EQ(counters.ready, 0);
	ASSERT_EQ(counters.finished, records);
	ASSERT_EQ(counters.cancelled, cancels);
	printf("# %lld records, %lld had waited, %lld until after the last of %zu stores\n",
	       records, waited, late, race->stores);
	printf("# %lld cancelled, %lld postponed\n", cancels, count_postponed(race->fd));
}

static void prepare_race(struct race *race, size_t events)
{
	size_t i;

	race->fd = open_deadlines(WORDS, &race->words);
	race->nr = events / COMMANDERS / BATCH * BATCH;
	race->events = map_pages(COMMANDERS * race->nr * sizeof(*race->events));
	race->commanding = COMMANDERS;
	for (i = 0; i < WORDS; i++) {
		struct word *word = &race->history[i];

		word->room = 100000;
		word->history = map_pages(word->room * sizeof(*word->history));
		word->history[0].value = WORDS + i;
		word->nr = 1;
		race->words[i] = WORDS + i;
	}
}

/* Returns whether an event was postponed: on a busy machine, all stores may come too late. */
static bool run_race(size_t events)
{
	pthread_t storers[STORERS], commanders[COMMANDERS], reader;
	struct race *race = map_pages(sizeof(*race));
	size_t i;

	prepare_race(race, events);
	for (i = 0; i < STORERS; i++)
		storers[i] = start_thread(run_storer, race);
	for (i = 0; i < COMMANDERS; i++)
		commanders[i] = start_thread(run_commander, race);
	reader = start_thread(run_reader, race);
	for (i = 0; i < COMMANDERS; i++)
		join_thread(commanders[i]);
	/* The reader goes on until all have come, which they do as nothing moves them. */
	race->stopped_ns = ~0ULL;
	race->stop = true;
	for (i = 0; i < STORERS; i++)
		join_thread(storers[i]);
	race->stopped_ns = monotonic_ns();
	join_thread(reader);
	for (i = 0; i < WORDS; i++)
		race->stores += race->history[i].nr - 1;
	check_race(race);
	return count_postponed(race->fd) > 0;
}

TEST(deadline_race_of_stores_and_commands_and_reads_ends_each_event_once)
{
	while (!run_race(test_count(100000)))
		;
}

/* --- operations that are postponed ------------------------------------------ */

/* The end of an event: it expires at once, or it can be completed. */
enum fate {
	FATE_EXPIRED,
	FATE_SIGNALLED,
	FATE_COMPLETED,
};

/*
 * Arm an event for each word, due in this tick and the next ones; then all words say never,
 * so that those events that did not expire are postponed while others are done to them.
 */
static void arm_and_postpone(int fd, _Atomic __u64 *words, struct twheel_cmd *cmds, size_t nr,
			     __u64 *seed)
{
	__u64 tick_ns = get_info(fd).tick_ns;
	size_t i;

	for (i = 0; i < nr; i++) {
		words[i] = monotonic_ns() + next_random(seed) % (30 * tick_ns);
		cmds[i] = make_deadline_add(i, i);
	}
	ASSERT_EQ(submit(fd, cmds, nr), nr);
	for (i = 0; i < nr; i++)
		words[i] = NEVER_NS;
}

/* From here on it expires no more: so what is done to it succeeds, or it has expired. */
static enum fate watch_and_complete(int fd, __u64 id, __u64 index)
{
	enum fate fate = FATE_EXPIRED;
	int watched = -EALREADY;

	if (index % 3)
		watched = watch(fd, id, index, 1);
	if (watched)
		ASSERT_EQ(watched, -EALREADY);
	ASSERT_EQ(list_one(fd, id).deadline, index + 1);
	if (index % 3 == 1) {
		if (signal_key(fd, index, 1 + index))
			fate = FATE_SIGNALLED;
		ASSERT_EQ(fate == FATE_SIGNALLED, !watched);
	} else {
		int result = complete(fd, id, 1 + index);

		if (result)
			ASSERT_EQ(result, -EALREADY);
		else
			fate = FATE_COMPLETED;
		/* Its watches, if it had any, went with it. */
		ASSERT_EQ(signal_key(fd, index, 1), 0);
	}
	ASSERT_EQ(list_one(fd, id).deadline, index + 1);
	ASSERT_EQ(query(fd, id, NULL), TWHEEL_READY);
	return fate;
}

static void check_fates(int fd, const struct twheel_cmd *cmds, const enum fate *fates,
			size_t nr)
{
	bool seen[nr];
	size_t left;

	memset(seen, 0, sizeof(seen));
	for (left = nr; left; left--) {
		struct twheel_record record;

		ASSERT_EQ(read_records(fd, &record, 1), 1);
		ASSERT_LT(record.data, nr);
		ASSERT_EQ(record.id, cmds[record.data].id);
		ASSERT(!seen[record.data]);
		seen[record.data] = true;
		if (fates[record.data] == FATE_EXPIRED) {
			check_record(&record);
			continue;
		}
		check_completed(&record, 1 + record.data,
				fates[record.data] == FATE_SIGNALLED ? record.data : 0);
		ASSERT_EQ(record.due_ns, NEVER_NS);
	}
	check_nothing_ready(fd);
}

/* An event gets an operation, which then has the index, while a CPU looks for its word. */
TEST(deadline_race_of_watches_and_completions_with_postponing_ends_each_once)
{
	const size_t rounds = test_count(500), nr = 60;
	size_t count[3] = { 0 }, round, i;
	_Atomic __u64 *words;
	struct twheel_cmd cmds[nr];
	enum fate fates[nr];
	__u64 seed = 5;
	int cpus[2], fd;

	/* On the wheel of another CPU, if there is one. */
	cpus[0] = sched_getcpu();
	cpus[1] = cpus[0];
	get_cpus(cpus, 2);
	fd = open_on_cpu(cpus[0], nr);
	words = map_deadlines(fd, nr);
	pin_to_cpu(cpus[1]);
	for (round = 0; round < rounds; round++) {
		arm_and_postpone(fd, words, cmds, nr, &seed);
		for (i = 0; i < nr; i++) {
			test_about("round %zu, event %zu", round, i);
			ASSERT_EQ(cmds[i].result, 0);
			fates[i] = watch_and_complete(fd, cmds[i].id, i);
			count[fates[i]]++;
		}
		check_fates(fd, cmds, fates, nr);
	}
	printf("# %zu expired, %zu were signalled, %zu completed; %lld postponed\n",
	       count[FATE_EXPIRED], count[FATE_SIGNALLED], count[FATE_COMPLETED],
	       count_postponed(fd));
	ASSERT_GT(count_postponed(fd), 0);
}

/* --- as many looks as a process can get the kernel to take ------------------- */

#define TURNS		4
#define TURN_NS		(250 * NSEC_PER_MSEC)

/* How many ordinary events of another context are due in a turn. */
#define NR_ORDINARY	200

/**
 * struct hostile - a process whose events are postponed all the time
 * @fd: its context, on the CPU that the others are on.
 * @words: its words.
 * @ids: for each of them, its event.
 * @nr: how many there are.
 * @cpu: where the storing thread runs.
 * @storing: it moves the words; before, it only keeps its CPU as busy.
 * @arming: it also arms again what has fired.
 * @stop: it ends.
 * @sweeps: how often it has stored to all.
 */
struct hostile {
	int fd;
	_Atomic __u64 *words;
	_Atomic __u64 *ids;
	size_t nr;
	int cpu;
	atomic_bool storing;
	atomic_bool arming;
	atomic_bool stop;
	atomic_ullong sweeps;
};

/* Arm some that have fired again, each by the word that is its data.  How many. */
static long arm_some_again(struct hostile *hostile, __u64 ahead_ns)
{
	struct twheel_record records[256];
	struct twheel_cmd cmds[256];
	long nr, i;

	nr = read_records(hostile->fd, records, ARRAY_SIZE(records));
	if (nr == -EAGAIN)
		return 0;
	for (i = 0; i < nr; i++) {
		check_record(&records[i]);
		hostile->words[records[i].data] = monotonic_ns() + ahead_ns;
		cmds[i] = make_deadline_add(records[i].data, records[i].data);
	}
	ASSERT_EQ(submit(hostile->fd, cmds, nr), nr);
	for (i = 0; i < nr; i++) {
		ASSERT_EQ(cmds[i].result, 0);
		hostile->ids[cmds[i].data] = cmds[i].id;
	}
	return nr;
}

static void arm_again(struct hostile *hostile, __u64 ahead_ns)
{
	size_t left = hostile->nr;
	long nr;

	while ((nr = arm_some_again(hostile, ahead_ns)) && left > (size_t)nr)
		left -= nr;
}

static void wait_for_sweeps(const struct hostile *hostile, unsigned int nr)
{
	unsigned long long sweeps = hostile->sweeps;

	while (hostile->sweeps < sweeps + nr)
		poll(NULL, 0, 1);
}

/* The events wait for what was far off: MODIFY tells that it is not any more. */
static void begin_storm(struct hostile *hostile)
{
	size_t i;

	hostile->storing = true;
	wait_for_sweeps(hostile, 2);
	for (i = 0; i < hostile->nr; i++) {
		int result = modify_deadline(hostile->fd, hostile->ids[i], i);

		/* It has fired since. */
		if (result)
			ASSERT_EQ(result, -ENOENT);
	}
}

/*
 * Each word says a tick beyond the time at which it will be stored to again, so that its
 * event comes out as often as can be, and goes on.
 */
static void *store_a_tick_ahead(void *arg)
{
	struct hostile *hostile = arg;
	__u64 tick_ns = get_info(hostile->fd).tick_ns, sweep_ns = NSEC_PER_MSEC;
	size_t i;

	pin_to_cpu(hostile->cpu);
	while (!hostile->storing)
		;
	while (!hostile->stop) {
		__u64 begin_ns = monotonic_ns();

		for (i = 0; i < hostile->nr; i++)
			hostile->words[i] = monotonic_ns() + sweep_ns + tick_ns;
		if (hostile->arming)
			arm_again(hostile, sweep_ns + tick_ns);
		sweep_ns = monotonic_ns() - begin_ns;
		hostile->sweeps++;
	}
	return NULL;
}

/* A task that wants the CPU for itself: how far it has come. */
struct counting {
	int cpu;
	atomic_bool stop;
	atomic_ullong steps;
};

static void *count_up(void *arg)
{
	struct counting *counting = arg;

	pin_to_cpu(counting->cpu);
	while (!counting->stop)
		counting->steps++;
	return NULL;
}

/* Ordinary events on the same CPU: all come, in order, never early.  The worst lateness. */
static __u64 run_ordinary_events(int fd)
{
	__u64 start_ns = monotonic_ns() + SOON_NS, worst_ns = 0;
	const __u64 apart_ns = TURN_NS / NR_ORDINARY;
	struct twheel_cmd cmds[NR_ORDINARY];
	bool in_time;
	size_t i;

	for (i = 0; i < NR_ORDINARY; i++)
		cmds[i] = make_add(TWHEEL_ABS, start_ns + i * apart_ns, i);
	ASSERT_EQ(submit(fd, cmds, NR_ORDINARY), NR_ORDINARY);
	/* An event that is past due when armed is ready at once, before the others. */
	in_time = monotonic_ns() < start_ns;
	for (i = 0; i < NR_ORDINARY; i++) {
		struct twheel_record record = wait_record(fd);

		ASSERT_EQ(record.due_ns, start_ns + record.data * apart_ns);
		if (in_time)
			ASSERT_EQ(record.data, i);
		if (record.fired_ns - record.due_ns > worst_ns)
			worst_ns = record.fired_ns - record.due_ns;
	}
	check_nothing_ready(fd);
	return worst_ns;
}

static void arm_hostile(struct hostile *hostile, int cpu, size_t nr)
{
	struct twheel_cmd *cmds = calloc(nr, sizeof(*cmds));
	size_t i;

	ASSERT(cmds);
	hostile->nr = nr;
	hostile->ids = map_pages(nr * sizeof(*hostile->ids));
	hostile->fd = open_on_cpu(cpu, nr);
	hostile->words = map_deadlines(hostile->fd, nr);
	for (i = 0; i < nr; i++) {
		hostile->words[i] = monotonic_ns() + FAR_NS;
		cmds[i] = make_deadline_add(i, i);
	}
	ASSERT_EQ(submit(hostile->fd, cmds, nr), nr);
	for (i = 0; i < nr; i++) {
		ASSERT_EQ(cmds[i].result, 0);
		hostile->ids[i] = cmds[i].id;
	}
	free(cmds);
}

/*
 * Some have fired, and others have their words by now.  Where the thread that stores was
 * kept from running, all have fired; they are armed again.
 */
static void cancel_half(struct hostile *hostile)
{
	long long cancelled = 0;
	struct counters after;
	size_t i;

	for (i = 0; i < hostile->nr || !cancelled; i += 2) {
		int result = cancel(hostile->fd, hostile->ids[i % hostile->nr]);

		if (result)
			ASSERT_EQ(result, -ENOENT);
		else
			cancelled++;
	}
	after = get_counters(hostile->fd);
	check_sum(&after);
	ASSERT_EQ(after.cancelled, cancelled);
}

/* The time that others had on the CPU in some turns. */
struct progress {
	__u64 worst_ns;			/* the worst lateness */
	unsigned long long steps;	/* of the task */
};

static struct progress measure_others(int fd, struct counting *counting)
{
	struct progress progress = { .steps = -counting->steps };
	int turn;

	for (turn = 0; turn < TURNS; turn++) {
		__u64 late_ns = run_ordinary_events(fd);

		if (late_ns > progress.worst_ns)
			progress.worst_ns = late_ns;
	}
	progress.steps += counting->steps;
	return progress;
}

/* Nobody uses the file when it is closed, and the storing goes on. */
static void close_in_the_storm(struct hostile *hostile)
{
	hostile->arming = false;
	wait_for_sweeps(hostile, 2);
	ASSERT_EQ(close(hostile->fd), 0);
	wait_for_sweeps(hostile, 2);
}

TEST(deadline_storm_on_very_many_words_starves_nobody)
{
	const size_t nr = test_count(100000);
	struct counting counting = { .steps = 0 };
	struct hostile hostile = { .arming = true };
	long long armed = armed_on_machine();
	struct progress quiet, storm;
	pthread_t storer, counter;
	int cpus[2], ordinary;

	if (get_cpus(cpus, 2) < 2)
		test_skip("one CPU");
	counting.cpu = cpus[0];
	hostile.cpu = cpus[1];
	ordinary = open_on_cpu(cpus[0], 0);
	arm_hostile(&hostile, cpus[0], nr);
	storer = start_thread(store_a_tick_ahead, &hostile);
	counter = start_thread(count_up, &counting);
	quiet = measure_others(ordinary, &counting);
	ASSERT_EQ(count_postponed(hostile.fd), 0);
	begin_storm(&hostile);
	hostile.storing = true;
	storm = measure_others(ordinary, &counting);
	printf("# %llu sweeps over %zu words, postponed %lld, expired %lld\n",
	       (unsigned long long)hostile.sweeps, nr, count_postponed(hostile.fd),
	       get_counters(hostile.fd).finished);
	printf("# others were late by %llu us at most, without it by %llu us\n",
	       storm.worst_ns / 1000, quiet.worst_ns / 1000);
	printf("# a task made %llu steps, without it %llu\n", storm.steps, quiet.steps);
	if (!count_postponed(hostile.fd) && is_debug_kernel())
		test_skip("the kernel is so slow that each store comes too late");
	ASSERT_GT(count_postponed(hostile.fd), 0);
	ASSERT_GT(storm.steps, 0);

	cancel_half(&hostile);
	close_in_the_storm(&hostile);
	hostile.stop = true;
	counting.stop = true;
	join_thread(storer);
	join_thread(counter);
	ASSERT_EQ(close(ordinary), 0);
	ASSERT_EQ(munmap((void *)hostile.words, nr * sizeof(*hostile.words)), 0);
	wait_armed_on_machine(armed);
}
