/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A wheel beside a sorted array that must agree with it at every step.
 *
 * Each step arms, cancels or modifies a node, or advances the wheel, often by
 * less than all there is to do, so that the rest meets what comes next.  What to
 * do is drawn from a source of numbers: a generator with a seed under KUnit and
 * in userspace, the input of a fuzzer.  After each step the invariants of the
 * wheel are checked; nodes must come out in the order of (due tick, arming).
 * Some nodes have slack: theirs is the roundest tick in a range.  Now and then time
 * is set back, and all nodes move to a second wheel while younger ones are armed.
 *
 * Included by wheel_kunit.c and by tools/test/wheel/.
 */
#ifndef TWHEEL_WHEEL_MODEL_H
#define TWHEEL_WHEEL_MODEL_H

#include <linux/bitops.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/types.h>

#include "../kmod/wheel.h"

#define MODEL_NODES		320
#define MODEL_BITS	53	/* delays, and clocks at first, are below 2^53 ticks */

/* The source of the numbers; returns false at their end. */
struct model_source {
	bool (*draw)(struct model_source *source, u64 *number);
};

struct model_node {
	struct wheel_node node;
	u64 age;		/* number of this arming */
	u64 due;
	bool late;		/* for wheels_model.h: it was in limbo when it was due */
};

struct wheel_model {
	struct model_source *source;
	struct wheel wheels[2];
	unsigned int main;	/* the wheel that nodes are on */
	u64 now;
	u64 armings;
	bool removed;		/* a node was cancelled since the wheel was empty */
	struct model_node nodes[MODEL_NODES];
	struct model_node *idle[MODEL_NODES];
	unsigned int nr_idle;
	struct model_node *sorted[MODEL_NODES];	/* by due, then age */
	unsigned int nr_sorted;
	unsigned int windows[WHEEL_LEVELS][WHEEL_SLOTS];	/* nodes on each wheel */
	u64 programmed;		/* when the owner of the wheel would advance it */
	u64 forced;		/* number of times that prefetch was forced at a tick */
};

/* splitmix64, with the state in @seed. */
struct model_generator {
	struct model_source source;
	u64 seed;
};

static inline bool model_generate(struct model_source *source, u64 *number)
{
	struct model_generator *generator =
		container_of(source, struct model_generator, source);
	u64 z = generator->seed += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	*number = z ^ (z >> 31);
	return true;
}

/*
 * A number below 2^@bits, each number of bits equally likely: small numbers are frequent.
 */
static inline u64 model_magnitude(u64 number, unsigned int bits)
{
	unsigned int width = (number & 0xff) % (bits + 1);

	return width ? (number >> 8) & (~0ULL >> (64 - width)) : 0;
}

/* The wheel that nodes are armed on. */
static inline struct wheel *model_wheel(struct wheel_model *model)
{
	return &model->wheels[model->main];
}

static inline bool model_before(const struct model_node *a,
				const struct model_node *b)
{
	return a->due != b->due ? a->due < b->due : a->age < b->age;
}

