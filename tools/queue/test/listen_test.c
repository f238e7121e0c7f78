// SPDX-License-Identifier: GPL-2.0
/* Listening sockets: addresses, files of unix sockets, and sockets that systemd passes. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "test/device/harness.h"
#include "queue/server/listen.h"
#include "common/util.h"

static struct listeners listeners = TAILQ_HEAD_INITIALIZER(listeners);
static char dir[64];
static char path[sizeof(dir) + 16];
static char address[sizeof(path) + 8];

static void begin(void)
{
	snprintf(dir, sizeof(dir), "/tmp/listen_test.XXXXXX");
	ASSERT(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/socket", dir);
	snprintf(address, sizeof(address), "unix:%s", path);
}

static void end(void)
{
	listen_close(&listeners);
	ASSERT_EQ(access(path, F_OK), -1);
	ASSERT_EQ(rmdir(dir), 0);
}

static void must_open(const char *text)
{
	const char *wrong = listen_open(&listeners, text, 0660);

	if (wrong)
		test_fail(__FILE__, __LINE__, "%s: %s", text, wrong);
}

static void must_fail(const char *text, const char *why)
{
	const char *wrong = listen_open(&listeners, text, 0660);

	if (!wrong || strcmp(wrong, why))
		test_fail(__FILE__, __LINE__, "%s: seen \"%s\", expected \"%s\"", text,
			  wrong ? wrong : "success", why);
}

static int connect_to(const char *text)
{
	struct address to;
	int fd;

	ASSERT(!address_parse(&to, text, ADDRESS_DEFAULT_PORT));
	fd = socket(to.socket.ss_family, SOCK_STREAM, 0);
	ASSERT_GE(fd, 0);
	if (!connect(fd, (struct sockaddr *)&to.socket, to.len))
		return fd;
	close(fd);
	return -1;
}

/* A unix socket of another process; that has ended if it does not listen. */
static int bind_path(void)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(un.sun_path, sizeof(un.sun_path), "%s", path);
	ASSERT_EQ(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	return fd;
}

TEST(port_0_becomes_a_free_port_which_is_named)
{
	struct listener *listener;
	int fd;

	must_open("127.0.0.1:0");
	listener = TAILQ_FIRST(&listeners);
	ASSERT(listener->is_tcp);
	ASSERT(!strncmp(listener->name, "127.0.0.1:", 10));
	ASSERT_GT(atoi(listener->name + 10), 0);
	fd = connect_to(listener->name);
	ASSERT_GE(fd, 0);
	close(fd);
	must_fail(listener->name, "Address already in use");
	listen_close(&listeners);
}

TEST(the_default_is_loopback_alone)
{
	struct address parsed;

	ASSERT(!address_parse(&parsed, ADDRESS_DEFAULT, "1"));
	ASSERT_EQ(((struct sockaddr_in *)&parsed.socket)->sin_addr.s_addr,
		  htonl(INADDR_LOOPBACK));
	ASSERT_EQ(((struct sockaddr_in *)&parsed.socket)->sin_port, htons(11300));
}

TEST(ipv6_is_in_brackets)
{
	int fd = socket(AF_INET6, SOCK_STREAM, 0);
	struct sockaddr_in6 any = {
		.sin6_family = AF_INET6,
		.sin6_addr = IN6ADDR_LOOPBACK_INIT,
	};

	if (fd < 0 || bind(fd, (struct sockaddr *)&any, sizeof(any)))
		test_skip("there is no IPv6");
	close(fd);
	must_open("[::1]:0");
	ASSERT(!strncmp(TAILQ_FIRST(&listeners)->name, "[::1]:", 6));
	fd = connect_to(TAILQ_FIRST(&listeners)->name);
	ASSERT_GE(fd, 0);
	close(fd);
	listen_close(&listeners);
}

TEST(bad_addresses_are_refused_with_a_reason)
{
	static const char *const texts[] = {
		"127.0.0.1:65536", "127.0.0.1:x", "unix:", "[::1", "no.such.host.invalid:1",
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(texts); i++) {
		const char *wrong = listen_open(&listeners, texts[i], 0660);

		test_about("%s", texts[i]);
		ASSERT(wrong && *wrong);
		ASSERT(TAILQ_EMPTY(&listeners));
	}
}

