/* SPDX-License-Identifier: GPL-2.0 */
/* Jobs of the queue's page: lists, and one with its body. */
#ifndef QUEUE_WEB_JOBS_H
#define QUEUE_WEB_JOBS_H

#include <stdbool.h>
#include <stdio.h>

struct site_arguments;
struct tube_details;
struct web;

/* The most jobs in a page, and the bytes of a body that are shown. */
#define WEB_JOBS_MAX	100
#define WEB_BODY_MAX	4096

/* Routes: see struct site_route. */
unsigned int web_jobs(const struct site_arguments *arguments, FILE *out, void *context);
unsigned int web_job(const struct site_arguments *arguments, FILE *out, void *context);

/*
 * Ask the loop for a tube. A tube without jobs and clients is gone: without @must_exist, that is
 * one without jobs. Returns 0, or the status of an answer, which was written.
 */
unsigned int web_find_tube(struct web *web, const char *name, bool must_exist,
			   struct tube_details *details, FILE *out);

/* Write an answer that is an error; returns @status. */
unsigned int web_say(FILE *out, unsigned int status, const char *sentence);

#endif /* QUEUE_WEB_JOBS_H */
