/* SPDX-License-Identifier: GPL-2.0 */
/* What is said to whoever runs the daemon: lines on stderr, with journald's prefixes there. */
#ifndef TWHEELQ_LOG_H
#define TWHEELQ_LOG_H

#include <syslog.h>

/* Lines of this priority and more urgent ones are said; LOG_INFO at first. */
void log_set_level(int priority);

/* "error", "warning", "notice", "info", "debug": its priority, or -1. */
int log_level_parse(const char *name);

/* A line, without its end. */
void log_say(int priority, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif /* TWHEELQ_LOG_H */
