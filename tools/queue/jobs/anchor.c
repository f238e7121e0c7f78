// SPDX-License-Identifier: GPL-2.0
/*
 * The queue's clock over restarts, and when the wall clock is set.
 *
 * The store has the skew (alarm/clock.h) and the last time that was written. The clock starts
 * at the wall clock's time less the skew. If that is before the last time written, the wall
 * clock is behind: many machines boot with a clock of 1970, and set it seconds later. Then
 *
 *	wait for it, for up to --clock-wait;
 *	start at the last time written, in doubt: how long the daemon was away is not known;
 *	when the wall clock is set, go on at its time less the skew, as if it had been right. The
 *		delays that began since the start are moved on disk by as much as the clock jumps,
 *		so they are no shorter.
 *
 * The ids of the jobs whose delays began are kept in memory, up to MOST_IDS, and no more than one
 * batch of the store may move; a job is counted each time its delay begins. If there are more, the
 * clock does not jump: the older jobs are late by the time that the daemon was away.
 *
 * If the daemon ends in doubt, the next start begins at the last time written too, because jobs
 * were put by a clock that was behind.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "common/log.h"
#include "common/time.h"
#include "queue/jobs/anchor.h"
#include "queue/jobs/resident.h"
#include "queue/jobs/state.h"
#include "queue/jobs/window.h"
#include "queue/store/batch.h"
#include "queue/store/numbers.h"
#include "queue/store/read.h"


#define NOTE_NS		NSEC_PER_SEC
/* The wall clock is adjusted by less than this without being wrong. */
#define BEHIND_NS	NSEC_PER_SEC
#define LOOK_NS		(100 * NSEC_PER_MSEC)
#define FIRST_IDS	1024
#define MOST_IDS	65536

static int get_skew(const struct queue *queue, uint64_t *skew_ns)
{
	return store_get_number(queue->store, NUMBER_SKEW, 0, skew_ns);
}

/* The store is read only while the queue starts, so nobody is served who waits for this. */
static bool is_told_to_end(void)
{
	sigset_t pending;

	sigpending(&pending);
	return sigismember(&pending, SIGTERM) || sigismember(&pending, SIGINT);
}

/* Returns by how much the clock is still behind @last_ns. */
static uint64_t wait_for_clock(struct queue *queue, uint64_t skew_ns, uint64_t last_ns)
{
	const struct timespec pause = time_spec(LOOK_NS);
	uint64_t behind_ns = clock_behind_ns(skew_ns, last_ns), waited_ns = 0;

	if (behind_ns < BEHIND_NS)
		return behind_ns;
	log_say(LOG_WARNING,
		"the wall clock is %llu s behind the last time that was written; waiting for it for up to %llu s",
		(unsigned long long)(behind_ns / NSEC_PER_SEC),
		(unsigned long long)(queue->config.clock_wait_ns / NSEC_PER_SEC));
	while (behind_ns >= BEHIND_NS && waited_ns < queue->config.clock_wait_ns &&
	       !is_told_to_end()) {
		nanosleep(&pause, NULL);
		waited_ns += LOOK_NS;
		behind_ns = clock_behind_ns(skew_ns, last_ns);
	}
	return behind_ns;
}

int anchor_start(struct queue *queue)
{
	uint64_t skew_ns, last_ns, doubt, behind_ns;
	int err = get_skew(queue, &skew_ns);

	if (!err)
		err = store_get_number(queue->store, NUMBER_TIME, 0, &last_ns);
	if (!err)
		err = store_get_number(queue->store, NUMBER_DOUBT, 0, &doubt);
	if (err)
		return err;
	behind_ns = last_ns ? wait_for_clock(queue, skew_ns, last_ns) : 0;
	queue->in_doubt = behind_ns >= BEHIND_NS;
	clock_start(&queue->clock, skew_ns);
	if (behind_ns || doubt)
		clock_go_on(&queue->clock, last_ns);
	if (queue->in_doubt)
		log_say(LOG_WARNING,
			"the wall clock is wrong: delays go on from the last time that was written");
	else if (behind_ns || doubt)
		store_put_number(queue->store, NUMBER_SKEW, clock_skew_ns(&queue->clock));
	if (doubt != queue->in_doubt)
		store_put_number(queue->store, NUMBER_DOUBT, queue->in_doubt);
	return 0;
}

