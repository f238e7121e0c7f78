/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a store must have, kept in memory: commands that a seed tells, made in the model and,
 * if there is one, in a store.
 *
 * A step is some commands and a commit, which also writes the number of the step: so a store
 * that is found after a crash says up to which step the model is to go, to be the same.
 */
#ifndef MODEL_LIB_H
#define MODEL_LIB_H

#include "store_lib.h"

#define MODEL_JOBS	48
#define MODEL_TUBES	3
#define MODEL_BODY_MOST	20000

struct model_job {
	struct job_record record;
	uint32_t body_seed;
	bool there;
	bool marked;
};

struct model {
	uint64_t random;
	uint64_t step;
	uint64_t next_id;
	uint64_t order;
	struct retry_policy policies[MODEL_TUBES + 1];
	struct model_job jobs[MODEL_JOBS];
};

void model_init(struct model *model, uint64_t seed);
uint64_t model_random(struct model *model, uint64_t below);

/* A step of the model, and of @store if that is not NULL; returns the commit's number. */
uint64_t model_step(struct model *model, struct store *store);

/* The store has what the model has, neither more nor less; what differs ends the test. */
void model_compare(const struct model *model, struct store *store);

#endif /* MODEL_LIB_H */
