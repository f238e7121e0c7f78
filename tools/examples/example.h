/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Helpers of the examples: functions that open, command and read the device, and a check
 * that ends the program with a message.
 */
#ifndef _TWHEEL_EXAMPLE_H
#define _TWHEEL_EXAMPLE_H

#include <err.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <linux/twheel.h>

#define NSEC_PER_MSEC	1000000ULL
#define NSEC_PER_SEC	1000000000ULL

/* Ends the example with a failure if @condition is false. */
#define EXPECT(condition) do {							\
	if (!(condition))							\
		errx(EXIT_FAILURE, "line %d: not so: %s", __LINE__, #condition);\
} while (0)

/* Opens the device, which takes root by default.  @flags: O_NONBLOCK or 0. */
static inline int open_device(int flags)
{
	int fd = open("/dev/twheel", O_RDWR | O_CLOEXEC | flags);

	if (fd < 0)
		err(EXIT_FAILURE, "cannot open /dev/twheel");
	return fd;
}

/* Runs commands, in order and in one system call; all of them must succeed. */
static inline void submit(int fd, struct twheel_cmd *cmds, unsigned int nr)
{
	struct twheel_submit submit = {
		.size = sizeof(submit),
		.cmds = (unsigned long)cmds,
		.nr = nr,
		.cmd_size = sizeof(*cmds),
	};

	if (ioctl(fd, TWHEEL_IOC_SUBMIT, &submit) != (int)nr)
		err(EXIT_FAILURE, "cannot submit");
	for (unsigned int i = 0; i < nr; i++)
		if (cmds[i].result < 0)
			errx(EXIT_FAILURE, "command %u: %s", cmds[i].op,
			     strerror(-cmds[i].result));
}

/* Waits for the next record. */
static inline struct twheel_record next_record(int fd)
{
	struct twheel_record record;

	if (read(fd, &record, sizeof(record)) != sizeof(record))
		err(EXIT_FAILURE, "cannot read a record");
	return record;
}

#endif /* _TWHEEL_EXAMPLE_H */
