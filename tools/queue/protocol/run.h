/* SPDX-License-Identifier: GPL-2.0 */
/* Running commands: the checks, the change and the reply of each. */
#ifndef QUEUE_PROTOCOL_RUN_H
#define QUEUE_PROTOCOL_RUN_H

#include "queue/protocol/peer.h"

/*
 * Run a command. @body has the bytes of its body, which stay the caller's; NULL: it has none.
 * Exactly one reply is given by peer_ops.reply(): before this returns true, or later. If this
 * returns false the peer waits: no other command may be run before peer_ops.resume() is
 * called. OP_QUIT is the caller's.
 */
bool peer_run(struct peer *peer, const struct command *command, const void *body);

#endif /* QUEUE_PROTOCOL_RUN_H */
