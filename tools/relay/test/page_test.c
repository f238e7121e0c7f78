// SPDX-License-Identifier: GPL-2.0
/*
 * The page of metrics, and the number of records that would come twice if the relay were killed,
 * which depends on its commits. Kafka is librdkafka's mock cluster in this process. The relay is
 * built here only as far as commits and the page need it.
 */
#include <ctype.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/util.h"
#include "common/version.h"
#include "relay/cancels.h"
#include "relay/commit.h"
#include "relay/lag.h"
#include "relay/page.h"
#include "relay/partition.h"
#include "relay/send.h"
#include "relay/state.h"
#include "test/device/harness.h"

#define TOPIC		"delays"
#define BUCKET		"delays-b600s"
#define TIMEOUT_MS	60000

static struct relay relay;

/* --- a relay -------------------------------------------------------------------------- */

static void set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
	char why[256];

	ASSERT_EQ(rd_kafka_conf_set(conf, name, value, why, sizeof(why)), RD_KAFKA_CONF_OK);
}

static void open_consumer(void)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	char why[256];

	set(conf, "test.mock.num.brokers", "1");
	set(conf, "group.id", "g");
	set(conf, "log_level", "3");
	rd_kafka_conf_set_opaque(conf, &relay);
	rd_kafka_conf_set_offset_commit_cb(conf, relay_commit_report);
	relay.consumer = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof(why));
	ASSERT(relay.consumer);
	ASSERT_EQ(rd_kafka_mock_topic_create(rd_kafka_handle_mock_cluster(relay.consumer), TOPIC,
					     1, 1), 0);
	rd_kafka_poll_set_consumer(relay.consumer);
}

static void open_relay(void)
{
	memset(&relay, 0, sizeof(relay));
	RB_INIT(&relay.partitions);
	RB_INIT(&relay.targets);
	relay.options.topic = TOPIC;
	relay_rules_init(&relay.rules, TOPIC, 600000, 1);
	ASSERT_EQ(alarms_open(&relay.alarms, ALARM_PROCESS), 0);
	open_consumer();
	relay.follower = relay.consumer;
	TAILQ_INIT(&relay.map_queue);
	ASSERT_EQ(relay_cancels_open(&relay), 0);
}

static void close_relay(void)
{
	struct relay_partition *partition;

	while ((partition = RB_MIN(relay_partitions, &relay.partitions)))
		relay_partition_forget(&relay, partition);
	relay_cancels_close(&relay);
	rd_kafka_destroy(relay.consumer);
	alarms_close(relay.alarms);
}

static struct relay_partition *assign(const char *topic, int64_t committed)
{
	struct relay_partition *partition;

	relay_partition_add(&relay, topic, 0, 1);
	partition = relay_partition_find(&relay, topic, 0);
	partition->state = PARTITION_READY;
	partition->committed = committed;
	if (committed >= 0)
		partition->next = committed;
	watermark_init(&partition->mark, partition->next);
	return partition;
}

static void read_up_to(struct relay_partition *partition, int64_t next)
{
	for (; partition->next < next; partition->next++)
		ASSERT_EQ(watermark_read(&partition->mark, partition->next), 0);
}

/* Like relay_partition_done(), for a record that was never in memory. */
static void do_one(struct relay_partition *partition, int64_t offset)
{
	ASSERT(watermark_done(&partition->mark, offset));
	partition->dirty = true;
	partition->done++;
	relay.nr_done++;
}

/* Every other record, so that the text is long. */
static void do_every_other(struct relay_partition *partition, int64_t from, int64_t to)
{
	for (; from < to; from += 2)
		do_one(partition, from);
}

static void commit(struct relay_partition *partition)
{
	uint64_t end_ms = relay_now_ms() + TIMEOUT_MS;
	int64_t low = partition->mark.low;

	partition->committed = RD_KAFKA_OFFSET_INVALID;
	while (partition->committed != low) {
		rd_kafka_message_t *message;

		/* There is no producer: the map has all that it needs. */
		partition->low_written = low;
		relay_commit(&relay);
		message = rd_kafka_consumer_poll(relay.consumer, 100);
		if (message)
			rd_kafka_message_destroy(message);
		ASSERT_LT(relay_now_ms(), end_ms);
	}
}

