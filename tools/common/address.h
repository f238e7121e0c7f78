/* SPDX-License-Identifier: GPL-2.0 */
/* Addresses of sockets as text, to listen on or to connect to. */
#ifndef COMMON_ADDRESS_H
#define COMMON_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* The default address of twheelq. */
#define ADDRESS_DEFAULT		"127.0.0.1:11300"
#define ADDRESS_DEFAULT_PORT	"11300"

/* Room for the text that address_format() writes. */
#define ADDRESS_TEXT		128

/**
 * struct address - the address of a socket
 * @socket: as bind() and connect() take it.
 * @len: its length in bytes.
 */
struct address {
	struct sockaddr_storage socket;
	socklen_t len;
};

/*
 * Parse "HOST:PORT", "[HOST]:PORT" or "unix:PATH". ":PORT" and "PORT" are on the loopback
 * interface, and "HOST" has the port @port. Returns NULL, or what is wrong with the text, in
 * words that follow the text in a message.
 */
const char *address_parse(struct address *address, const char *text, const char *port);

/* The same, but its host is not looked up. */
const char *address_check(const char *text);

/* Can only programs of this machine connect to it: a unix socket, or the loopback interface? */
bool address_is_local(const struct address *address);

/* Write an address as text; returns @text. */
const char *address_format(char text[ADDRESS_TEXT], const struct address *address);

#endif /* COMMON_ADDRESS_H */
