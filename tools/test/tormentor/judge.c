// SPDX-License-Identifier: GPL-2.0
/* The judge: see judge.h. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "judge.h"
#include "ledger.h"

#define FAULTS_SHOWN	20

/**
 * struct timing - a time that an event was given, by an ADD or a MODIFY
 * @next: an earlier one in the list of the event.
 * @cmd: the command.
 * @call: its call.
 */
struct timing {
	struct timing *next;
	const struct twheel_cmd *cmd;
	const struct call *call;
};

/**
 * struct piece - a record of an event with a period
 * @next: another one, in no order.
 * @record: the record.
 * @call: the call that read it.
 */
struct piece {
	struct piece *next;
	const struct twheel_record *record;
	const struct call *call;
};

/**
 * struct event - an event
 * @id: its id; 0: this place of the table is free.
 * @file: its file.
 * @add: the command that added it.
 * @add_call: the call of that.
 * @timings: its times, with that of @add.
 * @pieces: its records, if it has a period.
 * @end: the call that ended it, or NULL.
 * @completed_by: the COMPLETE that succeeded.
 * @nr_ends: how many ends it had.
 * @nr_listed: how often it was listed in the end.
 * @keys: a bit for each key that it may have watched.
 */
struct event {
	uint64_t id;
	unsigned int file;
	const struct twheel_cmd *add;
	const struct call *add_call;
	struct timing *timings;
	struct piece *pieces;
	const struct call *end;
	const struct twheel_cmd *completed_by;
	unsigned int nr_ends;
	unsigned int nr_listed;
	unsigned int keys;
};

/* A value that was stored into a word. */
struct store {
	uint64_t value;
	uint32_t file;
	uint32_t word;
};

/* What the logs say of a file. */
struct sum {
	uint64_t added, finished, cancelled, quieted, completed, records, missing;
};

struct figures figures;

static struct event *events;
static struct store *stores;
static uint64_t events_mask, stores_mask;
static struct sum sums[FILES_MAX];
/* When the judge began: a call that was killed had ended before. */
static uint64_t judged_ns;

/* Memory that is freed at once when the round has been judged. */
static char *arena;
static size_t arena_bytes, arena_used;

void fault(uint64_t *kind, const char *format, ...)
{
	va_list args;

	++*kind;
	if (figures.early + figures.lost + figures.doubled + figures.other > FAULTS_SHOWN)
		return;
	va_start(args, format);
	printf("fault: ");
	vprintf(format, args);
	printf("\n");
	va_end(args);
}

static void *keep(size_t bytes)
{
	void *memory = arena + arena_used;

	arena_used += bytes;
	if (arena_used > arena_bytes)
		abort();
	return memory;
}

/* --- tables --------------------------------------------------------------------------- */

static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	return x ^ (x >> 27);
}

/* The event, or the place for it. */
static struct event *find_event(unsigned int file, uint64_t id)
{
	uint64_t at = mix(id * FILES_MAX + file);

	while (events[at & events_mask].id &&
	       (events[at & events_mask].id != id || events[at & events_mask].file != file))
		at++;
	return &events[at & events_mask];
}

static struct store *find_store(uint32_t file, uint32_t word, uint64_t value)
{
	uint64_t at = mix(value ^ ((uint64_t)file << 40) ^ ((uint64_t)word << 52));
	struct store *store;

	for (;; at++) {
		store = &stores[at & stores_mask];
		if (!store->value ||
		    (store->value == value && store->file == file && store->word == word))
			return store;
	}
}

/* --- what was done -------------------------------------------------------------------- */

/* All calls of all logs, one log after the other. */
static struct call *call_from(unsigned int *log)
{
	for (; *log < ledger->nr_logs; ++*log) {
		struct call *call = log_first(*log);

		if (call)
			return call;
	}
	return NULL;
}

static struct call *first_call(unsigned int *log)
{
	*log = 0;
	return call_from(log);
}

static struct call *next_call(unsigned int *log, struct call *call)
{
	call = log_next(*log, call);
	if (call)
		return call;
	++*log;
	return call_from(log);
}

