// SPDX-License-Identifier: GPL-2.0
/* Listening sockets. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "queue/server/listen.h"

/* The first of the files that systemd passes. */
#define LISTEN_FDS_START	3

static struct listener *add_listener(struct listeners *listeners, int fd)
{
	struct listener *listener = calloc(1, sizeof(*listener));

	if (!listener)
		return NULL;
	listener->source.fd = fd;
	TAILQ_INSERT_TAIL(listeners, listener, entry);
	return listener;
}

/* Its kind, and its actual address: port 0 becomes the port that was chosen. */
static void describe(struct listener *listener)
{
	struct address address = { .len = sizeof(address.socket) };
	struct sockaddr *socket = (struct sockaddr *)&address.socket;

	if (getsockname(listener->source.fd, socket, &address.len))
		return;
	listener->is_tcp = socket->sa_family != AF_UNIX;
	listener->is_local = address_is_local(&address);
	address_format(listener->name, &address);
}

static const char *path_of(const struct address *address)
{
	return ((const struct sockaddr_un *)&address->socket)->sun_path;
}

/* Does no process listen on this unix socket? A process that was killed leaves its file. */
static bool is_stale(const struct address *address)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct stat status;
	bool refused;

	if (fd < 0)
		return false;
	refused = connect(fd, (const struct sockaddr *)&address->socket, address->len) &&
		errno == ECONNREFUSED;
	close(fd);
	return refused && !lstat(path_of(address), &status) && S_ISSOCK(status.st_mode);
}

static int bind_unix(int fd, const struct address *address, mode_t mode)
{
	const struct sockaddr *socket = (const struct sockaddr *)&address->socket;
	/* The file must never have another mode. */
	mode_t mask = umask(~mode & 0777);
	int error = bind(fd, socket, address->len) ? errno : 0;

	if (error == EADDRINUSE && is_stale(address)) {
		unlink(path_of(address));
		error = bind(fd, socket, address->len) ? errno : 0;
	}
	umask(mask);
	errno = error;
	return error ? -1 : 0;
}

static int bind_tcp(int fd, const struct address *address)
{
	const int yes = 1;

	/* Allow a port whose old connections are in TIME_WAIT. */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)))
		return -1;
	return bind(fd, (const struct sockaddr *)&address->socket, address->len);
}

static void remember_file(struct listener *listener, const struct address *address)
{
	struct stat status;

	if (stat(path_of(address), &status))
		return;
	listener->made = true;
	listener->dev = status.st_dev;
	listener->ino = status.st_ino;
}

const char *listen_open(struct listeners *listeners, const char *text, mode_t mode)
{
	struct address address;
	const char *wrong = address_parse(&address, text, ADDRESS_DEFAULT_PORT);
	struct listener *listener;
	bool is_unix;
	int fd;

	if (wrong)
		return wrong;
	is_unix = address.socket.ss_family == AF_UNIX;
	fd = socket(address.socket.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return strerror(errno);
	listener = add_listener(listeners, fd);
	if (!listener) {
		close(fd);
		return strerror(ENOMEM);
	}
	if (is_unix ? bind_unix(fd, &address, mode) : bind_tcp(fd, &address))
		return strerror(errno);
	if (is_unix)
		remember_file(listener, &address);
	if (listen(fd, SOMAXCONN))
		return strerror(errno);
	describe(listener);
	return NULL;
}

static const char *inherit_one(struct listeners *listeners, int fd)
{
	int accepts = 0, type = 0;
	socklen_t len = sizeof(int);
	struct listener *listener;

	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &accepts, &len) || !accepts ||
	    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) || type != SOCK_STREAM)
		return "is not a listening stream socket";
	if (fcntl(fd, F_SETFD, FD_CLOEXEC) || fcntl(fd, F_SETFL, O_NONBLOCK))
		return strerror(errno);
	listener = add_listener(listeners, fd);
	if (!listener)
		return strerror(ENOMEM);
	describe(listener);
	return NULL;
}

/*
 * The number of sockets passed to this process. LISTEN_PID tells it apart from a child, which
 * inherits the variables too.
 */
static long nr_inherited(void)
{
	const char *pid = getenv("LISTEN_PID");
	const char *nr = getenv("LISTEN_FDS");

	if (!pid || !nr || strtol(pid, NULL, 10) != getpid())
		return 0;
	return strtol(nr, NULL, 10);
}

const char *listen_inherit(struct listeners *listeners)
{
	long nr = nr_inherited();
	const char *wrong = NULL;
	int fd;

	for (fd = LISTEN_FDS_START; !wrong && fd < LISTEN_FDS_START + nr; fd++)
		wrong = inherit_one(listeners, fd);
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	return wrong;
}

static void remove_file(const struct listener *listener)
{
	const char *path = listener->name + strlen("unix:");
	struct stat status;

	if (listener->made && !lstat(path, &status) && status.st_dev == listener->dev &&
	    status.st_ino == listener->ino)
		unlink(path);
}

void listen_close(struct listeners *listeners)
{
	struct listener *listener, *next;

	TAILQ_FOREACH_SAFE(listener, listeners, entry, next) {
		TAILQ_REMOVE(listeners, listener, entry);
		remove_file(listener);
		close(listener->source.fd);
		free(listener);
	}
}
