/* SPDX-License-Identifier: GPL-2.0 */
/* Subcommands that ask a daemon that runs: a file for each. */
#ifndef TWHEELQ_COMMANDS_H
#define TWHEELQ_COMMANDS_H

/*
 * @argv[0] is "twheelq" and the subcommand's name, for messages. Each returns the exit
 * status, or exits.
 */
int stats_main(int argc, char **argv);
int top_main(int argc, char **argv);

#endif /* TWHEELQ_COMMANDS_H */
