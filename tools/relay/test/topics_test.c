// SPDX-License-Identifier: GPL-2.0
/* The relay's topics: which there are, how they are at the start, and while the relay runs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alarm/test/fake_alarm.h"
#include "common/exit.h"
#include "relay/settings.h"
#include "relay/test/caught_lib.h"
#include "relay/test/fake_brokers.h"
#include "test/device/harness.h"

#define MINUTE_S	60
#define HOUR_S		3600

static struct relay relay;
static struct relay_topics topics;

/* A relay before its start. */
static void prepare(bool create)
{
	relay.options.brokers = "kafka:9092";
	relay.options.create = create;
	relay.options.horizon_ms = HOUR_S * 1000;
	relay_rules_init(&relay.rules, "delays", relay.options.horizon_ms, 1);
	relay_topics_init(&topics, &relay.options, &relay.rules);
	brokers.relay = &relay;
	brokers.nr_brokers = 3;
}

/* All topics exist. */
static void make_all(int partitions, int replicas)
{
	unsigned int i;

	for (i = 0; i < topics.nr; i++)
		fake_make(topics.topic[i].name, partitions, replicas);
}

/* A relay that has started. */
static void start(bool create)
{
	prepare(create);
	make_all(4, 3);
	ASSERT_EQ(relay_topics_open(&relay), 0);
	relay_settings_check(&relay);
	catch_stderr();
}

static void run_s(unsigned int seconds)
{
	while (seconds--) {
		fake_advance(NSEC_PER_SEC);
		relay_settings_check(&relay);
	}
}

static void stop(void)
{
	relay_settings_end(&relay);
	ASSERT(!relay.settings);
}

/* --- names ---------------------------------------------------------------------------- */

static const struct relay_topic *topic_of(const char *name)
{
	unsigned int i;

	test_about("%s", name);
	for (i = 0; i < topics.nr; i++)
		if (!strcmp(topics.topic[i].name, name))
			return &topics.topic[i];
	return NULL;
}

TEST(all_topics_that_the_relay_needs_are_named)
{
	prepare(false);
	ASSERT_EQ(topic_of("delays")->role, RELAY_TOPIC_DELAYS);
	ASSERT_EQ(topic_of("delays-b10s")->role, RELAY_TOPIC_BUCKET);
	ASSERT_EQ(topic_of("delays-b60s")->role, RELAY_TOPIC_BUCKET);
	ASSERT_EQ(topic_of("delays-b3600s")->role, RELAY_TOPIC_BUCKET);
	ASSERT_EQ(topic_of("delays-b1843200s")->role, RELAY_TOPIC_BUCKET);
	ASSERT_EQ(topic_of("delays-done")->role, RELAY_TOPIC_DONE);
	ASSERT_EQ(topic_of("delays-cancelled")->role, RELAY_TOPIC_CANCELLED);
	ASSERT_EQ(topic_of("delays.invalid")->role, RELAY_TOPIC_INVALID);
	ASSERT_EQ(topics.nr, 4 + 12);
	/* Unscaled, and twice as long as a record waits. */
	ASSERT_EQ(topic_of("delays")->least_ms, 2 * HOUR_S * 1000);
	ASSERT_EQ(topic_of("delays-b10s")->least_ms, 20000);
	ASSERT_EQ(topic_of("delays-b3600s")->least_ms, 2 * HOUR_S * 1000);
	ASSERT_EQ(topic_of("delays-done")->least_ms, 0);
}

TEST(there_is_room_for_all_topics_of_each_horizon)
{
	uint64_t horizon_ms;

	for (horizon_ms = RELAY_HORIZON_MIN_MS; horizon_ms <= RELAY_HORIZON_MAX_MS;
	     horizon_ms *= 2) {
		relay.options.horizon_ms = horizon_ms;
		relay_rules_init(&relay.rules, "delays", horizon_ms, 1);
		relay_topics_init(&topics, &relay.options, &relay.rules);
		ASSERT_LE(topics.nr, RELAY_TOPICS_MAX);
	}
}

/* --- at the start --------------------------------------------------------------------- */

TEST(topics_that_are_missing_end_the_relay)
{
	prepare(false);
	make_all(4, 3);
	fake_topic("delays-done")->known = 0;
	fake_topic("delays-done")->partitions = 0;
	catch_stderr();
	ASSERT_EQ(relay_topics_open(&relay), EXIT_CANNOT);
	ASSERT(has_said("there is no topic delays-done, and --create was not given"));
	ASSERT_EQ(times_said("there is no topic"), 1);
	ASSERT_EQ(brokers.nr_creates, 0);
	stop();
}

