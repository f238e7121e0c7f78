// SPDX-License-Identifier: GPL-2.0
/*
 * What a build of the module may lack answers -EOPNOTSUPP and does nothing.
 * Which things these are is in the features that TWHEEL_IOC_INFO tells.
 */
#include <errno.h>

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
