// SPDX-License-Identifier: GPL-2.0
/* TWHEEL_OP_WATCH: what may be watched, and the id 0. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device.h"
#include "util.h"

#define KEY		0x1234

/* --- what is refused -------------------------------------------------------- */

static void check_watch_refused(int fd, __u64 id, int error)
{
	struct twheel_cmd cmd;

	cmd = make_watch(id, KEY, 1);
	check_refused(fd, &cmd, error);
	cmd = make_level(id, KEY, 1);
	check_refused(fd, &cmd, error);
	ASSERT_EQ(signal_key(fd, KEY, 1), 0);
}

TEST(watch_of_an_expired_event_is_too_late)
{
	int fd = device_open_nonblock();
	__u64 id = add(fd, 0, 0, 1);

	wait_ready(fd, 1);
	check_watch_refused(fd, id, EALREADY);
	ASSERT_EQ(wait_record(fd).id, id);
}

TEST(watch_of_a_completed_event_is_too_late)
{
	int fd = device_open_nonblock();
	__u64 id = add_watching(fd, KEY, 1, 1);

	ASSERT_EQ(signal_key(fd, KEY, 1), 1);
	check_watch_refused(fd, id, EALREADY);
	ASSERT_EQ(wait_completed(fd, 1, KEY).id, id);
}

TEST(watch_of_an_ended_event_finds_nothing)
{
	int fd = device_open_nonblock();
	__u64 cancelled = add(fd, 0, FAR_NS, 1);
	__u64 expired = add(fd, 0, 0, 2);
	__u64 completed = add_watching(fd, KEY, 1, 3);

	ASSERT_EQ(cancel(fd, cancelled), 0);
	ASSERT_EQ(wait_record(fd).id, expired);
	ASSERT_EQ(signal_key(fd, KEY, 1), 1);
	ASSERT_EQ(wait_completed(fd, 1, KEY).id, completed);
	check_watch_refused(fd, cancelled, ENOENT);
	check_watch_refused(fd, expired, ENOENT);
	check_watch_refused(fd, completed, ENOENT);
}

TEST(watch_of_an_id_with_one_bit_changed_finds_nothing)
{
	int fd = device_open_nonblock();
	__u64 id = add(fd, 0, FAR_NS, 0);
	unsigned int bit;

	for (bit = 0; bit < 64; bit++) {
		test_about("id %#llx, bit %u", id, bit);
		check_watch_refused(fd, id ^ (1ULL << bit), ENOENT);
	}
}

TEST(watch_of_an_event_of_another_context_finds_nothing)
{
	int fd = device_open_nonblock(), other = device_open_nonblock();

	check_watch_refused(other, add(fd, 0, FAR_NS, 0), ENOENT);
}

TEST(watch_of_a_periodic_event_is_refused)
{
	int fd = device_open_nonblock();
	__u64 id = add_by(fd, make_periodic(0, FAR_NS, NSEC_PER_SEC, 1));

	check_watch_refused(fd, id, EINVAL);
	ASSERT_EQ(query(fd, id, NULL), TWHEEL_ARMED);
}

TEST(watch_number_65_is_refused_and_the_others_stay)
{
	int fd = device_open_nonblock();
	__u64 id = add_operation(fd, 64, 1);
	struct twheel_cmd cmd;
	unsigned int i;

	for (i = 0; i < TWHEEL_MAX_WATCHES; i++)
		ASSERT_EQ(watch(fd, id, i, 1), 0);
	cmd = make_watch(id, 100, 1);
	check_refused(fd, &cmd, ENOSPC);
	cmd = make_level(id, 0, 1);
	check_refused(fd, &cmd, ENOSPC);
	ASSERT_EQ(list_one(fd, id).watches, TWHEEL_MAX_WATCHES);
	ASSERT_EQ(signal_key(fd, 100, 1), 0);
	for (i = 0; i < TWHEEL_MAX_WATCHES; i++)
		ASSERT_EQ(signal_key(fd, i, 1), i == TWHEEL_MAX_WATCHES - 1);
	ASSERT_EQ(wait_completed(fd, 1, i - 1).id, id);
}

