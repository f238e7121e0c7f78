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
 * Eleven levels reach 63 * 2^50 ticks from any clk.  No delay on any clock is longer, so
 * there is no list of too distant nodes, and no slot of the top level wraps onto itself.
 *
 * A node due at tick d goes to the lowest level in reach: the least L with
 * (d >> 5L) - (clk >> 5L) < 64, to slot (d >> 5L) & 63, at its tail.  So the
 * slots of a level, taken from clk's own on and round, are in the order of
 * time, and the first one occupied holds the level's earliest node.
 *
 * To find the next tick that has work takes a rotation and a find-first-bit for each
 * occupied level, and the least min of the slots found.  No scan, no heap.  While
 * level 0 has a node that is due before upper_min, one rotation is enough.
 *
 * The lists of a slot
 * -------------------
 * A list is walked by one load after another, each of which may have to wait for
 * memory.  So a slot of levels 1 to WHEEL_LISTED has WHEEL_LISTS lists, and a cascade
 * takes a node of each in turn: while one is moved, the next ones of the other lists
 * are on their way.  A hash of the due tick chooses the list:
 *
 *   slot   min 2050   count 5   filled 0b101
 *     list 0   |<-> 2060 <-> 2050 <-> 2060        in the order of arming;
 *     list 1   | empty                            equal ticks share it
 *     list 2   |<-> 2071 <-> 2071
 *     ..
 *
 * A slot of level 0 holds one tick only, and those of the high levels are few and are
 * moved rarely: these have one list each.
 *
 * The lazy cascade
 * ----------------
 * A slot above level 0 is moved down when its min is reached, and not when its
 * window begins.  When clk gets to the least min, every slot that min belongs to
 * is moved down, from the top level on, until the nodes of that tick are in
 * clk's own slot of level 0 and come out.  A lone node at whatever distance is
 * touched once, and one that is cancelled before its time is never touched.
 *
 * Prefetch
 * --------
 * With many nodes in a slot, the one that is due first would have to wait for all the
 * others to be moved.  So wheel_prefetch() moves slots of more than WHEEL_CROWDED nodes
 * down ahead of their time.  Slot K of level L may be moved down from the beginning of
 * the window before its own on.  Then all of it is in reach of level L - 1, and
 * wheel_add() puts no more nodes there:
 *
 *            may be moved down               its window
 *           |----------------------------.--|-----------------------------|
 *        (K - 1) << 5L                   F  K << 5L
 *
 * A caller that has advanced the wheel for nodes that were due uses the rest of its
 * budget for prefetch: no time is too early in that window, and the slot with the least
 * min comes first.  Usually that is enough.
 *
 * From F on, prefetch is forced: it goes on as long as the slot is crowded, in rounds of
 * WHEEL_URGENT nodes in one tick.  Between F and the slot's own window there is
 * the span of a slot of the next lower level, whose own prefetch needs that time, and a
 * tick for each WHEEL_URGENT nodes in the slot:
 *
 *   F = (K << 5L) - 32^(L - 1) - count / WHEEL_URGENT rounded up
 *
 * A slot of more than WHEEL_URGENT nodes is urgent: wheel_next() does not go past its F.
 * So there is at most one such wakeup for each WHEEL_URGENT nodes that are moved, and
 * none if there are enough other wakeups in that window.  With each round F gets later by
 * a tick.  If F was reached late, one round follows another until F is in the future or
 * the slot is not crowded.  Nodes that are due come out first, before each part of a
 * round.
 *
 * The order
 * ---------
 * Nodes of the same tick come out in the order in which they were armed.  As clk
 * only grows, of two nodes of one tick the older one is on a higher or on the
 * same level, and there before the younger.  To keep that, a cascade takes a slot
 * from its tails and puts each node to the front of a lower slot: not simply of
 * the lowest in reach, but of the first one below, from the top, that may hold a
 * node of the same tick (it is occupied, and its min is not after that tick).
 * Why: at clk 0, z is armed for 2050 and x for 2100 (one slot of level 2).  At
 * clk 100, y is armed for 2100 (level 1).  z's time takes x down; on level 0, x
 * would be below y, which is younger, and y would come out first.  The same
 * holds for prefetch; the nodes that it leaves in the slot are older than those that it
 * has moved.
 *
 * All nodes of another wheel can be taken over in the same way, one by one, as if
 * from a level above the top one: wheel_pop(), wheel_add_older().
 *
 * A wheel never goes back: clk only grows while there is a node.  wheels.c tells what is
 * done when a clock is set back.
 *
 * Bounded steps
 * -------------
 * wheel_advance() and wheel_prefetch() move at most as many nodes as their budget allows
 * and then return, with the wheel consistent: clk stays at a tick until that tick is
 * empty.  The caller may drop its lock in between, and add and remove nodes.
 *
 * What always holds (wheel_check() checks it)
 * ---------------------------------------
 * - no node is due before clk;
 * - each node is in the slot of its due tick, and its level reaches that slot;
 * - a slot's occupied bit is set if and only if it has a node, its crowded bit if
 *   and only if it has more than WHEEL_CROWDED, its urgent bit if and only if it has
 *   more than WHEEL_URGENT; a level's bit is set if and only if one of its slots' is;
 * - a slot's count is the number of its nodes, its min is in its window and not
 *   after the due tick of any of them, and WHEEL_NEVER if there is none;
 * - a node is in the list of its due tick, which is marked as filled;
 * - upper_min is not after the min of any slot above level 0;
 * - wheel_next() is not before clk and not after the earliest due tick.
 */
