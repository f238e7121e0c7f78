// SPDX-License-Identifier: GPL-2.0
/* The end of a round: see drain.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "drain.h"
#include "judge.h"
#include "ledger.h"

/* No event is this late, however busy the machine is. */
#define LOST_NS		(120 * SECOND_NS)
#define ENTRIES		CALL_RECORDS_MAX

/*
 * The moment in which a file's last records are read: by its clock, and by the wall clock if that
 * had always been as far back against CLOCK_MONOTONIC as it ever was in this round.
 */
struct moment {
	uint64_t now;
	uint64_t lowest_wall;
};

static unsigned int read_some(int *log, unsigned int number, int fd)
{
	struct call *call = call_begin(log, number, 0, CALL_RECORDS_MAX);
	struct twheel_enter enter = { .size = sizeof(enter) };
	int ret;

	if (!call) {
		fault(&figures.other, "there is no room for what is read in the end");
		exit(1);
	}
	enter.records = (uintptr_t)call_records(call);
	enter.nr_records = CALL_RECORDS_MAX;
	enter.cmd_size = sizeof(struct twheel_cmd);
	enter.record_size = sizeof(struct twheel_record);
	call_go(call, CALL_DEVICE);
	ret = ioctl(fd, TWHEEL_IOC_ENTER, &enter) ? -errno : 0;
	call_end(*log, call, ret, enter.records_done);
	return enter.records_done;
}

static int list(int fd, uint64_t *cursor, struct twheel_entry *entries)
{
	struct twheel_list list = {
		.size = sizeof(list),
		.nr = ENTRIES,
		.entry_size = sizeof(*entries),
		.cursor = *cursor,
		.entries = (uintptr_t)entries,
	};
	int ret = ioctl(fd, TWHEEL_IOC_LIST, &list);

	*cursor = list.cursor;
	return ret;
}

/*
 * Is its time over? An event waits until the highest time that its word had, since a store of an
 * earlier one tells nobody. A relative time on the wall clock does not move with that clock: its
 * due_ns is what the clock would show then if it were not set after the arming.
 */
static bool is_overdue(const struct file *file, const struct twheel_entry *entry,
		       const struct moment *moment)
{
	uint64_t due_ns = entry->due_ns, now = moment->now;

	if (entry->state != TWHEEL_ARMED)
		return false;
	if (file->clock == CLOCK_REALTIME && !entry->interval_ns &&
	    !(entry->flags & (TWHEEL_ABS | TWHEEL_DEADLINE)))
		now = moment->lowest_wall;
	if (entry->deadline && file->highest_ns[entry->deadline - 1] > due_ns)
		due_ns = file->highest_ns[entry->deadline - 1];
	return due_ns < now && entry->slack_ns + MILLISECOND_NS < now - due_ns;
}

/* The id of an event that waits although its time is over, or 0. */
static uint64_t find_overdue(unsigned int number, int fd, const struct moment *moment)
{
	struct twheel_entry entries[ENTRIES];
	uint64_t cursor = 0;
	int nr, i;

	while ((nr = list(fd, &cursor, entries)) > 0)
		for (i = 0; i < nr; i++)
			if (is_overdue(&ledger->files[number], &entries[i], moment))
				return entries[i].id;
	return 0;
}

static void list_what_is_left(int *log, unsigned int number, int fd)
{
	struct twheel_entry entries[ENTRIES];
	uint64_t cursor = 0;
	int nr, i;

	while ((nr = list(fd, &cursor, entries)) > 0) {
		struct call *call = call_begin(log, number, 0, nr);

		if (!call)
			exit(1);
		call_go(call, CALL_LIST);
		for (i = 0; i < nr; i++)
			call_records(call)[i].id = entries[i].id;
		call_end(*log, call, 0, nr);
	}
}

static void read_fdinfo(struct file *file, int fd)
{
	char path[64], line[128], name[32];
	unsigned long value;
	FILE *stream;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	stream = fopen(path, "r");
	if (!stream)
		return;
	while (fgets(line, sizeof(line), stream)) {
		if (sscanf(line, "%31[^:]: %lu", name, &value) != 2)
			continue;
		if (!strcmp(name, "added"))
			file->fdinfo.added = value;
		else if (!strcmp(name, "armed"))
			file->fdinfo.armed = value;
		else if (!strcmp(name, "ready"))
			file->fdinfo.ready = value;
		else if (!strcmp(name, "finished"))
			file->fdinfo.finished = value;
		else if (!strcmp(name, "cancelled"))
			file->fdinfo.cancelled = value;
		else if (!strcmp(name, "completed"))
			file->fdinfo.completed = value;
		else if (!strcmp(name, "records"))
			file->fdinfo.records = value;
		else if (!strcmp(name, "postponed"))
			file->fdinfo.postponed = value;
	}
	fclose(stream);
}

/* When one event was waited for in vain, others are not worth as much. */
static uint64_t patience_ns = LOST_NS;

void drain(int *log, unsigned int number, int fd)
{
	struct file *file = &ledger->files[number];
	uint64_t until_ns = now_ns() + patience_ns, id;
	struct moment moment = {
		.now = clock_ns(file->clock),
		.lowest_wall = now_ns() + lowest_wall_offset_ns(),
	};

	for (;;) {
		while (read_some(log, number, fd))
			;
		id = find_overdue(number, fd, &moment);
		if (!id)
			break;
		if (now_ns() > until_ns) {
			fault(&figures.lost, "file %u: id %lx waits although its time is over",
			      number, id);
			patience_ns = SECOND_NS;
			break;
		}
		usleep(10000);
	}
	list_what_is_left(log, number, fd);
	read_fdinfo(file, fd);
	file->survived = true;
}
