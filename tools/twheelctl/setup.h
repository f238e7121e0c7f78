/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sets a context up by the options --clock, --slack, --cpu and --max-events, for the
 * commands that arm events.
 */
#ifndef _TWHEELCTL_SETUP_H
#define _TWHEELCTL_SETUP_H

#include <argp.h>
#include <stdbool.h>

#include "twheelctl/command.h"
#include "twheelctl/device.h"

/**
 * struct setup - the configuration of a context
 * @config: the argument of TWHEEL_IOC_CONFIG.
 * @given: an option was given, so the context has to be configured.
 */
struct setup {
	struct twheel_config config;
	bool given;
};

/*
 * Parse these options and those of all commands, as children of a command's own argp. The
 * command calls setup_children_init() at ARGP_KEY_INIT.
 */
extern const struct argp_child setup_children[];

void setup_children_init(struct argp_state *state, struct settings *settings,
			 struct setup *setup);
int setup_open(struct device *dev, const char *path, const struct setup *setup);

#endif /* _TWHEELCTL_SETUP_H */
