// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The test's own ioctl() and reallocarray(), which the library is linked with in place of
 * the C library's.  <sys/ioctl.h> is not included, as it may give ioctl() another name.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/twheel.h>

#include "test/device/util.h"
#include "intercept.h"

int ioctl(int fd, unsigned long request, ...);
void *reallocarray(void *array, size_t nr, size_t size);

static unsigned int interrupts;
static unsigned int cut;
static unsigned int chance;
static unsigned long nr;
static bool no_memory;
static __u64 seed = 1;

void interrupt_next(unsigned int nr)
{
	interrupts = nr;
}

void cut_next(unsigned int nr)
{
	cut = nr;
}

void interrupt_by_chance(unsigned int one_in)
{
	chance = one_in;
}

unsigned long nr_interrupted(void)
{
	return nr;
}

void lack_memory(bool lack)
{
	no_memory = lack;
}

void *reallocarray(void *array, size_t nr, size_t size)
{
	if (!no_memory)
		return realloc(array, nr * size);
	errno = ENOMEM;
	return NULL;
}

static bool comes_by_chance(void)
{
	return chance && next_random(&seed) % chance == 0;
}

/* Is a call to be interrupted before it has done anything? */
static bool is_interrupted(void)
{
	if (interrupts) {
		interrupts--;
		return true;
	}
	return comes_by_chance();
}

/* How many of a call's commands it gets to do. */
static __u32 cut_commands(__u32 asked)
{
	__u32 left = asked;

	if (asked > 1 && cut)
		left = cut < asked ? cut : asked;
	else if (asked > 1 && comes_by_chance())
		left = 1 + next_random(&seed) % (asked - 1);
	if (left < asked)
		cut = 0;
	return left;
}

/* A signal after some commands: they are done, and it does not wait. */
static int enter_cut(int fd, unsigned long request, struct twheel_enter *enter)
{
	struct twheel_enter part = *enter;
	int ret;

	part.nr_cmds = cut_commands(enter->nr_cmds);
	if (part.nr_cmds == enter->nr_cmds)
		return syscall(SYS_ioctl, fd, request, enter);
	nr++;
	part.timeout_ns = 0;
	ret = syscall(SYS_ioctl, fd, request, &part);
	enter->cmds_done = part.cmds_done;
	enter->records_done = part.records_done;
	return ret;
}

static int submit_cut(int fd, unsigned long request, const struct twheel_submit *submit)
{
	struct twheel_submit part = *submit;

	part.nr = cut_commands(submit->nr);
	nr += part.nr < submit->nr;
	return syscall(SYS_ioctl, fd, request, &part);
}

int ioctl(int fd, unsigned long request, ...)
{
	void *argument;
	va_list args;

	va_start(args, request);
	argument = va_arg(args, void *);
	va_end(args);

	if ((request >> 8 & 0xff) == TWHEEL_IOC_TYPE && is_interrupted()) {
		nr++;
		errno = EINTR;
		return -1;
	}
	if (request == TWHEEL_IOC_ENTER)
		return enter_cut(fd, request, argument);
	if (request == TWHEEL_IOC_SUBMIT)
		return submit_cut(fd, request, argument);
	return syscall(SYS_ioctl, fd, request, argument);
}

/* In a 32-bit program <sys/ioctl.h> calls it __ioctl_time64: the linker takes this. */
int __wrap___ioctl_time64(int fd, unsigned long request, ...)
	__attribute__((alias("ioctl")));
