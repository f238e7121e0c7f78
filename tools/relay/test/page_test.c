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
#include "relay/commit.h"
#include "relay/page.h"
#include "relay/partition.h"
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
}

static void close_relay(void)
{
	struct relay_partition *partition;

	while ((partition = RB_MIN(relay_partitions, &relay.partitions)))
		relay_partition_forget(&relay, partition);
	rd_kafka_destroy(relay.consumer);
	alarms_close(relay.alarms);
}

static struct relay_partition *assign(const char *topic, int64_t committed)
{
	rd_kafka_topic_partition_t assigned = { .topic = (char *)topic, .offset = committed };

	relay_partition_add(&relay, &assigned);
	return relay_partition_find(&relay, topic, 0);
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

TEST(records_that_a_commit_has_no_room_for_may_come_twice)
{
	char text[RUNS_TEXT_MAX];
	struct relay_partition *partition;
	uint64_t left_out;

	open_relay();
	partition = assign(TOPIC, 0);
	read_up_to(partition, 20000);
	do_every_other(partition, 1, 20000);
	runs_write(&partition->mark, &partition->done_before, relay_now_ms(), text, &left_out);
	ASSERT_GT(left_out, 1000);
	ASSERT_LT(left_out, 9000);
	commit(partition);
	assert_twice(left_out);
	relay.no_text = true;
	do_one(partition, 0);
	commit(partition);
	assert_twice(9999);
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
	relay.pressure = (struct relay_pressure){ 1005, 1004, { true, false } };
	relay.stats = (struct relay_stats){
		.sent = {
			[RELAY_PARK] = 1006, [RELAY_DELIVER] = 1007, [RELAY_BURY] = 1008,
			[RELAY_REFUSE] = 1009,
		},
		.send_errors = 1010, .maybe_twice = 1011, .repeated = 1012,
		.done_before = 1013, .rebalances = 1014, .standstills = 1015,
	};
	histogram_add(&relay.stats.late, 1500000);
	/* Brokers are not asked where partitions end. */
	relay.lag_asked_ms = relay_boot_ms();
	bucket = assign(BUCKET, 0);
	read_up_to(bucket, 10);
	do_every_other(bucket, 3, 10);
	assign(TOPIC, RD_KAFKA_OFFSET_INVALID)->pauses = PAUSE_STOPPED;
	for (i = 0; i < ARRAY_SIZE(lines); i++)
		assert_line(lines[i]);
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
