// SPDX-License-Identifier: GPL-2.0
/*
 * The wheels of a clock that can be set back.
 *
 * A wheel only goes forward: no node on it is due before its clk.  When the clock is set
 * back, the wheel stands at a tick in the future.  It stays there, and goes on taking
 * nodes that are due at its clk or later; its nodes are not moved.  Nodes that are due
 * before its clk, in the gap, go to another wheel, which stands at the present tick:
 *
 *	       now                       clk of the farthest wheel
 *	        v                        v
 *	--------|------------------------|-----------------------------> ticks
 *	        |<-- the nearest wheel ->|<---- the farthest wheel ---->
 *
 * The nearest wheel comes into use with the first node for the gap, and goes out of
 * use when it is empty.  If the clock is set back once more in the gap, a third wheel is
 * put before the nearest one in the same way.
 *
 * All wheels are advanced, the nearest one first.  A node that is armed for a tick goes
 * to the farthest wheel whose clk is not after that tick.  So the nodes of one tick are
 * on one wheel, and their order is that wheel's.  Prefetch on a wheel that stands in the
 * future is not forced before the clock gets there.
 *
 * Limbo
 * -----
 * If the clock is set back again while three wheels have nodes, there is no wheel for
 * nodes that are due before all of them.  Such nodes wait in limbo, in the order of
 * arming, while the middle wheel is emptied into the nearest one, by half of each
 * advance's budget: the earliest node first, and of one tick the oldest.  The clk of the
 * middle wheel grows with that, so a node that is armed meanwhile goes to the right
 * wheel: of one tick, nodes on the nearest wheel are then older than those on the middle
 * one.  When the middle wheel is empty, it is put before the others, and limbo is emptied
 * into it.  A node in limbo that becomes due meanwhile is late by the time that this takes.
 *
 * Wheels that are made later
 * --------------------------
 * Most clocks that can be set back never are, so their other wheels may be made when
 * that happens (@may_grow), unless the only one is empty: then it goes back itself, with
 * wheels_go_back().  Until they are there, nodes for the gap wait in limbo, and
 * nothing is moved, unless the only wheel gets empty: then the next advance lets it go back
 * and take them.  Without memory for more wheels they come out when the clock gets to the
 * clk of the only one, late by no more than it was set back.
 *
 * What always holds (wheels_check() looks)
 * ----------------------------------------
 * - for each wheel, everything that wheel.c says;
 * - no node on a wheel is due after the clk of a farther wheel that has nodes;
 * - a wheel that is not in use is empty;
 * - nodes in limbo are due before limbo_end_tick.
 */
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "wheels.h"

/* The wheel in use at @position, counted from the farthest. */
static struct wheel *wheel_at(const struct wheels *wheels, unsigned int position)
{
	return wheels->wheel[wheels->order[position]];
}

static struct wheel *nearest(const struct wheels *wheels)
{
	return wheel_at(wheels, wheels->nr_used - 1);
}

/* Add an empty wheel, which is not in use unless it is the first. */
static void add_wheel(struct wheels *wheels, struct wheel *wheel)
{
	wheel->side = wheels->nr;
	wheels->wheel[wheels->nr] = wheel;
	wheels->order[wheels->nr] = wheels->nr;
	wheels->nr++;
}

/**
 * wheels_init() - make empty wheels
 * @wheels: out: the wheels of one clock.
 * @wheel: memory for @nr wheels, which stays as long as @wheels is used.
 * @nr: 1 for a clock that never goes back, else WHEELS_MAX.
 * @now: the tick they stand at.
 */
void wheels_init(struct wheels *wheels, struct wheel *wheel, unsigned int nr,
		 u64 now)
{
	unsigned int i;

	*wheels = (struct wheels){ .nr_used = 1 };
	INIT_LIST_HEAD(&wheels->limbo);
	for (i = 0; i < nr; i++) {
		wheel_init(&wheel[i], now);
		add_wheel(wheels, &wheel[i]);
	}
}

/**
 * wheels_init_growing() - make an empty wheel for a clock that can be set back
 * @wheels: out: the wheels of the clock, which may grow.
 * @wheel: memory for the first wheel, which stays as long as @wheels is used.
 * @now: the tick it stands at.
 */
