/* SPDX-License-Identifier: GPL-2.0 */
/* What dumping and loading share: how things are called in JSON. See store_dump.c. */
#ifndef TWHEELQ_STORE_DUMP_H
#define TWHEELQ_STORE_DUMP_H

#include "record.h"

/* The queue's numbers: the next tube, and how far the wall clock is ahead of its clock. */
#define NUMBER_TUBE	"tube"
#define NUMBER_SKEW	"skew"

/* By enum job_state. */
extern const char *const store_state_names[4];

/* A number of a job: its name, where it is in struct job_record, its size: 4 or 8. */
struct store_json_number {
	const char *name;
	size_t at;
	size_t size;
};

#define NR_STORE_JSON_NUMBERS 11
extern const struct store_json_number store_json_numbers[NR_STORE_JSON_NUMBERS];

#endif /* TWHEELQ_STORE_DUMP_H */
