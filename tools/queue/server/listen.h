/* SPDX-License-Identifier: GPL-2.0 */
/* Listening sockets: those of --listen, and those that systemd passes. */
#ifndef QUEUE_SERVER_LISTEN_H
#define QUEUE_SERVER_LISTEN_H

#include <bsd/sys/queue.h>
#include <sys/types.h>
#include "common/address.h"
#include "queue/server/source.h"

/**
 * struct listener - a listening socket
 * @source: the socket.
 * @server: the server that accepts from it, while that runs.
 * @is_tcp: it is a TCP socket, not a unix socket.
 * @is_local: only programs of this machine can connect to it.
 * @made: it is a unix socket whose file we made, and must remove.
 * @dev: of that file.
 * @ino: of that file.
 * @name: its address.
 * @entry: in the list.
 */
struct listener {
	struct source source;
	struct server *server;
	bool is_tcp;
	bool is_local;
	bool made;
	dev_t dev;
	ino_t ino;
	char name[ADDRESS_TEXT];
	TAILQ_ENTRY(listener) entry;
};

TAILQ_HEAD(listeners, listener);

/*
 * Listen on an address, as address_parse() reads it. The file of a unix socket gets @mode; one
 * that no process listens on is replaced. Returns NULL, or the error, in words that follow the
 * address in a message.
 */
const char *listen_open(struct listeners *listeners, const char *text, mode_t mode);

/*
 * Take over the sockets that systemd passes, if there are any. Returns NULL, or what is wrong
 * with one of them.
 */
const char *listen_inherit(struct listeners *listeners);

/* Close all listeners, and remove the files that we made. */
void listen_close(struct listeners *listeners);

#endif /* QUEUE_SERVER_LISTEN_H */
