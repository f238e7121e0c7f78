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

void standard_files_open(void)
{
	int fd;

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
