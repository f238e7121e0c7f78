// SPDX-License-Identifier: GPL-2.0
/*
 * A timerfd, a POSIX timer without a signal, and clock_nanosleep(), each on an event of
 * /dev/twheel.
 *
 * The tests of other projects are linked with this, and with --wrap for each function that
 * is defined here as __wrap_*: their calls come here.  What this does not know, such as
 * another clock, is refused as the kernel refuses it, and other files and timers are the
 * kernel's own.
 *
 * A timer is a context with one event, which is armed for ever while the timer is disarmed.
 * timerfd_settime() is one MODIFY of it, so that calls of several threads meet in the module.
 * A record that is read ends a one-shot event; the next timerfd_settime() adds another one.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <linux/twheel.h>

#include "shim.h"

#define NR_TIMERS	256
#define NEVER		(1ULL << 63)
#define NSEC_PER_SEC	1000000000ULL

/* The value of a timer_t of ours is this plus its file; the kernel's own are small numbers. */
#define TIMER_BASE	0x77686565UL

#ifndef TFD_TIMER_CANCEL_ON_SET
#define TFD_TIMER_CANCEL_ON_SET 2
#endif

/* By the number of its file. */
static struct timer {
	bool used;
	clockid_t clock;
	atomic_uint_least64_t id;
} timers[NR_TIMERS];

static int fail(int error)
{
	errno = error;
	return -1;
}

static uint64_t to_ns(const struct timespec *time)
{
	if ((uint64_t)time->tv_sec > NEVER / NSEC_PER_SEC)
		return NEVER;
	return time->tv_sec * NSEC_PER_SEC + time->tv_nsec;
}

static struct timespec from_ns(uint64_t ns)
{
	return (struct timespec){ .tv_sec = ns / NSEC_PER_SEC, .tv_nsec = ns % NSEC_PER_SEC };
}

static bool is_valid(const struct timespec *time)
{
	return time->tv_sec >= 0 && (uint64_t)time->tv_nsec < NSEC_PER_SEC;
}

static uint64_t now_ns(clockid_t clock)
{
	struct timespec now;

	__real_clock_gettime(clock, &now);
	return to_ns(&now);
}

/*
 * The kernel alone knows which addresses are good: let it write zeros there, or read from there.
 */
static bool can_write(void *address, size_t size)
{
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	bool can = __real_read(fd, address, size) == (ssize_t)size;

	__real_close(fd);
	return can;
}

static bool can_read(const void *address, size_t size)
{
	int ends[2];
	bool can;

	if (pipe2(ends, O_CLOEXEC))
		return false;
	can = write(ends[1], address, size) == (ssize_t)size;
	__real_close(ends[0]);
	__real_close(ends[1]);
	return can;
}

/* Run one command; 0, or a negative errno. */
static int run(int fd, struct twheel_cmd *cmd)
{
	struct twheel_submit submit = {
		.size = sizeof(submit),
		.cmds = (uintptr_t)cmd,
		.nr = 1,
		.cmd_size = sizeof(*cmd),
	};

	if (ioctl(fd, TWHEEL_IOC_SUBMIT, &submit) != 1)
		return -errno;
	return cmd->result;
}

static int add_event(struct timer *timer, int fd, const struct twheel_cmd *like)
{
	struct twheel_cmd cmd = *like;
	int error;

	cmd.op = TWHEEL_OP_ADD;
	cmd.id = 0;
	error = run(fd, &cmd);
	if (!error)
		timer->id = cmd.id;
	return error;
}

/* A context for a clock, or -1 with errno. */
static int open_context(clockid_t clock, int flags)
{
	struct twheel_config config = { .size = sizeof(config), .clockid = clock };
	int fd = open("/dev/twheel", O_RDWR | flags);

	if (fd >= 0 && ioctl(fd, TWHEEL_IOC_CONFIG, &config)) {
		__real_close(fd);
		return -1;
	}
	return fd;
}

int __wrap_timerfd_create(int clock, int flags)
{
	const struct twheel_cmd never = { .time_ns = NEVER };
	int fd, error;

	if (flags & ~(TFD_CLOEXEC | TFD_NONBLOCK))
		return fail(EINVAL);
	fd = open_context(clock, flags);
	if (fd < 0)
		return -1;
	if (fd >= NR_TIMERS) {
		__real_close(fd);
		return fail(EMFILE);
	}
	timers[fd].clock = clock;
	error = add_event(&timers[fd], fd, &never);
	if (error) {
		__real_close(fd);
		return fail(-error);
	}
	timers[fd].used = true;
	return fd;
}

