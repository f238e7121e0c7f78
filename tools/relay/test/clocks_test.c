// SPDX-License-Identifier: GPL-2.0
/* What timestamps of brokers show of their clocks. */
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "relay/clocks.h"
#include "relay/test/caught_lib.h"
#include "relay/test/fixture_lib.h"

static uint64_t ahead_ms(void)
{
	return relay_clocks_get(&relay).ahead_ms;
}

static uint64_t behind_ms(void)
{
	return relay_clocks_get(&relay).behind_ms;
}

static void open_clocks(void)
{
	open_relay();
	kafka.broker_stamps = true;
	assign_partitions("delays", 1);
}

static void read_made(int64_t offset, int64_t by_ms)
{
	read_record(&(struct record){ .offset = offset, .made_ms = relay_now_ms() + by_ms });
}

/* Write a record that is reported after a minute, with a timestamp so long after it began. */
static void report_stamped(int64_t offset, int64_t by_ms)
{
	kafka.report_stamp_ms = relay_now_ms() + by_ms;
	turn();
	read_due(offset, "target");
	ASSERT(fake_count("target", true));
	fake_advance(MINUTE_MS * NSEC_PER_MSEC);
	fake_report_all("target", 0);
}

TEST(a_record_that_is_read_before_its_time_is_of_a_clock_that_is_ahead)
{
	open_clocks();
	read_made(0, -3000);
	ASSERT_EQ(ahead_ms(), 0);
	read_made(1, 3000);
	read_made(2, 2000);
	ASSERT_EQ(ahead_ms(), 3000);
	ASSERT_EQ(behind_ms(), 0);
}

TEST(timestamps_of_producers_say_nothing)
{
	open_clocks();
	kafka.broker_stamps = false;
	read_made(0, 3000);
	report_stamped(1, -3000);
	report_stamped(2, 2 * MINUTE_MS);
	ASSERT_EQ(ahead_ms(), 0);
	ASSERT_EQ(behind_ms(), 0);
}

TEST(a_report_shows_both_and_nothing_if_its_timestamp_is_between)
{
	open_clocks();
	report_stamped(0, 0);
	report_stamped(1, MINUTE_MS);
	ASSERT_EQ(ahead_ms(), 0);
	ASSERT_EQ(behind_ms(), 0);
	report_stamped(2, -2000);
	ASSERT_EQ(behind_ms(), 2000);
	report_stamped(3, MINUTE_MS + 4000);
	ASSERT_EQ(ahead_ms(), 4000);
	ASSERT_EQ(behind_ms(), 2000);
}

TEST(a_record_that_was_not_written_has_no_timestamp)
{
	open_clocks();
	kafka.report_stamp_ms = relay_now_ms() - MINUTE_MS;
	read_due(0, "target");
	fake_report_all("target", RD_KAFKA_RESP_ERR__MSG_TIMED_OUT);
	ASSERT_EQ(behind_ms(), 0);
}

TEST(a_difference_is_forgotten_after_the_next_minute)
{
	open_clocks();
	fake_advance((MINUTE_MS - relay_boot_ms() % MINUTE_MS) * NSEC_PER_MSEC);
	read_made(0, 3000);
	fake_advance((2 * MINUTE_MS - 1) * NSEC_PER_MSEC);
	ASSERT_EQ(ahead_ms(), 3000);
	read_made(1, 1000);
	fake_advance(NSEC_PER_MSEC);
	ASSERT_EQ(ahead_ms(), 1000);
	fake_advance(MINUTE_MS * NSEC_PER_MSEC);
	ASSERT_EQ(ahead_ms(), 0);
}

TEST(a_difference_of_more_than_a_second_is_logged_once)
{
	open_clocks();
	log_set_level(LOG_WARNING);
	catch_stderr();
	read_made(0, 1000);
	ASSERT(!strstr(caught(), "clock"));
	catch_stderr();
	read_made(1, 1001);
	ASSERT(strstr(caught(), "the clock of a broker is 1001 ms ahead of this machine's"));
	catch_stderr();
	read_made(2, 1002);
	ASSERT(!strstr(caught(), "clock"));
}
