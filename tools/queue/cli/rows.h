/* SPDX-License-Identifier: GPL-2.0 */
/* The table of top: a row for each tube, and one for all of them. */
#ifndef QUEUE_CLI_ROWS_H
#define QUEUE_CLI_ROWS_H

#include "common/table.h"
#include "queue/cli/snapshot.h"

/* A table of tubes, the busiest first. */
void rows_table(struct table *table);

/* The row of all tubes, and its name. */
#define ROWS_SUM	"all tubes"
void rows_sum(struct table_row *row, const struct snapshot *snapshot, const struct rates *rates);

/* A row for each tube, which the caller frees, in the order of names. */
struct table_row *rows_make(const struct snapshot *snapshot);

#endif /* QUEUE_CLI_ROWS_H */
