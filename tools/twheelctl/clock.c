// SPDX-License-Identifier: GPL-2.0
/*
 * The clock that all goes by, and waiting by it.
 */
#include <errno.h>
#include <stddef.h>

#include "clock.h"

/* How long to sleep at most on a clock that can be set meanwhile. */
#define SETTABLE_WAIT_NS	NSEC_PER_SEC

static clockid_t clockid = CLOCK_MONOTONIC;

/* Choose the clock. */
void clock_use(clockid_t id)
{
	clockid = id;
}

static __u64 read_clock(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
}

__u64 now_ns(void)
{
	return read_clock(clockid);
}

/* A clock that nobody sets, for how long something takes. */
__u64 steady_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

/*
 * Sleep until one of some files is as poll() is to wait for, or it is @until_ns.
 *
 * Return: how many are; 0 also after a signal, and now and then on a clock that
 * can be set; or a negative errno.
 */
int wait_until(struct pollfd *files, nfds_t nr, __u64 until_ns)
{
	__u64 now = now_ns();
	__u64 wait_ns = until_ns > now ? until_ns - now : 0;
	struct timespec timeout;
	int ret;

	if (clockid == CLOCK_REALTIME && wait_ns > SETTABLE_WAIT_NS)
		wait_ns = SETTABLE_WAIT_NS;
	timeout.tv_sec = wait_ns / NSEC_PER_SEC;
	timeout.tv_nsec = wait_ns % NSEC_PER_SEC;
	ret = ppoll(files, nr, until_ns == NEVER_NS ? NULL : &timeout, NULL);
	if (ret < 0)
		return errno == EINTR ? 0 : -errno;
	return ret;
}
