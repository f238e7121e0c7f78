/* SPDX-License-Identifier: GPL-2.0 */
/* twheelq serve. */
#ifndef QUEUE_SERVE_SERVE_H
#define QUEUE_SERVE_SERVE_H

/* @argv[0] is the program and the subcommand, for messages. Returns the exit status. */
int serve_main(int argc, char **argv);

#endif /* QUEUE_SERVE_SERVE_H */
