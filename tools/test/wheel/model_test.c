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

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 0) : 5;
	u64 seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (u64)time(NULL);
	unsigned long i, failed = 0;

	printf("1..%lu\n", rounds);
	for (i = 1; i <= rounds; i++, seed++) {
		bool ok = round_holds(seed);

		failed += !ok;
		printf("%s %lu - wheel_agrees_with_a_sorted_array seed %" PRIu64 "\n",
		       ok ? "ok" : "not ok", i, seed);
		fflush(stdout);
	}
	return failed || !rounds;
}
