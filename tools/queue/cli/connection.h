/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A connection from a subcommand to a daemon. Every error ends the program with a message and
 * EXIT_CANNOT; a wrong address, with EXIT_USAGE.
 */
#ifndef QUEUE_CLI_CONNECTION_H
#define QUEUE_CLI_CONNECTION_H

/* The longest time without an answer. */
#define CONNECT_TIMEOUT_S	10

struct connection;

/* Connect to an address in the form of address_parse(). */
struct connection *connection_open(const char *address);

void connection_close(struct connection *connection);

/* Send a command without waiting for its answer. Several may be in flight. */
void connection_send(struct connection *connection, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Receive the answer to the oldest command in flight: the bytes after OK, which the caller
 * frees, or NULL for NOT_FOUND.
 */
char *connection_receive(struct connection *connection);

#endif /* QUEUE_CLI_CONNECTION_H */
