/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A fake of alarm.h, so that a test can set the clocks, and have alarms refused.
 *
 * Alarms that are armed are in a heap by time, and those that were not flushed yet in a list
 * besides. Like the device, it has room for so many that were flushed; what is above that
 * is refused at the flush, or where @refuse_at_add says so, at once.
 *
 *	IDLE --add--> NEW --flush--> FLUSHED --take--> IDLE
 *	              `--flush, no room--> REFUSED --alarms_refused--> IDLE
 */
#ifndef FAKE_ALARM_H
#define FAKE_ALARM_H

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <bsd/sys/queue.h>

#include "alarm.h"
#include "harness.h"

enum fake_state {
	FAKE_IDLE,
	FAKE_NEW,
	FAKE_FLUSHED,
	FAKE_REFUSED
};

struct fake_entry {
	uint64_t time_ns;
	uint64_t serial;
	struct alarm *alarm;
};

TAILQ_HEAD(fake_list, alarm);

/* Places in the heap are from 1; &struct alarm.node.place has that of an alarm. */
struct fake_heap {
	struct fake_entry *entries;
	size_t nr;
	size_t room;
};

static struct fake_alarms {
	uint64_t now_ns[ALARM_CLOCKS];
	struct fake_heap heaps[ALARM_CLOCKS];
	struct fake_list fresh;
	struct fake_list refused;
	uint64_t serial;
	size_t capacity;
	size_t nr_flushed;
	size_t nr_refused;	/* since the start, at an add and at a flush */
	size_t nr_refused_flush;
	bool refuse_at_add;
	unsigned int nr_sets;
	unsigned int turn;
	int fd;
} fake = { .capacity = SIZE_MAX, .fd = -1 };

/* --- the heap --------------------------------------------------------------------------- */

static bool fake_before(const struct fake_entry *a, const struct fake_entry *b)
{
	return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->serial < b->serial;
}

static void fake_place(struct fake_heap *heap, size_t place, struct fake_entry entry)
{
	heap->entries[place] = entry;
	entry.alarm->node.place = place;
}

static void fake_sift(struct fake_heap *heap, size_t place, struct fake_entry entry)
{
	size_t child;

	for (; place > 1 && fake_before(&entry, &heap->entries[place / 2]); place /= 2)
		fake_place(heap, place, heap->entries[place / 2]);
	while ((child = place * 2) <= heap->nr) {
		if (child < heap->nr &&
		    fake_before(&heap->entries[child + 1], &heap->entries[child]))
			child++;
		if (!fake_before(&heap->entries[child], &entry))
			break;
		fake_place(heap, place, heap->entries[child]);
		place = child;
	}
	fake_place(heap, place, entry);
}

static void fake_insert(struct alarm *alarm, uint64_t time_ns)
{
	struct fake_heap *heap = &fake.heaps[alarm->clock];
	struct fake_entry entry = { time_ns, fake.serial++, alarm };

	if (heap->nr + 1 >= heap->room) {
		heap->room = heap->room * 2 + 64;
		heap->entries = reallocarray(heap->entries, heap->room, sizeof(entry));
	}
	fake_sift(heap, ++heap->nr, entry);
}

static void fake_remove(struct alarm *alarm)
{
	struct fake_heap *heap = &fake.heaps[alarm->clock];
	size_t place = alarm->node.place;
	struct fake_entry last = heap->entries[heap->nr--];

	if (place <= heap->nr)
		fake_sift(heap, place, last);
}

/* --- what a test sets ------------------------------------------------------------------- */

static inline void fake_advance(uint64_t ns)
{
	fake.now_ns[ALARM_BOOT] += ns;
	fake.now_ns[ALARM_WALL] += ns;
}

static inline void fake_set_wall(int64_t by_ns)
{
	fake.now_ns[ALARM_WALL] += by_ns;
	fake.nr_sets++;
}

/* --- alarm.h ---------------------------------------------------------------------------- */

uint64_t alarms_now_ns(enum alarm_clock clock)
{
	return fake.now_ns[clock];
}

int alarms_open(struct alarms **alarms, enum alarm_make make)
{
	(void)make;
	TAILQ_INIT(&fake.fresh);
	TAILQ_INIT(&fake.refused);
	fake.heaps[0].nr = 0;
	fake.heaps[1].nr = 0;
	fake.nr_flushed = 0;
	/* Always readable. */
	fake.fd = eventfd(1, EFD_CLOEXEC);
	*alarms = (struct alarms *)&fake;
	return 0;
}

void alarms_close(struct alarms *alarms)
{
	(void)alarms;
	close(fake.fd);
}

enum alarm_make alarms_make(const struct alarms *alarms)
{
	(void)alarms;
	return ALARM_DEVICE;
}

const char *alarms_name(const struct alarms *alarms)
{
	(void)alarms;
	return "fake";
}

bool alarm_pending(const struct alarm *alarm)
{
	return alarm->state != FAKE_IDLE;
}

void alarm_cancel(struct alarms *alarms, struct alarm *alarm)
{
	(void)alarms;
	if (alarm->state == FAKE_NEW || alarm->state == FAKE_FLUSHED)
		fake_remove(alarm);
	if (alarm->state == FAKE_NEW)
		TAILQ_REMOVE(&fake.fresh, alarm, refused);
	else if (alarm->state == FAKE_FLUSHED)
		fake.nr_flushed--;
	else if (alarm->state == FAKE_REFUSED)
		TAILQ_REMOVE(&fake.refused, alarm, refused);
	alarm->state = FAKE_IDLE;
}

int alarm_add(struct alarms *alarms, struct alarm *alarm, uint64_t id,
	      enum alarm_clock clock, uint64_t time_ns)
{
	(void)alarms;
	ASSERT_EQ(alarm->state, FAKE_IDLE);
	alarm->id = id;
	alarm->clock = clock;
	if (fake.refuse_at_add && fake.heaps[0].nr + fake.heaps[1].nr >= fake.capacity) {
		fake.nr_refused++;
		return -ENOSPC;
	}
	TAILQ_INSERT_TAIL(&fake.fresh, alarm, refused);
	fake_insert(alarm, time_ns);
	alarm->state = FAKE_NEW;
	return 0;
}

int alarm_move(struct alarms *alarms, struct alarm *alarm, uint64_t time_ns)
{
	if (alarm->state == FAKE_NEW || alarm->state == FAKE_FLUSHED) {
		fake_remove(alarm);
		fake_insert(alarm, time_ns);
		return 0;
	}
	alarm_cancel(alarms, alarm);
	return alarm_add(alarms, alarm, alarm->id, alarm->clock, time_ns);
}

int alarms_fd(const struct alarms *alarms)
{
	(void)alarms;
	return fake.fd;
}

int alarms_flush(struct alarms *alarms)
{
	struct alarm *alarm;

	(void)alarms;
	while ((alarm = TAILQ_FIRST(&fake.fresh))) {
		TAILQ_REMOVE(&fake.fresh, alarm, refused);
		if (fake.nr_flushed < fake.capacity) {
			alarm->state = FAKE_FLUSHED;
			fake.nr_flushed++;
			continue;
		}
		fake_remove(alarm);
		alarm->state = FAKE_REFUSED;
		TAILQ_INSERT_TAIL(&fake.refused, alarm, refused);
		fake.nr_refused_flush++;
	}
	return TAILQ_EMPTY(&fake.refused) ? 0 : -ENOSPC;
}

bool alarms_refused(struct alarms *alarms, uint64_t *id)
{
	struct alarm *alarm = TAILQ_FIRST(&fake.refused);

	if (!alarm)
		return false;
	*id = alarm->id;
	alarm_cancel(alarms, alarm);
	return true;
}

static bool fake_due(enum alarm_clock clock)
{
	const struct fake_heap *heap = &fake.heaps[clock];

	return heap->nr && heap->entries[1].time_ns <= fake.now_ns[clock];
}

size_t alarms_take(struct alarms *alarms, uint64_t *ids, size_t nr)
{
	size_t taken = 0, tries;

	for (tries = 0; tries < ALARM_CLOCKS; tries++) {
		unsigned int clock = fake.turn++ % ALARM_CLOCKS;

		for (; taken < nr && fake_due(clock); taken++) {
			struct alarm *alarm = fake.heaps[clock].entries[1].alarm;

			ids[taken] = alarm->id;
			alarm_cancel(alarms, alarm);
		}
	}
	return taken;
}

unsigned int alarms_clock_was_set(struct alarms *alarms)
{
	unsigned int nr = fake.nr_sets;

	(void)alarms;
	fake.nr_sets = 0;
	return nr;
}

#endif /* FAKE_ALARM_H */
