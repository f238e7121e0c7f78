// SPDX-License-Identifier: GPL-2.0
/* TWHEEL_IOC_SUBMIT: the array of commands and its results. */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device.h"
#include "flipped_page.h"
#include "util.h"

static struct twheel_submit make_submit(void *cmds, __u32 nr, __u32 cmd_size)
{
	return (struct twheel_submit){
		.size = sizeof(struct twheel_submit),
		.cmds = (uintptr_t)cmds,
		.nr = nr,
		.cmd_size = cmd_size,
	};
}

static long submit_by(int fd, const struct twheel_submit *arg)
{
	struct twheel_submit copy = *arg;
	long ret = device_ioctl(fd, TWHEEL_IOC_SUBMIT, &copy);

	/* It is an input only; the results are in the commands. */
	ASSERT_EQ(memcmp(&copy, arg, sizeof(copy)), 0);
	return ret;
}

static void fill_adds(struct twheel_cmd *cmds, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		cmds[i] = make_add(0, FAR_NS, i);
}

/* Check that @nr events were armed by the commands, and no other by more. */
static void check_armed(int fd, const struct twheel_cmd *cmds, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++) {
		ASSERT_EQ(cmds[i].result, 0);
		ASSERT_EQ(query(fd, cmds[i].id, NULL), TWHEEL_ARMED);
	}
	ASSERT_EQ(get_counters(fd).added, nr);
	ASSERT_EQ(get_counters(fd).armed, nr);
}

/* --- commands and their results --------------------------------------------- */

/* Events that are armed already, and new ones, which are armed on the same CPU. */
TEST(submit_touches_no_more_events_at_once_than_a_batch)
{
	struct twheel_cmd cmds[256];
	int fd = device_open_nonblock();
	size_t i, half = ARRAY_SIZE(cmds) / 2;

	pin_to_this_cpu();
	fill_adds(cmds, half);
	ASSERT_EQ(submit(fd, cmds, half), (long)half);
	for (i = half; i-- > 0;) {
		cmds[2 * i] = make_modify(cmds[i].id, 0, FAR_NS + 1);
		cmds[2 * i + 1] = make_add(0, FAR_NS, 0);
	}
	ASSERT_EQ(submit(fd, cmds, 2 * half), (long)(2 * half));
	for (i = 0; i < 2 * half; i++)
		ASSERT_EQ(cmds[i].result, 0);
	ASSERT_GE(most_touched_on_machine(), 2);
	ASSERT_LE(most_touched_on_machine(), 64);
	close(fd);
}

TEST(submit_of_nothing_returns_0)
{
	struct twheel_submit arg = make_submit(NULL, 0,
					       sizeof(struct twheel_cmd));

	ASSERT_EQ(submit_by(device_open_nonblock(), &arg), 0);
}

TEST(submit_runs_every_command_in_order)
{
	int fd = device_open_nonblock();
	__u64 id = add(fd, 0, FAR_NS, 0);
	struct twheel_cmd cmds[] = {
		make_modify(id, TWHEEL_ABS, 1 * FAR_NS),
		make_cmd(TWHEEL_OP_QUERY, id),
		make_modify(id, TWHEEL_ABS, 2 * FAR_NS),
		make_cmd(TWHEEL_OP_QUERY, id),
		make_cmd(TWHEEL_OP_CANCEL, id),
		make_cmd(TWHEEL_OP_QUERY, id),
	};

	ASSERT_EQ(submit(fd, cmds, ARRAY_SIZE(cmds)), ARRAY_SIZE(cmds));
	ASSERT_EQ(cmds[0].result, 0);
	ASSERT_EQ(cmds[1].result, TWHEEL_ARMED);
	ASSERT_EQ(cmds[1].time_ns, 1 * FAR_NS);
	ASSERT_EQ(cmds[2].result, 0);
	ASSERT_EQ(cmds[3].result, TWHEEL_ARMED);
	ASSERT_EQ(cmds[3].time_ns, 2 * FAR_NS);
	ASSERT_EQ(cmds[4].result, 0);
	ASSERT_EQ(cmds[5].result, -ENOENT);
}

