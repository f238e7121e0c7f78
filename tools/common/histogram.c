// SPDX-License-Identifier: GPL-2.0
/* Latency histogram. */
#include "common/histogram.h"
#include "common/time.h"

void histogram_add(struct histogram *histogram, uint64_t ns)
{
	uint64_t us = ns / NSEC_PER_USEC;
	unsigned int bucket = us ? 64 - (unsigned int)__builtin_clzll(us) : 0;

	if (bucket >= HISTOGRAM_BUCKETS)
		bucket = HISTOGRAM_BUCKETS - 1;
	histogram->nr[bucket]++;
	histogram->count++;
	histogram->sum_ns += ns;
	if (ns > histogram->max_ns)
		histogram->max_ns = ns;
}

uint64_t histogram_limit_us(unsigned int n)
{
	return 1ULL << n;
}

uint64_t histogram_permille_us(const struct histogram *histogram, unsigned int permille)
{
	uint64_t rest = histogram->count * permille / 1000;
	unsigned int n;

	if (!histogram->count)
		return 0;
	for (n = 0; n < HISTOGRAM_BUCKETS - 1 && rest >= histogram->nr[n]; n++)
		rest -= histogram->nr[n];
	return histogram_limit_us(n);
}
