/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sockets on which clients come: addresses that were asked for, and what systemd passes.
 */
#ifndef TWHEELQ_LISTEN_H
#define TWHEELQ_LISTEN_H

#include <bsd/sys/queue.h>
#include <sys/types.h>
#include "address.h"
#include "source.h"

/**
 * struct listener - a socket on which clients come
 * @source: the socket.
 * @server: whose it is, while that runs.
 * @is_tcp: it is no unix socket.
 * @made: it is a unix socket with a file that we made, and remove.
 * @dev: of that file.
 * @ino: of that file.
 * @name: its address.
 * @entry: in the list.
 */
struct listener {
	struct source source;
	struct server *server;
	bool is_tcp;
	bool made;
	dev_t dev;
	ino_t ino;
	char name[ADDRESS_TEXT];
	TAILQ_ENTRY(listener) entry;
};

TAILQ_HEAD(listeners, listener);

/*
 * Listen on an address as address_parse() understands it; a unix socket's file gets @mode.
 * The file of one that nobody answers on is replaced. Returns NULL, or what is wrong, in
 * words that follow the address in a message.
 */
const char *listen_open(struct listeners *listeners, const char *text, mode_t mode);

/*
 * Take the sockets that systemd passes. Returns NULL, or what is wrong with one of them;
 * whether there were any, @listeners tells.
 */
const char *listen_inherit(struct listeners *listeners);

/* Close all, and remove the files that we made. */
void listen_close(struct listeners *listeners);

#endif /* TWHEELQ_LISTEN_H */
