// SPDX-License-Identifier: GPL-2.0
/*
 * Long calls on one context let others have their turns: a SUBMIT of very many
 * commands, a read() of very many records, a LIST of very many events.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "device.h"
#include "util.h"

/*
 * The fewest calls of another thread that must come through during a long one.  That thread
 * can stand still in the first attempt.  Later attempts ask for so many calls that they
 * cannot pass by chance.
 */
#define TURNS		50
#define TURNS_AGAIN	1000
#define ATTEMPTS	3

/* A thread in a long call, and what came of it. */
struct long_call {
	int fd;
	size_t nr;
	struct twheel_cmd *cmds;
	struct twheel_record *records;
	struct twheel_entry *entries;
	const volatile __u32 *first;	/* written when the call begins to work */
	const volatile __u32 *last;	/* and when it has nearly done */
	__u32 unwritten;
	atomic_bool done;
	long ret;
};

static void *submit_many(void *arg)
{
	struct long_call *call = arg;

	call->ret = submit(call->fd, call->cmds, call->nr);
	call->done = true;
	return NULL;
}

static void *read_many(void *arg)
{
	struct long_call *call = arg;

	call->ret = read_records(call->fd, call->records, call->nr);
	call->done = true;
	return NULL;
}

static void *list_many(void *arg)
{
	struct long_call *call = arg;
	struct twheel_list list = make_list(call->entries, call->nr);

	call->ret = device_ioctl(call->fd, TWHEEL_IOC_LIST, &list);
	call->done = true;
	return NULL;
}

static bool is_under_way(const struct long_call *call)
{
	return *call->first != call->unwritten && *call->last == call->unwritten;
}

/* Cancel what is not there until the long call is over; how often it was in the midst. */
static unsigned int count_turns(struct long_call *call, void *(*run)(void *arg))
{
	unsigned int turns = 0;
	pthread_t thread;

	call->done = false;
	thread = start_thread(run, call);
	while (!call->done) {
		bool was_under_way = is_under_way(call);

		ASSERT_EQ(cancel(call->fd, 1), -ENOENT);
		turns += was_under_way && is_under_way(call);
	}
	join_thread(thread);
	printf("# %u calls during one\n", turns);
	return turns;
}

static void check_turns(struct long_call *call, void (*prepare)(struct long_call *call),
			void *(*run)(void *arg))
{
	unsigned int attempt = 0, turns;

	do {
		ASSERT_LT(attempt, ATTEMPTS);
		prepare(call);
		turns = count_turns(call, run);
	} while (turns < (attempt++ ? TURNS_AGAIN : TURNS));
	ASSERT_EQ(call->ret, call->nr);
}

/* Enough commands that others get a CPU during the call, on a busy machine too. */
static size_t many(void)
{
	return 100000 + test_count(200000);
}

static void prepare_queries(struct long_call *call)
{
	size_t i;

	for (i = 0; i < call->nr; i++)
		call->cmds[i] = make_cmd(TWHEEL_OP_QUERY, 1);
}

TEST(commands_of_others_come_through_a_submit_of_very_many)
{
	struct long_call call = {
		.fd = device_open_nonblock(),
		.nr = many(),
	};
	size_t i;

	call.cmds = map_pages(call.nr * sizeof(*call.cmds));
	call.first = (__u32 *)&call.cmds[0].result;
	call.last = (__u32 *)&call.cmds[call.nr - 1].result;
	call.unwritten = FILL_RESULT;
	check_turns(&call, prepare_queries, submit_many);
	for (i = 0; i < call.nr; i++)
		ASSERT_EQ(call.cmds[i].result, -ENOENT);
}

TEST(two_submits_of_very_many_both_end)
{
	struct long_call calls[2];
	pthread_t threads[2];
	size_t i, k;

	calls[0].fd = device_open_nonblock();
	for (i = 0; i < 2; i++) {
		calls[i] = (struct long_call){
			.fd = calls[0].fd,
			.nr = test_count(100000),
		};
		calls[i].cmds = map_pages(calls[i].nr * sizeof(*calls[i].cmds));
		prepare_queries(&calls[i]);
		threads[i] = start_thread(submit_many, &calls[i]);
	}
	for (i = 0; i < 2; i++) {
		join_thread(threads[i]);
		ASSERT_EQ(calls[i].ret, calls[i].nr);
		for (k = 0; k < calls[i].nr; k++)
			ASSERT_EQ(calls[i].cmds[k].result, -ENOENT);
	}
}

/* Give the data of the records, each of which must be seen once. */
static void check_all_once(const unsigned char *seen, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		ASSERT_EQ(seen[i], 1);
}

static void prepare_records(struct long_call *call)
{
	memset(call->records, 0, call->nr * sizeof(*call->records));
	add_many(call->fd, 0, 0, call->nr, NULL);
}