TEST(submit_goes_on_after_a_command_that_fails)
{
	int fd = device_open_nonblock();
	struct twheel_cmd cmds[] = {
		make_add(0, FAR_NS, 1),
		make_cmd(0, 0),
		make_cmd(TWHEEL_OP_CANCEL, 0),
		make_add(TWHEEL_QUIET, FAR_NS, 2),
		make_add(0, FAR_NS, 3),
	};

	ASSERT_EQ(submit(fd, cmds, ARRAY_SIZE(cmds)), ARRAY_SIZE(cmds));
	ASSERT_EQ(cmds[0].result, 0);
	ASSERT_EQ(cmds[1].result, -EINVAL);
	ASSERT_EQ(cmds[2].result, -ENOENT);
	ASSERT_EQ(cmds[3].result, -EINVAL);
	ASSERT_EQ(cmds[3].id, 0);
	ASSERT_EQ(cmds[4].result, 0);
	ASSERT_EQ(query(fd, cmds[0].id, NULL), TWHEEL_ARMED);
	ASSERT_EQ(query(fd, cmds[4].id, NULL), TWHEEL_ARMED);
	ASSERT_EQ(get_counters(fd).added, 2);
}

TEST(submit_writes_only_the_outputs)
{
	int fd = device_open_nonblock();
	__u64 id = add(fd, 0, FAR_NS, 1);
	struct twheel_cmd cmds[] = {
		make_add(0, FAR_NS, 2),
		make_modify(id, TWHEEL_SET_DATA, FAR_NS),
		make_cmd(TWHEEL_OP_QUERY, id),
		make_cmd(TWHEEL_OP_CANCEL, id),
	};
	struct twheel_cmd expected[ARRAY_SIZE(cmds)];

	memcpy(expected, cmds, sizeof(cmds));
	ASSERT_EQ(submit(fd, cmds, ARRAY_SIZE(cmds)), ARRAY_SIZE(cmds));
	expected[0].result = 0;
	expected[0].id = cmds[0].id;
	expected[1].result = 0;
	expected[2].result = TWHEEL_ARMED;
	expected[2].time_ns = cmds[2].time_ns;
	expected[2].interval_ns = 0;
	expected[2].slack_ns = 0;
	expected[3].result = 0;
	ASSERT_EQ(memcmp(cmds, expected, sizeof(cmds)), 0);
}

static void check_submit_of(size_t nr)
{
	int fd = device_open_nonblock();
	struct twheel_cmd *cmds = map_before_hole(nr * sizeof(*cmds));

	fill_adds(cmds, nr);
	ASSERT_EQ(submit(fd, cmds, nr), nr);
	check_armed(fd, cmds, nr);
}

TEST(submit_takes_1000_commands)
{
	check_submit_of(1000);
}

TEST(submit_takes_100000_commands)
{
	check_submit_of(test_count(100000));
}

TEST(submit_takes_an_unaligned_array)
{
	unsigned int shift;

	for (shift = 1; shift < 8; shift++) {
		int fd = device_open_nonblock();
		struct twheel_cmd cmds[100];
		char *array = map_before_hole(sizeof(cmds) + shift);

		test_about("%u bytes off", shift);
		fill_adds(cmds, ARRAY_SIZE(cmds));
		memcpy(array, cmds, sizeof(cmds));
		ASSERT_EQ(submit(fd, (struct twheel_cmd *)array,
				 ARRAY_SIZE(cmds)), ARRAY_SIZE(cmds));
		memcpy(cmds, array, sizeof(cmds));
		check_armed(fd, cmds, ARRAY_SIZE(cmds));
	}
}

/* --- memory that is not there or read-only ---------------------------------- */

static void check_array_before_hole(size_t mapped)
{
	int fd = device_open_nonblock();
	struct twheel_cmd *cmds = map_before_hole(mapped * sizeof(*cmds));

	test_about("%zu commands before the hole", mapped);
	fill_adds(cmds, mapped);
	ASSERT_EQ(submit(fd, cmds, mapped + 100), mapped);
	check_armed(fd, cmds, mapped);
}

TEST(submit_stops_at_an_unmapped_page_and_says_how_many_were_done)
{
	static const size_t counts[] = {
		1, 2, 3, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 100, 127, 128,
		129, 255, 256, 257, 1000,
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(counts); i++)
		check_array_before_hole(counts[i]);
}

