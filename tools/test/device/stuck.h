/* SPDX-License-Identifier: GPL-2.0 */
/* A call that has begun and cannot go on: its context is locked until it is let go. */
#ifndef DEVICE_TEST_STUCK_H
#define DEVICE_TEST_STUCK_H

#include "device.h"
#include "missing_page.h"
#include "util.h"
#include "waiter.h"

/* A thread whose SUBMIT has begun and cannot go on. */
struct stuck {
	struct missing_page page;
	struct waiter caller;
	pthread_t thread;
};

static inline void start_stuck(struct stuck *stuck, int fd)
{
	stuck->page = missing_page_map();
	stuck->caller = (struct waiter){
		.fd = fd,
		.cmds = stuck->page.memory,
		.nr_cmds = 1,
	};
	stuck->thread = start_thread(wait_in_submit, &stuck->caller);
	missing_page_wait(&stuck->page);
}

static inline void finish_stuck(struct stuck *stuck)
{
	struct twheel_cmd cmd = make_add(0, FAR_NS, 1);

	ASSERT(!stuck->caller.done);
	missing_page_resolve(&stuck->page, &cmd, sizeof(cmd));
	join_thread(stuck->thread);
	ASSERT_EQ(stuck->caller.ret, 1);
	ASSERT_EQ(((struct twheel_cmd *)stuck->page.memory)->result, 0);
}

#endif /* DEVICE_TEST_STUCK_H */