void anchor_note_now(struct queue *queue)
{
	queue->noted_ns = clock_now_ns(&queue->clock);
	store_put_number(queue->store, NUMBER_TIME, queue->noted_ns);
}

void anchor_note(struct queue *queue)
{
	if (store_last(queue->store) == store_seq(queue->store) &&
	    clock_now_ns(&queue->clock) - queue->noted_ns >= NOTE_NS)
		anchor_note_now(queue);
}

/* Is there room for one more id? */
static bool has_room(struct queue *queue)
{
	struct begun *begun = &queue->begun;
	size_t room = begun->room ? 2 * begun->room : FIRST_IDS;
	uint64_t *ids;

	if (begun->nr == MOST_IDS || begun->bytes > store_move_bytes_most(queue->store))
		return false;
	if (begun->nr < begun->room)
		return true;
	ids = reallocarray(begun->ids, room, sizeof(*ids));
	if (!ids)
		return false;
	begun->ids = ids;
	begun->room = room;
	return true;
}

void anchor_delay_began(struct queue *queue, const struct job_record *record)
{
	struct begun *begun = &queue->begun;

	if (!queue->in_doubt || begun->overflow)
		return;
	begun->bytes += store_move_bytes(record);
	begun->overflow = !has_room(queue);
	if (!begun->overflow)
		begun->ids[begun->nr++] = record->place.id;
}

void anchor_free(struct queue *queue)
{
	free(queue->begun.ids);
	queue->begun = (struct begun){ 0 };
}

static int compare_ids(const void *a, const void *b)
{
	uint64_t id_a = *(const uint64_t *)a, id_b = *(const uint64_t *)b;

	return id_a < id_b ? -1 : id_a > id_b;
}

/* A delay that is not moved would end too early. */
static bool are_readable(struct queue *queue)
{
	struct job_record record;
	size_t i;
	int ret;

	store_hand_over(queue->store);
	for (i = 0; i < queue->begun.nr; i++) {
		ret = store_get_unchanged(queue->store, queue->begun.ids[i], &record);
		if (ret && ret != -ENOENT)
			return false;
	}
	return true;
}

/* A job in memory is due: the others were evicted. */
static void move_delay(struct queue *queue, uint64_t id, uint64_t by_ns)
{
	struct job_record record;
	struct job_place old;

	if (job_resident(queue, id) || store_get_unchanged(queue->store, id, &record) ||
	    record.place.state != JOB_DELAYED)
		return;
	old = record.place;
	record.place.order += by_ns;
	store_move(queue->store, &old, &record);
}

/* In one batch: after a crash, either all or none are moved. */
static void move_delays(struct queue *queue, uint64_t by_ns)
{
	struct begun *begun = &queue->begun;

	store_hand_over(queue->store);
	if (begun->nr)
		qsort(begun->ids, begun->nr, sizeof(*begun->ids), compare_ids);
	for (size_t i = 0; i < begun->nr; i++)
		if (!i || begun->ids[i] != begun->ids[i - 1])
			move_delay(queue, begun->ids[i], by_ns);
}

/*
 * Forget that the clock was wrong, unless it still is, or too many delays have begun, or one of
 * them, their index or the skew cannot be read.
 */
static bool go_on_by_wall(struct queue *queue)
{
	uint64_t skew_ns, before_ns;

	if (!queue->in_doubt || queue->begun.overflow || !are_readable(queue) ||
	    get_skew(queue, &skew_ns))
		return false;
	before_ns = clock_now_ns(&queue->clock);
	if (clock_behind_ns(skew_ns, before_ns) || window_reload(queue))
		return false;
	clock_start(&queue->clock, skew_ns);
	move_delays(queue, clock_now_ns(&queue->clock) - before_ns);
	return true;
}

void anchor_clock_was_set(struct queue *queue)
{
	uint64_t skew_ns;

	if (go_on_by_wall(queue)) {
		log_say(LOG_NOTICE, "the wall clock was set: delays go on by it");
	} else {
		skew_ns = clock_skew_ns(&queue->clock);
		log_say(LOG_NOTICE, "the wall clock was set; delays continue, %lld s from it",
			(long long)skew_ns / (long long)NSEC_PER_SEC);
		store_put_number(queue->store, NUMBER_SKEW, skew_ns);
	}
	if (queue->in_doubt)
		store_put_number(queue->store, NUMBER_DOUBT, 0);
	queue->in_doubt = false;
	anchor_free(queue);
}