void wheels_init_growing(struct wheels *wheels, struct wheel *wheel, u64 now)
{
	wheels_init(wheels, wheel, 1, now);
	wheels->may_grow = true;
}

/* Are there too few wheels for nodes in the gap? */
static bool lacks_wheels(const struct wheels *wheels)
{
	return wheels->may_grow && wheels->nr == 1;
}

/*
 * Do the nodes that are in limbo wait for more wheels?  Not if the only wheel is empty, or
 * the clock is at its clk: then it takes them.
 */
static bool waits_for_wheels(const struct wheels *wheels, u64 now)
{
	const struct wheel *wheel = wheels_farthest(wheels);

	return lacks_wheels(wheels) && wheel->armed && wheel->clk > now;
}

/**
 * wheels_go_back() - go back with the clock, if it was set back
 * @wheels: the wheels.
 * @now: the current tick.
 *
 * If there is no node, the wheel goes back.  It must not stay in the future: the next
 * node may be due after that, and keep it there.
 *
 * Return: true if there are nodes, and wheels_grow() is to be called for the gap.
 */
bool wheels_go_back(struct wheels *wheels, u64 now)
{
	struct wheel *wheel = wheels_farthest(wheels);

	if (!lacks_wheels(wheels) || wheel->clk <= now)
		return false;
	if (wheel->armed || wheels->nr_limbo)
		return true;
	wheel_restart(wheel, now);
	return false;
}

/**
 * wheels_grow() - add the other wheels of a clock that can be set back
 * @wheels: the wheels for which wheels_go_back() was true; it may not be any more.
 * @more: WHEELS_MAX - 1 wheels, empty, which stay as long as @wheels is used.
 *
 * Nodes that wait in limbo leave it at the next wheels_advance().
 */
void wheels_grow(struct wheels *wheels, struct wheel *more)
{
	while (wheels->nr < WHEELS_MAX)
		add_wheel(wheels, more++);
}

/* Stop using an empty wheel, wherever it is in the order; false: there is none. */
static bool drop_empty(struct wheels *wheels)
{
	unsigned int i;

	for (i = 0; i < wheels->nr_used; i++) {
		u8 side = wheels->order[i];

		if (wheels->wheel[side]->armed)
			continue;
		wheels->nr_used--;
		memmove(&wheels->order[i], &wheels->order[i + 1],
			wheels->nr_used - i);
		wheels->order[wheels->nr_used] = side;
		return true;
	}
	return false;
}

/* Put an empty wheel, which stands at @now, before the nearest; NULL: none is empty. */
static struct wheel *add_nearest(struct wheels *wheels, u64 now)
{
	if (!nearest(wheels)->armed)
		wheels->nr_used--;
	else if (wheels->nr_used == wheels->nr && !drop_empty(wheels))
		return NULL;
	wheels->nr_used++;
	wheel_restart(nearest(wheels), now);
	return nearest(wheels);
}

/* The farthest wheel that may take a node of that tick; NULL: all wheels stand after it. */
static struct wheel *wheel_of_tick(const struct wheels *wheels, u64 tick)
{
	unsigned int i;

	for (i = 0; i < wheels->nr_used; i++)
		if (tick >= wheel_at(wheels, i)->clk)
			return wheel_at(wheels, i);
	return NULL;
}

/* The wheel that takes a node that is armed now; NULL: it goes to limbo. */
static struct wheel *wheel_for(struct wheels *wheels, u64 due, u64 now)
{
	struct wheel *wheel;

	/* An overdue node goes to the wheel of the present tick, and comes out next. */
	due = max(due, now);
	if (wheels->nr_limbo && due < wheels->limbo_end_tick)
		return NULL;
	wheel = wheel_of_tick(wheels, due) ?: add_nearest(wheels, now);
	if (wheel)
		return wheel;
	/* This clock never goes back: two CPUs have read it at the same moment. */
	if (wheels->nr == 1 && !wheels->may_grow)
		return nearest(wheels);
	/* The wheels may have advanced since the first node came to limbo: the end moves on. */
	wheels->limbo_end_tick = nearest(wheels)->clk;
	return NULL;
}

