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
 * A record of a bucket is read only when the width has passed since the time at which it was
 * parked, which it carries. So the remaining time shrinks by the width, however much the clocks
 * of the relays differ that handle it.
 *
 * Two small buckets, of 10 s and 60 s, are for records that cannot stay in memory: a near record
 * that gives way when memory is short, and a record whose target cannot be written. A record
 * that gives way goes to the widest bucket, of any size, that is over before it is due:
 *
 *	near, and memory is short -----> widest bucket with width + linger + margin <= remaining
 *	target cannot be written ------> bucket 10 s, then 60 s, then H: it counts its tries
 *
 * All records of a bucket are ready one width after they were parked, whoever parked them and
 * why. So these records do not disturb the order of a bucket either.
 */
#ifndef RELAY_RULES_RULES_H
#define RELAY_RULES_RULES_H

#include <regex.h>
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
#define RELAY_CANCEL		"twheel-cancel"
#define RELAY_TRIES		"twheel-tries"
#define RELAY_HELD_SINCE	"twheel-held-since"
#define RELAY_TIMESTAMP		"twheel-timestamp"

/* Suffixes of the names of topics: a target's dead letters, and our invalid records. */
#define RELAY_DEAD_SUFFIX	".dead"
#define RELAY_INVALID_SUFFIX	".invalid"
/* The map of done offsets, and the ids of records that were taken back. */
#define RELAY_DONE_SUFFIX	"-done"
#define RELAY_CANCELLED_SUFFIX	"-cancelled"
/* A bucket is named: our topic, this infix, its width in seconds, this suffix. */
#define RELAY_BUCKET_INFIX	"-b"
#define RELAY_BUCKET_SUFFIX	"s"

/* Kafka's limit for the name of a topic. That of a target leaves room for its suffix. */
#define RELAY_TOPIC_MAX		249
#define RELAY_TARGET_MAX	(RELAY_TOPIC_MAX - sizeof(RELAY_DEAD_SUFFIX) + 1)

/* The longest id that can be taken back. One that names a place takes 280 bytes at most. */
#define RELAY_ID_MAX		512

/*
 * Widths double from the horizon, at least a second, up to at most 30 days; and two small ones
 * come before them.
 */
#define RELAY_BUCKETS_MAX	24
#define RELAY_WIDEST_MS		(30 * 24 * 3600 * 1000ULL)
#define RELAY_HORIZON_MIN_MS	1000ULL
#define RELAY_HORIZON_MAX_MS	(24 * 3600 * 1000ULL)

/* 2001-01-01: an earlier time is rejected, as it is probably in seconds. */
#define RELAY_TIME_MIN_MS	978307200000ULL

/* Longer delays are rejected: probably the wrong unit. */
#define RELAY_DELAY_MAX_MS	(10 * 366 * 24 * 3600 * 1000ULL)

/* If a record says that it was parked further in the future than this, that time is ignored. */
#define RELAY_CLOCKS_DIFFER_MS	(60 * 1000ULL)

/* A record that gives way leaves its bucket at least this long before it is due; scaled. */
#define RELAY_MARGIN_MS		2000ULL

/* Whoever takes a record back has to do it this long before it is due; scaled. */
#define RELAY_CANCEL_BEFORE_MS	5000ULL

/* Defaults, not scaled: see struct relay_holding. */
#define RELAY_HOLD_MS		(60 * 1000ULL)
#define RELAY_HOLD_LASTING_MS	(5 * 1000ULL)
#define RELAY_HOLD_MAX_MS	(7 * 24 * 3600 * 1000ULL)

/**
 * struct relay_rules - the settings of the rules
 * @topic: the topic of delays; names of buckets begin with it.
 * @targets: the names of topics that may be targets; NULL: all. It is the caller's, and has to
 *	match whole names: callers compile "^(REGEX)$", with REG_EXTENDED and REG_NOSUB.
 * @scale: divisor of all times except those of the wall clock; 1 except in tests.
 * @horizon_ms: H; scaled, as all other times here but @width_s.
 * @linger_ms: the longest time that relay_linger_ms() returns.
 * @nr_small: the number of small buckets, which come before the others: 2, or less if H is
 *	not longer than these.
 * @nr_buckets: the number of widths, the small ones among them.
 * @width_ms: the widths, in ascending order.
 * @width_s: the widths as in the names of topics: in seconds, not scaled.
 */
struct relay_rules {
	const char *topic;
	const regex_t *targets;
	uint64_t scale;
	uint64_t horizon_ms;
	uint64_t linger_ms;
	unsigned int nr_small;
	unsigned int nr_buckets;
	uint64_t width_ms[RELAY_BUCKETS_MAX];
	uint64_t width_s[RELAY_BUCKETS_MAX];
};

/* @horizon_ms is not scaled, and a whole number of seconds. All targets are allowed. */
void relay_rules_init(struct relay_rules *rules, const char *topic, uint64_t horizon_ms,
		      uint64_t scale);

/*
 * The widest bucket that is not longer than the remaining time less H. At least 2H remain. It
 * is never a small one.
 */
unsigned int relay_bucket(const struct relay_rules *rules, uint64_t remaining_ms);

/*
 * The bucket for a near record that has to give way to others in memory: the widest, small ones
 * among them, that is over RELAY_MARGIN_MS before the record is due. Returns -1 if there is
 * none: the record is due too soon.
 */
int relay_give_way_bucket(const struct relay_rules *rules, uint64_t remaining_ms);

/*
 * The bucket for a record whose target cannot be written, after @tries earlier ones: 10 s, then
 * 60 s, then H. If H is so short that one of these does not exist: the next wider one.
 */
