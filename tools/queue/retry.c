// SPDX-License-Identifier: GPL-2.0
/*
 * Retries and the dead: what becomes of a job whose attempt failed.
 *
 *	attempts = k < max_attempts:   delayed by min(cap, base * factor^(k-1)) +- jitter
 *	attempts = max_attempts:       buried in the tube for the dead
 *
 * A dead job has no key any more: another job of that key may be put. Its number of the
 * tube that it came from has to stay good, so that tube is kept on disk (struct tube's
 * @policy.dead).
 */
#include <stdlib.h>
#include <string.h>
#include <bsd/stdlib.h>

#include "core.h"
#include "retry_policy.h"

/* <tube>.dead, the tube's name cut where that is too long. */
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

/* A number from -1 to 1. */
static double random_share(void)
{
	return arc4random() / (double)UINT32_MAX * 2 - 1;
}

uint64_t retry_delay_ns(const struct retry_policy *policy, uint32_t k)
{
	return retry_policy_delay_ns(policy, k, random_share());
}

/* Its tube's number stays, for retry_revive(). */
static void keep_origin(struct queue *queue, struct tube *tube, const char *dead)
{
	if (*tube->policy.dead)
		return;
	strcpy(tube->policy.dead, dead);
	tube_save(queue, tube);
}

static void drop_key(struct queue *queue, struct job_record *record)
{
	if (!record->key_len)
		return;
	store_drop_key(queue->store, record->place.tube, record->key, record->key_len);
	record->key_len = 0;
	record->place.keyed = false;
}

static void die(struct queue *queue, struct tube *tube, struct job_record *record,
		const char *dead_name)
{
	/* Who died before is buried where it is; and so is all where no tube can be made. */
	struct tube *dead = record->origin ? tube : tube_get(queue, dead_name) ?: tube;

	drop_key(queue, record);
	if (!record->origin) {
		record->origin = record->place.tube;
		keep_origin(queue, tube, dead_name);
		tube_keep(queue, dead);
		record->place.tube = dead->number;
	}
	record->died_ns = alarms_now_ns(ALARM_WALL);
	place_buried(queue, &record->place);
	queue->stats.dead++;
}

bool retry_or_bury(struct queue *queue, struct job *job, struct job_record *record,
		   uint64_t *delay_ns)
{
	struct retry_policy policy = retry_policy_of(job->tube);

	record->attempts++;
	if (record->attempts >= policy.max_attempts) {
		die(queue, job->tube, record, policy.dead);
		return true;
	}
	*delay_ns = retry_delay_ns(&policy, record->attempts);
	record->delay_ns = *delay_ns;
	place_delayed(queue, &record->place, *delay_ns);
	queue->stats.retries++;
	return false;
}

void retry_revive(struct queue *queue, struct job_record *record)
{
	struct tube *origin = tube_by_number(queue, record->origin);

	if (!record->origin)
		return;
	if (origin)
		record->place.tube = origin->number;
	record->origin = 0;
	record->died_ns = 0;
	record->attempts = 0;
}
