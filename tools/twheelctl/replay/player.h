/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The player: runs a schedule on the device.
 *
 * One loop submits the lines whose time has come and reads the records that are ready. If
 * there is neither, it sleeps until the next line or the next record. It does not poll: a
 * schedule of days with few lines has few wakeups, so a virtual machine whose clock jumps
 * over idle time runs it quickly. Only progress on a terminal needs more wakeups.
 *
 * Due times are absolute (start + at_s + delay_s), so an event is due when the schedule
 * says, even if its line is run late. If that time has passed, the event fires at once, and
 * is as late as the player was: @overdue counts these lines.
 *
 * With deadlines, a line stores that time. It needs a command only if the store is not
 * enough: see the ledger.
 *
 * A replay ends when all lines were run and no event is live (the last lines of a schedule
 * cancel its periodic events). It also ends when no record came for a grace time after the
 * last one was due, because a record may be lost.
 */
#ifndef _TWHEELCTL_PLAYER_H
#define _TWHEELCTL_PLAYER_H

#include <stdbool.h>
#include <stdio.h>

#include "twheelctl/device.h"
#include "twheelctl/replay/histogram.h"
#include "twheelctl/replay/ledger.h"
#include "twheelctl/replay/schedule.h"

/* The maximum number of lines run, and of records read, in one turn. */
#define PLAYER_BATCH	1024

/* The cost of commands or records. */
struct cost {
	__u64 calls;
	__u64 items;
	__u64 ns;
};

/**
 * struct player - a schedule that is being run
 * @dev: the device.
 * @schedule: what is run.
 * @records_file: where to write each record, or NULL.
 * @settable: the context's clock can be set.
 * @deadlines: each event has a shared deadline.
 * @grace_ns: how long to wait for a record after it was due, slack included.
 * @draw_at_ns: the time to draw the wheels, from the start; or TIME_NEVER_NS.
 * @draw: draws the wheels.
 * @draw_context: the argument of @draw.
 * @show_progress: whether to show progress on stderr.
 * @ledger: what happened to each event.
 * @next: the next line to run.
 * @progress_ns: the last time, on the steady clock, at which the player did not wait for a
 *	record that is due, ran a line, or read a record that it may have waited for.
 * @nr_awaited: the number of records read that it may have waited for.
 * @shown_ns: the time at which progress was last shown.
 * @check_at: the number of lines and records at which to check the counters next.
 * @took_ns: the duration of the replay.
 * @overdue: lines that were run after their event was due.
 * @behind_ns: the lateness of the latest line.
 * @submit: the cost of commands.
 * @read: the cost of records.
 * @lateness: from due_ns to fired_ns.
 * @delivery: from due_ns until the record has been read.
 * @planned: the line of each command of a batch.
 * @cmds: room for a batch of commands.
 * @records: room for a batch of records.
 */
struct player {
	struct device *dev;
	const struct schedule *schedule;
	FILE *records_file;
	bool settable;
	bool deadlines;
	__u64 grace_ns;
	__u64 draw_at_ns;
	void (*draw)(void *context);
	void *draw_context;
	bool show_progress;

	struct ledger ledger;
	size_t next;
	__u64 progress_ns;
	__u64 nr_awaited;
	__u64 shown_ns;
	__u64 check_at;
	__u64 took_ns;
	__u64 overdue;
	__u64 behind_ns;
	struct cost submit;
	struct cost read;
	struct fine_histogram lateness;
	struct fine_histogram delivery;
	const struct schedule_line *planned[PLAYER_BATCH];
	struct twheel_cmd cmds[PLAYER_BATCH];
	struct twheel_record records[PLAYER_BATCH];
};

int player_run(struct player *player);

/* The number of lines that were not run. */
static inline size_t player_left(const struct player *player)
{
	return player->schedule->nr_lines - player->next;
}

#endif /* _TWHEELCTL_PLAYER_H */
