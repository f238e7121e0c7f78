// SPDX-License-Identifier: GPL-2.0
/* Lets processes that end with _exit() leave their counts, as those of tests do. */
#include <gcov.h>
#include <sys/syscall.h>
#include <unistd.h>

/* In place of the C library's. */
void _exit(int status)
{
	__gcov_dump();
	for (;;)
		syscall(SYS_exit_group, status);
}
