// SPDX-License-Identifier: GPL-2.0
/* The text of a page of metrics, in format 0.0.4 of Prometheus. */
#include <inttypes.h>
#include <stdbool.h>

#include "common/time.h"
#include "metrics/text.h"

void page_head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void page_seconds(FILE *out, uint64_t ns)
{
	fprintf(out, "%llu.%09llu\n", ns / NSEC_PER_SEC, ns % NSEC_PER_SEC);
}

void page_number(FILE *out, const struct page_sample *sample, const void *from)
{
	const void *field = (const char *)from + sample->offset;

	if (sample->unit == UNIT_BOOL)
		fprintf(out, "%d\n", *(const bool *)field);
	else if (sample->unit == UNIT_NS)
		page_seconds(out, *(const uint64_t *)field);
	else
		fprintf(out, "%" PRIu64 "\n", *(const uint64_t *)field);
}

void page_samples(FILE *out, const struct page_sample *samples, size_t nr,
		  const void *from)
{
	size_t i;

	for (i = 0; i < nr; i++) {
		if (samples[i].type)
			page_head(out, samples[i].name, samples[i].type, samples[i].help);
		fprintf(out, "%s%s ", samples[i].name, samples[i].labels);
		page_number(out, &samples[i], from);
	}
}

void page_label(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\n')
			fputs("\\n", out);
		else if (*text == '"' || *text == '\\')
			fprintf(out, "\\%c", *text);
		else
			fputc(*text, out);
	}
}

void page_histogram(FILE *out, const char *name, const char *to,
		    const struct histogram *histogram)
{
	uint64_t below = 0;
	unsigned int n;

	/* The last bucket has no limit. */
	for (n = 0; n < HISTOGRAM_BUCKETS - 1; n++) {
		uint64_t limit_us = histogram_limit_us(n);

		below += histogram->nr[n];
		fprintf(out, "%s_bucket{to=\"%s\",le=\"%" PRIu64 ".%06" PRIu64 "\"} %" PRIu64 "\n",
			name, to, limit_us / 1000000, limit_us % 1000000, below);
	}
	below += histogram->nr[n];
	fprintf(out, "%s_bucket{to=\"%s\",le=\"+Inf\"} %" PRIu64 "\n", name, to, below);
	fprintf(out, "%s_sum{to=\"%s\"} ", name, to);
	page_seconds(out, histogram->sum_ns);
	fprintf(out, "%s_count{to=\"%s\"} %" PRIu64 "\n", name, to, below);
}
