// SPDX-License-Identifier: GPL-2.0
/*
 * The clock: CLOCK_MONOTONIC, and waiting by it.
 */
#include <errno.h>
#include <stddef.h>
#include <time.h>

#include "clock.h"

__u64 now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
}

/*
 * Sleep until one of some files is as poll() is to wait for, or it is @until_ns.
 *
 * Return: how many are; 0 also after a signal; or a negative errno.
 */
int wait_until(struct pollfd *files, nfds_t nr, __u64 until_ns)
{
	__u64 now = now_ns();
	__u64 wait_ns = until_ns > now ? until_ns - now : 0;
	struct timespec timeout = {
		.tv_sec = wait_ns / NSEC_PER_SEC,
		.tv_nsec = wait_ns % NSEC_PER_SEC,
	};
	int ret = ppoll(files, nr, until_ns == NEVER_NS ? NULL : &timeout, NULL);

	if (ret < 0)
		return errno == EINTR ? 0 : -errno;
	return ret;
}
