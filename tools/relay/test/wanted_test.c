// SPDX-License-Identifier: GPL-2.0
/* The settings that topics should have: with which they are created, and which are refused. */
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "relay/wanted.h"
#include "test/device/harness.h"

#define HOUR_MS		(3600 * 1000ULL)
#define WEEK_MS		(7 * 24 * HOUR_MS)

static const struct relay_topic delays = {
	.name = "delays", .role = RELAY_TOPIC_DELAYS, .least_ms = 2 * HOUR_MS, .replicas = 3,
};

static const struct relay_topic bucket = {
	.name = "delays-b3600s", .role = RELAY_TOPIC_BUCKET, .least_ms = 2 * HOUR_MS, .replicas = 3,
};

static const struct relay_topic done = {
	.name = "delays-done", .role = RELAY_TOPIC_DONE, .replicas = 3,
};

static const struct relay_topic cancelled = {
	.name = "delays-cancelled", .role = RELAY_TOPIC_CANCELLED, .replicas = 3,
};

static const struct relay_topic invalid = {
	.name = "delays.invalid", .role = RELAY_TOPIC_INVALID, .replicas = 3,
};

static const struct relay_topic *const all[] = { &delays, &bucket, &done, &cancelled, &invalid };

/* The value with which a topic is created; NULL: the brokers' default. */
static const char *wanted(const struct relay_topic *topic, const char *name)
{
	static char value[RELAY_WANTED_TEXT];
	const char *found;
	unsigned int i;

	test_about("%s %s", topic->name, name);
	for (i = 0; i < relay_wanted_nr(); i++) {
		found = relay_wanted(topic, i, value);
		if (found && !strcmp(found, name))
			return value;
	}
	return NULL;
}

static bool is_wanted(const struct relay_topic *topic, const char *name, const char *value)
{
	const char *found = wanted(topic, name);

	return value ? found && !strcmp(found, value) : !found;
}

TEST(topics_in_which_records_wait_keep_them_by_time_alone)
{
	const struct relay_topic *waiting[] = { &delays, &bucket };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(waiting); i++) {
		ASSERT(is_wanted(waiting[i], "cleanup.policy", "delete"));
		ASSERT(is_wanted(waiting[i], "retention.bytes", "-1"));
		ASSERT(is_wanted(waiting[i], "message.timestamp.type", "LogAppendTime"));
		ASSERT_EQ(atoll(wanted(waiting[i], "retention.ms")), 2 * HOUR_MS + WEEK_MS);
	}
}

TEST(topics_of_keys_are_compacted_soon_and_only_compacted)
{
	const struct relay_topic *compacted[] = { &done, &cancelled };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(compacted); i++) {
		ASSERT(is_wanted(compacted[i], "cleanup.policy", "compact"));
		ASSERT(is_wanted(compacted[i], "segment.bytes", "8388608"));
		ASSERT(is_wanted(compacted[i], "segment.ms", "600000"));
		ASSERT(is_wanted(compacted[i], "min.compaction.lag.ms", "60000"));
		ASSERT(is_wanted(compacted[i], "min.cleanable.dirty.ratio", "0.1"));
		ASSERT(is_wanted(compacted[i], "delete.retention.ms", NULL));
		ASSERT(is_wanted(compacted[i], "retention.ms", NULL));
	}
}

TEST(two_brokers_acknowledge_where_there_are_three_replicas)
{
	struct relay_topic topic;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(all); i++) {
		topic = *all[i];
		ASSERT(is_wanted(&topic, "min.insync.replicas", "2"));
		topic.replicas = 2;
		ASSERT(is_wanted(&topic, "min.insync.replicas", "1"));
	}
}

