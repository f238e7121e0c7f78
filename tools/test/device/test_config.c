// SPDX-License-Identifier: GPL-2.0
/* TWHEEL_IOC_CONFIG. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "device.h"
#include "util.h"

static long configure(int fd, const struct twheel_config *config)
{
	struct twheel_config copy = *config;
	long ret = device_ioctl(fd, TWHEEL_IOC_CONFIG, &copy);

	/* It is an input only. */
	ASSERT_EQ(memcmp(&copy, config, sizeof(copy)), 0);
	return ret;
}

/* Check that a configuration is refused and leaves the former one in force. */
static void check_config_refused(int fd, const struct twheel_config *config,
				 int error)
{
	struct counters before = get_counters(fd);

	ASSERT_EQ(configure(fd, config), -error);
	check_counters(fd, &before);
	ASSERT_EQ(get_info(fd).max_events, before.max_events);
}

/* A context whose configuration differs from the default. */
static int configured_device(void)
{
	struct twheel_config config = default_config();
	int fd = device_open_nonblock();

	config.max_events = 7;
	ASSERT_EQ(configure(fd, &config), 0);
	return fd;
}

TEST(config_of_the_defaults_changes_nothing)
{
	struct twheel_config config = default_config();
	int fd = device_open_nonblock();
	struct counters before = get_counters(fd);

	ASSERT_EQ(configure(fd, &config), 0);
	check_counters(fd, &before);
}

TEST(config_without_it_the_clock_is_monotonic)
{
	ASSERT_EQ(get_counters(device_open_nonblock()).clockid,
		  CLOCK_MONOTONIC);
}

TEST(config_sets_max_events)
{
	int fd = configured_device();

	ASSERT_EQ(get_info(fd).max_events, 7);
	ASSERT_EQ(get_counters(fd).max_events, 7);
}

TEST(config_takes_max_events_up_to_the_ceiling)
{
	struct twheel_config config = default_config();
	long long ceiling = module_parameter("max_events");
	int fd = device_open_nonblock();

	if (ceiling < 0)
		test_skip("no sysfs");
	config.max_events = ceiling;
	ASSERT_EQ(configure(fd, &config), 0);
	ASSERT_EQ(get_info(fd).max_events, ceiling);
}

TEST(config_refuses_max_events_above_the_ceiling)
{
	struct twheel_config config = default_config();
	long long ceiling = module_parameter("max_events");
	int fd = configured_device();

	config.max_events = ~0ULL;
	check_config_refused(fd, &config, ENOSPC);
	if (ceiling < 0)
		test_skip("no sysfs");
	config.max_events = ceiling + 1;
	check_config_refused(fd, &config, ENOSPC);
}

TEST(config_replaces_the_one_before)
{
	struct twheel_config config = default_config();
	int fd = device_open_nonblock();
	__u64 default_max = get_info(fd).max_events;
	__u64 max;

	for (max = 1; max < 4; max++) {
		config.max_events = max;
		ASSERT_EQ(configure(fd, &config), 0);
		ASSERT_EQ(get_info(fd).max_events, max);
	}
	config.max_events = 0;
	ASSERT_EQ(configure(fd, &config), 0);
	ASSERT_EQ(get_info(fd).max_events, default_max);
}

TEST(config_replaces_all_that_the_one_before_set)
{
	struct twheel_config config = default_config();
	int fd = device_open_nonblock();
	struct counters before = get_counters(fd);
	struct twheel_cmd answer;

	config.clockid = CLOCK_BOOTTIME;
	config.max_events = 7;
	config.slack_ns = NSEC_PER_SEC;
	config.wake_count = 3;
	config.nr_deadlines = 5;
	config.wake_delay_ns = FAR_NS;
	ASSERT_EQ(configure(fd, &config), 0);
	ASSERT_EQ(get_counters(fd).clockid, CLOCK_BOOTTIME);
	ASSERT_EQ(get_counters(fd).max_events, 7);
	ASSERT_EQ(fdinfo_number(fd, "deadlines"), 5);

	config = default_config();
	ASSERT_EQ(configure(fd, &config), 0);
	check_counters(fd, &before);
	ASSERT_EQ(fdinfo_number(fd, "deadlines"), -1);
	ASSERT_GT(query(fd, add(fd, 0, FAR_NS, 0), &answer), 0);
	ASSERT_EQ(answer.slack_ns, 0);
	add(fd, 0, 0, 1);
	ASSERT_EQ(poll_events(fd, 0), POLLIN);
}

