/* SPDX-License-Identifier: GPL-2.0 */
/* Exit statuses of the programs, in addition to 0 and those of sysexits.h. */
#ifndef COMMON_EXIT_H
#define COMMON_EXIT_H

#include <sysexits.h>

/* The command cannot be done, or the daemon cannot start. */
#define EXIT_CANNOT	1

/* The command line is wrong. */
#define EXIT_USAGE	2

#endif /* COMMON_EXIT_H */