TEST(submit_stops_at_a_command_that_is_only_half_mapped)
{
	int fd = device_open_nonblock();
	struct twheel_cmd cmds[2];
	char *array = map_before_hole(sizeof(cmds) + 32);

	fill_adds(cmds, 2);
	memcpy(array, cmds, sizeof(cmds));
	ASSERT_EQ(submit(fd, (struct twheel_cmd *)array, 3), 2);
	memcpy(cmds, array, sizeof(cmds));
	check_armed(fd, cmds, 2);
}

TEST(submit_of_more_than_memory_can_hold_stops_at_its_end)
{
	int fd = device_open_nonblock();
	struct twheel_cmd *cmds = map_before_hole(10 * sizeof(*cmds));

	fill_adds(cmds, 10);
	ASSERT_EQ(submit(fd, cmds, ~0U), 10);
	check_armed(fd, cmds, 10);
}

TEST(submit_of_a_read_only_array_arms_nothing)
{
	int fd = device_open_nonblock();
	struct twheel_cmd *cmds = map_pages(PAGE_BYTES);
	struct counters before = get_counters(fd);

	fill_adds(cmds, CMDS_PER_PAGE);
	make_read_only(cmds, PAGE_BYTES);
	ASSERT_EQ(submit(fd, cmds, CMDS_PER_PAGE), -EFAULT);
	ASSERT_EQ(cmds[0].result, FILL_RESULT);
	check_counters(fd, &before);
}

TEST(submit_of_no_commands_looks_at_nothing_of_them)
{
	struct twheel_submit submit = { .size = 4 };
	int fd = device_open_nonblock();

	ASSERT_EQ(device_ioctl(fd, TWHEEL_IOC_SUBMIT, &submit), 0);
	submit.size = sizeof(submit);
	ASSERT_EQ(device_ioctl(fd, TWHEEL_IOC_SUBMIT, &submit), 0);
	submit.cmds = 1;
	submit.cmd_size = 3;
	ASSERT_EQ(device_ioctl(fd, TWHEEL_IOC_SUBMIT, &submit), 0);
}

/* Check that a command on an event, which cannot be reported, is not done. */
static void check_read_only_does_nothing(int fd, const struct twheel_cmd *cmd)
{
	struct twheel_cmd *array = map_pages(PAGE_BYTES);
	struct counters before = get_counters(fd);
	__u64 time_ns = query_time(fd, cmd->id);

	*array = *cmd;
	make_read_only(array, PAGE_BYTES);
	ASSERT_EQ(submit(fd, array, 1), -EFAULT);
	check_counters(fd, &before);
	ASSERT_EQ(query_time(fd, cmd->id), time_ns);
}

TEST(submit_of_a_read_only_array_cancels_nothing)
{
	int fd = device_open_nonblock();
	struct twheel_cmd cmd = make_cmd(TWHEEL_OP_CANCEL,
					 add(fd, 0, FAR_NS, 0));

	check_read_only_does_nothing(fd, &cmd);
}

TEST(submit_of_a_read_only_array_modifies_nothing)
{
	int fd = device_open_nonblock();
	struct twheel_cmd cmd = make_modify(add(fd, 0, FAR_NS, 0), 0,
					    2 * FAR_NS);

	check_read_only_does_nothing(fd, &cmd);
}

TEST(submit_arms_what_comes_before_a_read_only_page_only)
{
	static const size_t counts[] = { 1, 10, 31, 32, 33, 63, 64, 65, 200 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(counts); i++) {
		int fd = device_open_nonblock();
		size_t bytes = counts[i] * sizeof(struct twheel_cmd);
		struct twheel_cmd *cmds = map_before_read_only(bytes,
							       PAGE_BYTES);

		test_about("%zu commands before the page", counts[i]);
		fill_adds(cmds, counts[i] + CMDS_PER_PAGE);
		make_read_only(cmds + counts[i], PAGE_BYTES);
		ASSERT_EQ(submit(fd, cmds, counts[i] + CMDS_PER_PAGE),
			  counts[i]);
		check_armed(fd, cmds, counts[i]);
		ASSERT_EQ(cmds[counts[i]].result, FILL_RESULT);
	}
}

