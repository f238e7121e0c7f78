// SPDX-License-Identifier: GPL-2.0
/*
 * The module's wheel in virtual time.
 *
 * The wheel is kmod/wheel.c as it is.  What the module has around it is here in its
 * smallest form, by the same rules (kmod/base.c, kmod/base_run.c):
 *
 *   - one hardware timer, set for the next tick that has work, at the next tick at the
 *     earliest;
 *   - it is set again when an event is added that needs an earlier tick, and at the end
 *     of each run, but not when an event is cancelled: at most one call is in vain;
 *   - a run moves at most BATCH events in a hold of the lock, prefetch included, and goes
 *     on as long as there is work at the current tick.
 *
 * A run takes no time here, and the timer calls exactly at its tick.  So what is late, is
 * late because the wheel or the slack makes it so.
 *
 * It is compiled for WebAssembly without a library, and for tests to machine code.
 */
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/types.h>

#include "../../kmod/wheel.h"
#include "view.h"

/* BASE_BATCH of kmod/base.h. */
#define BATCH	64

/**
 * struct view_event - an event
 * @node: its place on the wheel.
 * @seen: the place of @node when view_report() looked at it last.
 */
struct view_event {
	struct wheel_node node;
	u64 seen;
};

static struct wheel wheel;
static struct view_event events[VIEW_EVENTS];
static u32 nr_events;

static u64 now_tick;
static u64 programmed_tick;
static bool running;
static u64 expired_before;

static struct view_numbers numbers;
static u32 fired_ids[VIEW_ROOM];
static double fired_ticks[VIEW_ROOM];
static u32 nr_fired;
static struct view_move moves[VIEW_ROOM];
static u32 nr_reported;
static u32 counts[WHEEL_LEVELS * WHEEL_SLOTS];
static double mins[WHEEL_LEVELS * WHEEL_SLOTS];
static u8 flags[WHEEL_LEVELS * WHEEL_SLOTS];
static u32 list[VIEW_ROOM];

static double tick_or_never(u64 tick)
{
	return tick == WHEEL_NEVER ? VIEW_NEVER : (double)tick;
}

/* Forget everything, and begin at a tick. */
void view_start(double now)
{
	now_tick = now;
	wheel_init(&wheel, now_tick);
	for (u32 i = 0; i < nr_events; i++)
		wheel_node_init(&events[i].node);
	nr_events = 0;
	programmed_tick = WHEEL_NEVER;
	running = false;
	nr_fired = 0;
	nr_reported = 0;
	numbers = (struct view_numbers){ 0 };
}

/* Set the hardware timer for a tick, but not for one that has begun. */
static void program(u64 tick)
{
	programmed_tick = tick == WHEEL_NEVER ? tick : max(tick, now_tick + 1);
}

/*
 * Add an event that may come out at any tick from @first to @last. The ids begin at 0, and
 * each is used once.
 *
 * Return: the tick that was chosen, or VIEW_NEVER if there is no room for the event.
 */
double view_add(u32 id, double first, double last)
{
	u64 due, tick;

	if (id >= VIEW_EVENTS)
		return VIEW_NEVER;
	for (; nr_events <= id; nr_events++)
		wheel_node_init(&events[nr_events].node);
	due = wheel_roundest(max((u64)first, now_tick + 1), last);
	tick = wheel_add(&wheel, &events[id].node, due, now_tick);
	events[id].seen = events[id].node.place;
	if (tick < programmed_tick)
		program(tick);
	return due;
}

/* Return: the event was armed, and is not any more. */
bool view_cancel(u32 id)
{
	if (id >= nr_events || !wheel_queued(&events[id].node))
		return false;
	wheel_del(&wheel, &events[id].node);
	events[id].seen = events[id].node.place;
	return true;
}

/* Where a node is, as in &struct view_move.to. */
static u32 place_number(u64 place)
{
	struct wheel_node node = { .place = place };
	u32 level = wheel_level(&node);

	if (level >= WHEEL_LEVELS)
		return VIEW_OUT | wheel_due(&node) % WHEEL_SLOTS;
	return level * WHEEL_SLOTS +
	       (wheel_due(&node) >> (WHEEL_LEVEL_SHIFT * level)) % WHEEL_SLOTS;
}

static void report_fired(struct list_head *out)
{
	struct wheel_node *node, *next;

	list_for_each_entry_safe(node, next, out, list) {
		struct view_event *event = container_of(node, struct view_event, node);

		fired_ids[nr_fired] = event - events;
		fired_ticks[nr_fired] = now_tick;
		nr_fired++;
		wheel_del(&wheel, node);
		numbers.expired++;
	}
}