TEST(brokers_that_do_not_answer_end_the_relay)
{
	prepare(true);
	brokers.down = true;
	catch_stderr();
	ASSERT_EQ(relay_topics_open(&relay), EXIT_CANNOT);
	ASSERT(has_said("kafka:9092 does not answer"));
	stop();
}

TEST(missing_topics_are_created_with_three_replicas_or_as_many_as_there_are_brokers)
{
	prepare(true);
	catch_stderr();
	ASSERT_EQ(relay_topics_open(&relay), 0);
	ASSERT_EQ(fake_topic("delays-b3600s")->replicas, 3);
	ASSERT_EQ(fake_topic("delays-cancelled")->replicas, 3);
	stop();
	brokers.nr = 0;
	brokers.nr_brokers = 1;
	ASSERT_EQ(relay_topics_open(&relay), 0);
	ASSERT_EQ(fake_topic("delays")->replicas, 1);
	stop();
	brokers.nr = 0;
	brokers.nr_brokers = 5;
	ASSERT_EQ(relay_topics_open(&relay), 0);
	ASSERT_EQ(fake_topic("delays")->replicas, 3);
	stop();
	brokers.nr = 0;
	relay.options.replicas = 2;
	ASSERT_EQ(relay_topics_open(&relay), 0);
	ASSERT_EQ(fake_topic("delays")->replicas, 2);
	ASSERT_EQ(times_said("should have"), 0);
	stop();
}

TEST(the_start_waits_until_all_brokers_know_the_topics_that_were_created)
{
	prepare(true);
	brokers.slow = 5;
	catch_stderr();
	ASSERT_EQ(relay_topics_open(&relay), 0);
	ASSERT_EQ(brokers.nr_creates, 1);
	/* Until then the first one, and then all of them. */
	ASSERT_EQ(brokers.nr_broker_queries, 4 + 3 - 1);
	ASSERT_EQ(times_said("there is no topic"), 0);
	stop();
	/* Nothing was created. */
	brokers.nr_broker_queries = 0;
	ASSERT_EQ(relay_topics_open(&relay), 0);
	ASSERT_EQ(brokers.nr_broker_queries, 0);
	stop();
}

TEST(what_brokers_refuse_to_create_is_missing_at_once)
{
	prepare(true);
	brokers.refuse = true;
	catch_stderr();
	ASSERT_EQ(relay_topics_open(&relay), EXIT_CANNOT);
	ASSERT(has_said("there is no topic delays-done, and --create did not work"));
	ASSERT_EQ(brokers.nr_broker_queries, 0);
	stop();
}

TEST(the_start_does_not_wait_for_ever)
{
	prepare(true);
	brokers.slow = 63;
	catch_stderr();
	ASSERT_EQ(relay_topics_open(&relay), 0);
	ASSERT(has_said("not all brokers know the topics"));
	stop();
}

TEST(too_few_partitions_and_replicas_are_named_and_do_not_end_the_relay)
{
	prepare(false);
	make_all(4, 3);
	fake_make("delays-b60s", 3, 3);
	fake_make("delays-done", 2, 3);
	fake_make("delays-cancelled", 4, 1);
	fake_make("delays.invalid", 1, 3);
	catch_stderr();
	ASSERT_EQ(relay_topics_open(&relay), 0);
	ASSERT(has_said("delays-b60s has 3 partitions, and should have 4, and --create was not"));
	ASSERT(has_said("given: partitions of delays from number 3 on wait"));
	ASSERT(has_said("delays-done has 2 partitions, and should have 4"));
	ASSERT(has_said("delays-cancelled has replication factor 1, and should have 3"));
	ASSERT_EQ(times_said("should have"), 3);
	stop();
}

TEST(settings_that_would_lose_records_end_the_relay_at_its_start_only)
{
	prepare(false);
	make_all(4, 3);
	brokers.wrong = true;
	ASSERT_EQ(relay_topics_open(&relay), 0);
	ASSERT(!relay.ending);
	relay_settings_check(&relay);
	ASSERT(relay.ending);
	ASSERT_EQ(relay.status, EXIT_CANNOT);
	stop();

	relay.ending = false;
	brokers.wrong = false;
	ASSERT_EQ(relay_topics_open(&relay), 0);
	relay_settings_check(&relay);
	brokers.wrong = true;
	run_s(3 * HOUR_S);
	ASSERT_EQ(brokers.nr_describes, 2 + 2);
	ASSERT(!relay.ending);
	stop();
}

/* --- while it runs -------------------------------------------------------------------- */

