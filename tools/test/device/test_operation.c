// SPDX-License-Identifier: GPL-2.0
/*
 * Delayed operations: which signals satisfy which watches, how an operation
 * ends, and what its record tells.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "device.h"
#include "util.h"

#define KEY		0x1234
#define OTHER_KEY	0x4321
#define MOST		(~0ULL)

/* --- sums ------------------------------------------------------------------- */

TEST(watch_for_a_sum_is_satisfied_by_signals_that_reach_it_exactly)
{
	int fd = device_open_nonblock();
	__u64 id = add_watching(fd, KEY, 10, 42);

	ASSERT_EQ(signal_key(fd, KEY, 4), 0);
	ASSERT_EQ(signal_key(fd, KEY, 5), 0);
	check_nothing_ready(fd);
	ASSERT_EQ(signal_key(fd, KEY, 1), 1);
	ASSERT_EQ(query(fd, id, NULL), TWHEEL_READY);
	ASSERT_EQ(wait_completed(fd, 1, KEY).id, id);
	check_nothing_ready(fd);
}

TEST(watch_for_a_sum_is_satisfied_by_signals_that_pass_it)
{
	int fd = device_open_nonblock();
	__u64 id = add_watching(fd, KEY, 10, 42);

	ASSERT_EQ(signal_key(fd, KEY, 9), 0);
	ASSERT_EQ(signal_key(fd, KEY, 9), 1);
	ASSERT_EQ(wait_completed(fd, 9, KEY).id, id);
}

TEST(watch_for_a_sum_is_satisfied_by_one_large_signal)
{
	static const __u64 values[] = { 10, 11, 1000, 1ULL << 63, MOST };
	int fd = device_open_nonblock();
	size_t i;

	for (i = 0; i < ARRAY_SIZE(values); i++) {
		__u64 id = add_watching(fd, KEY, 10, 42);

		test_about("a signal of %llu", values[i]);
		ASSERT_EQ(signal_key(fd, KEY, values[i]), 1);
		ASSERT_EQ(wait_completed(fd, values[i], KEY).id, id);
	}
}

TEST(watch_for_a_sum_is_satisfied_by_a_thousand_signals_of_1)
{
	int fd = device_open_nonblock();
	unsigned int i;

	add_watching(fd, KEY, 1000, 42);
	for (i = 1; i < 1000; i++)
		ASSERT_EQ(signal_key(fd, KEY, 1), 0);
	ASSERT_EQ(signal_key(fd, KEY, 1), 1);
	wait_completed(fd, 1, KEY);
}

TEST(watch_for_a_sum_counts_from_when_it_was_attached)
{
	int fd = device_open_nonblock();
	__u64 first = add_watching(fd, KEY, 1000, 1), second;

	ASSERT_EQ(signal_key(fd, KEY, 500), 0);
	second = add_watching(fd, KEY, 10, 2);
	ASSERT_EQ(signal_key(fd, KEY, 9), 0);
	ASSERT_EQ(signal_key(fd, KEY, 1), 1);
	ASSERT_EQ(wait_completed(fd, 1, KEY).id, second);
	ASSERT_EQ(signal_key(fd, KEY, 489), 0);
	ASSERT_EQ(signal_key(fd, KEY, 1), 1);
	ASSERT_EQ(wait_completed(fd, 1, KEY).id, first);
}

TEST(watches_attached_at_different_sums_are_satisfied_each_at_its_own)
{
	const size_t nr = 100;
	int fd = device_open_nonblock();
	size_t i;

	/* The i-th is attached when i were signalled, and needs 1000. */
	for (i = 0; i < nr; i++) {
		add_watching(fd, KEY, 1000, i);
		ASSERT_EQ(signal_key(fd, KEY, 1), 0);
	}
	ASSERT_EQ(signal_key(fd, KEY, 1000 - nr - 1), 0);
	for (i = 0; i < nr; i++) {
		test_about("watch %zu", i);
		ASSERT_EQ(signal_key(fd, KEY, 1), 1);
		ASSERT_EQ(wait_completed(fd, 1, KEY).data, i);
	}
}

TEST(signal_without_a_watcher_leaves_nothing_for_a_later_watch)
{
	int fd = device_open_nonblock();

	ASSERT_EQ(signal_key(fd, KEY, 1000), 0);
	ASSERT_EQ(signal_key(fd, KEY, MOST), 0);
	check_nothing_ready(fd);
	add_watching(fd, KEY, 10, 1);
	check_nothing_ready(fd);
	ASSERT_EQ(signal_key(fd, KEY, 9), 0);
	ASSERT_EQ(signal_key(fd, KEY, 1), 1);
	wait_completed(fd, 1, KEY);

	/* Nor when the key had watchers before. */
	ASSERT_EQ(signal_key(fd, KEY, MOST), 0);
	add_watching(fd, KEY, 10, 2);
	ASSERT_EQ(signal_key(fd, KEY, 9), 0);
	ASSERT_EQ(signal_key(fd, KEY, 1), 1);
}

TEST(signal_of_0_satisfies_nothing)
{
	int fd = device_open_nonblock();
	unsigned int i;

	ASSERT_EQ(signal_key(fd, KEY, 0), 0);
	add_watching(fd, KEY, 1, 1);
	ASSERT_EQ(watch_level(fd, add_operation(fd, 0, 2), KEY, 1), 0);
	for (i = 0; i < 100; i++)
		ASSERT_EQ(signal_key(fd, KEY, 0), 0);
	check_nothing_ready(fd);
	ASSERT_EQ(signal_key(fd, KEY, 1), 2);
}

TEST(watch_for_the_largest_sum_is_satisfied_exactly_there)
{
	int fd = device_open_nonblock();

	add_watching(fd, KEY, MOST, 1);
	ASSERT_EQ(signal_key(fd, KEY, MOST), 1);
	wait_completed(fd, MOST, KEY);

	add_watching(fd, KEY, MOST, 2);
	ASSERT_EQ(signal_key(fd, KEY, MOST - 1), 0);
	ASSERT_EQ(signal_key(fd, KEY, 1), 1);
	wait_completed(fd, 1, KEY);
}

TEST(sums_do_not_wrap)
{
	int fd = device_open_nonblock();

	/* Twice 2^63 is 0 modulo 2^64, and so is the sum below less than asked. */
	add_watching(fd, KEY, MOST, 1);
	ASSERT_EQ(signal_key(fd, KEY, 1ULL << 63), 0);
	ASSERT_EQ(signal_key(fd, KEY, 1ULL << 63), 1);
	wait_completed(fd, 1ULL << 63, KEY);

	add_watching(fd, KEY, MOST, 2);
	ASSERT_EQ(signal_key(fd, KEY, MOST - 1), 0);
	ASSERT_EQ(signal_key(fd, KEY, MOST), 1);
	wait_completed(fd, MOST, KEY);
}

