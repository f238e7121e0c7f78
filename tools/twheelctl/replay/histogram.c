// SPDX-License-Identifier: GPL-2.0
/*
 * Histogram of times.
 */
#include "common/number.h"
#include "twheelctl/replay/histogram.h"

#define BAR_WIDTH	50

static unsigned int bucket_of(__u64 ns)
{
	unsigned int shift;

	if (ns < HISTOGRAM_SUBS)
		return ns;
	shift = 63 - __builtin_clzll(ns) - HISTOGRAM_SUB_BITS;
	return shift * HISTOGRAM_SUBS + (ns >> shift);
}

/* The greatest time of a bucket. */
static __u64 bucket_last(unsigned int bucket)
{
	unsigned int shift;

	if (bucket < HISTOGRAM_SUBS)
		return bucket;
	shift = bucket / HISTOGRAM_SUBS - 1;
	return ((HISTOGRAM_SUBS + bucket % HISTOGRAM_SUBS + 1ULL) << shift) - 1;
}

/* Count a time. */
void fine_histogram_add(struct fine_histogram *histogram, __u64 ns)
{
	histogram->count[bucket_of(ns)]++;
	histogram->total++;
	if (ns > histogram->max_ns)
		histogram->max_ns = ns;
}

/*
 * Compute a quantile.
 *
 * @quantile: 0 to 1.
 *
 * Return: the quantile or up to an eighth more; 0 if nothing was counted.
 */
__u64 fine_histogram_quantile(const struct fine_histogram *histogram, double quantile)
{
	__u64 seen = 0;

	for (unsigned int i = 0; i < HISTOGRAM_BUCKETS; i++) {
		seen += histogram->count[i];
		if (seen && seen >= quantile * histogram->total)
			return bucket_last(i) < histogram->max_ns ?
			       bucket_last(i) : histogram->max_ns;
	}
	return 0;
}

/* The number of times from 2^power ns to less than twice that. */
static __u64 count_power(const struct fine_histogram *histogram, unsigned int power)
{
	unsigned int first = bucket_of(1ULL << power);
	__u64 next = power < 63 ? bucket_of(1ULL << (power + 1)) : HISTOGRAM_BUCKETS;
	__u64 count = 0;

	for (unsigned int i = first; i < next; i++)
		count += histogram->count[i];
	return count;
}

static void print_row(FILE *out, __u64 below_ns, __u64 count, __u64 most)
{
	static const char bar[BAR_WIDTH + 1] =
		"##################################################";
	char text[NUMBER_TEXT];

	fprintf(out, "  < %-7s %9llu  %.*s\n", duration_format(text, below_ns),
		count, (int)((count * BAR_WIDTH + most - 1) / most), bar);
}

/*
 * Draw one row for each power of two.
 *
 * All times below 1024 ns share the first row.
 */
void fine_histogram_print(const struct fine_histogram *histogram, FILE *out)
{
	unsigned int first = 64, last = 0;
	__u64 rows[64] = { 0 };
	__u64 most = 1;

	rows[9] = histogram->count[0];
	for (unsigned int power = 0; power < 64; power++) {
		unsigned int row = power < 9 ? 9 : power;

		rows[row] += count_power(histogram, power);
		if (!rows[row])
			continue;
		first = row < first ? row : first;
		last = row;
		most = rows[row] > most ? rows[row] : most;
	}
	for (unsigned int row = first; row <= last; row++)
		print_row(out, row < 63 ? 2ULL << row : ~0ULL, rows[row], most);
}
