// SPDX-License-Identifier: GPL-2.0
/*
 * Retries: a job whose attempt has failed is delayed, or is dead.
 *
 *	attempts = k < max_attempts:   delayed by min(cap, base * factor^(k-1)) +- jitter
 *	attempts = max_attempts:       buried in the dead tube
 *
 * "fail" fails an attempt in any tube. "release", the end of the time to run and the end of a
 * connection do so in a tube whose policy was set: so stock clients retry without "fail".
 *
 * A dead job loses its key, so another job with this key can be put. Its record has the
 * number of its first tube. The store counts these jobs by that tube, which stays until they
 * are deleted or kicked.
 */
#include <stdlib.h>
#include <string.h>
#include <bsd/stdlib.h>

#include "queue/jobs/job.h"
#include "queue/jobs/retry.h"
#include "queue/jobs/tube.h"
#include "queue/store/batch.h"
#include "queue/store/counts.h"

/* <tube>.dead; the tube's name is cut if that is too long. */
static void default_dead(char *dead, const char *tube)
{
	static const char suffix[] = ".dead";
	size_t len = strnlen(tube, TUBE_NAME_MAX + 1 - sizeof(suffix));

	memcpy(dead, tube, len);
	memcpy(dead + len, suffix, sizeof(suffix));
}

struct retry_policy retry_policy_of(const struct tube *tube)
{
	struct retry_policy policy = tube->policy;

	if (!policy.max_attempts)
		policy = retry_policy_default;
	if (!*policy.dead)
		default_dead(policy.dead, tube->name);
	return policy;
}

/* A random number from -1 to 1. */
static double random_share(void)
{
	return arc4random() / (double)UINT32_MAX * 2 - 1;
}

static void drop_key(struct queue *queue, struct job_record *record)
{
	if (!record->key_len)
		return;
	store_drop_key(queue->store, record->place.tube, record->key, record->key_len);
	record->key_len = 0;
	record->place.keyed = false;
}

static void kill_job(struct queue *queue, struct tube *tube, struct job_record *record,
		     const char *dead_name)
{
	/* It stays in its tube if it died before, or if there are too many tubes. */
	struct tube *dead = record->origin ? tube : tube_get(queue, dead_name) ?: tube;

	drop_key(queue, record);
	if (!record->origin) {
		record->origin = record->place.tube;
		store_count_died(queue->store, record->origin, 1);
		tube_keep(queue, dead);
		record->place.tube = dead->number;
	}
	record->died_ns = alarms_now_ns(ALARM_WALL);
	place_buried(queue, &record->place);
	queue->stats.dead++;
	tube->dead++;
}

/* Only "kick" and "kick-job" bring a dead job back. */
static bool stays_dead(struct queue *queue, struct job_record *record)
{
	if (!record->died_ns)
		return false;
	place_buried(queue, &record->place);
	return true;
}

bool retry_or_bury(struct queue *queue, struct job *job, struct job_record *record,
		   uint64_t *delay_ns)
{
	struct retry_policy policy = retry_policy_of(job->tube);

	if (stays_dead(queue, record))
		return true;
	record->attempts++;
	if (record->attempts >= policy.max_attempts) {
		kill_job(queue, job->tube, record, policy.dead);
		return true;
	}
	*delay_ns = retry_policy_delay_ns(&policy, record->attempts, random_share());
	record->delay_ns = *delay_ns;
	place_delayed(queue, &record->place, *delay_ns);
	queue->stats.retries++;
	job->tube->retries++;
	return false;
}

void retry_set_reason(struct job_record *record, const void *reason, uint64_t len)
{
	record->reason_len = len < JOB_REASON_MAX ? len : JOB_REASON_MAX;
	if (record->reason_len)
		memcpy(record->reason, reason, record->reason_len);
}

void retry_released(struct queue *queue, struct job *job, struct job_record *record,
		    uint64_t delay_ns)
{
	uint64_t backoff_ns;
	bool counts = job->tube->policy.max_attempts;

	if (stays_dead(queue, record))
		return;
	if (counts) {
		retry_set_reason(record, "released", strlen("released"));
		if (retry_or_bury(queue, job, record, &backoff_ns) || !delay_ns)
			return;
	}
	record->delay_ns = delay_ns;
	place_delayed(queue, &record->place, delay_ns);
}

void retry_taken(struct queue *queue, struct job *job, struct job_record *record,
		 const char *reason)
{
	uint64_t delay_ns;

	if (!job->tube->policy.max_attempts) {
		retry_undone(queue, record);
	} else if (!stays_dead(queue, record)) {
		retry_set_reason(record, reason, strlen(reason));
		retry_or_bury(queue, job, record, &delay_ns);
	}
}

void retry_undone(struct queue *queue, struct job_record *record)
{
	if (!stays_dead(queue, record))
		place_ready(&record->place);
}

void retry_revive(struct queue *queue, struct job_record *record)
{
	struct tube *origin = tube_by_number(queue, record->origin);

	if (!record->origin)
		return;
	if (origin)
		record->place.tube = origin->number;
	store_count_died(queue->store, record->origin, -1);
	record->origin = 0;
	record->died_ns = 0;
	record->attempts = 0;
}

void retry_forget_origin(struct queue *queue, uint32_t number)
{
	struct tube *origin = tube_by_number(queue, number);

	store_count_died(queue->store, number, -1);
	if (origin)
		tube_put(queue, origin);
}
