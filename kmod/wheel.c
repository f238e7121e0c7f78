// SPDX-License-Identifier: GPL-2.0
/*
 * A hierarchical timing wheel: arm and cancel in O(1), tick-exact expiry.
 *
 * The structure
 * -------------
 * Time is counted in ticks.  There are eleven levels of 64 slots; a slot of
 * level L spans 32^L ticks, its window.  A level reaches 64 of its own slots
 * from where the wheel stands (clk), which is two slots of the next level:
 *
 *           clk
 *            v
 *  level 0  |#|#|.|#|.|..|#|            64 slots of 1 tick
 *           |--------------|
 *                   32 of them
 *           |<---->|
 *  level 1  |  .   |  .   |  #   |  #   |  ..  |  #   |   64 slots of 32 ticks
 *           |-----------------------------------------|
 *                         32 of them
 *           |<------------------->|
 *  level 2  |          .          |          .          |   #   |  ..  64 of 1024
 *
 * Eleven levels reach 63 * 2^50 ticks from any clk: there is no maximum delay
 * that a clock could ask for, no list of the too distant, and no slot of the
 * top level that wraps onto itself.
 *
 * A node due at tick d goes to the lowest level in reach: the least L with
 * (d >> 5L) - (clk >> 5L) < 64, to slot (d >> 5L) & 63, at its tail.  So the
 * slots of a level, taken from clk's own on and round, are in the order of
 * time, and the first one occupied holds the level's earliest node.
 *
 * Finding the next tick that has work is a rotation and a find-first-bit for
 * each occupied level, and the least of the slots' min.  No scan, no heap.
 *
 * A slot of more than WHEEL_CROWDED nodes is marked as crowded, for all to see.
 *
 * The lazy cascade
 * ----------------
 * A slot above level 0 is moved down when its min is reached, and not when its
 * window begins.  When clk gets to the least min, every slot that min belongs to
 * is moved down, from the top level on, until the nodes of that tick are in
 * clk's own slot of level 0 and come out.  A lone node at whatever distance is
 * touched once, and one that is cancelled before its time is never touched.
 *
 * The order
 * ---------
 * Nodes of the same tick come out in the order in which they were armed.  As clk
 * only grows, of two nodes of one tick the older one is on a higher or on the
 * same level, and there before the younger.  To keep that, a cascade takes a slot
 * from its tail and puts each node to the front of a lower slot: not simply of
 * the lowest in reach, but of the first one below, from the top, that may hold a
 * node of the same tick (it is occupied, and its min is not after that tick).
 * Why: at clk 0, z is armed for 2050 and x for 2100 (one slot of level 2).  At
 * clk 100, y is armed for 2100 (level 1).  z's time takes x down; on level 0, x
 * would be below y, which is younger, and y would come out first.
 *
 * All nodes of another wheel can be taken over in the same way, one by one, as if
 * from a level above the top one: wheel_pop(), wheel_add_older().
 *
 * A wheel never goes back: clk only grows while there is a node.  wheels.c tells
 * what becomes of a clock that is set back.
 *
 * Bounded steps
 * -------------
 * wheel_advance() moves at most as many nodes as it is told to and then returns,
 * with the wheel consistent: clk stays at a tick until that tick is empty.  The
 * caller may drop its lock in between, and add and remove what it likes.
 *
 * What always holds (wheel_check() looks)
 * ---------------------------------------
 * - no node is due before clk;
 * - each node is in the slot of its due tick, and its level reaches that slot;
 * - a slot's occupied bit is set if and only if it has a node, its crowded bit if
 *   and only if it has more than WHEEL_CROWDED; a level's bit is set if and only
 *   if one of its slots is occupied;
 * - a slot's count is the number of its nodes, its min is in its window and not
 *   after the due tick of any of them;
 * - wheel_next() is not after the earliest due tick.
 */
#include <linux/bitops.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "wheel.h"

/* The number of the window that @tick falls into on @level. */
static u64 window_of(u64 tick, unsigned int level)
{
	return tick >> (WHEEL_LEVEL_SHIFT * level);
}

static unsigned int slot_index(u64 tick, unsigned int level)
{
	return window_of(tick, level) % WHEEL_SLOTS;
}

static bool in_reach(u64 clk, u64 due, unsigned int level)
{
	return window_of(due, level) - window_of(clk, level) < WHEEL_SLOTS;
}

