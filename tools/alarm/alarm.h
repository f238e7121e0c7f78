/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Alarms: give me this id when the clock says that time.
 *
 * There are two backends. One is /dev/twheel, through libtwheel (device.c); the other is
 * kmod/wheel.c in this process, with a timerfd for each clock (process.c), for machines
 * without the module. Both keep the promises of this file and pass the same tests.
 *
 * An alarm is embedded in the object that it is for. It is idle, armed or fired; a fired
 * alarm becomes idle when alarms_take() returns its id. All functions belong to one thread.
 *
 * Arming never fails. An alarm that the device has no room for waits in this process
 * instead. When events end on the device, alarms that are armed later find room there.
 *
 * Time: no alarm is early. Its id is returned when its clock says @time_ns or later.
 * Order: ids of one clock are returned in the order of their ticks, and ids of one tick in
 * the order in which they were armed. While some alarms wait on the device and others in
 * this process because the device was full, this holds for those on the device and for
 * those in the process, but not between the two: of two alarms that became due between two
 * calls of alarms_take(), the later one may be returned first.
 */
#ifndef ALARM_ALARM_H
#define ALARM_ALARM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum alarm_clock {
	ALARM_BOOT,	/* time since boot, sleep included */
	ALARM_WALL,	/* the wall clock, which can be set */
	ALARM_CLOCKS
};

enum alarm_backend {
	ALARM_AUTO,	/* the device if it can be opened, else the process */
	ALARM_DEVICE,
	ALARM_PROCESS
};

/**
 * struct alarm - an alarm, embedded by its owner
 * @id: alarms_take() returns it; any number that tells the owner which alarm fired.
 * @clock: the clock of its time.
 *
 * The rest is private to the backends. An alarm of zeros is idle.
 */
struct alarm {
	uint64_t id;
	union {
		struct {
			void *list[2];
			uint64_t place;
		} node;
		struct {
			uint64_t event;
			uint32_t command;
		} device;
	};
	uint8_t clock;
	uint8_t state;
};

struct alarms;

/*
 * Open the alarms. Returns 0, and *@alarms is to be closed by alarms_close(); or a negative
 * errno: the error of opening the device, if @backend is ALARM_DEVICE; -ENOMEM; -EMFILE.
 */
int alarms_open(struct alarms **alarms, enum alarm_backend backend);

/* End all alarms. The memory of those that are armed can be freed before or after. */
void alarms_close(struct alarms *alarms);

/* ALARM_DEVICE or ALARM_PROCESS, and its name: "device" or "process". */
enum alarm_backend alarms_backend(const struct alarms *alarms);
const char *alarms_name(const struct alarms *alarms);

/* The time of a clock, in ns. */
uint64_t alarms_now_ns(enum alarm_clock clock);

/* Arm an idle alarm for an absolute time, which may be in the past. */
void alarm_add(struct alarms *alarms, struct alarm *alarm, uint64_t id,
	       enum alarm_clock clock, uint64_t time_ns);

/*
 * Arm an alarm in any state for another time; its id and clock stay. Among the alarms of
 * its new tick it counts as armed last.
 */
void alarm_move(struct alarms *alarms, struct alarm *alarm, uint64_t time_ns);

/* Make an alarm idle: its id is not returned any more, and its memory can be freed. */
void alarm_cancel(struct alarms *alarms, struct alarm *alarm);

/* Is it armed or fired: will its id be returned? */
bool alarm_pending(const struct alarm *alarm);

/*
 * The file to poll for EPOLLIN, level-triggered. Call alarms_flush() before you sleep: it
 * hands everything that was armed, moved and cancelled since to the kernel in one system
 * call a clock.
 */
int alarms_fd(const struct alarms *alarms);
void alarms_flush(struct alarms *alarms);

/*
 * Take up to @nr ids of alarms that are due. Returns how many; if it is @nr, there may be
 * more. Never waits.
 */
size_t alarms_take(struct alarms *alarms, uint64_t *ids, size_t nr);

/*
 * How often the wall clock was set since the last call, so that the caller can update a
 * difference of the clocks that it keeps. Alarms of ALARM_WALL follow by themselves.
 */
unsigned int alarms_clock_was_set(struct alarms *alarms);

#endif /* ALARM_ALARM_H */
