/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Declarations for the files of libtwheel.
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
 * @info: the answer to TWHEEL_IOC_INFO.
 * @clock: its clock.
 * @words: the deadlines shared with the kernel, or NULL.
 * @nr_words: the number of words.
 * @words_mutex: guards the following.
 * @next_free: for each word: if it was freed, the next freed word plus 1, or 0; if it is
 *	allocated, WORD_TAKEN.
 * @first_free: a freed word plus 1, or 0.
 * @nr_touched: the words from this index on were never allocated.
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

/*
 * Functions that files share begin with twheel__, because the static library defines them in
 * the program.
 */

/* Map the words of a wheel that is configured for @nr of them.  Returns 0 or an errno. */
int twheel__words_map(struct twheel *wheel, __u32 nr);
void twheel__words_unmap(struct twheel *wheel);

/* An ioctl, which is called again after a signal.  Returns as ioctl(), or an errno. */
int twheel__ioctl(const struct twheel *wheel, unsigned long request, void *argument);

#endif /* _LIBTWHEEL_PRIVATE_H */
