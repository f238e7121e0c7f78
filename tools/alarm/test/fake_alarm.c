// SPDX-License-Identifier: GPL-2.0
/* A fake of alarm.h, whose clocks the test sets: alarms that are armed are in a heap. */
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "alarm/test/fake_alarm.h"
#include "test/device/harness.h"

enum fake_state {
	FAKE_IDLE,
	FAKE_ARMED
};

struct fake_entry {
	uint64_t time_ns;
	uint64_t serial;
	struct alarm *alarm;
};

struct fake_alarms fake = {
	.now_ns = { [ALARM_BOOT] = FAKE_BOOT_NS, [ALARM_WALL] = FAKE_WALL_NS },
	.fd = -1,
};

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

void fake_advance(uint64_t ns)
{
	fake.now_ns[ALARM_BOOT] += ns;
	fake.now_ns[ALARM_WALL] += ns;
}

void fake_set_wall(int64_t by_ns)
{
	fake.now_ns[ALARM_WALL] += by_ns;
	fake.nr_sets++;
}

/* --- alarm.h ---------------------------------------------------------------------------- */

uint64_t alarms_now_ns(enum alarm_clock clock)
{
	return fake.now_ns[clock];
}

int alarms_open(struct alarms **alarms, enum alarm_backend backend)
{
	(void)backend;
	fake.heaps[ALARM_BOOT].nr = 0;
	fake.heaps[ALARM_WALL].nr = 0;
	fake.fd = eventfd(1, EFD_CLOEXEC);
	*alarms = (struct alarms *)&fake;
	return 0;
}

void alarms_close(struct alarms *alarms)
{
	(void)alarms;
	close(fake.fd);
}

enum alarm_backend alarms_backend(const struct alarms *alarms)
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
	if (alarm->state == FAKE_ARMED)
		fake_remove(alarm);
	alarm->state = FAKE_IDLE;
}

void alarm_add(struct alarms *alarms, struct alarm *alarm, uint64_t id,
	       enum alarm_clock clock, uint64_t time_ns)
{
	(void)alarms;
	ASSERT_EQ(alarm->state, FAKE_IDLE);
	alarm->id = id;
	alarm->clock = clock;
	fake_insert(alarm, time_ns);
	alarm->state = FAKE_ARMED;
}

void alarm_move(struct alarms *alarms, struct alarm *alarm, uint64_t time_ns)
{
	alarm_cancel(alarms, alarm);
	alarm_add(alarms, alarm, alarm->id, alarm->clock, time_ns);
}

int alarms_fd(const struct alarms *alarms)
{
	(void)alarms;
	return fake.fd;
}

void alarms_flush(struct alarms *alarms)
{
	(void)alarms;
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