static void add_timing(struct event *event, const struct call *call, const struct twheel_cmd *cmd)
{
	struct timing *timing = keep(sizeof(*timing));

	*timing = (struct timing){ event->timings, cmd, call };
	event->timings = timing;
}

static void note_add(struct call *call, struct twheel_cmd *cmd)
{
	struct event *event = find_event(call->file, cmd->id);

	if (!cmd->id) {
		fault(&figures.other, "file %u: an ADD gives no id", call->file);
		return;
	}
	if (event->id) {
		fault(&figures.other, "file %u: id %llx was given twice", call->file, cmd->id);
		return;
	}
	event->id = cmd->id;
	event->file = call->file;
	event->add = cmd;
	event->add_call = call;
	add_timing(event, call, cmd);
	figures.added++;
	sums[call->file].added++;
}

/* The ADDs of a call, and the keys that these watch. */
static void note_adds(struct call *call)
{
	struct event *event = NULL;
	unsigned int i;

	for (i = 0; i < call->nr_cmds; i++) {
		struct twheel_cmd *cmd = &call_cmds(call)[i];

		if (cmd->result == NOT_RUN)
			continue;
		if (cmd->op == TWHEEL_OP_ADD) {
			if (cmd->result >= 0)
				note_add(call, cmd);
			event = cmd->result >= 0 ? find_event(call->file, cmd->id) : NULL;
		}
		if (cmd->op == TWHEEL_OP_WATCH && !cmd->id && cmd->result >= 0 && event)
			event->keys |= 1 << cmd->key;
	}
}

static void note_store(struct call *call)
{
	struct store *store;

	if (call->kind != CALL_STORE)
		return;
	figures.stores++;
	store = find_store(call->file, call->word, call->value);
	*store = (struct store){ call->value, call->file, call->word };
}

/* The event that a command was done to. */
static struct event *subject(const struct call *call, const struct twheel_cmd *cmd)
{
	struct event *event = find_event(call->file, cmd->id);

	if (event->id)
		return event;
	fault(&figures.other, "file %u: command %u of id %llx, which nobody added, returns %d",
	      call->file, cmd->op, cmd->id, cmd->result);
	return NULL;
}

static void end_event(struct event *event, const struct call *call)
{
	event->nr_ends++;
	event->end = call;
}

/* Is it an error that this command can have? */
static bool is_usual(const struct twheel_cmd *cmd)
{
	switch (cmd->op) {
	case TWHEEL_OP_ADD:
		return cmd->result == -ENOSPC || cmd->result == -ENOMEM;
	case TWHEEL_OP_WATCH:
		return cmd->result == -ENOENT || cmd->result == -EALREADY ||
		       cmd->result == -ENOSPC || cmd->result == -ENOMEM;
	case TWHEEL_OP_MODIFY:
		return cmd->result == -ENOENT || cmd->result == -EALREADY ||
		       cmd->result == -ENOMEM || cmd->result == -ENOSPC;
	case TWHEEL_OP_COMPLETE:
		return cmd->result == -ENOENT || cmd->result == -EALREADY ||
		       cmd->result == -ENOMEM;
	case TWHEEL_OP_CANCEL:
	case TWHEEL_OP_QUERY:
		return cmd->result == -ENOENT;
	default:
		return false;
	}
}

static void note_failure(const struct call *call, const struct twheel_cmd *cmd)
{
	if (!is_usual(cmd))
		fault(&figures.other, "file %u: command %u of id %llx returns %d", call->file,
		      cmd->op, cmd->id, cmd->result);
	figures.no_memory += cmd->result == -ENOMEM;
	figures.refused += cmd->result == -ENOSPC;
}

static void note_signal(struct call *call, struct twheel_cmd *cmd)
{
	if (cmd->flags & TWHEEL_QUIET) {
		figures.quieted += cmd->result;
		sums[call->file].quieted += cmd->result;
	} else {
		figures.signalled += cmd->result;
		sums[call->file].completed += cmd->result;
	}
}

