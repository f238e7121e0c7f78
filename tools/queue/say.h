/* SPDX-License-Identifier: GPL-2.0 */
/* What clients can bring about again and again is said once a second. */
#ifndef TWHEELQ_SAY_H
#define TWHEELQ_SAY_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/**
 * struct say - something that may happen often
 * @next_s: before that, CLOCK_MONOTONIC, it is not said again.
 * @times: how often it has happened since it was said.
 */
struct say {
	time_t next_s;
	unsigned long times;
};

/* It has happened; if it is to be said, returns how often that was since the last time. */
static inline unsigned long say_now(struct say *say)
{
	struct timespec now;
	unsigned long times;

	say->times++;
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (now.tv_sec < say->next_s)
		return 0;
	times = say->times;
	say->next_s = now.tv_sec + 1;
	say->times = 0;
	return times;
}

#endif /* TWHEELQ_SAY_H */
