/* SPDX-License-Identifier: GPL-2.0 */
/* Dump of a store, and the names in JSON that load.c uses too. See dump.c. */
#ifndef QUEUE_CLI_DUMP_H
#define QUEUE_CLI_DUMP_H

#include <stdio.h>

#include "queue/store/record.h"

struct store;

/* Names in JSON, by enum job_state. */
extern const char *const store_state_names[4];

/* A number of a job: its name, its offset in struct job_record, its size: 4 or 8. */
struct store_json_number {
	const char *name;
	size_t at;
	size_t size;
};

#define NR_STORE_JSON_NUMBERS 13
extern const struct store_json_number store_json_numbers[NR_STORE_JSON_NUMBERS];

/* Write policies and jobs of an open store to @out, as JSON. Returns 0 or a negative errno. */
int store_dump(struct store *store, FILE *out);

#endif /* QUEUE_CLI_DUMP_H */
