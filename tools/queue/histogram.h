/* SPDX-License-Identifier: GPL-2.0 */
/* How often how long: buckets that are powers of two of a microsecond wide. */
#ifndef TWHEELQ_HISTOGRAM_H
#define TWHEELQ_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

/* Bucket 0 is below 1 us, bucket n below 2^n us; the last has all above. */
#define HISTOGRAM_BUCKETS	32

struct histogram {
	uint64_t nr[HISTOGRAM_BUCKETS];
	uint64_t count;
	uint64_t sum_ns;
	uint64_t max_ns;
};

static inline void histogram_add(struct histogram *histogram, uint64_t ns)
{
	uint64_t us = ns / 1000;
	unsigned int bucket = us ? 64 - (unsigned int)__builtin_clzll(us) : 0;

	if (bucket >= HISTOGRAM_BUCKETS)
		bucket = HISTOGRAM_BUCKETS - 1;
	histogram->nr[bucket]++;
	histogram->count++;
	histogram->sum_ns += ns;
	if (ns > histogram->max_ns)
		histogram->max_ns = ns;
}

/* What bucket @n is below, in us. */
static inline uint64_t histogram_limit_us(unsigned int n)
{
	return 1ULL << n;
}

/* What @permille of all are below, in us, as buckets tell; 0 if there are none. */
static inline uint64_t histogram_permille_us(const struct histogram *histogram,
					     unsigned int permille)
{
	uint64_t rest = histogram->count * permille / 1000;
	unsigned int n;

	if (!histogram->count)
		return 0;
	for (n = 0; n < HISTOGRAM_BUCKETS - 1 && rest >= histogram->nr[n]; n++)
		rest -= histogram->nr[n];
	return histogram_limit_us(n);
}

#endif /* TWHEELQ_HISTOGRAM_H */
