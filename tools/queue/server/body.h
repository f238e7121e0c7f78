/* SPDX-License-Identifier: GPL-2.0 */
/* Memory for incomplete bodies, which all clients share. */
#ifndef QUEUE_SERVER_BODY_H
#define QUEUE_SERVER_BODY_H

#include "queue/server/state.h"

/* Bytes of memory for a body of this length. */
size_t client_body_memory(uint64_t len);

/* Begin to read a body. Without memory for it, begin to swallow it. */
void client_begin_body(struct client *client, const struct command *command);

/* Keep a body that is complete. Returns false if there is no memory for it. */
bool client_keep_body(struct client *client, const struct command *command, const char *data);

/* Free the memory of its body, if it has one. */
void client_body_free(struct client *client);

/* Throw away the next @len bytes, then reply. */
void client_swallow(struct client *client, uint64_t len, const char *reply);

#endif /* QUEUE_SERVER_BODY_H */
