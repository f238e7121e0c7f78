/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The wheels of a clock that is set back again and again, beside a sorted array that
 * must agree with them at every step.
 *
 * As wheel_model.h, whose numbers, nodes and array it shares.  Here time runs
 * backwards as often as forwards, by steps of any size, also while nodes are still
 * overdue or in limbo.  Nodes that come out must be due, and must come out in the
 * order of (due tick, arming).  Only nodes that become due in limbo have no place in
 * that order.
 *
 * Included by wheels_kunit.c and by tools/test/wheel/.
 */
#ifndef TWHEEL_WHEELS_MODEL_H
#define TWHEEL_WHEELS_MODEL_H

#include "../kmod/wheels.h"
#include "wheel_model.h"

/**
 * struct wheels_model - wheels, and what must be on them
 * @model: its source, array, nodes and present tick; its own wheels are not used.
 * @wheel: memory of @wheels.
 * @wheels: what is tested.
 * @budget: how much each advance may do in this part of the test.
 * @grows: the wheels but the first are made in this part of the test when they are needed.
 * @most_used: the most wheels that were in use, to show that the test got there.
 * @most_limbo: the most nodes that were in limbo.
 * @moved_limbo: how many nodes in limbo were moved to other wheels.
 * @most_waiting: the most nodes that were there because wheels were still to be made.
 * @nr_late: how many nodes became due in limbo.
 */
struct wheels_model {
	struct wheel_model model;
	struct wheel wheel[WHEELS_MAX];
	struct wheels wheels;
	unsigned int budget;
	bool grows;
	unsigned int most_used;
	u64 most_limbo;
	u64 moved_limbo;
	u64 most_waiting;
	u64 nr_late;
};

/* All wheels at once, or the first one, and the others when nodes wait for them. */
static inline void wheels_model_make(struct wheels_model *model)
{
	if (model->grows)
		wheels_init_growing(&model->wheels, model->wheel, model->model.now);
	else
		wheels_init(&model->wheels, model->wheel, WHEELS_MAX, model->model.now);
}

/* Do nodes wait in limbo until there are more wheels, or the clock gets to the only one? */
static inline bool wheels_model_waits(const struct wheels_model *model)
{
	const struct wheel *wheel = wheels_farthest(&model->wheels);

	return model->wheels.nr_limbo && model->wheels.nr < WHEELS_MAX && wheel->armed &&
	       wheel->clk > model->model.now;
}

static inline bool wheels_model_in_limbo(const struct model_node *node)
{
	return wheel_level(&node->node) == WHEEL_LIMBO;
}

/* Note which nodes in limbo are due. */
static inline void wheels_model_note_late(struct wheels_model *model)
{
	unsigned int i;

	for (i = 0; i < model->model.nr_sorted; i++) {
		struct model_node *node = model->model.sorted[i];

		if (node->due > model->model.now)
			return;
		if (!wheels_model_in_limbo(node) || node->late)
			continue;
		node->late = true;
		model->nr_late++;
	}
}

/* The first node of the order; NULL: there is none. */
static inline struct model_node *wheels_model_first(const struct wheels_model *model)
{
	unsigned int i;

	for (i = 0; i < model->model.nr_sorted; i++)
		if (!model->model.sorted[i]->late)
			return model->model.sorted[i];
	return NULL;
}

/* Is a node due that should have come out? */
static inline bool wheels_model_holds_due(const struct wheels_model *model)
{
	bool waits = wheels_model_waits(model);
	unsigned int i;

	for (i = 0; i < model->model.nr_sorted; i++) {
		const struct model_node *node = model->model.sorted[i];

		if (node->due > model->model.now)
			break;
		/* Late ones may be where the clock was before it was set back. */
		if (!node->late && !(waits && wheels_model_in_limbo(node)))
			return true;
	}
	return false;
}

static inline void wheels_model_restart(struct wheels_model *model, u64 number)
{
	model_restart(&model->model, number);
	model->budget = 2 + number % 63;
	model->grows = number & 64;
	wheels_model_make(model);
}

static inline void wheels_model_init(struct wheels_model *model,
				     struct model_source *source)
{
	memset(model, 0, sizeof(*model));
	model->model.source = source;
	/* The first part grows: a short test may have no other one that does. */
	wheels_model_restart(model, 64);
}