#include <linux/bitops.h>
#include <linux/build_bug.h>
#include <linux/compiler.h>
#include <linux/hash.h>
#include <linux/list.h>
#include <linux/math.h>
#include <linux/minmax.h>
#include <linux/prefetch.h>
#include <linux/string.h>

#include "wheel.h"

/* The number of the window that @tick falls into on @level. */
static u64 window_of(u64 tick, unsigned int level)
{
	return tick >> (WHEEL_LEVEL_SHIFT * level);
}

static size_t slot_index(u64 tick, unsigned int level)
{
	return window_of(tick, level) % WHEEL_SLOTS;
}

static bool in_reach(u64 clk, u64 due, unsigned int level)
{
	return window_of(due, level) - window_of(clk, level) < WHEEL_SLOTS;
}

/* The least level on which a distance is less than 64 windows, by its highest bit. */
static const u8 level_of_bit[64] = {
	[0 ... 5] = 0,
	[6 ... 10] = 1,
	[11 ... 15] = 2,
	[16 ... 20] = 3,
	[21 ... 25] = 4,
	[26 ... 30] = 5,
	[31 ... 35] = 6,
	[36 ... 40] = 7,
	[41 ... 45] = 8,
	[46 ... 50] = 9,
	[51 ... 63] = 10,
};

static_assert(WHEEL_LEVEL_SHIFT == 5 && WHEEL_LEVELS == 11);

/* The lowest level in reach.  @due is not before @clk. */
static unsigned int lowest_level(u64 clk, u64 due)
{
	unsigned int level = level_of_bit[__fls((due - clk) | 1)];

	/* Two ticks may be one more window apart than their distance has. */
	return in_reach(clk, due, level) ? level : level + 1;
}

static struct wheel_slot *slot_of(struct wheel *wheel, u64 tick,
				  unsigned int level)
{
	return &wheel->slots[level][slot_index(tick, level)];
}

/* &struct wheel_slot.filled has a bit for each list. */
static_assert(WHEEL_LISTS <= 8 && (WHEEL_LISTS & (WHEEL_LISTS - 1)) == 0);

/* The hash of @tick: its lowest bits are the number of the list in a slot. */
static unsigned int hash_of(u64 tick)
{
	return hash_64(tick, 16);
}

static unsigned int list_number(const struct wheel_slot *slot, unsigned int hash)
{
	return hash & slot->mask;
}

static void map_set(struct wheel_map *map, unsigned int level,
		    unsigned int index)
{
	map->slots[level] |= BIT_ULL(index);
	map->levels |= BIT(level);
}

