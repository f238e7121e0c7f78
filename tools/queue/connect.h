/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A connection to a daemon, for subcommands that ask it something. Whatever goes wrong
 * ends the program with a message and EXIT_CANNOT: there is nothing else to do then.
 */
#ifndef TWHEELQ_CONNECT_H
#define TWHEELQ_CONNECT_H

/* A daemon that says nothing for so long is taken for gone. */
#define CONNECT_TIMEOUT_S	10

struct connection;

/* To an address as address_parse() understands it. */
struct connection *connection_open(const char *address);

void connection_close(struct connection *connection);

/* Send a command, without waiting for its answer. More may be sent before that is taken. */
void connection_send(struct connection *connection, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Take the answer of the first command that has none yet: the bytes that came with OK,
 * which are the caller's to free, or NULL where it was NOT_FOUND.
 */
char *connection_receive(struct connection *connection);

#endif /* TWHEELQ_CONNECT_H */
