/* SPDX-License-Identifier: GPL-2.0 */
/* Latency histogram; its buckets are powers of two of a microsecond. */
#ifndef COMMON_HISTOGRAM_H
#define COMMON_HISTOGRAM_H

#include <stdint.h>

/* Bucket 0 is below 1 us, bucket n below 2^n us; the last one has everything above. */
#define HISTOGRAM_BUCKETS	32

struct histogram {
	uint64_t nr[HISTOGRAM_BUCKETS];
	uint64_t count;
	uint64_t sum_ns;
	uint64_t max_ns;
};

void histogram_add(struct histogram *histogram, uint64_t ns);

/* The upper limit of bucket @n, in us. */
uint64_t histogram_limit_us(unsigned int n);

/*
 * The limit of the bucket below which @permille of all values are, in us; 0 if there are no
 * values.
 */
uint64_t histogram_permille_us(const struct histogram *histogram, unsigned int permille);

#endif /* COMMON_HISTOGRAM_H */