TEST(watch_of_a_key_with_a_large_sum_before_is_satisfied_at_its_need)
{
	static const __u64 steps[] = {
		MOST - 1, 5, 1ULL << 63, 1ULL << 63, MOST - 100, 17, 1,
	};
	int fd = device_open_nonblock();
	unsigned int i;

	/* The level keeps the key and its sum, which passes 2^64 many times. */
	ASSERT_EQ(watch_level(fd, add_operation(fd, 0, 1), KEY, MOST), 0);
	for (i = 0; i < 700; i++) {
		__u64 before = steps[i % ARRAY_SIZE(steps)];

		test_about("step %u", i);
		ASSERT_EQ(signal_key(fd, KEY, before), 0);
		add_watching(fd, KEY, 10, 2);
		ASSERT_EQ(signal_key(fd, KEY, 9), 0);
		ASSERT_EQ(signal_key(fd, KEY, 1), 1);
		ASSERT_EQ(wait_completed(fd, 1, KEY).data, 2);
	}
	check_nothing_ready(fd);
}

TEST(large_needs_of_watches_attached_at_different_sums_are_kept_apart)
{
	int fd = device_open_nonblock();

	add_watching(fd, KEY, MOST, 1);
	ASSERT_EQ(signal_key(fd, KEY, MOST - 5), 0);
	add_watching(fd, KEY, 10, 2);
	add_watching(fd, KEY, MOST, 3);
	ASSERT_EQ(signal_key(fd, KEY, 4), 0);
	ASSERT_EQ(signal_key(fd, KEY, 1), 1);
	ASSERT_EQ(wait_completed(fd, 1, KEY).data, 1);
	add_watching(fd, KEY, MOST, 4);
	ASSERT_EQ(signal_key(fd, KEY, 4), 0);
	ASSERT_EQ(signal_key(fd, KEY, 1), 1);
	ASSERT_EQ(wait_completed(fd, 1, KEY).data, 2);

	/* The third lacks MOST - 10 and the fourth MOST - 5. */
	ASSERT_EQ(signal_key(fd, KEY, MOST - 11), 0);
	ASSERT_EQ(signal_key(fd, KEY, 1), 1);
	ASSERT_EQ(wait_completed(fd, 1, KEY).data, 3);
	ASSERT_EQ(signal_key(fd, KEY, 4), 0);
	ASSERT_EQ(signal_key(fd, KEY, 1), 1);
	ASSERT_EQ(wait_completed(fd, 1, KEY).data, 4);
	check_nothing_ready(fd);
}

/* --- levels ----------------------------------------------------------------- */

TEST(watch_for_a_level_is_satisfied_by_one_signal_that_reaches_it)
{
	static const __u64 values[] = { 10, 11, 1ULL << 63, MOST };
	int fd = device_open_nonblock();
	size_t i;

	for (i = 0; i < ARRAY_SIZE(values); i++) {
		__u64 id = add_operation(fd, 0, 42);

		test_about("a signal of %llu", values[i]);
		ASSERT_EQ(watch_level(fd, id, KEY, 10), 0);
		ASSERT_EQ(signal_key(fd, KEY, 9), 0);
		ASSERT_EQ(signal_key(fd, KEY, values[i]), 1);
		ASSERT_EQ(wait_completed(fd, values[i], KEY).id, id);
	}
}

TEST(watch_for_a_level_is_not_satisfied_by_a_sum)
{
	int fd = device_open_nonblock();
	unsigned int i;

	ASSERT_EQ(watch_level(fd, add_operation(fd, 0, 1), KEY, 10), 0);
	ASSERT_EQ(watch_level(fd, add_operation(fd, 0, 2), KEY, MOST), 0);
	for (i = 0; i < 100; i++)
		ASSERT_EQ(signal_key(fd, KEY, 9), 0);
	ASSERT_EQ(signal_key(fd, KEY, MOST - 1), 1);
	ASSERT_EQ(signal_key(fd, KEY, MOST - 1), 0);
	ASSERT_EQ(signal_key(fd, KEY, MOST), 1);
}

TEST(watch_for_a_level_is_not_satisfied_by_what_was_signalled_before)
{
	int fd = device_open_nonblock();

	ASSERT_EQ(watch_level(fd, add_operation(fd, 0, 1), KEY, 1000), 0);
	ASSERT_EQ(signal_key(fd, KEY, 100), 0);
	ASSERT_EQ(watch_level(fd, add_operation(fd, 0, 2), KEY, 100), 0);
	check_nothing_ready(fd);
	ASSERT_EQ(signal_key(fd, KEY, 99), 0);
	ASSERT_EQ(signal_key(fd, KEY, 100), 1);
	ASSERT_EQ(wait_completed(fd, 100, KEY).data, 2);
}

TEST(levels_and_sums_on_the_same_key_are_each_satisfied_in_their_way)
{
	int fd = device_open_nonblock();

	add_watching(fd, KEY, 20, 1);
	ASSERT_EQ(watch_level(fd, add_operation(fd, 0, 2), KEY, 20), 0);
	ASSERT_EQ(watch_level(fd, add_operation(fd, 0, 3), KEY, 8), 0);
	add_watching(fd, KEY, 8, 4);

	ASSERT_EQ(signal_key(fd, KEY, 7), 0);
	ASSERT_EQ(signal_key(fd, KEY, 7), 1);
	ASSERT_EQ(wait_completed(fd, 7, KEY).data, 4);
	ASSERT_EQ(signal_key(fd, KEY, 7), 1);
	ASSERT_EQ(wait_completed(fd, 7, KEY).data, 1);
	ASSERT_EQ(signal_key(fd, KEY, 8), 1);
	ASSERT_EQ(wait_completed(fd, 8, KEY).data, 3);
	ASSERT_EQ(signal_key(fd, KEY, 20), 1);
	ASSERT_EQ(wait_completed(fd, 20, KEY).data, 2);
}

/* --- quorums ---------------------------------------------------------------- */

static void check_any(__u32 quorum, __u64 last)
{
	int fd = device_open_nonblock();
	__u64 id = add_operation(fd, quorum, 42), key;

	test_about("quorum %u, key %llu", quorum, last);
	for (key = 1; key <= 5; key++)
		ASSERT_EQ(watch(fd, id, key, 10), 0);
	for (key = 1; key <= 5; key++)
		ASSERT_EQ(signal_key(fd, key, 9), 0);
	ASSERT_EQ(signal_key(fd, last, 1), 1);
	ASSERT_EQ(wait_completed(fd, 1, last).id, id);

	/* The others went with it. */
	for (key = 1; key <= 5; key++)
		ASSERT_EQ(signal_key(fd, key, 1), 0);
	check_nothing_ready(fd);
	close(fd);
}

TEST(quorum_of_0_or_1_is_any_watch)
{
	__u64 key;

	for (key = 1; key <= 5; key++) {
		check_any(0, key);
		check_any(1, key);
	}
}

