/* SPDX-License-Identifier: GPL-2.0 */
/* Random numbers that depend on a seed only: splitmix64; and the length of an array. */
#ifndef FUZZING_RANDOM_H
#define FUZZING_RANDOM_H

#include <stdint.h>

#define LENGTH(array)	(sizeof(array) / sizeof((array)[0]))

struct random {
	uint64_t state;
};

static inline uint64_t random_next(struct random *random)
{
	uint64_t x = random->state += 0x9e3779b97f4a7c15ULL;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

static inline unsigned int random_below(struct random *random, unsigned int end)
{
	return (random_next(random) >> 33) % end;
}

static inline void random_fill(struct random *random, void *to, unsigned int size)
{
	unsigned char *byte = to;

	while (size--)
		*byte++ = random_next(random) >> 56;
}

#endif /* FUZZING_RANDOM_H */
