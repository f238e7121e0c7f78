// SPDX-License-Identifier: GPL-2.0
/*
 * A client's connection: bytes become commands, replies become bytes.
 *
 *	            line too long                       quit, end of input
 *	  SKIP <------------------ LINE ------------------------------------> CLOSING
 *	     |                     | ^ |                                        ^
 *	     +-- end of the line --|-+ +-- the session waits --> WAIT           |
 *	       BAD_FORMAT          | |                            |  |          |
 *	                           | +------- session_resume() ---+  +-- hangs -+
 *	                           | |                                  up: TIMED_OUT
 *	     body is not all here  | | whole: run
 *	                           v |
 *	                          BODY ---- has no bytes for long, and others need memory
 *	     body too big, or      |            |
 *	     no memory             v            v
 *	        LINE ----------> SWALLOW <------+
 *	          ^                |
 *	          +--- all gone ---+  JOB_TOO_BIG, OUT_OF_MEMORY
 *
 * CLOSING ends when all replies are sent. Any error of the socket ends the client at once:
 * client_end() puts it into the list of the dead, and it is destroyed at one place, at the
 * end of a turn, so that nobody holds a pointer to it.
 *
 * Polling is edge-triggered: @readable and @writable say what the kernel said last, until
 * a read or a write says otherwise. A client is in the run list while it may have something
 * to do, and is given a turn after the others of that list: a read of CLIENT_READ_SIZE, and
 * TURN_COMMANDS commands of it. What was read and not run is kept, and nothing more is read
 * before it is run: so the kernel's buffers slow down who sends too much, also one that
 * waits in a reserve. What ends such a wait too early, a hang-up, comes as EPOLLRDHUP.
 *
 * Memory of buffers is counted for all clients together (struct clients), and is none for a
 * client that is idle:
 * - a body that came with its line in one read is run where it is. Another gets a buffer of
 *   its length if the limit allows; if not, it is swallowed. Who sends no byte of a body for
 *   BODY_IDLE_NS loses its buffer to others, so that nobody can keep all of it.
 * - what was read and not run is small, and smaller when there is much of it.
 * - a client with CLIENT_OUTPUT_MAX to be sent runs no commands until less is. When all outputs
 *   together are above @max_outputs, none that has any does; and those whose socket has been
 *   full for OUTPUT_IDLE_NS are ended. Above @end_outputs, the one whose socket has been full
 *   longest is ended at once. The largest output does not count there: one alone may be as
 *   large as what was asked for.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "client_private.h"
#include "log.h"

/* What one does in a turn, beside reading CLIENT_READ_SIZE. */
#define TURN_COMMANDS		128
#define TURN_BODY_BYTES		(256 * 1024)

/* So much is read when there is much that was read and not run. */
#define READ_SIZE_SHORT		1024

/* --- commands ------------------------------------------------------------------------ */

/* What the client has of its session, or asked for, is given back. */
void client_leave(struct client *client)
{
	if (client->left)
		return;
	client->left = true;
	session_destroy(&client->session);
}

static void client_close(struct client *client)
{
	client->state = CLIENT_CLOSING;
	client_leave(client);
}

static void run_command(struct client *client, const struct command *command,
			const void *body)
{
	client->state = CLIENT_LINE;
	if (!session_run(&client->session, command, body))
		client->state = CLIENT_WAIT;
}

/* @body has its \r\n, or should have. */
static void run_with_body(struct client *client, const struct command *command,
			  const char *body)
{
	if (memcmp(body + command->body_len, CRLF, CRLF_LEN)) {
		client->state = CLIENT_LINE;
		client_say(client, "EXPECTED_CRLF");
		return;
	}
	run_command(client, command, body);
}

/*
 * A command with a body, of which the bytes after its line may be here. Returns how many of
 * them were taken.
 */
static size_t take_body(struct client *client, const struct command *command,
			const char *data, size_t len)
{
	size_t needed = command->body_len + CRLF_LEN;

	if (command->body_len > client->clients->max_job_size) {
		client_swallow(client, needed, "JOB_TOO_BIG");
		return 0;
	}
	if (needed > len) {
		client_begin_body(client, command);
		return 0;
	}
	run_with_body(client, command, data);
	return needed;
}

