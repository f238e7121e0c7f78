// SPDX-License-Identifier: GPL-2.0
/*
 * The ledger records what happened to each event of a replay, and finds errors.
 */
#include <err.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "twheelctl/device.h"
#include "twheelctl/replay/ledger.h"

/* If thousands of events are wrong, only the first few are printed. */
#define MAX_COMPLAINTS	10

static PRINTF_LIKE(2, 3)
void complain(struct ledger *ledger, const char *format, ...)
{
	char message[512];
	va_list args;

	if (ledger->complaints++ >= MAX_COMPLAINTS)
		return;
	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	warnx("%s%s", message, ledger->complaints == MAX_COMPLAINTS ?
	      " (and no more of these messages)" : "");
}

/* Begin a ledger in which no event is live. */
void ledger_init(struct ledger *ledger, const struct schedule *schedule,
		 __u64 start_ns)
{
	*ledger = (struct ledger){
		.schedule = schedule,
		.start_ns = start_ns,
		.entries = calloc(schedule->nr_events, sizeof(struct entry)),
	};
	if (!ledger->entries)
		errx(EXIT_FAILURE, "out of memory for %zu events",
		     schedule->nr_events);
}

static __u16 operation_of(const struct schedule_line *line,
			  const struct entry *entry)
{
	switch (line->command) {
	case SCHEDULE_ADD:
		return TWHEEL_OP_ADD;
	case SCHEDULE_ARM:
		return entry->live ? TWHEEL_OP_MODIFY : TWHEEL_OP_ADD;
	case SCHEDULE_MODIFY:
		return TWHEEL_OP_MODIFY;
	default:
		return TWHEEL_OP_CANCEL;
	}
}

static void set_times(const struct ledger *ledger,
		      const struct schedule_line *line, struct twheel_cmd *cmd)
{
	cmd->slack_ns = line->slack_ns;
	if (ledger->deadlines) {
		cmd->flags = TWHEEL_DEADLINE;
		cmd->key = line->event;
	} else {
		cmd->flags = TWHEEL_ABS;
		cmd->time_ns = ledger_due_ns(ledger, line);
		cmd->interval_ns = line->interval_ns;
	}
}

/* Returns whether a store has the same effect as a MODIFY. */
static bool is_postponed(const struct ledger *ledger,
			 const struct schedule_line *line,
			 const struct entry *entry)
{
	return ledger->deadlines && entry->live &&
	       ledger_due_ns(ledger, line) >= entry->due_ns &&
	       line->slack_ns == entry->slack_ns;
}

/*
 * Convert a line to a command.
 *
 * @cmd: out: the command. After it is submitted, ledger_result() must be called; after
 *	PLAN_STORE, ledger_stored() instead if the store is enough.
 *
 * Return: PLAN_WAIT if the line has to wait for the result of another command on the same
 * event, or for its record.
 */
enum plan ledger_plan(struct ledger *ledger, const struct schedule_line *line,
		      struct twheel_cmd *cmd)
{
	struct entry *entry = &ledger->entries[line->event];
	__u64 at_ns = ledger->start_ns + line->at_ns;

	if (entry->queued || (entry->live && entry->due_ns <= at_ns))
		return PLAN_WAIT;

	entry->queued = true;
	*cmd = (struct twheel_cmd){ .op = operation_of(line, entry) };
	if (cmd->op == TWHEEL_OP_ADD)
		cmd->data = line->event;
	else
		cmd->id = entry->id;
	if (cmd->op == TWHEEL_OP_CANCEL)
		return PLAN_COMMAND;
	set_times(ledger, line, cmd);
	return is_postponed(ledger, line, entry) ? PLAN_STORE : PLAN_COMMAND;
}

/*
 * Decide whether a store was enough, after it was made.
 *
 * @line: planned as PLAN_STORE.
 * @now_ns: the time after the store. If the old deadline has come by then, the kernel may
 *	have read it before the store.
 */
bool ledger_store_will_do(const struct ledger *ledger,
			  const struct schedule_line *line, __u64 now_ns)
{
	return now_ns < ledger->entries[line->event].due_ns;
}

static void set_due(struct entry *entry, __u64 due_ns,
		    const struct schedule_line *line)
{
	entry->due_ns = due_ns;
	entry->interval_ns = line->interval_ns;
	entry->slack_ns = line->slack_ns;
}

