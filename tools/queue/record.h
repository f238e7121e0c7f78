/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is known of a job and of a tube on disk: store.c writes and reads it, the queue
 * gives it its meaning.
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
 * A job has one entry in the index of its state, which is where it is found by order. A
 * reserved job stays READY (or DELAYED, its time being past) on disk, with a mark.
 */
#ifndef TWHEELQ_RECORD_H
#define TWHEELQ_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TUBE_NAME_MAX	200
#define JOB_KEY_MAX	200
/* Of the reason of a failure so much is kept. */
#define JOB_REASON_MAX	1024

enum job_state {
	JOB_READY,	/* by tube, priority, id */
	JOB_DELAYED,	/* by due time of the queue's clock, see clock.h */
	JOB_WALL,	/* the same by the wall clock: put-at */
	JOB_BURIED,	/* by tube, in the order of @order */
};

/**
 * struct job_place - where the disk has a job: all that its entry in an index has
 * @id: its id.
 * @order: DELAYED, WALL: when it is due, ns; BURIED: a number that grows; READY: 0.
 * @tube: the tube's number.
 * @pri: its priority.
 * @state: enum job_state.
 * @keyed: it has a key.
 */
struct job_place {
	uint64_t id;
	uint64_t order;
	uint32_t tube;
	uint32_t pri;
	uint8_t state;
	uint8_t keyed;
};

/**
 * struct job_record - what the disk has of a job, but for its body
 * @place: where it is.
 * @created_ns: when it was put, of the queue's clock.
 * @delay_ns: the delay that it was put or released with last.
 * @ttr_ns: the time to run.
 * @body_len: bytes of its body.
 * @reserves: how often it was reserved, and so on.
 * @attempts: how many attempts have failed, as policies count.
 * @origin: the tube that it came from, where it is in a tube for the dead; else 0.
 * @died_ns: when it died, wall clock; 0: it did not.
 * @key_len: length of @key; 0: it has none.
 * @reason_len: length of @reason.
 * @key: its key, of put-unique.
 * @reason: of the last failure.
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
	uint16_t key_len;
	uint16_t reason_len;
	char key[JOB_KEY_MAX];
	char reason[JOB_REASON_MAX];
};

/**
 * struct retry_policy - what becomes of a job whose attempt failed
 * @max_attempts: so many in all; 0: no policy was set.
 * @jitter_percent: a retry waits this much more or less, at most.
 * @base_ns: the first retry waits so long.
 * @cap_ns: none waits longer, but for jitter.
 * @factor: each waits this many times the one before.
 * @dead: the tube for the dead; empty: the tube's name and ".dead".
 */
struct retry_policy {
	uint32_t max_attempts;
	uint32_t jitter_percent;
	uint64_t base_ns;
	uint64_t cap_ns;
	double factor;
	char dead[TUBE_NAME_MAX + 1];
};

/**
 * struct tube_counts - jobs of a tube by where the disk has them
 * @nr: by enum job_state.
 * @urgent: those of READY whose priority is below 1024.
 */
struct tube_counts {
	uint64_t nr[4];
	uint64_t urgent;
};

/**
 * struct tube_record - what the disk has of a tube
 * @tube: its number, from 1; it is never used for another name.
 * @name: its name.
 * @policy: its policy.
 * @counts: how many jobs it has.
 */
struct tube_record {
	uint32_t tube;
	char name[TUBE_NAME_MAX + 1];
	struct retry_policy policy;
	struct tube_counts counts;
};

#endif /* TWHEELQ_RECORD_H */
