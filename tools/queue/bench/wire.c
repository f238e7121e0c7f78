// SPDX-License-Identifier: GPL-2.0
/*
 * Connections of a load: sockets, buffers, replies.
 */
#include <err.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "queue/bench/wire.h"

#define READ_ROOM	65536
/* The longest name of a tube. */
#define TUBE_MOST	200

/* --- buffers ------------------------------------------------------------------------ */

/* Room for @len bytes behind those in the buffer. */
static char *buffer_room(struct buffer *buffer, size_t len)
{
	if (buffer->begin == buffer->end) {
		buffer->begin = 0;
		buffer->end = 0;
	}
	if (buffer->room - buffer->end < len && buffer->begin) {
		memmove(buffer->bytes, buffer->bytes + buffer->begin,
			buffer->end - buffer->begin);
		buffer->end -= buffer->begin;
		buffer->begin = 0;
	}
	if (buffer->room - buffer->end < len) {
		buffer->room = 2 * buffer->room + len;
		buffer->bytes = realloc(buffer->bytes, buffer->room);
		if (!buffer->bytes)
			err(2, "memory");
	}
	return buffer->bytes + buffer->end;
}

char *client_room(struct client *client, size_t len)
{
	return buffer_room(&client->out, len);
}

void client_sent(struct client *client, size_t len)
{
	client->out.end += len;
	client->outstanding++;
}

/* --- sockets ------------------------------------------------------------------------ */

static int dial_unix(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (strlen(path) >= sizeof(address.sun_path))
		errx(2, "%s: too long for a socket", path);
	strcpy(address.sun_path, path);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address))) {
		close(fd);
		return -1;
	}
	return fd;
}

static int dial_tcp(const char *to)
{
	const char *colon = strrchr(to, ':');
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons(atoi(colon ? colon + 1 : to)),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address))) {
		close(fd);
		return -1;
	}
	if (fd >= 0)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

int dial(const char *to)
{
	return strncmp(to, "unix:", 5) ? dial_tcp(to) : dial_unix(to + 5);
}

static void ask_for(struct client *client, int op, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = client };

	if (epoll_ctl(client->load->epoll_fd, op, client->fd, &event))
		err(2, "epoll_ctl");
}

/* Its three answers are no role's. */
static void choose_tube(struct client *client, const char *tube)
{
	char *to = client_room(client, 3 * (TUBE_MOST + 10));
	int len = sprintf(to, "use %s\r\nwatch %s\r\nignore default\r\n", tube, tube);

	client_sent(client, len);
	client->outstanding += 2;
}

void client_connect(struct client *client, struct load *load, const struct role *role)
{
	*client = (struct client){ .load = load, .role = role, .fd = dial(load->to) };
	if (client->fd < 0)
		err(2, "%s", load->to);
	ask_for(client, EPOLL_CTL_ADD, EPOLLIN);
	if (load->tube)
		choose_tube(client, load->tube);
}

/* Send bytes of the buffer, as many as the socket takes. */
static void push(struct client *client)
{
	struct buffer *out = &client->out;
	ssize_t nr;
	bool waits;

	while (out->begin < out->end) {
		nr = send(client->fd, out->bytes + out->begin, out->end - out->begin,
			  MSG_DONTWAIT | MSG_NOSIGNAL);
		if (nr < 0 && errno != EAGAIN)
			err(2, "%s", client->load->to);
		if (nr < 0)
			break;
		out->begin += nr;
	}
	waits = out->begin < out->end;
	if (waits != client->waits_for_room) {
		client->waits_for_room = waits;
		ask_for(client, EPOLL_CTL_MOD,
			waits ? EPOLLIN | EPOLLOUT : EPOLLIN);
	}
}

/* --- replies ------------------------------------------------------------------------ */

static const char * const words[] = {
	[REPLY_INSERTED] = "INSERTED",
	[REPLY_RESERVED] = "RESERVED",
	[REPLY_DELETED] = "DELETED",
	[REPLY_TIMED_OUT] = "TIMED_OUT",
	[REPLY_USING] = "USING",
	[REPLY_WATCHING] = "WATCHING",
};

/* Parse the first line of a reply; an unexpected one ends the program. */
static void parse_line(const char *line, size_t len, struct reply *reply)
{
	unsigned int kind;
	size_t word;
	char *rest;

	for (kind = 0; kind < NR_REPLIES; kind++) {
		word = strlen(words[kind]);
		if (len < word || memcmp(line, words[kind], word))
			continue;
		reply->kind = kind;
		reply->id = strtoull(line + word, &rest, 10);
		reply->len = kind == REPLY_RESERVED ? strtoull(rest, NULL, 10) : 0;
		return;
	}
	errx(2, "the server said: %.*s", (int)len, line);
}

/* Take the next complete reply; false: there is none. */
static bool next_reply(struct buffer *in, struct reply *reply)
{
	const char *line = in->bytes + in->begin;
	const char *end = memchr(line, '\n', in->end - in->begin);
	size_t len;

	if (!end)
		return false;
	parse_line(line, end - line, reply);
	reply->body = end + 1;
	len = end + 1 - line;
	if (reply->kind == REPLY_RESERVED)
		len += reply->len + 2;
	if (len > in->end - in->begin)
		return false;
	in->begin += len;
	return true;
}

static void pull(struct client *client)
{
	char *room = buffer_room(&client->in, READ_ROOM);
	ssize_t nr = recv(client->fd, room, READ_ROOM, MSG_DONTWAIT);

	if (!nr)
		errx(2, "%s: the server has closed the connection", client->load->to);
	if (nr < 0 && errno != EAGAIN)
		err(2, "%s", client->load->to);
	if (nr > 0)
		client->in.end += nr;
}

void client_turn(struct client *client)
{
	struct reply reply;

	if (client->outstanding)
		pull(client);
	while (next_reply(&client->in, &reply)) {
		client->outstanding--;
		client->role->reply(client, &reply);
	}
	client->role->fill(client);
	push(client);
}
