/* SPDX-License-Identifier: GPL-2.0 */
/* Lines on stderr for the people who run a daemon; under journald they have its prefixes. */
#ifndef COMMON_LOG_H
#define COMMON_LOG_H

#include <stdbool.h>
#include <stdint.h>
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

/*
 * Whether to log what is wrong, and may be so for long: not if it was logged less than @every_ms
 * before @now_ms, at *@logged_ms. If so, that is set to @now_ms; 0 stands for never.
 */
bool log_again(uint64_t *logged_ms, uint64_t now_ms, uint64_t every_ms);

#endif /* COMMON_LOG_H */
