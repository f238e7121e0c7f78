/* SPDX-License-Identifier: GPL-2.0 */
/* What twheelq does: main.c has the table, each function a file that is named after it. */
#ifndef TWHEELQ_SUBCOMMAND_H
#define TWHEELQ_SUBCOMMAND_H

#include <sysexits.h>

/* Exit statuses, beside 0: a wrong argument or what cannot be begun; and EX_IOERR. */
#define EXIT_CANNOT	1

/*
 * @argv[0] is "twheelq" and the subcommand's name, for messages. Each returns the exit
 * status, or exits.
 */
int serve_main(int argc, char **argv);
int relay_main(int argc, char **argv);
int check_main(int argc, char **argv);
int dump_main(int argc, char **argv);
int load_main(int argc, char **argv);
int stats_main(int argc, char **argv);
int top_main(int argc, char **argv);

/* The exit status for a negative errno of the store's. */
int store_status(int error);

/* Say why the store in @dir could not be opened; returns the exit status. */
int store_cannot_open(const char *dir, int error);

#endif /* TWHEELQ_SUBCOMMAND_H */
