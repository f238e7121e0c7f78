// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of keys and watches: which of them a signal satisfies, and how they are counted.
 *
 * The suite compiles a watch.c of its own, as the module exports none of it.
 */
#include <kunit/test.h>
#include <linux/prandom.h>

#include "../kmod/watch.c"
#include "options.h"

#define KEY		7
#define MODEL_STEPS	20000
#define MODEL_WATCHES	24
#define MODEL_WATCHERS	6
/* Small ones meet often. */
#define MODEL_VALUES	40
/* A few signals later it passes 2^64. */
#define FIRST_TOTAL	(U64_MAX - 2 * MODEL_VALUES)

/**
 * struct model - the watches of a key, beside the values that they must wait for
 * @test: the test.
 * @keys: the table of keys.
 * @watchers: the watchers of operations.
 * @watches: watches, linked or NULL.
 * @left: SUM: the value that is missing; LEVEL: the level.
 */
struct model {
	struct kunit *test;
	struct rhashtable keys;
	struct twheel_watcher watchers[MODEL_WATCHERS];
	struct watch *watches[MODEL_WATCHES];
	u64 left[MODEL_WATCHES];
};

static struct model *model_make(struct kunit *test)
{
	struct model *model = kunit_kzalloc(test, sizeof(*model), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, model);
	model->test = test;
	KUNIT_ASSERT_EQ(test, keys_init(&model->keys), 0);
	for (i = 0; i < MODEL_WATCHERS; i++)
		watcher_init(&model->watchers[i]);
	return model;
}

static void model_end(struct model *model)
{
	unsigned int i;

	for (i = 0; i < MODEL_WATCHERS; i++)
		watcher_drop(&model->keys, &model->watchers[i]);
	KUNIT_EXPECT_EQ(model->test, atomic_read(&model->keys.nelems), 0);
	keys_destroy(&model->keys);
}

static void model_link(struct model *model, unsigned int i, unsigned int watcher,
		       enum watch_kind kind, u64 need)
{
	struct watch *watch = watch_create(&model->keys, KEY, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(model->test, watch);
	if (watch->key->refs == 1)
		watch->key->total = FIRST_TOTAL;
	watch_link(watch, &model->watchers[watcher], kind, need);
	model->watches[i] = watch;
	model->left[i] = need;
}

static void model_free(struct model *model, unsigned int i)
{
	watch_free(&model->keys, model->watches[i]);
	model->watches[i] = NULL;
}

/* Of the watches of that kind that a signal satisfies, how many there are, and the lowest value. */
static unsigned int satisfied(const struct model *model, enum watch_kind kind, u64 value,
			      u64 *lowest)
{
	unsigned int nr = 0, i;

	*lowest = U64_MAX;
	for (i = 0; i < MODEL_WATCHES; i++) {
		if (!model->watches[i] || model->watches[i]->kind != kind ||
		    model->left[i] > value)
			continue;
		nr++;
		*lowest = min(*lowest, model->left[i]);
	}
	return nr;
}

static unsigned int siblings(const struct model *model)
{
	unsigned int nr = 0, i;

	for (i = 0; i < MODEL_WATCHES; i++) {
		if (model->watches[i])
			nr += model->watches[i]->watcher->nr_watches;
	}
	return nr;
}

/* What is counted is counted up to each bound, and never beyond it. */
static void check_counts(const struct model *model, const struct watched_key *key, u64 value)
{
	u64 lowest;
	unsigned int sums = satisfied(model, WATCH_SUM, value, &lowest);
	unsigned int all = sums + satisfied(model, WATCH_LEVEL, value, &lowest);
	unsigned int related = siblings(model), max, bounded;

	for (max = 0; max <= all + 1; max++) {
		bounded = min(all, max);
		KUNIT_ASSERT_EQ(model->test, key_count_satisfied(key, value, max), bounded);
	}
	for (max = 0; max <= related + 1; max++) {
		bounded = min(related, max);
		KUNIT_ASSERT_EQ(model->test, key_count_siblings(key, max), bounded);
	}
}

/* The lowest sum that is met comes first, then the lowest level. */
static void check_first(const struct model *model, const struct watch *watch, u64 value)
{
	u64 sum, level;
	unsigned int sums = satisfied(model, WATCH_SUM, value, &sum);
	unsigned int levels = satisfied(model, WATCH_LEVEL, value, &level);

	KUNIT_ASSERT_EQ(model->test, !!watch, !!(sums + levels));
	if (!watch)
		return;
	KUNIT_ASSERT_EQ(model->test, (int)watch->kind, sums ? WATCH_SUM : WATCH_LEVEL);
	if (sums)
		KUNIT_ASSERT_EQ(model->test, missing(watch), sum);
	else
		KUNIT_ASSERT_EQ(model->test, watch->threshold, level);
}

static void model_signal(struct model *model, u64 value)
{
	struct watched_key *key = keys_get(&model->keys, KEY);
	struct watch *watch;
	unsigned int i;

	if (!key)
		return;
	check_counts(model, key, value);
	do {
		watch = key_satisfied(key, value);
		check_first(model, watch, value);
		for (i = 0; watch && i < MODEL_WATCHES; i++) {
			if (model->watches[i] == watch)
				model_free(model, i);
		}
	} while (watch);
	key->total += value;
	for (i = 0; i < MODEL_WATCHES; i++) {
		if (model->watches[i] && model->watches[i]->kind == WATCH_SUM)
			model->left[i] -= value;
	}
	keys_put(&model->keys, key);
}

static void signals_satisfy_what_a_model_says(struct kunit *test)
{
	struct model *model = model_make(test);
	struct rnd_state rnd;
	unsigned int step, i;
	u32 dice;

	prandom_seed_state(&rnd, seed_of(test));
	for (step = 0; step < rounds_of(MODEL_STEPS); step++) {
		dice = prandom_u32_state(&rnd);
		i = dice % MODEL_WATCHES;
		if (dice >> 30 == 0) {
			model_signal(model, prandom_u32_state(&rnd) % MODEL_VALUES);
		} else if (!model->watches[i]) {
			model_link(model, i, prandom_u32_state(&rnd) % MODEL_WATCHERS,
				   dice & BIT(29) ? WATCH_SUM : WATCH_LEVEL,
				   prandom_u32_state(&rnd) % MODEL_VALUES + 1);
		} else if (dice & BIT(29)) {
			model_free(model, i);
		}
	}
	model_end(model);
}

/* --- the suite -------------------------------------------------------------- */

static struct kunit_case watch_cases[] = {
	KUNIT_CASE(signals_satisfy_what_a_model_says),
	{}
};

/* Not by watches_init(): the module is loaded, and has caches by the names that it gives. */
static int watch_suite_init(struct kunit_suite *suite)
{
	key_cache = kmem_cache_create("twheel_kunit_key", sizeof(struct watched_key), 0, 0, NULL);
	watch_cache = kmem_cache_create("twheel_kunit_watch", sizeof(struct watch), 0, 0, NULL);
	if (key_cache && watch_cache)
		return 0;
	watches_exit();
	return -ENOMEM;
}

static void watch_suite_exit(struct kunit_suite *suite)
{
	watches_exit();
}

static struct kunit_suite watch_suite = {
	.name = "twheel_watch",
	.suite_init = watch_suite_init,
	.suite_exit = watch_suite_exit,
	.test_cases = watch_cases,
};

kunit_test_suite(watch_suite);

MODULE_DESCRIPTION("KUnit suite of twheel's keys and watches");
MODULE_LICENSE("GPL");
