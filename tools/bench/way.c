// SPDX-License-Identifier: GPL-2.0
/* Helpers of all ways to have timers. */
#include <err.h>
#include <stdio.h>
#include <sys/resource.h>

#include "way.h"

const struct way *const ways[] = {
	&way_submit_1, &way_submit_32, &way_submit_256, &way_enter_256,
	&way_uring_256, &way_deadline, &way_deadline_slack,
	&way_timerfd, &way_posix, &way_uring, &way_heap, NULL
};

const char *way_name(const struct way *way)
{
	static char name[64];

	snprintf(name, sizeof(name), "%s%s%s", way->name,
		 way->variant ? "." : "", way->variant ? way->variant : "");
	return name;
}

/* Raise a limit, which only root may do.  Errors show later, where the limit is reached. */
static void raise_sysctl(const char *path, unsigned long long value)
{
	FILE *file = fopen(path, "r+");
	unsigned long long now;

	if (!file)
		return;
	if (fscanf(file, "%llu", &now) == 1 && now < value) {
		rewind(file);
		fprintf(file, "%llu", value);
	}
	fclose(file);
}

static void raise_limit(int resource, const char *name, rlim_t value)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit))
		err(1, "cannot get %s", name);
	if (limit.rlim_cur >= value)
		return;
	limit.rlim_cur = value;
	if (limit.rlim_max < value)
		limit.rlim_max = value;
	if (setrlimit(resource, &limit))
		err(1, "cannot set %s to %llu (this takes root)", name,
		    (unsigned long long)value);
}

/* The number of files besides those of timers. */
#define OTHER_FILES	1000

void raise_limits(__u32 nr)
{
	raise_sysctl("/proc/sys/fs/nr_open", nr + OTHER_FILES);
	raise_sysctl("/proc/sys/fs/file-max", nr + OTHER_FILES);
	raise_sysctl("/proc/sys/fs/epoll/max_user_watches", nr + OTHER_FILES);
	raise_limit(RLIMIT_NOFILE, "RLIMIT_NOFILE", nr + OTHER_FILES);
	raise_limit(RLIMIT_SIGPENDING, "RLIMIT_SIGPENDING", nr + OTHER_FILES);
}