/* Put a node into limbo, behind @after. */
static void limbo_add(struct wheels *wheels, struct wheel_node *node, u64 due,
		      struct list_head *after)
{
	node->place = wheel_place(due, WHEEL_LIMBO, 0);
	list_add(&node->list, after);
	wheels->nr_limbo++;
}

/* The slow path of wheels_add(). */
u64 wheels_add_somewhere(struct wheels *wheels, struct wheel_node *node, u64 due, u64 now)
{
	struct wheel *wheel = wheel_for(wheels, due, now);

	if (wheel)
		return wheel_add(wheel, node, due, now);
	limbo_add(wheels, node, due, wheels->limbo.prev);
	return now;
}

/**
 * wheels_add_older() - add a node that is older than all others of its tick
 * @wheels: the wheels.
 * @node: a node that is nowhere.
 * @due: as for wheel_add().
 * @now: as for wheels_add().
 *
 * Return: as wheels_add().
 */
u64 wheels_add_older(struct wheels *wheels, struct wheel_node *node, u64 due,
		     u64 now)
{
	struct wheel *wheel = wheel_for(wheels, due, now);

	if (wheel)
		return wheel_add_older(wheel, node, due, now);
	limbo_add(wheels, node, due, &wheels->limbo);
	return now;
}

/* The slow path of wheels_del(): take a node out of limbo. */
void limbo_del(struct wheels *wheels, struct wheel_node *node)
{
	list_del(&node->list);
	node->place = wheel_place(wheel_due(node), WHEEL_IDLE, 0);
	wheels->nr_limbo--;
}

/**
 * wheels_pop() - take a node out, the youngest of its tick
 * @wheels: the wheels.
 *
 * Return: the node, which is nowhere and still has its due tick; NULL: none is left.
 */
struct wheel_node *wheels_pop(struct wheels *wheels)
{
	unsigned int i;

	/* While limbo is emptied into a wheel, its oldest nodes are on the wheel already. */
	if (wheels->nr_limbo) {
		struct wheel_node *node = list_last_entry(&wheels->limbo,
							  struct wheel_node, list);

		wheels_del(wheels, node);
		return node;
	}
	/* While the middle wheel is emptied, the farther one has the younger nodes. */
	for (i = 0; i < wheels->nr_used; i++)
		if (wheel_at(wheels, i)->armed)
			return wheel_pop(wheel_at(wheels, i));
	return NULL;
}

/**
 * wheels_armed() - how many nodes there are
 * @wheels: the wheels.
 */
u64 wheels_armed(const struct wheels *wheels)
{
	u64 armed = wheels->nr_limbo;
	unsigned int i;

	for (i = 0; i < wheels->nr_used; i++)
		armed += wheel_at(wheels, i)->armed;
	return armed;
}

/**
 * wheels_next() - the next tick that has work
 * @wheels: the wheels.
 * @now: the current tick.
 *
 * Return: as wheel_next(); or @now if nodes wait in limbo, and the clk of the only wheel if they
 * wait there for more wheels.
 */
u64 wheels_next(const struct wheels *wheels, u64 now)
{
	u64 next = WHEEL_NEVER;
	unsigned int i;

	if (wheels->nr_limbo)
		next = waits_for_wheels(wheels, now) ? wheels_farthest(wheels)->clk : now;
	for (i = 0; i < wheels->nr_used; i++)
		next = min(next, wheel_next(wheel_at(wheels, i)));
	return next;
}

/* Move nodes of the middle wheel to the nearest one, in the order of due ticks. */
static void empty_middle(struct wheels *wheels, u64 now, unsigned int *budget)
{
	struct wheel *middle = wheel_at(wheels, wheels->nr_used - 2);
	struct wheel_node *node, *safe;
	LIST_HEAD(moved);

	wheel_advance(middle, WHEEL_NEVER - 1, budget, &moved);
	list_for_each_entry_safe(node, safe, &moved, list) {
		wheel_del(middle, node);
		wheel_add(nearest(wheels), node, wheel_due(node), now);
	}
}