TEST(submit_undoes_an_add_whose_result_is_half_read_only)
{
	int fd = device_open_nonblock();
	struct twheel_cmd add_cmd = make_add(0, FAR_NS, 0);
	char *cmd = map_before_read_only(offsetof(struct twheel_cmd, id),
					 PAGE_BYTES);
	struct counters before = get_counters(fd);

	memcpy(cmd, &add_cmd, sizeof(add_cmd));
	make_read_only(cmd + offsetof(struct twheel_cmd, id), PAGE_BYTES);
	ASSERT_EQ(submit(fd, (struct twheel_cmd *)cmd, 1), -EFAULT);
	check_counters(fd, &before);
}

/* --- memory that becomes read-only meanwhile -------------------------------- */

/* Returns how many commands of a page that becomes read-only meanwhile were done. */
static long submit_flipped(int fd, const struct flipped *page, size_t nr)
{
	long done = submit(fd, page->flipped, nr);

	if (done == -EFAULT)
		return 0;
	ASSERT_GE(done, 0);
	return done;
}

TEST(submit_undoes_adds_when_the_array_becomes_read_only_meanwhile)
{
	const unsigned int rounds = test_count(5000);
	int fd = device_open_nonblock();
	struct flipped page;
	long long added = 0;
	unsigned int round;

	start_flipping(&page);
	for (round = 0; round < rounds; round++) {
		struct twheel_cmd cmds[CMDS_PER_PAGE];
		long done, i;

		test_about("round %u", round);
		fill_adds(page.writable, CMDS_PER_PAGE);
		done = submit_flipped(fd, &page, CMDS_PER_PAGE);
		added += done;
		ASSERT_EQ(get_counters(fd).added, added);
		ASSERT_EQ(get_counters(fd).armed, done);
		for (i = 0; i < done; i++)
			cmds[i] = make_cmd(TWHEEL_OP_CANCEL,
					   page.writable[i].id);
		ASSERT_EQ(submit(fd, cmds, done), done);
		for (i = 0; i < done; i++)
			ASSERT_EQ(cmds[i].result, 0);
	}
	stop_flipping(&page);
}

/* Each ADD of the first half is cancelled in the second, by the id it will get. */
static void fill_adds_and_cancels(struct twheel_cmd *cmds, const __u64 *ids)
{
	size_t i;

	fill_adds(cmds, CMDS_PER_PAGE / 2);
	for (i = 0; i < CMDS_PER_PAGE / 2; i++)
		cmds[CMDS_PER_PAGE / 2 + i] = make_cmd(TWHEEL_OP_CANCEL, ids[i]);
}

/* Check that of the ADDs that were reported each is there or was cancelled. */
static void check_reported(int fd, const struct twheel_cmd *cmds, long done)
{
	struct counters counters = get_counters(fd);
	long long armed = 0;
	long i;

	check_sum(&counters);
	for (i = 0; i < done && i < (long)CMDS_PER_PAGE / 2; i++) {
		int state = query(fd, cmds[i].id, NULL);

		ASSERT_EQ(cmds[i].result, 0);
		if (state != -ENOENT)
			ASSERT_EQ(state, TWHEEL_ARMED);
		armed += state > 0;
	}
	for (i = CMDS_PER_PAGE / 2; i < done; i++) {
		ASSERT_EQ(cmds[i].result, 0);
		ASSERT_EQ(query(fd, cmds[i].id, NULL), -ENOENT);
	}
	ASSERT_EQ(counters.armed, armed);
	ASSERT_EQ(counters.ready, 0);
}

TEST(submit_undoes_adds_that_the_same_call_cancelled_meanwhile)
{
	const unsigned int rounds = test_count(5000);
	struct flipped page;
	__u64 ids[CMDS_PER_PAGE / 2];
	unsigned int round;

	/* Fresh contexts give the same ids. */
	add_many(device_open_nonblock(), 0, FAR_NS, ARRAY_SIZE(ids), ids);
	start_flipping(&page);
	for (round = 0; round < rounds; round++) {
		int fd = device_open_nonblock();
		long done;

		test_about("round %u", round);
		fill_adds_and_cancels(page.writable, ids);
		done = submit_flipped(fd, &page, CMDS_PER_PAGE);
		check_reported(fd, page.writable, done);
		close(fd);
	}
	stop_flipping(&page);
}

/* Operations, each ended by a signal later in the same chunk. */
#define WATCHED		12

