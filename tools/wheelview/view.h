/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The module's wheel in virtual time, for a page or a test: view.c tells what it adds to
 * kmod/wheel.c.
 *
 * Ticks are doubles, because a number in JavaScript is one: a double holds each tick up to
 * 2^53, which is more than any time in nanoseconds has, at the module's default tick.
 */
#ifndef _WHEELVIEW_VIEW_H
#define _WHEELVIEW_VIEW_H

#include <stdbool.h>
#include <stdint.h>

/* How many events one run of the page can have, from view_start() on. */
#define VIEW_EVENTS	262144

/* How many events view_advance(), view_report() and view_slot() tell of in one call. */
#define VIEW_ROOM	4096

/* view_advance() and view_state() tell this where there is no tick. */
#define VIEW_NEVER	(-1.0)

/* A bit of struct view_move.to: the event came out, of that slot of level 0. */
#define VIEW_OUT	0x8000

/**
 * struct view_move - an event that was moved, or came out
 * @id: the event.
 * @from: 64 times the level, plus the slot.
 * @to: the same, or VIEW_OUT and the slot.
 */
struct view_move {
	uint32_t id;
	uint16_t from;
	uint16_t to;
};

/**
 * struct view_numbers - the wheel and the hardware timer at one moment
 * @now: the current tick.
 * @clk: the tick at which the wheel stands.
 * @programmed: the tick for which the hardware timer is set.
 * @next: wheel_next().
 * @armed: how many events are in slots.
 * @wakeups: how often the hardware timer has called.
 * @idle_wakeups: how often of these nothing came out.
 * @expired: how many events have come out.
 * @cascaded: how often an event was moved to a lower level at its slot's min.
 * @prefetched: how often it was moved ahead of that.
 * @nr_fired: how many expirations the last view_advance() tells of.
 */
struct view_numbers {
	double now;
	double clk;
	double programmed;
	double next;
	double armed;
	double wakeups;
	double idle_wakeups;
	double expired;
	double cascaded;
	double prefetched;
	double nr_fired;
};

/* The bits of view_flags(). */
enum {
	VIEW_OCCUPIED = 1,
	VIEW_CROWDED = 2,
	VIEW_URGENT = 4,
};

void view_start(double now);
double view_add(uint32_t id, double first, double last);
bool view_cancel(uint32_t id);
bool view_advance(double until);
uint32_t view_report(void);
void view_state(void);
uint32_t view_slot(uint32_t level, uint32_t slot);
double view_due(uint32_t id);
int32_t view_place(uint32_t id);
const char *view_check(void);

const struct view_numbers *view_numbers(void);
const uint32_t *view_fired_ids(void);
const double *view_fired_ticks(void);
const struct view_move *view_moves(void);
const uint32_t *view_counts(void);
const double *view_mins(void);
const uint8_t *view_flags(void);
const uint32_t *view_list(void);

#endif /* _WHEELVIEW_VIEW_H */
