// SPDX-License-Identifier: GPL-2.0
/* What a test writes to stderr: the log, and messages of argp. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "relay/test/caught_lib.h"
#include "test/device/harness.h"

#define TEXT_SIZE	65536

static int file = -1;
static int shown = -1;
static char text[TEXT_SIZE];

void catch_stderr(void)
{
	fflush(stderr);
	if (file < 0) {
		file = memfd_create("stderr", MFD_CLOEXEC);
		shown = dup(STDERR_FILENO);
	}
	ASSERT(file >= 0 && shown >= 0);
	ASSERT_EQ(ftruncate(file, 0), 0);
	lseek(file, 0, SEEK_SET);
	dup2(file, STDERR_FILENO);
}

static void read_text(void)
{
	ssize_t len;

	fflush(stderr);
	len = pread(file, text, sizeof(text) - 1, 0);
	text[len > 0 ? len : 0] = '\0';
}

const char *caught(void)
{
	read_text();
	dup2(shown, STDERR_FILENO);
	return text;
}

bool has_said(const char *words)
{
	return times_said(words) > 0;
}

unsigned int times_said(const char *words)
{
	unsigned int times = 0;
	const char *found;

	read_text();
	for (found = strstr(text, words); found; found = strstr(found + 1, words))
		times++;
	return times;
}