/* Move nodes from limbo to a wheel; if there is none for them, empty the middle one. */
static void empty_limbo(struct wheels *wheels, u64 now, unsigned int *budget)
{
	while (wheels->nr_limbo && *budget) {
		struct wheel_node *node = list_first_entry(&wheels->limbo,
							   struct wheel_node, list);
		u64 due = wheel_due(node);
		struct wheel *wheel = wheel_of_tick(wheels, max(due, now));

		if (!wheel)
			wheel = add_nearest(wheels, now);
		if (!wheel && lacks_wheels(wheels))
			return;
		if (!wheel) {
			empty_middle(wheels, now, budget);
			return;
		}
		wheels_del(wheels, node);
		wheel_add(wheel, node, due, now);
		--*budget;
	}
}

/* wheels_advance() with a budget that becomes the rest of it. */
static bool advance_by(struct wheels *wheels, u64 now, unsigned int *budget,
		       struct list_head *out)
{
	unsigned int i;

	if (wheels->nr_limbo) {
		/* The other half is for the wheels: their due nodes must not wait. */
		unsigned int half = *budget / 2;

		*budget -= half;
		empty_limbo(wheels, now, &half);
		*budget += half;
	}
	/* While a wheel has nodes that are not due, no farther one has any that are. */
	for (i = wheels->nr_used; i-- > 0;)
		if (wheel_advance(wheel_at(wheels, i), now, budget, out) ||
		    wheel_prefetch(wheel_at(wheels, i), now, budget))
			return true;
	while (wheels->nr_used > 1 && drop_empty(wheels))
		;
	return wheels->nr_limbo && !waits_for_wheels(wheels, now);
}

/**
 * wheels_advance() - advance to a tick, and prefetch with the rest of the budget
 * @wheels: the wheels.
 * @now: as for wheels_add().
 * @budget: how many nodes may be touched, at least 2.
 * @out: as for wheel_advance(), with wheels_del().
 *
 * Return: true if there is more to do at or before @now.
 */
bool wheels_advance(struct wheels *wheels, u64 now, unsigned int budget,
		    struct list_head *out)
{
	unsigned int left = budget;
	bool more = advance_by(wheels, now, &left, out);

	wheels->touched = budget - left;
	return more;
}

#ifdef WHEEL_CHECK
/* Is a node of @list due after @tick? */
static bool is_due_after(const struct list_head *list, u64 tick)
{
	const struct wheel_node *node;

	list_for_each_entry(node, list, list)
		if (wheel_due(node) > tick)
			return true;
	return false;
}

/* Is a node of @wheel due after @tick? */
static bool has_due_after(const struct wheel *wheel, u64 tick)
{
	unsigned int i;

	for (i = 0; i < WHEEL_NR_LISTS; i++)
		if (is_due_after(&wheel->lists[i], tick))
			return true;
	return false;
}

/**
 * wheels_check() - check the invariants, for tests; O(nodes)
 * @wheels: the wheels.
 *
 * Return: NULL, or the invariant that is broken.
 */
const char *wheels_check(const struct wheels *wheels)
{
	const struct wheel_node *node;
	unsigned int i, j;
	u64 limbo = 0;

	for (i = 0; i < wheels->nr; i++) {
		const struct wheel *wheel = wheel_at(wheels, i);
		const char *broken = wheel_check(wheel);

		if (broken)
			return broken;
		if (i >= wheels->nr_used && wheel->armed)
			return "a wheel that is not in use has a node";
		for (j = 0; j < i && i < wheels->nr_used; j++)
			if (wheel_at(wheels, j)->armed &&
			    has_due_after(wheel, wheel_at(wheels, j)->clk))
				return "a node is due after the clk of a farther wheel";
	}
	list_for_each_entry(node, &wheels->limbo, list) {
		limbo++;
		if (wheel_level(node) != WHEEL_LIMBO ||
		    wheel_due(node) >= wheels->limbo_end_tick)
			return "a node in limbo does not belong there";
	}
	if (limbo != wheels->nr_limbo)
		return "nr_limbo is not the number of nodes in limbo";
	return NULL;
}
#endif /* WHEEL_CHECK */