/* The lowest level in reach.  @due is not before @clk. */
static unsigned int lowest_level(u64 clk, u64 due)
{
	u64 distance = due - clk;
	unsigned int level;

	if (distance < WHEEL_SLOTS)
		return 0;

	/* The least level on which the distance is less than 64 windows ... */
	level = (fls64(distance) - 2) / WHEEL_LEVEL_SHIFT;
	/* ... but two ticks may be one window further apart than that. */
	return in_reach(clk, due, level) ? level : level + 1;
}

static struct wheel_slot *slot_of(struct wheel *wheel, u64 tick,
				  unsigned int level)
{
	return &wheel->slots[level][slot_index(tick, level)];
}

/* Account for @node, which the caller is about to link into its slot. */
static struct wheel_slot *slot_enter(struct wheel *wheel,
				     struct wheel_node *node, u64 due,
				     unsigned int level)
{
	struct wheel_slot *slot = slot_of(wheel, due, level);
	u64 bit = BIT_ULL(slot_index(due, level));

	node->place = wheel_place(due, level, wheel->side);
	if (!slot->count++) {
		slot->min = due;
		wheel->occupied[level] |= bit;
		wheel->levels |= BIT(level);
	} else {
		slot->min = min(slot->min, due);
	}
	if (slot->count == WHEEL_CROWDED + 1)
		wheel->crowded[level] |= bit;
	wheel->armed++;
	return slot;
}

/* Take @node out of its slot. */
static void slot_leave(struct wheel *wheel, struct wheel_node *node)
{
	unsigned int level = wheel_level(node);
	u64 due = wheel_due(node);
	struct wheel_slot *slot = slot_of(wheel, due, level);
	u64 bit = BIT_ULL(slot_index(due, level));

	list_del(&node->list);
	if (!--slot->count) {
		wheel->occupied[level] &= ~bit;
		if (!wheel->occupied[level])
			wheel->levels &= ~BIT(level);
	}
	if (slot->count == WHEEL_CROWDED)
		wheel->crowded[level] &= ~bit;
	wheel->armed--;
}

/**
 * wheel_init() - make an empty wheel
 * @wheel: the wheel.
 * @now: the tick it stands at.
 */
void wheel_init(struct wheel *wheel, u64 now)
{
	unsigned int level, i;

	memset(wheel, 0, sizeof(*wheel));
	wheel->clk = now;
	for (level = 0; level < WHEEL_LEVELS; level++)
		for (i = 0; i < WHEEL_SLOTS; i++)
			INIT_LIST_HEAD(&wheel->slots[level][i].nodes);
}

/**
 * wheel_restart() - let an empty wheel stand at another tick, also an earlier one
 * @wheel: a wheel without a node.
 * @now: the tick.
 */
void wheel_restart(struct wheel *wheel, u64 now)
{
	wheel->clk = now;
}

/* The first slot of a level that is occupied, in the order of time from clk on. */
static unsigned int first_slot(const struct wheel *wheel, unsigned int level)
{
	unsigned int here = slot_index(wheel->clk, level);
	unsigned int ahead = __ffs64(ror64(wheel->occupied[level], here));

	return (here + ahead) % WHEEL_SLOTS;
}

/**
 * wheel_next() - the next tick that has work
 * @wheel: the wheel.
 *
 * Return: a tick not after the earliest due tick, and equal to it unless a node
 * was removed; WHEEL_NEVER if the wheel is empty.
 */
u64 wheel_next(const struct wheel *wheel)
{
	u64 next = WHEEL_NEVER;
	u64 levels;

	for (levels = wheel->levels; levels; levels &= levels - 1) {
		unsigned int level = __ffs64(levels);
		unsigned int first = first_slot(wheel, level);

		next = min(next, wheel->slots[level][first].min);
	}
	return next;
}

/**
 * wheel_roundest() - choose a tick that neighbours are likely to choose too
 * @first: the first tick that will do.
 * @last: the last one, less than 2^63; @first if it is before that.
 *
 * Return: @first, rounded up to a multiple of the largest power of two that is
 * not more than the number of ticks to choose from.
 */
u64 wheel_roundest(u64 first, u64 last)
{
	u64 step;

	if (last <= first)
		return first;
	step = 1ULL << (fls64(last - first + 1) - 1);
	return (first + step - 1) & ~(step - 1);
}

