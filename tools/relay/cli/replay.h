/* SPDX-License-Identifier: GPL-2.0 */
/* twheel-relay replay. */
#ifndef RELAY_CLI_REPLAY_H
#define RELAY_CLI_REPLAY_H

/* @argv[0] is the program and the command, for messages. Returns the exit status. */
int replay_main(int argc, char **argv);

#endif /* RELAY_CLI_REPLAY_H */