static inline void wheels_model_arm(struct wheels_model *model,
				    struct model_node *node, u64 how, u64 number)
{
	/* Never overdue: nobody arms an overdue node. */
	u64 due = max(model_due(&model->model, how, number), model->model.now + 1);

	wheels_add(&model->wheels, &node->node, due, model->model.now);
	node->due = due;
	node->late = false;
	node->age = model->model.armings++;
	model_insert(&model->model, node);
}

static inline struct model_node *wheels_model_cancel(struct wheels_model *model,
						     u64 number)
{
	struct model_node *node =
		model->model.sorted[number % model->model.nr_sorted];

	wheels_del(&model->wheels, &node->node);
	model_remove(&model->model, node);
	return node;
}

/* Remove a node that came out from the array, where it must be the first. */
static inline const char *wheels_model_out(struct wheels_model *model,
					   struct wheel_node *node)
{
	struct model_node *out = container_of(node, struct model_node, node);

	if (!out->late && wheels_model_first(model) != out)
		return "a node came out of order";
	if (out->due > model->model.now)
		return "a node came out early";
	wheels_del(&model->wheels, node);
	if (wheel_queued(node))
		return "a removed node is still on a list";
	model_remove(&model->model, out);
	return NULL;
}

static inline const char *wheels_model_advance(struct wheels_model *model)
{
	u64 now = model->model.now, moved = 0, touched = 0;
	struct wheel_node *node, *safe;
	const char *broken = NULL;
	unsigned int i;
	LIST_HEAD(list);
	bool more;

	for (i = 0; i < WHEELS_MAX; i++)
		moved -= model->wheel[i].cascaded + model->wheel[i].prefetched;
	more = wheels_advance(&model->wheels, now, model->budget, &list);
	for (i = 0; i < WHEELS_MAX; i++)
		moved += model->wheel[i].cascaded + model->wheel[i].prefetched;
	list_for_each_entry_safe(node, safe, &list, list) {
		broken = broken ?: wheels_model_out(model, node);
		touched++;
	}
	if (broken)
		return broken;
	if (touched + moved > model->budget)
		return "more nodes were touched than the budget allows";
	if (model->wheels.touched < touched + moved || model->wheels.touched > model->budget)
		return "the wheels do not say how many nodes were touched";
	if (!more && wheels_model_holds_due(model))
		return "a due node is still on the wheels";
	if (more != (wheels_next(&model->wheels, now) <= now))
		return "the wheels do not say whether there is more to do";
	return NULL;
}

/* Do all work that is due, until limbo is empty. */
static inline const char *wheels_model_drain(struct wheels_model *model)
{
	const char *broken = NULL;
	unsigned int rounds = 4 * MODEL_NODES * WHEEL_LEVELS;

	/* If the only wheel takes them after all, they need no more wheels. */
	if (wheels_model_waits(model) &&
	    wheels_go_back(&model->wheels, model->model.now)) {
		wheel_init(&model->wheel[1], 0);
		wheel_init(&model->wheel[2], 0);
		wheels_grow(&model->wheels, &model->wheel[1]);
	}
	while (!broken && wheels_next(&model->wheels, model->model.now) <=
			  model->model.now) {
		if (!rounds--)
			return "the work that is due does not end";
		broken = wheels_model_advance(model);
	}
	if (!broken && model->wheels.nr_limbo)
		return "nodes wait for wheels, but these are not asked for";
	return broken;
}

/* A tick that is not before now, and a little after that of a wheel if that is possible. */
static inline u64 wheels_model_near(const struct wheels_model *model, u64 which, u64 number)
{
	const struct wheel *wheel = &model->wheel[which % model->wheels.nr];
	u64 clk = wheel->armed ? wheel->clk : 0;

	return max(model->model.now, clk + model_magnitude(number, 10));
}

/* Let time pass: to the next node, a little, or far. */
static inline const char *wheels_model_later(struct wheels_model *model, u64 how,
					     u64 number)
{
	u64 next = wheels_next(&model->wheels, model->model.now);
	const char *broken = how & 4 ? NULL : wheels_model_drain(model);

	if (broken)
		return broken;
	if (model->wheels.nr_limbo && how & 8)
		model->model.now = wheels_model_near(model, how >> 4, number);
	else if (how % 4 < 2 && next != WHEEL_NEVER)
		model->model.now = max(model->model.now, next);
	else
		model->model.now += model_magnitude(number, how % 4 == 2 ? 10 : 24);
	wheels_model_note_late(model);
	return wheels_model_advance(model);
}