/* The place of @node in the sorted array, or where it belongs. */
static inline unsigned int model_find(const struct wheel_model *model,
				      const struct model_node *node)
{
	unsigned int low = 0, high = model->nr_sorted;

	while (low < high) {
		unsigned int middle = (low + high) / 2;

		if (model_before(model->sorted[middle], node))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static inline void model_insert(struct wheel_model *model,
				struct model_node *node)
{
	unsigned int i = model_find(model, node);

	memmove(&model->sorted[i + 1], &model->sorted[i],
		(model->nr_sorted - i) * sizeof(model->sorted[0]));
	model->sorted[i] = node;
	model->nr_sorted++;
}

static inline void model_remove(struct wheel_model *model,
				struct model_node *node)
{
	unsigned int i = model_find(model, node);

	model->nr_sorted--;
	memmove(&model->sorted[i], &model->sorted[i + 1],
		(model->nr_sorted - i) * sizeof(model->sorted[0]));
	model->idle[model->nr_idle++] = node;
}

/* Begin again with an empty wheel, with a clock of any magnitude. */
static inline void model_restart(struct wheel_model *model, u64 number)
{
	unsigned int i;

	model->now = model_magnitude(number, MODEL_BITS);
	model->removed = false;
	model->programmed = WHEEL_NEVER;
	model->nr_idle = 0;
	model->nr_sorted = 0;
	model->main = 0;
	for (i = 0; i < 2; i++) {
		wheel_init(&model->wheels[i], model->now);
		model->wheels[i].side = i;
	}
	for (i = 0; i < MODEL_NODES; i++) {
		wheel_node_init(&model->nodes[i].node);
		model->idle[model->nr_idle++] = &model->nodes[i];
	}
}

static inline void model_init(struct wheel_model *model,
			      struct model_source *source)
{
	memset(model, 0, sizeof(*model));
	model->source = source;
	model_restart(model, 0);
}

/* A due tick: at any distance, or equal or close to that of another node. */
static inline u64 model_due(struct wheel_model *model, u64 how, u64 number)
{
	u64 other;

	if (!model->nr_sorted || how % 8 == 0)
		return model->now + model_magnitude(number, MODEL_BITS);
	if (how % 8 < 3)
		return model->now + model_magnitude(number, 13);

	other = model->sorted[number % model->nr_sorted]->due;
	if (how % 8 < 6)
		return other;
	return other + model_magnitude(number >> 20, 8);
}

/* The result that wheel_roundest() must return, by its definition. */
static inline u64 model_roundest(u64 first, u64 last)
{
	unsigned int shift = 63;
	u64 unit, beyond;

	/* The largest power of two of at most last - first + 1 ... */
	while (BIT_ULL(shift) - 1 > last - first)
		shift--;
	unit = BIT_ULL(shift);
	/* ... and its first multiple from there. */
	beyond = first % unit;
	return beyond ? first + (unit - beyond) : first;
}

/* Check wheel_roundest() with any range. */
static inline const char *model_check_roundest(u64 how, u64 number)
{
	u64 first = how & 1 ? number : model_magnitude(number, 56);
	u64 slack = model_magnitude(how >> 1, 64);
	u64 last = slack > ~0ULL - first ? ~0ULL : first + slack;

	if (wheel_roundest(first, last) != model_roundest(first, last))
		return "a tick is not the roundest in its range";
	return NULL;
}

/* One node in four has slack. */
static inline u64 model_slack(u64 how)
{
	return (how >> 16) % 4 ? 0 : model_magnitude(how >> 24, 20);
}

static inline const char *model_arm(struct wheel_model *model,
				    struct model_node *node, u64 how, u64 number)
{
	u64 first = model_due(model, how, number);
	u64 last = first + model_slack(how);
	u64 due = wheel_roundest(first, last), wanted;

	if (due != model_roundest(first, last))
		return "a node's due tick is not the roundest within its slack";
	wanted = wheel_add(model_wheel(model), &node->node, due, model->now);
	if (wheel_side(&node->node) != model->main)
		return "a node does not know which wheel it is on";
	node->due = wheel_due(&node->node);
	node->age = model->armings++;
	model_insert(model, node);
	model->programmed = min(model->programmed, wanted);
	return NULL;
}

static inline struct model_node *model_cancel(struct wheel_model *model,
					      u64 number)
{
	struct model_node *node = model->sorted[number % model->nr_sorted];

	wheel_del(model_wheel(model), &node->node);
	model_remove(model, node);
	model->removed = true;
	return node;
}

/*
 * The tick at which prefetch of an urgent slot is forced, by the definition; 0 for a
 * slot that is not urgent.
 */
static inline u64 model_forced(unsigned int level, u64 window, unsigned int count)
{
	u64 span = 1ULL << (WHEEL_LEVEL_SHIFT * level);
	u64 from = window ? (window - 1) * span : 0;
	u64 ahead = span / 32 + (count + WHEEL_URGENT - 1) / WHEEL_URGENT;

	if (!level || count <= WHEEL_URGENT)
		return WHEEL_NEVER;
	return window * span > ahead ? max(from, window * span - ahead) : from;
}

/* The least tick at which prefetch is forced. */
static inline u64 model_least_forced(struct wheel_model *model)
{
	struct wheel *wheel = model_wheel(model);
	u64 least = WHEEL_NEVER;
	unsigned int i;

	memset(model->windows, 0, sizeof(model->windows));
	for (i = 0; i < model->nr_sorted; i++) {
		struct wheel_node *node = &model->sorted[i]->node;
		unsigned int level = wheel_level(node);
		u64 window = wheel_due(node) >> (WHEEL_LEVEL_SHIFT * level);
		unsigned int *count = &model->windows[level][window % WHEEL_SLOTS];

		least = min(least, model_forced(level, window, ++*count));
	}
	return max(least, wheel->clk);
}

/* Let time pass, to the next tick with work, to a near or to a far one. */
static inline u64 model_later(struct wheel_model *model, u64 how, u64 number)
{
	u64 next = wheel_next(model_wheel(model));

	switch (how % 8) {
	case 0 ... 2:
		return next == WHEEL_NEVER ? model->now : next;
	case 3:
		return next == WHEEL_NEVER ? model->now :
		       next + model_magnitude(number, 8);
	case 4:
		return model->now;
	case 5 ... 6:
		return model->now + model_magnitude(number, 12);
	default:
		return model->now + model_magnitude(number, how % 512 < 500 ? 20 : 52);
	}
}

static inline const char *model_advance(struct wheel_model *model, u64 how,
					u64 number)
{
	unsigned int budget = 1 + (how >> 8) % 64, left = budget, out = 0;
	struct wheel *wheel = model_wheel(model);
	u64 moved = wheel->cascaded + wheel->prefetched;
	struct wheel_node *node, *safe;
	LIST_HEAD(list);
	bool more, due;

	model->now = max(model->now, model_later(model, how, number));
	due = wheel_advance(wheel, model->now, &left, &list);
	more = due || wheel_prefetch(wheel, model->now, &left);
	model->programmed = wheel_next(wheel);
	model->forced += more && !due;

	list_for_each_entry_safe(node, safe, &list, list) {
		struct model_node *first = model->sorted[0];

		if (!model->nr_sorted || node != &first->node)
			return "a node came out of order";
		if (first->due > model->now)
			return "a node came out early";
		if (first->due != wheel_due(node))
			return "a node's due tick changed";
		wheel_del(wheel, node);
		model_remove(model, first);
		out++;
	}
	moved = wheel->cascaded + wheel->prefetched - moved;
	if (left > budget || budget - left != out + moved)
		return "the rest of the budget does not match the number of nodes touched";
	if (more && wheel_next(wheel) > model->now)
		return "the wheel says that there is more to do, but there is not";
	if (!due && model->nr_sorted && model->sorted[0]->due <= model->now)
		return "a due node is still on the wheel";
	if (!due && wheel->clk != model->now)
		return "clk is not at now";
	if (!more && wheel_next(wheel) <= model->now)
		return "the wheel says that there is no more to do, but there is";
	return NULL;
}

/* Let time pass while nothing is due on either wheel. */
static inline const char *model_wait(struct wheel_model *model, u64 number)
{
	u64 next = model->sorted[0]->due;
	unsigned int budget;
	LIST_HEAD(list);

	if (next <= model->now)
		return NULL;
	model->now = min(model->now + model_magnitude(number, 20), next - 1);
	do {
		budget = 64;
	} while (wheel_advance(model_wheel(model), model->now, &budget, &list) ||
		 wheel_prefetch(model_wheel(model), model->now, &budget));
	model->programmed = wheel_next(model_wheel(model));
	return list_empty(&list) ? NULL : "a node came out early";
}

/* Work on the new wheel between two nodes that move. */
static inline const char *model_meanwhile(struct wheel_model *model, u64 how,
					  u64 number)
{
	const char *broken = NULL;

	if (how % 4 == 0 && model->nr_idle)
		broken = model_arm(model, model->idle[--model->nr_idle], how >> 2,
				   number);
	else if (how % 4 == 1)
		broken = model_wait(model, number);
	return broken ?: wheel_check(model_wheel(model));
}

/*
 * Set time back and move the nodes to the other wheel, where they are older than nodes that
 * are armed there meanwhile.
 */
static inline const char *model_set_back(struct wheel_model *model, u64 how,
					 u64 number)
{
	struct wheel *from = model_wheel(model);
	u64 back = model_magnitude(number, 20);
	unsigned int moved = 0;

	model->main = !model->main;
	model->now = from->clk - min(back, from->clk);
	model->removed = false;
	model->programmed = WHEEL_NEVER;
	wheel_restart(model_wheel(model), model->now);

	while (from->armed) {
		struct wheel_node *node = wheel_pop(from);
		const char *broken = wheel_check(from);
		u64 wanted;

		if (broken)
			return broken;
		if (wheel_queued(node))
			return "a popped node is still on a list";
		wanted = wheel_add_older(model_wheel(model), node,
					 wheel_due(node), model->now);
		model->programmed = min(model->programmed, wanted);
		moved++;
		broken = model_meanwhile(model, ror64(how, moved),
					 ror64(number, moved));
		if (broken)
			return broken;
	}
	return wheel_next(from) == WHEEL_NEVER ? NULL : "an empty wheel has work";
}

static inline const char *model_check(struct wheel_model *model)
{
	u64 next = wheel_next(model_wheel(model)), expected;

	if (model_wheel(model)->armed != model->nr_sorted)
		return "the number of armed nodes differs";
	if (!model->nr_sorted) {
		model->removed = false;
		return next == WHEEL_NEVER ? NULL : "an empty wheel has work";
	}
	if (next < model->programmed)
		return "wheel_add() did not return when the wheel has to be advanced";
	expected = min(model->sorted[0]->due, model_least_forced(model));
	if (next > expected)
		return "next is later than the next tick with work";
	if (!model->removed && !model_wheel(model)->round && next != expected)
		return "next is not the next tick with work, though no node was removed";
	return wheel_check(model_wheel(model));
}

/**
 * model_step() - one random step
 * @model: the model.
 * @broken: out: NULL, or what went wrong.
 *
 * Return: false when the source has no more numbers or something went wrong.
 */
static inline bool model_step(struct wheel_model *model, const char **broken)
{
	struct model_source *source = model->source;
	u64 what, number;

	*broken = NULL;
	if (!source->draw(source, &what) || !source->draw(source, &number))
		return false;

	/* Begin again now and then, and before a due tick is too large for a node. */
	if (what >> 52 == 0 || model->now >> (MODEL_BITS + 1))
		model_restart(model, number);

	switch (what % 16) {
	case 0 ... 8:
		if (model->nr_idle)
			*broken = model_arm(model,
					    model->idle[--model->nr_idle],
					    what >> 4, number);
		break;
	case 9:
		if (model->nr_sorted)
			model_cancel(model, number);
		break;
	case 10:
		if (model->nr_sorted) {
			struct model_node *node = model_cancel(model, number);

			model->nr_idle--;
			*broken = model_arm(model, node, what >> 4, number >> 8);
		}
		break;
	case 11:
		*broken = model_check_roundest(what >> 4, number);
		break;
	default:
		if (what >> 4 & 63)
			*broken = model_advance(model, what >> 4, number);
		else
			*broken = model_set_back(model, what >> 10, number);
	}
	if (!*broken)
		*broken = model_check(model);
	return !*broken;
}

#endif /* TWHEEL_WHEEL_MODEL_H */