static struct timer *timer_of(int fd)
{
	if (fd >= 0 && fd < NR_TIMERS && timers[fd].used)
		return &timers[fd];
	/* Of a file that is not open, EBADF. */
	fail(fcntl(fd, F_GETFD) < 0 ? errno : EINVAL);
	return NULL;
}

int __wrap_timerfd_gettime(int fd, struct itimerspec *value)
{
	struct timer *timer = timer_of(fd);
	struct twheel_cmd query = { .op = TWHEEL_OP_QUERY };
	uint64_t now, due;

	if (!timer)
		return -1;
	if (!can_write(value, sizeof(*value)))
		return fail(EFAULT);
	query.id = timer->id;
	if (run(fd, &query) < 0)
		return 0;
	now = now_ns(timer->clock);
	due = query.time_ns;
	value->it_interval = from_ns(query.interval_ns);
	if (due >= NEVER)
		return 0;
	if (due <= now && query.interval_ns)
		due += ((now - due) / query.interval_ns + 1) * query.interval_ns;
	value->it_value = from_ns(due > now ? due - now : 0);
	return 0;
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *new,
			   struct itimerspec *old)
{
	struct timer *timer = timer_of(fd);
	struct twheel_cmd cmd = { .op = TWHEEL_OP_MODIFY };
	int error;

	if (!timer)
		return -1;
	if (flags & ~(TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET))
		return fail(EINVAL);
	if (!can_read(new, sizeof(*new)))
		return fail(EFAULT);
	if (!is_valid(&new->it_value) || !is_valid(&new->it_interval))
		return fail(EINVAL);
	if (old && __wrap_timerfd_gettime(fd, old))
		return -1;
	cmd.time_ns = to_ns(&new->it_value);
	cmd.interval_ns = to_ns(&new->it_interval);
	if (flags & TFD_TIMER_ABSTIME)
		cmd.flags |= TWHEEL_ABS;
	if (flags & TFD_TIMER_CANCEL_ON_SET && timer->clock == CLOCK_REALTIME)
		cmd.flags |= TWHEEL_CANCEL_ON_SET;
	if (!cmd.time_ns)
		cmd.time_ns = NEVER;
	cmd.id = timer->id;
	error = run(fd, &cmd);
	if (error == -ENOENT)
		error = add_event(timer, fd, &cmd);
	return error < 0 ? fail(-error) : 0;
}

ssize_t __wrap_read(int fd, void *buffer, size_t size)
{
	struct twheel_record record;
	uint64_t count;

	if (fd < 0 || fd >= NR_TIMERS || !timers[fd].used)
		return __real_read(fd, buffer, size);
	if (size < sizeof(count))
		return fail(EINVAL);
	if (__real_read(fd, &record, sizeof(record)) < 0)
		return -1;
	if (record.reason == TWHEEL_CLOCK_SET)
		return fail(ECANCELED);
	count = record.count;
	memcpy(buffer, &count, sizeof(count));
	return sizeof(count);
}

int __wrap_close(int fd)
{
	if (fd >= 0 && fd < NR_TIMERS)
		timers[fd].used = false;
	return __real_close(fd);
}

/* LTP makes its system calls by number. */
long __wrap_syscall(long nr, ...)
{
	long arguments[6];
	va_list list;
	int i;

	va_start(list, nr);
	for (i = 0; i < 6; i++)
		arguments[i] = va_arg(list, long);
	va_end(list);
	switch (nr) {
	case SYS_timerfd_create:
		return __wrap_timerfd_create(arguments[0], arguments[1]);
	case SYS_timerfd_settime:
		return __wrap_timerfd_settime(arguments[0], arguments[1], (void *)arguments[2],
					      (void *)arguments[3]);
	case SYS_timerfd_gettime:
		return __wrap_timerfd_gettime(arguments[0], (void *)arguments[1]);
	case SYS_nanosleep:
		return __wrap_nanosleep((void *)arguments[0], (void *)arguments[1]);
	case SYS_clock_nanosleep:
		i = __wrap_clock_nanosleep(arguments[0], arguments[1], (void *)arguments[2],
					   (void *)arguments[3]);
		/* The C library refuses this clock in another way than the kernel. */
		if (i == EINVAL && arguments[0] == CLOCK_THREAD_CPUTIME_ID)
			i = EOPNOTSUPP;
		return i ? fail(i) : 0;
	default:
		return __real_syscall(nr, arguments[0], arguments[1], arguments[2], arguments[3],
				      arguments[4], arguments[5]);
	}
}