TEST(watch_that_is_satisfied_makes_room_for_another)
{
	int fd = device_open_nonblock();
	__u64 id = add_operation(fd, 64, 1);
	unsigned int i;

	for (i = 0; i < TWHEEL_MAX_WATCHES; i++)
		ASSERT_EQ(watch(fd, id, i, 1), 0);
	ASSERT_EQ(signal_key(fd, 0, 1), 0);
	ASSERT_EQ(watch(fd, id, 64, 1), 0);
	ASSERT_EQ(watch(fd, id, 65, 1), -ENOSPC);
	for (i = 1; i < TWHEEL_MAX_WATCHES; i++)
		ASSERT_EQ(signal_key(fd, i, 1), i == TWHEEL_MAX_WATCHES - 1);
}

/* --- the id 0 --------------------------------------------------------------- */

/* Check that an operation is armed and has @nr watches. */
static void check_watches(int fd, __u64 id, __u64 nr)
{
	ASSERT_EQ(query(fd, id, NULL), TWHEEL_ARMED);
	ASSERT_EQ(list_one(fd, id).watches, nr);
}

TEST(watch_of_the_id_0_is_of_the_add_before_it)
{
	int fd = device_open_nonblock();
	struct twheel_cmd cmds[] = {
		make_add(0, FAR_NS, 42),
		make_watch(0, 1, 5),
		make_level(0, 2, 5),
	};

	ASSERT_EQ(submit(fd, cmds, ARRAY_SIZE(cmds)), ARRAY_SIZE(cmds));
	ASSERT_EQ(cmds[0].result, 0);
	ASSERT_EQ(cmds[1].result, 0);
	ASSERT_EQ(cmds[2].result, 0);
	/* It is an input. */
	ASSERT_EQ(cmds[1].id, 0);
	ASSERT_EQ(cmds[2].id, 0);
	check_watches(fd, cmds[0].id, 2);
	ASSERT_EQ(signal_key(fd, 1, 4), 0);
	ASSERT_EQ(signal_key(fd, 2, 4), 0);
	ASSERT_EQ(signal_key(fd, 2, 5), 1);
	ASSERT_EQ(wait_completed(fd, 5, 2).id, cmds[0].id);
}

TEST(watch_of_the_id_0_is_of_the_nearest_add)
{
	int fd = device_open_nonblock();
	struct twheel_cmd cmds[] = {
		make_add(0, FAR_NS, 1),
		make_watch(0, 1, 1),
		make_add(0, FAR_NS, 2),
		make_watch(0, 2, 1),
		make_watch(0, 2, 1),
		make_add(0, FAR_NS, 3),
		make_add(0, FAR_NS, 4),
		make_watch(0, 4, 1),
	};
	__u64 key;

	ASSERT_EQ(submit(fd, cmds, ARRAY_SIZE(cmds)), ARRAY_SIZE(cmds));
	for (key = 1; key <= 4; key++) {
		test_about("key %llu", key);
		if (key == 3) {
			ASSERT_EQ(signal_key(fd, key, 1), 0);
			continue;
		}
		ASSERT_EQ(signal_key(fd, key, 1), 1);
		ASSERT_EQ(wait_completed(fd, 1, key).data, key);
	}
}

TEST(watch_of_the_id_0_is_of_the_add_whatever_comes_between)
{
	int fd = device_open_nonblock();
	__u64 id = add(fd, 0, FAR_NS, 1), other = add(fd, 0, FAR_NS, 2);
	struct twheel_cmd cmds[] = {
		make_add(0, FAR_NS, 42),
		make_modify(id, 0, 2 * FAR_NS),
		make_cmd(TWHEEL_OP_QUERY, id),
		make_cmd(TWHEEL_OP_CANCEL, other),
		make_watch(id, 1, 1),
		make_signal(1, 1),
		make_complete(other, 1),
		make_cmd(0, 0),
		make_watch(0, 2, 1),
	};

	ASSERT_EQ(submit(fd, cmds, ARRAY_SIZE(cmds)), ARRAY_SIZE(cmds));
	ASSERT_EQ(cmds[4].result, 0);
	ASSERT_EQ(cmds[5].result, 1);
	ASSERT_EQ(cmds[8].result, 0);
	wait_completed(fd, 1, 1);
	ASSERT_EQ(signal_key(fd, 2, 1), 1);
	ASSERT_EQ(wait_completed(fd, 1, 2).id, cmds[0].id);
}