static void note_complete(struct call *call, struct twheel_cmd *cmd)
{
	struct event *event = subject(call, cmd);

	if (!event)
		return;
	if (event->completed_by)
		fault(&figures.doubled, "file %u: id %llx was completed twice", call->file,
		      cmd->id);
	event->completed_by = cmd;
	figures.completed++;
	sums[call->file].completed++;
}

static void note_cmd(struct call *call, struct twheel_cmd *cmd)
{
	struct event *event;

	if (cmd->result < 0) {
		note_failure(call, cmd);
		return;
	}
	switch (cmd->op) {
	case TWHEEL_OP_CANCEL:
		event = subject(call, cmd);
		if (event)
			end_event(event, call);
		figures.cancelled++;
		sums[call->file].cancelled++;
		break;
	case TWHEEL_OP_MODIFY:
		event = subject(call, cmd);
		if (event)
			add_timing(event, call, cmd);
		figures.modified++;
		break;
	case TWHEEL_OP_COMPLETE:
		note_complete(call, cmd);
		break;
	case TWHEEL_OP_SIGNAL:
		note_signal(call, cmd);
		break;
	case TWHEEL_OP_WATCH:
		event = cmd->id ? subject(call, cmd) : NULL;
		if (event)
			event->keys |= 1 << cmd->key;
		break;
	}
}

static void note_record(struct call *call, struct twheel_record *record)
{
	struct event *event = find_event(call->file, record->id);
	struct piece *piece;

	figures.records++;
	sums[call->file].records++;
	if (!event->id) {
		fault(&figures.other, "file %u: a record of id %llx, which nobody added",
		      call->file, record->id);
		return;
	}
	if (event->add->interval_ns && record->reason == TWHEEL_EXPIRED) {
		piece = keep(sizeof(*piece));
		*piece = (struct piece){ event->pieces, record, call };
		event->pieces = piece;
		figures.expirations += record->count;
		return;
	}
	end_event(event, call);
	sums[call->file].finished++;
	figures.expired += record->reason == TWHEEL_EXPIRED;
	figures.clock_set += record->reason == TWHEEL_CLOCK_SET;
}

static void note_listed(const struct call *call, uint64_t id)
{
	struct event *event = find_event(call->file, id);

	if (event->id)
		event->nr_listed++;
	else
		fault(&figures.other, "file %u: id %lx is listed, which nobody added", call->file,
		      id);
}

static void note_call(struct call *call)
{
	unsigned int nr = call_nr_read(call), i;

	figures.calls++;
	figures.unfinished += !call->is_done;
	if (call->kind == CALL_LIST) {
		for (i = 0; i < nr; i++)
			note_listed(call, call_records(call)[i].id);
		return;
	}
	for (i = 0; i < call->nr_cmds; i++)
		if (call_cmds(call)[i].result != NOT_RUN)
			note_cmd(call, &call_cmds(call)[i]);
	for (i = 0; i < nr; i++)
		note_record(call, &call_records(call)[i]);
}

/* --- records -------------------------------------------------------------------------- */

/* Has the wall clock been at @due_ns at some moment between two of CLOCK_MONOTONIC? */
static bool wall_clock_was_at(uint64_t due_ns, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t began_ns = 0;
	int64_t offset_ns = ledger->offset_ns;
	unsigned int i;

	for (i = 0; i <= ledger->nr_sets; i++) {
		bool is_last = i == ledger->nr_sets;
		uint64_t ended_ns = is_last ? NEVER_NS : ledger->sets[i].after_ns;
		uint64_t until_ns = to_ns < ended_ns ? to_ns : ended_ns;

		if (began_ns <= to_ns && ended_ns >= from_ns &&
		    (offset_ns == INT64_MAX || (int64_t)(until_ns + offset_ns) >= (int64_t)due_ns))
			return true;
		if (!is_last) {
			began_ns = ledger->sets[i].before_ns;
			offset_ns = ledger->sets[i].offset_ns;
		}
	}
	return false;
}

static bool clock_was_set(uint64_t from_ns, uint64_t to_ns)
{
	unsigned int i;

	for (i = 0; i < ledger->nr_sets; i++)
		if (ledger->sets[i].before_ns <= to_ns && ledger->sets[i].after_ns >= from_ns)
			return true;
	return false;
}

