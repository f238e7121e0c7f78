// SPDX-License-Identifier: GPL-2.0
/*
 * The model test of the wheel, in userspace: TAP on standard output.
 *
 * Usage: model_test [ROUNDS [SEED]].  Each round runs 200,000 steps; a
 * seed that was printed can be given again.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../../../kunit/wheel_model.h"

#define STEPS	200000

static struct wheel_model model;

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
	printf("# armed %" PRIu64 " times\n", model.armings);
	return true;
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

	printf("1..%lu\n", rounds + 1);
	for (i = 1; i <= rounds; i++, seed++) {
		failed += !report(round_holds(seed), i,
				  "wheel_agrees_with_a_sorted_array");
		printf(" seed %" PRIu64 "\n", seed);
		fflush(stdout);
	}
	failed += !report(roundest_is_right(), i,
			  "roundest_tick_is_right_in_every_small_range");
	printf("\n");
	return failed || !rounds;
}
