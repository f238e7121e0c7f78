// SPDX-License-Identifier: GPL-2.0
/* A model of a store in memory. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/store/batch.h"
#include "queue/store/counts.h"
#include "queue/store/read.h"
#include "queue/test/model_lib.h"

void model_init(struct model *model, uint64_t seed)
{
	memset(model, 0, sizeof(*model));
	model->random = seed * 2654435761u + 88172645463325252ull;
	model->next_id = 1;
}

uint64_t model_random(struct model *model, uint64_t below)
{
	model->random ^= model->random << 13;
	model->random ^= model->random >> 7;
	model->random ^= model->random << 17;
	return (model->random >> 11) % below;
}

/* --- bodies --------------------------------------------------------------------------------- */

static void fill_body(const struct model_job *job, uint8_t *body)
{
	uint32_t x = job->body_seed | 1, i;

	for (i = 0; i < job->record.body_len; i++) {
		x = x * 1664525 + 1013904223;
		body[i] = (uint8_t)(x >> 24);
	}
}

static void new_body(struct model *model, struct model_job *job)
{
	job->body_seed = (uint32_t)model_random(model, UINT32_MAX);
	job->record.body_len = (uint32_t)model_random(model, model_random(model, 8) ? 300 :
						      MODEL_BODY_MOST);
}

/* --- commands ------------------------------------------------------------------------------- */

/* Move a job to another place in its tube. */
static void new_place(struct model *model, struct model_job *job)
{
	struct job_place *place = &job->record.place;

	place->state = (uint8_t)model_random(model, 4);
	place->pri = model_random(model, 2) ? 1024 : (uint32_t)model_random(model, 5);
	place->order = 0;
	if (place->state == JOB_BURIED)
		place->order = ++model->order;
	else if (place->state != JOB_READY)
		place->order = model_random(model, 1000);
}

static bool key_is_used(const struct model *model, const struct job_record *record)
{
	int i;

	for (i = 0; i < MODEL_JOBS; i++) {
		const struct job_record *other = &model->jobs[i].record;

		if (model->jobs[i].there && other->place.tube == record->place.tube &&
		    other->key_len == record->key_len &&
		    !memcmp(other->key, record->key, other->key_len))
			return true;
	}
	return false;
}

static void maybe_key(struct model *model, struct job_record *record)
{
	record->key_len = 1;
	record->key[0] = (char)('a' + model_random(model, 8));
	record->place.keyed = 1;
	if (!model_random(model, 2) || !key_is_used(model, record))
		return;
	record->key_len = 0;
	record->key[0] = 0;
	record->place.keyed = 0;
}

static void do_put(struct model *model, struct model_job *job, struct store *store)
{
	static uint8_t body[MODEL_BODY_MOST];

	memset(&job->record, 0, sizeof(job->record));
	job->record.ttr_ns = model->random >> 3;
	job->record.place.id = model->next_id++;
	job->record.place.tube = 1 + (uint32_t)model_random(model, MODEL_TUBES);
	new_place(model, job);
	maybe_key(model, &job->record);
	if (key_is_used(model, &job->record)) {
		job->record.key_len = 0;
		job->record.key[0] = 0;
		job->record.place.keyed = 0;
	}
	new_body(model, job);
	job->there = true;
	job->marked = false;
	fill_body(job, body);
	if (store)
		store_put(store, &job->record, body);
}

static void do_move(struct model *model, struct model_job *job, struct store *store)
{
	struct job_place old = job->record.place;

	new_place(model, job);
	job->record.releases++;
	job->record.reason_len = (uint16_t)model_random(model, 20);
	memset(job->record.reason, 0, sizeof(job->record.reason));
	memset(job->record.reason, 'r', job->record.reason_len);
	job->marked = false;
	if (store)
		store_move(store, &old, &job->record);
}

/* Move a job to another tube, without its key, as when it dies. */
static void do_die(struct model *model, struct model_job *job, struct store *store)
{
	struct job_record old = job->record;

	job->record.origin = old.place.tube;
	job->record.died_ns = 1 + model_random(model, 1 << 30);
	job->record.place.tube = 1 + (uint32_t)model_random(model, MODEL_TUBES);
	job->record.place.state = JOB_BURIED;
	job->record.place.order = ++model->order;
	job->record.place.keyed = 0;
	job->record.key_len = 0;
	memset(job->record.key, 0, sizeof(job->record.key));
	job->marked = false;
	if (!store)
		return;
	store_move(store, &old.place, &job->record);
	if (old.key_len)
		store_drop_key(store, old.place.tube, old.key, old.key_len);
}

