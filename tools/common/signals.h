/* SPDX-License-Identifier: GPL-2.0 */
/* The signals that end a program, as a file. */
#ifndef COMMON_SIGNALS_H
#define COMMON_SIGNALS_H

/*
 * Block SIGINT, SIGTERM and SIGHUP, and ignore SIGPIPE. Returns a file that can be read once one
 * of the three has come; reading it does not block. Ends the program with EXIT_CANNOT if there is
 * no such file.
 */
int signals_open(void);

#endif /* COMMON_SIGNALS_H */
