/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The rules of the relay: what is to be done with a record. They are pure functions, without
 * Kafka, a clock or memory: so the model of model_test.c runs exactly these.
 *
 * Times are ms of the wall clock since 1970, as in Kafka. H is the horizon. A record that is due
 * within 2H is near, and waits on a timing wheel in memory. Any other record is parked: it goes
 * to a bucket, a topic in which each record waits for the same time, the width of the bucket:
 *
 *	                 +----------------- smaller bucket ----------------+
 *	                 v                                                 |
 *	  delays --> (decide) --> bucket H, 2H, 4H, ... 30 days --> (decide about the head)
 *	                 |                                                 |
 *	                 +---> near: alarm ---> target <--- near: alarm <--+
 *
 * A record goes to the widest bucket that is not longer than the remaining time less H. There
 * is one, because at least 2H remain. Twice its width is longer than that (except for the
 * widest bucket), so each time less than half of it is left: a record is parked at most
 * log2(delay / H) + 1 times. All records of a bucket wait equally long, so each of its
 * partitions is in the order in which records become ready, and no record waits behind one that
 * is due later.
 *
 * A record of a bucket is parked again only when the width has passed since the time at which
 * it was parked, which it carries. So the remaining time shrinks by the width, however much the
 * clocks of the relays differ that handle it.
 */
#ifndef RELAY_RULES_RULES_H
#define RELAY_RULES_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/retry_policy.h"

/* The names of headers. */
#define RELAY_DELIVER_AT	"twheel-deliver-at"
#define RELAY_DELAY		"twheel-delay"
#define RELAY_TARGET		"twheel-target"
#define RELAY_ID		"twheel-id"
#define RELAY_ATTEMPT		"twheel-attempt"
#define RELAY_DUE		"twheel-due"
#define RELAY_PARKED		"twheel-parked"
#define RELAY_ERROR		"twheel-error"

/* Suffixes of the names of topics: a target's dead letters, and our invalid records. */
#define RELAY_DEAD_SUFFIX	".dead"
#define RELAY_INVALID_SUFFIX	".invalid"
#define RELAY_DONE_SUFFIX	"-done"
#define RELAY_CANCELLED_SUFFIX	"-cancelled"
/* A bucket is named: our topic, this infix, its width in seconds, this suffix. */
#define RELAY_BUCKET_INFIX	"-b"
#define RELAY_BUCKET_SUFFIX	"s"

/* Kafka's limit for the name of a topic. That of a target leaves room for its suffix. */
#define RELAY_TOPIC_MAX		249
#define RELAY_TARGET_MAX	(RELAY_TOPIC_MAX - sizeof(RELAY_DEAD_SUFFIX) + 1)

/* Widths double from the horizon, at least a second, up to at most 30 days. */
#define RELAY_BUCKETS_MAX	22
#define RELAY_WIDEST_MS		(30 * 24 * 3600 * 1000ULL)
#define RELAY_HORIZON_MIN_MS	1000ULL
#define RELAY_HORIZON_MAX_MS	(24 * 3600 * 1000ULL)

/* Longer delays are rejected: probably the wrong unit. */
#define RELAY_DELAY_MAX_MS	(10 * 366 * 24 * 3600 * 1000ULL)

/* If a record says that it was parked further in the future than this, that time is ignored. */
#define RELAY_CLOCKS_DIFFER_MS	(60 * 1000ULL)

/**
 * struct relay_rules - the settings of the rules
 * @topic: the topic of delays; names of buckets begin with it.
 * @scale: divisor of all times except those of the wall clock; 1 except in tests.
 * @horizon_ms: H; scaled, as all other times here but @width_s.
 * @linger_ms: how much longer than the width the head of a bucket waits, so that several
 *	records are ready together. It is taken from the margin of H.
 * @nr_buckets: the number of widths.
 * @width_ms: the widths.
 * @width_s: the widths as in the names of topics: in seconds, not scaled.
 */
