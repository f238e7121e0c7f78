/* SPDX-License-Identifier: GPL-2.0 */
/* twheelq top. */
#ifndef QUEUE_CLI_TOP_H
#define QUEUE_CLI_TOP_H

/* @argv[0] is the program and the subcommand, for messages. Returns the exit status. */
int top_main(int argc, char **argv);

#endif /* QUEUE_CLI_TOP_H */
