// SPDX-License-Identifier: GPL-2.0
/* Standard input, output and error of a process. */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/exit.h"
#include "common/standard.h"

/* --help too is printed by a library that does not look, and ends the program. */
static void check_at_exit(int status, void *unused)
{
	(void)unused;
	if (status || (!fflush(stdout) && !ferror(stdout)))
		return;
	warn("cannot write");
	_exit(EXIT_CANNOT);
}

void standard_files_open(void)
{
	int fd;

	if (on_exit(check_at_exit, NULL))
		exit(EXIT_CANNOT);
	for (fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
			continue;
		/* The lowest number that is free is this one. The mode makes its use fail. */
		if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
			exit(EXIT_CANNOT);
	}
}

void standard_output_check(void)
{
	if (fflush(stdout) || ferror(stdout))
		err(EXIT_CANNOT, "cannot write");
}
