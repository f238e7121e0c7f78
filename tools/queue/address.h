/* SPDX-License-Identifier: GPL-2.0 */
/* Addresses of sockets as text: where to listen, where to connect to. */
#ifndef TWHEELQ_ADDRESS_H
#define TWHEELQ_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* Where clients find the daemon, unless another address is told. */
#define ADDRESS_DEFAULT		"127.0.0.1:11300"
#define ADDRESS_DEFAULT_PORT	"11300"

/* Room for what address_format() writes. */
#define ADDRESS_TEXT		128

/**
 * struct address - where a socket is
 * @socket: its address, as bind() and connect() take it.
 * @len: bytes of that.
 */
struct address {
	struct sockaddr_storage socket;
	socklen_t len;
};

/*
 * Understand "HOST:PORT", "[HOST]:PORT", ":PORT" and "PORT", which are of the loopback
 * interface, "HOST", which has the port @port, and "unix:PATH". Returns NULL, or what is
 * wrong with it, in words that follow the text itself in a message.
 */
const char *address_parse(struct address *address, const char *text, const char *port);

/* The text of it. */
const char *address_format(char text[ADDRESS_TEXT], const struct address *address);

#endif /* TWHEELQ_ADDRESS_H */
