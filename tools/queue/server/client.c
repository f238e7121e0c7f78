// SPDX-License-Identifier: GPL-2.0
/*
 * The input of a client: its bytes become commands.
 *
 *	                                   quit, end of input, LF alone, line too long,
 *	                                   wrong in a way that hides where the next begins
 *	                           LINE ------------------------------------> CLOSING
 *	                           | ^ |                                        ^
 *	                           | | +-- the session waits --> WAIT           |
 *	                           | |                            |  |          |
 *	                           | +------- resume -------------+  +-- hangs -+
 *	                           | |                                  up: TIMED_OUT
 *	     body is incomplete,   | | complete: run it
 *	     or the store is behind v |
 *	                          BODY -- the store is behind --> STALLED -- not any more: run it
 *	                           |
 *	                           +------- idle, and others need its memory
 *	     body too big, its     |            |
 *	     line wrong, no memory v            v
 *	        LINE ----------> SWALLOW <------+
 *	          ^                |
 *	          +--- all gone ---+  JOB_TOO_BIG, BAD_FORMAT, OUT_OF_MEMORY
 *
 * A line ends with \r\n. At an LF alone the reply is EXPECTED_CRLF and the connection closes:
 * otherwise a client that sends LF would wait for its reply for ever.
 *
 * CLOSING ends when all replies are sent. Any error of the socket ends the client:
 * client_end() puts it into the list of dead clients, and one place destroys these, at the end
 * of a turn, so no pointer to a destroyed client is left.
 *
 * Polling is edge-triggered: @readable and @writable have the last word of the kernel, until a
 * read or a write says otherwise. A client that may have something to do is in the run list. In
 * its turn it reads CLIENT_READ_SIZE bytes, runs at most TURN_COMMANDS commands of them, fewer
 * if they take longer than its share of the time, and goes to the end of the list. Bytes that
 * were read and not run are kept, and it reads nothing more before they are run: the kernel's
 * buffers slow down a client that sends too much, or that sends while it waits in a reserve.
 * EPOLLRDHUP tells when such a client hangs up.
 *
 * Limits of buffers are for all clients together (struct clients). An idle client has none:
 * - A body that came in the same read as its line is run from there. Another body gets a buffer
 *   of its length, or is swallowed if the limit is reached. A client that sends no byte of its
 *   body for BODY_IDLE_NS, or not all of it in BODY_WHOLE_NS, loses the buffer if others need
 *   memory.
 * - Bytes that were read and not run are few, and fewer when all clients have many of them.
 * - A client with CLIENT_OUTPUT_MAX unsent bytes runs no commands. When all outputs together
 *   exceed @max_outputs, no client with unsent bytes runs commands, and clients whose socket
 *   has been full for OUTPUT_IDLE_NS are disconnected. Above @end_outputs, the client whose
 *   socket has been full longest is disconnected at once. The largest output does not count
 *   for this limit: one reply may be as large as its command asks for.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "common/util.h"
#include "queue/protocol/run.h"
#include "queue/server/body.h"
#include "queue/server/client.h"
#include "queue/server/clients.h"
#include "queue/server/replies.h"
#include "queue/store/writer.h"

/* Limits of a turn of a client, beside CLIENT_READ_SIZE. */
#define TURN_COMMANDS		128
#define TURN_BODY_BYTES		(256 * 1024)

/* The size of a read when all clients have many bytes that were read and not run. */
#define READ_SIZE_SHORT		1024

/* A client with this many unsent bytes runs no commands. */
#define CLIENT_OUTPUT_MAX	(256 * 1024)

/* --- commands ------------------------------------------------------------------------ */

void client_leave(struct client *client)
{
	if (client->left)
		return;
	client->left = true;
	peer_destroy(&client->peer);
}

static void client_close(struct client *client)
{
	client->state = CLIENT_CLOSING;
	client_leave(client);
}

void client_hung_up(struct client *client)
{
	if (!client->left)
		peer_hung_up(&client->peer);
}

static void run_command(struct client *client, const struct command *command,
			const void *body)
{
	client->state = CLIENT_LINE;
	if (!peer_run(&client->peer, command, body))
		client->state = CLIENT_WAIT;
}

/* @body has two bytes more, which must be \r\n. */
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

/* While the store is behind with writing, those who put wait, so that others need not. */
static void client_stall(struct client *client)
{
	client->state = CLIENT_STALLED;
	TAILQ_INSERT_TAIL(&client->clients->stalled, client, stalled_entry);
}

void client_leave_stalled(struct client *client)
{
	if (client->state != CLIENT_STALLED)
		return;
	client->state = CLIENT_BODY;
	TAILQ_REMOVE(&client->clients->stalled, client, stalled_entry);
}

/*
 * A command with a body: @data has the bytes behind its line. Returns how many of them are
 * used.
 */
static size_t begin_body(struct client *client, const struct command *command,
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
	if (store_writer_is_behind(client->clients->store) &&
	    client_keep_body(client, command, data))
		client_stall(client);
	else
		run_with_body(client, command, data);
	return needed;
}

