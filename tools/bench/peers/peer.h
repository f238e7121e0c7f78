/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The harness of the peers in C, which peer.c describes.
 */
#ifndef _PEER_H
#define _PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct peer - timers that are measured
 * @name: for the results.
 * @never_early: no timer is early, by what its library promises.
 * @begin: make memory for so many timers.
 * @refresh: take the time anew, which delays are counted from; %NULL: arming does.
 * @arm: arm a timer.
 * @cancel: cancel an armed one.
 * @run: run the event loop until nothing is armed.
 * @within: call a function from within the event loop; %NULL: that makes no difference.
 *
 * The harness numbers the timers from 0 on.
 */
struct peer {
	const char *name;
	bool never_early;
	void (*begin)(uint32_t count);
	void (*refresh)(void);
	void (*arm)(uint32_t i, uint64_t delay_us);
	void (*cancel)(uint32_t i);
	void (*run)(void);
	void (*within)(void (*work)(void));
};

/* What a program does: its arguments are those that run tells of. */
int peer_main(int argc, char **argv, const struct peer *peer);

/* Timer @i has expired. */
void peer_expired(uint32_t i);

uint64_t peer_now_ns(void);
void peer_sleep_until(uint64_t time_ns);

/* Zeroed memory. */
void *peer_alloc(size_t nr, size_t size);

#endif /* _PEER_H */
