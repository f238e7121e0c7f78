// SPDX-License-Identifier: GPL-2.0
/*
 * The ledger: what has become of each event of a replay, and what is wrong.
 */
#include <err.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "device.h"
#include "ledger.h"

/* When thousands of events are wrong, the first few tell the story. */
#define MAX_COMPLAINTS	10

static __printf(2, 3)
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

/*
 * Turn a line into the command to submit for it.
 *
 * @cmd: where the command goes. Its result must be told to ledger_result().
 *
 * Return: false where the line has to wait: for the result of another command
 * on the same event, or for its record.
 */
bool ledger_plan(struct ledger *ledger, const struct schedule_line *line,
		 struct twheel_cmd *cmd)
{
	struct entry *entry = &ledger->entries[line->event];
	__u64 at_ns = ledger->start_ns + line->at_ns;

	if (entry->queued || (entry->live && entry->due_ns <= at_ns))
		return false;

	entry->queued = true;
	*cmd = (struct twheel_cmd){ .op = operation_of(line, entry) };
	if (cmd->op == TWHEEL_OP_ADD)
		cmd->data = line->event;
	else
		cmd->id = entry->id;
	if (cmd->op != TWHEEL_OP_CANCEL) {
		cmd->flags = TWHEEL_ABS;
		cmd->time_ns = at_ns + line->delay_ns;
	}
	return true;
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
	entry->due_ns = cmd->time_ns;
	entry->live = true;
	ledger->live++;
	ledger->armed++;
}

/* Of a MODIFY or CANCEL. */
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
		entry->due_ns = cmd->time_ns;
	}
}

/*
 * Take down what a command did.
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

/* The live event that a record is of, or NULL. */
static struct entry *find_live(struct ledger *ledger,
			       const struct twheel_record *record)
{
	struct entry *entry;

	if (record->data >= ledger->schedule->nr_events)
		return NULL;
	entry = &ledger->entries[record->data];
	return entry->live && entry->id == record->id ? entry : NULL;
}

static void check_record(struct ledger *ledger, const struct entry *entry,
			 const struct twheel_record *record, __u64 read_ns)
{
	const char *name = ledger->schedule->names[record->data];

	if (record->fired_ns < record->due_ns || read_ns < entry->due_ns) {
		ledger->early++;
		complain(ledger,
			 "the record of \"%s\", due at %llu, fired at %llu, read at %llu: too early",
			 name, entry->due_ns, record->fired_ns, read_ns);
	}
	if (record->due_ns != entry->due_ns || record->fired_ns > read_ns ||
	    record->count != 1 || record->reason != TWHEEL_EXPIRED ||
	    record->value || record->key || record->flags) {
		ledger->wrong++;
		complain(ledger,
			 "the record of \"%s\" says due %llu, fired %llu, count %llu, reason %u, value %llu, key %llu, flags %u: it was due at %llu, once, and read at %llu",
			 name, record->due_ns, record->fired_ns, record->count,
			 record->reason, record->value, record->key,
			 record->flags, entry->due_ns, read_ns);
	}
}

/*
 * Take down a record.
 *
 * @read_ns: CLOCK_MONOTONIC, after it was read.
 */
void ledger_record(struct ledger *ledger, const struct twheel_record *record,
		   __u64 read_ns)
{
	struct entry *entry = find_live(ledger, record);

	ledger->records++;
	if (!entry) {
		ledger->duplicated++;
		complain(ledger,
			 "a record with id %llu, data %llu, due at %llu, which is of no event that is live",
			 record->id, record->data, record->due_ns);
		return;
	}
	check_record(ledger, entry, record, read_ns);
	entry->live = false;
	ledger->finished++;
	ledger->live--;
}

/*
 * Hold the counters of the device against the ledger.
 *
 * Nothing may be submitted or read between reading them and this.
 */
void ledger_counters(struct ledger *ledger, const struct counters *counters)
{
	ledger->checks++;
	if (counters->added == counters->armed + counters->ready +
			       counters->finished + counters->cancelled &&
	    counters->added == ledger->armed &&
	    counters->finished == ledger->finished &&
	    counters->cancelled == ledger->cancelled && !counters->completed)
		return;
	ledger->violations++;
	complain(ledger,
		 "fdinfo says %llu added, %llu armed, %llu ready, %llu finished, %llu cancelled, %llu completed: it should be %llu added, %llu armed or ready, %llu finished, %llu cancelled",
		 counters->added, counters->armed, counters->ready,
		 counters->finished, counters->cancelled, counters->completed,
		 ledger->armed, ledger->live, ledger->finished,
		 ledger->cancelled);
}
