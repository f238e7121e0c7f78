/* SPDX-License-Identifier: GPL-2.0 */
/* Writing YAML: the body of the replies to stats and list commands. */
#ifndef QUEUE_PROTOCOL_YAML_H
#define QUEUE_PROTOCOL_YAML_H

#include <stdint.h>
#include <stdio.h>

#include "queue/protocol/peer.h"

/**
 * struct yaml - a body that is being written
 * @file: writes to @text.
 * @text: the body so far.
 * @len: its bytes.
 */
struct yaml {
	FILE *file;
	char *text;
	size_t len;
};

/* Begin a body for @peer; false: there is no memory, and that was its reply. */
bool yaml_begin(struct yaml *yaml, struct peer *peer);

/* Reply with the body, and free it. @seq is that of peer_ops.reply(). */
void yaml_say(struct yaml *yaml, struct peer *peer, uint64_t seq);

void yaml_number(struct yaml *yaml, const char *key, uint64_t number);
void yaml_word(struct yaml *yaml, const char *key, const char *word);

/* Any bytes, in quotes. */
void yaml_text(struct yaml *yaml, const char *key, const char *text, size_t len);

/* Whole seconds, as beanstalkd's times are. */
void yaml_seconds(struct yaml *yaml, const char *key, uint64_t ns);

/* An item of a list. */
void yaml_item(struct yaml *yaml, const char *word);

#endif /* QUEUE_PROTOCOL_YAML_H */
