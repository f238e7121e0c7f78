// SPDX-License-Identifier: GPL-2.0
/*
 * A libFuzzer target. The input is tried twice: as a line, and as all bytes of a client.
 *
 * As a line it is parsed or refused, and the fields of a parsed command are within the limits
 * that the queue relies on. As bytes of a client it has the same replies whether it comes at
 * once or in small pieces, and whether the disk is fast or slow; and nothing is left when the
 * client is gone.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/log.h"
#include "queue/server/clients.h"
#include "queue/server/replies.h"
#include "queue/test/fake_protocol.h"
#include "test/device/must.h"

/* A few bytes of input must not make much work. */
#define PEEK_MAX	2000
#define MAX_JOB_SIZE	200

#define MAX_DURATION_NS	(UINT32_MAX * NSEC_PER_SEC)

#define REPLIES_MAX	(8 * 1024 * 1024)

/* All replies to a client. */
struct replies {
	char *text;
	size_t len;
};

static struct clients clients;

/* --- a line -------------------------------------------------------------------------- */

static void check_name(const char *name)
{
	static const char good[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-+/;.$_()";
	size_t len = strnlen(name, TUBE_NAME_MAX + 1);

	MUST(len <= TUBE_NAME_MAX);
	MUST(strspn(name, good) == len);
	MUST(*name != '-');
}

static void check_key(const char *key)
{
	static const char good[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-+/;.$_():@,=";
	size_t len = strnlen(key, JOB_KEY_MAX + 1);

	MUST(len <= JOB_KEY_MAX);
	MUST(strspn(key, good) == len);
}

static void check_command(const struct command *command)
{
	const struct retry_policy *policy = &command->policy;

	MUST(command->op > OP_UNKNOWN && command->op < NR_OPS);
	check_name(command->tube);
	check_key(command->key);
	check_name(policy->dead);
	MUST(command->delay_ns <= MAX_DURATION_NS);
	MUST(command->ttr_ns <= MAX_DURATION_NS);
	MUST(command->due_ns <= INT64_MAX);
	MUST(command->body_len <= UINT32_MAX);
	MUST(command->has_body || !command->body_len);
	MUST(command->op != OP_EVERY || (command->delay_ns >= NSEC_PER_SEC && *command->key));
	MUST(command->op != OP_PURGE || command->state != LIST_RESERVED);
	if (command->op != OP_POLICY)
		return;
	MUST(policy->max_attempts && policy->jitter_percent <= 100);
	MUST(policy->factor >= 1 && policy->factor <= 1000);
	MUST(policy->base_ns <= MAX_DURATION_NS && policy->cap_ns <= MAX_DURATION_NS);
}

static void parse(const uint8_t *data, size_t size)
{
	struct command command;

	if (command_parse(&command, (const char *)data, size) == COMMAND_OK)
		check_command(&command);
	else
		MUST(command.body_len <= WRONG_BODY_MAX && !(command.has_body && command.close));
}

/* --- a client ------------------------------------------------------------------------ */

static void turn(struct source *source, uint32_t events)
{
	if (clients.nr)
		source->ready(source, events);
	clients_run(&clients);
	clients_send(&clients);
}

/* Read replies; returns false at the end of the connection. */
static bool hear(int fd, struct replies *replies)
{
	ssize_t len;

	while ((len = read(fd, replies->text + replies->len, REPLIES_MAX - replies->len)) > 0)
		replies->len += len;
	MUST(replies->len < REPLIES_MAX);
	return len < 0 && errno == EAGAIN;
}

/* Send the bytes in pieces, then hang up. */
static void say(int fd, struct source *source, const uint8_t *data, size_t size, size_t piece,
		struct replies *replies)
{
	size_t len;

	for (; size; data += len, size -= len) {
		len = size < piece ? size : piece;
		/* The connection may be closed; or the client waits, and its socket is full. */
		if (send(fd, data, len, MSG_NOSIGNAL) != (ssize_t)len)
			break;
		turn(source, EPOLLIN | EPOLLOUT);
		hear(fd, replies);
	}
	shutdown(fd, SHUT_WR);
}

static void converse(const uint8_t *data, size_t size, size_t piece, bool slow_disk,
		     struct replies *replies)
{
	struct source *source;
	int fds[2];

	fake.seq = 0;
	fake.synced = slow_disk ? 0 : UINT64_MAX;
	MUST(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds));
	source = client_create(&clients, fds[0]);
	MUST(source);
	replies->len = 0;
	say(fds[1], source, data, size, piece, replies);
	fake.synced = UINT64_MAX;
	do {
		turn(source, EPOLLIN | EPOLLOUT | EPOLLRDHUP);
	} while (hear(fds[1], replies));
	close(fds[1]);
	MUST(!clients.nr && !fake.nr_peers);
	MUST(!clients.bodies && !clients.inputs && !clients.outputs);
}

static void check_same(const uint8_t *data, size_t size)
{
	static struct replies once, again;

	if (!once.text) {
		once.text = malloc(REPLIES_MAX);
		again.text = malloc(REPLIES_MAX);
	}
	converse(data, size, size + 1, false, &once);
	converse(data, size, 1 + size % 7, true, &again);
	MUST(once.len == again.len && !memcmp(once.text, again.text, once.len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct clients_config config = { 1024 * 1024, MAX_JOB_SIZE };

	log_set_level(LOG_ERR);
	fake.body_max = PEEK_MAX;
	clients_init(&clients, &config, NULL, NULL);
	parse(data, size);
	check_same(data, size);
	return 0;
}
