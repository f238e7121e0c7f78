// SPDX-License-Identifier: GPL-2.0
/* /metrics over HTTP: no client of it can delay the loop that serves it. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "common/address.h"
#include "common/time.h"
#include "metrics/http.h"
#include "test/device/harness.h"

/* The page: a line, and so many more. */
#define LINE	"a_metric %u\n"

static struct metrics *metrics;
static unsigned int number;
static unsigned int nr_lines = 1;
static unsigned int pages_made;
static bool no_page;

static int write_page(FILE *out, void *context)
{
	unsigned int i;

	(void)context;
	pages_made++;
	if (no_page)
		return -ENOMEM;
	for (i = 0; i < nr_lines; i++)
		fprintf(out, LINE, number + i);
	return 0;
}

/* The page as it has to arrive. */
static char *expected_page(void)
{
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	ASSERT_EQ(write_page(out, NULL), 0);
	fclose(out);
	return text;
}

/* A page that does not fit into the buffers of a socket at once. */
static void make_page_large(void)
{
	nr_lines = 100000;
}

static const char *wrong;

static const char *say_wrong(void *context)
{
	(void)context;
	return wrong;
}

static const struct metrics_source source = { .write = write_page, .health = say_wrong };

static void open_metrics(void)
{
	ASSERT_EQ(metrics_open(&metrics, "127.0.0.1:0", &source), 0);
}

static int connect_client(void)
{
	struct address address;
	int fd;

	ASSERT(!address_parse(&address, metrics_address(metrics), "0"));
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ASSERT_EQ(connect(fd, (struct sockaddr *)&address.socket, address.len), 0);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	return fd;
}

