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
 * - a client with OUTPUT_MAX to be sent runs no commands until less is. When all outputs
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
#include <time.h>
#include <unistd.h>

#include "client.h"
#include "log.h"
#include "store.h"

#define NS_PER_S		1000000000ULL

/* A turn of all clients, and of one. */
#define TURN_NS			1000000ULL
#define TURN_COMMANDS		128
#define TURN_BODY_BYTES		(256 * 1024)

#define OUTPUT_MAX		(256 * 1024)
#define READ_SIZE_SHORT		1024
#define BODY_IDLE_NS		(5 * NS_PER_S)
#define OUTPUT_IDLE_NS		(10 * NS_PER_S)

static const char crlf[] = "\r\n";
#define CRLF_LEN		2

enum client_state {
	CLIENT_LINE,
	CLIENT_SKIP,
	CLIENT_BODY,
	CLIENT_SWALLOW,
	CLIENT_WAIT,
	CLIENT_CLOSING
};

/**
 * struct body - a body that is not whole yet
 * @command: what it is for.
 * @len: its bytes with the \r\n.
 * @got: how many have come.
 * @moved_ns: when the last came.
 * @data: they are here.
 */
struct body {
	struct command command;
	size_t len;
	size_t got;
	uint64_t moved_ns;
	char data[];
};

/**
 * struct client - a connection
 * @source: its socket.
 * @session: what the queue knows of it.
 * @clients: all of them.
 * @state: see above.
 * @readable: a read may give something.
 * @writable: a write may take something.
 * @hung_up: the other side sends nothing more, or is gone.
 * @left: its session is destroyed.
 * @dead: it is to be destroyed.
 * @in_run: it is in the run list.
 * @out_list: in which list of output it is, or NULL.
 * @full_ns: since when its socket is full, if that is the list.
 * @nr_commands: what it has run in this turn.
 * @kept: what was read and is not run, NULL if there is nothing.
 * @kept_start: where in it that begins.
 * @kept_len: how much it is.
 * @kept_size: bytes of memory.
 * @body: CLIENT_BODY: what there is of it.
 * @swallow: CLIENT_SWALLOW: how many bytes are to come.
 * @swallow_reply: and what is said then.
 * @output: what is to be sent.
 */
struct client {
	struct source source;
	struct session session;
	struct clients *clients;
	enum client_state state;
	bool readable;
	bool writable;
	bool hung_up;
	bool left;
	bool dead;
	bool in_run;
	struct client_list *out_list;
	uint64_t full_ns;
	unsigned int nr_commands;
	char *kept;
	size_t kept_start;
	size_t kept_len;
	size_t kept_size;
	struct body *body;
	uint64_t swallow;
	const char *swallow_reply;
	struct output output;
	TAILQ_ENTRY(client) all_entry;
	TAILQ_ENTRY(client) run_entry;	/* also of the dead */
	TAILQ_ENTRY(client) out_entry;
	TAILQ_ENTRY(client) filling_entry;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* --- lists --------------------------------------------------------------------------- */

static void queue_run(struct client *client)
{
	if (client->in_run || client->dead)
		return;
	client->in_run = true;
	TAILQ_INSERT_TAIL(&client->clients->run, client, run_entry);
}

static void leave_run(struct client *client)
{
	if (!client->in_run)
		return;
	client->in_run = false;
	TAILQ_REMOVE(&client->clients->run, client, run_entry);
}

static void leave_out_list(struct client *client)
{
	if (client->out_list)
		TAILQ_REMOVE(client->out_list, client, out_entry);
	client->out_list = NULL;
}

static struct client_list *right_out_list(struct client *client)
{
	struct clients *clients = client->clients;