/* There is no such thing as waking the machine: these clocks are not there. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	if (clock == CLOCK_REALTIME_ALARM || clock == CLOCK_BOOTTIME_ALARM)
		return fail(EINVAL);
	return __real_clock_gettime(clock, time);
}

/* Add an event, and wait for its record, in one call; 0, or a negative errno. */
static int sleep_on(int fd, uint64_t time_ns, bool is_absolute)
{
	struct twheel_cmd add = {
		.op = TWHEEL_OP_ADD,
		.flags = is_absolute ? TWHEEL_ABS : 0,
		.time_ns = time_ns,
	};
	struct twheel_record record;
	struct twheel_enter enter = {
		.size = sizeof(enter),
		.cmds = (uintptr_t)&add,
		.records = (uintptr_t)&record,
		.timeout_ns = UINT64_MAX,
		.nr_cmds = 1,
		.nr_records = 1,
		.min_records = 1,
		.cmd_size = sizeof(add),
		.record_size = sizeof(record),
	};

	if (ioctl(fd, TWHEEL_IOC_ENTER, &enter))
		return -errno;
	if (add.result)
		return add.result;
	return enter.records_done ? 0 : -EINTR;
}

static int do_sleep(clockid_t clock, bool is_absolute, const struct timespec *request,
		    struct timespec *left)
{
	uint64_t time_ns, now, end;
	int fd, error;

	if (!can_read(request, sizeof(*request)))
		return -EFAULT;
	if (!is_valid(request))
		return -EINVAL;
	fd = open_context(clock, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	time_ns = to_ns(request);
	end = now_ns(clock) + time_ns;
	error = sleep_on(fd, time_ns, is_absolute);
	__real_close(fd);
	if (error == -EINTR && !is_absolute && left) {
		if (!can_write(left, sizeof(*left)))
			return -EFAULT;
		now = now_ns(clock);
		*left = from_ns(end > now ? end - now : 0);
	}
	return error;
}

int __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *request,
			   struct timespec *left)
{
	return -do_sleep(clock, flags & TIMER_ABSTIME, request, left);
}

int __wrap_nanosleep(const struct timespec *request, struct timespec *left)
{
	int error = do_sleep(CLOCK_MONOTONIC, false, request, left);

	return error ? fail(-error) : 0;
}

static bool is_ours(timer_t timer)
{
	return (uintptr_t)timer - TIMER_BASE < NR_TIMERS;
}

/* Only a timer that is asked for its time. */
int __wrap_timer_create(clockid_t clock, struct sigevent *event, timer_t *timer)
{
	int fd;

	if (!event || event->sigev_notify != SIGEV_NONE)
		return __real_timer_create(clock, event, timer);
	fd = __wrap_timerfd_create(clock, TFD_CLOEXEC);
	if (fd < 0)
		return -1;
	*timer = (timer_t)(TIMER_BASE + fd);
	return 0;
}

int __wrap_timer_settime(timer_t timer, int flags, const struct itimerspec *new,
			 struct itimerspec *old)
{
	if (!is_ours(timer))
		return __real_timer_settime(timer, flags, new, old);
	return __wrap_timerfd_settime((uintptr_t)timer - TIMER_BASE,
				      flags & TIMER_ABSTIME ? TFD_TIMER_ABSTIME : 0, new, old);
}

int __wrap_timer_gettime(timer_t timer, struct itimerspec *value)
{
	if (!is_ours(timer))
		return __real_timer_gettime(timer, value);
	return __wrap_timerfd_gettime((uintptr_t)timer - TIMER_BASE, value);
}

int __wrap_timer_delete(timer_t timer)
{
	return is_ours(timer) ? __wrap_close((uintptr_t)timer - TIMER_BASE) :
				__real_timer_delete(timer);
}