static void send_text(int fd, const char *text)
{
	ASSERT_EQ(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* A turn of the loop: it waits until the server or the test can go on. */
static void turn_until(int client)
{
	struct pollfd files[] = {
		{ .fd = metrics_fd(metrics), .events = POLLIN },
		{ .fd = client, .events = POLLIN },
	};

	poll(files, 2, metrics_timeout_ms(metrics));
	metrics_run(metrics);
}

/* A turn that waits a moment at most. */
static void turn(void)
{
	struct pollfd file = { .fd = metrics_fd(metrics), .events = POLLIN };

	poll(&file, 1, 10);
	metrics_run(metrics);
}

/* All bytes until the connection ends. */
static char *receive(int fd)
{
	static char text[4000000];
	size_t len = 0;
	ssize_t got;

	while ((got = recv(fd, text + len, sizeof(text) - 1 - len, 0)) != 0) {
		if (got > 0)
			len += got;
		else if (errno == EAGAIN)
			turn_until(fd);
		else
			break;
	}
	text[len] = '\0';
	close(fd);
	return text;
}

static char *ask(const char *request)
{
	int fd = connect_client();

	send_text(fd, request);
	return receive(fd);
}

#define GET	"GET /metrics HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"

TEST(get_metrics_is_answered_with_the_page)
{
	char *text, *body;

	number = 77;
	open_metrics();
	text = ask(GET);
	ASSERT(!strncmp(text, "HTTP/1.1 200 ", 13));
	ASSERT(strcasestr(text, "\r\nContent-Type: " METRICS_PAGE_TYPE "\r\n"));
	body = strstr(text, "\r\n\r\n") + 4;
	ASSERT_EQ(strcmp(body, expected_page()), 0);
	metrics_close(metrics);
}

TEST(a_large_page_is_complete)
{
	char *body;

	make_page_large();
	open_metrics();
	body = strstr(ask(GET), "\r\n\r\n") + 4;
	ASSERT_GT(strlen(body), 200000);
	ASSERT_EQ(strcmp(body, expected_page()), 0);
	metrics_close(metrics);
}

TEST(a_page_that_cannot_be_written_is_unavailable)
{
	no_page = true;
	open_metrics();
	ASSERT(strstr(ask(GET), " 503 "));
	metrics_close(metrics);
}

TEST(other_paths_and_methods_are_refused)
{
	open_metrics();
	ASSERT(!strncmp(ask("GET / HTTP/1.0\r\n\r\n"), "HTTP/1.0 404 ", 13) ||
	       !strncmp(ask("GET / HTTP/1.0\r\n\r\n"), "HTTP/1.1 404 ", 13));
	ASSERT(strstr(ask("GET /metrics/../x HTTP/1.0\r\n\r\n"), " 404 "));
	ASSERT(strstr(ask("POST /metrics HTTP/1.0\r\nContent-Length: 9\r\n\r\n"), " 405 "));
	ASSERT(strstr(ask("DELETE /metrics HTTP/1.0\r\n\r\n"), " 405 "));
	ASSERT_EQ(pages_made, 0);
	metrics_close(metrics);
}

TEST(health_is_ok_or_says_what_is_wrong)
{
	char *text;

	open_metrics();
	text = ask("GET /healthz HTTP/1.0\r\n\r\n");
	ASSERT(strstr(text, " 200 ") && strstr(text, "\r\n\r\nok\n"));
	wrong = "no room\n";
	text = ask("GET /healthz HTTP/1.0\r\n\r\n");
	ASSERT(strstr(text, " 503 ") && strstr(text, "\r\n\r\nno room\n"));
	ASSERT_EQ(pages_made, 0);
	metrics_close(metrics);
}

TEST(head_has_no_body)
{
	char *text;

	open_metrics();
	text = ask("HEAD /metrics HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
	ASSERT(!strncmp(text, "HTTP/1.1 200 ", 13));
	ASSERT_EQ(strlen(strstr(text, "\r\n\r\n")), 4);
	metrics_close(metrics);
}

TEST(bytes_that_are_not_http_end_the_connection)
{
	char *text;

	open_metrics();
	text = ask("put 0 0 1 1\r\na\r\n\r\n");
	ASSERT(!*text || strstr(text, " 400 ") || strstr(text, " 505 "));
	ASSERT(strstr(ask(GET), " 200 "));
	metrics_close(metrics);
}

TEST(headers_without_end_are_bounded)
{
	char header[1000];
	int fd, i;

	open_metrics();
	fd = connect_client();
	send_text(fd, "GET /metrics HTTP/1.1\r\n");
	snprintf(header, sizeof(header), "X: %0900d\r\n", 0);
	for (i = 0; i < 1000 && send(fd, header, strlen(header), MSG_NOSIGNAL) > 0; i++)
		turn();
	ASSERT_LT(i, 1000);
	close(fd);
	ASSERT(strstr(ask(GET), " 200 "));
	metrics_close(metrics);
}

TEST(a_client_that_does_not_read_delays_no_other)
{
	int slow, i;

	make_page_large();
	open_metrics();
	slow = connect_client();
	for (i = 0; i < METRICS_MAX_CONNECTIONS; i++)
		send_text(slow, "GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n");
	for (i = 0; i < 20; i++)
		turn();
	ASSERT(strstr(ask(GET), " 200 "));
	close(slow);
	metrics_close(metrics);
}

/* Open the most connections, which stay silent, then one that asks; true if that must wait. */
static bool ask_last(int *idle, int *late)
{
	int i;

	for (i = 0; i < METRICS_MAX_CONNECTIONS; i++)
		idle[i] = connect_client();
	for (i = 0; i < 2 * METRICS_MAX_CONNECTIONS; i++)
		turn();
	*late = connect_client();
	send_text(*late, GET);
	for (i = 0; i < 10; i++)
		turn();
	return recv(*late, &i, 1, MSG_PEEK) == -1 && errno == EAGAIN;
}

TEST(connections_beyond_the_limit_wait_for_their_turn)
{
	int idle[METRICS_MAX_CONNECTIONS], late, i;
	time_t begin;

	for (;;) {
		begin = time(NULL);
		open_metrics();
		if (ask_last(idle, &late))
			break;
		/* The silent ones may have been closed by now. */
		ASSERT_GE(time(NULL) - begin, METRICS_TIMEOUT_S - 1);
		metrics_close(metrics);
		for (i = 0; i < METRICS_MAX_CONNECTIONS; i++)
			close(idle[i]);
		close(late);
	}
	close(idle[0]);
	ASSERT(strstr(receive(late), " 200 "));
	metrics_close(metrics);
}

TEST(thirty_one_silent_connections_delay_no_request)
{
	int i, late;

	open_metrics();
	for (i = 0; i < 31; i++)
		connect_client();
	for (i = 0; i < 62; i++)
		turn();
	late = connect_client();
	send_text(late, GET);
	for (i = 0; i < 10; i++)
		turn();
	ASSERT_EQ(recv(late, &i, 1, MSG_PEEK), 1);
	metrics_close(metrics);
}

/* Run turns of the loop; returns how many had something to do. */
static unsigned int count_wakeups(unsigned int turns)
{
	struct pollfd file = { .fd = metrics_fd(metrics), .events = POLLIN };
	unsigned int wakeups = 0;

	while (turns--) {
		wakeups += poll(&file, 1, 10) > 0 || !metrics_timeout_ms(metrics);
		metrics_run(metrics);
	}
	return wakeups;
}

/* While the process has no file left, the loop must not spin. */
TEST(a_connection_that_cannot_be_accepted_is_accepted_later)
{
	struct rlimit limit, none;
	int client;

	ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
	open_metrics();
	client = connect_client();
	send_text(client, GET);
	none = (struct rlimit){ .rlim_cur = client + 1, .rlim_max = limit.rlim_max };
	ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
	ASSERT_LT(count_wakeups(50), 10);
	ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	ASSERT(strstr(receive(client), " 200 "));
	metrics_close(metrics);
}

TEST(a_silent_connection_is_closed)
{
	int fd;

	open_metrics();
	fd = connect_client();
	send_text(fd, "GET /metr");
	ASSERT_EQ(strlen(receive(fd)), 0);
	metrics_close(metrics);
}

TEST(a_page_is_reused_until_it_is_old)
{
	uint64_t start_ns, took_ns;
	int i;

	open_metrics();
	start_ns = time_now_ns(CLOCK_MONOTONIC);
	for (i = 0; i < 200; i++)
		ASSERT(strstr(ask(GET), " 200 "));
	took_ns = time_now_ns(CLOCK_MONOTONIC) - start_ns;
	ASSERT_LE(pages_made, 1 + took_ns / METRICS_PAGE_AGE_NS);
	metrics_close(metrics);
}

TEST(an_old_page_is_written_anew)
{
	struct timespec age = { .tv_nsec = METRICS_PAGE_AGE_NS };

	open_metrics();
	ASSERT(strstr(ask(GET), "\na_metric 0\n"));
	number = 3;
	nanosleep(&age, NULL);
	ASSERT(strstr(ask(GET), "\na_metric 3\n"));
	metrics_close(metrics);
}

TEST(closing_frees_replies_that_are_being_sent)
{
	int fd, i;

	make_page_large();
	open_metrics();
	fd = connect_client();
	send_text(fd, GET);
	for (i = 0; i < 5; i++)
		turn();
	metrics_close(metrics);
	close(fd);
}

TEST(a_bad_address_is_refused)
{
	ASSERT_EQ(metrics_open(&metrics, "", &source), -EINVAL);
	ASSERT_EQ(metrics_open(&metrics, "127.0.0.1:99999", &source), -EINVAL);
	ASSERT_EQ(metrics_open(&metrics, "unix:/tmp/x", &source), -EINVAL);
	ASSERT_EQ(metrics_open(&metrics, "192.0.2.1:1", &source), -EADDRNOTAVAIL);
}

TEST(an_address_in_use_is_refused)
{
	struct metrics *second;

	open_metrics();
	ASSERT_EQ(metrics_open(&second, metrics_address(metrics), &source), -EADDRINUSE);
	metrics_close(metrics);
}

TEST(a_port_alone_is_on_the_loopback_interface)
{
	ASSERT_EQ(metrics_open(&metrics, "0", &source), 0);
	ASSERT_EQ(strncmp(metrics_address(metrics), "127.0.0.1:", 10), 0);
	metrics_close(metrics);
}
