/* SPDX-License-Identifier: GPL-2.0 */
/* The queue's page for people: tubes, lateness, jobs, and actions. */
#ifndef QUEUE_WEB_WEB_H
#define QUEUE_WEB_WEB_H

#include <stddef.h>

struct queue;
struct site;
struct store;
struct web;

/**
 * struct web_config - the page
 * @queue: what it shows.
 * @store: its jobs on disk.
 * @memory: bytes for the last ten minutes of tubes.
 * @token: for actions; NULL: there are none.
 * @host: a name of this server, or NULL.
 * @health: returns NULL if all is well, else a line that says what is not. The loop calls it.
 * @context: its argument.
 */
struct web_config {
	struct queue *queue;
	struct store *store;
	size_t memory;
	const char *token;
	const char *host;
	const char *(*health)(void *context);
	void *context;
};

/* Returns NULL without memory. The page must end, by metrics_close(), before web_destroy(). */
struct web *web_create(const struct web_config *config);
void web_destroy(struct web *web);

/* For metrics_open(). */
const struct site *web_site(const struct web *web);

/*
 * For the loop, after errands were run: a socket that is to become a client of the daemon, through
 * which the page acts; or -1.
 */
int web_take_client(struct web *web);

#endif /* QUEUE_WEB_WEB_H */