/* Returns how many bytes behind the line were taken. */
static size_t take_line(struct client *client, const char *line, size_t line_len,
			const char *rest, size_t rest_len)
{
	struct command command;

	switch (command_parse(&command, line, line_len)) {
	case COMMAND_UNKNOWN:
		client_say(client, "UNKNOWN_COMMAND");
		return 0;
	case COMMAND_BAD_FORMAT:
		client_say(client, "BAD_FORMAT");
		return 0;
	case COMMAND_OK:
		break;
	}
	if (command.has_body)
		return take_body(client, &command, rest, rest_len);
	if (command.op == OP_QUIT)
		client_close(client);
	else
		run_command(client, &command, NULL);
	return 0;
}

/* --- bytes: each takes some of them, and returns how many; 0: it needs more ---------- */

/* Of bytes without the end of a line: all but what may be the first half of one. */
static size_t without_half_crlf(const char *data, size_t len)
{
	return len - (data[len - 1] == '\r');
}

static size_t step_line(struct client *client, const char *data, size_t len)
{
	size_t limit = len < LINE_MAX_LEN ? len : LINE_MAX_LEN;
	const char *end = memmem(data, limit, CRLF, CRLF_LEN);
	size_t taken;

	if (end) {
		taken = end - data + CRLF_LEN;
		client->nr_commands++;
		return taken + take_line(client, data, end - data, data + taken,
					 len - taken);
	}
	if (len < LINE_MAX_LEN)
		return 0;
	client->state = CLIENT_SKIP;
	return without_half_crlf(data, LINE_MAX_LEN);
}

static size_t step_skip(struct client *client, const char *data, size_t len)
{
	const char *end = memmem(data, len, CRLF, CRLF_LEN);

	if (!end)
		return without_half_crlf(data, len);
	client->state = CLIENT_LINE;
	client_say(client, "BAD_FORMAT");
	return end - data + CRLF_LEN;
}

/* The body is whole: run it, and give its memory back. */
static void end_body(struct client *client)
{
	run_with_body(client, &client->body->command, client->body->data);
	client_body_free(client);
}

/* @len bytes of the body have come. */
static void body_moved(struct client *client, size_t len)
{
	struct body *body = client->body;

	body->got += len;
	body->moved_ns = client_now_ns();
	TAILQ_REMOVE(&client->clients->filling, client, filling_entry);
	TAILQ_INSERT_TAIL(&client->clients->filling, client, filling_entry);
	if (body->got == body->len)
		end_body(client);
}

static size_t step_body(struct client *client, const char *data, size_t len)
{
	struct body *body = client->body;
	size_t taken = body->len - body->got < len ? body->len - body->got : len;

	memcpy(body->data + body->got, data, taken);
	body_moved(client, taken);
	return taken;
}

static size_t step_swallow(struct client *client, const char *data, size_t len)
{
	size_t taken = client->swallow < len ? client->swallow : len;

	(void)data;
	client->swallow -= taken;
	if (!client->swallow) {
		client->state = CLIENT_LINE;
		client_say(client, client->swallow_reply);
	}
	return taken;
}

/* May it run a command now? If not, something else puts it into the run list. */
static bool may_run(const struct client *client)
{
	const struct clients *clients = client->clients;
	size_t unsent = client->output.len;

	return !client->dead && !clients->stopping && client->state < CLIENT_WAIT &&
		unsent < CLIENT_OUTPUT_MAX && !(unsent && clients->outputs > clients->max_outputs);
}

/* Returns how many of the bytes were taken. */
static size_t consume(struct client *client, const char *data, size_t len)
{
	static size_t (*const steps[])(struct client *client, const char *data, size_t len) = {
		[CLIENT_LINE] = step_line,
		[CLIENT_SKIP] = step_skip,
		[CLIENT_BODY] = step_body,
		[CLIENT_SWALLOW] = step_swallow,
	};
	size_t done = 0;
	size_t taken;

	while (done < len && client->nr_commands < TURN_COMMANDS && may_run(client)) {
		taken = steps[client->state](client, data + done, len - done);
		if (!taken)
			break;
		done += taken;
		/* A few commands may take as long as many: then its share of the turn is used. */
		if (client_now_ns() >= client->clients->turn_end_ns)
			client->nr_commands = TURN_COMMANDS;
	}
	return done;
}

