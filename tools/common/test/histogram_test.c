// SPDX-License-Identifier: GPL-2.0
/* The histogram of latencies. */
#include "common/histogram.h"
#include "common/time.h"
#include "test/device/harness.h"

/* The bucket that has the only value of a histogram. */
static unsigned int bucket_of(uint64_t ns)
{
	struct histogram histogram = { 0 };
	unsigned int n, bucket = HISTOGRAM_BUCKETS;

	histogram_add(&histogram, ns);
	for (n = 0; n < HISTOGRAM_BUCKETS; n++) {
		if (!histogram.nr[n])
			continue;
		ASSERT_EQ(bucket, HISTOGRAM_BUCKETS);
		bucket = n;
	}
	return bucket;
}

TEST(a_value_is_in_the_first_bucket_that_it_is_below)
{
	unsigned int n;

	ASSERT_EQ(bucket_of(0), 0);
	ASSERT_EQ(bucket_of(999), 0);
	for (n = 0; n < HISTOGRAM_BUCKETS - 2; n++) {
		uint64_t limit_ns = histogram_limit_us(n) * NSEC_PER_USEC;

		ASSERT_EQ(bucket_of(limit_ns - 1), n);
		ASSERT_EQ(bucket_of(limit_ns), n + 1);
	}
	ASSERT_EQ(bucket_of(UINT64_MAX), HISTOGRAM_BUCKETS - 1);
}

TEST(count_sum_and_maximum_are_exact)
{
	struct histogram histogram = { 0 };

	histogram_add(&histogram, 5);
	histogram_add(&histogram, 3000000);
	histogram_add(&histogram, 70);
	ASSERT_EQ(histogram.count, 3);
	ASSERT_EQ(histogram.sum_ns, 3000075);
	ASSERT_EQ(histogram.max_ns, 3000000);
}

TEST(a_permille_is_the_limit_of_its_bucket)
{
	struct histogram histogram = { 0 };
	unsigned int i;

	ASSERT_EQ(histogram_permille_us(&histogram, 500), 0);
	for (i = 0; i < 990; i++)
		histogram_add(&histogram, 500);
	for (i = 0; i < 10; i++)
		histogram_add(&histogram, 5 * NSEC_PER_MSEC);
	ASSERT_EQ(histogram_permille_us(&histogram, 500), 1);
	ASSERT_EQ(histogram_permille_us(&histogram, 989), 1);
	ASSERT_EQ(histogram_permille_us(&histogram, 990), 8192);
	ASSERT_EQ(histogram_permille_us(&histogram, 999), 8192);
}
