/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The ledger: what has become of each event of a replay, and what is wrong.
 *
 * One thread does it all, submitting commands and reading records, so the state
 * of an event as a program can see it is known at every moment:
 *
 *	           ADD gives an id              its record is read,
 *	                                        or CANCEL gives 0
 *	   ended  ----------------->   live   --------------------->  ended
 *	                              |    ^
 *	                              +----+  MODIFY gives 0: due at another time
 *
 * A live event is there, armed or ready, until its record is read: MODIFY and
 * CANCEL must give 0. An ended one is gone for good: they must give -ENOENT
 * (it is "missed"), and no record with its id may come. Its name can be added
 * again, and gets another id.
 *
 * With deadlines, each event has a word, whose index is the number of the event. What
 * arms it stores the time there first. That is all where the event is live, is given
 * no earlier time and keeps its slack; else the command that follows has the kernel
 * read the word. So the record must have the last time that was stored. A store may
 * cross with an expiration that has read the time before: only if that has come by
 * then, so a MODIFY follows such a store, which arms the event again, be it ready or
 * not.
 *
 * A record's data is the number of the event, so it is found at once. A name
 * has at most one command among those that are being submitted, so that what is
 * expected of each is known before any of them runs.
 *
 * A line of the schedule by whose time the event is due must find it ended. So
 * it waits until the record was read: then what comes out is what the schedule
 * says, and not what a race made of it. The other race stays: a line that is
 * run late can find ended what the schedule has still armed.
 *
 * A periodic event stays live when a record is read, and is due next at the first
 * time on its grid that the record does not cover: due_ns + count * interval.
 * Each record must begin there. What one covers again is duplicated, and what
 * none covers is lost. It must cover what is due when it is read, and no more.
 */
#ifndef _TWHEELCTL_LEDGER_H
#define _TWHEELCTL_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/twheel.h>

#include "schedule.h"

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

/* What a line needs. */
enum plan {
	PLAN_WAIT,		/* it has to wait */
	PLAN_COMMAND,		/* to be submitted; with deadlines, stored first */
	PLAN_STORE,		/* to be stored, and that may be all */
};

/**
 * struct ledger - the state of a replay
 * @schedule: what is replayed.
 * @start_ns: the moment that is 0 in the schedule, on the context's clock.
 * @settable: that clock can be set, so what it says now does not tell whether a
 *	record was due when it was made.
 * @deadlines: the events have words.
 * @entries: for each event of the schedule.
 * @live: how many of them are live.
 * @armed: ADDs that gave an id.
 * @modified: MODIFYs that gave 0.
 * @stored: how many were moved by a store alone.
 * @postponed: how often the kernel found that, by the counters.
 * @cancelled: CANCELs that gave 0.
 * @missed: MODIFYs and CANCELs that rightly gave -ENOENT.
 * @records: records that were read.
 * @expirations: that they cover.
 * @finished: records that ended a live event.
 * @skipped: expirations of a periodic event that no record covered.
 * @early: records that came before they were due.
 * @duplicated: records of an event that had ended, or never was.
 * @wrong: records that do not say what was last asked for.
 * @failed: commands with another result than they must have.
 * @checks: how often the counters in fdinfo were looked at.
 * @violations: how often they did not add up.
 * @complaints: how many messages about all this were printed.
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

/* When an event is due by a line. */
static inline __u64 ledger_due_ns(const struct ledger *ledger,
				  const struct schedule_line *line)
{
	return ledger->start_ns + line->at_ns + line->delay_ns;
}

/*
 * What was lost, once all is over: each event that is still live then, and what
 * others skipped.
 */
static inline __u64 ledger_lost(const struct ledger *ledger)
{
	return ledger->live + ledger->skipped;
}

/* Whether all went well, once all is over. */
static inline bool ledger_clean(const struct ledger *ledger)
{
	return !(ledger_lost(ledger) || ledger->early || ledger->duplicated ||
		 ledger->wrong || ledger->failed || ledger->violations);
}

#endif /* _TWHEELCTL_LEDGER_H */
