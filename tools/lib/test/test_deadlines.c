// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Deadlines in shared memory.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "wheel.h"

#define WORDS	700

TEST(deadlines_are_taken_once_until_there_are_none_left)
{
	struct twheel *wheel = open_words(WORDS);
	bool taken[WORDS] = {};
	int word, i;

	for (i = 0; i < WORDS; i++) {
		word = twheel_deadline_get(wheel);
		ASSERT_GE(word, 0);
		ASSERT_LT(word, WORDS);
		ASSERT(!taken[word]);
		taken[word] = true;
	}
	ASSERT_EQ(twheel_deadline_get(wheel), -ENOSPC);
	ASSERT_EQ(twheel_deadline_put(wheel, 5), 0);
	ASSERT_EQ(twheel_deadline_put(wheel, 9), 0);
	word = twheel_deadline_get(wheel);
	ASSERT(word == 5 || word == 9);
	ASSERT_EQ(twheel_deadline_get(wheel), word == 5 ? 9 : 5);
	ASSERT_EQ(twheel_deadline_get(wheel), -ENOSPC);
	twheel_close(wheel);
}

TEST(deadline_that_nobody_took_is_not_given_back)
{
	struct twheel *wheel = open_words(WORDS);
	int word = twheel_deadline_get(wheel);

	ASSERT_EQ(twheel_deadline_put(wheel, word + 1), -EINVAL);
	ASSERT_EQ(twheel_deadline_put(wheel, WORDS), -EINVAL);
	ASSERT_EQ(twheel_deadline_put(wheel, ~0U), -EINVAL);
	ASSERT_EQ(twheel_deadline_put(wheel, word), 0);
	ASSERT_EQ(twheel_deadline_put(wheel, word), -EINVAL);
	ASSERT_EQ(twheel_deadline_get(wheel), word);
	twheel_close(wheel);
}

TEST(wheel_without_deadlines_has_none)
{
	struct twheel *wheel = open_wheel();

	ASSERT(!twheel_deadlines(wheel));
	ASSERT_EQ(twheel_deadline_get(wheel), -ENOSPC);
	ASSERT_EQ(twheel_deadline_put(wheel, 0), -EINVAL);
	twheel_close(wheel);
}

TEST(deadline_says_never_when_it_is_taken)
{
	struct twheel *wheel = open_words(WORDS);
	__u64 *words = twheel_deadlines(wheel);
	int word = twheel_deadline_get(wheel);

	ASSERT_EQ(twheel_deadline_ns(words, word), TWHEEL_NEVER);
	twheel_deadline_set(words, word, 5);
	ASSERT_EQ(twheel_deadline_ns(words, word), 5);
	ASSERT_EQ(words[word], 5);
	ASSERT_EQ(twheel_deadline_put(wheel, word), 0);
	ASSERT_EQ(twheel_deadline_get(wheel), word);
	ASSERT_EQ(twheel_deadline_ns(words, word), TWHEEL_NEVER);
	twheel_close(wheel);
}

static __u64 add_for_word(struct twheel *wheel, __u32 word, __u64 data)
{
	struct twheel_cmd cmd;

	twheel_prep_add_deadline(&cmd, word, data);
	ASSERT_EQ(twheel_run(wheel, &cmd), 0);
	return cmd.id;
}

TEST(deadline_that_is_moved_is_the_time_of_its_event)
{
	struct twheel *wheel = open_words(WORDS);
	__u64 *words = twheel_deadlines(wheel);
	int word = twheel_deadline_get(wheel);
	__u64 due_ns = twheel_now_ns(wheel) + SOON_NS;
	struct twheel_record record;

	/* All words lie where the kernel looks for them, not the first alone. */
	while (word < WORDS - 1)
		word = twheel_deadline_get(wheel);
	twheel_deadline_set(words, word, due_ns);
	add_for_word(wheel, word, 42);
	twheel_deadline_set(words, word, due_ns + SOON_NS);
	record = wait_one(wheel);
	ASSERT_EQ(record.data, 42);
	/* The store may have crossed with the expiry. */
	if (record.due_ns != due_ns)
		ASSERT_EQ(record.due_ns, due_ns + SOON_NS);
	twheel_close(wheel);
}

TEST(deadline_that_is_brought_forward_is_looked_at_by_modify)
{
	struct twheel *wheel = open_words(WORDS);
	__u64 *words = twheel_deadlines(wheel);
	int word = twheel_deadline_get(wheel);
	__u64 id = add_for_word(wheel, word, 42);
	struct twheel_cmd cmd;
	__u64 due_ns;

	ASSERT_EQ(twheel_query(wheel, id, &due_ns), TWHEEL_ARMED);
	ASSERT_EQ(due_ns, TWHEEL_NEVER);
	due_ns = twheel_now_ns(wheel);
	twheel_deadline_set(words, word, due_ns);
	twheel_prep_modify_deadline(&cmd, id, word);
	ASSERT_EQ(twheel_run(wheel, &cmd), 0);
	ASSERT_EQ(wait_one(wheel).due_ns, due_ns);
	twheel_close(wheel);
}

#define SHARED	3
#define THREADS	4

static struct twheel *shared;
static atomic_int owners[SHARED];
static atomic_uint nr_taken;

/* Take words, see that they are ours alone, and give them back. */
static void *take_and_give(void *arg)
{
	__u64 *words = twheel_deadlines(shared);
	__u64 mine = (__u64)(uintptr_t)arg << 32;
	unsigned long i;

	for (i = 0; i < test_count(50000); i++) {
		int word = twheel_deadline_get(shared);

		if (word == -ENOSPC)
			continue;
		ASSERT_GE(word, 0);
		ASSERT_LT(word, SHARED);
		ASSERT_EQ(atomic_fetch_add(&owners[word], 1), 0);
		twheel_deadline_set(words, word, mine | i);
		if (i % 64 == 0)
			sched_yield();
		ASSERT_EQ(twheel_deadline_ns(words, word), mine | i);
		ASSERT_EQ(atomic_fetch_sub(&owners[word], 1), 1);
		ASSERT_EQ(twheel_deadline_put(shared, word), 0);
		nr_taken++;
	}
	return NULL;
}

TEST(deadlines_are_taken_and_given_by_threads_at_a_time)
{
	pthread_t threads[THREADS];
	uintptr_t i;

	shared = open_words(SHARED);
	for (i = 0; i < THREADS; i++)
		threads[i] = start_thread(take_and_give, (void *)(i + 1));
	for (i = 0; i < THREADS; i++)
		join_thread(threads[i]);
	ASSERT_GT(nr_taken, 0);
	for (i = 0; i < SHARED; i++)
		ASSERT_GE(twheel_deadline_get(shared), 0);
	ASSERT_EQ(twheel_deadline_get(shared), -ENOSPC);
	twheel_close(shared);
}
