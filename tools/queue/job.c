// SPDX-License-Identifier: GPL-2.0
/*
 * Jobs in memory: their table by id, and their memory.
 *
 * A million of them are to take little, so they come from chunks and go to a list of free
 * ones. Chunks are kept until the end: there are never more than the most jobs that were in
 * memory at a time, which the queue's limit is for.
 */
#include <errno.h>
#include <stdlib.h>

#include "core.h"

#define CHUNK_JOBS	1024

struct job_chunk {
	struct job_chunk *next;
	struct job jobs[CHUNK_JOBS];
};

/* Ready jobs are by priority and id, reserved ones by when their time is over. */
static uint64_t job_rank(const struct job *job)
{
	return job->status == IS_RESERVED ? job->deadline_ns : job->pri;
}

int job_compare(const struct job *a, const struct job *b)
{
	uint64_t rank_a = job_rank(a), rank_b = job_rank(b);

	if (rank_a != rank_b)
		return rank_a < rank_b ? -1 : 1;
	if (job_id(a) != job_id(b))
		return job_id(a) < job_id(b) ? -1 : 1;
	return 0;
}

RB_GENERATE(job_tree, job, node, job_compare)

int jobs_init(struct queue *queue)
{
	size_t buckets = 1024;

	queue->max_resident = queue->config.memory / 4 * 3 /
			      (sizeof(struct job) + sizeof(void *));
	while (buckets < queue->max_resident)
		buckets *= 2;
	queue->table = calloc(buckets, sizeof(*queue->table));
	queue->table_mask = buckets - 1;
	return queue->table ? 0 : -ENOMEM;
}

void jobs_destroy(struct queue *queue)
{
	while (queue->chunks) {
		struct job_chunk *chunk = queue->chunks;

		queue->chunks = chunk->next;
		free(chunk);
	}
	free(queue->table);
}

/* Ids are given in order, so that their lower bits are spread as well as can be. */
static struct job **job_bucket(struct queue *queue, uint64_t id)
{
	return &queue->table[id & queue->table_mask];
}

struct job *job_resident(struct queue *queue, uint64_t id)
{
	struct job *job = *job_bucket(queue, id);

	while (job && job_id(job) != id)
		job = job->next;
	return job;
}

static bool add_chunk(struct queue *queue)
{
	struct job_chunk *chunk = malloc(sizeof(*chunk));
	size_t i;

	if (!chunk)
		return false;
	chunk->next = queue->chunks;
	queue->chunks = chunk;
	for (i = 0; i < CHUNK_JOBS; i++) {
		chunk->jobs[i].next = queue->free_jobs;
		queue->free_jobs = &chunk->jobs[i];
	}
	return true;
}

static enum job_status status_on_disk(enum job_state state)
{
	switch (state) {
	case JOB_READY:
		return IS_READY;
	case JOB_BURIED:
		return IS_BURIED;
	default:
		return IS_DELAYED;
	}
}

struct job *job_new(struct queue *queue, const struct job_place *place)
{
	struct job **bucket = job_bucket(queue, place->id);
	struct job *job;

	if (!queue->free_jobs && !add_chunk(queue))
		return NULL;
	job = queue->free_jobs;
	queue->free_jobs = job->next;
	*job = (struct job){
		.alarm.id = place->id,
		.next = *bucket,
		.tube = tube_by_number(queue, place->tube),
		.order = place->order,
		.seq = store_last(queue->store),
		.pri = place->pri,
		.status = status_on_disk(place->state),
		.stored = place->state,
		.keyed = place->keyed,
	};
	*bucket = job;
	queue->nr_resident++;
	return job;
}

void job_forget(struct queue *queue, struct job *job)
{
	struct job **link = job_bucket(queue, job_id(job));

	while (*link != job)
		link = &(*link)->next;
	*link = job->next;
	job->next = queue->free_jobs;
	queue->free_jobs = job;
	queue->nr_resident--;
}

struct job_place job_place(const struct job *job)
{
	return (struct job_place){
		.id = job_id(job),
		.order = job->order,
		.tube = job->tube->number,
		.pri = job->pri,
		.state = job->stored,
		.keyed = job->keyed,
	};
}
