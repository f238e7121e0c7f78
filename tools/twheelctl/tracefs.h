/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Reads the trace events of the module, from an instance of tracefs of its own: other users
 * of tracing are not disturbed, and do not disturb.
 */
#ifndef _TWHEELCTL_TRACEFS_H
#define _TWHEELCTL_TRACEFS_H

#include <jansson.h>
#include <stddef.h>
#include <linux/types.h>

/**
 * struct tracefs - an instance
 * @directory: the directory of the instance.
 * @fd: its pipe of events, which does not block.
 * @text: what was read and is not handled yet.
 * @length: how much of that there is.
 */
struct tracefs {
	char directory[4096];
	int fd;
	char text[65536];
	size_t length;
};

int tracefs_open(struct tracefs *tracefs, const char *directory);
int tracefs_read(struct tracefs *tracefs, void (*handle)(char *line, void *arg), void *arg);
void tracefs_stop(struct tracefs *tracefs);
void tracefs_close(struct tracefs *tracefs);
json_t *trace_line_json(char *line, __u64 start_ns);

#endif /* _TWHEELCTL_TRACEFS_H */