/* Check an operation that needs k of n keys, signalled in an order of @seed. */
static void check_quorum(__u32 k, __u32 n, __u64 seed)
{
	__u64 keys[TWHEEL_MAX_WATCHES], id;
	int fd = device_open_nonblock();
	__u32 i;

	test_about("%u of %u", k, n);
	id = add_operation(fd, k, 42);
	for (i = 0; i < n; i++) {
		keys[i] = 100 + i;
		ASSERT_EQ(watch(fd, id, keys[i], 1), 0);
	}
	for (i = n - 1; i > 0; i--) {
		__u32 other = next_random(&seed) % (i + 1);
		__u64 key = keys[i];

		keys[i] = keys[other];
		keys[other] = key;
	}
	for (i = 0; i < n; i++) {
		ASSERT_EQ(signal_key(fd, keys[i], 7), i == k - 1);
		if (i < k - 1)
			check_nothing_ready(fd);
	}
	ASSERT_EQ(wait_completed(fd, 7, keys[k - 1]).id, id);
	check_nothing_ready(fd);
	close(fd);
}

TEST(quorum_of_k_is_any_k_of_n_watches)
{
	__u32 k, n;

	for (n = 1; n <= 8; n++) {
		for (k = 1; k <= n; k++)
			check_quorum(k, n, k);
	}
}

TEST(quorum_of_n_is_all_watches)
{
	__u32 n;

	for (n = 1; n <= TWHEEL_MAX_WATCHES; n++)
		check_quorum(n, n, n);
}

TEST(quorum_of_some_of_64_watches)
{
	static const __u32 quorums[] = { 2, 31, 32, 33, 63 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(quorums); i++)
		check_quorum(quorums[i], TWHEEL_MAX_WATCHES, i);
}

TEST(watch_that_is_satisfied_counts_once)
{
	int fd = device_open_nonblock();
	__u64 id = add_operation(fd, 2, 42);
	unsigned int i;

	ASSERT_EQ(watch(fd, id, KEY, 1), 0);
	ASSERT_EQ(watch_level(fd, id, OTHER_KEY, 5), 0);
	for (i = 0; i < 10; i++)
		ASSERT_EQ(signal_key(fd, KEY, 10), 0);
	check_nothing_ready(fd);
	ASSERT_EQ(signal_key(fd, OTHER_KEY, 5), 1);
	ASSERT_EQ(wait_completed(fd, 5, OTHER_KEY).id, id);
}

TEST(same_key_twice_is_two_watches)
{
	int fd = device_open_nonblock();
	__u64 id = add_operation(fd, 2, 42);

	ASSERT_EQ(watch(fd, id, KEY, 5), 0);
	ASSERT_EQ(watch(fd, id, KEY, 10), 0);
	ASSERT_EQ(signal_key(fd, KEY, 5), 0);
	ASSERT_EQ(signal_key(fd, KEY, 4), 0);
	ASSERT_EQ(signal_key(fd, KEY, 1), 1);
	ASSERT_EQ(wait_completed(fd, 1, KEY).id, id);
	check_nothing_ready(fd);
}

TEST(one_signal_satisfies_all_watches_of_an_operation_on_its_key)
{
	int fd = device_open_nonblock();
	__u32 nr;

	for (nr = 1; nr <= TWHEEL_MAX_WATCHES; nr++) {
		__u64 id = add_operation(fd, nr, 42);
		__u32 i;

		test_about("%u watches", nr);
		for (i = 0; i < nr; i++) {
			struct twheel_cmd cmd = make_watch(id, KEY, 1 + i % 7);

			cmd.flags = i % 2 ? TWHEEL_LEVEL : 0;
			ASSERT_EQ(run(fd, &cmd), 0);
		}
		ASSERT_EQ(signal_key(fd, KEY, 7), 1);
		ASSERT_EQ(wait_completed(fd, 7, KEY).id, id);
		ASSERT_EQ(signal_key(fd, KEY, 7), 0);
	}
	check_nothing_ready(fd);
}

TEST(quorum_above_the_number_of_watches_waits_for_more)
{
	int fd = device_open_nonblock();
	__u64 id = add_operation(fd, 3, 42);

	ASSERT_EQ(watch(fd, id, 1, 1), 0);
	ASSERT_EQ(watch(fd, id, 2, 1), 0);
	ASSERT_EQ(signal_key(fd, 1, 1), 0);
	ASSERT_EQ(signal_key(fd, 2, 1), 0);
	ASSERT_EQ(query(fd, id, NULL), TWHEEL_ARMED);
	ASSERT_EQ(watch(fd, id, 1, 1), 0);
	ASSERT_EQ(signal_key(fd, 2, 1), 0);
	ASSERT_EQ(signal_key(fd, 1, 1), 1);
	ASSERT_EQ(wait_completed(fd, 1, 1).id, id);
}

TEST(quorum_without_a_watch_is_not_met)
{
	int fd = device_open_nonblock();
	__u64 id = add_operation(fd, 64, 42);

	ASSERT_EQ(signal_key(fd, KEY, MOST), 0);
	ASSERT_EQ(query(fd, id, NULL), TWHEEL_ARMED);
	check_nothing_ready(fd);
}

TEST(quorum_of_an_operation_that_is_due_at_once_does_not_hold_it_up)
{
	int fd = device_open_nonblock();
	struct twheel_cmd cmd = make_add(0, 0, 42);

	cmd.quorum = 64;
	cmd.id = add_by(fd, cmd);
	ASSERT_EQ(wait_record(fd).id, cmd.id);
}

/* --- keys ------------------------------------------------------------------- */

TEST(signal_leaves_other_keys_alone)
{
	const size_t nr = 1000;
	int fd = device_open_nonblock();
	__u64 seed = 3, keys[nr];
	size_t i;

	for (i = 0; i < nr; i++) {
		/* Some are neighbours and some differ in their upper half. */
		keys[i] = i % 2 ? i : next_random(&seed) << 32 | i;
		add_watching(fd, keys[i], 1, i);
	}
	for (i = 0; i < nr; i++) {
		test_about("key %#llx", keys[i]);
		ASSERT_EQ(signal_key(fd, keys[i], MOST), 1);
		ASSERT_EQ(wait_completed(fd, MOST, keys[i]).data, i);
		check_nothing_ready(fd);
	}
}

TEST(every_number_is_a_key)
{
	int fd = device_open_nonblock();
	unsigned int bit;

	for (bit = 0; bit <= 64; bit++) {
		__u64 key = bit < 64 ? 1ULL << bit : 0;

		test_about("bit %u", bit);
		add_watching(fd, key, 1, 1);
		add_watching(fd, ~key, 1, 2);
		ASSERT_EQ(signal_key(fd, key, 1), 1);
		ASSERT_EQ(wait_completed(fd, 1, key).data, 1);
		ASSERT_EQ(signal_key(fd, ~key, 1), 1);
		ASSERT_EQ(wait_completed(fd, 1, ~key).data, 2);
	}
}

TEST(each_context_has_its_own_keys)
{
	int fd = device_open_nonblock(), other = device_open_nonblock();

	add_watching(fd, KEY, 1, 1);
	add_watching(other, KEY, 1, 2);
	ASSERT_EQ(signal_key(device_open_nonblock(), KEY, 1), 0);
	ASSERT_EQ(signal_key(fd, KEY, 1), 1);
	ASSERT_EQ(wait_completed(fd, 1, KEY).data, 1);
	check_nothing_ready(other);
	ASSERT_EQ(close(fd), 0);
	ASSERT_EQ(signal_key(other, KEY, 1), 1);
	ASSERT_EQ(wait_completed(other, 1, KEY).data, 2);
}