static inline const char *wheels_model_back(struct wheels_model *model, u64 number)
{
	u64 back = model_magnitude(number, model->wheels.nr_limbo && number & 1 ? 10 : 24);

	model->model.now -= min(back, model->model.now);
	return wheels_model_advance(model);
}

/* Empty limbo by a part; all of it if a node is due, whose place on other wheels is open. */
static inline const char *wheels_model_empty_some(struct wheels_model *model, u64 rounds)
{
	unsigned int budget = model->budget;
	const char *broken = NULL;

	if (model->model.nr_sorted && model->model.sorted[0]->due <= model->model.now)
		return wheels_model_drain(model);
	/* One node of limbo at a time. */
	model->budget = 2;
	for (; !broken && rounds && model->wheels.nr_limbo; rounds--)
		broken = wheels_model_advance(model);
	model->budget = budget;
	return broken;
}

/*
 * Move all nodes to other wheels, as when a CPU goes offline; also while limbo is being
 * emptied.
 */
static inline const char *wheels_model_move(struct wheels_model *model, u64 rounds)
{
	const char *broken = wheels_model_empty_some(model, rounds);
	struct wheel_node *node;
	LIST_HEAD(list);

	if (broken)
		return broken;
	model->moved_limbo += model->wheels.nr_limbo;
	while ((node = wheels_pop(&model->wheels))) {
		if (wheel_queued(node))
			return "a popped node is still on a list";
		list_add_tail(&node->list, &list);
	}
	if (wheels_armed(&model->wheels))
		return "a node is still on the old wheels";
	wheels_model_make(model);
	while (!list_empty(&list)) {
		node = list_first_entry(&list, struct wheel_node, list);
		list_del(&node->list);
		wheels_add_older(&model->wheels, node, wheel_due(node),
				 model->model.now);
	}
	return NULL;
}

static inline const char *wheels_model_check(struct wheels_model *model)
{
	u64 next = wheels_next(&model->wheels, model->model.now);
	const struct model_node *first = wheels_model_first(model);

	model->most_used = max(model->most_used, model->wheels.nr_used);
	model->most_limbo = max(model->most_limbo, model->wheels.nr_limbo);
	if (wheels_model_waits(model)) {
		model->most_waiting = max(model->most_waiting, model->wheels.nr_limbo);
		if (next > wheels_farthest(&model->wheels)->clk)
			return "nodes wait for more wheels longer than necessary";
		next = min(next, model->model.now + 1);
	}
	if (wheels_armed(&model->wheels) != model->model.nr_sorted)
		return "the number of armed nodes differs";
	if (first && next > max(first->due, model->model.now + 1))
		return "next is after the earliest due tick";
	if (model->model.nr_sorted ? next == WHEEL_NEVER : next != WHEEL_NEVER)
		return "there is a next tick without a node, or none with one";
	return wheels_check(&model->wheels);
}

/**
 * wheels_model_step() - one random step
 * @model: the model.
 * @broken: out: NULL, or what went wrong.
 *
 * Return: false when the source has no more numbers or something went wrong.
 */
static inline bool wheels_model_step(struct wheels_model *model, const char **broken)
{
	struct model_source *source = model->model.source;
	struct wheel_model *array = &model->model;
	u64 what, number;

	*broken = NULL;
	if (!source->draw(source, &what) || !source->draw(source, &number))
		return false;
	if (what >> 52 == 0 || array->now >> (MODEL_BITS + 1))
		wheels_model_restart(model, number);

	switch (what % 32) {
	case 0 ... 19:
		if (array->nr_idle)
			wheels_model_arm(model, array->idle[--array->nr_idle],
					 what >> 5, number);
		break;
	case 20 ... 21:
		if (array->nr_sorted)
			wheels_model_cancel(model, number);
		break;
	case 22 ... 27:
		*broken = wheels_model_back(model, number);
		break;
	default:
		if ((what >> 5) % (model->wheels.nr_limbo ? 4 : 64))
			*broken = wheels_model_later(model, what >> 5, number);
		else
			*broken = wheels_model_move(model, number % 32);
	}
	if (!*broken)
		*broken = wheels_model_check(model);
	return !*broken;
}

#endif /* TWHEEL_WHEELS_MODEL_H */