/* A body that may follow a line that is wrong must not be taken for commands. */
static void refuse_line(struct client *client, const struct command *command,
			const char *reply)
{
	if (command->has_body) {
		client_swallow(client, command->body_len + CRLF_LEN, reply);
		return;
	}
	client_say(client, reply);
	if (command->close)
		client_close(client);
}

/* Returns how many bytes behind the line are used. */
static size_t run_line(struct client *client, const char *line, size_t line_len,
		       const char *rest, size_t rest_len)
{
	struct command command;

	switch (command_parse(&command, line, line_len)) {
	case COMMAND_UNKNOWN:
		refuse_line(client, &command, "UNKNOWN_COMMAND");
		return 0;
	case COMMAND_BAD_FORMAT:
		refuse_line(client, &command, "BAD_FORMAT");
		return 0;
	case COMMAND_OK:
		break;
	}
	if (command.has_body)
		return begin_body(client, &command, rest, rest_len);
	if (command.op == OP_QUIT) {
		client_hung_up(client);
		client_close(client);
	} else {
		run_command(client, &command, NULL);
	}
	return 0;
}

/* --- bytes: each step uses some of them, and returns how many; 0: it needs more ------- */

/* The length of the line that ends with @lf, without its \r; -1: it has none. */
static ssize_t length_of_line(const char *data, const char *lf)
{
	return lf > data && lf[-1] == '\r' ? lf - data - 1 : -1;
}

/* Where the next line begins is not known. All bytes that came are thrown away. */
static size_t refuse_all(struct client *client, size_t len, const char *reply)
{
	client_say(client, reply);
	client_close(client);
	return len;
}

static size_t step_line(struct client *client, const char *data, size_t len)
{
	size_t max = command_line_max(data, len);
	const char *lf = memchr(data, '\n', len < max ? len : max);
	size_t taken;

	if (!lf && len < max)
		return 0;
	if (!lf)
		return refuse_all(client, len, "BAD_FORMAT");
	if (length_of_line(data, lf) < 0)
		return refuse_all(client, len, "EXPECTED_CRLF");
	taken = lf + 1 - data;
	client->nr_commands++;
	return taken + run_line(client, data, length_of_line(data, lf), lf + 1, len - taken);
}

/* The body is complete: run its command, and free its memory. */
static void run_body(struct client *client)
{
	run_with_body(client, &client->body->command, client->body->data);
	client_body_free(client);
}

static void end_body(struct client *client)
{
	if (store_writer_is_behind(client->clients->store))
		client_stall(client);
	else
		run_body(client);
}

void client_go_on(struct client *client)
{
	client_leave_stalled(client);
	run_body(client);
	client_queue_run(client);
}

/* @len bytes of the body have come. */
static void body_moved(struct client *client, size_t len)
{
	struct body *body = client->body;

	body->got += len;
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

/* May it run a command now? If not, it comes into the run list when it may. */
static bool may_run(const struct client *client)
{
	const struct clients *clients = client->clients;
	size_t unsent = client->output.len;

	return !client->dead && !clients->stopping && client->state < CLIENT_WAIT &&
		unsent < CLIENT_OUTPUT_MAX && !(unsent && clients->outputs > clients->max_outputs);
}

/* Run what the bytes say. Returns how many of them are used. */
static size_t consume(struct client *client, const char *data, size_t len)
{
	static size_t (*const steps[])(struct client *client, const char *data, size_t len) = {
		[CLIENT_LINE] = step_line,
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
		/* A few commands may take long: then its turn is over too. */
		if (time_now_ns(CLOCK_MONOTONIC) >= client->clients->share_end_ns)
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

static void keep_input(struct client *client, const char *data, size_t len)
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
 * Handle the result of a read; true: it has read bytes. Fewer bytes than asked for mean that
 * the socket is empty. If the other side has hung up, the end of its bytes is left to be read,
 * and no event comes for that.
 */
static bool has_read(struct client *client, ssize_t got, size_t asked)
{
	if (got < 0 && errno == EINTR)
		return false;
	if (got < 0 && errno != EAGAIN) {
		client_hung_up(client);
		client_end(client);
		return false;
	}
	if (!got) {
		client_hung_up(client);
		client_close(client);
	}
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
	if (has_read(client, got, asked))
		body_moved(client, got);
	else if (client->state == CLIENT_CLOSING)
		client_body_free(client);
}

/* The kept bytes are the beginning of a line, or none. */
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
	if (!has_read(client, got, size - len))
		return;
	client_forget_kept(client);
	len += got;
	done = consume(client, clients->scratch, len);
	keep_input(client, clients->scratch + done, len - done);
}

/* It hung up while it waits. Like beanstalkd, give it no job: it may be gone. */
static void stop_waiting(struct client *client)
{
	client_say(client, "TIMED_OUT");
	client_hung_up(client);
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
	/* A kick goes on, and so do the commands behind it. */
	if (client->state == CLIENT_WAIT && client->peer.session.waiting && client->hung_up)
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
