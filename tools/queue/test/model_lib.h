/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A model of a store in memory. A seed chooses commands, which are run on the model and, if
 * there is one, on a store.
 *
 * A step is some commands and a commit, which also stores the number of the step. So a store
 * that is opened after a crash has the number of the step at which the model must be equal.
 */
#ifndef QUEUE_TEST_MODEL_LIB_H
#define QUEUE_TEST_MODEL_LIB_H

#include "queue/test/store_lib.h"

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

/* Run a step on the model, and on @store unless it is NULL. Returns the commit's number. */
uint64_t model_step(struct model *model, struct store *store);

/* Check that the store equals the model; a difference ends the test. */
void model_compare(const struct model *model, struct store *store);

#endif /* QUEUE_TEST_MODEL_LIB_H */
