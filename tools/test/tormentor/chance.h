/* SPDX-License-Identifier: GPL-2.0 */
/* Numbers by chance: splitmix64. Each worker has a state of its own. */
#ifndef TORMENTOR_CHANCE_H
#define TORMENTOR_CHANCE_H

#include <stdbool.h>
#include <stdint.h>

static inline uint64_t next_random(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15ULL;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

static inline uint64_t random_below(uint64_t *state, uint64_t limit)
{
	return next_random(state) % limit;
}

/* True once in @n times. */
static inline bool one_in(uint64_t *state, uint64_t n)
{
	return random_below(state, n) == 0;
}

#endif /* TORMENTOR_CHANCE_H */