TEST(operations_belong_to_the_context_whichever_descriptor_is_used)
{
	int fd = device_open_nonblock(), other = dup(fd);
	__u64 id = add_operation(fd, 0, 42);

	ASSERT_GE(other, 0);
	ASSERT_EQ(watch(other, id, KEY, 1), 0);
	ASSERT_EQ(close(fd), 0);
	ASSERT_EQ(signal_key(other, KEY, 1), 1);
	ASSERT_EQ(wait_completed(other, 1, KEY).id, id);
}

/* --- many watches on a key -------------------------------------------------- */

TEST(signal_that_satisfies_none_of_many_watches_ends_nothing)
{
	int fd = device_open_nonblock();
	unsigned int i;

	for (i = 0; i < 500; i++) {
		add_watching(fd, KEY, 1000000 + i, i);
		ASSERT_EQ(watch_level(fd, add_operation(fd, 0, 0), KEY,
				      1000 + i), 0);
	}
	for (i = 0; i < 999; i++)
		ASSERT_EQ(signal_key(fd, KEY, 999), 0);
	check_nothing_ready(fd);
	ASSERT_EQ(get_counters(fd).armed, 1000);
}

/* The numbers below @nr in an order of @seed. */
static void shuffle(__u32 *numbers, __u32 nr, __u64 seed)
{
	__u32 i;

	for (i = 0; i < nr; i++) {
		__u32 other = next_random(&seed) % (i + 1);

		numbers[i] = numbers[other];
		numbers[other] = i;
	}
}

static void check_order_of_needs(__u16 flags)
{
	const __u32 nr = 1000;
	struct twheel_record records[nr];
	int fd = device_open_nonblock();
	__u32 needs[nr], i;

	shuffle(needs, nr, 5);
	for (i = 0; i < nr; i++) {
		__u64 id = add_operation(fd, 0, needs[i]);
		struct twheel_cmd cmd = make_watch(id, KEY, 1 + needs[i]);

		cmd.flags = flags;
		ASSERT_EQ(run(fd, &cmd), 0);
	}
	ASSERT_EQ(signal_key(fd, KEY, nr), nr);
	ASSERT_EQ(read_records(fd, records, nr), nr);
	for (i = 0; i < nr; i++) {
		test_about("record %u", i);
		check_completed(&records[i], nr, KEY);
		ASSERT_EQ(records[i].data, i);
	}
}

TEST(sums_that_one_signal_reaches_are_satisfied_in_the_order_of_their_needs)
{
	check_order_of_needs(0);
}

TEST(levels_that_one_signal_reaches_are_satisfied_in_the_order_of_their_needs)
{
	check_order_of_needs(TWHEEL_LEVEL);
}

TEST(signals_each_satisfy_those_that_they_reach_and_no_others)
{
	const __u32 nr = 1000;
	int fd = device_open_nonblock();
	__u32 needs[nr], done = 0, i;
	__u64 sum = 0, seed = 6;

	shuffle(needs, nr, 5);
	for (i = 0; i < nr; i++)
		add_watching(fd, KEY, 1 + needs[i], needs[i]);
	while (done < nr) {
		__u64 value = next_random(&seed) % 20;
		__u64 upto;

		sum += value;
		upto = sum < nr ? sum : nr;
		ASSERT_EQ(signal_key(fd, KEY, value), upto - done);
		for (; done < upto; done++)
			ASSERT_EQ(wait_completed(fd, value, KEY).data, done);
	}
	check_nothing_ready(fd);
}

/*
 * The effect that signals on one key should have, worked out for each watch by itself.
 */
#define MODEL_OPERATIONS	200

struct model {
	int fd;
	__u64 seed;
	size_t nr;
	struct {
		__u64 missing;		/* of a sum; or the level */
		bool level;
		bool ended;
	} operations[MODEL_OPERATIONS];
};

/* Mostly near 0, 2^63 or 2^64, never 0. */
static __u64 model_value(struct model *model)
{
	__u64 value = next_random(&model->seed);

	switch (next_random(&model->seed) % 5) {
	case 0:
		value %= 100;
		break;
	case 1:
		value = -(value % 100);
		break;
	case 2:
		value = (1ULL << 63) + value % 100 - 50;
		break;
	case 3:
		value >>= value % 64;
		break;
	}
	return value ? value : 1;
}

static void model_watch(struct model *model)
{
	struct twheel_cmd cmd = make_watch(add_operation(model->fd, 0,
							 model->nr),
					   KEY, model_value(model));

	model->operations[model->nr].level = next_random(&model->seed) % 2;
	if (model->operations[model->nr].level)
		cmd.flags = TWHEEL_LEVEL;
	model->operations[model->nr].missing = cmd.value;
	ASSERT_EQ(run(model->fd, &cmd), 0);
	model->nr++;
}

static void model_signal(struct model *model)
{
	struct twheel_record records[MODEL_OPERATIONS];
	bool expected[MODEL_OPERATIONS] = { false };
	__u64 value = model_value(model);
	long ended = 0, i;

	for (i = 0; i < (long)model->nr; i++) {
		if (model->operations[i].ended)
			continue;
		if (model->operations[i].missing <= value) {
			model->operations[i].ended = true;
			expected[i] = true;
			ended++;
		} else if (!model->operations[i].level) {
			model->operations[i].missing -= value;
		}
	}
	ASSERT_EQ(signal_key(model->fd, KEY, value), ended);
	if (!ended)
		return;
	ASSERT_EQ(read_records(model->fd, records, MODEL_OPERATIONS), ended);
	for (i = 0; i < ended; i++) {
		check_completed(&records[i], value, KEY);
		ASSERT_LT(records[i].data, model->nr);
		ASSERT(expected[records[i].data]);
		expected[records[i].data] = false;
	}
}

TEST(random_watches_and_signals_do_what_each_watch_alone_would)
{
	const size_t rounds = test_count(200);
	size_t i;

	for (i = 0; i < rounds; i++) {
		struct model model = { .fd = device_open_nonblock(),
				       .seed = i };

		test_about("round %zu", i);
		while (model.nr < MODEL_OPERATIONS) {
			if (next_random(&model.seed) % 3)
				model_watch(&model);
			else
				model_signal(&model);
		}
		model_signal(&model);
		close(model.fd);
	}
}

/* --- the record ------------------------------------------------------------- */