static void do_replace(struct model *model, struct model_job *job, struct store *store)
{
	static uint8_t body[MODEL_BODY_MOST];
	struct job_place old = job->record.place;

	new_body(model, job);
	new_place(model, job);
	job->marked = false;
	fill_body(job, body);
	if (!store)
		return;
	store_replace_body(store, old.id, body, job->record.body_len);
	store_move(store, &old, &job->record);
}

static void do_delete(struct model_job *job, struct store *store)
{
	job->there = false;
	if (store)
		store_delete(store, &job->record.place, job->record.key, job->record.key_len);
}

static void do_mark(struct model_job *job, struct store *store)
{
	job->marked = true;
	if (store)
		store_mark(store, job->record.place.id);
}

static void do_policy(struct model *model, struct store *store)
{
	uint32_t tube = 1 + (uint32_t)model_random(model, MODEL_TUBES);
	struct retry_policy *policy = &model->policies[tube];
	struct tube_record record = { .tube = tube };

	memset(policy, 0, sizeof(*policy));
	policy->max_attempts = (uint32_t)model_random(model, 100);
	policy->factor = (double)model_random(model, 1000) / 8;
	policy->base_ns = model_random(model, 1 << 30);
	snprintf(policy->dead, sizeof(policy->dead), "%.*s", (int)model_random(model, 9),
		 "deadtube");
	snprintf(record.name, sizeof(record.name), "tube-%u", tube);
	record.policy = *policy;
	if (store)
		store_put_tube(store, &record);
}

static void one_command(struct model *model, struct store *store)
{
	struct model_job *job = &model->jobs[model_random(model, MODEL_JOBS)];
	unsigned int what = (unsigned int)model_random(model, 16);

	if (what == 0)
		do_policy(model, store);
	else if (!job->there)
		do_put(model, job, store);
	else if (what < 6)
		do_delete(job, store);
	else if (what < 9)
		do_mark(job, store);
	else if (what < 11)
		do_replace(model, job, store);
	else if (what < 12)
		do_die(model, job, store);
	else
		do_move(model, job, store);
}

static bool look_at_one(void *context, const struct job_place *place)
{
	(void)place;
	return ++*(int *)context < 3;
}

/* Read between commands, not within one: a read may end the batch. */
static void read_something(struct store *store, uint64_t random)
{
	struct job_place from = { .state = random % 4, .tube = 1 + random % MODEL_TUBES };
	struct job_record record;
	int nr = 0;

	if (random % 3)
		store_walk(store, &from, look_at_one, &nr);
	else
		store_get(store, random % 100, &record);
}

uint64_t model_step(struct model *model, struct store *store)
{
	unsigned int n = 1 + (unsigned int)model_random(model, 5);
	uint64_t random = model_random(model, UINT32_MAX);

	if (model->step == 0)
		for (; model->policies[1].max_attempts == 0 ||
		     model->policies[2].max_attempts == 0 ||
		     model->policies[3].max_attempts == 0;)
			do_policy(model, store);
	/* This is one batch: nothing is read within it. */
	while (n--)
		one_command(model, store);
	model->step++;
	if (!store)
		return 0;
	store_put_number(store, "step", model->step);
	if (random % 4 == 0) {
		store_commit(store);
		read_something(store, random / 4);
	}
	return store_commit(store);
}

/* --- comparing ------------------------------------------------------------------------------ */

static void compare_job(const struct model_job *job, struct store *store)
{
	static uint8_t expected[MODEL_BODY_MOST];
	struct job_record record;
	uint64_t id = job->record.place.id;
	const void *body;
	size_t len;

	ASSERT_EQ(store_get(store, id, &record), 0);
	ASSERT(!memcmp(&record, &job->record, sizeof(record)));
	ASSERT_EQ(store_get_body(store, id, &body, &len), 0);
	ASSERT_EQ(len, record.body_len);
	fill_body(job, expected);
	ASSERT(!memcmp(body, expected, len));
	if (!record.key_len)
		return;
	ASSERT_EQ(store_get_key(store, record.place.tube, record.key, record.key_len, &id), 0);
	ASSERT_EQ(id, record.place.id);
}

static uint64_t order_of(const struct job_place *place)
{
	return place->state == JOB_READY ? place->pri : place->order;
}

