// SPDX-License-Identifier: GPL-2.0
/*
 * Rates of events and interrupts, from two samples of all wheels.
 */
#include <string.h>

#include "common/time.h"
#include "twheelctl/rates.h"

/* The upper end of a bucket of lateness. */
static __u64 bucket_end(unsigned int bucket)
{
	return bucket < WHEEL_LATENESS - 1 ?
	       1ULL << (bucket + WHEEL_LATENESS_SHIFT) : RATES_ENDLESS;
}

/* Sum the counters of all wheels. */
void sample_take(struct sample *sample, const struct wheels *wheels,
		 __u64 at_ns)
{
	*sample = (struct sample){ .at_ns = at_ns };
	for (size_t i = 0; i < wheels->nr; i++) {
		const struct wheel *wheel = &wheels->wheel[i];

		sample->pending += wheel->armed + wheel->gap;
		sample->expired += wheel->expired;
		sample->interrupts += wheel->interrupts;
		sample->postponed += wheel->postponed;
		sample->cascaded += wheel->cascaded;
		for (unsigned int k = 0; k < WHEEL_LATENESS; k++)
			sample->lateness[k] += wheel->lateness[k];
	}
}

/* If the module was loaded again, the counter has started again at 0. */
static __u64 difference(__u64 before, __u64 after)
{
	return after >= before ? after - before : after;
}

/* The upper end of the bucket that a quantile of all events is in; 0 without events. */
static __u64 quantile(const __u64 lateness[WHEEL_LATENESS], double part)
{
	__u64 total = 0, seen = 0;
	unsigned int k;

	for (k = 0; k < WHEEL_LATENESS; k++)
		total += lateness[k];
	if (!total)
		return 0;
	for (k = 0; k < WHEEL_LATENESS - 1; k++) {
		seen += lateness[k];
		if (seen >= part * total)
			break;
	}
	return bucket_end(k);
}

/* Compute the rates between two samples. */
void rates_between(struct rates *rates, const struct sample *before,
		   const struct sample *after)
{
	double seconds = (double)(after->at_ns - before->at_ns) / NSEC_PER_SEC;
	__u64 lateness[WHEEL_LATENESS];

	if (!seconds)
		seconds = 1;
	for (unsigned int k = 0; k < WHEEL_LATENESS; k++)
		lateness[k] = difference(before->lateness[k],
					 after->lateness[k]);
	*rates = (struct rates){
		.pending = after->pending,
		.expired = difference(before->expired, after->expired),
		.interrupts_per_s = difference(before->interrupts,
					       after->interrupts) / seconds,
		.postponed_per_s = difference(before->postponed,
					      after->postponed) / seconds,
		.cascaded_per_s = difference(before->cascaded,
					     after->cascaded) / seconds,
		.p99_ns = quantile(lateness, 0.99),
		.worst_ns = quantile(lateness, 1),
	};
	rates->per_s = rates->expired / seconds;
}

/* Formats a lateness, which is known only as the end of its bucket. */
const char *lateness_format(char text[NUMBER_TEXT], __u64 below_ns)
{
	char end[NUMBER_TEXT];

	if (!below_ns)
		return strcpy(text, "-");
	if (below_ns == RATES_ENDLESS)
		duration_format(end, bucket_end(WHEEL_LATENESS - 2));
	else
		duration_format(end, below_ns);
	snprintf(text, NUMBER_TEXT, "%c %.24s",
		 below_ns == RATES_ENDLESS ? '>' : '<', end);
	return text;
}
