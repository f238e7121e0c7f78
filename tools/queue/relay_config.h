/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A file of settings of librdkafka's, so that none of them, as a password, has to be on the
 * command line, which everybody on the machine can read.
 *
 * A line is NAME=VALUE; or is empty, or begins with #. White space at both ends and around
 * the first = is no part of them.
 */
#ifndef TWHEELQ_RELAY_CONFIG_H
#define TWHEELQ_RELAY_CONFIG_H

#include <stdbool.h>

#include "relay_options.h"

#define RELAY_CONFIG_WHY	512

/*
 * Add the settings of the file @path, which must stay, to @settings. Returns false if it
 * cannot be read or makes no sense; then @why says so. It never says what is in the file.
 */
bool relay_config_read(const char *path, struct relay_settings *settings,
		       char why[RELAY_CONFIG_WHY]);

/* Can everybody on the machine read it? A file that is none, as a pipe, they cannot. */
bool relay_config_is_open(const char *path);

#endif /* TWHEELQ_RELAY_CONFIG_H */
