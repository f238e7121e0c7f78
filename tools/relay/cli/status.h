/* SPDX-License-Identifier: GPL-2.0 */
/* twheel-relay status. */
#ifndef RELAY_CLI_STATUS_H
#define RELAY_CLI_STATUS_H

/* @argv[0] is the program and the command, for messages. Returns the exit status. */
int status_main(int argc, char **argv);

#endif /* RELAY_CLI_STATUS_H */