static void map_clear(struct wheel_map *map, unsigned int level,
		      unsigned int index)
{
	map->slots[level] &= ~BIT_ULL(index);
	if (!map->slots[level])
		map->levels &= ~BIT(level);
}

/* The first slot of @level in @map, in the order of time from clk on. */
static unsigned int map_first(const struct wheel_map *map, u64 clk,
			      unsigned int level)
{
	unsigned int here = slot_index(clk, level);

	return (here + __ffs64(ror64(map->slots[level], here))) % WHEEL_SLOTS;
}

/*
 * Adds to a list without the calls that CONFIG_DEBUG_LIST makes of list_add(); __list_del()
 * removes without them.  The lists of the kernel's own timers have no such checks either.
 */
static void link_between(struct wheel_node *node, struct list_head *prev,
			 struct list_head *next)
{
	node->list.prev = prev;
	prev->next = &node->list;
	node->list.next = next;
	next->prev = &node->list;
}

/*
 * The thresholds of a slot's count are multiples of WHEEL_CROWDED: so adding or removing
 * one node only has to check if the count crosses one of these.
 */
static_assert(WHEEL_CROWDED > 1 && WHEEL_URGENT % WHEEL_CROWDED == 0);

/*
 * Account for a node in its slot.  The caller links it, and calls slot_note_growth() if
 * crossed_threshold() says so.
 *
 * Without __always_inline here and below, an ADD takes 371 -> 405 instructions, a MODIFY
 * 449 -> 484 (tools/bench/timers).
 */
static __always_inline struct wheel_slot *slot_enter(struct wheel *wheel,
						     struct wheel_node *node,
						     u64 due, unsigned int level,
						     unsigned int hash)
{
	struct wheel_slot *slot = slot_of(wheel, due, level);

	node->place = wheel_place(due, level, wheel->side);
	if (due < slot->min)
		slot->min = due;
	slot->filled |= BIT(list_number(slot, hash));
	slot->count++;
	return slot;
}

/* The list of a slot that the nodes of a tick are in. */
static struct list_head *list_of(struct wheel *wheel, const struct wheel_slot *slot,
				 unsigned int hash)
{
	struct list_head *list = &wheel->lists[slot->lists + list_number(slot, hash)];

	/* Else gcc works the address out twice: once for its prev. */
	OPTIMIZER_HIDE_VAR(list);
	return list;
}

/* One node was added to a slot: did its count cross a multiple of WHEEL_CROWDED? */
static bool crossed_threshold(const struct wheel_slot *slot)
{
	return slot->count % WHEEL_CROWDED == 1;
}

/* A slot has lost @nr nodes: clear its bits that do not hold any more. */
static noinline void slot_shrank(struct wheel *wheel, unsigned int level,
				 unsigned int index, unsigned int nr)
{
	struct wheel_slot *slot = &wheel->slots[level][index];
	unsigned int after = slot->count, before = after + nr;

	if (!after) {
		slot->min = WHEEL_NEVER;
		slot->filled = 0;
		map_clear(&wheel->occupied, level, index);
	}
	if (before <= WHEEL_CROWDED)
		return;
	if (after <= WHEEL_CROWDED)
		map_clear(&wheel->crowded, level, index);
	if (after <= WHEEL_URGENT && before > WHEEL_URGENT)
		map_clear(&wheel->urgent, level, index);
}

/* Account for @nr nodes that the caller takes out of a slot. */
static void slot_leave(struct wheel *wheel, unsigned int level,
		       unsigned int index, unsigned int nr)
{
	wheel->slots[level][index].count -= nr;
	slot_shrank(wheel, level, index, nr);
}

/* The same for one node. */
static __always_inline void slot_leave_one(struct wheel *wheel, unsigned int level,
					   size_t index)
{
	if (--wheel->slots[level][index].count % WHEEL_CROWDED == 0)
		slot_shrank(wheel, level, index, 1);
}

static bool has_many_lists(unsigned int level)
{
	return level && level <= WHEEL_LISTED;
}

/**
 * wheel_init() - initialise an empty wheel
 * @wheel: the wheel.
 * @now: the tick it stands at.
 */
