// SPDX-License-Identifier: GPL-2.0
/*
 * What a build of the module may lack answers -EOPNOTSUPP and does nothing.
 * Which things these are is in the features that TWHEEL_IOC_INFO tells.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "device.h"
#include "util.h"

/* A context of a build without the feature. */
static int open_without(__u64 feature)
{
	int fd = device_open_nonblock();

	if (get_info(fd).features & feature)
		test_skip("this build has it");
	return fd;
}

static void check_command_absent(int fd, const struct twheel_cmd *cmd)
{
	check_refused(fd, cmd, EOPNOTSUPP);
}

static void check_config_absent(int fd, struct twheel_config *config)
{
	struct counters before = get_counters(fd);

	ASSERT_EQ(device_ioctl(fd, TWHEEL_IOC_CONFIG, config), -EOPNOTSUPP);
	check_counters(fd, &before);
}

TEST(absent_periodic_add)
{
	int fd = open_without(TWHEEL_FEATURE_PERIODIC);
	struct twheel_cmd cmd = make_add(0, FAR_NS, 0);

	cmd.interval_ns = get_info(fd).tick_ns;
	check_command_absent(fd, &cmd);
	cmd.interval_ns = NSEC_PER_SEC;
	check_command_absent(fd, &cmd);
}

TEST(absent_periodic_modify)
{
	int fd = open_without(TWHEEL_FEATURE_PERIODIC);
	__u64 id = add(fd, 0, FAR_NS, 0), time_ns = query_time(fd, id);
	struct twheel_cmd cmd = make_modify(id, 0, 2 * FAR_NS);

	cmd.interval_ns = NSEC_PER_SEC;
	check_command_absent(fd, &cmd);
	ASSERT_EQ(query_time(fd, id), time_ns);
}

TEST(absent_slack_of_an_add)
{
	int fd = open_without(TWHEEL_FEATURE_SLACK);
	struct twheel_cmd cmd = make_add(0, FAR_NS, 0);

	cmd.slack_ns = 1;
	check_command_absent(fd, &cmd);
	cmd.slack_ns = NSEC_PER_SEC;
	check_command_absent(fd, &cmd);
}

TEST(absent_slack_of_a_modify)
{
	int fd = open_without(TWHEEL_FEATURE_SLACK);
	__u64 id = add(fd, 0, FAR_NS, 0), time_ns = query_time(fd, id);
	struct twheel_cmd cmd = make_modify(id, 0, 2 * FAR_NS);

	cmd.slack_ns = 1;
	check_command_absent(fd, &cmd);
	ASSERT_EQ(query_time(fd, id), time_ns);
}

TEST(absent_slack_of_a_context)
{
	int fd = open_without(TWHEEL_FEATURE_SLACK);
	struct twheel_config config = default_config();

	config.slack_ns = 1;
	check_config_absent(fd, &config);
}

TEST(absent_clocks)
{
	int fd = open_without(TWHEEL_FEATURE_CLOCKS);
	struct twheel_config config = default_config();

	config.clockid = CLOCK_BOOTTIME;
	check_config_absent(fd, &config);
	config.clockid = CLOCK_REALTIME;
	check_config_absent(fd, &config);
}

TEST(absent_cpu_of_a_context)
{
	int fd = open_without(TWHEEL_FEATURE_CPU);
	struct twheel_config config = default_config();

	config.flags = TWHEEL_CONFIG_CPU;
	config.cpu = sched_getcpu();
	check_config_absent(fd, &config);
}

TEST(absent_wake_count)
{
	int fd = open_without(TWHEEL_FEATURE_WAKE);
	struct twheel_config config = default_config();

	config.wake_count = 2;
	config.wake_delay_ns = NSEC_PER_MSEC;
	check_config_absent(fd, &config);
}

TEST(absent_enter)
{
	int fd = open_without(TWHEEL_FEATURE_ENTER);
	struct counters before = get_counters(fd);
	struct twheel_cmd cmd = make_add(0, FAR_NS, 0);
	struct twheel_record record;
	struct twheel_enter enter = {
		.size = sizeof(enter),
		.cmds = (uintptr_t)&cmd,
		.records = (uintptr_t)&record,
		.nr_cmds = 1,
		.nr_records = 1,
		.cmd_size = sizeof(cmd),
		.record_size = sizeof(record),
	};

	memset(&record, FILL, sizeof(record));
	ASSERT_EQ(device_ioctl(fd, TWHEEL_IOC_ENTER, &enter), -EOPNOTSUPP);
	ASSERT_EQ(cmd.result, FILL_RESULT);
	check_bytes(&record, FILL, sizeof(record));
	check_counters(fd, &before);
}

TEST(absent_list)
{
	int fd = open_without(TWHEEL_FEATURE_LIST);
	struct twheel_entry entry;
	struct twheel_list list = {
		.size = sizeof(list),
		.nr = 1,
		.entry_size = sizeof(entry),
		.entries = (uintptr_t)&entry,
	};

	memset(&entry, FILL, sizeof(entry));
	ASSERT_EQ(device_ioctl(fd, TWHEEL_IOC_LIST, &list), -EOPNOTSUPP);
	ASSERT_EQ(list.cursor, 0);
	check_bytes(&entry, FILL, sizeof(entry));
}

TEST(absent_quorum)
{
	int fd = open_without(TWHEEL_FEATURE_OPERATIONS);
	struct twheel_cmd cmd = make_add(0, FAR_NS, 0);

	for (cmd.quorum = 2; cmd.quorum <= TWHEEL_MAX_WATCHES; cmd.quorum++)
		check_command_absent(fd, &cmd);
}

TEST(absent_complete)
{
	int fd = open_without(TWHEEL_FEATURE_OPERATIONS);
	__u64 id = add(fd, 0, FAR_NS, 0);
	struct twheel_cmd cmd = make_cmd(TWHEEL_OP_COMPLETE, id);

	check_command_absent(fd, &cmd);
	cmd.value = 1;
	check_command_absent(fd, &cmd);
	ASSERT_EQ(query(fd, id, NULL), TWHEEL_ARMED);
}

TEST(absent_watch)
{
	int fd = open_without(TWHEEL_FEATURE_OPERATIONS);
	struct twheel_cmd cmd = make_cmd(TWHEEL_OP_WATCH,
					 add(fd, 0, FAR_NS, 0));

	cmd.key = 1;
	cmd.value = 1;
	check_command_absent(fd, &cmd);
	cmd.flags = TWHEEL_LEVEL;
	check_command_absent(fd, &cmd);
}

TEST(absent_signal)
{
	int fd = open_without(TWHEEL_FEATURE_OPERATIONS);
	struct twheel_cmd cmd = make_cmd(TWHEEL_OP_SIGNAL, 0);

	cmd.key = 1;
	cmd.value = 1;
	check_command_absent(fd, &cmd);
	cmd.flags = TWHEEL_QUIET;
	cmd.value = 0;
	check_command_absent(fd, &cmd);
}
