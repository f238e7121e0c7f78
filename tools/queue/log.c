// SPDX-License-Identifier: GPL-2.0
/* Lines on stderr. */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "util.h"

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
	/* One write: lines of two threads do not mix. */
	if (getenv("JOURNAL_STREAM"))
		fprintf(stderr, "<%d>%s\n", priority, line);
	else
		fprintf(stderr, "twheelq: %s\n", line);
}
