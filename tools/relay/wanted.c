// SPDX-License-Identifier: GPL-2.0
/*
 * The settings that the relay's topics should have: topics are created with them, and judged by
 * them.
 *
 * Records wait in the topic of delays and in buckets. Nothing but retention may delete them
 * there, and retention must count from when a record was appended, not from the time that its
 * producer wrote into it.
 *
 * The map of what is done and the list of what is taken back are compacted. Each is read to its
 * end when a partition is taken over, so it should be short: segments are small, since the newest
 * one is never compacted, and the others are compacted soon.
 *
 * min.compaction.lag.ms protects a reader from missing a key that is written again while it
 * reads: the cleaner removes the old value before the reader is there, and the new one is
 * behind the end that the reader took. A minute is enough, because only a relay that does not
 * know yet that it has lost the partition writes its keys while the new owner reads them. A
 * longer lag makes takeovers slow: pieces are written again twice a second, and with a lag of
 * an hour, all of the last hour are read.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "relay/wanted.h"

/* Records wait in these. */
#define WAITING		(RELAY_TOPIC_DELAYS | RELAY_TOPIC_BUCKET)
#define COMPACTED	(RELAY_TOPIC_DONE | RELAY_TOPIC_CANCELLED)
#define ALL		(WAITING | COMPACTED | RELAY_TOPIC_INVALID)

/* How long relays may be away, in addition. */
#define RETENTION_EXTRA_MS	(7 * 24 * 3600 * 1000ULL)

enum comparison {
	SAME,
	AT_LEAST,	/* a negative value is no limit */
	AT_MOST,
	NOT_JUDGED,	/* see also check_sizes() of describe.c */
};

/**
 * struct rule - a setting that some topics should have
 * @name: its name.
 * @roles: of the topics, bits of enum relay_topic_role.
 * @comparison: how another value is compared with @value.
 * @value: its value; NULL: what @number returns.
 * @number: its value by the topic.
 * @least: returns the value below which the setting is wrong, not just doubtful; may be NULL.
 * @otherwise: the opinion of a value that does not compare.
 * @why: what it is for.
 */
struct rule {
	const char *name;
	unsigned int roles;
	enum comparison comparison;
	const char *value;
	uint64_t (*number)(const struct relay_topic *topic);
	uint64_t (*least)(const struct relay_topic *topic);
	enum relay_opinion otherwise;
	const char *why;
};

static uint64_t retention_ms(const struct relay_topic *topic)
{
	return topic->least_ms + RETENTION_EXTRA_MS;
}

static uint64_t least_retention_ms(const struct relay_topic *topic)
{
	return topic->least_ms;
}

/* With fewer replicas, a broker that is away would stop the topic. */
static uint64_t insync_replicas(const struct relay_topic *topic)
{
	return topic->replicas >= 3 ? 2 : 1;
}

static const struct rule rules[] = {
	{ "cleanup.policy", WAITING, SAME, "delete", NULL, NULL, RELAY_WRONG,
	  "compaction deletes records that wait, if a later one has the same key" },
	{ "cleanup.policy", COMPACTED, SAME, "compact", NULL, NULL, RELAY_WRONG,
	  "otherwise it forgets what is done or taken back, which is then delivered" },
	{ "cleanup.policy", RELAY_TOPIC_INVALID, NOT_JUDGED, "delete", NULL, NULL, RELAY_RIGHT,
	  NULL },
	{ "retention.ms", WAITING, AT_LEAST, NULL, retention_ms, least_retention_ms,
	  RELAY_DOUBTFUL, "records that wait longer are deleted" },
	{ "retention.bytes", WAITING, SAME, "-1", NULL, NULL, RELAY_DOUBTFUL,
	  "it deletes records that wait" },
	{ "message.timestamp.type", WAITING, SAME, "LogAppendTime", NULL, NULL, RELAY_DOUBTFUL,
	  "retention and delays count from the timestamp, which is the producer's otherwise" },
	{ "min.insync.replicas", ALL, AT_LEAST, NULL, insync_replicas, NULL, RELAY_DOUBTFUL,
	  "it can lose records that were acknowledged by one broker only" },
	/* The relay adds headers, so records become larger: eight times the brokers' default. */
	{ "max.message.bytes", RELAY_TOPIC_BUCKET | RELAY_TOPIC_INVALID, NOT_JUDGED, "8388608",
	  NULL, NULL, RELAY_RIGHT, NULL },
	{ "segment.bytes", COMPACTED, AT_MOST, "8388608", NULL, NULL, RELAY_DOUBTFUL,
	  "the newest segment is not compacted, and is read when a partition is taken over" },
	{ "segment.ms", COMPACTED, AT_MOST, "600000", NULL, NULL, RELAY_DOUBTFUL,
	  "the newest segment is not compacted, and is read when a partition is taken over" },
	{ "min.compaction.lag.ms", COMPACTED, AT_MOST, "60000", NULL, NULL, RELAY_DOUBTFUL,
	  "what is not compacted is read when a partition is taken over" },
	{ "min.cleanable.dirty.ratio", COMPACTED, AT_MOST, "0.1", NULL, NULL, RELAY_DOUBTFUL,
	  "what is not compacted is read when a partition is taken over" },
};

static void value_of(const struct rule *rule, const struct relay_topic *topic,
		     char value[RELAY_WANTED_TEXT])
{
	if (rule->value)
		snprintf(value, RELAY_WANTED_TEXT, "%s", rule->value);
	else
		snprintf(value, RELAY_WANTED_TEXT, "%" PRIu64, rule->number(topic));
}

/* --- creating ------------------------------------------------------------------------- */

unsigned int relay_wanted_nr(void)
{
	return ARRAY_SIZE(rules);
}

const char *relay_wanted(const struct relay_topic *topic, unsigned int i,
			 char value[RELAY_WANTED_TEXT])
{
	const struct rule *rule = &rules[i];

	if (!(rule->roles & topic->role))
		return NULL;
	value_of(rule, topic, value);
	return rule->name;
}

/* --- judging -------------------------------------------------------------------------- */

static bool complies(const struct rule *rule, const char *wanted, const char *value)
{
	switch (rule->comparison) {
	case SAME:
		return !strcmp(value, wanted);
	case AT_LEAST:
		return *value == '-' || strtod(value, NULL) >= strtod(wanted, NULL);
	case AT_MOST:
		return strtod(value, NULL) <= strtod(wanted, NULL);
	case NOT_JUDGED:
		break;
	}
	return true;
}

static struct relay_judgement judge(const struct rule *rule, const struct relay_topic *topic,
				    const char *value)
{
	static const char *const suffix[] = { [AT_LEAST] = " or more", [AT_MOST] = " or less" };
	struct relay_judgement judgement = { .opinion = RELAY_RIGHT };
	char wanted[RELAY_WANTED_TEXT];

	value_of(rule, topic, wanted);
	if (complies(rule, wanted, value))
		return judgement;
	judgement.opinion = rule->otherwise;
	judgement.why = rule->why;
	snprintf(judgement.right, sizeof(judgement.right), "%s%s", wanted,
		 rule->comparison == SAME ? "" : suffix[rule->comparison]);
	if (rule->least && strtoull(value, NULL, 10) < rule->least(topic))
		judgement.opinion = RELAY_WRONG;
	return judgement;
}

struct relay_judgement relay_wanted_judge(const struct relay_topic *topic, const char *name,
					  const char *value)
{
	const struct relay_judgement right = { .opinion = RELAY_RIGHT };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rules); i++)
		if (rules[i].roles & topic->role && !strcmp(rules[i].name, name))
			return judge(&rules[i], topic, value);
	return right;
}
