/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Histogram of times, finer than that of common/.
 *
 * Each power of two has eight buckets of equal width; below 8 ns, each nanosecond has a
 * bucket. So the times of a bucket differ by at most an eighth, and 496 counters cover 1 ns
 * to 584 years. Only the greatest time is stored exactly.
 */
#ifndef _TWHEELCTL_HISTOGRAM_H
#define _TWHEELCTL_HISTOGRAM_H

#include <stdio.h>
#include <linux/types.h>

#define HISTOGRAM_SUB_BITS	3
#define HISTOGRAM_SUBS		8
#define HISTOGRAM_BUCKETS	((64 - HISTOGRAM_SUB_BITS + 1) * HISTOGRAM_SUBS)

/* All zeros at the beginning. */
struct fine_histogram {
	__u64 count[HISTOGRAM_BUCKETS];
	__u64 total;
	__u64 max_ns;
};

void fine_histogram_add(struct fine_histogram *histogram, __u64 ns);
__u64 fine_histogram_quantile(const struct fine_histogram *histogram, double quantile);
void fine_histogram_print(const struct fine_histogram *histogram, FILE *out);

#endif /* _TWHEELCTL_HISTOGRAM_H */
