// SPDX-License-Identifier: GPL-2.0
/*
 * The files of the device that a program has open, and what is known of each.
 *
 * What must hold of a file is checked from here: the result of each command is one that the
 * contract names, no record comes of an event that was cancelled, none comes early, and the
 * counts of fdinfo agree with each other, with what the calls have returned, and with a list.
 * While something is not known, because memory was changed during a call or another process
 * uses the file, too, only what must hold in any case is checked.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/twheel.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "files.h"
#include "shared.h"

/* The numbers of files begin here. */
#define SLOT_FD		100

#define NOTES		(4 * PROGRAM_CALLS)
#define LIST_MAX	512

static struct file_note notes[NOTES];
static unsigned int nr_notes;
static struct file_note *note_at[PROGRAM_SLOTS];
/* A file was opened or closed while another thread made a call. */
static atomic_bool contested;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const struct program *running;
static unsigned int running_worker;

/* --- what does not hold -------------------------------------------------------------- */

/* Say which program runs, to print it if something does not hold. */
void violation_of(const struct program *program, unsigned int worker)
{
	running = program;
	running_worker = worker;
}

/* Something does not hold: say so, and end the process. */
void violation(const char *format, ...)
{
	va_list arguments;

	shared->failed = true;
	flockfile(stdout);
	printf("fuzz: worker %u: ", running_worker);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	printf("\nfuzz: the program: ");
	program_print(running, stdout);
	fflush(stdout);
	_exit(1);
}

/* --- files --------------------------------------------------------------------------- */

/* Before a program: no file is open. */
void files_begin(void)
{
	memset(notes, 0, sizeof(notes));
	memset(note_at, 0, sizeof(note_at));
	nr_notes = 0;
	contested = false;
}

/* After a program: close them. */
void files_end(void)
{
	unsigned int slot;

	for (slot = 0; slot < PROGRAM_SLOTS; slot++)
		close(file_of(slot));
}

/* Files are opened and closed by several threads, or used by several processes. */
void files_doubt(void)
{
	unsigned int i;

	contested = true;
	for (i = 0; i < NOTES; i++)
		notes[i].uncertain = true;
}

int file_of(unsigned int slot)
{
	return SLOT_FD + slot;
}

/* What is known of the file in a slot; of an empty one, something that nobody checks. */
struct file_note *note_of(unsigned int slot)
{
	static struct file_note none = { .uncertain = true };
	struct file_note *note;

	pthread_mutex_lock(&lock);
	note = note_at[slot];
	pthread_mutex_unlock(&lock);
	return note ?: &none;
}

bool may_be_closed(unsigned int slot)
{
	bool closed;

	pthread_mutex_lock(&lock);
	closed = !note_at[slot];
	pthread_mutex_unlock(&lock);
	return closed || contested;
}

static void set_note(unsigned int slot, struct file_note *note)
{
	pthread_mutex_lock(&lock);
	note_at[slot] = note;
	pthread_mutex_unlock(&lock);
}

static struct file_note *new_note(void)
{
	struct file_note *note;

	pthread_mutex_lock(&lock);
	note = &notes[nr_notes++ % NOTES];
	memset(note, 0, sizeof(*note));
	note->uncertain = contested;
	note->clock = CLOCK_MONOTONIC;
	pthread_mutex_unlock(&lock);
	return note;
}

long file_open(unsigned int slot, int flags)
{
	int fd = open("/dev/twheel", flags);

	if (fd < 0)
		return -errno;
	if (dup2(fd, file_of(slot)) < 0)
		violation("dup2: %s", strerrorname_np(errno));
	close(fd);
	set_note(slot, new_note());
	return 0;
}

long file_dup(unsigned int from, unsigned int to)
{
	struct file_note *note;

	if (dup2(file_of(from), file_of(to)) < 0)
		return -errno;
	pthread_mutex_lock(&lock);
	note = note_at[from];
	note_at[to] = note;
	pthread_mutex_unlock(&lock);
	return 0;
}

long file_close(unsigned int slot)
{
	set_note(slot, NULL);
	return close(file_of(slot)) ? -errno : 0;
}

/* --- commands and records ------------------------------------------------------------ */

static bool is_one_of(int error, const short *errors)
{
	for (; *errors; errors++)
		if (error == *errors)
			return true;
	return false;
}

static void check_result(const struct twheel_cmd *cmd, bool newer)
{
	static const short errors[][6] = {
		[TWHEEL_OP_ADD] = { EINVAL, ENOSPC },
		[TWHEEL_OP_MODIFY] = { EINVAL, ENOENT, EALREADY },
		[TWHEEL_OP_CANCEL] = { EINVAL, ENOENT },
		[TWHEEL_OP_COMPLETE] = { EINVAL, ENOENT, EALREADY },
		[TWHEEL_OP_WATCH] = { EINVAL, ENOENT, EALREADY, ENOSPC },
		[TWHEEL_OP_SIGNAL] = { EINVAL },
		[TWHEEL_OP_QUERY] = { EINVAL, ENOENT },
	};
	unsigned int op = cmd->op > TWHEEL_OP_QUERY ? 0 : cmd->op;
	long result = cmd->result;

	outcome_count(&shared->by_op[op], result);
	if (newer && result == -E2BIG)
		return;
	if (!op && result != -EINVAL)
		violation("op %u has result %ld", cmd->op, result);
	if (result < 0 && op && !is_one_of(-result, errors[op]))
		violation("op %u has result -%s", op, strerrorname_np(-result));
	if (result > 0 && op != TWHEEL_OP_SIGNAL && op != TWHEEL_OP_QUERY)
		violation("op %u has result %ld", op, result);
	if (op == TWHEEL_OP_QUERY && (!result || result > TWHEEL_READY))
		violation("QUERY has result %ld", result);
	if (op == TWHEEL_OP_ADD && !cmd->id != !!result)
		violation("ADD has result %ld and id %#llx", result, cmd->id);
}

