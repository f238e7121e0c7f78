/* SPDX-License-Identifier: GPL-2.0 */
/* Lines on stderr for the people who run a daemon; under journald they have its prefixes. */
#ifndef COMMON_LOG_H
#define COMMON_LOG_H

#include <syslog.h>
#include <time.h>

#include "common/util.h"

/* Log lines of this priority and more urgent ones; LOG_INFO at first. */
void log_set_level(int priority);

/* The priority of "error", "warning", "notice", "info" or "debug"; or -1. */
int log_level_parse(const char *name);

/* Log a line, given without its end. */
void log_say(int priority, const char *format, ...) PRINTF_LIKE(2, 3);

/**
 * struct log_limit - an event that clients can cause again and again
 * @next_s: it is not logged again before this time of CLOCK_MONOTONIC.
 * @times: how often it has happened since it was logged.
 *
 * At first all zeros.
 */
struct log_limit {
	time_t next_s;
	unsigned long times;
};

/*
 * Count an event. Returns 0 if it was logged less than a second ago; else how often it has
 * happened since, this time included: log it.
 */
unsigned long log_limit(struct log_limit *limit);

#endif /* COMMON_LOG_H */