/* Record that a store was enough. */
void ledger_stored(struct ledger *ledger, const struct schedule_line *line)
{
	struct entry *entry = &ledger->entries[line->event];

	entry->queued = false;
	set_due(entry, ledger_due_ns(ledger, line), line);
	ledger->stored++;
}

static const char *result_name(__s32 result)
{
	const char *name = result < 0 ? strerrorname_np(-result) : "0";

	return name ? name : "an unknown error";
}

static void unexpected_result(struct ledger *ledger,
			      const struct schedule_line *line,
			      const struct twheel_cmd *cmd, const char *expected)
{
	ledger->failed++;
	complain(ledger, "%s:%u: %s of \"%s\" gave %s, not %s%s",
		 ledger->schedule->source, line->number,
		 schedule_command_names[line->command],
		 ledger->schedule->names[line->event],
		 result_name(cmd->result), expected,
		 cmd->result == -ENOSPC ?
		 ": too many events at once, see --max-events and the module's parameters" : "");
}

static void add_result(struct ledger *ledger, const struct schedule_line *line,
		       const struct twheel_cmd *cmd)
{
	struct entry *entry = &ledger->entries[line->event];

	if (cmd->result || !cmd->id || cmd->id == entry->id) {
		unexpected_result(ledger, line, cmd, "a new id");
		return;
	}
	entry->id = cmd->id;
	set_due(entry, ledger_due_ns(ledger, line), line);
	entry->live = true;
	ledger->live++;
	ledger->armed++;
}

/* Check the result of a MODIFY or CANCEL. */
static void change_result(struct ledger *ledger,
			  const struct schedule_line *line,
			  const struct twheel_cmd *cmd)
{
	struct entry *entry = &ledger->entries[line->event];
	int expected = entry->live ? 0 : -ENOENT;

	if (cmd->result != expected) {
		unexpected_result(ledger, line, cmd, entry->live ? "0" : "ENOENT");
	} else if (!entry->live) {
		ledger->missed++;
	} else if (cmd->op == TWHEEL_OP_CANCEL) {
		ledger->cancelled++;
		ledger->live--;
		entry->live = false;
	} else {
		ledger->modified++;
		set_due(entry, ledger_due_ns(ledger, line), line);
	}
}

/*
 * Record the result of a command.
 *
 * @line: the line that @cmd was planned for.
 */
void ledger_result(struct ledger *ledger, const struct schedule_line *line,
		   const struct twheel_cmd *cmd)
{
	ledger->entries[line->event].queued = false;
	if (cmd->op == TWHEEL_OP_ADD)
		add_result(ledger, line, cmd);
	else
		change_result(ledger, line, cmd);
}

/* Finds the live event of a record, or NULL. */
static struct entry *find_live(struct ledger *ledger,
			       const struct twheel_record *record)
{
	struct entry *entry;

	if (record->data >= ledger->schedule->nr_events)
		return NULL;
	entry = &ledger->entries[record->data];
	return entry->live && entry->id == record->id ? entry : NULL;
}

/* The due time of the last expiration that a record covers. */
static __u64 last_due_ns(const struct entry *entry,
			 const struct twheel_record *record)
{
	return record->due_ns + (record->count - 1) * entry->interval_ns;
}

static void check_early(struct ledger *ledger, const struct entry *entry,
			const struct twheel_record *record, __u64 read_ns)
{
	__u64 last_ns = last_due_ns(entry, record);

	if (record->fired_ns >= record->due_ns &&
	    (ledger->settable ||
	     (read_ns >= last_ns && read_ns >= entry->due_ns)))
		return;
	ledger->early++;
	complain(ledger,
		 "the record of \"%s\", due at %llu, %llu times up to %llu, fired at %llu, read at %llu: too early",
		 ledger->schedule->names[record->data], entry->due_ns,
		 record->count, last_ns, record->fired_ns, read_ns);
}

/* The expirations of a periodic event must follow each other without a gap. */
static void check_grid(struct ledger *ledger, const struct entry *entry,
		       const struct twheel_record *record)
{
	if (!entry->interval_ns || record->due_ns == entry->due_ns)
		return;
	if (record->due_ns < entry->due_ns)
		ledger->duplicated++;
	else
		ledger->skipped += (record->due_ns - entry->due_ns - 1) /
				   entry->interval_ns + 1;
}

