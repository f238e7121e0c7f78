/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The judge reads all logs of a round and says what is wrong.
 *
 * What must hold of each event, which its file and its id identify:
 *
 *  1. One ADD returned it. Each CANCEL that succeeded and each last record end it; it ends once,
 *     or is listed once when the round ends, or its file was closed by all, or a quiet signal ended
 *     it.
 *  2. A record is of an event that was added, with its data. Its due time is one that the event was
 *     given, by an ADD, a MODIFY or a store to its word, and that no later MODIFY has replaced.
 *  3. It is not early: by fired_ns, and by the file's clock after the call that read it. On
 *     CLOCK_REALTIME, there was a moment between arming and reading at which that clock had reached
 *     the due time, although it may have been set back since.
 *  4. The records of a period follow each other without gap and without overlap.
 *  5. A record that says COMPLETED is of an event that a COMPLETE has ended, with its value, or
 *     that watched the key of the signal. One that says CLOCK_SET is of an event with that flag.
 *  6. A command that says that there is no such event began or ended after the event did.
 *
 * And of each file that is open in the end: the counters of its fdinfo are what the logs say.
 *
 * A call whose process was killed counts as far as the kernel has written results and records.
 */
#ifndef TORMENTOR_JUDGE_H
#define TORMENTOR_JUDGE_H

#include <stdint.h>

/* What was done, in all rounds. */
struct figures {
	uint64_t calls, unfinished;
	uint64_t added, refused, no_memory, modified, cancelled, completed, signalled, quieted;
	uint64_t stores, postponed, records, expired, expirations, clock_set;
	uint64_t left, closed, files;
	uint64_t early, lost, doubled, other;
};

extern struct figures figures;

/* Prints what is wrong, at most some lines of it, and counts it. */
void judge(void);

/* Something else is wrong. */
void __attribute__((format(printf, 2, 3))) fault(uint64_t *kind, const char *format, ...);

#endif /* TORMENTOR_JUDGE_H */