TEST(a_unix_socket_gets_its_mode_and_is_removed_at_the_end)
{
	struct stat status;
	int fd;

	begin();
	umask(0077);
	must_open(address);
	ASSERT_EQ(stat(path, &status), 0);
	ASSERT_EQ(status.st_mode & 0777, 0660);
	ASSERT_EQ(umask(0), 0077);
	ASSERT(!TAILQ_FIRST(&listeners)->is_tcp);
	ASSERT(!strcmp(TAILQ_FIRST(&listeners)->name, address));
	fd = connect_to(address);
	ASSERT_GE(fd, 0);
	close(fd);
	end();
}

TEST(a_unix_socket_that_no_process_listens_on_is_replaced)
{
	int fd;

	begin();
	close(bind_path());
	ASSERT_EQ(connect_to(address), -1);
	must_open(address);
	fd = connect_to(address);
	ASSERT_GE(fd, 0);
	close(fd);
	end();
}

TEST(a_unix_socket_that_a_process_listens_on_is_left_alone)
{
	int fd, other;

	begin();
	fd = bind_path();
	ASSERT_EQ(listen(fd, 1), 0);
	must_fail(address, "Address already in use");
	listen_close(&listeners);
	other = connect_to(address);
	ASSERT_GE(other, 0);
	close(other);
	close(fd);
	unlink(path);
	end();
}

TEST(a_file_that_is_not_a_socket_is_left_alone)
{
	int fd;

	begin();
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	ASSERT_GE(fd, 0);
	close(fd);
	must_fail(address, "Address already in use");
	listen_close(&listeners);
	ASSERT_EQ(access(path, F_OK), 0);
	unlink(path);
	end();
}

TEST(the_file_of_another_socket_is_not_removed_at_the_end)
{
	int fd;

	begin();
	must_open(address);
	/* Another process takes over the path. */
	ASSERT_EQ(unlink(path), 0);
	fd = bind_path();
	listen_close(&listeners);
	ASSERT_EQ(access(path, F_OK), 0);
	close(fd);
	unlink(path);
	end();
}

TEST(a_path_that_cannot_be_made_is_refused)
{
	must_fail("unix:/nonexistent/socket", "No such file or directory");
	listen_close(&listeners);
}

/* Pass files from number 3 on, as systemd does. */
static void pass(const char *nr, pid_t pid)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", pid);
	setenv("LISTEN_PID", text, 1);
	setenv("LISTEN_FDS", nr, 1);
}

static void listen_at_3(void)
{
	struct sockaddr_in any = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	ASSERT_EQ(bind(fd, (struct sockaddr *)&any, sizeof(any)), 0);
	ASSERT_EQ(listen(fd, 1), 0);
	ASSERT_EQ(dup2(fd, 3), 3);
	if (fd != 3)
		close(fd);
}

TEST(a_socket_that_systemd_passes_is_taken)
{
	struct listener *listener;

	listen_at_3();
	pass("1", getpid());
	ASSERT(!listen_inherit(&listeners));
	listener = TAILQ_FIRST(&listeners);
	ASSERT(listener && !TAILQ_NEXT(listener, entry));
	ASSERT_EQ(listener->source.fd, 3);
	ASSERT(listener->is_tcp);
	ASSERT(fcntl(3, F_GETFL) & O_NONBLOCK);
	ASSERT(fcntl(3, F_GETFD) & FD_CLOEXEC);
	/* A child must not take them again. */
	ASSERT(!getenv("LISTEN_FDS") && !getenv("LISTEN_PID"));
	listen_close(&listeners);
}

TEST(sockets_that_are_for_another_process_are_not_taken)
{
	listen_at_3();
	pass("1", getppid());
	ASSERT(!listen_inherit(&listeners));
	ASSERT(TAILQ_EMPTY(&listeners));
}

TEST(a_passed_file_that_does_not_listen_is_refused)
{
	int fd = open("/dev/null", O_RDONLY);

	ASSERT_EQ(dup2(fd, 3), 3);
	pass("1", getpid());
	ASSERT(listen_inherit(&listeners));
	ASSERT(TAILQ_EMPTY(&listeners));
	close(3);
	pass("1", getpid());
	ASSERT(listen_inherit(&listeners));
	ASSERT(TAILQ_EMPTY(&listeners));
}
