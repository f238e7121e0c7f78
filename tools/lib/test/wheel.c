// SPDX-License-Identifier: LGPL-2.1-or-later
#include "wheel.h"

struct twheel *open_wheel(void)
{
	struct twheel *wheel;

	ASSERT_EQ(twheel_open(&wheel, NULL), 0);
	return wheel;
}

static struct twheel *open_config(const struct twheel_config *config)
{
	struct twheel *wheel;

	ASSERT_EQ(twheel_open(&wheel, config), 0);
	return wheel;
}

struct twheel *open_words(__u32 nr)
{
	struct twheel_config config;

	twheel_config_init(&config);
	config.nr_deadlines = nr;
	return open_config(&config);
}

struct twheel *open_limited(__u64 max_events)
{
	struct twheel_config config;

	twheel_config_init(&config);
	config.max_events = max_events;
	return open_config(&config);
}

struct twheel_records make_records(unsigned int room)
{
	struct twheel_records records;

	ASSERT_EQ(twheel_records_init(&records, room), 0);
	return records;
}

struct twheel_record wait_one(struct twheel *wheel)
{
	struct twheel_records records = make_records(1);
	struct twheel_record record;

	ASSERT_EQ(twheel_wait(wheel, &records, TWHEEL_NEVER), 1);
	record = records.records[0];
	twheel_records_destroy(&records);
	check_record(&record);
	return record;
}

struct counters counters_of(const struct twheel *wheel)
{
	return get_counters(twheel_fd(wheel));
}