	if (client->dead || !client->output.len)
		return NULL;
	if (!output_sendable(&client->output, clients->synced))
		return &clients->held;
	return client->writable ? &clients->sending : &clients->full;
}

/* Into the list that its output belongs to. */
static void place_output(struct client *client)
{
	struct client_list *list = right_out_list(client);

	if (list == client->out_list)
		return;
	leave_out_list(client);
	client->out_list = list;
	if (!list)
		return;
	TAILQ_INSERT_TAIL(list, client, out_entry);
	if (list == &client->clients->full)
		client->full_ns = now_ns();
}

/* To be destroyed at the end of the turn. */
static void client_end(struct client *client)
{
	if (client->dead)
		return;
	leave_run(client);
	leave_out_list(client);
	client->dead = true;
	TAILQ_INSERT_TAIL(&client->clients->dead, client, run_entry);
}

/* --- output -------------------------------------------------------------------------- */

static void count_output(struct client *client, size_t before)
{
	client->clients->outputs += output_memory(&client->output) - before;
}

static void forget_output(struct client *client)
{
	size_t memory = output_memory(&client->output);

	output_free(&client->output);
	count_output(client, memory);
}

/* Send what may be sent; as it makes room, commands may be run again. */
static void client_send(struct client *client)
{
	struct output *output = &client->output;
	size_t memory = output_memory(output);
	size_t len = output_sendable(output, client->clients->synced);
	ssize_t sent;

	if (!len || !client->writable || client->dead)
		return;
	sent = send(client->source.fd, output_data(output), len, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (sent < 0 && errno != EAGAIN && errno != EINTR) {
		client_end(client);
		return;
	}
	client->writable = sent == (ssize_t)len || (sent < 0 && errno == EINTR);
	if (sent > 0) {
		output_sent(output, sent);
		count_output(client, memory);
		queue_run(client);
	}
	place_output(client);
}

static void client_reply(struct client *client, uint64_t seq, const struct iovec *parts,
			 size_t nr_parts)
{
	struct clients *clients = client->clients;
	size_t memory = output_memory(&client->output);

	if (client->dead || client->left)
		return;
	if (!output_append(&client->output, seq, clients->synced, parts, nr_parts)) {
		log_say(LOG_WARNING, "a client is disconnected: no memory for its reply");
		client_end(client);
		return;
	}
	count_output(client, memory);
	place_output(client);
	/* Many waiting clients may get large jobs at once. */
	if (clients->outputs > clients->max_outputs)
		client_send(client);
}

/* Say something of our own: @line without its end. */
static void client_say(struct client *client, const char *line)
{
	const struct iovec parts[] = {
		{ (void *)line, strlen(line) }, { (void *)crlf, CRLF_LEN },
	};

	client_reply(client, 0, parts, 2);
}

void session_reply(struct session *session, uint64_t seq, const char *line,
		   const void *body, size_t len)
{
	const struct iovec parts[] = {
		{ (void *)line, strlen(line) }, { (void *)body, len },
		{ (void *)crlf, CRLF_LEN },
	};

	client_reply(container_of(session, struct client, session), seq, parts, body ? 3 : 1);
}

void session_resume(struct session *session)
{
	struct client *client = container_of(session, struct client, session);

	if (client->state != CLIENT_WAIT)
		return;
	client->state = CLIENT_LINE;
	queue_run(client);
}

/* --- bodies -------------------------------------------------------------------------- */

static size_t body_memory(uint64_t len)
{
	return sizeof(struct body) + len + CRLF_LEN;
}

static void body_free(struct client *client)
{
	if (!client->body)
		return;
	TAILQ_REMOVE(&client->clients->filling, client, filling_entry);
	client->clients->bodies -= body_memory(client->body->command.body_len);
	free(client->body);
	client->body = NULL;
}

/* Throw away @len bytes, and say @reply then. */
static void swallow(struct client *client, uint64_t len, const char *reply)
{
	client->state = CLIENT_SWALLOW;
	client->swallow = len;
	client->swallow_reply = reply;
}

/* Take the memory of clients that began to send a body and do not go on. */
static void take_idle_bodies(struct clients *clients, size_t needed)
{
	uint64_t now = now_ns();
	struct client *client;

	while (clients->bodies + needed > clients->max_bodies) {
		client = TAILQ_FIRST(&clients->filling);
		if (!client || now - client->body->moved_ns < BODY_IDLE_NS)
			return;
		swallow(client, client->body->len - client->body->got, "OUT_OF_MEMORY");
		body_free(client);
	}
}

static struct body *body_alloc(struct clients *clients, const struct command *command)
{
	size_t memory = body_memory(command->body_len);
	struct body *body;

	if (clients->bodies + memory > clients->max_bodies)
		take_idle_bodies(clients, memory);
	if (clients->bodies + memory > clients->max_bodies)
		return NULL;
	body = malloc(memory);
	if (!body)
		return NULL;
	clients->bodies += memory;
	body->command = *command;
	body->len = command->body_len + CRLF_LEN;
	body->got = 0;
	body->moved_ns = now_ns();
	return body;
}

static void begin_body(struct client *client, const struct command *command)
{
	client->body = body_alloc(client->clients, command);
	if (!client->body) {
		swallow(client, command->body_len + CRLF_LEN, "OUT_OF_MEMORY");
		return;
	}
	client->state = CLIENT_BODY;
	TAILQ_INSERT_TAIL(&client->clients->filling, client, filling_entry);
}

/* --- commands ------------------------------------------------------------------------ */

/* What the client has of its session, or asked for, is given back. */
static void client_leave(struct client *client)
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
	if (memcmp(body + command->body_len, crlf, CRLF_LEN)) {
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
		swallow(client, needed, "JOB_TOO_BIG");
		return 0;
	}
	if (needed > len) {
		begin_body(client, command);
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
	const char *end = memmem(data, limit, crlf, CRLF_LEN);
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
	const char *end = memmem(data, len, crlf, CRLF_LEN);

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
	body_free(client);
}

/* @len bytes of the body have come. */
static void body_moved(struct client *client, size_t len)
{
	struct body *body = client->body;

	body->got += len;
	body->moved_ns = now_ns();
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
		unsent < OUTPUT_MAX && !(unsent && clients->outputs > clients->max_outputs);
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
	}
	return done;
}

/* --- input --------------------------------------------------------------------------- */

static void forget_kept(struct client *client)
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
		forget_kept(client);
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
	forget_kept(client);
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

static void client_run(struct client *client)
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
		queue_run(client);
}

