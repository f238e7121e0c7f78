/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A file of settings of librdkafka, so that a password does not have to be on the command
 * line, which everybody on the machine can read.
 *
 * A line is NAME=VALUE, or is empty, or begins with #. White space at both ends and around
 * the first = is ignored.
 */
#ifndef RELAY_CONFIG_H
#define RELAY_CONFIG_H

#include <stdbool.h>
#include <bsd/sys/queue.h>

#define RELAY_CONFIG_WHY	512

/**
 * struct relay_setting - a setting of librdkafka
 * @name: its name.
 * @value: its value. It may be a secret, so no message has it.
 * @path: the file that it is from; NULL: the command line.
 * @line: its line in the file.
 * @entry: in the list.
 * @text: the memory of name and value, if it is from a file.
 */
struct relay_setting {
	const char *name;
	const char *value;
	const char *path;
	unsigned int line;
	STAILQ_ENTRY(relay_setting) entry;
	char text[];
};

STAILQ_HEAD(relay_settings, relay_setting);

/*
 * Add the settings of the file @path to @settings; the string @path must stay. Returns 0, or the
 * exit status: EXIT_CANNOT, the file cannot be read; EXIT_USAGE, a line is wrong. @why then says
 * why, without any text of the file.
 */
int relay_config_read(const char *path, struct relay_settings *settings,
		      char why[RELAY_CONFIG_WHY]);

/* Can everybody on the machine read it? No, if it is not a regular file, such as a pipe. */
bool relay_config_is_open(const char *path);

#endif /* RELAY_CONFIG_H */
