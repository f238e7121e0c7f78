/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The ledger records what happened to each event of a replay, and finds errors.
 *
 * One thread submits all commands and reads all records, so the state of each event, as a
 * program sees it, is known at every moment:
 *
 *	           ADD gives an id              its record is read,
 *	                                        or CANCEL gives 0
 *	   ended  ----------------->   live   --------------------->  ended
 *	                              |    ^
 *	                              +----+  MODIFY gives 0: due at another time
 *
 * A live event is armed or ready until its record is read: MODIFY and CANCEL must return
 * 0. For an ended event they must return -ENOENT (the line has "missed" it), and no record
 * with its id may come. Its name can be added again, and gets another id.
 *
 * With deadlines, each event has a word, whose index is the number of the event. A line
 * that arms the event stores the time there first. The store alone is enough if the event
 * is live, its time does not become earlier and its slack does not change; else a command
 * follows, which makes the kernel read the word. So the record must have the last stored
 * time. A store may come when the kernel has read the old deadline already, but only after
 * that deadline: a MODIFY follows such a store and arms the event again, even if it is
 * ready.
 *
 * The data of a record is the number of its event. A batch of commands has at most one
 * command for a name, so that the expected result of each command is known before the batch
 * runs.
 *
 * If an event is due by the time of a line, the line must find it ended. So the line waits
 * until the record has been read: the result is then what the schedule says, and does not
 * depend on a race. The other race cannot be avoided: a line that is run late can find an
 * event ended that is still armed in the schedule.
 *
 * A periodic event stays live when a record is read. Its next record must begin at the
 * first time on its grid that this record does not cover: due_ns + count * interval.
 * Expirations that two records cover are duplicated, and those that no record covers are
 * lost. A record must cover exactly the expirations that are due when it is read.
 */
#ifndef _TWHEELCTL_LEDGER_H
#define _TWHEELCTL_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/twheel.h>

#include "twheelctl/replay/schedule.h"

struct counters;

/* One event. */
struct entry {
	__u64 id;
	__u64 due_ns;
	__u64 interval_ns;
	__u64 slack_ns;
	bool live;
	bool queued;
};

/* How a line is run. */
enum plan {
	PLAN_WAIT,		/* it has to wait */
	PLAN_COMMAND,		/* to be submitted; with deadlines, stored first */
	PLAN_STORE,		/* to be stored, and that may be all */
};

/**
 * struct ledger - the state of a replay
 * @schedule: what is replayed.
 * @start_ns: the moment that is 0 in the schedule, on the context's clock.
 * @settable: that clock can be set, so its time does not show whether a record was due
 *	when it was made.
 * @deadlines: the events have shared deadlines.
 * @entries: an entry for each event of the schedule.
 * @live: the number of live events.
 * @armed: ADDs that returned an id.
 * @modified: MODIFYs that returned 0.
 * @stored: events that were moved by a store alone.
 * @postponed: the number of postponed events, from the counters.
 * @cancelled: CANCELs that returned 0.
 * @missed: MODIFYs and CANCELs that correctly returned -ENOENT.
 * @records: records that were read.
 * @expirations: expirations that they cover.
 * @finished: records that ended a live event.
 * @skipped: expirations of a periodic event that no record covered.
 * @early: records that came before they were due.
 * @duplicated: records of an event that had ended or never existed.
 * @wrong: records with another time than the last one that was set.
 * @failed: commands with a wrong result.
 * @checks: how often the counters in fdinfo were checked.
 * @violations: how often they were wrong.
 * @complaints: the number of messages printed.
 */
struct ledger {
	const struct schedule *schedule;
	__u64 start_ns;
	bool settable;
	bool deadlines;
	struct entry *entries;
	__u64 live;
	__u64 armed;
	__u64 modified;
	__u64 stored;
	__u64 postponed;
	__u64 cancelled;
	__u64 missed;
	__u64 records;
	__u64 expirations;
	__u64 finished;
	__u64 skipped;
	__u64 early;
	__u64 duplicated;
	__u64 wrong;
	__u64 failed;
	__u64 checks;
	__u64 violations;
	unsigned int complaints;
};

void ledger_init(struct ledger *ledger, const struct schedule *schedule,
		 __u64 start_ns);
enum plan ledger_plan(struct ledger *ledger, const struct schedule_line *line,
		      struct twheel_cmd *cmd);
bool ledger_store_will_do(const struct ledger *ledger,
			  const struct schedule_line *line, __u64 now_ns);
void ledger_stored(struct ledger *ledger, const struct schedule_line *line);
void ledger_result(struct ledger *ledger, const struct schedule_line *line,
		   const struct twheel_cmd *cmd);
void ledger_record(struct ledger *ledger, const struct twheel_record *record,
		   __u64 asked_ns, __u64 read_ns);
void ledger_counters(struct ledger *ledger, const struct counters *counters);

/* The due time that a line gives an event. */
static inline __u64 ledger_due_ns(const struct ledger *ledger,
				  const struct schedule_line *line)
{
	return ledger->start_ns + line->at_ns + line->delay_ns;
}

/*
 * The number of lost expirations, at the end: events that are still live, and expirations
 * that no record covered.
 */
static inline __u64 ledger_lost(const struct ledger *ledger)
{
	return ledger->live + ledger->skipped;
}

/* Returns whether no error was found, at the end. */
static inline bool ledger_clean(const struct ledger *ledger)
{
	return !(ledger_lost(ledger) || ledger->early || ledger->duplicated ||
		 ledger->wrong || ledger->failed || ledger->violations);
}

#endif /* _TWHEELCTL_LEDGER_H */
