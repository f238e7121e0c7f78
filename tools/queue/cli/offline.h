/* SPDX-License-Identifier: GPL-2.0 */
/* twheelq check, dump and load. */
#ifndef QUEUE_CLI_OFFLINE_H
#define QUEUE_CLI_OFFLINE_H

/* @argv[0] is the program and the subcommand, for messages. Returns the exit status. */
int check_main(int argc, char **argv);
int dump_main(int argc, char **argv);
int load_main(int argc, char **argv);

#endif /* QUEUE_CLI_OFFLINE_H */