void wheel_init(struct wheel *wheel, u64 now)
{
	unsigned int level, i, nr, lists = 0;

	memset(wheel, 0, sizeof(*wheel));
	wheel->clk = now;
	wheel->upper_min = WHEEL_NEVER;
	for (level = 0; level < WHEEL_LEVELS; level++) {
		nr = has_many_lists(level) ? WHEEL_LISTS : 1;
		for (i = 0; i < WHEEL_SLOTS; i++) {
			wheel->slots[level][i] = (struct wheel_slot){
				.min = WHEEL_NEVER,
				.lists = lists,
				.mask = nr - 1,
			};
			lists += nr;
		}
	}
	for (i = 0; i < WHEEL_NR_LISTS; i++)
		INIT_LIST_HEAD(&wheel->lists[i]);
}

/**
 * wheel_restart() - move an empty wheel to another tick, also to an earlier one
 * @wheel: a wheel without nodes.
 * @now: the tick.
 */
void wheel_restart(struct wheel *wheel, u64 now)
{
	wheel->clk = now;
	wheel->round = 0;
}

/* The earliest due tick on level 0; WHEEL_NEVER: there is none. */
static u64 least_on_level_0(const struct wheel *wheel)
{
	u64 occupied = wheel->occupied.slots[0];

	if (!occupied)
		return WHEEL_NEVER;
	return wheel->clk + __ffs64(ror64(occupied, wheel->clk % WHEEL_SLOTS));
}

/* The least min above level 0; WHEEL_NEVER: there is none. */
static u64 least_above_level_0(const struct wheel *wheel)
{
	u64 least = WHEEL_NEVER;
	unsigned int levels;

	for (levels = wheel->occupied.levels & ~1; levels; levels &= levels - 1) {
		unsigned int level = __ffs(levels);
		unsigned int first = map_first(&wheel->occupied, wheel->clk, level);

		least = min(least, wheel->slots[level][first].min);
	}
	return least;
}

/* The least min; WHEEL_NEVER if the wheel is empty. */
static u64 least_min(const struct wheel *wheel)
{
	u64 least = least_on_level_0(wheel);

	return least <= wheel->upper_min ? least :
	       min(least, least_above_level_0(wheel));
}

/* The tick from which on the prefetch of a slot is forced: F in "Prefetch" above. */
static u64 forced_tick(const struct wheel *wheel, unsigned int level,
		       const struct wheel_slot *slot)
{
	unsigned int shift = WHEEL_LEVEL_SHIFT * level;
	u64 begin = window_of(slot->min, level) << shift;
	u64 span = 1ULL << shift;
	u64 ahead = (span >> WHEEL_LEVEL_SHIFT) +
		    DIV_ROUND_UP(slot->count, WHEEL_URGENT);

	return max(wheel->clk, begin - min3(ahead, span, begin));
}

/*
 * The count of a slot has crossed a multiple of WHEEL_CROWDED: set its bits.  Returns the
 * tick at which the wheel has to be advanced because of the new node: the slot's forced
 * tick becomes earlier with every WHEEL_URGENT nodes.
 */
static noinline u64 slot_note_growth(struct wheel *wheel, u64 due, unsigned int level)
{
	unsigned int index = slot_index(due, level);
	const struct wheel_slot *slot = &wheel->slots[level][index];

	if (slot->count == 1) {
		map_set(&wheel->occupied, level, index);
		return due;
	}
	if (slot->count == WHEEL_CROWDED + 1)
		map_set(&wheel->crowded, level, index);
	if (slot->count == WHEEL_URGENT + 1)
		map_set(&wheel->urgent, level, index);
	if (!level || slot->count % WHEEL_URGENT != 1)
		return due;
	return min(due, forced_tick(wheel, level, slot));
}

/*
 * The least forced tick of the slots in @map; WHEEL_NEVER: there is none.  On one level,
 * the slots' forced ticks are in the order of time as the slots are.
 */