static void client_ready(struct source *source, uint32_t events)
{
	struct client *client = container_of(source, struct client, source);

	if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		client->hung_up = true;
	if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		client->readable = true;
	if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
		client->writable = true;
	place_output(client);
	queue_run(client);
}

struct source *client_create(struct clients *clients, int fd)
{
	struct client *client = calloc(1, sizeof(*client));

	if (!client || session_init(&client->session, clients->queue)) {
		free(client);
		close(fd);
		return NULL;
	}
	client->source = (struct source){ .fd = fd, .ready = client_ready };
	client->clients = clients;
	client->writable = true;
	clients->nr++;
	TAILQ_INSERT_TAIL(&clients->all, client, all_entry);
	return &client->source;
}

static void client_destroy(struct client *client)
{
	struct clients *clients = client->clients;

	client_leave(client);
	leave_run(client);
	leave_out_list(client);
	body_free(client);
	forget_kept(client);
	forget_output(client);
	clients->nr--;
	TAILQ_REMOVE(&clients->all, client, all_entry);
	close(client->source.fd);
	free(client);
}

/* --- all of them --------------------------------------------------------------------- */

void clients_init(struct clients *clients, const struct clients_config *config,
		  struct queue *queue, struct store *store)
{
	memset(clients, 0, sizeof(*clients));
	clients->queue = queue;
	clients->store = store;
	clients->max_job_size = config->max_job_size;
	clients->max_bodies = config->memory / 2;
	clients->max_inputs = config->memory / 8;
	clients->max_outputs = config->memory / 8;
	clients->end_outputs = config->memory / 4;
	TAILQ_INIT(&clients->all);
	TAILQ_INIT(&clients->run);
	TAILQ_INIT(&clients->sending);
	TAILQ_INIT(&clients->held);
	TAILQ_INIT(&clients->full);
	TAILQ_INIT(&clients->filling);
	TAILQ_INIT(&clients->dead);
}

uint64_t clients_max_job_size(size_t memory)
{
	return memory / 2 > body_memory(0) ? memory / 2 - body_memory(0) : 0;
}

/* Destroying one may give jobs to others, and so end them too. */
static void bury_dead(struct clients *clients)
{
	struct client *client;

	while ((client = TAILQ_FIRST(&clients->dead))) {
		TAILQ_REMOVE(&clients->dead, client, run_entry);
		client_destroy(client);
	}
}

void clients_run(struct clients *clients)
{
	struct client *last = TAILQ_LAST(&clients->run, client_list);
	uint64_t end_ns = now_ns() + TURN_NS;
	struct client *client;

	while ((client = TAILQ_FIRST(&clients->run))) {
		leave_run(client);
		client_run(client);
		if (client == last || now_ns() >= end_ns)
			break;
	}
	bury_dead(clients);
}

static void release_held(struct clients *clients)
{
	uint64_t synced = store_synced(clients->store);
	struct client *client, *next;

	if (synced == clients->synced)
		return;
	clients->synced = synced;
	TAILQ_FOREACH_SAFE(client, &clients->held, out_entry, next)
		place_output(client);
}

static size_t largest_output(const struct clients *clients)
{
	const struct client *client;
	size_t largest = 0;

	TAILQ_FOREACH(client, &clients->full, out_entry)
		if (output_memory(&client->output) > largest)
			largest = output_memory(&client->output);
	return largest;
}

/* Is the client at the head of @full to be ended, so that there is memory for others? */
static bool is_too_slow(const struct clients *clients, const struct client *slowest)
{
	if (clients->outputs <= clients->max_outputs)
		return false;
	if (now_ns() - slowest->full_ns >= OUTPUT_IDLE_NS)
		return true;
	return clients->outputs > clients->end_outputs &&
		clients->outputs - largest_output(clients) > clients->end_outputs;
}

static void end_slow(struct clients *clients)
{
	struct client *slowest;

	while ((slowest = TAILQ_FIRST(&clients->full)) && is_too_slow(clients, slowest)) {
		log_say(LOG_WARNING, "a client is disconnected: it does not read %zu bytes",
			slowest->output.len);
		client_end(slowest);
		forget_output(slowest);
	}
}

void clients_send(struct clients *clients)
{
	struct client *client, *next;

	release_held(clients);
	TAILQ_FOREACH_SAFE(client, &clients->sending, out_entry, next)
		client_send(client);
	end_slow(clients);
}

bool clients_busy(const struct clients *clients)
{
	return !TAILQ_EMPTY(&clients->run) || !TAILQ_EMPTY(&clients->dead) ||
		!TAILQ_EMPTY(&clients->sending);
}

bool clients_all_sent(const struct clients *clients)
{
	return !clients->outputs;
}

void clients_stop(struct clients *clients)
{
	clients->stopping = true;
}

void clients_destroy(struct clients *clients)
{
	struct client *client, *next;

	TAILQ_FOREACH_SAFE(client, &clients->all, all_entry, next)
		client_end(client);
	bury_dead(clients);
}
