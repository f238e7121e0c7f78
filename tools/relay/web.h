/* SPDX-License-Identifier: GPL-2.0 */
/* The relay's page for people: targets, partitions, topics, lateness. It is to read only. */
#ifndef RELAY_WEB_H
#define RELAY_WEB_H

struct relay;
struct relay_web;
struct site;

/* @host: a name of this server, or NULL. Returns NULL without memory. */
struct relay_web *relay_web_create(struct relay *relay, const char *host);

/* After metrics_close(). */
void relay_web_destroy(struct relay_web *web);

/* For metrics_open(). */
const struct site *relay_web_site(const struct relay_web *web);

#endif /* RELAY_WEB_H */
