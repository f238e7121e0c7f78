// SPDX-License-Identifier: GPL-2.0
/* Programs: made at random, changed at random, and as text. */
#include <stdlib.h>
#include <string.h>

#include "program.h"

static bool chance(struct random *random, unsigned int one_in)
{
	return !random_below(random, one_in);
}

static void usually_zero(uint8_t *byte, struct random *random, unsigned int one_in)
{
	if (!chance(random, one_in))
		*byte = 0;
}

static void memory_make(struct memory_plan *plan, struct random *random)
{
	usually_zero(&plan->kind, random, 6);
	usually_zero(&plan->place, random, 4);
}

static void command_make(struct command_plan *plan, struct random *random)
{
	random_fill(random, plan, sizeof(*plan));
	usually_zero(&plan->flags, random, 3);
	usually_zero(&plan->interval, random, 4);
	usually_zero(&plan->slack, random, 4);
	usually_zero(&plan->quorum, random, 5);
	usually_zero(&plan->wrong, random, 10);
}

/* Any call, of which most parts are ordinary. */
static void call_make(struct call_plan *call, struct random *random)
{
	unsigned int i;

	random_fill(random, call, sizeof(*call));
	/* Most calls are of the first file, so that they meet. */
	usually_zero(&call->slot, random, 4);
	usually_zero(&call->race, random, 8);
	usually_zero(&call->size, random, 8);
	usually_zero(&call->stride, random, 8);
	usually_zero(&call->flags, random, 2);
	memory_make(&call->argument, random);
	memory_make(&call->in, random);
	memory_make(&call->out, random);
	for (i = 0; i < CALL_COMMANDS; i++)
		command_make(&call->commands[i], random);
}

/* Begin with words that are shared: few programs would have them by chance. */
static void begin_with_words(struct program *program, struct random *random)
{
	program->calls[0] = (struct call_plan){
		.kind = CALL_CONFIG,
		.time = random_below(random, 3),
		.value = 1,
	};
	program->calls[1] = (struct call_plan){ .kind = CALL_MMAP };
}

/**
 * program_make() - make a program at random
 * @program: the program.
 * @random: decides what it does.
 */
void program_make(struct program *program, struct random *random)
{
	unsigned int i;

	memset(program, 0, sizeof(*program));
	program->nr = 1 + random_below(random, PROGRAM_CALLS);
	for (i = 0; i < program->nr; i++)
		call_make(&program->calls[i], random);
	if (program->nr > 2 && chance(random, 3))
		begin_with_words(program, random);
}

static void insert_call(struct program *program, const struct call_plan *call, unsigned int at)
{
	if (program->nr == PROGRAM_CALLS)
		program->nr--;
	memmove(&program->calls[at + 1], &program->calls[at],
		(program->nr - at) * sizeof(*call));
	program->calls[at] = *call;
	program->nr++;
}

static void remove_call(struct program *program, unsigned int at)
{
	if (program->nr < 2)
		return;
	program->nr--;
	memmove(&program->calls[at], &program->calls[at + 1],
		(program->nr - at) * sizeof(program->calls[0]));
	memset(&program->calls[program->nr], 0, sizeof(program->calls[0]));
}

static void change_byte(struct program *program, struct random *random)
{
	struct call_plan *call = &program->calls[random_below(random, program->nr)];
	uint8_t *byte = (uint8_t *)call + random_below(random, sizeof(*call));

	switch (random_below(random, 4)) {
	case 0:
		*byte = 0;
		break;
	case 1:
		*byte += 1 + random_below(random, 4) - random_below(random, 5);
		break;
	default:
		random_fill(random, byte, 1);
	}
}

static void change_once(struct program *program, const struct program *other,
			struct random *random)
{
	unsigned int at = random_below(random, program->nr);
	struct call_plan call;

	switch (random_below(random, 8)) {
	case 0:
		call_make(&call, random);
		if (at == PROGRAM_CALLS - 1)
			at--;
		insert_call(program, &call, at);
		break;
	case 1:
		call = other->calls[random_below(random, other->nr)];
		if (at == PROGRAM_CALLS - 1)
			at--;
		insert_call(program, &call, at);
		break;
	case 2:
		remove_call(program, at);
		break;
	case 3:
		call_make(&program->calls[at], random);
		break;
	default:
		change_byte(program, random);
	}
}

/**
 * program_mutate() - change a program a little
 * @program: the program.
 * @other: another one, from which calls are taken.
 * @random: decides how.
 */
void program_mutate(struct program *program, const struct program *other, struct random *random)
{
	unsigned int times = 1 + random_below(random, 4);

	while (times--)
		change_once(program, other, random);
}

/**
 * program_print() - print a program in hexadecimal digits, for program_parse()
 * @program: the program.
 * @file: where to.
 */
void program_print(const struct program *program, FILE *file)
{
	const uint8_t *byte = (const uint8_t *)program->calls;
	const uint8_t *end = (const uint8_t *)&program->calls[program->nr];

	for (; byte < end; byte++)
		fprintf(file, "%02x", *byte);
	fputc('\n', file);
}

/**
 * program_parse() - read what program_print() has printed
 * @program: the program.
 * @text: digits up to the end of the line.
 *
 * Return: whether that is a program.
 */
bool program_parse(struct program *program, const char *text)
{
	uint8_t *byte = (uint8_t *)program->calls;
	size_t len = strspn(text, "0123456789abcdef"), call = 2 * sizeof(program->calls[0]);

	memset(program, 0, sizeof(*program));
	if (!len || len % call || len / call > PROGRAM_CALLS)
		return false;
	program->nr = len / call;
	for (; len; len -= 2, text += 2) {
		char digits[3] = { text[0], text[1] };

		*byte++ = strtoul(digits, NULL, 16);
	}
	return true;
}