static void fill_adds_and_signals(struct twheel_cmd *cmds)
{
	size_t i;

	for (i = 0; i < WATCHED; i++) {
		cmds[2 * i] = make_add(0, FAR_NS, i);
		cmds[2 * i + 1] = make_watch(0, i, 1);
	}
	for (i = 0; i < WATCHED; i++)
		cmds[2 * WATCHED + i] = make_signal(i, 1);
}

/* Check that the records of @nr operations are there, of the first @adds. */
static void check_records(int fd, size_t nr, size_t adds)
{
	struct twheel_record records[WATCHED + 1];
	size_t i;

	ASSERT_EQ(read_records(fd, records, ARRAY_SIZE(records)),
		  nr ? (long)nr : -EAGAIN);
	for (i = 0; i < nr; i++) {
		ASSERT_LT(records[i].data, adds);
		check_completed(&records[i], 1, records[i].data);
	}
}

/* Check that of the ADDs that were reported each is there, and nothing else. */
static void check_operations_reported(int fd, const struct twheel_cmd *cmds,
				      long done)
{
	struct counters counters = get_counters(fd);
	size_t adds = done < 2 * WATCHED ? (done + 1) / 2 : WATCHED;
	size_t ready = 0, i;

	check_sum(&counters);
	ASSERT_EQ(counters.added, adds);
	ASSERT_EQ(counters.cancelled, 0);
	ASSERT_EQ(counters.armed + counters.ready, adds);
	for (i = 0; i < adds; i++) {
		ASSERT_EQ(cmds[2 * i].result, 0);
		ready += query(fd, cmds[2 * i].id, NULL) == TWHEEL_READY;
	}
	ASSERT_EQ(counters.ready, ready);
	ASSERT_EQ(counters.completed, ready);

	/* Those that are watched still can be ended, those undone cannot. */
	for (i = 0; i < adds; i++)
		ready += signal_key(fd, i, 1);
	for (; i < WATCHED; i++)
		ASSERT_EQ(signal_key(fd, i, 1), 0);
	ASSERT_EQ(get_counters(fd).ready, ready);
	check_records(fd, ready, adds);
}

TEST(submit_undoes_adds_that_the_same_call_watched_and_completed_meanwhile)
{
	const unsigned int rounds = test_count(5000);
	struct flipped page;
	unsigned int round;

	start_flipping(&page);
	for (round = 0; round < rounds; round++) {
		int fd = device_open_nonblock();
		long done;

		test_about("round %u", round);
		fill_adds_and_signals(page.writable);
		done = submit_flipped(fd, &page, 3 * WATCHED);
		check_operations_reported(fd, page.writable, done);
		close(fd);
	}
	stop_flipping(&page);
}

/* --- one command a call ----------------------------------------------------- */

/* Run a command by a SUBMIT, with nothing behind either struct; its result. */
static int run_before_holes(int fd, struct twheel_cmd *cmd)
{
	struct twheel_submit *arg = map_before_hole(sizeof(*arg));
	struct twheel_cmd *place = map_before_hole(sizeof(*place));

	*place = *cmd;
	*arg = make_submit(place, 1, sizeof(*place));
	ASSERT_EQ(device_ioctl(fd, TWHEEL_IOC_SUBMIT, arg), 1);
	*cmd = *place;
	return cmd->result;
}

TEST(submit_of_one_command_at_the_end_of_memory_runs_it)
{
	int fd = device_open_nonblock();
	struct twheel_cmd cmd = make_add(TWHEEL_ABS, FAR_NS, 1);
	__u64 id;

	ASSERT_EQ(run_before_holes(fd, &cmd), 0);
	id = cmd.id;
	cmd = make_modify(id, TWHEEL_ABS, 2 * FAR_NS);
	ASSERT_EQ(run_before_holes(fd, &cmd), 0);
	cmd = make_cmd(TWHEEL_OP_QUERY, id);
	ASSERT_EQ(run_before_holes(fd, &cmd), TWHEEL_ARMED);
	ASSERT_EQ(cmd.time_ns, 2 * FAR_NS);
	cmd = make_cmd(TWHEEL_OP_CANCEL, id);
	ASSERT_EQ(run_before_holes(fd, &cmd), 0);
	ASSERT_EQ(run_before_holes(fd, &cmd), -ENOENT);
	cmd = make_watch(0, 1, 1);
	ASSERT_EQ(run_before_holes(fd, &cmd), -ENOENT);
}