TEST(record_of_a_completed_operation_tells_all_of_it)
{
	__u64 due_ns = monotonic_ns() + FAR_NS, before_ns;
	struct twheel_cmd cmd = make_add(TWHEEL_ABS, due_ns, 0xabcdef);
	int fd = device_open_nonblock();
	struct twheel_record record;

	cmd.id = add_by(fd, cmd);
	ASSERT_EQ(watch(fd, cmd.id, KEY, 5), 0);
	before_ns = monotonic_ns();
	ASSERT_EQ(signal_key(fd, KEY, 77), 1);
	record = wait_completed(fd, 77, KEY);
	ASSERT_EQ(record.data, 0xabcdef);
	ASSERT_EQ(record.id, cmd.id);
	ASSERT_EQ(record.due_ns, due_ns);
	ASSERT_GE(record.fired_ns, before_ns);
	ASSERT_EQ(record.count, 1);
	ASSERT_EQ(record.value, 77);
	ASSERT_EQ(record.key, KEY);
	ASSERT_EQ(record.reason, TWHEEL_COMPLETED);
	ASSERT_EQ(record.flags, TWHEEL_RECORD_SIGNAL);
}

TEST(record_of_a_completed_operation_has_the_time_of_a_relative_one)
{
	int fd = device_open_nonblock();
	__u64 id = add_watching(fd, KEY, 1, 42), due_ns = query_time(fd, id);

	ASSERT_EQ(signal_key(fd, KEY, 1), 1);
	ASSERT_EQ(query_time(fd, id), due_ns);
	ASSERT_EQ(wait_completed(fd, 1, KEY).due_ns, due_ns);
}

TEST(operation_that_is_never_due_can_be_completed)
{
	int fd = device_open_nonblock();
	__u64 id = add(fd, TWHEEL_ABS, MOST, 42);

	ASSERT_EQ(watch(fd, id, KEY, 1), 0);
	ASSERT_EQ(signal_key(fd, KEY, 1), 1);
	ASSERT_EQ(wait_completed(fd, 1, KEY).id, id);
}

TEST(records_of_operations_come_in_the_order_of_the_signals)
{
	const __u32 nr = 200;
	int fd = device_open_nonblock();
	__u32 order[nr], i;

	shuffle(order, nr, 9);
	for (i = 0; i < nr; i++)
		add_watching(fd, i, 1, i);
	for (i = 0; i < nr; i++)
		ASSERT_EQ(signal_key(fd, order[i], 1 + i), 1);
	for (i = 0; i < nr; i++)
		ASSERT_EQ(wait_completed(fd, 1 + i, order[i]).data, order[i]);
}

/* --- time ------------------------------------------------------------------- */

/* Wait until an event armed now for this time has come. */
static void wait_past(int fd, __u64 due_ns)
{
	add(fd, TWHEEL_ABS, due_ns, 99);
	ASSERT_EQ(wait_record(fd).data, 99);
}

/* An operation that was completed 10 * SOON_NS before its time, at the most. */
static __u64 complete_early(int fd, __u64 *due_ns)
{
	__u64 id;

	/* Again if its time came before. */
	for (;;) {
		*due_ns = monotonic_ns() + 10 * SOON_NS;
		id = add(fd, TWHEEL_ABS, *due_ns, 42);
		if (!watch(fd, id, KEY, 1) && signal_key(fd, KEY, 1))
			return id;
		ASSERT_EQ(cancel(fd, id), 0);
	}
}

TEST(operation_completed_before_its_time_gives_no_second_record)
{
	int fd = device_open_nonblock();
	__u64 due_ns, id = complete_early(fd, &due_ns);

	ASSERT_EQ(wait_completed(fd, 1, KEY).id, id);
	wait_past(fd, due_ns + SOON_NS);
	check_nothing_ready(fd);
	ASSERT_EQ(query(fd, id, NULL), -ENOENT);
}

TEST(operation_completed_and_unread_at_its_time_stays_completed)
{
	int fd = device_open_nonblock();
	__u64 due_ns, id = complete_early(fd, &due_ns);

	wait_past(device_open_nonblock(), due_ns + SOON_NS);
	ASSERT_EQ(get_counters(fd).ready, 1);
	ASSERT_EQ(wait_completed(fd, 1, KEY).id, id);
	check_nothing_ready(fd);
}

TEST(operation_that_expires_says_so_and_its_watches_die)
{
	int fd = device_open_nonblock();
	__u64 id = add(fd, 0, SOON_NS, 42);

	/* Again if its time came before it watched. */
	while (watch(fd, id, KEY, 1)) {
		ASSERT_EQ(wait_record(fd).id, id);
		id = add(fd, 0, SOON_NS, 42);
	}
	wait_ready(fd, 1);
	ASSERT_EQ(signal_key(fd, KEY, 1), 0);
	ASSERT_EQ(signal_quietly(fd, KEY), 0);
	ASSERT_EQ(wait_record(fd).id, id);
	ASSERT_EQ(signal_key(fd, KEY, 1), 0);
	check_nothing_ready(fd);
	ASSERT_EQ(get_counters(fd).completed, 0);
}

/* Let an operation that waits expire now. */
static void expire(int fd, __u64 id)
{
	long long ready = get_counters(fd).ready;

	ASSERT_EQ(modify(fd, id, 0, NSEC_PER_MSEC), 0);
	wait_ready(fd, ready + 1);
}

TEST(operation_with_a_part_of_its_quorum_expires_without_value_and_key)
{
	int fd = device_open_nonblock();
	__u64 id = add_operation(fd, 3, 42);
	struct twheel_record record;

	ASSERT_EQ(watch(fd, id, 1, 1), 0);
	ASSERT_EQ(watch(fd, id, 2, 1), 0);
	ASSERT_EQ(watch(fd, id, 3, 1), 0);
	ASSERT_EQ(signal_key(fd, 1, 5), 0);
	ASSERT_EQ(signal_key(fd, 2, 6), 0);
	expire(fd, id);
	record = wait_record(fd);
	ASSERT_EQ(record.id, id);
	ASSERT_EQ(record.reason, TWHEEL_EXPIRED);
	ASSERT_EQ(record.value, 0);
	ASSERT_EQ(record.key, 0);
	ASSERT_EQ(signal_key(fd, 3, 1), 0);
}

TEST(operations_that_expire_leave_those_that_wait_on_their_keys)
{
	const unsigned int nr = 300;
	int fd = device_open_nonblock();
	struct twheel_record records[nr];
	__u64 ids[nr];
	unsigned int i;

	for (i = 0; i < nr; i++)
		ids[i] = add_watching(fd, KEY, 1 + i, i);
	for (i = 0; i < nr; i += 2)
		ASSERT_EQ(modify(fd, ids[i], 0, 0), 0);
	wait_ready(fd, nr / 2);
	ASSERT_EQ(signal_key(fd, KEY, nr), nr / 2);
	ASSERT_EQ(read_records(fd, records, nr), nr);
	for (i = 0; i < nr; i++) {
		bool expired = records[i].data % 2 == 0;

		ASSERT_EQ(records[i].reason,
			  expired ? TWHEEL_EXPIRED : TWHEEL_COMPLETED);
		ASSERT_EQ(records[i].key, expired ? 0 : KEY);
		ASSERT_EQ(records[i].value, expired ? 0 : nr);
	}
}

