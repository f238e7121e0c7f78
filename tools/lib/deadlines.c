// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Allocates the words of deadlines in shared memory.
 *
 * Words from an index on were never allocated.  So a wheel with a million words of which
 * ten are used does not touch the memory of the others.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "private.h"

#define WORD_TAKEN	0xffffffffU

int twheel__words_map(struct twheel *wheel, __u32 nr)
{
	size_t size;
	void *words;

	/* A 32-bit program cannot map that much. */
	if (__builtin_mul_overflow(nr, sizeof(__u64), &size))
		return -ENOMEM;
	wheel->next_free = calloc(nr, sizeof(*wheel->next_free));
	if (!wheel->next_free)
		return -ENOMEM;
	words = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, wheel->fd, 0);
	if (words == MAP_FAILED)
		return -errno;
	wheel->words = words;
	wheel->nr_words = nr;
	return 0;
}

void twheel__words_unmap(struct twheel *wheel)
{
	if (wheel->words)
		munmap(wheel->words, wheel->nr_words * sizeof(*wheel->words));
	free(wheel->next_free);
}

/* Allocate a word.  Returns -ENOSPC if there is none left.  The caller holds the mutex. */
static int take_word(struct twheel *wheel)
{
	__u32 word;

	if (wheel->first_free) {
		word = wheel->first_free - 1;
		wheel->first_free = wheel->next_free[word];
	} else if (wheel->nr_touched < wheel->nr_words) {
		word = wheel->nr_touched++;
	} else {
		return -ENOSPC;
	}
	wheel->next_free[word] = WORD_TAKEN;
	return word;
}

int twheel_deadline_get(struct twheel *wheel)
{
	int word;

	pthread_mutex_lock(&wheel->words_mutex);
	word = take_word(wheel);
	pthread_mutex_unlock(&wheel->words_mutex);
	if (word >= 0)
		twheel_deadline_set(wheel->words, word, TWHEEL_NEVER);
	return word;
}

int twheel_deadline_put(struct twheel *wheel, __u32 word)
{
	int ret = -EINVAL;

	pthread_mutex_lock(&wheel->words_mutex);
	if (word < wheel->nr_touched && wheel->next_free[word] == WORD_TAKEN) {
		wheel->next_free[word] = wheel->first_free;
		wheel->first_free = word + 1;
		ret = 0;
	}
	pthread_mutex_unlock(&wheel->words_mutex);
	return ret;
}

__u64 *twheel_deadlines(const struct twheel *wheel)
{
	return wheel->words;
}