TEST(topics_are_right_as_they_are_created)
{
	char value[RELAY_WANTED_TEXT];
	const char *name;
	unsigned int k;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(all); i++)
		for (k = 0; k < relay_wanted_nr(); k++) {
			name = relay_wanted(all[i], k, value);
			if (!name)
				continue;
			test_about("%s %s=%s", all[i]->name, name, value);
			ASSERT_EQ(relay_wanted_judge(all[i], name, value).opinion, RELAY_RIGHT);
		}
}

TEST(settings_are_judged)
{
	static const struct {
		const struct relay_topic *topic;
		const char *name;
		const char *value;
		enum relay_opinion opinion;
		const char *right;
	} settings[] = {
		{ &bucket, "retention.ms", "-1", RELAY_RIGHT, "" },
		{ &bucket, "retention.ms", "612000000", RELAY_RIGHT, "" },
		{ &bucket, "retention.ms", "611999999", RELAY_DOUBTFUL, "612000000 or more" },
		{ &bucket, "retention.ms", "7200000", RELAY_DOUBTFUL, "612000000 or more" },
		{ &bucket, "retention.ms", "7199999", RELAY_WRONG, "612000000 or more" },
		{ &delays, "retention.ms", "7199999", RELAY_WRONG, "612000000 or more" },
		{ &bucket, "retention.bytes", "1000000000", RELAY_DOUBTFUL, "-1" },
		{ &bucket, "cleanup.policy", "compact", RELAY_WRONG, "delete" },
		{ &bucket, "cleanup.policy", "compact,delete", RELAY_WRONG, "delete" },
		{ &delays, "cleanup.policy", "compact", RELAY_WRONG, "delete" },
		{ &delays, "message.timestamp.type", "CreateTime", RELAY_DOUBTFUL,
		  "LogAppendTime" },
		{ &bucket, "message.timestamp.type", "CreateTime", RELAY_DOUBTFUL,
		  "LogAppendTime" },
		{ &bucket, "segment.bytes", "1073741824", RELAY_RIGHT, "" },
		{ &done, "cleanup.policy", "delete", RELAY_WRONG, "compact" },
		{ &done, "cleanup.policy", "compact,delete", RELAY_WRONG, "compact" },
		{ &cancelled, "cleanup.policy", "delete", RELAY_WRONG, "compact" },
		{ &done, "segment.bytes", "1073741824", RELAY_DOUBTFUL, "8388608 or less" },
		{ &done, "segment.bytes", "1048576", RELAY_RIGHT, "" },
		{ &done, "segment.ms", "604800000", RELAY_DOUBTFUL, "600000 or less" },
		{ &done, "min.compaction.lag.ms", "0", RELAY_RIGHT, "" },
		{ &done, "min.compaction.lag.ms", "3600000", RELAY_DOUBTFUL, "60000 or less" },
		{ &done, "min.cleanable.dirty.ratio", "0.5", RELAY_DOUBTFUL, "0.1 or less" },
		{ &done, "message.timestamp.type", "CreateTime", RELAY_RIGHT, "" },
		{ &done, "retention.ms", "1000", RELAY_RIGHT, "" },
		{ &delays, "min.insync.replicas", "1", RELAY_DOUBTFUL, "2 or more" },
		{ &delays, "min.insync.replicas", "3", RELAY_RIGHT, "" },
		{ &invalid, "cleanup.policy", "compact", RELAY_RIGHT, "" },
		{ &invalid, "max.message.bytes", "1000", RELAY_RIGHT, "" },
		{ &delays, "compression.type", "zstd", RELAY_RIGHT, "" },
	};
	struct relay_judgement judgement;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(settings); i++) {
		judgement = relay_wanted_judge(settings[i].topic, settings[i].name,
					       settings[i].value);
		test_about("%s %s=%s: %s", settings[i].topic->name, settings[i].name,
			   settings[i].value, judgement.right);
		ASSERT_EQ(judgement.opinion, settings[i].opinion);
		ASSERT(!strcmp(judgement.right, settings[i].right));
		ASSERT_EQ(!judgement.why, judgement.opinion == RELAY_RIGHT);
	}
}