/* --- the page ------------------------------------------------------------------------- */

static char *make_page(void)
{
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	ASSERT_EQ(relay_page_write(out, &relay), 0);
	fclose(out);
	return text;
}

static bool has_line(const char *text, const char *line)
{
	size_t len = strlen(line);

	for (; text; text = strchr(text, '\n'), text += !!text)
		if (!strncmp(text, line, len) && text[len] == '\n')
			return true;
	return false;
}

static void assert_line(const char *line)
{
	char *page = make_page();

	test_about("%s in:\n%s", line, page);
	ASSERT(has_line(page, line));
	free(page);
}

static void assert_twice(uint64_t nr)
{
	char line[128];

	snprintf(line, sizeof(line), "twheel_relay_duplicates_possible %" PRIu64, nr);
	assert_line(line);
}

TEST(committed_records_cannot_come_twice)
{
	struct relay_partition *partition;

	open_relay();
	partition = assign(TOPIC, 100);
	read_up_to(partition, 120);
	assert_twice(0);
	do_every_other(partition, 101, 121);
	assert_twice(10);
	commit(partition);
	assert_twice(0);
	do_one(partition, 100);
	do_one(partition, 102);
	assert_twice(2);
	commit(partition);
	assert_twice(0);
	close_relay();
}

TEST(an_answer_from_an_earlier_assignment_is_ignored)
{
	rd_kafka_topic_partition_list_t *answer = rd_kafka_topic_partition_list_new(1);
	struct relay_partition *partition;

	open_relay();
	partition = assign(TOPIC, 0);
	read_up_to(partition, 10);
	do_every_other(partition, 0, 10);
	relay_partition_forget(&relay, partition);
	partition = assign(TOPIC, 0);
	read_up_to(partition, 10);
	do_every_other(partition, 0, 10);
	assert_twice(5);
	rd_kafka_topic_partition_list_add(answer, TOPIC, 0)->offset = 1;
	answer->elems[0].opaque = (void *)4;
	relay_commit_report(relay.consumer, 0, answer, &relay);
	assert_twice(5);
	rd_kafka_topic_partition_list_destroy(answer);
	close_relay();
}

TEST(a_commit_that_failed_covers_nothing_and_is_tried_again)
{
	rd_kafka_topic_partition_list_t *answer = rd_kafka_topic_partition_list_new(1);
	struct relay_partition *partition;

	open_relay();
	partition = assign(TOPIC, 0);
	read_up_to(partition, 10);
	do_every_other(partition, 0, 10);
	partition->dirty = false;
	rd_kafka_topic_partition_list_add(answer, TOPIC, 0)->offset = 1;
	answer->elems[0].opaque = (void *)5;
	answer->elems[0].err = RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS;
	relay_commit_report(relay.consumer, RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS, answer,
			    &relay);
	assert_twice(5);
	assert_line("twheel_relay_commit_errors_total 1");
	ASSERT(partition->dirty);
	commit(partition);
	assert_twice(0);
	rd_kafka_topic_partition_list_destroy(answer);
	close_relay();
}