unsigned int relay_hold_bucket(const struct relay_rules *rules, uint32_t tries);

/*
 * How much longer than until @until_ms of a decision the head of a bucket may wait, so that
 * several records are ready together: a part of the width. It is taken from the margin of H, or
 * from that of a record that gave way.
 */
uint64_t relay_linger_ms(const struct relay_rules *rules, uint64_t width_ms);

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
 * @tries: the header twheel-tries.
 * @held_since: the header twheel-held-since.
 * @cancel: the header twheel-cancel.
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
	struct relay_text tries;
	struct relay_text held_since;
	struct relay_text cancel;
};

enum relay_action {
	RELAY_REFUSE,	/* write it to the topic of invalid records, with @reason */
	RELAY_WAIT,	/* it is the head of a bucket, and is not ready before @until_ms */
	RELAY_PARK,	/* write it to @bucket */
	RELAY_NEAR,	/* keep it on the timing wheel until @due_ms */
	RELAY_DELIVER,	/* write it to its target at once */
	RELAY_BURY,	/* its last attempt failed: write it to its target's dead letters */
	RELAY_TAKE_BACK, /* it takes another record back: write it to the topic of those */
	RELAY_DROP,	/* set by callers: it was taken back, nothing is written */
	RELAY_ACTIONS
};

/**
 * struct relay_decision - what is to be done with a record
 * @action: the action.
 * @reason: for RELAY_REFUSE: why, in words.
 * @due_ms: when the record is due; for RELAY_TAKE_BACK: when the other one is due.
 * @until_ms: for RELAY_WAIT: when the record is ready.
 * @bucket: for RELAY_PARK: the index of the bucket.
 * @attempt: how many attempts were made.
 * @tries: how often it was parked because its target could not be written.
 * @held_since_ms: when that began; 0: @tries is 0, or it is unknown.
 */
struct relay_decision {
	enum relay_action action;
	const char *reason;
	uint64_t due_ms;
	uint64_t until_ms;
	unsigned int bucket;
	uint32_t attempt;
	uint32_t tries;
	uint64_t held_since_ms;
};

/*
 * A record of a bucket is ready when its width has passed since it was parked, or shortly before
 * it is due, if that is sooner. It is ready at once if it is overdue, or if no relay has parked
 * it. But a record whose target could not be written waits for its width though it is overdue.
 *
 * If the dead letters of a target cannot be written, that topic is the target of the record that
 * is parked: so a record that has tries may have a target with RELAY_DEAD_SUFFIX, of a length of
 * RELAY_TOPIC_MAX; it is delivered there if the target without the suffix is allowed.
 */
void relay_decide(const struct relay_rules *rules, const struct relay_record *record,
		  uint64_t now_ms, struct relay_decision *decision);

/* Is it too late to take back a record that is due at @due_ms? It may be delivered. */
bool relay_cancel_is_late(const struct relay_rules *rules, uint64_t due_ms, uint64_t now_ms);

/* What is done with a record whose target cannot be written. */
enum relay_hold {
	RELAY_HOLD_WAIT,	/* it waits in memory */
	RELAY_HOLD_PARK,	/* it is parked: see relay_hold_bucket() */
	RELAY_HOLD_REFUSE,	/* it has waited too long: to the topic of invalid records */
};

/**
 * struct relay_holding - a record whose target cannot be written
 * @failing_ms: for how long that has been so.
 * @lasting: the target is missing or not allowed, which does not pass by itself in seconds.
 * @hold_ms: records wait in memory for so long; for RELAY_HOLD_LASTING_MS, if that is shorter,
 *	where it is @lasting.
 * @above_half: more than half of the memory is used: see relay_pressure_is_above_half().
 * @held_since_ms: since when the record is held, by the decision about it; 0: unknown.
 * @hold_max_ms: a record that has been held for so long is refused.
 * @now_ms: the time.
 */
struct relay_holding {
	uint64_t failing_ms;
	bool lasting;
	uint64_t hold_ms;
	bool above_half;
	uint64_t held_since_ms;
	uint64_t hold_max_ms;
	uint64_t now_ms;
};

enum relay_hold relay_hold(const struct relay_holding *holding);

/* Kinds of partitions. RELAY_INPUT is paused first when memory is short. */
enum relay_kind {
	RELAY_INPUT,	/* the topic of delays: new records */
	RELAY_BUCKET,	/* buckets: their records have waited, and are due soon */
	RELAY_KINDS
};

/**
 * struct relay_pressure - the memory that records take, and what is done when it is short
 * @cap: the limit, in bytes.
 * @bytes: the memory that records take. It exceeds @cap by one record at most.
 * @give_way: near records are to give way, those first that are due last.
 * @paused: by kind: its partitions are to be paused. This is for what giving way is too slow
 *	for, or cannot help: too much is due too soon.
 *
 * Each of them begins at a share of the cap and ends below a smaller one, so that it does not
 * change with each record. Giving way begins first.
 */
struct relay_pressure {
	uint64_t cap;
	uint64_t bytes;
	bool give_way;
	bool paused[RELAY_KINDS];
};

void relay_pressure_add(struct relay_pressure *pressure, uint64_t bytes);
void relay_pressure_sub(struct relay_pressure *pressure, uint64_t bytes);

/* Then records whose target cannot be written are parked at once. */
static inline bool relay_pressure_is_above_half(const struct relay_pressure *pressure)
{
	return pressure->bytes > pressure->cap / 2;
}

#endif /* RELAY_RULES_RULES_H */