TEST(watch_of_the_id_0_without_an_add_before_it_finds_nothing)
{
	int fd = device_open_nonblock();
	struct twheel_cmd cmds[] = {
		make_watch(0, KEY, 1),
		make_add(0, FAR_NS, 42),
	};

	check_watch_refused(fd, 0, ENOENT);
	ASSERT_EQ(submit(fd, cmds, ARRAY_SIZE(cmds)), ARRAY_SIZE(cmds));
	ASSERT_EQ(cmds[0].result, -ENOENT);
	ASSERT_EQ(cmds[1].result, 0);
	ASSERT_EQ(signal_key(fd, KEY, 1), 0);
}

TEST(watch_of_the_id_0_is_not_of_an_add_of_an_earlier_call)
{
	int fd = device_open_nonblock();
	__u64 id = add(fd, 0, FAR_NS, 42);

	check_watch_refused(fd, 0, ENOENT);
	ASSERT_EQ(query(fd, id, NULL), TWHEEL_ARMED);
}

TEST(watch_of_the_id_0_after_an_add_that_failed_finds_nothing)
{
	int fd = device_open_nonblock();
	struct twheel_cmd cmds[] = {
		make_add(0, FAR_NS, 42),
		make_add(TWHEEL_QUIET, FAR_NS, 43),
		make_watch(0, KEY, 1),
		make_level(0, KEY, 1),
	};

	ASSERT_EQ(submit(fd, cmds, ARRAY_SIZE(cmds)), ARRAY_SIZE(cmds));
	ASSERT_EQ(cmds[0].result, 0);
	ASSERT_EQ(cmds[1].result, -EINVAL);
	ASSERT_EQ(cmds[2].result, -ENOENT);
	ASSERT_EQ(cmds[3].result, -ENOENT);
	ASSERT_EQ(signal_key(fd, KEY, 1), 0);
}

TEST(watch_of_the_id_0_after_an_add_without_room_finds_nothing)
{
	struct twheel_config config = default_config();
	struct twheel_cmd cmds[] = {
		make_add(0, FAR_NS, 42),
		make_add(0, FAR_NS, 43),
		make_watch(0, KEY, 1),
	};
	int fd;

	config.max_events = 1;
	fd = device_open_configured(O_RDWR | O_NONBLOCK, &config);
	ASSERT_EQ(submit(fd, cmds, ARRAY_SIZE(cmds)), ARRAY_SIZE(cmds));
	ASSERT_EQ(cmds[0].result, 0);
	ASSERT_EQ(cmds[1].result, -ENOSPC);
	ASSERT_EQ(cmds[2].result, -ENOENT);
	ASSERT_EQ(signal_key(fd, KEY, 1), 0);
}

TEST(watch_of_the_id_0_of_an_event_that_is_ready_is_too_late)
{
	int fd = device_open_nonblock();
	struct twheel_cmd cmds[] = {
		make_add(TWHEEL_ABS, 1, 42),
		make_watch(0, KEY, 1),
	};

	ASSERT_EQ(submit(fd, cmds, ARRAY_SIZE(cmds)), ARRAY_SIZE(cmds));
	ASSERT_EQ(cmds[0].result, 0);
	ASSERT_EQ(cmds[1].result, -EALREADY);
	ASSERT_EQ(wait_record(fd).id, cmds[0].id);
}

TEST(watch_of_the_id_0_of_a_periodic_event_is_refused)
{
	int fd = device_open_nonblock();
	struct twheel_cmd cmds[] = {
		make_periodic(0, FAR_NS, NSEC_PER_SEC, 42),
		make_watch(0, KEY, 1),
	};

	ASSERT_EQ(submit(fd, cmds, ARRAY_SIZE(cmds)), ARRAY_SIZE(cmds));
	ASSERT_EQ(cmds[0].result, 0);
	ASSERT_EQ(cmds[1].result, -EINVAL);
	ASSERT_EQ(signal_key(fd, KEY, 1), 0);
}