/* Let a wheel that lags behind catch up: it would place a node too high. */
static void catch_up(struct wheel *wheel, u64 now)
{
	if (wheel->clk < now)
		wheel->clk = max(wheel->clk, min(now, wheel_next(wheel)));
}

/**
 * wheel_add() - let a node wait for a tick
 * @wheel: the wheel.
 * @node: a node that is nowhere.
 * @due: the tick to wait for, at most WHEEL_REACH from @now; one before clk is
 *	taken as clk.
 * @now: the current tick.
 *
 * Return: the tick at which the wheel has to be advanced because of that.
 */
u64 wheel_add(struct wheel *wheel, struct wheel_node *node, u64 due, u64 now)
{
	struct wheel_slot *slot;

	catch_up(wheel, now);
	due = max(due, wheel->clk);
	slot = slot_enter(wheel, node, due, lowest_level(wheel->clk, due));
	list_add_tail(&node->list, &slot->nodes);
	return due;
}

/**
 * wheel_del() - take a node out, wherever it is
 * @wheel: the wheel.
 * @node: a node in a slot of @wheel, or on the list of what came out of it.
 */
void wheel_del(struct wheel *wheel, struct wheel_node *node)
{
	if (wheel_level(node) == WHEEL_OUT)
		list_del(&node->list);
	else
		slot_leave(wheel, node);
	node->place = wheel_place(wheel_due(node), WHEEL_IDLE, 0);
}

/*
 * The level below @above for a node of tick @due that is older than any node of
 * that tick down there: see "The order" above.
 */
static unsigned int level_of_older(struct wheel *wheel, u64 due,
				   unsigned int above)
{
	unsigned int lowest = lowest_level(wheel->clk, due);
	unsigned int level;

	for (level = above - 1; level > lowest; level--) {
		struct wheel_slot *slot = slot_of(wheel, due, level);

		if (slot->count && slot->min <= due)
			break;
	}
	return level;
}

/* Move nodes of @slot down, from its tail; return how many. */
static unsigned int cascade(struct wheel *wheel, struct wheel_slot *slot,
			    unsigned int budget)
{
	unsigned int moved = 0;

	while (slot->count && moved < budget) {
		struct wheel_node *node =
			list_last_entry(&slot->nodes, struct wheel_node, list);
		u64 due = wheel_due(node);
		unsigned int level = level_of_older(wheel, due,
						    wheel_level(node));

		slot_leave(wheel, node);
		list_add(&node->list,
			 &slot_enter(wheel, node, due, level)->nodes);
		moved++;
	}
	wheel->cascaded += moved;
	return moved;
}

/**
 * wheel_add_older() - add a node that is older than all others of its tick
 * @wheel: the wheel.
 * @node: a node that is nowhere.
 * @due: as for wheel_add().
 * @now: the current tick.
 *
 * It comes out before the nodes that are on the wheel for the same tick.  With
 * wheel_pop(), all of one wheel moves to another one and stays in order.
 *
 * Return: as wheel_add().
 */
u64 wheel_add_older(struct wheel *wheel, struct wheel_node *node, u64 due,
		    u64 now)
{
	unsigned int level;

	catch_up(wheel, now);
	due = max(due, wheel->clk);
	level = level_of_older(wheel, due, WHEEL_LEVELS);
	list_add(&node->list, &slot_enter(wheel, node, due, level)->nodes);
	return due;
}

/**
 * wheel_pop() - take a node out, of those of its tick the youngest
 * @wheel: a wheel that is not empty.
 *
 * Goes by levels from the lowest one up, and on a level by time.
 *
 * Return: the node, which is nowhere and still has its due tick.
 */
struct wheel_node *wheel_pop(struct wheel *wheel)
{
	unsigned int level = __ffs64(wheel->levels);
	unsigned int index = first_slot(wheel, level);
	struct wheel_node *node =
		list_last_entry(&wheel->slots[level][index].nodes,
				struct wheel_node, list);

	wheel_del(wheel, node);
	return node;
}

/* Take nodes that are due at clk out, oldest first; return how many. */
static unsigned int take_due(struct wheel *wheel, unsigned int budget,
			     struct list_head *out)
{
	struct wheel_slot *slot = slot_of(wheel, wheel->clk, 0);
	unsigned int taken = 0;

