/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Declarations for all commands of twheelctl.
 */
#ifndef _TWHEELCTL_COMMAND_H
#define _TWHEELCTL_COMMAND_H

#include <argp.h>

/* The exit status. */
enum status {
	STATUS_OK,
	STATUS_FAILURE,
	STATUS_USAGE,
};

/**
 * struct settings - the options of all commands, given before or after the command
 * @device: --device.
 * @debugfs: --debugfs, where the module shows its wheels.
 */
struct settings {
	const char *device;
	const char *debugfs;
};

/* Parses these options, as a child of a command's own argp. */
extern const struct argp settings_argp;

/* The same for a command without other children. It passes settings at ARGP_KEY_INIT. */
extern const struct argp_child settings_child[];

enum status info_main(int argc, char **argv, struct settings *settings);
enum status run_main(int argc, char **argv, struct settings *settings);
enum status replay_main(int argc, char **argv, struct settings *settings);
enum status show_main(int argc, char **argv, struct settings *settings);
enum status top_main(int argc, char **argv, struct settings *settings);
enum status record_main(int argc, char **argv, struct settings *settings);
enum status files_main(int argc, char **argv, struct settings *settings);
enum status metrics_main(int argc, char **argv, struct settings *settings);
enum status after_main(int argc, char **argv, struct settings *settings);
enum status every_main(int argc, char **argv, struct settings *settings);
enum status at_main(int argc, char **argv, struct settings *settings);

#endif /* _TWHEELCTL_COMMAND_H */