TEST(watch_of_the_id_0_of_an_event_cancelled_meanwhile_finds_nothing)
{
	int fd = device_open_nonblock();
	/* Fresh contexts give the same ids. */
	__u64 id = add(device_open_nonblock(), 0, FAR_NS, 42);
	struct twheel_cmd cmds[] = {
		make_add(0, FAR_NS, 42),
		make_cmd(TWHEEL_OP_CANCEL, id),
		make_watch(0, KEY, 1),
	};

	ASSERT_EQ(submit(fd, cmds, ARRAY_SIZE(cmds)), ARRAY_SIZE(cmds));
	ASSERT_EQ(cmds[0].id, id);
	ASSERT_EQ(cmds[1].result, 0);
	ASSERT_EQ(cmds[2].result, -ENOENT);
	ASSERT_EQ(signal_key(fd, KEY, 1), 0);
}

/* An ADD, @between other commands and two WATCHes. */
static size_t fill_distant_watch(struct twheel_cmd *cmds, __u64 id,
				 size_t between)
{
	size_t i;

	cmds[0] = make_add(0, FAR_NS, 42);
	for (i = 1; i <= between; i++)
		cmds[i] = make_cmd(TWHEEL_OP_QUERY, id);
	cmds[i++] = make_watch(0, 1, 1);
	cmds[i++] = make_watch(0, 2, 1);
	return i;
}

static void check_distant_watch(int fd, const struct twheel_cmd *cmds,
				size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++) {
		bool query = cmds[i].op == TWHEEL_OP_QUERY;

		ASSERT_EQ(cmds[i].result, query ? TWHEEL_ARMED : 0);
	}
	check_watches(fd, cmds[0].id, 2);
	ASSERT_EQ(signal_key(fd, 2, 1), 1);
	ASSERT_EQ(wait_completed(fd, 1, 2).id, cmds[0].id);
}

static const size_t distances[] = {
	0, 1, 44, 45, 46, 47, 48, 49, 62, 63, 64, 94, 95, 96, 97, 127, 1000,
};

TEST(watch_of_the_id_0_finds_its_add_however_many_commands_are_between)
{
	struct twheel_cmd cmds[1100];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(distances); i++) {
		int fd = device_open_nonblock();
		__u64 id = add(fd, 0, FAR_NS, 0);
		size_t nr = fill_distant_watch(cmds, id, distances[i]);

		test_about("%zu between", distances[i]);
		ASSERT_EQ(submit(fd, cmds, nr), nr);
		check_distant_watch(fd, cmds, nr);
	}
}

TEST(watch_of_the_id_0_finds_its_add_in_enter)
{
	struct twheel_cmd cmds[1100];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(distances); i++) {
		int fd = device_open_nonblock();
		__u64 id = add(fd, 0, FAR_NS, 0);
		size_t nr = fill_distant_watch(cmds, id, distances[i]);
		struct twheel_enter arg = make_enter(cmds, nr, NULL, 0);

		test_about("%zu between", distances[i]);
		ASSERT_EQ(enter(fd, &arg), 0);
		ASSERT_EQ(arg.cmds_done, nr);
		check_distant_watch(fd, cmds, nr);
	}
}

TEST(watch_of_the_id_0_in_enter_is_not_of_an_add_of_an_earlier_call)
{
	struct twheel_cmd cmds[2] = {
		make_add(0, FAR_NS, 42), make_watch(0, KEY, 1),
	};
	struct twheel_enter first = make_enter(&cmds[0], 1, NULL, 0);
	struct twheel_enter second = make_enter(&cmds[1], 1, NULL, 0);
	int fd = device_open_nonblock();

	ASSERT_EQ(enter(fd, &first), 0);
	ASSERT_EQ(enter(fd, &second), 0);
	ASSERT_EQ(second.cmds_done, 1);
	ASSERT_EQ(cmds[1].result, -ENOENT);
}