TEST(commands_of_others_come_through_a_read_of_very_many)
{
	struct long_call call = {
		.fd = device_open_nonblock(),
		.nr = many(),
	};
	size_t i;

	call.records = map_pages(call.nr * sizeof(*call.records));
	call.first = (__u32 *)&call.records[0].count;
	call.last = (__u32 *)&call.records[call.nr - 1].count;
	check_turns(&call, prepare_records, read_many);
	for (i = 0; i < call.nr; i++)
		ASSERT_EQ(call.records[i].data, i);
}

TEST(reads_of_very_many_by_two_threads_give_each_record_to_one_of_them)
{
	const size_t nr = test_count(200000);
	unsigned char *seen = map_pages(nr);
	struct long_call calls[2];
	pthread_t threads[2];
	int fd = device_open_nonblock();
	size_t i;
	long k;

	add_many(fd, 0, 0, nr, NULL);
	for (i = 0; i < 2; i++) {
		calls[i] = (struct long_call){ .fd = fd, .nr = nr };
		calls[i].records = map_pages(nr * sizeof(*calls[i].records));
		threads[i] = start_thread(read_many, &calls[i]);
	}
	for (i = 0; i < 2; i++) {
		join_thread(threads[i]);
		for (k = 0; k < calls[i].ret; k++)
			seen[calls[i].records[k].data]++;
		for (k = 1; k < calls[i].ret; k++)
			ASSERT_GT(calls[i].records[k].data,
				  calls[i].records[k - 1].data);
	}
	check_all_once(seen, nr);
	check_nothing_ready(fd);
}

static void prepare_entries(struct long_call *call)
{
	memset(call->entries, 0, call->nr * sizeof(*call->entries));
}

TEST(commands_of_others_come_through_a_list_of_very_many)
{
	struct long_call call = {
		.fd = device_open_nonblock(),
		.nr = many(),
	};
	unsigned char *seen = map_pages(call.nr);
	size_t i;

	call.entries = map_pages(call.nr * sizeof(*call.entries));
	call.first = &call.entries[0].state;
	call.last = &call.entries[call.nr - 1].state;
	add_many(call.fd, 0, FAR_NS, call.nr, NULL);
	check_turns(&call, prepare_entries, list_many);
	for (i = 0; i < call.nr; i++)
		seen[call.entries[i].data]++;
	check_all_once(seen, call.nr);
}

/* Those with even data stay. */
TEST(list_of_very_many_tells_each_lasting_event_once_while_others_go_and_come)
{
	const size_t nr = test_count(100000);
	struct long_call call = { .fd = device_open_nonblock(), .nr = 2 * nr };
	unsigned char *seen = map_pages(nr);
	__u64 *ids = map_pages(nr * sizeof(*ids));
	size_t i = 1, k;
	pthread_t thread;
	long entry;

	call.entries = map_pages(call.nr * sizeof(*call.entries));
	add_many(call.fd, 0, FAR_NS, nr, ids);
	thread = start_thread(list_many, &call);
	while (!call.done) {
		ASSERT_EQ(cancel(call.fd, ids[i]), 0);
		ids[i] = add(call.fd, 0, FAR_NS, i);
		i = (i + 2 * 4711) % nr | 1;
	}
	join_thread(thread);
	ASSERT_GE(call.ret, (long)nr / 2);
	for (entry = 0; entry < call.ret; entry++)
		seen[call.entries[entry].data]++;
	for (k = 0; k < nr; k += 2)
		ASSERT_EQ(seen[k], 1);
}

/* Kill a process in the middle of a read of all there is; how much it left. */
static long long kill_in_read(struct long_call *call)
{
	long long finished = get_counters(call->fd).finished;
	struct counters now;
	pid_t child;

	add_many(call->fd, 0, 0, call->nr, NULL);
	wait_ready(call->fd, call->nr);
	child = start_child();
	if (!child) {
		read_many(call);
		/* It is killed here where that comes too late. */
		for (;;)
			pause();
	}
	while (get_counters(call->fd).finished == finished)
		;
	kill_child(child);
	now = get_counters(call->fd);
	check_sum(&now);
	if (now.ready)
		ASSERT_EQ(read_records(call->fd, call->records, call->nr),
			  now.ready);
	check_nothing_ready(call->fd);
	return now.ready;
}

TEST(kill_of_a_process_in_a_read_of_very_many_ends_it_before_all_is_read)
{
	struct long_call call = {
		.fd = device_open_nonblock(),
		.nr = test_count(200000),
	};
	unsigned int round;

	call.records = map_pages(call.nr * sizeof(*call.records));
	/* Now and then we may be too slow to catch it. */
	for (round = 0; round < 100; round++) {
		if (kill_in_read(&call))
			return;
	}
	ASSERT(!"each time it read all");
}
