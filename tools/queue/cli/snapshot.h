/* SPDX-License-Identifier: GPL-2.0 */
/* The numbers of a daemon at one moment, and the rates between two such snapshots. */
#ifndef QUEUE_CLI_SNAPSHOT_H
#define QUEUE_CLI_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include "queue/cli/connection.h"
#include "common/histogram.h"
#include "queue/store/record.h"

/* The largest number of tubes in a snapshot. */
#define SNAPSHOT_MAX_TUBES	1000

/* The length of the longest host name, as Linux has it. */
#define HOST_NAME_LENGTH	64

/**
 * struct tube_snapshot - a tube at one moment
 * @name: name of the tube.
 * @ready: number of ready jobs.
 * @reserved: number of reserved jobs.
 * @delayed: number of delayed jobs.
 * @buried: number of buried jobs.
 * @dead: number of jobs that died in it and still exist, in any tube.
 * @waiting: number of clients that wait for a job.
 * @put: total number of puts.
 * @deleted: total number of deletes.
 * @put_per_s: puts per second since the snapshot before.
 * @deleted_per_s: deletes per second since the snapshot before.
 */
struct tube_snapshot {
	char name[TUBE_NAME_MAX + 1];
	uint64_t ready, reserved, delayed, buried, dead, waiting;
	uint64_t put, deleted;
	double put_per_s, deleted_per_s;
};

/**
 * struct snapshot - a daemon at one moment
 * @at_ns: time of the snapshot, on a clock that is never set.
 * @host: name of the daemon's machine.
 * @ready: number of ready jobs.
 * @reserved: number of reserved jobs.
 * @delayed: number of delayed jobs.
 * @buried: number of buried jobs.
 * @connections: number of clients.
 * @waiting: number of clients that wait for a job.
 * @uptime_s: seconds since the start of the daemon.
 * @put: total number of puts.
 * @deleted: total number of deletes.
 * @timeouts: total number of reserves whose time to run was over.
 * @retries: total number of retries.
 * @dead: total number of jobs that died.
 * @commands: total number of commands of all kinds.
 * @ready_late: times from due to ready, in total.
 * @late: times from due to reserved, in total.
 * @tube: the tubes, sorted by name.
 * @nr_tubes: number of @tube.
 * @left_out: number of tubes that are not in @tube.
 */
struct snapshot {
	uint64_t at_ns;
	char host[HOST_NAME_LENGTH + 1];
	uint64_t ready, reserved, delayed, buried;
	uint64_t connections, waiting, uptime_s;
	uint64_t put, deleted, timeouts, retries, dead, commands;
	struct histogram ready_late;
	struct histogram late;
	struct tube_snapshot *tube;
	size_t nr_tubes;
	size_t left_out;
};

/**
 * struct rates - rates between two snapshots, per second
 * @ready_late: times from due to ready between the two; its maximum is that of a bucket.
 * @late: the same from due to reserved.
 */
struct rates {
	double put, deleted, timeouts, retries, dead, commands;
	struct histogram ready_late;
	struct histogram late;
};

/* Parse the answer to "stats", which is overwritten. */
void snapshot_parse_stats(struct snapshot *snapshot, char *text);

/* Parse the answer to "stats-tube", which is overwritten. */
void snapshot_parse_tube(struct tube_snapshot *tube, char *text);

/* Ask a daemon for its numbers, in one round. snapshot_free() frees the tubes. */
void snapshot_take(struct snapshot *snapshot, struct connection *connection, uint64_t now_ns);
void snapshot_free(struct snapshot *snapshot);

/* Compute the rates between two snapshots; those of tubes are stored in @after. */
void snapshot_rates(struct rates *rates, const struct snapshot *before, struct snapshot *after);

#endif /* QUEUE_CLI_SNAPSHOT_H */
