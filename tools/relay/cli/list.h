/* SPDX-License-Identifier: GPL-2.0 */
/* twheel-relay list. */
#ifndef RELAY_CLI_LIST_H
#define RELAY_CLI_LIST_H

/* @argv[0] is the program and the command, for messages. Returns the exit status. */
int list_main(int argc, char **argv);

#endif /* RELAY_CLI_LIST_H */