static void check_clock(clockid_t clock, __u16 flags)
{
	__u64 due_ns = clock_ns(clock) + FAR_NS, before_ns;
	int fd = device_open_clock(clock);
	struct twheel_record record;
	struct twheel_cmd cmd;

	cmd = make_add(flags, flags & TWHEEL_ABS ? due_ns : FAR_NS, 42);
	cmd.quorum = 2;
	cmd.id = add_by(fd, cmd);
	ASSERT_EQ(watch(fd, cmd.id, 1, 1), 0);
	ASSERT_EQ(watch_level(fd, cmd.id, 2, 1), 0);
	before_ns = clock_ns(clock);
	ASSERT_EQ(signal_key(fd, 1, 1), 0);
	ASSERT_EQ(signal_key(fd, 2, 9), 1);
	wait_readable(fd);
	ASSERT_EQ(read_records(fd, &record, 1), 1);
	ASSERT_EQ(record.id, cmd.id);
	ASSERT_EQ(record.reason, TWHEEL_COMPLETED);
	ASSERT_EQ(record.value, 9);
	ASSERT_EQ(record.key, 2);
	if (flags & TWHEEL_ABS)
		ASSERT_EQ(record.due_ns, due_ns);
	ASSERT_GE(record.due_ns, due_ns);
	ASSERT_GE(record.fired_ns, before_ns);
	ASSERT_LE(record.fired_ns, clock_ns(clock));

	/* And one whose time comes. */
	ASSERT_EQ(watch(fd, add(fd, 0, FAR_NS, 43), KEY, 2), 0);
	add(fd, 0, NSEC_PER_MSEC, 44);
	ASSERT_EQ(wait_expired_on(fd, clock).data, 44);
	ASSERT_EQ(signal_key(fd, KEY, 2), 1);
}

TEST(operations_work_on_every_clock)
{
	static const clockid_t clocks[] = {
		CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_REALTIME,
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		test_about("clock %d", (int)clocks[i]);
		check_clock(clocks[i], 0);
		check_clock(clocks[i], TWHEEL_ABS);
	}
}

/* --- MODIFY ----------------------------------------------------------------- */

TEST(modify_of_an_armed_operation_keeps_its_watches_and_their_sums)
{
	int fd = device_open_nonblock();
	__u64 id = add_operation(fd, 2, 1);
	struct twheel_cmd cmd = make_modify(id, TWHEEL_ABS | TWHEEL_SET_DATA,
					    3 * FAR_NS);
	struct twheel_record record;

	cmd.data = 2;
	ASSERT_EQ(watch(fd, id, KEY, 10), 0);
	ASSERT_EQ(watch_level(fd, id, OTHER_KEY, 3), 0);
	ASSERT_EQ(signal_key(fd, KEY, 6), 0);
	ASSERT_EQ(signal_key(fd, OTHER_KEY, 3), 0);
	ASSERT_EQ(run(fd, &cmd), 0);
	ASSERT_EQ(signal_key(fd, KEY, 3), 0);
	ASSERT_EQ(signal_key(fd, KEY, 1), 1);
	record = wait_completed(fd, 1, KEY);
	ASSERT_EQ(record.id, id);
	ASSERT_EQ(record.data, 2);
	ASSERT_EQ(record.due_ns, 3 * FAR_NS);
}

TEST(modify_of_an_operation_again_and_again_keeps_its_watches)
{
	int fd = device_open_nonblock();
	__u64 id = add_watching(fd, KEY, 100, 1);
	unsigned int i;

	for (i = 1; i < 100; i++) {
		ASSERT_EQ(modify(fd, id, 0, FAR_NS + i * NSEC_PER_SEC), 0);
		ASSERT_EQ(signal_key(fd, KEY, 1), 0);
	}
	ASSERT_EQ(signal_key(fd, KEY, 1), 1);
}

TEST(modify_of_an_operation_to_the_past_expires_it)
{
	int fd = device_open_nonblock();
	__u64 id = add_watching(fd, KEY, 1, 1);

	ASSERT_EQ(modify(fd, id, TWHEEL_ABS, 5), 0);
	ASSERT_EQ(query(fd, id, NULL), TWHEEL_READY);
	ASSERT_EQ(signal_key(fd, KEY, 1), 0);
	ASSERT_EQ(wait_record(fd).due_ns, 5);
	check_nothing_ready(fd);
}

TEST(modify_of_an_expired_operation_arms_it_without_watches_and_progress)
{
	int fd = device_open_nonblock();
	__u64 id = add_operation(fd, 2, 1);

	ASSERT_EQ(watch(fd, id, 1, 1), 0);
	ASSERT_EQ(watch(fd, id, 2, 1), 0);
	ASSERT_EQ(signal_key(fd, 1, 1), 0);
	expire(fd, id);
	ASSERT_EQ(modify(fd, id, 0, FAR_NS), 0);
	check_nothing_ready(fd);
	ASSERT_EQ(list_one(fd, id).watches, 0);
	ASSERT_EQ(signal_key(fd, 1, 1), 0);
	ASSERT_EQ(signal_key(fd, 2, 1), 0);
	ASSERT_EQ(query(fd, id, NULL), TWHEEL_ARMED);

	/* It can be watched again, and needs two again. */
	ASSERT_EQ(watch(fd, id, 2, 10), 0);
	ASSERT_EQ(watch(fd, id, 3, 10), 0);
	ASSERT_EQ(signal_key(fd, 2, 10), 0);
	ASSERT_EQ(signal_key(fd, 3, 9), 0);
	ASSERT_EQ(signal_key(fd, 3, 1), 1);
	ASSERT_EQ(wait_completed(fd, 1, 3).id, id);
	check_nothing_ready(fd);
}

TEST(operation_that_expires_and_is_armed_again_may_have_64_watches_each_time)
{
	int fd = device_open_nonblock();
	__u64 id = add_operation(fd, 64, 1);
	unsigned int round, i;

	for (round = 0; round < 5; round++) {
		test_about("round %u", round);
		for (i = 0; i < TWHEEL_MAX_WATCHES; i++)
			ASSERT_EQ(watch(fd, id, i % 3, 1), 0);
		ASSERT_EQ(watch(fd, id, 0, 1), -ENOSPC);
		ASSERT_EQ(signal_key(fd, 0, 1), 0);
		expire(fd, id);
		ASSERT_EQ(modify(fd, id, 0, FAR_NS), 0);
	}
	for (i = 0; i < TWHEEL_MAX_WATCHES; i++)
		ASSERT_EQ(watch(fd, id, KEY, 1), 0);
	ASSERT_EQ(signal_key(fd, KEY, 1), 1);
	wait_completed(fd, 1, KEY);
}

TEST(modify_of_a_completed_operation_is_refused_and_leaves_its_record)
{
	int fd = device_open_nonblock();
	__u64 id = add_watching(fd, KEY, 1, 1);
	struct twheel_cmd cmd = make_modify(id, TWHEEL_SET_DATA, FAR_NS);

	ASSERT_EQ(signal_key(fd, KEY, 1), 1);
	cmd.data = 2;
	check_refused(fd, &cmd, EALREADY);
	ASSERT_EQ(wait_completed(fd, 1, KEY).data, 1);
	check_refused(fd, &cmd, ENOENT);
}

