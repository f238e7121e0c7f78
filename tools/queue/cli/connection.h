/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A connection from a subcommand to a daemon. Every error ends the program with a message and
 * EXIT_CANNOT; a wrong address, with EXIT_USAGE.
 */
#ifndef QUEUE_CLI_CONNECTION_H
#define QUEUE_CLI_CONNECTION_H

/* The longest time without an answer, and for a round of answers. */
#define CONNECT_TIMEOUT_S	10

struct connection;

/**
 * struct answer - an answer of the daemon
 * @line: its line. A "?" stands for a byte that a terminal would take for a command.
 * @body: what follows the line, as it came, and a NUL; or NULL. The caller frees it.
 * @len: length of @body.
 */
struct answer {
	char line[512];
	char *body;
	size_t len;
};

/* Connect to an address in the form of address_parse(). */
struct connection *connection_open(const char *address);

void connection_close(struct connection *connection);

/* Send a command without waiting for its answer. Several may be in flight. */
void connection_send(struct connection *connection, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Send the bytes that follow a command. */
void connection_send_body(struct connection *connection, const void *body, size_t len);

/* The next answers may take as long as they like. */
void connection_wait_long(struct connection *connection);

/*
 * From the begin of a round to its end, the daemon has CONNECT_TIMEOUT_S for all answers
 * together, however many they are. Elsewhere it has that time for each.
 */
void connection_begin_round(struct connection *connection);
void connection_end_round(struct connection *connection);

/* Receive the answer to the oldest command in flight. */
void connection_answer(struct connection *connection, struct answer *answer);

/* End the program because of an answer that is an error, or not one of a daemon. */
void connection_refused(const struct connection *connection, const char *line)
	__attribute__((noreturn));

/*
 * Receive the answer to the oldest command in flight: the bytes after OK, which the caller
 * frees, or NULL for NOT_FOUND.
 */
char *connection_receive(struct connection *connection);

#endif /* QUEUE_CLI_CONNECTION_H */