TEST(the_page_has_each_number_where_it_belongs)
{
	static const char * const lines[] = {
		"twheel_relay_info{version=\"" TWHEEL_VERSION
			"\",wheel=\"process\",topic=\"delays\"} 1",
		"twheel_relay_partitions 2",
		"twheel_relay_records 1001", "twheel_relay_near 1002",
		"twheel_relay_in_flight 1003", "twheel_relay_bytes 1004",
		"twheel_relay_bytes_cap 1005", "twheel_relay_paused{kind=\"delays\"} 1",
		"twheel_relay_paused{kind=\"buckets\"} 0",
		"twheel_relay_written_total{to=\"bucket\"} 1006",
		"twheel_relay_written_total{to=\"target\"} 1007",
		"twheel_relay_written_total{to=\"dead\"} 1008",
		"twheel_relay_written_total{to=\"invalid\"} 1009",
		"twheel_relay_write_errors_total 1010", "twheel_relay_write_unknown_total 1011",
		"twheel_relay_repeated_total 1012", "twheel_relay_done_before_total 1013",
		"twheel_relay_rebalances_total 1014", "twheel_relay_standstills_total 1015",
		"twheel_relay_cancelled_total 1016", "twheel_relay_cancelled_late_total 1017",
		"twheel_relay_cancels 0", "twheel_relay_parked_again_total 1019",
		"twheel_relay_gave_way_total 1020", "twheel_relay_turns_total 1021",
		"twheel_relay_turns_aborted_total 1022", "twheel_relay_map_pieces 0",
		"twheel_relay_map_bytes 0", "twheel_relay_horizon_seconds 600.000000000",
		"twheel_relay_commits_failing_seconds 0.000000000",
		"twheel_relay_lateness_seconds_count{to=\"target\"} 1",
		"twheel_relay_lateness_seconds_bucket{to=\"target\",le=\"0.002048\"} 1",
		"twheel_relay_lateness_seconds_bucket{to=\"target\",le=\"0.001024\"} 0",
		"twheel_relay_partition_pending{topic=\"delays-b600s\",partition=\"0\"} 6",
		"twheel_relay_partition_done_above{topic=\"delays-b600s\",partition=\"0\"} 4",
		"twheel_relay_partition_pending{topic=\"delays\",partition=\"0\"} 0",
		"twheel_relay_partition_lag{topic=\"delays\",partition=\"0\"} -1",
		"twheel_relay_partition_stopped{topic=\"delays\",partition=\"0\"} 1",
		"twheel_relay_partition_stopped{topic=\"delays-b600s\",partition=\"0\"} 0",
		"twheel_relay_partition_oldest_seconds{topic=\"delays\",partition=\"0\"} 0",
	};
	struct relay_partition *bucket;
	size_t i;

	open_relay();
	relay.nr_entries = 1001;
	relay.nr_near = 1002;
	relay.nr_sending = 1003;
	relay.pressure = (struct relay_pressure){
		.cap = 1005, .bytes = 1004, .paused = { true, false },
	};
	relay.stats = (struct relay_stats){
		.sent = {
			[RELAY_PARK] = 1006, [RELAY_DELIVER] = 1007, [RELAY_BURY] = 1008,
			[RELAY_REFUSE] = 1009,
		},
		.send_errors = 1010, .maybe_twice = 1011, .repeated = 1012,
		.done_before = 1013, .rebalances = 1014, .standstills = 1015,
		.cancelled = 1016, .cancelled_late = 1017, .parked_again = 1019,
		.gave_way = 1020, .turns = 1021, .turns_aborted = 1022,
	};
	relay.options.horizon_ms = 600000;
	histogram_add(&relay.stats.late, 1500000);
	bucket = assign(BUCKET, 0);
	read_up_to(bucket, 10);
	do_every_other(bucket, 3, 10);
	assign(TOPIC, RD_KAFKA_OFFSET_INVALID)->pauses = PAUSE_STOPPED;
	for (i = 0; i < ARRAY_SIZE(lines); i++)
		assert_line(lines[i]);
	close_relay();
}

/* --- targets ---------------------------------------------------------------------------- */

/* As send.c makes them. */
static struct relay_target *add_target(const char *name)
{
	struct relay_target *target = calloc(1, sizeof(*target));

	ASSERT(target);
	snprintf(target->name, sizeof(target->name), "%s", name);
	TAILQ_INIT(&target->held);
	target->labelled = relay.nr_labels < RELAY_LABELS_MAX;
	relay.nr_labels += target->labelled;
	RB_INSERT(relay_targets, &relay.targets, target);
	return target;
}

static void free_targets(void)
{
	struct relay_target *target;

	while ((target = RB_MIN(relay_targets, &relay.targets))) {
		RB_REMOVE(relay_targets, &relay.targets, target);
		free(target);
	}
}

static unsigned int count_lines(const char *start)
{
	char *page = make_page(), *line = page;
	unsigned int nr = 0;

	while ((line = strstr(line, start))) {
		nr += line == page || line[-1] == '\n';
		line++;
	}
	free(page);
	return nr;
}

