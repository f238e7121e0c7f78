// SPDX-License-Identifier: GPL-2.0
/*
 * A libFuzzer target: the input decides what the model test of the wheel does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../kunit/wheel_model.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct wheel_model model;
	struct fuzz_input input = {
		.source.draw = draw_input,
		.data = data,
		.left = size,
	};
	const char *broken = NULL;

	model_init(&model, &input.source);
	while (model_step(&model, &broken))
		;
	if (broken) {
		fprintf(stderr, "%s\n", broken);
		abort();
	}
	return 0;
}
