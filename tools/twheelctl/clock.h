/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The clock that all goes by, and waiting by it: CLOCK_MONOTONIC, unless another
 * is chosen.
 *
 * All that twheelctl knows of time goes through here, so that a test can put a
 * clock of its own in its place.
 */
#ifndef _TWHEELCTL_CLOCK_H
#define _TWHEELCTL_CLOCK_H

#include <poll.h>
#include <time.h>
#include <linux/types.h>

#define NSEC_PER_USEC	1000ULL
#define NSEC_PER_MSEC	1000000ULL
#define NSEC_PER_SEC	1000000000ULL

#define NEVER_NS	(~0ULL)

void clock_use(clockid_t id);
__u64 now_ns(void);
__u64 steady_ns(void);
int wait_until(struct pollfd *files, nfds_t nr, __u64 until_ns);

#endif /* _TWHEELCTL_CLOCK_H */
