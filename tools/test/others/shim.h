/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The functions that the shim has, and those of the C library that it calls. ld --wrap names both.
 */
#ifndef OTHERS_SHIM_H
#define OTHERS_SHIM_H

#include <signal.h>
#include <sys/types.h>
#include <time.h>

ssize_t __real_read(int fd, void *buffer, size_t size);
int __real_close(int fd);
long __real_syscall(long nr, ...);
int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __real_timer_create(clockid_t clock, struct sigevent *event, timer_t *timer);
int __real_timer_settime(timer_t timer, int flags, const struct itimerspec *new,
			 struct itimerspec *old);
int __real_timer_gettime(timer_t timer, struct itimerspec *value);
int __real_timer_delete(timer_t timer);

int __wrap_timerfd_create(int clock, int flags);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *new,
			   struct itimerspec *old);
int __wrap_timerfd_gettime(int fd, struct itimerspec *value);
ssize_t __wrap_read(int fd, void *buffer, size_t size);
int __wrap_close(int fd);
long __wrap_syscall(long nr, ...);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *request,
			   struct timespec *left);
int __wrap_nanosleep(const struct timespec *request, struct timespec *left);
int __wrap_timer_create(clockid_t clock, struct sigevent *event, timer_t *timer);
int __wrap_timer_settime(timer_t timer, int flags, const struct itimerspec *new,
			 struct itimerspec *old);
int __wrap_timer_gettime(timer_t timer, struct itimerspec *value);
int __wrap_timer_delete(timer_t timer);

#endif /* OTHERS_SHIM_H */