static u64 least_forced(const struct wheel *wheel, const struct wheel_map *map)
{
	u64 least = WHEEL_NEVER;
	unsigned int levels;

	/* Slots of level 0 cannot be moved down. */
	for (levels = map->levels & ~1; levels; levels &= levels - 1) {
		unsigned int level = __ffs(levels);
		unsigned int first = map_first(map, wheel->clk, level);

		least = min(least, forced_tick(wheel, level,
					       &wheel->slots[level][first]));
	}
	return least;
}

/**
 * wheel_next() - the next tick that has work
 * @wheel: the wheel.
 *
 * Return: a tick that is not before clk and not after the earliest due tick.  It is before
 * the earliest due tick only if a node was removed, or a slot must be prefetched earlier.
 * WHEEL_NEVER if the wheel is empty.
 */
u64 wheel_next(const struct wheel *wheel)
{
	if (wheel->round && wheel->crowded.levels & ~1)
		return wheel->clk;
	return min(least_min(wheel), least_forced(wheel, &wheel->urgent));
}

/**
 * wheel_roundest() - choose a tick that neighbouring nodes are likely to choose, too
 * @first: the first tick to choose from.
 * @last: the last one, less than 2^63; if it is before @first, the result is @first.
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

/* Advance the clk of a wheel that lags behind: it would put a node on too high a level. */
static noinline void catch_up(struct wheel *wheel, u64 now)
{
	if (wheel->clk < now)
		wheel->clk = min(now, least_min(wheel));
}

/* Account for a node that was added on a level; return as wheel_add(). */
static __always_inline u64 note_added(struct wheel *wheel, const struct wheel_slot *slot,
				      u64 due, unsigned int level)
{
	wheel->armed++;
	/* Else gcc keeps a register for whether it is 0, and saves another one. */
	OPTIMIZER_HIDE_VAR(level);
	if (due < wheel->upper_min && level)
		wheel->upper_min = due;
	return crossed_threshold(slot) ? slot_note_growth(wheel, due, level) : due;
}

/* Add a node to a wheel that does not lag behind. */
static __always_inline u64 add_now(struct wheel *wheel, struct wheel_node *node, u64 due)
{
	struct wheel_slot *slot;
	struct list_head *list;
	unsigned int level, hash;

	due = max(due, wheel->clk);
	level = lowest_level(wheel->clk, due);
	hash = hash_of(due);
	slot = slot_enter(wheel, node, due, level, hash);
	list = list_of(wheel, slot, hash);
	link_between(node, list->prev, list);
	return note_added(wheel, slot, due, level);
}

static noinline u64 add_late(struct wheel *wheel, struct wheel_node *node, u64 due,
			     u64 now)
{
	catch_up(wheel, now);
	return add_now(wheel, node, due);
}

/**
 * wheel_add() - put a node on a wheel
 * @wheel: the wheel.
 * @node: a node that is nowhere.
 * @due: the tick to wait for, at most WHEEL_REACH from @now; a tick before clk is
 *	taken as clk.
 * @now: a tick that has begun: the later it is, the lower the level of the node.
 *
 * Return: the tick at which the wheel has to be advanced because of the node: @due, or an
 * earlier one.  The next tick that has work is this or the last wheel_next(), the earlier
 * of the two.
 */
u64 wheel_add(struct wheel *wheel, struct wheel_node *node, u64 due, u64 now)
{
	/* Both calls are tail calls, so that no register has to be saved. */
	return wheel->clk < now ? add_late(wheel, node, due, now) :
	       add_now(wheel, node, due);
}

/**
 * wheel_del() - take a node out
 * @wheel: the wheel.
 * @node: a node in a slot of @wheel, or on the list of nodes that came out of it.
 */
void wheel_del(struct wheel *wheel, struct wheel_node *node)
{
	unsigned int level = wheel_level(node);
	u64 due = wheel_due(node);

	__list_del(node->list.prev, node->list.next);
	/* All bits of its level are set in WHEEL_IDLE. */
	static_assert(WHEEL_IDLE == WHEEL_LEVEL_MASK);
	node->place |= wheel_place(0, WHEEL_IDLE, 0);
	if (level == WHEEL_OUT)
		return;
	wheel->armed--;
	slot_leave_one(wheel, level, slot_index(due, level));
}

