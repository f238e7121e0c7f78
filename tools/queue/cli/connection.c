// SPDX-License-Identifier: GPL-2.0
/*
 * A connection to a daemon.
 *
 * All waits for the daemon are those of the terminal, so that top can be ended and stopped
 * meanwhile.
 */
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/address.h"
#include "common/exit.h"
#include "common/terminal.h"
#include "common/text.h"
#include "common/time.h"
#include "common/util.h"
#include "common/wait.h"
#include "queue/cli/connection.h"

/* A longer answer is not one of a daemon. */
#define ANSWER_MAX	(256UL * 1024 * 1024)

/**
 * struct connection - a connection to a daemon
 * @address: address of the daemon, for messages.
 * @fd: the socket.
 * @until_ns: when to give up waiting for answers; 0: after a time without any.
 * @in: stream from the daemon.
 * @out: stream to the daemon.
 * @error: errno of the first write that has failed; or 0.
 */
struct connection {
	const char *address;
	int fd;
	uint64_t until_ns;
	FILE *in;
	FILE *out;
	int error;
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
	/* For connect(). */
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	if (connect(fd, name, address.len))
		nobody_answers(text);
	return fd;
}

/* Only for an answer may it be right to wait without end. */
static uint64_t give_up_at_ns(const struct connection *connection, short events)
{
	uint64_t until_ns = connection->until_ns;

	if (!until_ns || (until_ns == TIME_NEVER_NS && events == POLLOUT))
		return wait_now_ns() + CONNECT_TIMEOUT_S * NSEC_PER_SEC;
	return until_ns;
}

/*
 * Wait until the socket can be read or written. Returns false with an errno if the time is over.
 * That is not EAGAIN, for which fgets() would return half a line.
 */
static bool wait_ready(struct connection *connection, short events)
{
	struct pollfd file = { .fd = connection->fd, .events = events };
	__u64 until_ns = give_up_at_ns(connection, events);

	if (!terminal_wait_for(&file, &until_ns))
		exit(EXIT_SUCCESS);
	if (connection->until_ns)
		connection->until_ns = until_ns;
	errno = ETIMEDOUT;
	return file.revents;
}

static bool is_temporary(int error)
{
	return error == EINTR || error == EAGAIN || error == EWOULDBLOCK;
}

static ssize_t read_socket(void *cookie, char *bytes, size_t size)
{
	struct connection *connection = cookie;
	ssize_t len;

	do {
		if (!wait_ready(connection, POLLIN))
			return -1;
		len = recv(connection->fd, bytes, size, MSG_DONTWAIT);
	} while (len < 0 && is_temporary(errno));
	return len;
}

/* No SIGPIPE if the daemon has gone: it would end the program without a message. */
static ssize_t write_socket(void *cookie, const char *bytes, size_t len)
{
	struct connection *connection = cookie;
	ssize_t sent, done = 0;

	while (!connection->error && (size_t)done < len) {
		sent = -1;
		if (wait_ready(connection, POLLOUT))
			sent = send(connection->fd, bytes + done, len - done,
				    MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent >= 0)
			done += sent;
		else if (!is_temporary(errno))
			connection->error = errno;
	}
	return connection->error ? 0 : done;
}

static int close_nothing(void *cookie)
{
	(void)cookie;
	return 0;
}

static const cookie_io_functions_t in_functions = {
	.read = read_socket,
	.close = close_nothing,
};

static const cookie_io_functions_t out_functions = {
	.write = write_socket,
	.close = close_nothing,
};

struct connection *connection_open(const char *address)
{
	struct connection *connection = calloc(1, sizeof(*connection));

	if (!connection)
		errx(EXIT_CANNOT, "out of memory");
	connection->address = address;
	connection->fd = open_socket(address);
	connection->in = fopencookie(connection, "r", in_functions);
	connection->out = fopencookie(connection, "w", out_functions);
	if (!connection->in || !connection->out)
		err(EXIT_CANNOT, "cannot connect to %s", address);
	return connection;
}