/* A hold of the lock: what is due comes out; what is left of the batch is for prefetch. */
static void hold(void)
{
	unsigned int budget = BATCH;
	LIST_HEAD(out);

	if (!wheel_advance(&wheel, now_tick, &budget, &out))
		wheel_prefetch(&wheel, now_tick, &budget);
	report_fired(&out);
}

/* The hardware timer calls. */
static void begin_run(void)
{
	now_tick = programmed_tick;
	numbers.wakeups++;
	expired_before = numbers.expired;
	running = true;
}

static void end_run(void)
{
	running = false;
	if (numbers.expired == expired_before)
		numbers.idle_wakeups++;
	program(wheel_next(&wheel));
}

/*
 * Let time pass until a tick, with all wakeups on the way.
 *
 * Return: true if there was no room for what had to be reported; the caller reads it and
 * calls again with the same tick.
 */
bool view_advance(double until)
{
	nr_fired = 0;
	for (;;) {
		if (!running) {
			if (programmed_tick > (u64)until)
				break;
			begin_run();
		}
		do {
			if (nr_fired + BATCH > VIEW_ROOM)
				return true;
			hold();
		} while (wheel_next(&wheel) <= now_tick);
		end_run();
	}
	now_tick = max(now_tick, (u64)until);
	nr_reported = 0;
	return false;
}

/*
 * List events in view_moves() that are not where they were when this was asked last, after
 * view_advance() has come to its end. An event that was moved twice is one move.
 *
 * Return: how many are listed; the caller asks again until it is 0.
 */
u32 view_report(void)
{
	u32 nr = 0;

	for (; nr_reported < nr_events && nr < VIEW_ROOM; nr_reported++) {
		struct view_event *event = &events[nr_reported];

		if (event->seen == event->node.place)
			continue;
		moves[nr++] = (struct view_move){
			.id = nr_reported,
			.from = place_number(event->seen),
			.to = place_number(event->node.place),
		};
		event->seen = event->node.place;
	}
	return nr;
}

static void note_slot(u32 level, u32 index)
{
	const struct wheel_slot *slot = &wheel.slots[level][index];
	u32 i = level * WHEEL_SLOTS + index;

	counts[i] = slot->count;
	mins[i] = tick_or_never(slot->min);
	flags[i] = (wheel.occupied.slots[level] >> index & 1 ? VIEW_OCCUPIED : 0) |
		   (wheel.crowded.slots[level] >> index & 1 ? VIEW_CROWDED : 0) |
		   (wheel.urgent.slots[level] >> index & 1 ? VIEW_URGENT : 0);
}

/* Bring what view_numbers(), view_counts(), view_mins() and view_flags() show up to date. */
void view_state(void)
{
	numbers.now = now_tick;
	numbers.clk = wheel.clk;
	numbers.programmed = tick_or_never(programmed_tick);
	numbers.next = tick_or_never(wheel_next(&wheel));
	numbers.armed = wheel.armed;
	numbers.cascaded = wheel.cascaded;
	numbers.prefetched = wheel.prefetched;
	numbers.nr_fired = nr_fired;
	for (u32 level = 0; level < WHEEL_LEVELS; level++)
		for (u32 index = 0; index < WHEEL_SLOTS; index++)
			note_slot(level, index);
}

/* List the events of a slot in view_list(); return how many are listed. */
u32 view_slot(u32 level, u32 slot)
{
	u32 nr = 0;

	for (u32 id = 0; id < nr_events && nr < VIEW_ROOM; id++)
		if (place_number(events[id].node.place) == level * WHEEL_SLOTS + slot)
			list[nr++] = id;
	return nr;
}

/* The tick of an event that was added. */
double view_due(u32 id)
{
	return wheel_due(&events[id].node);
}

/* Where an event is, as in &struct view_move; -1 if it is nowhere. */
int32_t view_place(u32 id)
{
	u32 place = id < nr_events ? place_number(events[id].node.place) : VIEW_OUT;

	return place & VIEW_OUT ? -1 : (int32_t)place;
}

/* Return: NULL, or the invariant of the wheel that is broken. */
const char *view_check(void)
{
	return wheel_check(&wheel);
}

const struct view_numbers *view_numbers(void)
{
	return &numbers;
}

const u32 *view_fired_ids(void)
{
	return fired_ids;
}

const double *view_fired_ticks(void)
{
	return fired_ticks;
}

const struct view_move *view_moves(void)
{
	return moves;
}

const u32 *view_counts(void)
{
	return counts;
}

const double *view_mins(void)
{
	return mins;
}

const u8 *view_flags(void)
{
	return flags;
}

const u32 *view_list(void)
{
	return list;
}
