/* SPDX-License-Identifier: GPL-2.0 */
/* Frames of the queue's page: what the queue is like now. */
#ifndef QUEUE_WEB_FRAME_H
#define QUEUE_WEB_FRAME_H

#include <stdbool.h>
#include <stdio.h>

struct board;
struct site_arguments;

/* A board for the tubes that fit in so much memory; NULL: there is none. */
struct board *web_make_board(size_t memory);

/* For struct site. */
int web_collect(void *context, bool watched, bool *fresh);
void web_frame(const struct site_arguments *arguments, FILE *out, void *context);

#endif /* QUEUE_WEB_FRAME_H */
