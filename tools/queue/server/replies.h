/* SPDX-License-Identifier: GPL-2.0 */
/* Sending replies to clients, when the disk has what they promise. */
#ifndef QUEUE_SERVER_REPLIES_H
#define QUEUE_SERVER_REPLIES_H

#include "queue/server/state.h"

/* How the protocol replies to a client. */
extern const struct peer_ops client_ops;

/* Reply with a line of the server itself, without its \r\n. */
void client_say(struct client *client, const char *line);

/* Put a client into the list of its output, or take it out of any. */
void client_place_output(struct client *client);
void client_leave_out_list(struct client *client);

/* Free the unsent bytes. */
void client_forget_output(struct client *client);

/* The number of clients with replies that wait for the disk: 0, 1, or 2 for more. */
unsigned int clients_held(const struct clients *clients);

/* Before the changes of a turn are written: send to all clients what does not wait for the disk. */
void clients_send_at_once(struct clients *clients);

/* The end of a turn: send what may be sent to all clients. */
void clients_send(struct clients *clients);

#endif /* QUEUE_SERVER_REPLIES_H */