TEST(modify_of_an_operation_refuses_an_interval)
{
	int fd = device_open_nonblock();
	__u64 ids[2] = { add_watching(fd, KEY, 2, 1), add_operation(fd, 2, 2) };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(ids); i++) {
		struct twheel_cmd cmd = make_modify(ids[i], 0, 0);

		test_about("operation %zu", i);
		cmd.interval_ns = NSEC_PER_SEC;
		check_refused(fd, &cmd, EINVAL);
		ASSERT_EQ(query(fd, ids[i], NULL), TWHEEL_ARMED);
	}
	/* The watch is still there. */
	ASSERT_EQ(signal_key(fd, KEY, 1), 0);
	ASSERT_EQ(signal_key(fd, KEY, 1), 1);
}

TEST(modify_makes_an_event_periodic_that_has_no_watches_and_it_takes_none)
{
	int fd = device_open_nonblock();
	__u64 id = add_operation(fd, 1, 1);
	struct twheel_cmd cmd = make_modify(id, 0, FAR_NS);

	cmd.interval_ns = NSEC_PER_SEC;
	ASSERT_EQ(run(fd, &cmd), 0);
	ASSERT_EQ(watch(fd, id, KEY, 1), -EINVAL);
	ASSERT_EQ(modify(fd, id, 0, FAR_NS), 0);
	ASSERT_EQ(watch(fd, id, KEY, 1), 0);
	ASSERT_EQ(signal_key(fd, KEY, 1), 1);
}

/* --- CANCEL and TWHEEL_QUIET ------------------------------------------------ */

TEST(cancel_of_an_armed_operation_ends_its_watches)
{
	int fd = device_open_nonblock();
	__u64 id = add_operation(fd, 0, 1);

	ASSERT_EQ(watch(fd, id, KEY, 1), 0);
	ASSERT_EQ(watch_level(fd, id, OTHER_KEY, 1), 0);
	ASSERT_EQ(cancel(fd, id), 0);
	ASSERT_EQ(signal_key(fd, KEY, 1), 0);
	ASSERT_EQ(signal_key(fd, OTHER_KEY, 1), 0);
	ASSERT_EQ(signal_quietly(fd, KEY), 0);
	check_nothing_ready(fd);
	ASSERT_EQ(get_counters(fd).cancelled, 1);
	ASSERT_EQ(get_counters(fd).completed, 0);
}

TEST(cancel_of_a_completed_operation_suppresses_its_record)
{
	int fd = device_open_nonblock();
	__u64 id = add_operation(fd, 0, 1);
	struct counters counters;

	ASSERT_EQ(watch(fd, id, KEY, 1), 0);
	ASSERT_EQ(watch(fd, id, OTHER_KEY, 1), 0);
	ASSERT_EQ(signal_key(fd, KEY, 1), 1);
	ASSERT_EQ(cancel(fd, id), 0);
	check_nothing_ready(fd);
	ASSERT_EQ(signal_key(fd, OTHER_KEY, 1), 0);
	counters = get_counters(fd);
	check_sum(&counters);
	ASSERT_EQ(counters.cancelled, 1);
	ASSERT_EQ(counters.ready, 0);
	ASSERT_EQ(counters.records, 0);
}

TEST(events_after_a_cancelled_operation_do_not_inherit_its_watches)
{
	int fd = device_open_nonblock();
	unsigned int i;

	/* Each is likely to get the memory of the last one. */
	for (i = 0; i < 200; i++) {
		__u64 id = add_watching(fd, i, 1, 1);

		ASSERT_EQ(cancel(fd, id), 0);
		id = add(fd, 0, FAR_NS, 2);
		ASSERT_EQ(signal_key(fd, i, 1), 0);
		ASSERT_EQ(list_one(fd, id).watches, 0);
		ASSERT_EQ(cancel(fd, id), 0);
	}
}

TEST(quiet_signal_cancels_all_armed_operations_on_its_key_without_records)
{
	const unsigned int nr = 300;
	int fd = device_open_nonblock();
	struct counters expected;
	__u64 ids[nr], other;
	unsigned int i;

	other = add_watching(fd, OTHER_KEY, 1, 1);
	for (i = 0; i < nr; i++) {
		struct twheel_cmd cmd;

		ids[i] = add_operation(fd, 1 + i % 3, i);
		cmd = make_watch(ids[i], KEY, i % 5 ? 1 + i : MOST);
		cmd.flags = i % 2 ? TWHEEL_LEVEL : 0;
		ASSERT_EQ(run(fd, &cmd), 0);
	}
	expected = get_counters(fd);
	ASSERT_EQ(signal_quietly(fd, KEY), nr);
	check_nothing_ready(fd);
	expected.armed -= nr;
	expected.cancelled += nr;
	check_counters(fd, &expected);
	for (i = 0; i < nr; i++)
		ASSERT_EQ(query(fd, ids[i], NULL), -ENOENT);
	ASSERT_EQ(signal_quietly(fd, KEY), 0);
	ASSERT_EQ(signal_key(fd, KEY, MOST), 0);
	ASSERT_EQ(query(fd, other, NULL), TWHEEL_ARMED);
	ASSERT_EQ(signal_key(fd, OTHER_KEY, 1), 1);
}

TEST(quiet_signal_counts_an_operation_once_that_watches_the_key_twice)
{
	int fd = device_open_nonblock();
	__u64 id = add_operation(fd, 3, 1);

	ASSERT_EQ(watch(fd, id, KEY, 1), 0);
	ASSERT_EQ(watch(fd, id, KEY, 2), 0);
	ASSERT_EQ(watch_level(fd, id, KEY, 3), 0);
	ASSERT_EQ(signal_quietly(fd, KEY), 1);
	ASSERT_EQ(get_counters(fd).cancelled, 1);
	ASSERT_EQ(query(fd, id, NULL), -ENOENT);
}

TEST(quiet_signal_ends_the_other_watches_of_what_it_cancels)
{
	int fd = device_open_nonblock();
	__u64 id = add_operation(fd, 0, 1);

	ASSERT_EQ(watch(fd, id, KEY, 1), 0);
	ASSERT_EQ(watch(fd, id, OTHER_KEY, 1), 0);
	ASSERT_EQ(signal_quietly(fd, KEY), 1);
	ASSERT_EQ(signal_key(fd, OTHER_KEY, 1), 0);
	ASSERT_EQ(signal_quietly(fd, OTHER_KEY), 0);
	check_nothing_ready(fd);
}

