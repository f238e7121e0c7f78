/* SPDX-License-Identifier: GPL-2.0 */
/* twheelq stats. */
#ifndef QUEUE_CLI_STATS_H
#define QUEUE_CLI_STATS_H

/* @argv[0] is the program and the subcommand, for messages. Returns the exit status. */
int stats_main(int argc, char **argv);

#endif /* QUEUE_CLI_STATS_H */