/*
 * The level below @above for a node of tick @due that is older than any node of
 * that tick down there: see "The order" above.
 */
static __always_inline unsigned int level_of_older(struct wheel *wheel, u64 due,
						   unsigned int above)
{
	unsigned int level = above - 1;

	while (level && in_reach(wheel->clk, due, level - 1) &&
	       slot_of(wheel, due, level)->min > due)
		level--;
	return level;
}

/* Put a node before those of its tick that are in its slot, and return the slot. */
static __always_inline struct wheel_slot *put_older(struct wheel *wheel,
						    struct wheel_node *node,
						    u64 due, unsigned int level,
						    unsigned int hash)
{
	struct wheel_slot *slot = slot_enter(wheel, node, due, level, hash);
	struct list_head *list = list_of(wheel, slot, hash);

	link_between(node, list, list->next);
	return slot;
}

/* Put a node that comes from level @above on a lower one. */
static __always_inline void move_down(struct wheel *wheel, struct wheel_node *node,
				      unsigned int above, unsigned int hash)
{
	u64 due = wheel_due(node);
	unsigned int level = level_of_older(wheel, due, above);
	struct wheel_slot *slot = put_older(wheel, node, due, level, hash);

	if (crossed_threshold(slot))
		slot_note_growth(wheel, due, level);
}

/* hash_of() a node that comes from list @number of a slot; its low bits are enough. */
static unsigned int hash_again(const struct wheel_slot *slot, unsigned int number,
			       const struct wheel_node *node)
{
	return slot->mask ? number : hash_of(wheel_due(node));
}

/* list_empty() of a list of which only the head's @prev is up to date. */
static bool list_empty_from_tail(const struct list_head *list)
{
	return list->prev == list;
}

/*
 * Move at most @budget nodes of a slot down; return how many.  The lists take turns.
 * Until the end, only the links from their tails on are up to date.
 */
static unsigned int cascade(struct wheel *wheel, unsigned int level,
			    unsigned int index, unsigned int budget)
{
	struct wheel_slot *slot = &wheel->slots[level][index];
	struct list_head *lists = &wheel->lists[slot->lists], *list;
	unsigned int filled = slot->filled;
	unsigned int moved = 0, turn;

	budget = min(budget, slot->count);
	for (turn = filled; turn; turn &= turn - 1)
		prefetchw(lists[__ffs(turn)].prev);
	for (turn = filled; moved < budget; turn &= turn - 1) {
		struct wheel_node *node;
		unsigned int number;

		if (!turn)
			turn = filled;
		number = __ffs(turn);
		list = &lists[number];
		if (list_empty_from_tail(list))
			continue;
		node = list_last_entry(list, struct wheel_node, list);
		list->prev = node->list.prev;
		prefetchw(list->prev);
		move_down(wheel, node, level, hash_again(slot, number, node));
		moved++;
	}
	for (turn = filled; turn; turn &= turn - 1) {
		list = &lists[__ffs(turn)];
		list->prev->next = list;
	}
	slot_leave(wheel, level, index, moved);
	return moved;
}

/**
 * wheel_add_older() - add a node that is older than all others of its tick
 * @wheel: the wheel.
 * @node: a node that is nowhere.
 * @due: as for wheel_add().
 * @now: as for wheel_add().
 *
 * It comes out before the nodes that are on the wheel for the same tick.  With
 * wheel_pop(), all nodes of one wheel can be moved to another one, in the same order.
 *
 * Return: as wheel_add().
 */
u64 wheel_add_older(struct wheel *wheel, struct wheel_node *node, u64 due,
		    u64 now)
{
	struct wheel_slot *slot;
	unsigned int level;

	catch_up(wheel, now);
	due = max(due, wheel->clk);
	level = level_of_older(wheel, due, WHEEL_LEVELS);
	slot = put_older(wheel, node, due, level, hash_of(due));
	return note_added(wheel, slot, due, level);
}

/**
 * wheel_pop() - take a node out, the youngest of its tick
 * @wheel: a wheel that is not empty.
 *
 * The lowest level comes first, and on a level the earliest window.
 *
 * Return: the node, which is nowhere and still has its due tick.
 */