	while (slot->count && taken < budget) {
		struct wheel_node *node =
			list_first_entry(&slot->nodes, struct wheel_node, list);

		slot_leave(wheel, node);
		list_add_tail(&node->list, out);
		node->place = wheel_place(wheel->clk, WHEEL_OUT, wheel->side);
		taken++;
	}
	return taken;
}

/* Do the work of the tick clk stands at; return how many nodes were touched. */
static unsigned int run_tick(struct wheel *wheel, unsigned int budget,
			     struct list_head *out)
{
	unsigned int level, touched = 0;

	for (level = fls(wheel->levels); level-- > 1;) {
		struct wheel_slot *slot = slot_of(wheel, wheel->clk, level);

		if (slot->count && slot->min <= wheel->clk)
			touched += cascade(wheel, slot, budget - touched);
		if (touched == budget)
			return touched;
	}
	return touched + take_due(wheel, budget - touched, out);
}

/**
 * wheel_advance() - go on towards a tick
 * @wheel: the wheel.
 * @now: the current tick; time does not run backwards.
 * @budget: how many nodes may be touched; becomes how many of them were not.
 * @out: nodes that are due are added to the tail of this list, by due tick, and
 *	of one tick by age.  Until the caller initialises a node again, wheel_del()
 *	takes it off the list.
 *
 * Return: true if there is more to do at or before @now.
 */
bool wheel_advance(struct wheel *wheel, u64 now, unsigned int *budget,
		   struct list_head *out)
{
	for (;;) {
		u64 next = wheel_next(wheel);

		if (next > now) {
			wheel->clk = max(wheel->clk, now);
			return false;
		}
		if (!*budget)
			return true;
		wheel->clk = max(wheel->clk, next);
		*budget -= run_tick(wheel, *budget, out);
	}
}

#ifdef WHEEL_CHECK
/* The invariants of one slot; the earliest due tick in it goes to @earliest. */
static const char *check_slot(const struct wheel *wheel, unsigned int level,
			      unsigned int index, u64 *earliest)
{
	const struct wheel_slot *slot = &wheel->slots[level][index];
	const struct wheel_node *node;
	bool occupied = wheel->occupied[level] & BIT_ULL(index);
	bool crowded = wheel->crowded[level] & BIT_ULL(index);
	u32 count = 0;
	u64 due;

	list_for_each_entry(node, &slot->nodes, list) {
		count++;
		due = wheel_due(node);
		*earliest = min(*earliest, due);
		if (due < wheel->clk)
			return "a node is due before clk";
		if (wheel_level(node) != level)
			return "a node is not on the level it names";
		if (wheel_side(node) != wheel->side)
			return "a node is not on the wheel it names";
		if (slot_index(due, level) != index)
			return "a node is not in the slot of its due tick";
		if (!in_reach(wheel->clk, due, level))
			return "a node is out of its level's reach";
		if (slot->min > due)
			return "a slot's min is after the due tick of a node";
		if (window_of(slot->min, level) != window_of(due, level))
			return "a slot's min is outside of its window";
	}
	if (count != slot->count)
		return "a slot's count is not the number of its nodes";
	if (occupied == !count)
		return "an occupied bit is wrong";
	if (crowded ? count <= WHEEL_CROWDED : count > WHEEL_CROWDED)
		return "a crowded bit is wrong";
	return NULL;
}

/**
 * wheel_check() - look whether the invariants hold, for tests; O(nodes)
 * @wheel: the wheel.
 *
 * Return: NULL, or the invariant that is broken.
 */
const char *wheel_check(const struct wheel *wheel)
{
	u64 earliest = WHEEL_NEVER, armed = 0;
	unsigned int level, i;

	for (level = 0; level < WHEEL_LEVELS; level++) {
		for (i = 0; i < WHEEL_SLOTS; i++) {
			const char *broken;

			broken = check_slot(wheel, level, i, &earliest);
			if (broken)
				return broken;
			armed += wheel->slots[level][i].count;
		}
		if (!!(wheel->levels & BIT(level)) != !!wheel->occupied[level])
			return "a level's bit is wrong";
	}
	if (armed != wheel->armed)
		return "armed is not the number of nodes";
	if (wheel_next(wheel) > earliest)
		return "next is after the earliest due tick";
	return NULL;
}
#endif /* WHEEL_CHECK */