struct relay_rules {
	const char *topic;
	uint64_t scale;
	uint64_t horizon_ms;
	uint64_t linger_ms;
	unsigned int nr_buckets;
	uint64_t width_ms[RELAY_BUCKETS_MAX];
	uint64_t width_s[RELAY_BUCKETS_MAX];
};

/* @horizon_ms is not scaled, and a whole number of seconds. */
void relay_rules_init(struct relay_rules *rules, const char *topic, uint64_t horizon_ms,
		      uint64_t scale);

/* The widest bucket that is not longer than the remaining time less H. At least 2H remain. */
unsigned int relay_bucket(const struct relay_rules *rules, uint64_t remaining_ms);

/* The name of the bucket of a width. */
void relay_bucket_name(const struct relay_rules *rules, uint64_t width_s,
		       char name[RELAY_TOPIC_MAX + 1]);

/* Is this the name of a bucket, of any horizon? Then @width_ms is set to its width, scaled. */
bool relay_is_bucket(const struct relay_rules *rules, const char *topic, uint64_t *width_ms);

/* The value of a header; @data is NULL if there is no such header. */
struct relay_text {
	const char *data;
	size_t len;
};

/**
 * struct relay_record - what the rules need to know of a record
 * @width_ms: width of the bucket that it was read from; 0: it is from the topic of delays.
 * @timestamp_ms: its timestamp; negative: it has none.
 * @seed: differs between records, and is the same each time that a record is read.
 * @policy: the policy of its target.
 * @target: the header twheel-target.
 * @deliver_at: the header twheel-deliver-at.
 * @delay: the header twheel-delay.
 * @attempt: the header twheel-attempt.
 * @due: the header twheel-due.
 * @parked: the header twheel-parked.
 */
struct relay_record {
	uint64_t width_ms;
	int64_t timestamp_ms;
	uint64_t seed;
	const struct retry_policy *policy;
	struct relay_text target;
	struct relay_text deliver_at;
	struct relay_text delay;
	struct relay_text attempt;
	struct relay_text due;
	struct relay_text parked;
};

enum relay_action {
	RELAY_REFUSE,	/* write it to the topic of invalid records, with @reason */
	RELAY_WAIT,	/* it is the head of a bucket, and is not ready before @until_ms */
	RELAY_PARK,	/* write it to @bucket */
	RELAY_NEAR,	/* keep it on the timing wheel until @due_ms */
	RELAY_DELIVER,	/* write it to its target at once */
	RELAY_BURY,	/* its last attempt failed: write it to its target's dead letters */
	RELAY_ACTIONS
};

/**
 * struct relay_decision - what is to be done with a record
 * @action: the action.
 * @reason: for RELAY_REFUSE: why, in words.
 * @due_ms: when the record is due.
 * @until_ms: for RELAY_WAIT: when the record is ready.
 * @bucket: for RELAY_PARK: the index of the bucket.
 * @attempt: how many attempts were made.
 */
struct relay_decision {
	enum relay_action action;
	const char *reason;
	uint64_t due_ms;
	uint64_t until_ms;
	unsigned int bucket;
	uint32_t attempt;
};

void relay_decide(const struct relay_rules *rules, const struct relay_record *record,
		  uint64_t now_ms, struct relay_decision *decision);

/* Kinds of partitions. RELAY_INPUT is paused first when memory is short. */
enum relay_kind {
	RELAY_INPUT,	/* the topic of delays: new records */
	RELAY_BUCKET,	/* buckets: their records have waited, and are due soon */
	RELAY_KINDS
};

/**
 * struct relay_pressure - the memory that records take, and backpressure when it is short
 * @cap: the limit, in bytes.
 * @bytes: the memory that records take. It exceeds @cap by one record at most.
 * @paused: by kind: its partitions are to be paused. That begins above a share of the cap and
 *	ends below a smaller one, so that it does not change with each record.
 */
struct relay_pressure {
	uint64_t cap;
	uint64_t bytes;
	bool paused[RELAY_KINDS];
};

void relay_pressure_add(struct relay_pressure *pressure, uint64_t bytes);
void relay_pressure_sub(struct relay_pressure *pressure, uint64_t bytes);

#endif /* RELAY_RULES_RULES_H */
