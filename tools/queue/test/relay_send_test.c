// SPDX-License-Identifier: GPL-2.0
/* The relay's producing: targets that fail, are full, or refuse records. */
#include "relay_fixture.h"

/* --- targets that refuse a record ------------------------------------------------------- */

/* As with -X message.max.bytes, in librdkafka itself. */
static rd_kafka_resp_err_t refuse_large(const struct fake_produced *produced)
{
	return produced->value_len > 1000 && !strcmp(produced->topic, "target") ?
		RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE : 0;
}

TEST(a_record_that_is_refused_at_once_does_not_disturb_those_behind_it)
{
	int64_t offset;

	open_relay();
	kafka.at_once = refuse_large;
	give("delays", 1);
	read_record(&(struct record){ .offset = 0, .value_len = 2000 });
	for (offset = 1; offset < 5; offset++)
		read_due(offset, "target");
	ASSERT_EQ(fake_count("target", false), 0);
	wait_ms(5 * SECOND_MS);
	ASSERT_EQ(fake_count("delays.invalid", true), 1);
	ASSERT_EQ(fake_count("target", true), 4);
	wait_ms(60 * SECOND_MS);
	ASSERT_EQ(fake_count("target", false), 4);
	fake_report_all(NULL, 0);
	ASSERT_EQ(low_of(0), 5);
	ASSERT_EQ(relay.nr_entries, 0);
	ASSERT(RB_EMPTY(&relay.targets));
}