static uint64_t end_ns(const struct call *call, bool of_file)
{
	if (!call->is_done)
		return NEVER_NS;
	return of_file ? call->file_after_ns : call->after_ns;
}

/* Can a record have this due time from that command? */
static bool gives(const struct event *event, const struct timing *timing, uint64_t due_ns)
{
	const struct twheel_cmd *cmd = timing->cmd;
	const struct call *call = timing->call;
	uint64_t latest_ns = end_ns(call, true);

	if (cmd->flags & TWHEEL_DEADLINE)
		return !due_ns || find_store(event->file, cmd->key, due_ns)->value;
	if (cmd->flags & TWHEEL_ABS)
		return due_ns == cmd->time_ns;
	if (cmd->time_ns == NEVER_NS)
		return false;
	/* The wall clock can be set while that is calculated; see check_early(). */
	if (ledger->files[event->file].clock == CLOCK_REALTIME)
		return true;
	return due_ns >= call->file_before_ns + cmd->time_ns &&
	       (latest_ns == NEVER_NS || due_ns <= latest_ns + cmd->time_ns);
}

/* Did another command replace this time before the record was read, without doubt? */
static bool was_replaced(const struct event *event, const struct timing *timing)
{
	const struct timing *other;

	for (other = event->timings; other; other = other->next) {
		if (other->call == timing->call) {
			if (other->cmd > timing->cmd)
				return true;
		} else if (other->call->before_ns >= end_ns(timing->call, false)) {
			return true;
		}
	}
	return false;
}

/* Between its arming by this command and the reading, its time has come. */
static bool is_early(const struct event *event, const struct timing *timing,
		     const struct call *call, const struct twheel_record *record)
{
	clockid_t clock = ledger->files[event->file].clock;
	uint64_t from_ns = timing->call->before_ns, to_ns = end_ns(call, false);

	if (clock != CLOCK_REALTIME)
		return record->fired_ns < record->due_ns || end_ns(call, true) < record->due_ns;
	/* A relative time is kept by CLOCK_MONOTONIC. */
	if (to_ns > judged_ns)
		to_ns = judged_ns;
	if (!(timing->cmd->flags & (TWHEEL_ABS | TWHEEL_DEADLINE)))
		return to_ns < from_ns + timing->cmd->time_ns;
	if (record->fired_ns < record->due_ns && !clock_was_set(from_ns, to_ns))
		return true;
	return !wall_clock_was_at(record->due_ns, from_ns, to_ns);
}

static void check_expired(const struct call *call, const struct twheel_record *record,
			  const struct event *event)
{
	const struct timing *timing;
	bool given = false, early = true;

	for (timing = event->timings; timing; timing = timing->next) {
		if (!gives(event, timing, record->due_ns) || was_replaced(event, timing))
			continue;
		given = true;
		early &= is_early(event, timing, call, record);
	}
	if (!given)
		fault(&figures.early, "file %u: id %llx expired for %llu, which is not its time",
		      call->file, record->id, record->due_ns);
	else if (early)
		fault(&figures.early, "file %u: id %llx, due at %llu, was early, at %llu (%lu)",
		      call->file, record->id, record->due_ns, record->fired_ns,
		      call->file_after_ns);
	if (record->count != 1)
		fault(&figures.other, "file %u: id %llx counts %llu", call->file, record->id,
		      record->count);
	if (event->completed_by)
		fault(&figures.doubled, "file %u: id %llx expired, and was completed", call->file,
		      record->id);
}

static void check_completed(const struct call *call, const struct twheel_record *record,
			    const struct event *event)
{
	bool is_right;

	if (record->flags & TWHEEL_RECORD_SIGNAL)
		is_right = record->key < KEYS_MAX && (event->keys & 1 << record->key) &&
			   !event->completed_by;
	else
		is_right = event->completed_by && event->completed_by->value == record->value;
	if (!is_right)
		fault(&figures.other, "file %u: id %llx was completed by nobody", call->file,
		      record->id);
}

