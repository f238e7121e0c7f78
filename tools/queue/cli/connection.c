// SPDX-License-Identifier: GPL-2.0
/* A connection to a daemon. */
#include <err.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/address.h"
#include "common/exit.h"
#include "queue/cli/connection.h"

/* A longer answer is not one of a daemon. */
#define ANSWER_MAX	(256UL * 1024 * 1024)

/**
 * struct connection - a connection to a daemon
 * @address: address of the daemon, for messages.
 * @in: stream from the daemon.
 * @out: stream to the daemon.
 */
struct connection {
	const char *address;
	FILE *in;
	FILE *out;
};

static void __attribute__((noreturn)) nobody_answers(const char *text)
{
	warn("cannot connect to %s", text);
	fputs("Is the daemon running? Start it with \"systemctl start twheelq\" or\n"
	      "\"twheelq serve --dir DIR\"; --connect ADDRESS says where it listens.\n", stderr);
	exit(EXIT_CANNOT);
}

static int open_socket(const char *text)
{
	const struct timeval timeout = { .tv_sec = CONNECT_TIMEOUT_S };
	struct address address;
	const char *wrong = address_parse(&address, text, ADDRESS_DEFAULT_PORT);
	const struct sockaddr *name = (const struct sockaddr *)&address.socket;
	int fd;

	if (wrong)
		errx(EXIT_USAGE, "the address \"%s\" %s", text, wrong);
	fd = socket(name->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		err(EXIT_CANNOT, "cannot make a socket");
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	if (connect(fd, name, address.len))
		nobody_answers(text);
	return fd;
}

struct connection *connection_open(const char *address)
{
	struct connection *connection = calloc(1, sizeof(*connection));
	int fd = open_socket(address);

	if (!connection)
		errx(EXIT_CANNOT, "out of memory");
	connection->address = address;
	connection->in = fdopen(fd, "r");
	connection->out = fdopen(dup(fd), "w");
	if (!connection->in || !connection->out)
		err(EXIT_CANNOT, "cannot connect to %s", address);
	return connection;
}

void connection_close(struct connection *connection)
{
	fclose(connection->in);
	fclose(connection->out);
	free(connection);
}

void connection_send(struct connection *connection, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(connection->out, format, args);
	va_end(args);
	fputs("\r\n", connection->out);
}

/* The daemon has closed the connection, or has not answered in time. */
static void __attribute__((noreturn)) receive_failed(struct connection *connection)
{
	if (feof(connection->in))
		errx(EXIT_CANNOT, "%s has closed the connection", connection->address);
	if (errno == EAGAIN || errno == EWOULDBLOCK)
		errx(EXIT_CANNOT, "%s has not answered for %d s", connection->address,
		     CONNECT_TIMEOUT_S);
	err(EXIT_CANNOT, "cannot read from %s", connection->address);
}

/* A terminal takes some bytes for commands, which no daemon writes. */
static void make_printable(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' && *text != '\n')
			*text = '?';
}

/* Read @len bytes and the CR LF after them. */
static char *receive_bytes(struct connection *connection, size_t len)
{
	char *text = malloc(len + 2);

	if (!text)
		errx(EXIT_CANNOT, "out of memory");
	if (fread(text, 1, len + 2, connection->in) != len + 2)
		receive_failed(connection);
	text[len] = '\0';
	make_printable(text);
	return text;
}

char *connection_receive(struct connection *connection)
{
	unsigned long len;
	char line[256];
	int end = 0;

	if (fflush(connection->out))
		err(EXIT_CANNOT, "cannot write to %s", connection->address);
	if (!fgets(line, sizeof(line), connection->in))
		receive_failed(connection);
	line[strcspn(line, "\r\n")] = '\0';
	make_printable(line);
	if (!strcmp(line, "NOT_FOUND"))
		return NULL;
	if (sscanf(line, "OK %lu%n", &len, &end) != 1 || line[end] || len > ANSWER_MAX)
		errx(EXIT_CANNOT, "%s has answered \"%s\"", connection->address, line);
	return receive_bytes(connection, len);
}
