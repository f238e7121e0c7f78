// SPDX-License-Identifier: GPL-2.0
/*
 * Connections: bytes in any pieces become commands, replies wait for the disk, and a client
 * that sends too much, reads too little or is gone harms no other. The protocol is
 * fake_protocol.c.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "queue/server/client.h"
#include "queue/server/clients.h"
#include "queue/server/replies.h"
#include "queue/test/fake_protocol.h"
#include "test/device/harness.h"
#include "common/log.h"
#include "common/util.h"

#define KIB		1024
#define MIB		(1024 * KIB)

static struct clients clients;
static int epoll = -1;

static void begin_with(size_t memory, uint32_t max_job_size)
{
	const struct clients_config config = { memory, max_job_size };

	log_set_level(LOG_ERR);
	clients_init(&clients, &config, NULL, NULL);
	epoll = epoll_create1(0);
	ASSERT_GE(epoll, 0);
	/* Most tests have every change on disk at once. */
	fake.synced = 1000000;
}

static void begin(void)
{
	begin_with(32 * MIB, 65535);
}

static void add_client(int fd)
{
	struct epoll_event event = {
		.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
	};

	event.data.ptr = client_create(&clients, fd);
	ASSERT(event.data.ptr);
	ASSERT_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);
}

/* Returns the test's end of a new connection. */
static int connect_client(void)
{
	int fds[2];

	ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	add_client(fds[0]);
	return fds[1];
}

/* The same by TCP, where a read by the other side need not cause EPOLLOUT. */
static int connect_tcp(void)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t len = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	ASSERT_EQ(bind(listener, (struct sockaddr *)&address, len), 0);
	ASSERT_EQ(listen(listener, 1), 0);
	ASSERT_EQ(getsockname(listener, (struct sockaddr *)&address, &len), 0);
	ASSERT_EQ(connect(fd, (struct sockaddr *)&address, len), 0);
	add_client(accept4(listener, NULL, NULL, SOCK_NONBLOCK));
	close(listener);
	return fd;
}

/* A turn, like that of loop.c. Returns true if there is more to do. */
static bool turn(void)
{
	struct epoll_event events[64];
	struct source *source;
	int nr = epoll_wait(epoll, events, 64, 0);
	int i;

	for (i = 0; i < nr; i++) {
		source = events[i].data.ptr;
		source->ready(source, events[i].events);
	}
	clients_run(&clients);
	clients_send(&clients);
	return nr > 0 || clients_busy(&clients);
}

static void turns(void)
{
	while (turn())
		;
}

static void say(int fd, const char *text)
{
	ASSERT_EQ(write(fd, text, strlen(text)), strlen(text));
}

static size_t hear(int fd, char *text, size_t size)
{
	ssize_t len = read(fd, text, size - 1);

	if (len < 0)
		ASSERT_EQ(errno, EAGAIN);
	len = len < 0 ? 0 : len;
	text[len] = '\0';
	return len;
}

/* Run all turns; then exactly this must have come. */
static void expect(int fd, const char *expected)
{
	static char seen[MIB];

	turns();
	hear(fd, seen, sizeof(seen));
	if (strcmp(seen, expected))
		test_fail(__FILE__, __LINE__, "got \"%.200s\", expected \"%.200s\"", seen,
			  expected);
}

static void expect_end(int fd)
{
	char byte;
	ssize_t len;

	turns();
	len = read(fd, &byte, 1);
	ASSERT(!len || (len < 0 && errno == ECONNRESET));
	close(fd);
}

/* Nothing is left of any client. */
static void expect_nothing_left(void)
{
	turns();
	ASSERT_EQ(clients.nr, 0);
	ASSERT_EQ(fake.nr_peers, 0);
	ASSERT_EQ(clients.bodies, 0);
	ASSERT_EQ(clients.inputs, 0);
	ASSERT_EQ(clients.outputs, 0);
}

/* Read until turns bring nothing more. Returns the number of bytes. */
static size_t drain(int fd)
{
	static char buffer[MIB];
	size_t sum = 0;
	size_t len;

	do {
		turns();
		len = hear(fd, buffer, sizeof(buffer));
		sum += len;
	} while (len);
	return sum;
}

static const char all_kinds[] =
	"use a\r\n"
	"put 0 0 1 5\r\nhello\r\n"
	"nonsense\r\n"
	"put 0 0 1 0\r\n\r\n"
	"put 0 0 1 3\r\nabcXYfail 1 2\r\n\r\n\r\n"
	"fail 1\r\n"
	"delete\r\n"
	"delete x\r\n"
	"put 0 x 1 5\r\nuse a\r\nuse b\r\n"
	"peek 3\r\n";

static const char all_replies[] =
	"USING a\r\n"
	"INSERTED 1\r\n"
	"UNKNOWN_COMMAND\r\n"
	"INSERTED 2\r\n"
	"EXPECTED_CRLF\r\n"
	"FAILED\r\n"
	"FAILED\r\n"
	"UNKNOWN_COMMAND\r\n"
	"BAD_FORMAT\r\n"
	"BAD_FORMAT\r\nUSING b\r\n"
	"FOUND 3 3\r\nbbb\r\n";

