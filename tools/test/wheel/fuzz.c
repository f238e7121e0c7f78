// SPDX-License-Identifier: GPL-2.0
/*
 * A libFuzzer target: the input decides what the model tests of the wheel, and of the
 * wheels of a clock that can be set back, do.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../kunit/wheels_model.h"

struct fuzz_input {
	struct model_source source;
	const uint8_t *data;
	size_t left;
};

static bool draw_input(struct model_source *source, u64 *number)
{
	struct fuzz_input *input = container_of(source, struct fuzz_input, source);

	if (input->left < sizeof(*number))
		return false;
	memcpy(number, input->data, sizeof(*number));
	input->data += sizeof(*number);
	input->left -= sizeof(*number);
	return true;
}

static void expect_nothing_broken(const char *broken)
{
	if (broken) {
		fprintf(stderr, "%s\n", broken);
		abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct wheel_model model;
	static struct wheels_model wheels_model;
	struct fuzz_input input = {
		.source.draw = draw_input,
		.data = data,
		.left = size,
	};
	const char *broken = NULL;

	model_init(&model, &input.source);
	while (model_step(&model, &broken))
		;
	expect_nothing_broken(broken);

	input.data = data;
	input.left = size;
	wheels_model_init(&wheels_model, &input.source);
	while (wheels_model_step(&wheels_model, &broken))
		;
	expect_nothing_broken(broken);
	return 0;
}
