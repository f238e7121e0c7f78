// SPDX-License-Identifier: GPL-2.0
/* Lines on stderr. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/time.h"
#include "common/util.h"

static int level = LOG_INFO;

void log_set_level(int priority)
{
	level = priority;
}

int log_level_parse(const char *name)
{
	static const struct {
		const char *name;
		int priority;
	} levels[] = {
		{ "error", LOG_ERR }, { "warning", LOG_WARNING }, { "notice", LOG_NOTICE },
		{ "info", LOG_INFO }, { "debug", LOG_DEBUG },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(levels); i++)
		if (!strcmp(name, levels[i].name))
			return levels[i].priority;
	return -1;
}

void log_say(int priority, const char *format, ...)
{
	char line[1024];
	va_list args;

	if (priority > level)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	/* One write, so that lines of two threads do not mix. */
	if (getenv("JOURNAL_STREAM"))
		fprintf(stderr, "<%d>%s\n", priority, line);
	else
		fprintf(stderr, "%s: %s\n", program_invocation_short_name, line);
}

unsigned long log_limit(struct log_limit *limit)
{
	time_t now_s = time_now_ns(CLOCK_MONOTONIC) / NSEC_PER_SEC;
	unsigned long times = ++limit->times;

	if (now_s < limit->next_s)
		return 0;
	limit->next_s = now_s + 1;
	limit->times = 0;
	return times;
}

bool log_again(uint64_t *logged_ms, uint64_t now_ms, uint64_t every_ms)
{
	if (*logged_ms && now_ms - *logged_ms < every_ms)
		return false;
	*logged_ms = now_ms;
	return true;
}