TEST(watch_of_the_id_0_far_behind_an_add_that_failed_finds_nothing)
{
	struct twheel_cmd cmds[1100];
	size_t i, nr;

	for (i = 0; i < ARRAY_SIZE(distances); i++) {
		int fd = device_open_nonblock();
		__u64 id = add(fd, 0, FAR_NS, 0);

		test_about("%zu between", distances[i]);
		/* Before it one that does not fail. */
		cmds[0] = make_add(0, FAR_NS, 0);
		nr = 1 + fill_distant_watch(cmds + 1, id, distances[i]);
		cmds[1].reserved = 1;
		ASSERT_EQ(submit(fd, cmds, nr), nr);
		ASSERT_EQ(cmds[1].result, -EINVAL);
		ASSERT_EQ(cmds[nr - 2].result, -ENOENT);
		ASSERT_EQ(cmds[nr - 1].result, -ENOENT);
		ASSERT_EQ(signal_key(fd, 1, 1), 0);
		ASSERT_EQ(signal_key(fd, 2, 1), 0);
	}
}

/* A thread whose calls have an ADD in one chunk and its WATCH in the next. */
struct adder {
	int fd;
	__u64 key;
	size_t rounds;
};

static void *add_and_watch(void *arg)
{
	struct adder *adder = arg;
	struct twheel_cmd cmds[200];
	size_t round, i;

	for (round = 0; round < adder->rounds; round++) {
		for (i = 0; i < ARRAY_SIZE(cmds); i++)
			cmds[i] = make_cmd(TWHEEL_OP_QUERY, 0);
		cmds[30] = make_add(0, FAR_NS, adder->key);
		cmds[190] = make_watch(0, adder->key, 1);
		ASSERT_EQ(submit(adder->fd, cmds, ARRAY_SIZE(cmds)),
			  ARRAY_SIZE(cmds));
		ASSERT_EQ(cmds[30].result, 0);
		ASSERT_EQ(cmds[190].result, 0);
	}
	return NULL;
}

TEST(watch_of_the_id_0_is_not_of_an_add_of_another_call_meanwhile)
{
	const size_t rounds = test_count(2000);
	int fd = device_open_nonblock();
	struct adder adders[3];
	pthread_t threads[3];
	__u64 i, k;

	for (i = 0; i < ARRAY_SIZE(adders); i++) {
		adders[i] = (struct adder){ fd, i, rounds };
		threads[i] = start_thread(add_and_watch, &adders[i]);
	}
	for (i = 0; i < ARRAY_SIZE(adders); i++)
		join_thread(threads[i]);
	for (i = 0; i < ARRAY_SIZE(adders); i++) {
		ASSERT_EQ(signal_key(fd, i, 1), rounds);
		for (k = 0; k < rounds; k++)
			ASSERT_EQ(wait_completed(fd, 1, i).data, i);
	}
}

/* --- calls that a signal stops short ---------------------------------------- */

/* An ADD and as many watches as it can have, or fewer. */
static size_t fill_group(struct twheel_cmd *cmds, size_t watches)
{
	size_t i;

	cmds[0] = make_add(0, FAR_NS, 42);
	for (i = 1; i <= watches; i++)
		cmds[i] = make_watch(0, KEY, 1);
	return i;
}

/*
 * Submit all, from where a signal stopped the last call, which must be at an ADD:
 * how often one did.
 */
static unsigned int submit_in_parts(int fd, struct twheel_cmd *cmds, size_t nr,
				    bool by_enter)
{
	unsigned int stops = 0;
	size_t done = 0, i;

	while (done < nr) {
		struct twheel_enter arg = make_enter(cmds + done, nr - done,
						     NULL, 0);
		long ret = by_enter ? enter(fd, &arg) :
				      submit(fd, cmds + done, nr - done);

		if (ret == -EINTR)
			continue;
		ASSERT_GE(ret, 0);
		done += by_enter ? (long)arg.cmds_done : ret;
		if (done < nr) {
			stops++;
			test_about("stopped at command %zu", done);
			ASSERT_EQ(cmds[done].op, TWHEEL_OP_ADD);
		}
	}
	for (i = 0; i < nr; i++) {
		test_about("command %zu", i);
		ASSERT_EQ(cmds[i].result, 0);
	}
	return stops;
}

