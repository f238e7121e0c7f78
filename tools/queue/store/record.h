/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Records of jobs and tubes on disk. batch.c writes and read.c reads them; jobs/ gives the
 * fields their meaning.
 *
 *	          put                      due, or kick
 *	  READY <------- (new) -------> DELAYED, WALL ------> READY
 *	    |  ^ \                         ^
 *	    |  |  \ delete                 | release with a delay, a retry
 *	    |  |   v                       |
 *	    |  |  (gone)               (reserved, in memory only)
 *	    |  |                           |
 *	    |  +--- release, TTR ----------+--- bury, the last attempt ---> BURIED
 *	    +------ reserve -------------->                                  |
 *	       ^------------------------------------------------------- kick-+
 *
 * A job has one entry in the index of its state; walks read the index in order. A reserved
 * job stays READY (or DELAYED, with a time in the past) on disk and has a mark.
 */
#ifndef QUEUE_STORE_RECORD_H
#define QUEUE_STORE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/retry_policy.h"

#define TUBE_NAME_MAX	RETRY_DEAD_MAX
#define JOB_KEY_MAX	200
/* The most that --max-job-size may be. */
#define JOB_BODY_MAX	(1u << 30)
/* The largest reason of a failure that is stored; longer ones are cut. */
#define JOB_REASON_MAX	1024

enum job_state {
	JOB_READY,	/* ordered by tube, priority, id */
	JOB_DELAYED,	/* ordered by due time on the queue's clock, see alarm/clock.h */
	JOB_WALL,	/* ordered by due time on the wall clock: put-at */
	JOB_BURIED,	/* ordered by tube, @order */
};

/**
 * struct job_place - the place of a job on disk: all that its entry in an index has
 * @id: the job's id.
 * @order: DELAYED, WALL: due time, ns; BURIED: a number that grows; READY: 0.
 * @tube: number of the tube.
 * @pri: priority.
 * @state: enum job_state.
 * @keyed: the job has a key.
 * @scheduled: a schedule has put the job.
 */
struct job_place {
	uint64_t id;
	uint64_t order;
	uint32_t tube;
	uint32_t pri;
	uint8_t state;
	uint8_t keyed;
	uint8_t scheduled;
};

/**
 * struct job_record - the record of a job on disk; the body is stored apart
 * @place: place of the job.
 * @created_ns: time of the put, on the queue's clock.
 * @delay_ns: delay of the last put or release.
 * @ttr_ns: time to run.
 * @body_len: length of the body in bytes.
 * @reserves: number of reserves.
 * @timeouts: number of reserves that ended because @ttr_ns was over.
 * @releases: number of releases.
 * @buries: number of buries.
 * @kicks: number of kicks.
 * @attempts: number of failed attempts, as retry policies count them.
 * @origin: number of the tube where the job died, if it is in a dead tube; else 0.
 * @died_ns: time of death on the wall clock; 0: the job has not died.
 * @schedule: id of the schedule that put it; 0: a client did.
 * @missed: number of times of the schedule that passed, and that the job was put for.
 * @key_len: length of @key; 0: no key.
 * @reason_len: length of @reason.
 * @key: key of put-unique.
 * @reason: reason of the last failure.
 */
struct job_record {
	struct job_place place;
	uint64_t created_ns;
	uint64_t delay_ns;
	uint64_t ttr_ns;
	uint32_t body_len;
	uint32_t reserves;
	uint32_t timeouts;
	uint32_t releases;
	uint32_t buries;
	uint32_t kicks;
	uint32_t attempts;
	uint32_t origin;
	uint64_t died_ns;
	uint64_t schedule;
	uint64_t missed;
	uint16_t key_len;
	uint16_t reason_len;
	char key[JOB_KEY_MAX];
	char reason[JOB_REASON_MAX];
};

/**
 * struct tube_counts - number of jobs of a tube by their state on disk
 * @nr: jobs by enum job_state.
 * @urgent: READY jobs whose priority is below 1024.
 * @schedules: schedules that put jobs into it.
 * @died: dead jobs of any tube that came from this one (@origin of struct job_record).
 */
struct tube_counts {
	uint64_t nr[4];
	uint64_t urgent;
	uint64_t schedules;
	uint64_t died;
};

/**
 * struct tube_record - the record of a tube on disk
 * @tube: number of the tube, from 1; never used again for another name.
 * @name: name of the tube.
 * @policy: retry policy of the tube.
 * @counts: number of jobs by state.
 */
struct tube_record {
	uint32_t tube;
	char name[TUBE_NAME_MAX + 1];
	struct retry_policy policy;
	struct tube_counts counts;
};

#endif /* QUEUE_STORE_RECORD_H */
