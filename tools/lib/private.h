/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the files of libtwheel share.
 */
#ifndef _LIBTWHEEL_PRIVATE_H
#define _LIBTWHEEL_PRIVATE_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

#include "libtwheel.h"

/**
 * struct twheel - an open file of the device
 * @fd: the file.
 * @info: what the kernel side said of itself.
 * @clock: its clock.
 * @words: the words that are shared with it, or NULL.
 * @nr_words: how many there are.
 * @words_mutex: guards the following.
 * @next_free: of a word that was given back: the next such, plus 1; of one that is taken:
 *	WORD_TAKEN.
 * @first_free: a word that was given back, plus 1, or 0.
 * @nr_touched: the words from here on were never taken.
 */
struct twheel {
	int fd;
	struct twheel_info info;
	clockid_t clock;
	__u64 *words;
	__u32 nr_words;
	pthread_mutex_t words_mutex;
	__u32 *next_free;
	__u32 first_free;
	__u32 nr_touched;
};

/* Map the words of a wheel that is configured for @nr of them.  Returns 0 or an errno. */
int words_map(struct twheel *wheel, __u32 nr);
void words_unmap(struct twheel *wheel);

/* An ioctl of the wheel, begun anew after a signal.  Returns as ioctl(), or an errno. */
int wheel_ioctl(const struct twheel *wheel, unsigned long request, void *argument);

#endif /* _LIBTWHEEL_PRIVATE_H */