/* --- input --------------------------------------------------------------------------- */

void client_forget_kept(struct client *client)
{
	client->clients->inputs -= client->kept_size;
	free(client->kept);
	client->kept = NULL;
	client->kept_start = 0;
	client->kept_len = 0;
	client->kept_size = 0;
}

static void keep(struct client *client, const char *data, size_t len)
{
	if (!len || client->dead)
		return;
	client->kept = malloc(len);
	if (!client->kept) {
		log_say(LOG_WARNING, "a client is disconnected: no memory for its input");
		client_end(client);
		return;
	}
	memcpy(client->kept, data, len);
	client->kept_len = len;
	client->kept_size = len;
	client->clients->inputs += len;
}

static void consume_kept(struct client *client)
{
	size_t done;

	if (!client->kept)
		return;
	done = consume(client, client->kept + client->kept_start, client->kept_len);
	client->kept_start += done;
	client->kept_len -= done;
	if (!client->kept_len)
		client_forget_kept(client);
}

/*
 * Look at what a read returned. Fewer bytes than asked for were all that there were; but if
 * the other side hung up, there is the end of it to be read, of which no event comes.
 */
static bool read_ended_well(struct client *client, ssize_t got, size_t asked)
{
	if (got < 0 && errno == EINTR)
		return false;
	if (got < 0 && errno != EAGAIN) {
		client_end(client);
		return false;
	}
	if (!got)
		client_close(client);
	if (got < (ssize_t)asked && !(got > 0 && client->hung_up))
		client->readable = false;
	return got > 0;
}

static void read_body(struct client *client)
{
	struct body *body = client->body;
	size_t asked = body->len - body->got;
	ssize_t got;

	if (asked > TURN_BODY_BYTES)
		asked = TURN_BODY_BYTES;
	got = recv(client->source.fd, body->data + body->got, asked, MSG_DONTWAIT);
	if (read_ended_well(client, got, asked))
		body_moved(client, got);
}

/* What is kept is the beginning of a line here, or nothing. */
static void read_lines(struct client *client)
{
	struct clients *clients = client->clients;
	size_t size = clients->inputs > clients->max_inputs ? READ_SIZE_SHORT :
		CLIENT_READ_SIZE;
	size_t len = client->kept_len;
	ssize_t got;
	size_t done;

	if (len)
		memcpy(clients->scratch, client->kept + client->kept_start, len);
	got = recv(client->source.fd, clients->scratch + len, size - len, MSG_DONTWAIT);
	if (!read_ended_well(client, got, size - len))
		return;
	client_forget_kept(client);
	len += got;
	done = consume(client, clients->scratch, len);
	keep(client, clients->scratch + done, len - done);
}

/* It hung up while it waits: as beanstalkd, give no job to who may be gone. */
static void stop_waiting(struct client *client)
{
	client_say(client, "TIMED_OUT");
	client_close(client);
}

void client_run(struct client *client)
{
	client->nr_commands = 0;
	consume_kept(client);
	if (client->nr_commands < TURN_COMMANDS && client->readable && may_run(client)) {
		if (client->state == CLIENT_BODY)
			read_body(client);
		else
			read_lines(client);
	}
	if (client->state == CLIENT_WAIT && client->hung_up)
		stop_waiting(client);
	if (client->state == CLIENT_CLOSING && !client->output.len)
		client_end(client);
	if (client->nr_commands >= TURN_COMMANDS || (client->readable && may_run(client)))
		client_queue_run(client);
}

void client_ready(struct source *source, uint32_t events)
{
	struct client *client = container_of(source, struct client, source);

	if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		client->hung_up = true;
	if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		client->readable = true;
	if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
		client->writable = true;
	client_place_output(client);
	client_queue_run(client);
}
