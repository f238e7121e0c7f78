/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A thread in a call that may keep it waiting, and what came of it.
 *
 *	struct waiter waiter = { .fd = fd };
 *	pthread_t thread = start_thread(wait_in_read, &waiter);
 *
 *	wait_waiter_asleep(&waiter);
 *	(do what is to wake it)
 *	join_thread(thread);
 *	(look at waiter.ret and waiter.records)
 */
#ifndef DEVICE_TEST_WAITER_H
#define DEVICE_TEST_WAITER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "device.h"

/**
 * struct waiter - a thread in a call
 * @fd: the context.
 * @cmds: commands for SUBMIT and ENTER.
 * @nr_cmds: how many there are.
 * @room: for how many records there is room; 0 is as many as there can be.
 * @min_records: how many of them ENTER waits for.
 * @flags: of ENTER.
 * @timeout_ns: of ENTER; 0 is for ever.
 * @tid: the thread, once it is about to call.
 * @done: the call is over.
 * @ret: what it returned, -errno where it failed; of a read the number of records.
 * @arg: the argument of ENTER, as the call left it.
 * @records: what was read.
 */
struct waiter {
	int fd;
	struct twheel_cmd *cmds;
	__u32 nr_cmds;
	__u32 room;
	__u32 min_records;
	__u32 flags;
	__u64 timeout_ns;

	atomic_int tid;
	atomic_bool done;
	long ret;
	struct twheel_enter arg;
	struct twheel_record records[16];
};

/* The function for start_thread(); its argument is the waiter. */
void *wait_in_read(void *waiter);
void *wait_in_submit(void *waiter);
void *wait_in_enter(void *waiter);

/* These wait until the file is readable, and read then; the last by the edge. */
void *wait_in_poll(void *waiter);
void *wait_in_epoll(void *waiter);

/* For a thread's own function: the call begins, and is over. */
void waiter_begin(struct waiter *waiter);
void waiter_end(struct waiter *waiter, long ret);

/* Wait until the thread sleeps in its call, which must not be over. */
void wait_waiter_asleep(struct waiter *waiter);

#endif /* DEVICE_TEST_WAITER_H */
