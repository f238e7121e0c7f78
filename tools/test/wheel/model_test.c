// SPDX-License-Identifier: GPL-2.0
/*
 * The model tests of the wheel, and of the wheels of a clock that can be set back,
 * in userspace: TAP on standard output.
 *
 * Usage: model_test [ROUNDS [SEED]].  Each round runs 200,000 steps of each; a
 * seed that was printed can be given again.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../../../kunit/wheels_model.h"

#define STEPS	200000

static struct wheel_model model;
static struct wheels_model wheels_model;

/* Slots have to be urgent at times, or the round shows little. */
static bool round_holds(u64 seed)
{
	struct model_generator generator = {
		.source.draw = model_generate,
		.seed = seed,
	};
	const char *broken;
	unsigned int step;

	model_init(&model, &generator.source);
	for (step = 0; step < STEPS; step++) {
		if (!model_step(&model, &broken)) {
			printf("# step %u: %s\n", step, broken);
			return false;
		}
	}
	printf("# armed %" PRIu64 " times, prefetch was forced %" PRIu64 " times\n",
	       model.armings, model.forced);
	return model.forced;
}

/* All three wheels and limbo have to be in use at times, or the round shows little. */
static bool wheels_round_holds(u64 seed)
{
	struct model_generator generator = {
		.source.draw = model_generate,
		.seed = seed,
	};
	const char *broken;
	unsigned int step;

	wheels_model_init(&wheels_model, &generator.source);
	for (step = 0; step < STEPS; step++) {
		if (!wheels_model_step(&wheels_model, &broken)) {
			printf("# step %u: %s\n", step, broken);
			return false;
		}
	}
	printf("# armed %" PRIu64 " times, up to %u wheels and %" PRIu64
	       " in limbo, where %" PRIu64 " became due and from where %" PRIu64 " were moved\n",
	       wheels_model.model.armings, wheels_model.most_used,
	       wheels_model.most_limbo, wheels_model.nr_late, wheels_model.moved_limbo);
	return wheels_model.most_used == WHEELS_MAX && wheels_model.moved_limbo &&
	       wheels_model.most_waiting && wheels_model.nr_late;
}

/* Every range of small numbers, and the same at the end of all numbers. */
static bool roundest_is_right(void)
{
	u64 first, last;

	for (first = 0; first < 600; first++) {
		for (last = first; last < 600; last++) {
			u64 f = ~0ULL - last, l = ~0ULL - first;

			if (wheel_roundest(first, last) != model_roundest(first, last) ||
			    wheel_roundest(f, l) != model_roundest(f, l)) {
				printf("# wrong for %" PRIu64 " to %" PRIu64 "\n",
				       first, last);
				return false;
			}
		}
	}
	return true;
}

static bool report(bool ok, unsigned long number, const char *name)
{
	printf("%s %lu - %s", ok ? "ok" : "not ok", number, name);
	return ok;
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 0) : 5;
	u64 seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (u64)time(NULL);
	unsigned long i, failed = 0;

	printf("1..%lu\n", 2 * rounds + 1);
	for (i = 1; i <= 2 * rounds; i += 2, seed++) {
		failed += !report(round_holds(seed), i,
				  "wheel_agrees_with_a_sorted_array");
		printf(" seed %" PRIu64 "\n", seed);
		failed += !report(wheels_round_holds(seed), i + 1,
				  "wheels_of_a_clock_set_back_agree_with_a_sorted_array");
		printf(" seed %" PRIu64 "\n", seed);
		fflush(stdout);
	}
	failed += !report(roundest_is_right(), i,
			  "roundest_tick_is_right_in_every_small_range");
	printf("\n");
	return failed || !rounds;
}