TEST(a_pipeline_is_answered_in_order)
{
	int fd;

	begin();
	fd = connect_client();
	say(fd, all_kinds);
	expect(fd, all_replies);
	close(fd);
	expect_nothing_left();
}

TEST(bytes_may_come_one_at_a_time)
{
	size_t i;
	int fd;

	begin();
	fd = connect_client();
	for (i = 0; i < sizeof(all_kinds) - 1; i++) {
		ASSERT_EQ(write(fd, all_kinds + i, 1), 1);
		turns();
	}
	expect(fd, all_replies);
	close(fd);
	expect_nothing_left();
}

TEST(bytes_may_come_in_any_two_pieces)
{
	size_t i, len = sizeof(all_kinds) - 1;
	int fd;

	begin();
	for (i = 1; i < len; i++) {
		test_about("cut at byte %zu", i);
		fake.seq = 0;
		fd = connect_client();
		ASSERT_EQ(write(fd, all_kinds, i), i);
		turns();
		ASSERT_EQ(write(fd, all_kinds + i, len - i), len - i);
		expect(fd, all_replies);
		close(fd);
	}
	expect_nothing_left();
}

TEST(a_body_is_what_was_sent)
{
	static char body[60000];
	char line[64];
	size_t i, sent;
	int fd;

	begin();
	fd = connect_client();
	for (i = 0; i < sizeof(body); i++)
		body[i] = rand();
	snprintf(line, sizeof(line), "put 0 0 1 %zu\r\n", sizeof(body));
	say(fd, line);
	for (sent = 0; sent < sizeof(body); sent += i) {
		i = 1 + rand() % 7000;
		i = i < sizeof(body) - sent ? i : sizeof(body) - sent;
		ASSERT_EQ(write(fd, body + sent, i), i);
		turns();
	}
	ASSERT_EQ(fake.nr_runs, 0);
	say(fd, "\r\nuse a\r\n");
	expect(fd, "INSERTED 1\r\nUSING a\r\n");
	ASSERT_EQ(fake.body_len, sizeof(body));
	ASSERT(!memcmp(fake.body, body, sizeof(body)));
	close(fd);
	expect_nothing_left();
}

TEST(a_body_that_is_too_big_is_swallowed)
{
	int fd;

	begin_with(32 * MIB, 10);
	fd = connect_client();
	say(fd, "put 0 0 1 11\r\nuse x\r\n1234\r\nuse a\r\nput 0 0 1 10\r\n1234567890\r\n");
	expect(fd, "JOB_TOO_BIG\r\nUSING a\r\nINSERTED 1\r\n");
	say(fd, "put 0 0 1 19\r\nuse x\r\n");
	expect(fd, "");
	say(fd, "use y\r\nuse z\r\nuse b\r\n");
	expect(fd, "JOB_TOO_BIG\r\nUSING b\r\n");
	say(fd, "put 0 0 1 4294967295\r\n");
	expect(fd, "");
	say(fd, "use a\r\n");
	expect(fd, "");
	close(fd);
	expect_nothing_left();
}

#define X10	"xxxxxxxxxx"
#define X100	X10 X10 X10 X10 X10 X10 X10 X10 X10 X10
#define X222	X100 X100 X10 X10 "xx"

/* The rest of what was sent is neither run nor answered. */
static void expect_refusal(const char *text, const char *expected)
{
	size_t i, len = strlen(text);
	int fd;

	for (i = 1; i <= len; i++) {
		test_about("\"%s\", cut at byte %zu", text, i);
		fd = connect_client();
		ASSERT_EQ(write(fd, text, i), i);
		turns();
		/* The connection may have closed by now. */
		send(fd, text + i, len - i, MSG_NOSIGNAL);
		expect(fd, expected);
		expect_end(fd);
		expect_nothing_left();
	}
}

TEST(a_line_that_ends_in_lf_alone_is_refused_once_and_the_connection_closes)
{
	begin();
	expect_refusal("use a\n", "EXPECTED_CRLF\r\n");
	expect_refusal("\n", "EXPECTED_CRLF\r\n");
	expect_refusal("use a\nuse b\nuse c\r\n", "EXPECTED_CRLF\r\n");
	expect_refusal("use a\r\nuse b\nuse c\r\n", "USING a\r\nEXPECTED_CRLF\r\n");
	expect_refusal("use a\r\n\nuse b\r\n", "USING a\r\nEXPECTED_CRLF\r\n");
	expect_refusal("put 0 0 1 1\nx\n", "EXPECTED_CRLF\r\n");
	ASSERT_EQ(fake.seq, 0);
}

TEST(a_line_that_is_too_long_closes_the_connection)
{
	int fd;

	begin();
	fd = connect_client();
	say(fd, X222 "\r\nuse a\r\n");
	expect(fd, "UNKNOWN_COMMAND\r\nUSING a\r\n");
	close(fd);
	turns();
	expect_refusal(X222 "x\r\nuse a\r\n", "BAD_FORMAT\r\n");
	expect_refusal(X222 "xx\r\nuse a\r\n", "BAD_FORMAT\r\n");
	expect_refusal(X222 X222 X222 "\r\nuse a\r\n", "BAD_FORMAT\r\n");
	expect_refusal("use a\r\nuse " X222 "\r\nuse a\r\n", "USING a\r\nBAD_FORMAT\r\n");
}

