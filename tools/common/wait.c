// SPDX-License-Identifier: GPL-2.0
/* Waiting, and the clock that a program waits by. */
#include <errno.h>
#include <stddef.h>

#include "common/time.h"
#include "common/wait.h"

/* How long to sleep at most by a clock that can be set meanwhile. */
#define SETTABLE_WAIT_NS	NSEC_PER_SEC

static clockid_t chosen = CLOCK_MONOTONIC;

void wait_choose_clock(clockid_t clock)
{
	chosen = clock;
}

uint64_t wait_now_ns(void)
{
	return time_now_ns(chosen);
}

uint64_t wait_steady_ns(void)
{
	return time_now_ns(CLOCK_MONOTONIC);
}

int wait_until(struct pollfd *files, nfds_t nr, uint64_t until_ns)
{
	uint64_t now_ns = wait_now_ns();
	uint64_t wait_ns = until_ns > now_ns ? until_ns - now_ns : 0;
	struct timespec timeout;
	int ret;

	if (chosen == CLOCK_REALTIME && wait_ns > SETTABLE_WAIT_NS)
		wait_ns = SETTABLE_WAIT_NS;
	timeout = time_spec(wait_ns);
	ret = ppoll(files, nr, until_ns == TIME_NEVER_NS ? NULL : &timeout, NULL);
	if (ret < 0)
		return errno == EINTR ? 0 : -errno;
	return ret;
}
