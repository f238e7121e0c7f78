/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The rules of the relay: what is to be done with a record. Pure: there is no Kafka here,
 * no clock and no memory; so the model of relay_model_test.c runs exactly these.
 *
 * Times are ms of the wall clock since 1970, as Kafka has them. H is the horizon. A record
 * that is due within 2H is near, and waits on a timing wheel in memory. Another one is
 * parked: it goes to a bucket, which is a topic whose records each wait there for the width
 * of the bucket:
 *
 *	                 +----------------- smaller bucket ----------------+
 *	                 v                                                 |
 *	  delays ---> (look) ---> bucket H, 2H, 4H, ... 30 days ---> (look at the head)
 *	                 |                                                 |
 *	                 +---> near: alarm ---> target <--- near: alarm <--+
 *
 * The bucket is the widest that is not longer than what remains less H. There is one, as
 * at least 2H remain. Twice its width is longer than that (but for the widest one), so each
 * time less than half of it is left: a record is parked log2(delay / H) + 1 times at most.
 * All records of a bucket wait equally long, so its partitions are in the order in which
 * they are ready, and no record waits behind one that is due later.
 *
 * A record of a bucket is parked again only when its width has passed since it was parked,
 * by the time that it carries. So what remains shrinks by the width, whatever clocks the
 * relays have that it passes.
 */
#ifndef TWHEELQ_RELAY_RULES_H
#define TWHEELQ_RELAY_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record.h"

/* The names of headers. */
#define RELAY_DELIVER_AT	"twheel-deliver-at"
#define RELAY_DELAY		"twheel-delay"
#define RELAY_TARGET		"twheel-target"
#define RELAY_ID		"twheel-id"
#define RELAY_ATTEMPT		"twheel-attempt"
#define RELAY_DUE		"twheel-due"
#define RELAY_PARKED		"twheel-parked"
#define RELAY_ERROR		"twheel-error"

/* What follows the name of a target for those that are dead, and ours for the invalid. */
#define RELAY_DEAD_SUFFIX	".dead"
#define RELAY_INVALID_SUFFIX	".invalid"
/* Between the name of our topic and the width of a bucket in seconds, and after that. */
#define RELAY_BUCKET_INFIX	"-b"
#define RELAY_BUCKET_SUFFIX	"s"

/* Kafka's limit for the name of a topic; a target's leaves room for its suffix. */
#define RELAY_TOPIC_MAX		249
#define RELAY_TARGET_MAX	(RELAY_TOPIC_MAX - sizeof(RELAY_DEAD_SUFFIX) + 1)

/* Widths double from a second or longer to 30 days or shorter. */
#define RELAY_BUCKETS_MAX	22
#define RELAY_WIDEST_MS		(30 * 24 * 3600 * 1000ULL)
#define RELAY_HORIZON_MIN_MS	1000ULL
#define RELAY_HORIZON_MAX_MS	(24 * 3600 * 1000ULL)

/* Who is to be later than 10 years has mistaken the unit. */
#define RELAY_DELAY_MAX_MS	(10 * 366 * 24 * 3600 * 1000ULL)

/* A record that says to be parked further in the future than this is not believed. */
#define RELAY_CLOCKS_DIFFER_MS	(60 * 1000ULL)

/**
 * struct relay_rules - what the rules depend on
 * @topic: where delays come from; it is the beginning of the buckets' names.
 * @scale: by what all times are divided but those of the wall clock: 1, but for tests.
 * @horizon_ms: H; scaled, as all that follow.
 * @linger_ms: how much longer than its width the head of a bucket may wait, so that more
 *	than it are ready then; of a margin of H.
 * @nr_buckets: how many widths there are.
 * @width_ms: these.
 * @width_s: the same as names of topics have them: not scaled, in seconds.
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

/* The widest bucket that is not longer than what remains less H. At least 2H remain. */
unsigned int relay_bucket(const struct relay_rules *rules, uint64_t remaining_ms);

/* How the bucket of a width is called. */
void relay_bucket_name(const struct relay_rules *rules, uint64_t width_s,
		       char name[RELAY_TOPIC_MAX + 1]);

/* Is this the name of a bucket, of whichever horizon? Then @width_ms is its width, scaled. */
bool relay_is_bucket(const struct relay_rules *rules, const char *topic, uint64_t *width_ms);

/* The value of a header; @data is NULL where there is no such header. */
struct relay_text {
	const char *data;
	size_t len;
};

/**
 * struct relay_record - what the rules look at
 * @width_ms: of the bucket that it was read from; 0: it is from @topic.
 * @timestamp_ms: the record's own; negative: it has none.
 * @seed: a number that is the same whenever it is read, and another one for another record.
 * @policy: that of its target.
 * @target: the headers.
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
	RELAY_REFUSE,	/* to the invalid ones, with @reason */
	RELAY_WAIT,	/* it is the head of a bucket, and is not ready before @until_ms */
	RELAY_PARK,	/* to @bucket */
	RELAY_NEAR,	/* on the wheel, till @due_ms */
	RELAY_DELIVER,	/* at once */
	RELAY_BURY,	/* its last attempt failed: to the dead ones of its target */
	RELAY_ACTIONS
};

/**
 * struct relay_decision - what is to be done with a record
 * @action: this.
 * @reason: of RELAY_REFUSE, in words.
 * @due_ms: when it is due.
 * @until_ms: of RELAY_WAIT.
 * @bucket: of RELAY_PARK.
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

/* Whom memory is kept from, when there is little of it. */
enum relay_kind {
	RELAY_INPUT,	/* what is new waits first */
	RELAY_BUCKET,	/* what comes out of buckets has waited, and is due soon */
	RELAY_KINDS
};

/**
 * struct relay_pressure - how much memory near records take, and who has to wait therefore
 * @cap: bytes they may take.
 * @bytes: those they take. More than @cap are those of one record at most.
 * @paused: by kind. One is paused above a share of the cap and goes on below a smaller one,
 *	so that it does not change its mind at each record.
 */
struct relay_pressure {
	uint64_t cap;
	uint64_t bytes;
	bool paused[RELAY_KINDS];
};

void relay_pressure_add(struct relay_pressure *pressure, uint64_t bytes);
void relay_pressure_sub(struct relay_pressure *pressure, uint64_t bytes);

#endif /* TWHEELQ_RELAY_RULES_H */