TEST(a_line_of_a_command_beyond_beanstalkd_may_have_600_bytes)
{
	char line[700];
	int fd;

	begin();
	fd = connect_client();
	/* With its spaces and \r\n, exactly 600 bytes; then one more. */
	snprintf(line, sizeof(line), "fail 1%591s2\r\nab\r\nuse a\r\n", "");
	say(fd, line);
	expect(fd, "FAILED\r\nUSING a\r\n");
	ASSERT(!memcmp(fake.body, "ab", 2));
	close(fd);
	turns();
	snprintf(line, sizeof(line), "fail 1%592s2\r\nab\r\nuse a\r\n", "");
	expect_refusal(line, "BAD_FORMAT\r\n");
}

TEST(a_body_behind_a_line_that_is_wrong_is_not_run)
{
	int fd;

	begin();
	fd = connect_client();
	say(fd, "put x 0 1 8\r\ndelete 1\r\nuse a\r\n");
	expect(fd, "BAD_FORMAT\r\nUSING a\r\n");
	say(fd, "fail x 8\r\ndelete 1");
	expect(fd, "");
	say(fd, "\r\nuse b\r\n");
	expect(fd, "BAD_FORMAT\r\nUSING b\r\n");
	say(fd, "every n 0 1ms 2 3 8\r\ndelete 1\r\nuse c\r\n");
	expect(fd, "BAD_FORMAT\r\nUSING c\r\n");
	close(fd);
	expect_nothing_left();
	expect_refusal("put 0 0 1 x\r\ndelete 1\r\n", "BAD_FORMAT\r\n");
	expect_refusal("put x 0 1 1000000001\r\ndelete 1\r\n", "BAD_FORMAT\r\n");
	expect_refusal("GET / HTTP/1.1\r\ndelete 1\r\n", "UNKNOWN_COMMAND\r\n");
}

