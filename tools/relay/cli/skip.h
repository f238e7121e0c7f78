/* SPDX-License-Identifier: GPL-2.0 */
/* twheel-relay skip. */
#ifndef RELAY_CLI_SKIP_H
#define RELAY_CLI_SKIP_H

/* @argv[0] is the program and the command, for messages. Returns the exit status. */
int skip_main(int argc, char **argv);

#endif /* RELAY_CLI_SKIP_H */