static bool can_be_ended_by_the_clock(const struct event *event)
{
	const struct timing *timing;

	for (timing = event->timings; timing; timing = timing->next)
		if (timing->cmd->flags & TWHEEL_CANCEL_ON_SET)
			return true;
	return false;
}

static void check_record(const struct call *call, const struct twheel_record *record)
{
	const struct event *event = find_event(call->file, record->id);

	if (!event->id)
		return;
	if (record->data != event->add->data)
		fault(&figures.other, "file %u: id %llx has the data %llx in place of %llx",
		      call->file, record->id, record->data, event->add->data);
	if (record->reason == TWHEEL_COMPLETED)
		check_completed(call, record, event);
	else if (record->reason == TWHEEL_CLOCK_SET && !can_be_ended_by_the_clock(event))
		fault(&figures.other, "file %u: id %llx says that the clock was set", call->file,
		      record->id);
	else if (record->reason == TWHEEL_EXPIRED && !event->add->interval_ns)
		check_expired(call, record, event);
}

/* A command that finds no event: its call does not end before that which ends the event begins. */
static void check_absence(struct call *call, struct twheel_cmd *cmd)
{
	const struct event *event;

	if (cmd->result != -ENOENT || !cmd->id)
		return;
	event = find_event(call->file, cmd->id);
	if (!event->id || event->add_call->before_ns >= end_ns(call, false))
		return;
	if (event->end && event->end->before_ns > end_ns(call, false))
		fault(&figures.other, "file %u: id %llx is not found before it ends", call->file,
		      cmd->id);
	if (event->nr_listed)
		fault(&figures.other, "file %u: id %llx is not found and then listed", call->file,
		      cmd->id);
}

static void check_call(struct call *call)
{
	unsigned int nr = call_nr_read(call), i;

	if (call->kind != CALL_DEVICE)
		return;
	for (i = 0; i < call->nr_cmds; i++)
		check_absence(call, &call_cmds(call)[i]);
	for (i = 0; i < nr; i++)
		check_record(call, &call_records(call)[i]);
}

/* --- periods -------------------------------------------------------------------------- */

static int compare_due(const void *a, const void *b)
{
	const struct piece *const *x = a, *const *y = b;
	uint64_t x_ns = (*x)->record->due_ns, y_ns = (*y)->record->due_ns;

	return (x_ns > y_ns) - (x_ns < y_ns);
}

/* None of the expirations that it counts comes after the call that read it. */
static void check_count(const struct event *event, const struct piece *piece)
{
	const struct twheel_record *record = piece->record;
	uint64_t now_ns = end_ns(piece->call, true);

	if (!record->count || now_ns < record->due_ns ||
	    record->count - 1 > (now_ns - record->due_ns) / event->add->interval_ns)
		fault(&figures.early, "file %u: id %lx, due at %llu, counts %llu at %lu",
		      event->file, event->id, record->due_ns, record->count, now_ns);
}

/* A relative time on the wall clock has due times that move with it: then their counts differ. */
static void check_period(const struct event *event)
{
	bool is_wall = ledger->files[event->file].clock == CLOCK_REALTIME;
	bool moves = is_wall && !(event->add->flags & TWHEEL_ABS);
	const struct twheel_record *record, *last = NULL;
	const struct piece **pieces, *piece;
	unsigned int nr = 0, i;

	for (piece = event->pieces; piece; piece = piece->next)
		nr++;
	if (!nr)
		return;
	pieces = keep(nr * sizeof(*pieces));
	for (piece = event->pieces, i = 0; piece; piece = piece->next)
		pieces[i++] = piece;
	qsort(pieces, nr, sizeof(*pieces), compare_due);
	for (i = 0; i < nr && !moves; i++, last = record) {
		record = pieces[i]->record;
		if (!is_wall && record->fired_ns < record->due_ns)
			fault(&figures.early, "file %u: id %lx with a period was early",
			      event->file, event->id);
		if (!is_wall)
			check_count(event, pieces[i]);
		if (!last && !gives(event, event->timings, record->due_ns))
			fault(&figures.lost, "file %u: id %lx with a period begins at %llu",
			      event->file, event->id, record->due_ns);
		if (last && record->due_ns !=
			    last->due_ns + last->count * event->add->interval_ns)
			fault(&figures.lost, "file %u: id %lx with a period has a gap before %llu",
			      event->file, event->id, record->due_ns);
	}
}