TEST(submit_of_one_command_that_is_half_mapped_does_nothing)
{
	int fd = device_open_nonblock();
	struct twheel_cmd cmd = make_cmd(TWHEEL_OP_CANCEL, add(fd, 0, FAR_NS, 0));
	struct counters before = get_counters(fd);
	size_t there;

	for (there = 0; there < sizeof(cmd); there += 4) {
		char *place = map_before_hole(there);

		test_about("%zu bytes", there);
		memcpy(place, &cmd, there);
		ASSERT_EQ(submit(fd, (struct twheel_cmd *)place, 1), -EFAULT);
	}
	check_counters(fd, &before);
}

TEST(submit_of_a_query_whose_times_cannot_be_written_fails)
{
	size_t writable = offsetof(struct twheel_cmd, slack_ns);
	struct twheel_cmd *cmd = map_before_read_only(writable, PAGE_BYTES);
	int fd = device_open_nonblock();

	*cmd = make_cmd(TWHEEL_OP_QUERY, add(fd, 0, FAR_NS, 0));
	make_read_only((char *)cmd + writable, PAGE_BYTES);
	ASSERT_EQ(submit(fd, cmd, 1), -EFAULT);
	ASSERT_EQ(cmd->result, FILL_RESULT);
}

TEST(submit_undoes_its_only_add_when_it_becomes_read_only_meanwhile)
{
	const unsigned int rounds = test_count(10000);
	int fd = device_open_nonblock();
	struct flipped page;
	unsigned int round;
	long long added = 0;

	start_flipping(&page);
	for (round = 0; round < rounds; round++) {
		long done;

		test_about("round %u", round);
		*page.writable = make_add(0, FAR_NS, round);
		done = submit_flipped(fd, &page, 1);
		added += done;
		ASSERT_EQ(get_counters(fd).added, added);
		ASSERT_EQ(get_counters(fd).armed, done);
		if (done)
			ASSERT_EQ(cancel(fd, page.writable->id), 0);
	}
	stop_flipping(&page);
}

/* Keeps a context busy with long calls. */
struct rival {
	int fd;
	atomic_bool stop;
};

static void *add_and_cancel(void *arg)
{
	struct rival *rival = arg;
	struct twheel_cmd cmds[CMDS_PER_PAGE];
	sigset_t all;
	size_t i;

	sigfillset(&all);
	ASSERT_EQ(pthread_sigmask(SIG_BLOCK, &all, NULL), 0);
	while (!rival->stop) {
		fill_adds(cmds, CMDS_PER_PAGE);
		ASSERT_EQ(submit(rival->fd, cmds, CMDS_PER_PAGE), CMDS_PER_PAGE);
		for (i = 0; i < CMDS_PER_PAGE; i++)
			cmds[i] = make_cmd(TWHEEL_OP_CANCEL, cmds[i].id);
		ASSERT_EQ(submit(rival->fd, cmds, CMDS_PER_PAGE), CMDS_PER_PAGE);
	}
	return NULL;
}

TEST(submit_of_one_command_among_signals_and_others_is_done_or_interrupted)
{
	const unsigned int rounds = test_count(20000);
	struct rival rival = { .fd = device_open_nonblock() };
	long long added = 0, cancelled = 0;
	pthread_t thread;
	unsigned int round;

	thread = start_thread(add_and_cancel, &rival);
	start_alarms(0);
	for (round = 0; round < rounds; round++) {
		struct twheel_cmd cmd = make_add(0, FAR_NS, round);
		long done = submit(rival.fd, &cmd, 1);

		test_about("round %u", round);
		if (done == -EINTR) {
			ASSERT_EQ(cmd.result, FILL_RESULT);
			continue;
		}
		ASSERT_EQ(done, 1);
		ASSERT_EQ(cmd.result, 0);
		added++;
		cmd = make_cmd(TWHEEL_OP_CANCEL, cmd.id);
		done = submit(rival.fd, &cmd, 1);
		if (done == -EINTR)
			continue;
		ASSERT_EQ(done, 1);
		ASSERT_EQ(cmd.result, 0);
		cancelled++;
	}
	rival.stop = true;
	join_thread(thread);
	ASSERT_EQ(get_counters(rival.fd).armed, added - cancelled);
}

