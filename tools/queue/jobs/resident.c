// SPDX-License-Identifier: GPL-2.0
/*
 * Jobs in memory: their table by id, and their memory.
 *
 * A million jobs must take little memory, so they come from chunks, and a list has the unused
 * ones. Chunks are freed at the end only: the limit on jobs in memory is their limit too.
 */
#include <errno.h>
#include <stdlib.h>

#include "queue/jobs/resident.h"
#include "queue/jobs/tube.h"
#include "queue/store/batch.h"

#define CHUNK_JOBS	1024

struct job_chunk {
	struct job_chunk *next;
	struct job jobs[CHUNK_JOBS];
};

int residents_init(struct queue *queue)
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

void residents_destroy(struct queue *queue)
{
	while (queue->chunks) {
		struct job_chunk *chunk = queue->chunks;

		queue->chunks = chunk->next;
		free(chunk);
	}
	free(queue->table);
}

/* Ids are given in ascending order, so their lower bits are evenly distributed. */
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
		.linked = place->scheduled,
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
