/* SPDX-License-Identifier: GPL-2.0 */
/* Actions of the queue's page. */
#ifndef QUEUE_WEB_ACT_H
#define QUEUE_WEB_ACT_H

#include <stdio.h>

struct site_arguments;

/* Routes: see struct site_route. Each answers with the reply of the daemon to its command. */
unsigned int web_token(const struct site_arguments *arguments, FILE *out, void *context);
unsigned int web_kick(const struct site_arguments *arguments, FILE *out, void *context);
unsigned int web_retry(const struct site_arguments *arguments, FILE *out, void *context);
unsigned int web_delete(const struct site_arguments *arguments, FILE *out, void *context);
unsigned int web_purge(const struct site_arguments *arguments, FILE *out, void *context);
unsigned int web_pause(const struct site_arguments *arguments, FILE *out, void *context);
unsigned int web_policy(const struct site_arguments *arguments, FILE *out, void *context);

#endif /* QUEUE_WEB_ACT_H */
