// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Records, turns of an event loop, and lists of events.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "private.h"

/* The size of the kernel's signal mask. */
#define SIGMASK_SIZE	8

int twheel_records_init(struct twheel_records *records, unsigned int room)
{
	memset(records, 0, sizeof(*records));
	if (!room)
		return -EINVAL;
	records->records = calloc(room, sizeof(*records->records));
	if (!records->records)
		return -ENOMEM;
	records->room = room;
	return 0;
}

void twheel_records_destroy(struct twheel_records *records)
{
	free(records->records);
	memset(records, 0, sizeof(*records));
}

int twheel_read(struct twheel *wheel, struct twheel_records *records)
{
	ssize_t ret;

	records->nr = 0;
	do {
		ret = read(wheel->fd, records->records,
			   records->room * sizeof(*records->records));
	} while (ret < 0 && errno == EINTR);
	if (ret < 0)
		return errno == EAGAIN ? 0 : -errno;
	records->nr = ret / sizeof(*records->records);
	return records->nr;
}

int twheel_wait(struct twheel *wheel, struct twheel_records *records, __u64 timeout_ns)
{
	return twheel_enter(wheel, NULL, NULL, records, 1, timeout_ns, NULL);
}

/*
 * Make the timeout of a wait absolute.  The kernel then continues the wait after a signal
 * without a handler, such as a stop and continue, and its end stays the same.
 */
static void make_absolute(struct twheel_enter *enter)
{
	struct timespec now;
	__u64 now_ns;

	if (!enter->timeout_ns || enter->timeout_ns == TWHEEL_NEVER)
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	now_ns = now.tv_sec * TWHEEL_SECOND + now.tv_nsec;
	if (__builtin_add_overflow(now_ns, enter->timeout_ns, &enter->timeout_ns))
		enter->timeout_ns = TWHEEL_NEVER;
	enter->flags = TWHEEL_ENTER_ABS;
}

int twheel_enter(struct twheel *wheel, struct twheel_batch *batch, unsigned int *done,
		 struct twheel_records *records, unsigned int min_records,
		 __u64 timeout_ns, const sigset_t *mask)
{
	struct twheel_enter enter = {
		.size = sizeof(enter),
		.cmds = batch ? (uintptr_t)batch->cmds : 0,
		.records = (uintptr_t)records->records,
		.timeout_ns = timeout_ns,
		.nr_cmds = batch ? batch->nr : 0,
		.nr_records = records->room,
		.min_records = min_records,
		.cmd_size = sizeof(struct twheel_cmd),
		.record_size = sizeof(struct twheel_record),
		.sigmask = (uintptr_t)mask,
		.sigset_size = mask ? SIGMASK_SIZE : 0,
	};
	int ret;

	make_absolute(&enter);
	ret = ioctl(wheel->fd, TWHEEL_IOC_ENTER, &enter) ? -errno : 0;
	records->nr = enter.records_done;
	if (done)
		*done = enter.cmds_done;
	return ret < 0 ? ret : (int)records->nr;
}

int twheel_list_sized(struct twheel *wheel, void *entries, size_t entry_size,
		      unsigned int nr, __u64 *cursor)
{
	struct twheel_list list = {
		.size = sizeof(list),
		.nr = nr,
		.entry_size = entry_size,
		.cursor = *cursor,
		.entries = (uintptr_t)entries,
	};
	int ret;

	if (entry_size > UINT32_MAX)
		return -EINVAL;
	ret = twheel__ioctl(wheel, TWHEEL_IOC_LIST, &list);
	*cursor = list.cursor;
	return ret;
}

/* For programs that were compiled when twheel_list() was here and entries had 64 bytes. */
int list_without_flags(struct twheel *wheel, void *entries, unsigned int nr,
		       __u64 *cursor) __asm__("twheel_list");

int list_without_flags(struct twheel *wheel, void *entries, unsigned int nr,
		       __u64 *cursor)
{
	return twheel_list_sized(wheel, entries, offsetof(struct twheel_entry, flags), nr,
				 cursor);
}