TEST(only_a_client_that_ends_its_connection_hangs_up)
{
	struct linger reset = { .l_onoff = 1 };
	int fd;

	begin();
	expect_refusal("use a\n", "EXPECTED_CRLF\r\n");
	expect_refusal(X222 "xx\r\n", "BAD_FORMAT\r\n");
	ASSERT_EQ(fake.nr_hung_up, 0);
	fd = connect_client();
	say(fd, "quit\r\n");
	expect_end(fd);
	ASSERT_EQ(fake.nr_hung_up, 1);
	close(connect_client());
	expect_nothing_left();
	ASSERT_EQ(fake.nr_hung_up, 2);
	fd = connect_tcp();
	ASSERT_EQ(setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
	close(fd);
	expect_nothing_left();
	ASSERT_EQ(fake.nr_hung_up, 3);
	/* It waits, and hangs up. */
	fd = connect_client();
	say(fd, "reserve\r\n");
	turns();
	close(fd);
	expect_nothing_left();
	ASSERT_EQ(fake.nr_hung_up, 4);
	/* The daemon ends. */
	fd = connect_client();
	turns();
	clients_destroy(&clients);
	ASSERT_EQ(fake.nr_peers, 0);
	ASSERT_EQ(fake.nr_hung_up, 4);
	close(fd);
}

TEST(an_lf_in_a_body_is_part_of_it)
{
	int fd;

	begin();
	fd = connect_client();
	say(fd, "put 0 0 1 6\r\na\nb\n\n\n\r\nuse a\r\n");
	expect(fd, "INSERTED 1\r\nUSING a\r\n");
	ASSERT(!memcmp(fake.body, "a\nb\n\n\n", 6));
	/* A body that does not end with \r\n is refused, and the next line is run. */
	say(fd, "put 0 0 1 1\r\nx\n\nuse b\r\n");
	expect(fd, "EXPECTED_CRLF\r\nUSING b\r\n");
	say(fd, "put 0 0 1 1\r\nx\n");
	expect(fd, "");
	say(fd, "\ruse c\r\n");
	expect(fd, "EXPECTED_CRLF\r\nUSING c\r\n");
	/* Bytes of a body that is too big are thrown away, whatever they are. */
	say(fd, "put 0 0 1 65536\r\n\n\n");
	turns();
	close(fd);
	expect_nothing_left();
}

TEST(replies_before_an_lf_alone_wait_for_the_disk)
{
	int fd;

	begin();
	fake.synced = 0;
	fd = connect_client();
	say(fd, "put 0 0 1 1\r\na\r\nuse a\n");
	expect(fd, "");
	ASSERT_EQ(fake.nr_peers, 0);
	fake.synced = 1;
	expect(fd, "INSERTED 1\r\nEXPECTED_CRLF\r\n");
	expect_end(fd);
	expect_nothing_left();
}

TEST(a_cr_does_not_end_a_line)
{
	int fd;

	begin();
	fd = connect_client();
	say(fd, "use a\r");
	expect(fd, "");
	say(fd, "\r\nuse b\r\n");
	expect(fd, "BAD_FORMAT\r\nUSING b\r\n");
	close(fd);
	expect_nothing_left();
}

TEST(a_reply_waits_until_the_disk_has_what_it_promises)
{
	int fd;

	begin();
	fake.synced = 0;
	fd = connect_client();
	say(fd, "use a\r\nput 0 0 1 1\r\na\r\nuse b\r\nput 0 0 1 1\r\na\r\nuse c\r\n");
	expect(fd, "USING a\r\n");
	ASSERT_EQ(fake.nr_runs, 5);
	fake.synced = 1;
	expect(fd, "INSERTED 1\r\nUSING b\r\n");
	fake.synced = 2;
	expect(fd, "INSERTED 2\r\nUSING c\r\n");
	close(fd);
	expect_nothing_left();
}

TEST(a_client_does_not_wait_for_the_changes_of_another)
{
	int one, two;

	begin();
	fake.synced = 0;
	one = connect_client();
	two = connect_client();
	say(one, "put 0 0 1 1\r\na\r\n");
	turns();
	say(two, "use a\r\n");
	expect(two, "USING a\r\n");
	say(two, "put 0 0 1 1\r\na\r\n");
	fake.synced = 1;
	expect(one, "INSERTED 1\r\n");
	expect(two, "");
	fake.synced = 2;
	expect(two, "INSERTED 2\r\n");
	close(one);
	close(two);
	expect_nothing_left();
}

TEST(a_client_that_waits_runs_nothing_until_the_wait_is_over)
{
	int waiter, other;

	begin();
	waiter = connect_client();
	other = connect_client();
	say(waiter, "reserve\r\nuse a\r\nput 0 0 1 1\r\nx\r\n");
	expect(waiter, "");
	ASSERT_EQ(fake.nr_runs, 1);
	say(other, "use b\r\nkick 1\r\n");
	expect(other, "USING b\r\nKICKED 1\r\n");
	expect(waiter, "RESERVED 1 2\r\nab\r\nUSING a\r\nINSERTED 1\r\n");
	ASSERT_EQ(clients.inputs, 0);
	close(waiter);
	close(other);
	expect_nothing_left();
}

TEST(commands_behind_a_wait_run_before_its_reply_is_sent)
{
	int waiter, other;

	begin();
	fake.synced = 0;
	waiter = connect_client();
	other = connect_client();
	say(waiter, "reserve\r\nuse a\r\n");
	turns();
	say(other, "put 0 0 1 1\r\na\r\nkick 1\r\n");
	expect(waiter, "");
	ASSERT_EQ(fake.nr_runs, 4);
	fake.synced = 1;
	expect(waiter, "RESERVED 1 2\r\nab\r\nUSING a\r\n");
	expect(other, "INSERTED 1\r\nKICKED 1\r\n");
	close(waiter);
	close(other);
	expect_nothing_left();
}

TEST(a_client_whose_wait_an_alarm_ends_runs_on)
{
	int fd;

	begin();
	fd = connect_client();
	say(fd, "reserve\r\n");
	expect(fd, "");
	fake_wake(1);
	expect(fd, "RESERVED 1 2\r\nab\r\n");
	say(fd, "use a\r\n");
	expect(fd, "USING a\r\n");
	close(fd);
	expect_nothing_left();
}

TEST(a_client_that_waits_may_send_much_and_takes_little_memory)
{
	static char text[64 * KIB];
	ssize_t len, sum = 0;
	int fd, i;

	begin();
	fd = connect_client();
	say(fd, "reserve\r\n");
	for (i = 0; i < (int)sizeof(text) - 7; i += 7)
		memcpy(text + i, "use a\r\n", 7);
	do {
		turns();
		len = write(fd, text, i);
		sum += len > 0 ? len : 0;
	} while (len > 0);
	ASSERT_EQ(errno, EAGAIN);
	ASSERT_LE(clients.inputs, CLIENT_READ_SIZE);
	fake_wake(1);
	/* The last write may have ended within a line. */
	ASSERT_EQ(drain(fd), strlen("RESERVED 1 2\r\nab\r\n") + sum / 7 * strlen("USING a\r\n"));
	close(fd);
	expect_nothing_left();
}

TEST(a_half_close_ends_a_wait_with_timed_out)
{
	int fd;

	begin();
	fd = connect_client();
	say(fd, "reserve\r\n");
	turns();
	ASSERT_EQ(shutdown(fd, SHUT_WR), 0);
	expect(fd, "TIMED_OUT\r\n");
	expect_end(fd);
	expect_nothing_left();
}

TEST(a_hang_up_behind_unread_bytes_ends_a_wait)
{
	int fd;

	begin();
	fd = connect_client();
	say(fd, "reserve\r\nuse a\r\nuse b\r\n");
	turns();
	close(fd);
	expect_nothing_left();
}

TEST(commands_before_a_half_close_are_answered)
{
	int fd;

	begin();
	fd = connect_client();
	fake.synced = 0;
	say(fd, "use a\r\nput 0 0 1 1\r\na\r\nuse b\r\nus");
	ASSERT_EQ(shutdown(fd, SHUT_WR), 0);
	expect(fd, "USING a\r\n");
	fake.synced = 1;
	expect(fd, "INSERTED 1\r\nUSING b\r\n");
	expect_end(fd);
	expect_nothing_left();
}

TEST(quit_ends_after_all_replies)
{
	int fd;

	begin();
	fake.synced = 0;
	fd = connect_client();
	say(fd, "put 0 0 1 1\r\na\r\nquit\r\nuse a\r\n");
	expect(fd, "");
	ASSERT_EQ(fake.nr_peers, 0);
	fake.synced = 1;
	expect(fd, "INSERTED 1\r\n");
	expect_end(fd);
	ASSERT_EQ(fake.nr_runs, 1);
	expect_nothing_left();
}

TEST(quit_over_tcp_ends_after_all_replies)
{
	char seen[64];
	int fd;

	begin();
	fake.synced = 0;
	fd = connect_tcp();
	say(fd, "put 0 0 1 1\r\na\r\nquit\r\n");
	while (fake.nr_peers)
		turns();
	turns();
	fake.synced = 1;
	turns();
	/* The test has read nothing yet, so no event of this socket will come. */
	ASSERT_EQ(clients.nr, 0);
	ASSERT_EQ(read(fd, seen, sizeof(seen)), strlen("INSERTED 1\r\n"));
	ASSERT_EQ(read(fd, seen, sizeof(seen)), 0);
	close(fd);
	expect_nothing_left();
}

/* The states: half a line, half a body, a body that is too big, a long line, a wait. */
TEST(a_client_may_disappear_in_every_state)
{
	static const char *const texts[] = {
		"", "us", "use a\r", "use a\r\n", "put 0 0 1 5\r\nab", "put 0 0 1 5\r\nabcde\r",
		"put 0 0 1 65536\r\nab", X222 "xxxxx", X222 "xxxxx\r", "reserve\r\n",
		"reserve\r\nuse a\r\n", "peek 100000\r\npeek 300000\r\npeek 1000000\r\nuse a\r\n",
		"put 0 0 1 1\r\na\r\n", "quit\r\n", "use a\r\nuse b\r\nreserve\r\nput 0 0 1 9\r\n",
	};
	size_t i;
	int fd, with_turn;

	begin();
	fake.synced = 0;
	for (i = 0; i < ARRAY_SIZE(texts); i++) {
		for (with_turn = 0; with_turn < 2; with_turn++) {
			test_about("after \"%s\"", texts[i]);
			fd = connect_client();
			say(fd, texts[i]);
			if (with_turn)
				turns();
			close(fd);
			turns();
			/* If a reply waits for the disk, sending it finds the client gone. */
			fake.synced = fake.seq;
			expect_nothing_left();
			fake.synced = 0;
			fake.seq = 0;
		}
	}
}

TEST(a_client_that_does_not_read_runs_nothing_and_delays_no_other)
{
	int slow, other;
	uint64_t runs;
	size_t i;

	begin();
	slow = connect_client();
	other = connect_client();
	for (i = 0; i < 200; i++)
		say(slow, "peek 50000\r\n");
	turns();
	runs = fake.nr_runs;
	ASSERT_LT(runs, 30);
	ASSERT_LT(clients.outputs, 512 * KIB);
	say(other, "use a\r\n");
	expect(other, "USING a\r\n");
	ASSERT_EQ(drain(slow), 200 * (strlen("FOUND 50000 50000\r\n") + 50000 + 2));
	close(slow);
	close(other);
	expect_nothing_left();
}

/* If the machine is slow, shares end earlier, and fewer commands run. */
TEST(a_client_waits_for_one_slow_command_of_each_of_many_others)
{
	int busy[200], other;
	uint64_t runs;
	size_t i, j;

	begin();
	for (i = 0; i < ARRAY_SIZE(busy); i++)
		busy[i] = connect_client();
	other = connect_client();
	turns();
	for (i = 0; i < ARRAY_SIZE(busy); i++)
		for (j = 0; j < 20; j++)
			say(busy[i], "use a\r\n");
	say(other, "put 0 0 1 4\r\nlast\r\n");
	fake.run_ns = 200000;
	while (fake.body_len != 4)
		turn();
	runs = fake.nr_runs;
	fake.run_ns = 0;
	turns();
	ASSERT_EQ(fake.nr_runs, ARRAY_SIZE(busy) * 20 + 1);
	ASSERT_LT(runs, ARRAY_SIZE(busy) * 2);
	for (i = 0; i < ARRAY_SIZE(busy); i++)
		close(busy[i]);
	close(other);
	expect_nothing_left();
}

TEST(a_reply_that_is_larger_than_all_limits_arrives)
{
	int fd;

	begin_with(1 * MIB, 1000);
	fd = connect_client();
	say(fd, "peek 400000\r\npeek 400000\r\nuse a\r\n");
	ASSERT_EQ(drain(fd), 2 * (strlen("FOUND 400000 400000\r\n") + 400002) +
		  strlen("USING a\r\n"));
	close(fd);
	expect_nothing_left();
}

TEST(clients_that_do_not_read_are_disconnected_when_memory_is_short)
{
	int slow[64], good;
	size_t i;

	begin_with(1 * MIB, 1000);
	good = connect_client();
	for (i = 0; i < 64; i++) {
		slow[i] = connect_client();
		say(slow[i], "peek 500000\r\n");
		turns();
		ASSERT_LE(clients.outputs, 2 * MIB);
		say(good, "peek 1000\r\n");
		ASSERT_EQ(drain(good), strlen("FOUND 1000 1000\r\n") + 1002);
	}
	ASSERT_LT(clients.nr, 10);
	for (i = 0; i < 64; i++)
		close(slow[i]);
	close(good);
	expect_nothing_left();
}

/* As in body.c. */
#define BODY_YOUNG_NS	NSEC_PER_SEC
#define BODY_WHOLE_NS	(30 * NSEC_PER_SEC)

/* Two clients begin a body. There is memory for the first one, which is not slow yet. */
static void begin_two_bodies(int *one, int *two)
{
	uint64_t begin_ns;

	for (;;) {
		*one = connect_client();
		*two = connect_client();
		begin_ns = time_now_ns(CLOCK_MONOTONIC);
		say(*one, "put 0 0 1 30000\r\nabc");
		turns();
		ASSERT_GT(clients.bodies, 30000);
		say(*two, "put 0 0 1 30000\r\nabc");
		turns();
		ASSERT_LE(clients.bodies, 50000);
		if (time_now_ns(CLOCK_MONOTONIC) < begin_ns + BODY_YOUNG_NS)
			return;
		close(*one);
		close(*two);
		turns();
	}
}

TEST(a_body_beyond_the_budget_is_refused_and_swallowed)
{
	static char body[30001];
	int one, two;

	begin_with(100000, 40000);
	memset(body, 'x', sizeof(body) - 1);
	begin_two_bodies(&one, &two);
	ASSERT_GE(fake.nr_lacking, 1);
	say(two, body + 3);
	say(two, "\r\nuse a\r\n");
	expect(two, "OUT_OF_MEMORY\r\nUSING a\r\n");
	/* A body that comes in the same read as its line needs no memory of its own. */
	say(two, "put 0 0 1 3000\r\n");
	say(two, body + 27000);
	say(two, "\r\n");
	expect(two, "INSERTED 1\r\n");
	say(one, body + 3);
	say(one, "\r\n");
	expect(one, "INSERTED 2\r\n");
	ASSERT_EQ(clients.bodies, 0);
	close(one);
	close(two);
	expect_nothing_left();
}

/* The body of @slow has to make room for that of @other. */
static void check_makes_room(int slow, int other)
{
	uint64_t nr_lacking = fake.nr_lacking;
	int i;

	say(other, "put 0 0 1 30000\r\nabc");
	turns();
	ASSERT_LE(clients.bodies, 50000);
	for (i = 0; i < 29997; i++) {
		say(other, "x");
		say(slow, "y");
		if (i % 100 == 0)
			turns();
	}
	say(other, "\r\n");
	say(slow, "\r\nuse a\r\n");
	expect(other, "INSERTED 1\r\n");
	expect(slow, "OUT_OF_MEMORY\r\nUSING a\r\n");
	ASSERT_EQ(fake.nr_lacking, nr_lacking + 1);
	close(slow);
	close(other);
	expect_nothing_left();
}

/* The first client's body, as if it had begun long ago. */
static void age_body(uint64_t by_ns)
{
	TAILQ_FIRST(&clients.begun)->body->began_ns -= by_ns;
}

TEST(a_body_that_trickles_loses_its_memory_to_other_clients)
{
	int slow;

	begin_with(100000, 40000);
	slow = connect_client();
	say(slow, "put 0 0 1 30000\r\nab");
	turns();
	age_body(BODY_YOUNG_NS);
	say(slow, "c");
	turns();
	check_makes_room(slow, connect_client());
}

/* Send bytes of a body. */
static void say_bytes(int fd, size_t nr)
{
	static char text[10001];

	memset(text, 'x', sizeof(text) - 1);
	for (; nr; nr -= sizeof(text) - 1) {
		say(fd, text);
		turns();
	}
}

/* However fast it came in the beginning. */
TEST(a_body_that_takes_long_loses_its_memory_to_other_clients)
{
	int slow, other;

	begin_with(2400000, 1000000);
	slow = connect_client();
	other = connect_client();
	say(slow, "put 0 0 1 1000000\r\n");
	say_bytes(slow, 900000);
	age_body(BODY_WHOLE_NS);
	say(other, "put 0 0 1 500000\r\n");
	say_bytes(other, 500000);
	say(other, "\r\n");
	expect(other, "INSERTED 1\r\n");
	close(slow);
	close(other);
	expect_nothing_left();
}

/* Unless the machine stands still for half a minute. */
TEST(a_body_that_comes_fast_enough_keeps_its_memory)
{
	uint64_t began_ns;
	int fast, other;

	begin_with(2400000, 1000000);
	fast = connect_client();
	other = connect_client();
	say(fast, "put 0 0 1 1000000\r\n");
	say_bytes(fast, 500000);
	age_body(BODY_YOUNG_NS);
	began_ns = TAILQ_FIRST(&clients.begun)->body->began_ns;
	say(other, "put 0 0 1 500000\r\n");
	say_bytes(other, 500000);
	say(other, "\r\n");
	if (time_now_ns(CLOCK_MONOTONIC) - began_ns < BODY_WHOLE_NS) {
		expect(other, "OUT_OF_MEMORY\r\n");
		say_bytes(fast, 500000);
		say(fast, "\r\n");
		expect(fast, "INSERTED 1\r\n");
	}
	close(fast);
	close(other);
	expect_nothing_left();
}

/* The daemon has stood still. Its events are in the order in which they came. */
TEST(a_body_that_has_come_and_was_not_read_keeps_its_memory)
{
	static char body[29998];
	uint64_t began_ns;
	int fast, other;

	begin_with(100000, 40000);
	memset(body, 'x', sizeof(body) - 1);
	fast = connect_client();
	other = connect_client();
	say(fast, "put 0 0 1 30000\r\nabc");
	turns();
	age_body(BODY_YOUNG_NS);
	began_ns = TAILQ_FIRST(&clients.begun)->body->began_ns;
	say(other, "put 0 0 1 30000\r\nabc");
	say(fast, body);
	turns();
	/* Unless it really stands still. */
	if (time_now_ns(CLOCK_MONOTONIC) - began_ns < BODY_YOUNG_NS / 2 * 3) {
		say(fast, "\r\n");
		expect(fast, "INSERTED 1\r\n");
		say(other, body);
		say(other, "\r\n");
		expect(other, "OUT_OF_MEMORY\r\n");
	}
	close(fast);
	close(other);
	expect_nothing_left();
}

/* --- a store that is behind ---------------------------------------------------------------- */

TEST(puts_wait_while_the_store_is_behind_and_others_do_not)
{
	int one, two, other;

	begin();
	one = connect_client();
	two = connect_client();
	other = connect_client();
	fake.behind = true;
	/* The body comes with its line, and in pieces. */
	say(one, "use a\r\nput 0 0 1 2\r\nab\r\nput 0 0 1 2\r\ncd\r\nuse b\r\n");
	say(two, "put 0 0 1 2\r\nx");
	turns();
	say(two, "y\r\nuse c\r\n");
	expect(one, "USING a\r\n");
	expect(two, "");
	say(other, "use d\r\npeek 1\r\n");
	expect(other, "USING d\r\nFOUND 1 1\r\nb\r\n");
	fake.behind = false;
	expect(one, "INSERTED 1\r\nINSERTED 3\r\nUSING b\r\n");
	expect(two, "INSERTED 2\r\nUSING c\r\n");
	ASSERT(!memcmp(fake.body, "cd\r\n", 2));
	close(one);
	close(two);
	close(other);
	expect_nothing_left();
}

TEST(a_client_may_disappear_while_its_put_waits_for_the_store)
{
	int stays, goes;

	begin();
	goes = connect_client();
	stays = connect_client();
	fake.behind = true;
	say(goes, "put 0 0 1 2\r\nab\r\n");
	say(stays, "put 0 0 1 2\r\ncd\r\n");
	turns();
	close(goes);
	expect(stays, "");
	fake.behind = false;
	expect(stays, "INSERTED 2\r\n");
	close(stays);
	expect_nothing_left();
}

TEST(a_client_whose_put_waits_for_the_store_may_be_ended_by_an_earlier_reply)
{
	int fd;

	begin();
	fd = connect_client();
	fake.synced = 0;
	say(fd, "put 0 0 1 2\r\nab\r\n");
	turns();
	fake.behind = true;
	say(fd, "put 0 0 1 2\r\ncd\r\n");
	turns();
	ASSERT(clients_stalled(&clients));
	close(fd);
	/* The reply of the first one finds nobody. */
	fake.synced = 1;
	turns();
	ASSERT(!clients_stalled(&clients));
	fake.behind = false;
	expect_nothing_left();
	ASSERT_EQ(fake.seq, 1);
}

TEST(a_stopping_server_runs_no_put_that_waits_for_the_store)
{
	int fd;

	begin();
	fd = connect_client();
	fake.behind = true;
	say(fd, "put 0 0 1 2\r\nab\r\n");
	turns();
	ASSERT(clients_stalled(&clients));
	clients_stop(&clients);
	fake.behind = false;
	expect(fd, "");
	ASSERT(!clients_stalled(&clients));
	ASSERT_EQ(fake.seq, 0);
	close(fd);
	clients_destroy(&clients);
	ASSERT_EQ(clients.bodies, 0);
}

/* It is complete: only the store keeps it. */
TEST(a_body_that_waits_for_the_store_keeps_its_memory)
{
	static char text[40100];
	int waits, other;

	begin_with(100000, 40000);
	waits = connect_client();
	other = connect_client();
	fake.behind = true;
	say(waits, "put 0 0 1 10000\r\n");
	memset(text, 'w', 10000);
	strcpy(text + 10000, "\r\n");
	say(waits, text);
	turns();
	age_body(BODY_WHOLE_NS);
	/* There is no room for this one, and none is made. */
	say(other, "put 0 0 1 40000\r\n");
	memset(text, 'o', 40000);
	strcpy(text + 40000, "\r\n");
	say(other, text);
	expect(other, "OUT_OF_MEMORY\r\n");
	expect(waits, "");
	fake.behind = false;
	expect(waits, "INSERTED 1\r\n");
	close(waits);
	close(other);
	expect_nothing_left();
}

/* --- many ----------------------------------------------------------------------------------- */

TEST(a_long_pipeline_does_not_delay_other_clients)
{
	static char text[700001];
	int greedy, other;
	size_t i, sent = 0;
	char seen[64];
	ssize_t len;

	begin();
	greedy = connect_client();
	other = connect_client();
	for (i = 0; i < 100000; i++)
		memcpy(text + 7 * i, "use a\r\n", 7);
	while ((len = write(greedy, text + sent, 700000 - sent)) > 0)
		sent += len;
	ASSERT_GT(sent, 50000);
	turn();
	say(other, "use b\r\n");
	fake.nr_runs = 0;
	turn();
	turn();
	/* Both had a share of each turn, and the other one was served in the first. */
	ASSERT_LE(fake.nr_runs, 2 * 128 + 1);
	hear(other, seen, sizeof(seen));
	ASSERT(!strcmp(seen, "USING b\r\n"));
	close(greedy);
	close(other);
	expect_nothing_left();
}

#define MANY	5000

TEST(idle_clients_have_no_buffers)
{
	static int fds[MANY];
	struct rlimit limit;
	int i;

	ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
	if (limit.rlim_max < 2 * MANY + 100)
		test_skip("%llu files are too few", (unsigned long long)limit.rlim_max);
	limit.rlim_cur = limit.rlim_max;
	ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	begin();
	for (i = 0; i < MANY; i++) {
		fds[i] = connect_client();
		say(fds[i], "use a\r\nput 0 0 1 1\r\na\r\n");
	}
	turns();
	ASSERT_EQ(fake.nr_runs, 2 * MANY);
	ASSERT_EQ(clients.nr, MANY);
	ASSERT_EQ(clients.inputs + clients.outputs + clients.bodies, 0);
	for (i = 0; i < MANY; i++)
		close(fds[i]);
	expect_nothing_left();
}

TEST(half_a_line_takes_no_more_memory_than_its_bytes)
{
	int fd;

	begin();
	fd = connect_client();
	say(fd, "use abc");
	turns();
	ASSERT_EQ(clients.inputs, 7);
	close(fd);
	expect_nothing_left();
}

TEST(a_stopping_server_runs_nothing_and_sends_held_replies)
{
	int fd, waiter;

	begin();
	fake.synced = 0;
	fd = connect_client();
	waiter = connect_client();
	say(waiter, "reserve\r\n");
	say(fd, "put 0 0 1 1\r\na\r\n");
	turns();
	clients_stop(&clients);
	say(fd, "use a\r\n");
	ASSERT(!clients_all_sent(&clients));
	fake.synced = 1;
	expect(fd, "INSERTED 1\r\n");
	ASSERT(clients_all_sent(&clients));
	ASSERT_EQ(fake.nr_runs, 2);
	clients_destroy(&clients);
	ASSERT_EQ(fake.nr_peers, 0);
	expect_end(fd);
	expect_end(waiter);
}

TEST(a_client_without_memory_for_it_is_disconnected)
{
	int fds[2];

	begin();
	ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	fake.fail_init = true;
	ASSERT(!client_create(&clients, fds[0]));
	expect_end(fds[1]);
	ASSERT_EQ(clients.nr, 0);
}

/* The number of replies that have come: lines, and FOUND has two. */
static int count_replies(int fd)
{
	static char seen[20000];
	size_t len = 0;
	size_t more;
	int nr = 0;
	int i;

	do {
		turns();
		fake.synced = fake.seq;
		turns();
		more = hear(fd, seen + len, sizeof(seen) - len);
		len += more;
	} while (more);
	for (i = 0; seen[i]; i++)
		nr += (seen[i] == '\n') - !strncmp(seen + i, "FOUND", 5);
	return nr;
}

/* Random commands, in random pieces, of clients that come and go. */
TEST(random_clients_get_one_reply_a_command)
{
	static const char *const texts[] = {
		"use a\r\n", "put 0 0 1 3\r\nabc\r\n", "nonsense\r\n", "peek 10\r\n", "touch\r\n",
	};
	static char text[20000];
	size_t len, sent, piece;
	int round, fd, i, nr;

	begin();
	fake.synced = 0;
	srand(1);
	for (round = 0; round < 300; round++) {
		fd = connect_client();
		nr = rand() % 300;
		for (len = 0, i = 0; i < nr; i++)
			len += sprintf(text + len, "%s", texts[rand() % 5]);
		for (sent = 0; sent < len; sent += piece) {
			piece = 1 + rand() % 500;
			piece = piece < len - sent ? piece : len - sent;
			ASSERT_EQ(write(fd, text + sent, piece), piece);
			if (rand() % 2)
				fake.synced += rand() % (fake.seq - fake.synced + 1);
			turn();
		}
		ASSERT_EQ(count_replies(fd), nr);
		close(fd);
	}
	expect_nothing_left();
}
