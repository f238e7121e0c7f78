/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The table of top: a row for each wheel, and one for all of them.
 */
#ifndef _TWHEELCTL_ROWS_H
#define _TWHEELCTL_ROWS_H

#include "common/table.h"
#include "twheelctl/rates.h"
#include "twheelctl/wheels.h"

/**
 * struct look - the wheels at one moment
 * @at_ns: the moment, on CLOCK_MONOTONIC.
 * @wheels: the wheels.
 */
struct look {
	__u64 at_ns;
	struct wheels wheels;
};

/* A table of wheels, sorted by their names. */
void rows_table(struct table *table);

/* The row of all wheels, and its name. */
#define ROWS_SUM	"all wheels"
void rows_sum(struct table_row *row, const struct rates *rates);

/*
 * A row for each wheel that has events or has had an interrupt, and for each that is offline, in
 * the order of @after; their number is stored in @nr. The caller frees the rows, by rows_free().
 * The source of a row is its wheel.
 */
struct table_row *rows_make(const struct look *before, const struct look *after, size_t *nr);
void rows_free(struct table_row *rows, size_t nr);

#endif /* _TWHEELCTL_ROWS_H */