static bool covers_what_it_must(const struct ledger *ledger,
				const struct entry *entry,
				const struct twheel_record *record,
				__u64 asked_ns)
{
	if (!entry->interval_ns)
		return record->count == 1;
	return record->count && (ledger->settable ||
	       last_due_ns(entry, record) + entry->interval_ns > asked_ns);
}

static void check_record(struct ledger *ledger, const struct entry *entry,
			 const struct twheel_record *record, __u64 asked_ns,
			 __u64 read_ns)
{
	if (record->due_ns == entry->due_ns &&
	    (ledger->settable || record->fired_ns <= read_ns) &&
	    covers_what_it_must(ledger, entry, record, asked_ns) &&
	    record->reason == TWHEEL_EXPIRED && !record->value &&
	    !record->key && !record->flags)
		return;
	ledger->wrong++;
	complain(ledger,
		 "the record of \"%s\" says due %llu, fired %llu, count %llu, reason %u, value %llu, key %llu, flags %u: it was due at %llu, every %llu, and read from %llu to %llu",
		 ledger->schedule->names[record->data], record->due_ns,
		 record->fired_ns, record->count, record->reason, record->value,
		 record->key, record->flags, entry->due_ns, entry->interval_ns,
		 asked_ns, read_ns);
}

static void unknown_record(struct ledger *ledger,
			   const struct twheel_record *record)
{
	ledger->duplicated++;
	complain(ledger,
		 "a record with id %llu, data %llu, due at %llu, which is of no event that is live",
		 record->id, record->data, record->due_ns);
}

/*
 * Check a record.
 *
 * @asked_ns: the context's clock before the record was read.
 * @read_ns: the same clock after it was read.
 */
void ledger_record(struct ledger *ledger, const struct twheel_record *record,
		   __u64 asked_ns, __u64 read_ns)
{
	struct entry *entry = find_live(ledger, record);

	ledger->records++;
	ledger->expirations += record->count;
	if (!entry) {
		unknown_record(ledger, record);
		return;
	}
	check_early(ledger, entry, record, read_ns);
	check_grid(ledger, entry, record);
	check_record(ledger, entry, record, asked_ns, read_ns);
	if (entry->interval_ns) {
		entry->due_ns = record->due_ns +
				record->count * entry->interval_ns;
		return;
	}
	entry->live = false;
	ledger->finished++;
	ledger->live--;
}

static bool check_events(struct ledger *ledger, const struct counters *counters)
{
	if (counters->added == counters->armed + counters->ready +
			       counters->finished + counters->cancelled &&
	    counters->added == ledger->armed &&
	    counters->finished == ledger->finished &&
	    counters->cancelled == ledger->cancelled &&
	    counters->records == ledger->records && !counters->completed)
		return true;
	complain(ledger,
		 "fdinfo says %llu added, %llu armed, %llu ready, %llu finished, %llu cancelled, %llu completed, %llu records: it should be %llu added, %llu armed or ready, %llu finished, %llu cancelled, %llu records",
		 counters->added, counters->armed, counters->ready,
		 counters->finished, counters->cancelled, counters->completed,
		 counters->records, ledger->armed, ledger->live,
		 ledger->finished, ledger->cancelled, ledger->records);
	return false;
}

/* The kernel postpones an event only for a deadline that is new to it: once for each store. */
static bool check_words(struct ledger *ledger, const struct counters *counters)
{
	__u64 words = ledger->deadlines ? ledger->schedule->nr_events : 0;
	__u64 least = ledger->postponed;
	__u64 most = ledger->stored + ledger->modified;

	ledger->postponed = counters->postponed;
	if (counters->deadlines == words && counters->postponed >= least &&
	    counters->postponed <= most)
		return true;
	complain(ledger,
		 "fdinfo says %llu deadlines, %llu postponed: it should be %llu deadlines, %llu to %llu postponed",
		 counters->deadlines, counters->postponed, words, least, most);
	return false;
}

/*
 * Compare the counters of the device with the ledger.
 *
 * No command or record may come between reading the counters and this call.
 */
void ledger_counters(struct ledger *ledger, const struct counters *counters)
{
	bool events = check_events(ledger, counters);
	bool words = check_words(ledger, counters);

	ledger->checks++;
	ledger->violations += !(events && words);
}
