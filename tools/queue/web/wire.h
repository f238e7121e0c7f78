/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The wire: a connection of the page to its own daemon. Actions are commands of the protocol, which
 * the daemon runs as those of any client: so each does what twheelq(7) says, is fair to others, and
 * is answered when the disk has it.
 */
#ifndef QUEUE_WEB_WIRE_H
#define QUEUE_WEB_WIRE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct errands;

#define WIRE_LINE_MAX	700

/**
 * struct wire - the wire
 * @errands: to pass @inner to the loop.
 * @fd: our end; -1: it is not connected.
 * @inner: the loop's: the end that becomes a client; -1: none waits.
 * @text: bytes that were read and are not used.
 * @len: their number.
 */
struct wire {
	struct errands *errands;
	int fd;
	int inner;
	char text[WIRE_LINE_MAX];
	size_t len;
};

void wire_init(struct wire *wire);
void wire_destroy(struct wire *wire);

/* Send a line, given without its \r\n; it connects first, if need be. False: the daemon ends. */
bool wire_send(struct wire *wire, const char *format, ...) __attribute__((format(printf, 2, 3)));

bool wire_vsend(struct wire *wire, const char *format, va_list args);

/* Receive the reply to the oldest command that has none, a line. False: the daemon ends. */
bool wire_receive(struct wire *wire, char reply[WIRE_LINE_MAX]);

#endif /* QUEUE_WEB_WIRE_H */