TEST(each_target_has_numbers_of_its_own)
{
	struct relay_target *target;

	open_relay();
	target = add_target("mails");
	target->written = 5;
	target->parked_again = 6;
	target->nr_held = 7;
	add_target("orders")->written = 8;
	assert_line("twheel_relay_target_written_total{target=\"mails\"} 5");
	assert_line("twheel_relay_target_written_total{target=\"orders\"} 8");
	assert_line("twheel_relay_target_parked_again_total{target=\"mails\"} 6");
	assert_line("twheel_relay_target_held{target=\"mails\"} 7");
	assert_line("twheel_relay_target_failing{target=\"mails\"} 0");
	assert_line("twheel_relay_target_failing_seconds{target=\"mails\"} 0");
	target->failing = true;
	target->failing_ms = relay_boot_ms() - 90500;
	assert_line("twheel_relay_target_failing{target=\"mails\"} 1");
	assert_line("twheel_relay_target_failing_seconds{target=\"mails\"} 90");
	free_targets();
	close_relay();
}

TEST(targets_beyond_the_hundredth_are_counted_together)
{
	struct relay_target *target;
	char name[16];
	unsigned int i;

	open_relay();
	for (i = 0; i < RELAY_LABELS_MAX - 1; i++) {
		snprintf(name, sizeof(name), "t%u", i);
		add_target(name)->written = 1;
	}
	ASSERT_EQ(count_lines("twheel_relay_target_written_total{"), RELAY_LABELS_MAX - 1);
	add_target("last")->written = 2;
	for (i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "a%u", i);
		target = add_target(name);
		target->written = 10;
		target->failing = true;
		target->failing_ms = relay_boot_ms() - 10500 * (i + 1);
	}
	relay.stats.written_other = 1000;
	ASSERT_EQ(count_lines("twheel_relay_target_written_total{"), RELAY_LABELS_MAX + 1);
	assert_line("twheel_relay_target_written_total{target=\"last\"} 2");
	assert_line("twheel_relay_target_written_total{target=\"(other)\"} 1030");
	assert_line("twheel_relay_target_failing{target=\"(other)\"} 1");
	assert_line("twheel_relay_target_failing_seconds{target=\"(other)\"} 31");
	free_targets();
	close_relay();
}

/* No topic has such a name, but a target is what a record says, until Kafka refuses it. */
TEST(what_would_end_a_label_is_escaped)
{
	open_relay();
	add_target("a\"b\\c\nd")->written = 1;
	assert_line("twheel_relay_target_written_total{target=\"a\\\"b\\\\c\\nd\"} 1");
	free_targets();
	close_relay();
}

/* --- topics ----------------------------------------------------------------------------- */

/* Produce @nr records to the topic of delays, and ask for its end. */
static void produce(unsigned int nr)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	rd_kafka_mock_cluster_t *cluster;
	char why[256], *brokers;
	rd_kafka_t *producer;

	cluster = rd_kafka_handle_mock_cluster(relay.consumer);
	brokers = strdup(rd_kafka_mock_cluster_bootstraps(cluster));
	set(conf, "bootstrap.servers", brokers);
	producer = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof(why));
	ASSERT(producer);
	while (nr--)
		ASSERT_EQ(rd_kafka_producev(producer, RD_KAFKA_V_TOPIC(TOPIC),
					    RD_KAFKA_V_VALUE("x", 1), RD_KAFKA_V_END), 0);
	ASSERT_EQ(rd_kafka_flush(producer, TIMEOUT_MS), 0);
	rd_kafka_destroy(producer);
	free(brokers);
}

static void wait_for_line(const char *line)
{
	uint64_t end_ms = relay_now_ms() + TIMEOUT_MS;
	bool found = false;

	while (!found) {
		char *page = make_page();

		found = has_line(page, line);
		test_about("%s in:\n%s", line, page);
		ASSERT_LT(relay_now_ms(), end_ms);
		free(page);
		usleep(10000);
	}
}

