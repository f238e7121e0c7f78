/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Setting a context up: the options --clock, --slack, --cpu and --max-events, for
 * the commands that arm events.
 */
#ifndef _TWHEELCTL_SETUP_H
#define _TWHEELCTL_SETUP_H

#include <argp.h>
#include <stdbool.h>

#include "command.h"
#include "device.h"

/**
 * struct setup - how a context is to be
 * @config: what the device is told.
 * @given: whether there is anything to tell it.
 */
struct setup {
	struct twheel_config config;
	bool given;
};

/*
 * As the children of a command's own argp: they take these options and those of
 * all commands. The command calls setup_children_init() at ARGP_KEY_INIT.
 */
extern const struct argp_child setup_children[];

void setup_children_init(struct argp_state *state, struct settings *settings,
			 struct setup *setup);
int setup_open(struct device *dev, const char *path, const struct setup *setup);

#endif /* _TWHEELCTL_SETUP_H */
