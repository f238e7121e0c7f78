// SPDX-License-Identifier: GPL-2.0
/* The wire: a connection of the page to its own daemon. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "metrics/errands.h"
#include "queue/web/wire.h"

void wire_init(struct wire *wire)
{
	wire->fd = -1;
	wire->inner = -1;
	wire->len = 0;
}

static void disconnect(struct wire *wire)
{
	if (wire->fd >= 0)
		close(wire->fd);
	wire->fd = -1;
	wire->len = 0;
}

void wire_destroy(struct wire *wire)
{
	disconnect(wire);
	if (wire->inner >= 0)
		close(wire->inner);
}

/**
 * struct handing - the errand that hands a socket to the loop
 * @wire: the wire.
 * @fd: the socket.
 */
struct handing {
	struct wire *wire;
	int fd;
};

static void hand_over(void *context)
{
	struct handing *handing = context;

	if (handing->wire->inner >= 0)
		close(handing->wire->inner);
	handing->wire->inner = handing->fd;
}

static bool connect_wire(struct wire *wire)
{
	struct handing handing = { .wire = wire };
	int ends[2];

	if (wire->fd >= 0)
		return true;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return false;
	handing.fd = ends[1];
	if (fcntl(ends[1], F_SETFL, O_NONBLOCK) ||
	    errands_do(wire->errands, hand_over, &handing)) {
		close(ends[0]);
		close(ends[1]);
		return false;
	}
	wire->fd = ends[0];
	return true;
}

static bool send_all(int fd, const char *bytes, size_t len)
{
	ssize_t sent;

	for (; len; bytes += sent, len -= sent) {
		sent = send(fd, bytes, len, MSG_NOSIGNAL);
		if (sent < 0 && errno != EINTR)
			return false;
		if (sent < 0)
			sent = 0;
	}
	return true;
}

bool wire_vsend(struct wire *wire, const char *format, va_list args)
{
	char line[WIRE_LINE_MAX];
	int len = vsnprintf(line, sizeof(line) - 2, format, args);

	if (len < 0 || len >= (int)sizeof(line) - 2 || !connect_wire(wire))
		return false;
	memcpy(line + len, "\r\n", 2);
	if (send_all(wire->fd, line, len + 2))
		return true;
	disconnect(wire);
	return false;
}

bool wire_send(struct wire *wire, const char *format, ...)
{
	va_list args;
	bool sent;

	va_start(args, format);
	sent = wire_vsend(wire, format, args);
	va_end(args);
	return sent;
}

/* Read some bytes of replies; false: the daemon has closed the connection. */
static bool read_some(struct wire *wire)
{
	ssize_t got;

	do {
		got = recv(wire->fd, wire->text + wire->len, sizeof(wire->text) - wire->len, 0);
	} while (got < 0 && errno == EINTR);
	if (got <= 0)
		return false;
	wire->len += got;
	return true;
}

bool wire_receive(struct wire *wire, char reply[WIRE_LINE_MAX])
{
	size_t line_len;
	char *end;

	while (!(end = memmem(wire->text, wire->len, "\r\n", 2)))
		/* A line that does not fit is no reply. */
		if (wire->len == sizeof(wire->text) || !read_some(wire)) {
			disconnect(wire);
			return false;
		}
	line_len = end - wire->text;
	memcpy(reply, wire->text, line_len);
	reply[line_len] = '\0';
	wire->len -= line_len + 2;
	memmove(wire->text, end + 2, wire->len);
	return true;
}
