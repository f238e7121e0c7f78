/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The clock: CLOCK_MONOTONIC, and waiting by it.
 *
 * All that twheelctl knows of time goes through here, so that a test can put a
 * clock of its own in its place.
 */
#ifndef _TWHEELCTL_CLOCK_H
#define _TWHEELCTL_CLOCK_H

#include <poll.h>
#include <linux/types.h>

#define NSEC_PER_USEC	1000ULL
#define NSEC_PER_MSEC	1000000ULL
#define NSEC_PER_SEC	1000000000ULL

#define NEVER_NS	(~0ULL)

__u64 now_ns(void);
int wait_until(struct pollfd *files, nfds_t nr, __u64 until_ns);

#endif /* _TWHEELCTL_CLOCK_H */
