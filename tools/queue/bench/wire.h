/* SPDX-License-Identifier: GPL-2.0 */
/* Connections: sockets, buffers, replies. An error ends the program. */
#ifndef QUEUE_BENCH_WIRE_H
#define QUEUE_BENCH_WIRE_H

#include "queue/bench/load.h"

/* A connected socket; -1, with errno: no server listens. */
int dial(const char *to);
void client_connect(struct client *client, struct load *load, const struct role *role);

/* Room for @len bytes to send; client_sent() tells how many were filled. */
char *client_room(struct client *client, size_t len);
void client_sent(struct client *client, size_t len);

/* The socket is ready: send bytes, read replies, and let the role continue. */
void client_turn(struct client *client);

#endif /* QUEUE_BENCH_WIRE_H */