struct wheel_node *wheel_pop(struct wheel *wheel)
{
	unsigned int level = __ffs64(wheel->occupied.levels);
	unsigned int index = map_first(&wheel->occupied, wheel->clk, level);
	struct list_head *list = &wheel->lists[wheel->slots[level][index].lists];
	struct wheel_node *node;

	while (list_empty(list))
		list++;
	node = list_last_entry(list, struct wheel_node, list);
	prefetchw(node->list.prev);
	wheel_del(wheel, node);
	return node;
}

/* Take nodes that are due at clk out, oldest first; return how many. */
static unsigned int take_due(struct wheel *wheel, unsigned int budget,
			     struct list_head *out)
{
	unsigned int index = slot_index(wheel->clk, 0), taken;
	struct wheel_slot *slot = &wheel->slots[0][index];
	struct list_head *list = &wheel->lists[slot->lists];
	struct list_head *last = list;

	budget = min(budget, slot->count);
	for (taken = 0; taken < budget; taken++) {
		last = last->next;
		list_entry(last, struct wheel_node, list)->place =
			wheel_place(wheel->clk, WHEEL_OUT, wheel->side);
	}
	if (taken) {
		list_bulk_move_tail(out, list->next, last);
		slot_leave(wheel, 0, index, taken);
		wheel->armed -= taken;
	}
	return taken;
}

/* Cascade and take out for the tick clk; return how many nodes were touched. */
static unsigned int run_tick(struct wheel *wheel, unsigned int budget,
			     struct list_head *out)
{
	unsigned int level, touched = 0;

	if (wheel->clk < wheel->upper_min)
		return take_due(wheel, budget, out);

	for (level = fls(wheel->occupied.levels); level-- > 1;) {
		unsigned int index = slot_index(wheel->clk, level);
		struct wheel_slot *slot = &wheel->slots[level][index];

		if (slot->min <= wheel->clk)
			touched += cascade(wheel, level, index, budget - touched);
		if (touched == budget)
			break;
	}
	wheel->cascaded += touched;
	wheel->upper_min = least_above_level_0(wheel);
	return touched + take_due(wheel, budget - touched, out);
}

/**
 * wheel_advance() - advance to a tick
 * @wheel: the wheel.
 * @now: the current tick; not before that of an earlier call.
 * @budget: how many nodes may be touched; becomes the rest of that.
 * @out: nodes that are due are added to the tail of this list, by due tick, and
 *	of one tick by age.  Until the caller initialises a node again, wheel_del()
 *	takes it off the list.
 *
 * Return: true if there is more to do at or before @now.  If not, wheel_prefetch()
 * can use the rest of the budget.
 */
