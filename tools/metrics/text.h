/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The text of a page of metrics, in format 0.0.4 of Prometheus.
 *
 * A family has one name: a line of HELP, one of TYPE, and then all its samples. Numbers of a
 * struct are written by a table of samples in the order of the page; a sample without help
 * belongs to the family before it.
 */
#ifndef METRICS_TEXT_H
#define METRICS_TEXT_H

#include <stddef.h>
#include <stdio.h>

#include "common/histogram.h"

/* The unit of a number. */
enum page_unit {
	UNIT_ONE,	/* a plain number */
	UNIT_NS,	/* written in seconds */
	UNIT_BOOL,
};

/**
 * struct page_sample - a number of a struct as a line of the page
 * @name: the name of its family.
 * @type: the type of the family; NULL: it belongs to the family before it.
 * @help: the help of the family, or NULL.
 * @labels: its labels with their braces, or empty.
 * @offset: of the number in the struct.
 * @unit: its unit.
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

/* A number of the struct @from as the value of a sample; and @nr whole samples. */
void page_number(FILE *out, const struct page_sample *sample, const void *from);
void page_samples(FILE *out, const struct page_sample *samples, size_t nr,
		  const void *from);

/* The value of a label; characters that would end it are escaped. */
void page_label(FILE *out, const char *text);

/* The samples of a histogram of times, with the label to="@to". */
void page_histogram(FILE *out, const char *name, const char *to,
		    const struct histogram *histogram);

#endif /* METRICS_TEXT_H */