/* --- longer commands -------------------------------------------------------- */

TEST(submit_takes_larger_commands_with_tails_of_zeros)
{
	static const __u32 sizes[] = { 65, 72, 100, 128, 1000, PAGE_BYTES };
	struct twheel_cmd cmd = make_add(0, FAR_NS, 0);
	size_t i, k;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		int fd = device_open_nonblock();
		char *array = map_before_hole(10 * sizes[i]);
		struct twheel_submit arg = make_submit(array, 10, sizes[i]);

		test_about("commands of %u bytes", sizes[i]);
		for (k = 0; k < 10; k++)
			memcpy(array + k * sizes[i], &cmd, sizeof(cmd));
		ASSERT_EQ(submit_by(fd, &arg), 10);
		for (k = 0; k < 10; k++) {
			struct twheel_cmd seen;

			memcpy(&seen, array + k * sizes[i], sizeof(seen));
			ASSERT_EQ(seen.result, 0);
			ASSERT_EQ(query(fd, seen.id, NULL), TWHEEL_ARMED);
			check_bytes(array + k * sizes[i] + sizeof(cmd), 0,
				    sizes[i] - sizeof(cmd));
		}
	}
}

TEST(submit_refuses_only_the_command_whose_tail_is_not_zero)
{
	struct {
		struct twheel_cmd cmd;
		unsigned char tail[64];
	} cmds[65];
	struct twheel_submit arg = make_submit(cmds, ARRAY_SIZE(cmds),
					       sizeof(cmds[0]));
	int fd = device_open_nonblock();
	size_t i;

	/* Each byte of the tail once, and one command that is right. */
	memset(cmds, 0, sizeof(cmds));
	for (i = 0; i < ARRAY_SIZE(cmds); i++) {
		cmds[i].cmd = make_add(0, FAR_NS, i);
		if (i < sizeof(cmds[i].tail))
			cmds[i].tail[i] = 1;
	}
	ASSERT_EQ(submit_by(fd, &arg), ARRAY_SIZE(cmds));
	for (i = 0; i < ARRAY_SIZE(cmds) - 1; i++) {
		test_about("byte %zu of the tail", i);
		ASSERT_EQ(cmds[i].cmd.result, -E2BIG);
		ASSERT_EQ(cmds[i].cmd.id, 0);
		ASSERT_EQ(cmds[i].tail[i], 1);
	}
	ASSERT_EQ(cmds[i].cmd.result, 0);
	ASSERT_EQ(get_counters(fd).added, 1);
}

TEST(submit_of_one_larger_command_looks_at_its_tail)
{
	struct {
		struct twheel_cmd cmd;
		__u64 tail;
	} longer = { .cmd = make_add(0, FAR_NS, 0) };
	struct twheel_submit arg = make_submit(&longer, 1, sizeof(longer));
	int fd = device_open_nonblock();

	ASSERT_EQ(submit_by(fd, &arg), 1);
	ASSERT_EQ(longer.cmd.result, 0);
	longer.cmd = make_add(0, FAR_NS, 0);
	longer.tail = 1;
	ASSERT_EQ(submit_by(fd, &arg), 1);
	ASSERT_EQ(longer.cmd.result, -E2BIG);
	ASSERT_EQ(longer.cmd.id, 0);
	ASSERT_EQ(get_counters(fd).added, 1);
}

/* --- signals ---------------------------------------------------------------- */

TEST(submit_stopped_by_a_signal_says_how_many_were_done)
{
	const size_t nr = 100000;
	struct twheel_cmd *cmds = map_pages(nr * sizeof(*cmds));
	long done;
	size_t i;

	start_alarms(0);
	do {
		int fd = device_open_nonblock();

		fill_adds(cmds, nr);
		done = submit(fd, cmds, nr);
		if (done == -EINTR)
			done = 0;
		ASSERT_GE(done, 0);
		ASSERT_EQ(get_counters(fd).added, done);
		for (i = 0; i < (size_t)done; i++)
			ASSERT_EQ(cmds[i].result, 0);
		for (; i < nr; i++)
			ASSERT_EQ(cmds[i].result, FILL_RESULT);
		close(fd);
	} while (done == 0 || (size_t)done == nr);
}