/* Note the result of a command, which nobody else has changed. */
void note_command(struct file_note *note, const struct twheel_cmd *cmd, bool newer)
{
	check_result(cmd, newer);
	if (cmd->result)
		return;
	if (cmd->op == TWHEEL_OP_ADD) {
		note->ids[note->nr_ids++ % NOTED_IDS] = cmd->id;
		note->added++;
	} else if (cmd->op == TWHEEL_OP_CANCEL) {
		note->cancelled[note->nr_cancelled++ % NOTED_IDS] = cmd->id;
	}
}

static bool was_cancelled(const struct file_note *note, uint64_t id)
{
	unsigned int i;

	for (i = 0; i < NOTED_IDS; i++)
		if (note->cancelled[i] == id)
			return true;
	return false;
}

/* Check a record, which nobody else has changed. */
void note_record(struct file_note *note, const struct twheel_record *record)
{
	if (!record->id || !record->count || record->reason > TWHEEL_CLOCK_SET ||
	    record->flags > TWHEEL_RECORD_SIGNAL)
		violation("a record has id %#llx, count %llu, reason %u, flags %#x",
			  record->id, record->count, record->reason, record->flags);
	if (note->uncertain)
		return;
	if (was_cancelled(note, record->id))
		violation("a record came of event %#llx, which was cancelled", record->id);
	if (record->reason == TWHEEL_EXPIRED && note->clock != CLOCK_REALTIME &&
	    record->fired_ns < record->due_ns)
		violation("event %#llx was due at %llu ns and fired at %llu ns", record->id,
			  record->due_ns, record->fired_ns);
}

void note_records(struct file_note *note, unsigned long nr)
{
	note->records += nr;
}

/* --- counts -------------------------------------------------------------------------- */

struct counts {
	unsigned long max_events, added, armed, ready, finished, cancelled, completed, records;
};

static unsigned long count_of(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	if (!at)
		violation("fdinfo has no %s", name);
	return strtoul(at + strlen(name), NULL, 10);
}

/* Returns 0 or a negative errno: the file may be closed. */
static long read_counts(unsigned int slot, struct counts *counts)
{
	char path[64], text[2048];
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", file_of(slot));
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return errno == ENOENT ? -EBADF : -errno;
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (len < 0)
		return errno == ENOENT ? -EBADF : -errno;
	text[len] = 0;
	*counts = (struct counts){
		.max_events = count_of(text, "max_events:\t"),
		.added = count_of(text, "\nadded:\t"),
		.armed = count_of(text, "\narmed:\t"),
		.ready = count_of(text, "\nready:\t"),
		.finished = count_of(text, "\nfinished:\t"),
		.cancelled = count_of(text, "\ncancelled:\t"),
		.completed = count_of(text, "\ncompleted:\t"),
		.records = count_of(text, "\nrecords:\t"),
	};
	return 0;
}

static void check_counts(const struct counts *counts)
{
	if (counts->added != counts->armed + counts->ready + counts->finished + counts->cancelled)
		violation("added %lu, armed %lu, ready %lu, finished %lu, cancelled %lu",
			  counts->added, counts->armed, counts->ready, counts->finished,
			  counts->cancelled);
	if (counts->armed + counts->ready > counts->max_events)
		violation("armed %lu, ready %lu, max_events %lu", counts->armed, counts->ready,
			  counts->max_events);
	if (counts->finished > counts->records || counts->completed > counts->added)
		violation("finished %lu, records %lu, completed %lu, added %lu", counts->finished,
			  counts->records, counts->completed, counts->added);
}

/* Check what fdinfo says of a file; 0 or a negative errno. */
long file_check(unsigned int slot)
{
	struct counts counts;
	long ret = read_counts(slot, &counts);

	if (!ret)
		check_counts(&counts);
	return ret;
}

/* A call ends after a part of the list if there is work for the task, as io_uring has it. */
static void check_list(unsigned int slot, const struct counts *counts)
{
	static struct twheel_entry entries[LIST_MAX];
	struct twheel_list list = {
		.size = sizeof(list),
		.nr = LIST_MAX,
		.entry_size = sizeof(entries[0]),
		.entries = (uintptr_t)entries,
	};
	unsigned long listed = 0;
	long ret;

	if (counts->armed + counts->ready >= LIST_MAX)
		return;
	do {
		ret = ioctl(file_of(slot), TWHEEL_IOC_LIST, &list);
		if (ret > 0)
			listed += ret;
	} while (ret > 0 || (ret < 0 && errno == EINTR));
	if (ret || listed != counts->armed + counts->ready)
		violation("armed %lu, ready %lu, but the list has %lu, and then %ld",
			  counts->armed, counts->ready, listed, ret);
}

static void check_file(unsigned int slot, const struct file_note *note)
{
	struct counts counts;
	long ret = read_counts(slot, &counts);

	if (ret)
		violation("fdinfo: %s", strerrorname_np(-ret));
	check_counts(&counts);
	check_list(slot, &counts);
	if (note->uncertain)
		return;
	if (counts.added != note->added || counts.records != note->records)
		violation("added %lu and records %lu, but fdinfo says %lu and %lu", note->added,
			  note->records, counts.added, counts.records);
}

/* At the end of a program, when no call is under way: check all files. */
void files_check(void)
{
	unsigned int slot;

	if (contested)
		return;
	for (slot = 0; slot < PROGRAM_SLOTS; slot++)
		if (note_at[slot])
			check_file(slot, note_at[slot]);
}