TEST(quiet_signal_leaves_ready_operations_alone)
{
	int fd = device_open_nonblock();
	__u64 expired, completed, met;

	expired = add_watching(fd, KEY, 5, 1);
	expire(fd, expired);
	completed = add_watching(fd, KEY, 1, 2);
	met = add_operation(fd, 0, 3);
	ASSERT_EQ(watch(fd, met, KEY, 9), 0);
	ASSERT_EQ(watch(fd, met, OTHER_KEY, 1), 0);
	ASSERT_EQ(signal_key(fd, KEY, 1), 1);
	ASSERT_EQ(signal_key(fd, OTHER_KEY, 2), 1);
	ASSERT_EQ(signal_quietly(fd, KEY), 0);
	ASSERT_EQ(get_counters(fd).cancelled, 0);
	ASSERT_EQ(wait_record(fd).id, expired);
	ASSERT_EQ(wait_completed(fd, 1, KEY).id, completed);
	ASSERT_EQ(wait_completed(fd, 2, OTHER_KEY).id, met);
	check_nothing_ready(fd);
}

TEST(quiet_signal_leaves_an_operation_alone_whose_watch_was_satisfied)
{
	int fd = device_open_nonblock();
	__u64 id = add_operation(fd, 2, 1);

	ASSERT_EQ(watch(fd, id, KEY, 1), 0);
	ASSERT_EQ(watch(fd, id, OTHER_KEY, 1), 0);
	ASSERT_EQ(signal_key(fd, KEY, 1), 0);
	ASSERT_EQ(signal_quietly(fd, KEY), 0);
	ASSERT_EQ(query(fd, id, NULL), TWHEEL_ARMED);
	ASSERT_EQ(signal_quietly(fd, OTHER_KEY), 1);
}

TEST(quiet_signal_does_not_look_at_its_value)
{
	static const __u64 values[] = { 0, 1, MOST };
	int fd = device_open_nonblock();
	size_t i;

	for (i = 0; i < ARRAY_SIZE(values); i++) {
		struct twheel_cmd cmd = make_quiet(KEY);

		add_watching(fd, KEY, 1000, 1);
		cmd.value = values[i];
		ASSERT_EQ(run(fd, &cmd), 1);
		check_nothing_ready(fd);
	}
}

/* --- what is told of operations --------------------------------------------- */

TEST(list_tells_the_quorum_and_the_watches_that_an_operation_waits_for)
{
	int fd = device_open_nonblock();
	__u64 id = add_operation(fd, 3, 1);
	struct twheel_entry entry;
	__u64 key;

	ASSERT_EQ(list_one(fd, id).watches, 0);
	for (key = 1; key <= 5; key++) {
		ASSERT_EQ(watch(fd, id, key, 1), 0);
		ASSERT_EQ(list_one(fd, id).watches, key);
	}
	ASSERT_EQ(signal_key(fd, 1, 1), 0);
	ASSERT_EQ(signal_key(fd, 2, 1), 0);
	entry = list_one(fd, id);
	ASSERT_EQ(entry.state, TWHEEL_ARMED);
	ASSERT_EQ(entry.reason, 0);
	ASSERT_EQ(entry.quorum, 3);
	ASSERT_EQ(entry.watches, 3);
	ASSERT_EQ(signal_key(fd, 3, 1), 1);
	entry = list_one(fd, id);
	ASSERT_EQ(entry.state, TWHEEL_READY);
	ASSERT_EQ(entry.reason, TWHEEL_COMPLETED);
	ASSERT_EQ(entry.quorum, 3);
	ASSERT_EQ(entry.watches, 0);
}

TEST(list_tells_a_quorum_of_1_where_none_was_given)
{
	int fd = device_open_nonblock();

	ASSERT_EQ(list_one(fd, add_operation(fd, 0, 1)).quorum, 1);
	ASSERT_EQ(list_one(fd, add_operation(fd, 1, 1)).quorum, 1);
	ASSERT_EQ(list_one(fd, add_operation(fd, 64, 1)).quorum, 64);
}

TEST(list_tells_of_an_expired_operation_that_it_has_no_watches)
{
	int fd = device_open_nonblock();
	__u64 id = add_watching(fd, KEY, 5, 1);
	struct twheel_entry entry;

	expire(fd, id);
	entry = list_one(fd, id);
	ASSERT_EQ(entry.state, TWHEEL_READY);
	ASSERT_EQ(entry.reason, TWHEEL_EXPIRED);
	ASSERT_EQ(entry.quorum, 1);
	ASSERT_EQ(entry.watches, 0);
}

TEST(query_of_a_completed_operation_says_ready_and_when_it_was_due)
{
	int fd = device_open_nonblock();
	__u64 id = add_watching(fd, KEY, 1, 1), due_ns = query_time(fd, id);
	struct twheel_cmd answer;

	ASSERT_EQ(signal_key(fd, KEY, 1), 1);
	ASSERT_EQ(query(fd, id, &answer), TWHEEL_READY);
	ASSERT_EQ(answer.time_ns, due_ns);
	wait_completed(fd, 1, KEY);
	ASSERT_EQ(query(fd, id, NULL), -ENOENT);
}

TEST(fdinfo_counts_an_operation_through_its_life)
{
	int fd = device_open_nonblock();
	struct counters expected = get_counters(fd);
	__u64 id = add_operation(fd, 2, 0);

	expected.added = 1;
	expected.armed = 1;
	check_counters(fd, &expected);
	ASSERT_EQ(watch(fd, id, KEY, 1), 0);
	ASSERT_EQ(watch(fd, id, OTHER_KEY, 1), 0);
	ASSERT_EQ(signal_key(fd, KEY, 1), 0);
	check_counters(fd, &expected);

	ASSERT_EQ(signal_key(fd, OTHER_KEY, 1), 1);
	expected.armed = 0;
	expected.ready = 1;
	expected.completed = 1;
	check_counters(fd, &expected);

	wait_completed(fd, 1, OTHER_KEY);
	expected.ready = 0;
	expected.finished = 1;
	expected.records = 1;
	check_counters(fd, &expected);
}

TEST(signals_and_watches_that_end_nothing_leave_the_counters)
{
	int fd = device_open_nonblock();
	__u64 id = add_operation(fd, 0, 0);
	struct counters before = get_counters(fd);

	ASSERT_EQ(watch(fd, id, KEY, 10), 0);
	ASSERT_EQ(signal_key(fd, KEY, 1), 0);
	ASSERT_EQ(signal_key(fd, OTHER_KEY, 1), 0);
	ASSERT_EQ(signal_quietly(fd, OTHER_KEY), 0);
	check_counters(fd, &before);
}

TEST(close_ends_operations_with_all_their_watches)
{
	long long armed = armed_on_machine();
	unsigned int i, k;

	for (i = 0; i < 20; i++) {
		int fd = device_open_nonblock();

		for (k = 0; k < 200; k++) {
			__u64 id = add_operation(fd, 1 + k % 3, k);

			ASSERT_EQ(watch(fd, id, KEY, 1 + k), 0);
			ASSERT_EQ(watch_level(fd, id, k, 1), 0);
			ASSERT_EQ(watch(fd, id, OTHER_KEY, 1 + k), 0);
		}
		/* Some are ended, some have a part of their quorum. */
		signal_key(fd, KEY, 50 + i);
		ASSERT_EQ(close(fd), 0);
	}
	wait_armed_on_machine(armed);
}