static void check_stopped_at_adds(bool by_enter)
{
	const size_t groups = test_count(5000);
	const size_t room = groups * (1 + TWHEEL_MAX_WATCHES);
	struct twheel_cmd *cmds = map_pages(room * sizeof(*cmds));
	unsigned int stops = 0;
	size_t nr, i;

	start_alarms(0);
	while (!stops) {
		int fd = device_open_nonblock();

		for (i = 0, nr = 0; i < groups; i++)
			nr += fill_group(cmds + nr, i % (1 + TWHEEL_MAX_WATCHES));
		stops = submit_in_parts(fd, cmds, nr, by_enter);
		/* Those without a watch stay. */
		ASSERT_EQ(signal_key(fd, KEY, 1),
			  groups - (groups + TWHEEL_MAX_WATCHES) /
			  (1 + TWHEEL_MAX_WATCHES));
		close(fd);
	}
}

TEST(submit_is_not_stopped_between_an_add_and_its_watches)
{
	check_stopped_at_adds(false);
}

TEST(enter_is_not_stopped_between_an_add_and_its_watches)
{
	check_stopped_at_adds(true);
}

/* --- longer commands -------------------------------------------------------- */

struct longer_cmd {
	struct twheel_cmd cmd;
	__u64 tail;
};

static void submit_longer(int fd, struct longer_cmd *cmds, __u32 nr)
{
	struct twheel_submit arg = {
		.size = sizeof(arg),
		.cmds = (uintptr_t)cmds,
		.nr = nr,
		.cmd_size = sizeof(*cmds),
	};

	ASSERT_EQ(device_ioctl(fd, TWHEEL_IOC_SUBMIT, &arg), nr);
}

TEST(longer_commands_of_operations_with_tails_of_zeros_work)
{
	int fd = device_open_nonblock();
	struct longer_cmd cmds[] = {
		{ make_add(0, FAR_NS, 42), 0 },
		{ make_watch(0, KEY, 1), 0 },
		{ make_signal(KEY, 1), 0 },
		{ make_quiet(KEY), 0 },
	};

	submit_longer(fd, cmds, ARRAY_SIZE(cmds));
	ASSERT_EQ(cmds[1].cmd.result, 0);
	ASSERT_EQ(cmds[2].cmd.result, 1);
	ASSERT_EQ(cmds[3].cmd.result, 0);
	wait_completed(fd, 1, KEY);
}

TEST(longer_commands_of_operations_with_something_in_their_tails_do_nothing)
{
	int fd = device_open_nonblock();
	__u64 id = add_watching(fd, KEY, 1, 42);
	struct longer_cmd cmds[] = {
		{ make_signal(KEY, 1), 1 },
		{ make_quiet(KEY), 1 },
		{ make_complete(id, 1), 1 },
		{ make_watch(id, KEY, 1), 1 },
	};
	struct counters before = get_counters(fd);
	size_t i;

	submit_longer(fd, cmds, ARRAY_SIZE(cmds));
	for (i = 0; i < ARRAY_SIZE(cmds); i++)
		ASSERT_EQ(cmds[i].cmd.result, -E2BIG);
	check_counters(fd, &before);
	ASSERT_EQ(list_one(fd, id).watches, 1);
}

TEST(watch_of_the_id_0_after_a_longer_add_with_something_in_its_tail)
{
	int fd = device_open_nonblock();
	struct longer_cmd cmds[] = {
		{ make_add(0, FAR_NS, 42), 0 },
		{ make_add(0, FAR_NS, 43), 1 },
		{ make_watch(0, KEY, 1), 0 },
	};

	submit_longer(fd, cmds, ARRAY_SIZE(cmds));
	ASSERT_EQ(cmds[0].cmd.result, 0);
	ASSERT_EQ(cmds[1].cmd.result, -E2BIG);
	ASSERT_EQ(cmds[2].cmd.result, -ENOENT);
	ASSERT_EQ(signal_key(fd, KEY, 1), 0);
}