bool wheel_advance(struct wheel *wheel, u64 now, unsigned int *budget,
		   struct list_head *out)
{
	for (;;) {
		u64 next = least_min(wheel);

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

/*
 * Of the crowded slots that may be moved down, find the one with the least min; false:
 * there is none.  It is in the window of clk, or in the one after that.
 */
static bool find_crowded(const struct wheel *wheel, unsigned int *level,
			 unsigned int *index)
{
	u64 least = WHEEL_NEVER;
	unsigned int levels;

	for (levels = wheel->crowded.levels & ~1; levels; levels &= levels - 1) {
		unsigned int l = __ffs(levels);
		unsigned int first = map_first(&wheel->crowded, wheel->clk, l);
		u64 min = wheel->slots[l][first].min;

		if (min < least &&
		    window_of(min, l) - window_of(wheel->clk, l) <= 1) {
			least = min;
			*level = l;
			*index = first;
		}
	}
	return least != WHEEL_NEVER;
}

/**
 * wheel_prefetch() - move nodes of crowded slots down ahead of their time
 * @wheel: a wheel on which wheel_advance() to @now has just left nothing to do.
 * @now: the current tick.
 * @budget: as for wheel_advance().
 *
 * Return: true if there is more to do at or before @now.
 */
bool wheel_prefetch(struct wheel *wheel, u64 now, unsigned int *budget)
{
	unsigned int level, index, moved;

	while (find_crowded(wheel, &level, &index)) {
		if (!wheel->round && least_forced(wheel, &wheel->crowded) <= now)
			wheel->round = WHEEL_URGENT;
		if (!*budget)
			return wheel->round && wheel->clk <= now;
		moved = cascade(wheel, level, index, *budget);
		*budget -= moved;
		wheel->prefetched += moved;
		wheel->round -= min(wheel->round, moved);
	}
	wheel->round = 0;
	return false;
}

#ifdef WHEEL_CHECK
/* The invariants of a node that is in a list of a slot. */
static const char *check_node(const struct wheel *wheel,
			      const struct wheel_node *node, unsigned int level,
			      unsigned int index, unsigned int number)
{
	const struct wheel_slot *slot = &wheel->slots[level][index];
	u64 due = wheel_due(node);

	if (due < wheel->clk)
		return "a node is due before clk";
	if (wheel_level(node) != level)
		return "a node is not on the level it names";
	if (wheel_side(node) != wheel->side)
		return "a node is not on the wheel it names";
	if (slot_index(due, level) != index)
		return "a node is not in the slot of its due tick";
	if (number != list_number(slot, hash_of(due)))
		return "a node is not in the list of its due tick";
	if (!(slot->filled & BIT(number)))
		return "a list is not marked as filled";
	if (!in_reach(wheel->clk, due, level))
		return "a node is out of its level's reach";
	if (slot->min > due)
		return "a slot's min is after the due tick of a node";
	if (window_of(slot->min, level) != window_of(due, level))
		return "a slot's min is outside of its window";
	return NULL;
}

static bool map_has(const struct wheel_map *map, unsigned int level,
		    unsigned int index)
{
	return map->slots[level] & BIT_ULL(index);
}

/* The invariants of one slot; the earliest due tick in it goes to @earliest. */
static const char *check_slot(const struct wheel *wheel, unsigned int level,
			      unsigned int index, u64 *earliest)
{
	const struct wheel_slot *slot = &wheel->slots[level][index];
	const struct list_head *lists = &wheel->lists[slot->lists];
	const struct wheel_node *node;
	unsigned int i, count = 0;

	for (i = 0; i <= slot->mask; i++) {
		list_for_each_entry(node, &lists[i], list) {
			const char *broken = check_node(wheel, node, level,
							index, i);

			if (broken)
				return broken;
			count++;
			*earliest = min(*earliest, wheel_due(node));
		}
	}
	if (!count && slot->min != WHEEL_NEVER)
		return "an empty slot has a min";
	if (count != slot->count)
		return "a slot's count is not the number of its nodes";
	if (map_has(&wheel->occupied, level, index) != !!count)
		return "an occupied bit is wrong";
	if (count > WHEEL_CROWDED ? !map_has(&wheel->crowded, level, index) :
				    map_has(&wheel->crowded, level, index))
		return "a crowded bit is wrong";
	if (count > WHEEL_URGENT ? !map_has(&wheel->urgent, level, index) :
				   map_has(&wheel->urgent, level, index))
		return "an urgent bit is wrong";
	return NULL;
}

static bool map_levels_hold(const struct wheel_map *map)
{
	unsigned int level;

	for (level = 0; level < WHEEL_LEVELS; level++)
		if (!!(map->levels & BIT(level)) != !!map->slots[level])
			return false;
	return true;
}

/**
 * wheel_check() - check the invariants, for tests; O(nodes)
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
	}
	if (!map_levels_hold(&wheel->occupied) ||
	    !map_levels_hold(&wheel->crowded) || !map_levels_hold(&wheel->urgent))
		return "a level's bit is wrong";
	if (armed != wheel->armed)
		return "armed is not the number of nodes";
	if (wheel_next(wheel) > earliest)
		return "next is after the earliest due tick";
	if (wheel->upper_min > least_above_level_0(wheel))
		return "upper_min is after the min of a slot";
	if (wheel_next(wheel) < wheel->clk)
		return "next is before clk";
	return NULL;
}
#endif /* WHEEL_CHECK */
