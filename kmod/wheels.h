/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The wheels of a clock that can be set back: a pure data structure.
 *
 * As wheel.h: no lock, no clock, no allocation.  wheels.c tells how it works.
 */
#ifndef TWHEEL_WHEELS_H
#define TWHEEL_WHEELS_H

#include <linux/list.h>
#include <linux/types.h>

#include "wheel.h"

/* How many wheels a clock that can be set back has. */
#define WHEELS_MAX	3

/**
 * struct wheels - the wheels of one clock
 * @wheel: all of them.
 * @nr: how many there are: WHEELS_MAX; 1 for a clock that never goes back, or if
 *	@may_grow.
 * @may_grow: the clock can be set back, and the other wheels are made when it is.
 * @nr_used: how many are in use, at least 1.
 * @order: the indices of those in use, from the farthest to the nearest; then the others.
 * @limbo: nodes for which no wheel stands early enough, in the order of arming.
 * @nr_limbo: how many there are.
 * @limbo_end_tick: nodes that are due before this go to @limbo while it has any.
 * @touched: how many nodes the last wheels_advance() touched.
 */
struct wheels {
	struct wheel *wheel[WHEELS_MAX];
	unsigned int nr;
	unsigned int nr_used;
	u8 order[WHEELS_MAX];
	bool may_grow;
	struct list_head limbo;
	u64 nr_limbo;
	u64 limbo_end_tick;
	unsigned int touched;
};

/* The farthest wheel: the only one in use if the clock was never set back. */
static inline struct wheel *wheels_farthest(const struct wheels *wheels)
{
	return wheels->wheel[wheels->order[0]];
}

void wheels_init(struct wheels *wheels, struct wheel *wheel, unsigned int nr,
		 u64 now);
void wheels_init_growing(struct wheels *wheels, struct wheel *wheel, u64 now);
bool wheels_go_back(struct wheels *wheels, u64 now);
void wheels_grow(struct wheels *wheels, struct wheel *more);
u64 wheels_add_somewhere(struct wheels *wheels, struct wheel_node *node, u64 due,
			 u64 now);
void limbo_del(struct wheels *wheels, struct wheel_node *node);
u64 wheels_add_older(struct wheels *wheels, struct wheel_node *node, u64 due,
		     u64 now);
struct wheel_node *wheels_pop(struct wheels *wheels);
u64 wheels_armed(const struct wheels *wheels);
u64 wheels_next(const struct wheels *wheels, u64 now);
bool wheels_advance(struct wheels *wheels, u64 now, unsigned int budget,
		    struct list_head *out);
const char *wheels_check(const struct wheels *wheels);

/**
 * wheels_add() - let a node wait for a tick
 * @wheels: the wheels.
 * @node: a node that is nowhere.
 * @due: as for wheel_add().
 * @now: the current tick, which may be less than at the last call.
 *
 * Return: as wheel_add().
 */
static inline u64 wheels_add(struct wheels *wheels, struct wheel_node *node, u64 due,
			     u64 now)
{
	struct wheel *wheel = wheels_farthest(wheels);

	/* Usually one wheel is in use, which takes all nodes. */
	if (due >= wheel->clk && !wheels->nr_limbo)
		return wheel_add(wheel, node, due, now);
	return wheels_add_somewhere(wheels, node, due, now);
}

/**
 * wheels_del() - take a node out, wherever it is
 * @wheels: the wheels.
 * @node: a node that is on one of @wheels, or on the list of nodes that came out.
 */
static inline void wheels_del(struct wheels *wheels, struct wheel_node *node)
{
	if (wheel_level(node) != WHEEL_LIMBO)
		wheel_del(wheels->wheel[wheel_side(node)], node);
	else
		limbo_del(wheels, node);
}

#endif /* TWHEEL_WHEELS_H */