TEST(unread_records_wait_if_their_head_does_and_are_late_otherwise)
{
	struct relay_partition *partition;

	open_relay();
	produce(10);
	ASSERT_EQ(relay_lag_open(&relay), 0);
	partition = assign(TOPIC, 4);
	partition->pauses = PAUSE_HEAD;
	wait_for_line("twheel_relay_topic_waiting{topic=\"delays\"} 6");
	assert_line("twheel_relay_topic_late{topic=\"delays\"} 0");
	partition->pauses = PAUSE_MEMORY;
	assert_line("twheel_relay_topic_waiting{topic=\"delays\"} 0");
	assert_line("twheel_relay_topic_late{topic=\"delays\"} 6");
	partition->pauses = 0;
	relay_lag_close(&relay);
	close_relay();
}

/* Brokers may take long to answer: the page does not wait for them. */
TEST(a_page_does_not_wait_for_brokers)
{
	rd_kafka_mock_cluster_t *cluster;
	uint64_t start_ms;

	open_relay();
	produce(1);
	cluster = rd_kafka_handle_mock_cluster(relay.consumer);
	ASSERT_EQ(rd_kafka_mock_broker_set_rtt(cluster, 1, 1500), 0);
	ASSERT_EQ(relay_lag_open(&relay), 0);
	assign(TOPIC, 0)->pauses = PAUSE_MEMORY;
	start_ms = relay_now_ms();
	free(make_page());
	ASSERT_LT(relay_now_ms() - start_ms, 1000);
	RB_MIN(relay_partitions, &relay.partitions)->pauses = 0;
	relay_lag_close(&relay);
	close_relay();
}

/* --- health ----------------------------------------------------------------------------- */

TEST(a_stopped_partition_is_unhealthy_and_named)
{
	struct relay_partition *partition;

	open_relay();
	partition = assign(TOPIC, 7);
	ASSERT(!relay_health(&relay));
	partition->pauses = PAUSE_HEAD | PAUSE_MEMORY;
	ASSERT(!relay_health(&relay));
	partition->pauses = PAUSE_STOPPED;
	ASSERT(strstr(relay_health(&relay) ?: "", "delays [0] is stopped at offset 7"));
	partition->pauses = 0;
	close_relay();
}

TEST(commits_that_fail_for_a_minute_are_unhealthy)
{
	open_relay();
	relay.commits_fail_ms = relay_boot_ms() - 50000;
	ASSERT(!relay_health(&relay));
	relay.commits_fail_ms = relay_boot_ms() - 61000;
	ASSERT(strstr(relay_health(&relay) ?: "", "commits have failed"));
	relay.commits_fail_ms = 0;
	ASSERT(!relay_health(&relay));
	close_relay();
}

TEST(a_target_that_fails_is_not_unhealthy)
{
	struct relay_target *target;

	open_relay();
	target = add_target("mails");
	target->failing = true;
	target->failing = 1;
	ASSERT(!relay_health(&relay));
	free_targets();
	close_relay();
}

/* Does this line belong to the family whose head came last? */
static bool is_of(const char *line, const char *family)
{
	size_t len = strlen(family);

	if (strncmp(line, family, len))
		return false;
	line += len;
	if (!strncmp(line, "_bucket", 7))
		line += 7;
	else if (!strncmp(line, "_count", 6))
		line += 6;
	else if (!strncmp(line, "_sum", 4))
		line += 4;
	return *line == '{' || (*line == ' ' && isdigit((unsigned char)line[1]));
}

TEST(each_line_of_the_page_is_of_a_family_with_help_and_type)
{
	char *page, *line, *rest, family[128] = "", helped[128] = "";
	unsigned int nr = 0;

	open_relay();
	assign(TOPIC, 0);
	page = make_page();
	for (line = strtok_r(page, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		test_about("%s", line);
		nr++;
		if (sscanf(line, "# HELP %127s", helped) == 1)
			continue;
		if (sscanf(line, "# TYPE %127s", family) == 1) {
			ASSERT(!strcmp(family, helped));
			continue;
		}
		ASSERT(is_of(line, family));
	}
	ASSERT_GT(nr, 80);
	free(page);
	close_relay();
}
