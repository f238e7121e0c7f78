// SPDX-License-Identifier: GPL-2.0
/* The queue's page for people: its routes, and the parts that it is made of. */
#include <stdlib.h>

#include "common/util.h"
#include "queue/web/act.h"
#include "queue/web/frame.h"
#include "queue/web/jobs.h"
#include "queue/web/reasons.h"
#include "queue/web/state.h"
#include "queue/web/web.h"

static const struct site_route routes[] = {
	{ .path = "jobs", .contents = true, .answer = web_jobs },
	{ .path = "job", .contents = true, .answer = web_job },
	{ .path = "reasons", .contents = true, .answer = web_reasons },
	{ .path = "token", .action = true, .answer = web_token },
	{ .path = "kick", .action = true, .answer = web_kick },
	{ .path = "retry", .action = true, .answer = web_retry },
	{ .path = "delete", .action = true, .answer = web_delete },
	{ .path = "purge", .action = true, .answer = web_purge },
	{ .path = "pause", .action = true, .answer = web_pause },
	{ .path = "policy", .action = true, .answer = web_policy },
};

static void begin(void *context, struct errands *errands)
{
	struct web *web = context;

	web->errands = errands;
	web->wire.errands = errands;
}

struct web *web_create(const struct web_config *config)
{
	struct web *web = calloc(1, sizeof(*web));

	if (!web)
		return NULL;
	web->config = *config;
	web->site = (struct site){
		.routes = routes,
		.nr_routes = ARRAY_SIZE(routes),
		.begin = begin,
		.collect = web_collect,
		.frame = web_frame,
		.token = config->token,
		.host = config->host,
		.context = web,
	};
	wire_init(&web->wire);
	web->board = web_make_board(config->memory);
	if (web->board)
		return web;
	free(web);
	return NULL;
}

void web_destroy(struct web *web)
{
	wire_destroy(&web->wire);
	board_destroy(web->board);
	free(web);
}

const struct site *web_site(const struct web *web)
{
	return &web->site;
}

int web_take_client(struct web *web)
{
	int fd = web->wire.inner;

	web->wire.inner = -1;
	return fd;
}
