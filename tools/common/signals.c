// SPDX-License-Identifier: GPL-2.0
/* The signals that end a program, as a file. */
#include <err.h>
#include <signal.h>
#include <stddef.h>
#include <sys/signalfd.h>

#include "common/exit.h"
#include "common/signals.h"

int signals_open(void)
{
	sigset_t signals;
	int fd;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		err(EXIT_CANNOT, "signalfd");
	return fd;
}
