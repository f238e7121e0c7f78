/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a page of metrics is made of: format 0.0.4 of Prometheus.
 *
 * A family is what has one name: a line of HELP, one of TYPE, and its samples, which must
 * follow each other. What is a number of a struct is a line of a table, in the order of the
 * page; where that has no help, it is one more sample of the family before it.
 */
#ifndef TWHEELQ_METRICS_TEXT_H
#define TWHEELQ_METRICS_TEXT_H

#include <stddef.h>
#include <stdio.h>

#include "histogram.h"

/* How a number is written. */
enum page_unit {
	UNIT_ONE,	/* as it is */
	UNIT_NS,	/* in seconds */
	UNIT_BOOL,
};

/**
 * struct page_sample - a number of a struct as a line of the page
 * @name: of its family.
 * @type: NULL where it is one more sample of the family before.
 * @help: the same.
 * @labels: with their braces, or empty.
 * @offset: where it is in the struct.
 * @unit: how it is written.
 */
struct page_sample {
	const char *name;
	const char *type;
	const char *help;
	const char *labels;
	size_t offset;
	enum page_unit unit;
};

/* The lines before the samples of a family. */
void page_head(FILE *out, const char *name, const char *type, const char *help);

/* A time as the value of a sample. */
void page_seconds(FILE *out, uint64_t ns);

/* A number of the struct @from as the value of a sample; @nr samples of it. */
void page_number(FILE *out, const struct page_sample *sample, const void *from);
void page_samples(FILE *out, const struct page_sample *samples, size_t nr,
		  const void *from);

/* The value of a label: what would end it is escaped. */
void page_label(FILE *out, const char *text);

/* The samples of a family that is a histogram of times, whose label "to" is @to. */
void page_histogram(FILE *out, const char *name, const char *to,
		    const struct histogram *histogram);

#endif /* TWHEELQ_METRICS_TEXT_H */
