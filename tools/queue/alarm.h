/* SPDX-License-Identifier: GPL-2.0 */
/*
 * "Wake me for this id at that time": what the daemon needs of a timing wheel.
 *
 * It has two makes. One is /dev/twheel, through libtwheel (alarm_device.c); the other is
 * kmod/wheel.c in this process with a timerfd for each clock (alarm_process.c), for
 * machines without the module. Both keep what is said here, and pass the same tests.
 *
 * An alarm is embedded in what it is for, and is idle, armed or fired. A fired alarm is
 * idle again when alarms_take() has given out its id. All functions belong to one thread.
 * Nothing is early: an id is given out when its clock says @time_ns or later. Ids come in
 * the order of their ticks of a clock.
 */
#ifndef TWHEELQ_ALARM_H
#define TWHEELQ_ALARM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

/* Which times: since boot, sleep included; or the wall clock's, also when it is set. */
enum alarm_clock {
	ALARM_BOOT,
	ALARM_WALL,
	ALARM_CLOCKS
};

enum alarm_make {
	ALARM_AUTO,	/* the device if it can be opened, else the process */
	ALARM_DEVICE,
	ALARM_PROCESS
};

/**
 * struct alarm - something to be woken for
 * @id: what alarms_take() gives out; any number, which the owner can tell from others.
 * @clock: which clock its time is of.
 *
 * All that follows is private to the make. Memory of zeros is an idle alarm.
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
		TAILQ_ENTRY(alarm) refused;
	};
	uint8_t clock;
	uint8_t state;
};

struct alarms;

/*
 * Open the alarms; @make may be ALARM_AUTO. Returns 0, and *@alarms is for alarms_close();
 * or a negative errno: what opening the device says, if that was asked for; -ENOMEM,
 * -EMFILE.
 */
int alarms_open(struct alarms **alarms, enum alarm_make make);

/* End all alarms. Those that are armed may be forgotten, and their memory freed. */
void alarms_close(struct alarms *alarms);

/* ALARM_DEVICE or ALARM_PROCESS; and how it is called: "device" or "process". */
enum alarm_make alarms_make(const struct alarms *alarms);
const char *alarms_name(const struct alarms *alarms);

/* What a clock says now, in ns. */
uint64_t alarms_now_ns(enum alarm_clock clock);

/*
 * Arm an idle alarm for an absolute time, which may be past. Returns 0; -ENOSPC, -ENOMEM:
 * there is no room for one more, and it stays idle.
 */
int alarm_add(struct alarms *alarms, struct alarm *alarm, uint64_t id,
	      enum alarm_clock clock, uint64_t time_ns);

/*
 * Give an alarm that is armed, fired or idle another time; its id and clock stay. As
 * alarm_add(); with -ENOMEM it stays as it was. Of those of its new time it is the youngest.
 */
int alarm_move(struct alarms *alarms, struct alarm *alarm, uint64_t time_ns);

/* Make an alarm idle: its id does not come any more. Its memory can be freed then. */
void alarm_cancel(struct alarms *alarms, struct alarm *alarm);

/* Is it armed or fired: will its id come? */
bool alarm_pending(const struct alarm *alarm);

/*
 * The file to poll for EPOLLIN, level-triggered. Before the caller sleeps, alarms_flush()
 * must have been called: what was added, moved and cancelled since goes to the kernel with
 * it, in one system call. Returns 0; or -ENOSPC, and alarms_refused() has those alarms.
 */
int alarms_fd(const struct alarms *alarms);
int alarms_flush(struct alarms *alarms);

/*
 * One id after the other that the device had no room for, since alarms_flush(): its alarm
 * is idle. Returns false when there are no more. The make in the process has none.
 */
bool alarms_refused(struct alarms *alarms, uint64_t *id);

/*
 * Take what is due: up to @nr ids. Returns how many; as many as @nr, and there may be more.
 * Never waits.
 */
size_t alarms_take(struct alarms *alarms, uint64_t *ids, size_t nr);

/*
 * How often the wall clock was set since the last call: whoever keeps a difference of the
 * clocks works it out anew. Alarms of ALARM_WALL follow by themselves.
 */
unsigned int alarms_clock_was_set(struct alarms *alarms);

#endif /* TWHEELQ_ALARM_H */