void connection_close(struct connection *connection)
{
	fclose(connection->out);
	fclose(connection->in);
	close(connection->fd);
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

void connection_send_body(struct connection *connection, const void *body, size_t len)
{
	fwrite(body, 1, len, connection->out);
	fputs("\r\n", connection->out);
}

void connection_wait_long(struct connection *connection)
{
	connection->until_ns = TIME_NEVER_NS;
}

void connection_begin_round(struct connection *connection)
{
	connection->until_ns = wait_now_ns() + CONNECT_TIMEOUT_S * NSEC_PER_SEC;
}

void connection_end_round(struct connection *connection)
{
	connection->until_ns = 0;
}

static bool is_closed(int error)
{
	return error == EPIPE || error == ECONNRESET;
}

static void __attribute__((noreturn)) send_failed(struct connection *connection)
{
	errno = connection->error;
	if (is_closed(errno))
		errx(EXIT_CANNOT, "%s has closed the connection", connection->address);
	err(EXIT_CANNOT, "cannot write to %s", connection->address);
}

/* The daemon has closed the connection, or has not answered in time. */
static void __attribute__((noreturn)) receive_failed(struct connection *connection)
{
	if (feof(connection->in))
		errx(EXIT_CANNOT, "%s has closed the connection", connection->address);
	if (errno == ETIMEDOUT)
		errx(EXIT_CANNOT, "%s has not answered %s %d s", connection->address,
		     connection->until_ns ? "everything within" : "for", CONNECT_TIMEOUT_S);
	err(EXIT_CANNOT, "cannot read from %s", connection->address);
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
	return text;
}

/* The length of the body that a line announces; false: there is none. */
static bool announces_body(const char *line, unsigned long *len)
{
	static const char *const formats[] = { "OK %lu%n", "FOUND %*u %lu%n" };
	size_t i;
	int end;

	for (i = 0; i < ARRAY_SIZE(formats); i++) {
		end = 0;
		if (sscanf(line, formats[i], len, &end) == 1 && end && !line[end])
			return true;
	}
	return false;
}

/* A daemon that has closed the connection may have said why: that is read first. */
static void receive_line(struct connection *connection, struct answer *answer)
{
	bool failed = fflush(connection->out) || connection->error;

	if (failed && !is_closed(connection->error))
		send_failed(connection);
	if (fgets(answer->line, sizeof(answer->line), connection->in))
		return;
	if (failed)
		send_failed(connection);
	receive_failed(connection);
}

void connection_answer(struct connection *connection, struct answer *answer)
{
	receive_line(connection, answer);
	answer->line[strcspn(answer->line, "\r\n")] = '\0';
	text_make_printable(answer->line);
	answer->body = NULL;
	answer->len = 0;
	if (!announces_body(answer->line, &answer->len))
		return;
	if (answer->len > ANSWER_MAX)
		connection_refused(connection, answer->line);
	answer->body = receive_bytes(connection, answer->len);
}

void connection_refused(const struct connection *connection, const char *line)
{
	static const struct {
		const char *line;
		const char *words;
	} known[] = {
		{ "OUT_OF_MEMORY", "has no room: its disk is full, or a limit is reached" },
		{ "DRAINING", "takes no new jobs: it is draining" },
		{ "JOB_TOO_BIG", "takes no body of this size: see its --max-job-size" },
		{ "UNKNOWN_COMMAND", "does not know this command: it is an older one" },
		{ "INTERNAL_ERROR", "has an error: see its log" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(line, known[i].line))
			errx(EXIT_CANNOT, "%s %s", connection->address, known[i].words);
	errx(EXIT_CANNOT, "%s has answered \"%s\"", connection->address, line);
}

char *connection_receive(struct connection *connection)
{
	struct answer answer;

	connection_answer(connection, &answer);
	if (!strcmp(answer.line, "NOT_FOUND"))
		return NULL;
	if (!answer.body)
		connection_refused(connection, answer.line);
	text_make_printable(answer.body);
	return answer.body;
}
