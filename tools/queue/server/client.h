/* SPDX-License-Identifier: GPL-2.0 */
/* The input of a client: its bytes become commands, which are run. */
#ifndef QUEUE_SERVER_CLIENT_H
#define QUEUE_SERVER_CLIENT_H

#include "queue/server/state.h"

/* A turn of the client. */
void client_run(struct client *client);

/* epoll has events of its socket. */
void client_ready(struct source *source, uint32_t events);

/* Run the put that waited for the store; or take the client off the list of those who wait. */
void client_go_on(struct client *client);
void client_leave_stalled(struct client *client);

/* The client itself has ended the connection, and not the daemon. */
void client_hung_up(struct client *client);

/* Destroy its peer, if that has not been done: its jobs are given back. */
void client_leave(struct client *client);

/* Free the bytes that were read and not run. */
void client_forget_kept(struct client *client);

#endif /* QUEUE_SERVER_CLIENT_H */
