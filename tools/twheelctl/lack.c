// SPDX-License-Identifier: GPL-2.0
/*
 * Allocations for the test, in place of the C library's: with TWHEELCTL_LACK=N in the
 * environment, one of them fails, after N others.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t nr, size_t size);
void *__libc_realloc(void *memory, size_t size);

/* How many allocations come before the one that fails; -1: none fails. */
static long left = -1;

static void __attribute__((constructor)) read_environment(void)
{
	const char *text = getenv("TWHEELCTL_LACK");

	if (text)
		left = atol(text);
}

static bool fails(void)
{
	if (left < 0 || left--)
		return false;
	errno = ENOMEM;
	return true;
}

void *malloc(size_t size)
{
	return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t nr, size_t size)
{
	return fails() ? NULL : __libc_calloc(nr, size);
}

void *realloc(void *memory, size_t size)
{
	return fails() ? NULL : __libc_realloc(memory, size);
}