/* --- each event ----------------------------------------------------------------------- */

static void check_event(const struct event *event)
{
	const struct file *file = &ledger->files[event->file];
	unsigned int nr = event->nr_ends + event->nr_listed;

	check_period(event);
	if (nr > 1)
		fault(&figures.doubled, "file %u: id %lx ended %u times, and is listed %u times",
		      event->file, event->id, event->nr_ends, event->nr_listed);
	figures.left += event->nr_listed;
	if (nr)
		return;
	if (!file->survived)
		figures.closed++;
	else if (event->keys & 1 << (KEYS_MAX - 1))
		sums[event->file].missing++;
	else
		fault(&figures.lost, "file %u: id %lx is lost, added with flags %u for %llu",
		      event->file, event->id, event->add->flags, event->add->time_ns);
}

static void compare(unsigned int number, const char *name, uint64_t logged, uint64_t counted)
{
	if (logged != counted)
		fault(&figures.other, "file %u: %s: the logs have %lu, its fdinfo %lu", number,
		      name, logged, counted);
}

static void check_file(unsigned int number)
{
	const struct file *file = &ledger->files[number];
	const struct sum *sum = &sums[number];

	figures.files++;
	if (!file->survived)
		return;
	figures.postponed += file->fdinfo.postponed;
	if (sum->missing != sum->quieted)
		fault(&figures.lost, "file %u: quiet signals ended %lu, and %lu are missing",
		      number, sum->quieted, sum->missing);
	compare(number, "added", sum->added, file->fdinfo.added);
	compare(number, "finished", sum->finished, file->fdinfo.finished);
	compare(number, "cancelled", sum->cancelled + sum->quieted, file->fdinfo.cancelled);
	compare(number, "completed", sum->completed, file->fdinfo.completed);
	compare(number, "records", sum->records, file->fdinfo.records);
	compare(number, "added, as the sum", file->fdinfo.added,
		file->fdinfo.armed + file->fdinfo.ready + file->fdinfo.finished +
		file->fdinfo.cancelled);
}

/* --- all of it ------------------------------------------------------------------------ */

static struct {
	uint64_t cmds, stores, records;
} size;

static void measure(const struct call *call)
{
	size.cmds += call->nr_cmds;
	size.stores += call->kind == CALL_STORE;
	size.records += call->nr_records;
}

static uint64_t table_size(uint64_t nr)
{
	uint64_t places = 16;

	while (places < 2 * nr)
		places *= 2;
	return places;
}

static void make_tables(void)
{
	unsigned int log;
	struct call *call;

	memset(&size, 0, sizeof(size));
	for (call = first_call(&log); call; call = next_call(&log, call))
		measure(call);
	events_mask = table_size(size.cmds) - 1;
	stores_mask = table_size(size.stores) - 1;
	events = calloc(events_mask + 1, sizeof(*events));
	stores = calloc(stores_mask + 1, sizeof(*stores));
	arena_bytes = size.cmds * sizeof(struct timing) +
		      size.records * (sizeof(struct piece) + sizeof(struct piece *));
	arena = malloc(arena_bytes);
	arena_used = 0;
	if (!events || !stores || !arena)
		abort();
	memset(sums, 0, sizeof(sums));
}

void judge(void)
{
	unsigned int log, i;
	struct call *call;
	uint64_t at;

	judged_ns = now_ns();
	make_tables();
	for (call = first_call(&log); call; call = next_call(&log, call))
		note_adds(call);
	for (call = first_call(&log); call; call = next_call(&log, call))
		note_store(call);
	for (call = first_call(&log); call; call = next_call(&log, call))
		note_call(call);
	for (call = first_call(&log); call; call = next_call(&log, call))
		check_call(call);
	for (at = 0; at <= events_mask; at++)
		if (events[at].id)
			check_event(&events[at]);
	for (i = 0; i < nr_files(); i++)
		check_file(i);
	free(events);
	free(stores);
	free(arena);
}
