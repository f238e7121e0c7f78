/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Arguments of options, for several subcommands. Each ends the process if the argument is
 * wrong, with a message that says which option, and what would be right.
 */
#ifndef TWHEELQ_ARGUMENTS_H
#define TWHEELQ_ARGUMENTS_H

#include <argp.h>
#include <stdint.h>

#include "alarm.h"

#define KIB	1024ULL
#define MIB	(1024 * KIB)
#define GIB	(1024 * MIB)

/* Bytes: digits, and K, M or G; from @min to @max. */
void take_size(struct argp_state *state, const char *option, const char *arg,
	       uint64_t min, uint64_t max, uint64_t *size);

/* A number from @min to @max. */
void take_count(struct argp_state *state, const char *option, const char *arg,
		uint64_t min, uint64_t max, uint64_t *count);

/* A time longer than 0, as commands have it. */
void take_duration(struct argp_state *state, const char *option, const char *arg,
		   uint64_t *ns);

/* "auto", "device" or "process". */
enum alarm_make take_wheel(struct argp_state *state, const char *arg);

/* "error" to "debug": a priority of syslog's. */
int take_log_level(struct argp_state *state, const char *arg);

#endif /* TWHEELQ_ARGUMENTS_H */