TEST(all_is_checked_each_hour_and_what_is_wrong_is_said_each_time)
{
	start(false);
	ASSERT_EQ(brokers.nr_describes, 1);
	run_s(HOUR_S - MINUTE_S);
	ASSERT_EQ(brokers.nr_lists, 0);
	fake_make("delays-b10s", 4, 1);
	run_s(2 * MINUTE_S);
	ASSERT_EQ(brokers.nr_lists, 1);
	ASSERT_EQ(brokers.nr_describes, 2);
	ASSERT_EQ(times_said("delays-b10s has replication factor 1, and should have 3"), 1);
	run_s(HOUR_S);
	ASSERT_EQ(brokers.nr_describes, 3);
	ASSERT_EQ(times_said("delays-b10s has replication factor 1, and should have 3"), 2);
	stop();
}

TEST(partitions_that_are_added_are_noticed_within_two_minutes)
{
	start(false);
	fake_make("delays", 8, 3);
	run_s(MINUTE_S + 10);
	ASSERT(has_said("delays has 8 partitions now, and had 4"));
	ASSERT(has_said("delays-b10s has 4 partitions, and should have 8, and --create was not"));
	ASSERT(has_said("delays-done has 4 partitions, and should have 8"));
	ASSERT(has_said("delays-cancelled has 4 partitions, and should have 8"));
	ASSERT(!has_said("delays.invalid"));
	/* Once, and then each hour. */
	run_s(10 * MINUTE_S);
	ASSERT_EQ(times_said("delays-done has 4 partitions"), 1);
	run_s(HOUR_S);
	ASSERT_EQ(times_said("delays-done has 4 partitions"), 2);
	ASSERT_EQ(fake_topic("delays-done")->partitions, 4);
	stop();
}

TEST(with_create_the_other_topics_get_partitions_too)
{
	start(true);
	fake_make("delays", 8, 3);
	/* Other brokers know that only after some seconds: meanwhile nothing is wrong. */
	run_s(MINUTE_S);
	brokers.slow = 5;
	run_s(30);
	ASSERT_EQ(brokers.nr_adds, 1);
	ASSERT_EQ(fake_topic("delays-b10s")->partitions, 8);
	ASSERT_EQ(fake_topic("delays-done")->partitions, 8);
	ASSERT_EQ(fake_topic("delays-cancelled")->partitions, 8);
	ASSERT_EQ(fake_topic("delays.invalid")->partitions, 4);
	ASSERT_EQ(times_said("should have"), 0);
	stop();
}

TEST(partitions_that_cannot_be_added_are_said_and_tried_again)
{
	start(true);
	brokers.refuse = true;
	fake_make("delays", 8, 3);
	run_s(2 * MINUTE_S);
	ASSERT_EQ(times_said("delays-done has 4 partitions, and should have 8"), 1);
	ASSERT(has_said("and --create did not work"));
	brokers.refuse = false;
	run_s(11 * MINUTE_S);
	ASSERT_EQ(fake_topic("delays-done")->partitions, 8);
	stop();
}

TEST(a_topic_that_was_deleted_is_said_and_not_created)
{
	start(true);
	fake_topic("delays-b60s")->partitions = 0;
	fake_topic("delays-b60s")->known = 0;
	run_s(HOUR_S + MINUTE_S);
	ASSERT(has_said("there is no topic delays-b60s"));
	ASSERT_EQ(brokers.nr_creates, 0);
	ASSERT_EQ(fake_topic("delays-b60s")->partitions, 0);
	ASSERT(!relay.ending);
	stop();
}

TEST(without_an_answer_nothing_is_said_and_it_is_asked_again)
{
	start(false);
	brokers.silent = true;
	run_s(2 * HOUR_S);
	ASSERT_EQ(brokers.nr_counts, 1);
	brokers.silent = false;
	brokers.down = true;
	run_s(2 * HOUR_S);
	/* Once a minute. */
	ASSERT_LE(brokers.nr_counts + brokers.nr_lists, 1 + 2 * HOUR_S / MINUTE_S + 1);
	ASSERT_EQ(times_said("delays"), 0);
	brokers.down = false;
	fake_make("delays", 8, 3);
	run_s(2 * MINUTE_S);
	ASSERT(has_said("delays-done has 4 partitions"));
	stop();
}

TEST(the_end_does_not_wait_for_answers)
{
	start(false);
	run_s(MINUTE_S - 1);
	brokers.silent = true;
	run_s(2);
	ASSERT_EQ(brokers.nr_counts, 1);
	stop();
	stop();
}
