/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Programs: series of calls of the device.
 *
 * All fields are bytes, and any value of a byte means something: calls.c takes it modulo the
 * length of a table. 0 is the ordinary value. So a program can be changed at any byte.
 */
#ifndef FUZZING_PROGRAM_H
#define FUZZING_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "random.h"

#define PROGRAM_CALLS	12
#define CALL_COMMANDS	4

/* Files that a program has open at a time. */
#define PROGRAM_SLOTS	4

/* Kinds of calls, as bytes, with which many programs begin; calls.c has the others. */
#define CALL_CONFIG	0
#define CALL_MMAP	1

/* One command of a call. */
struct command_plan {
	uint8_t op;
	uint8_t flags;
	uint8_t id;
	uint8_t time;
	uint8_t interval;
	uint8_t slack;
	uint8_t value;
	uint8_t key;
	uint8_t quorum;
	uint8_t wrong;
};

/* Where the memory for something is, and where in it. */
struct memory_plan {
	uint8_t kind;
	uint8_t place;
};

/**
 * struct call_plan - one call
 * @kind: which call.
 * @slot: of which file.
 * @other: another file, or whatever.
 * @race: what another thread does meanwhile.
 * @delay: how long that thread waits before.
 * @fault: how a page that is missing is provided.
 * @size: the size of the argument.
 * @stride: the size of what the argument points to.
 * @nr: how many of them.
 * @flags: flags of the call.
 * @time: a time.
 * @value: a number.
 * @argument: where the argument is.
 * @in: where the commands are, or a signal mask.
 * @out: where records and entries go.
 * @commands: the commands, over and over.
 */
struct call_plan {
	uint8_t kind;
	uint8_t slot;
	uint8_t other;
	uint8_t race;
	uint8_t delay;
	uint8_t fault;
	uint8_t size;
	uint8_t stride;
	uint8_t nr;
	uint8_t flags;
	uint8_t time;
	uint8_t value;
	struct memory_plan argument;
	struct memory_plan in;
	struct memory_plan out;
	struct command_plan commands[CALL_COMMANDS];
};

struct program {
	uint8_t nr;
	struct call_plan calls[PROGRAM_CALLS];
};

void program_make(struct program *program, struct random *random);
void program_mutate(struct program *program, const struct program *other, struct random *random);
void program_print(const struct program *program, FILE *file);
bool program_parse(struct program *program, const char *text);

#endif /* FUZZING_PROGRAM_H */
