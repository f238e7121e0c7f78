/* SPDX-License-Identifier: GPL-2.0 */
/* A file that the loop polls. Its epoll entry points to this. */
#ifndef QUEUE_SERVER_SOURCE_H
#define QUEUE_SERVER_SOURCE_H

#include <stdint.h>

/**
 * struct source - a polled file, embedded in the structure of its owner
 * @fd: the file.
 * @ready: called with its events.
 */
struct source {
	int fd;
	void (*ready)(struct source *source, uint32_t events);
};

#endif /* QUEUE_SERVER_SOURCE_H */
