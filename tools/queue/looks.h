/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a daemon tells of itself at one moment, and how fast it works between two.
 */
#ifndef TWHEELQ_LOOKS_H
#define TWHEELQ_LOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include "connect.h"
#include "histogram.h"
#include "record.h"

/* So many tubes are asked about at most. */
#define LOOK_MAX_TUBES	1000

/**
 * struct tube_look - a tube at a moment
 * @name: its name.
 * @put: jobs that were put into it, so far.
 * @deleted: jobs that were deleted of it, so far.
 * @put_per_s: these in a second, since the look before.
 * @deleted_per_s: the same.
 */
struct tube_look {
	char name[TUBE_NAME_MAX + 1];
	uint64_t ready, reserved, delayed, buried, waiting;
	uint64_t put, deleted;
	double put_per_s, deleted_per_s;
};

/**
 * struct look - a daemon at a moment
 * @at_ns: the moment; any clock that is never set.
 * @put: jobs that were put, so far; so are @deleted, @timeouts, @retries, @dead.
 * @commands: commands of all kinds, so far.
 * @ready_late: from due to ready, so far.
 * @late: from due to reserved, so far.
 * @tube: its tubes, by name.
 * @nr_tubes: how many.
 * @left_out: how many there are more.
 */
struct look {
	uint64_t at_ns;
	uint64_t ready, reserved, delayed, buried;
	uint64_t connections, waiting, uptime_s;
	uint64_t put, deleted, timeouts, retries, dead, commands;
	struct histogram ready_late;
	struct histogram late;
	struct tube_look *tube;
	size_t nr_tubes;
	size_t left_out;
};

/**
 * struct rates - what happened between two looks, in a second
 * @late: from due to reserved, of all between them; its maximum is that of a bucket.
 */
struct rates {
	double put, deleted, timeouts, retries, dead, commands;
	struct histogram late;
};

/* Take down the answer to "stats", which is written over. */
void look_at_stats(struct look *look, char *text);

/* Take down the answer to "stats-tube", which is written over. */
void look_at_tube(struct tube_look *tube, char *text);

/* Ask for all that. look_end() frees it. */
void look_take(struct look *look, struct connection *connection, uint64_t now_ns);
void look_end(struct look *look);

/* Between two looks; the rates of tubes go into @after. */
void look_rates(struct rates *rates, const struct look *before, struct look *after);

#endif /* TWHEELQ_LOOKS_H */