static int by_place(const void *a, const void *b)
{
	const struct job_place *x = a, *y = b;

	if (order_of(x) != order_of(y))
		return order_of(x) < order_of(y) ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

/* The jobs of the model in one index, in order. */
static size_t model_index(const struct model *model, const struct job_place *from,
			  struct job_place *places)
{
	bool by_tube = from->state == JOB_READY || from->state == JOB_BURIED;
	size_t nr = 0, i;

	for (i = 0; i < MODEL_JOBS; i++) {
		const struct job_place *place = &model->jobs[i].record.place;

		if (model->jobs[i].there && place->state == from->state &&
		    (!by_tube || place->tube == from->tube))
			places[nr++] = *place;
	}
	qsort(places, nr, sizeof(*places), by_place);
	return nr;
}

struct walk {
	const struct job_place *expected;
	size_t nr;
	size_t at;
	bool back;
};

static bool compare_next(void *context, const struct job_place *place)
{
	struct walk *walk = context;

	ASSERT_LT(walk->at, walk->nr);
	ASSERT(!memcmp(place, &walk->expected[walk->back ? walk->nr - 1 - walk->at : walk->at],
		       sizeof(*place)));
	walk->at++;
	return true;
}

static void compare_index(const struct model *model, struct store *store,
			  struct job_place from)
{
	struct job_place places[MODEL_JOBS];
	struct walk walk = { .expected = places };

	walk.nr = model_index(model, &from, places);
	ASSERT_EQ(store_walk(store, &from, compare_next, &walk), 0);
	ASSERT_EQ(walk.at, walk.nr);
	if (walk.nr > 1) {
		/* Walk from the second job on. */
		struct walk rest = { .expected = places + 1, .nr = walk.nr - 1 };

		ASSERT_EQ(store_walk(store, &places[1], compare_next, &rest), 0);
		ASSERT_EQ(rest.at, rest.nr);
	}
	from.order = UINT64_MAX;
	from.id = UINT64_MAX;
	from.pri = UINT32_MAX;
	walk.at = 0;
	walk.back = true;
	ASSERT_EQ(store_walk_back(store, &from, compare_next, &walk), 0);
	ASSERT_EQ(walk.at, walk.nr);
}

static void compare_counts(const struct model *model, struct store *store, uint32_t tube)
{
	struct tube_counts counts = { .urgent = 0 };
	size_t i;

	for (i = 0; i < MODEL_JOBS; i++) {
		const struct job_place *place = &model->jobs[i].record.place;

		if (!model->jobs[i].there || place->tube != tube)
			continue;
		counts.nr[place->state]++;
		counts.urgent += place->state == JOB_READY && place->pri < 1024;
	}
	ASSERT(!memcmp(&counts, store_counts(store, tube), sizeof(counts)));
}

static bool sum_marks(void *context, uint64_t id)
{
	*(uint64_t *)context += id * id;
	return true;
}

struct tube_walk {
	const struct model *model;
	uint32_t nr;
};

static bool compare_tube(void *context, const struct tube_record *tube)
{
	struct tube_walk *walk = context;
	char name[16];

	ASSERT_EQ(tube->tube, ++walk->nr);
	snprintf(name, sizeof(name), "tube-%u", tube->tube);
	ASSERT(!strcmp(tube->name, name));
	ASSERT(!memcmp(&tube->policy, &walk->model->policies[tube->tube], sizeof(tube->policy)));
	return true;
}

void model_compare(const struct model *model, struct store *store)
{
	struct tube_walk tubes = { .model = model };
	uint64_t marks = 0, seen_marks = 0;
	struct job_place place = { 0 };
	size_t i;

	for (i = 0; i < MODEL_JOBS; i++) {
		const struct model_job *job = &model->jobs[i];

		if (job->there)
			compare_job(job, store);
		if (job->there && job->marked)
			sum_marks(&marks, job->record.place.id);
	}
	for (place.state = 0; place.state <= JOB_BURIED; place.state++)
		for (place.tube = 1; place.tube <= MODEL_TUBES; place.tube++)
			compare_index(model, store, place);
	for (place.tube = 1; place.tube <= MODEL_TUBES; place.tube++)
		compare_counts(model, store, place.tube);
	ASSERT_EQ(store_each_mark(store, 0, sum_marks, &seen_marks), 0);
	ASSERT_EQ(seen_marks, marks);
	ASSERT_EQ(store_each_tube(store, compare_tube, &tubes), 0);
	ASSERT_EQ(tubes.nr, MODEL_TUBES);
	ASSERT_EQ(store_next_id(store), model->next_id);
}
