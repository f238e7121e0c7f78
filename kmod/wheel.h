/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A hierarchical timing wheel: a pure data structure.
 *
 * No lock, no clock, no allocation: callers serialize, pass the current tick and
 * provide the nodes.  wheel.c tells how it works and what always holds.
 */
#ifndef TWHEEL_WHEEL_H
#define TWHEEL_WHEEL_H

#include <linux/list.h>
#include <linux/types.h>

#define WHEEL_LEVELS		11
#define WHEEL_SLOTS		64
#define WHEEL_LEVEL_SHIFT	5	/* a slot of level L spans 32^L ticks */

/*
 * A slot with more nodes than WHEEL_CROWDED is crowded: its nodes are moved down ahead of
 * their time if the budget allows it.  A slot with more than WHEEL_URGENT is urgent: the
 * wheel is advanced for that alone, for WHEEL_URGENT nodes in a tick.  Tests define
 * smaller numbers.
 */
#ifndef WHEEL_CROWDED
#define WHEEL_CROWDED		64
#define WHEEL_URGENT		256
#endif

/* How many lists a slot has on levels 1 to WHEEL_LISTED; on the others, one. */
#ifndef WHEEL_LISTS
#define WHEEL_LISTS		8
#endif
#define WHEEL_LISTED		4
#define WHEEL_NR_LISTS		(WHEEL_SLOTS * (WHEEL_LISTED * WHEEL_LISTS + \
						WHEEL_LEVELS - WHEEL_LISTED))

/* How far from clk the top level reaches, in ticks. */
#define WHEEL_REACH		(63ULL << (WHEEL_LEVEL_SHIFT * (WHEEL_LEVELS - 1)))

/* wheel_next() of an empty wheel. */
#define WHEEL_NEVER		(~0ULL)

/* The level of a node that is in no slot. */
#define WHEEL_LIMBO		61	/* it waits for a wheel: wheels.c */
#define WHEEL_OUT		62	/* it came out and is on the caller's list */
#define WHEEL_IDLE		63	/* it is nowhere */

/**
 * struct wheel_node - an object that waits for a tick, embedded by its owner
 * @list: its place in a list of a slot, or in the list of nodes that came out.
 * @place: wheel_due() in 56 bits, wheel_level() in 6 and wheel_side() in 2.
 *
 * Arming a node stores @list and @place and loads nothing of the node: its cache line may
 * not be in the cache, and the processor does not wait for it.
 */
struct wheel_node {
	struct list_head list;
	u64 place;
};

/* The parts of &struct wheel_node.place. */
#define WHEEL_DUE_SHIFT		8
#define WHEEL_DUE_BITS		(64 - WHEEL_DUE_SHIFT)
#define WHEEL_PLACE_LEVEL_SHIFT	2
#define WHEEL_LEVEL_MASK	63
#define WHEEL_SIDE_MASK		3

/**
 * struct wheel_slot - the nodes of one window of one level
 * @min: the earliest due tick among them, WHEEL_NEVER if there is none; after a
 *	removal, a lower bound of it.
 * @count: how many there are.
 * @lists: where its lists are in &struct wheel.lists.
 * @mask: how many lists it has, a power of two, less one.
 * @filled: a bit for each list that has nodes; it may also be set for an empty list.
 */
struct wheel_slot {
	u64 min;
	u32 count;
	u16 lists;
	u8 mask;
	u8 filled;
};

/**
 * struct wheel_map - a set of slots
 * @slots: of each level, a bit for each slot in the set.
 * @levels: a bit for each level that has a slot in the set.
 */
struct wheel_map {
	u64 slots[WHEEL_LEVELS];
	u32 levels;
};

/**
 * struct wheel - a timing wheel
 * @clk: the tick it stands at; no node is due before it.
 * @upper_min: not after the min of any slot above level 0.
 * @armed: how many nodes are in its slots.
 * @cascaded: how many times a node was moved to a lower level at its slot's min, ever.
 * @prefetched: how many times a node was moved to a lower level before that, ever.
 * @round: how many more nodes must be moved ahead of their time at this tick.
 * @side: the index of the wheel among its owner's wheels, 0 to 3; the owner sets it.
 * @occupied: the slots that are not empty.
 * @crowded: the slots of more than WHEEL_CROWDED nodes.
 * @urgent: the slots of more than WHEEL_URGENT nodes.
 * @slots: the slots.
 * @lists: the nodes of the slots, each list in the order of arming; nodes of one tick
 *	share a list.
 */
struct wheel {
	u64 clk;
	u64 upper_min;
	u64 armed;
	u64 cascaded;
	u64 prefetched;
	u32 round;
	u32 side;
	struct wheel_map occupied;
	struct wheel_map crowded;
	struct wheel_map urgent;
	struct wheel_slot slots[WHEEL_LEVELS][WHEEL_SLOTS];
	struct list_head lists[WHEEL_NR_LISTS];
};

/* The tick that @node waits for, or waited for last. */
static inline u64 wheel_due(const struct wheel_node *node)
{
	return node->place >> WHEEL_DUE_SHIFT;
}

/* The level that @node is on, or WHEEL_LIMBO, WHEEL_OUT or WHEEL_IDLE. */
static inline unsigned int wheel_level(const struct wheel_node *node)
{
	return node->place >> WHEEL_PLACE_LEVEL_SHIFT & WHEEL_LEVEL_MASK;
}

/* &struct wheel.side of the wheel that @node is on. */
static inline unsigned int wheel_side(const struct wheel_node *node)
{
	return node->place & WHEEL_SIDE_MASK;
}

/* A value for &struct wheel_node.place. */
static inline u64 wheel_place(u64 due, unsigned int level, unsigned int side)
{
	return due << WHEEL_DUE_SHIFT | level << WHEEL_PLACE_LEVEL_SHIFT | side;
}

/* Make @node a node that is nowhere. */
static inline void wheel_node_init(struct wheel_node *node)
{
	node->place = wheel_place(0, WHEEL_IDLE, 0);
}

/* Is @node in a slot, or on a list of nodes that came out? */
static inline bool wheel_queued(const struct wheel_node *node)
{
	return wheel_level(node) != WHEEL_IDLE;
}

void wheel_init(struct wheel *wheel, u64 now);
void wheel_restart(struct wheel *wheel, u64 now);
u64 wheel_add(struct wheel *wheel, struct wheel_node *node, u64 due, u64 now);
u64 wheel_add_older(struct wheel *wheel, struct wheel_node *node, u64 due,
		    u64 now);
struct wheel_node *wheel_pop(struct wheel *wheel);
void wheel_del(struct wheel *wheel, struct wheel_node *node);
u64 wheel_next(const struct wheel *wheel);
u64 wheel_roundest(u64 first, u64 last);
bool wheel_advance(struct wheel *wheel, u64 now, unsigned int *budget,
		   struct list_head *out);
bool wheel_prefetch(struct wheel *wheel, u64 now, unsigned int *budget);
const char *wheel_check(const struct wheel *wheel);

#endif /* TWHEEL_WHEEL_H */
