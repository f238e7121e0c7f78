/* SPDX-License-Identifier: GPL-2.0 */
/* A file that the loop of the server polls: what its epoll entry points to. */
#ifndef TWHEELQ_SOURCE_H
#define TWHEELQ_SOURCE_H

#include <stddef.h>
#include <stdint.h>

/**
 * struct source - a polled file, embedded in what it is of
 * @fd: the file.
 * @ready: called with the events of epoll that it has.
 */
struct source {
	int fd;
	void (*ready)(struct source *source, uint32_t events);
};

#define container_of(pointer, type, member) \
	((type *)((char *)(pointer) - offsetof(type, member)))

#endif /* TWHEELQ_SOURCE_H */