TEST(config_that_is_refused_keeps_all_that_the_one_before_set)
{
	struct twheel_config config = default_config();
	int fd = device_open_nonblock();

	config.clockid = CLOCK_BOOTTIME;
	config.max_events = 7;
	config.slack_ns = 777;
	config.wake_count = 3;
	config.nr_deadlines = 5;
	config.wake_delay_ns = FAR_NS;
	ASSERT_EQ(configure(fd, &config), 0);

	config = default_config();
	config.max_events = ~0ULL;
	check_config_refused(fd, &config, ENOSPC);
	config.flags = ~0U;
	check_config_refused(fd, &config, EINVAL);
	ASSERT_EQ(get_counters(fd).clockid, CLOCK_BOOTTIME);
	ASSERT_EQ(fdinfo_number(fd, "deadlines"), 5);
	ASSERT_EQ(list_one(fd, add(fd, 0, 0, 1)).slack_ns, 777);
	ASSERT_EQ(poll_events(fd, 0), 0);
}

TEST(config_of_one_context_leaves_the_others_alone)
{
	int other = device_open_nonblock();
	struct counters before = get_counters(other);

	configured_device();
	check_counters(other, &before);
	ASSERT_NE(get_info(other).max_events, 7);
}

TEST(config_refuses_unknown_clocks)
{
	static const __s32 clocks[] = { INT_MIN, -100, -6, -1, 100, INT_MAX };
	struct twheel_config config = default_config();
	int fd = configured_device();
	size_t i;

	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		test_about("clock %d", clocks[i]);
		config.clockid = clocks[i];
		check_config_refused(fd, &config, EINVAL);
	}
	for (config.clockid = 0; config.clockid < 32; config.clockid++) {
		test_about("clock %d", config.clockid);
		if (config.clockid != CLOCK_MONOTONIC &&
		    config.clockid != CLOCK_BOOTTIME &&
		    config.clockid != CLOCK_REALTIME)
			check_config_refused(fd, &config, EINVAL);
	}
}

TEST(config_refuses_a_wake_count_without_a_wake_delay)
{
	struct twheel_config config = default_config();
	int fd = configured_device();

	config.wake_count = 2;
	check_config_refused(fd, &config, EINVAL);
	config.wake_count = ~0U;
	check_config_refused(fd, &config, EINVAL);
}

TEST(config_refuses_a_wake_delay_without_a_wake_count)
{
	struct twheel_config config = default_config();
	int fd = configured_device();

	for (config.wake_count = 0; config.wake_count < 2; config.wake_count++) {
		config.wake_delay_ns = 1;
		check_config_refused(fd, &config, EINVAL);
		config.wake_delay_ns = NEVER_NS;
		check_config_refused(fd, &config, EINVAL);
	}
}

TEST(config_takes_a_wake_count_of_one)
{
	struct twheel_config config = default_config();

	config.wake_count = 1;
	ASSERT_EQ(configure(device_open_nonblock(), &config), 0);
}

TEST(config_after_a_refused_add_is_taken)
{
	struct twheel_config config = default_config();
	int fd = device_open_nonblock();
	struct twheel_cmd cmd = make_add(0, FAR_NS, 0);

	cmd.reserved = 1;
	ASSERT_EQ(run(fd, &cmd), -EINVAL);
	ASSERT_EQ(configure(fd, &config), 0);
}

TEST(config_after_the_first_add_is_refused)
{
	struct twheel_config config = default_config();
	int fd = configured_device();

	/* Whatever it asks for, even if that is what there is. */
	add(fd, 0, FAR_NS, 0);
	check_config_refused(fd, &config, EBUSY);
	config.max_events = 7;
	check_config_refused(fd, &config, EBUSY);
	config.slack_ns = 1;
	check_config_refused(fd, &config, EBUSY);
	config.wake_count = 2;
	config.wake_delay_ns = 1;
	check_config_refused(fd, &config, EBUSY);
	config.clockid = CLOCK_REALTIME;
	check_config_refused(fd, &config, EBUSY);
}

TEST(config_after_a_cancelled_event_is_refused)
{
	struct twheel_config config = default_config();
	int fd = configured_device();

	ASSERT_EQ(cancel(fd, add(fd, 0, FAR_NS, 0)), 0);
	check_config_refused(fd, &config, EBUSY);
}

TEST(config_after_a_read_event_is_refused)
{
	struct twheel_config config = default_config();
	int fd = configured_device();

	add(fd, 0, 0, 0);
	wait_record(fd);
	check_config_refused(fd, &config, EBUSY);
}
