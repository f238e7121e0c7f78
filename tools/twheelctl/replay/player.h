/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The player: runs a schedule on the device.
 *
 * One loop: submit the lines whose time has come, read the records that are
 * ready, and only where there was neither, sleep until the next line or the
 * next record. Nothing ticks: a schedule of days with few lines costs few
 * wakeups, which is what a virtual machine whose clock jumps over idle time
 * needs. Only progress shown on a terminal wakes it now and then.
 *
 * Due times are absolute (start + at_s + delay_s), so a line that is run late
 * is due when the schedule says. If that is past, it fires at once, and is late
 * by as much as the player was: @overdue counts these.
 *
 * With deadlines, a line stores that time, and is a command only where a store alone
 * would not do: see the ledger.
 *
 * It is over when all lines were run and no event is live (what is periodic was
 * cancelled by the schedule's last lines); or, so that a record
 * that never comes does not keep it for ever, when no record came for a grace
 * time after the last was due.
 */
#ifndef _TWHEELCTL_PLAYER_H
#define _TWHEELCTL_PLAYER_H

#include <stdbool.h>
#include <stdio.h>

#include "../device.h"
#include "histogram.h"
#include "ledger.h"
#include "schedule.h"

/* How many lines are run, and records read, in one turn at most. */
#define PLAYER_BATCH	1024

/* How much it cost to have something done. */
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
 * @deadlines: the device shares a word for each event, which arms it.
 * @grace_ns: how long to wait for what should have come, slack included.
 * @draw_at_ns: when to draw the wheels, since the start; NEVER_NS for never.
 * @draw: draws them.
 * @draw_context: what @draw is given.
 * @show_progress: whether to show progress on stderr.
 * @ledger: what became of each event.
 * @next: the line to be run next.
 * @progress_ns: when it last waited for no record that is due, ran a line, or
 *	read a record that it may have waited for; on the steady clock.
 * @nr_awaited: records read that it may have waited for.
 * @shown_ns: when progress was shown last.
 * @check_at: after how many lines and records to check the counters next.
 * @took_ns: how long it took.
 * @overdue: lines that were run after their event was due.
 * @behind_ns: how late the latest line was run.
 * @submit: the cost of commands.
 * @read: the cost of records.
 * @lateness: from due_ns to fired_ns.
 * @delivery: from due_ns to when the record had been read.
 * @planned: for each command of a batch, its line.
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
	struct histogram lateness;
	struct histogram delivery;
	const struct schedule_line *planned[PLAYER_BATCH];
	struct twheel_cmd cmds[PLAYER_BATCH];
	struct twheel_record records[PLAYER_BATCH];
};

int player_run(struct player *player);

/* Lines that could not be run. */
static inline size_t player_left(const struct player *player)
{
	return player->schedule->nr_lines - player->next;
}

#endif /* _TWHEELCTL_PLAYER_H */
