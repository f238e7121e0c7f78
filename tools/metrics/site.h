/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A page for people, in a browser: three files, a stream of events, questions and actions.
 *
 *	GET  /  /page.css  /page.js	the files, which are the same for all programs
 *	GET  /api/events		a stream: a frame, whenever the program has a new one
 *	GET  /api/now			one frame
 *	GET  /api/...			a question, which the program answers
 *	POST /api/...			an action, which it does; with the token only
 *
 * Three threads serve it, and none of them is the loop of the program. One has all connections and
 * makes frames; each of two lanes, one for questions and one for actions, does one after the
 * other. What they need of the loop they ask for by errands.
 *
 * All is bounded: connections, streams, questions that wait, arguments, and the size of a frame.
 * A stream whose client does not read gets no new frames, and is closed after a while.
 */
#ifndef METRICS_SITE_H
#define METRICS_SITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "metrics/errands.h"

/* Streams at a time. */
#define SITE_MAX_STREAMS	64

/* The arguments of a request: their number, and the bytes of all of them. */
#define SITE_MAX_ARGUMENTS	20
#define SITE_ARGUMENT_BYTES	4096

/* The type of what SITE_STREAM, questions and actions answer. */
#define SITE_JSON		"application/json; charset=utf-8"

/**
 * struct site_arguments - the arguments of a request, decoded
 * @nr: their number.
 * @name: their names.
 * @value: their values.
 * @text: the memory of both.
 */
struct site_arguments {
	unsigned int nr;
	const char *name[SITE_MAX_ARGUMENTS];
	const char *value[SITE_MAX_ARGUMENTS];
	char text[SITE_ARGUMENT_BYTES];
};

/* The value of an argument; "" if it is not given. */
const char *site_argument(const struct site_arguments *arguments, const char *name);

/* The same as a number up to @max; @missing if it is not given, 0 if it is no number. */
uint64_t site_number(const struct site_arguments *arguments, const char *name, uint64_t missing,
		     uint64_t max);

/**
 * struct site_route - a question or an action
 * @path: behind "/api/".
 * @action: it changes something.
 * @contents: it shows what others have put in, and not only numbers. From other machines it takes
 *	the token.
 * @answer: writes an object of JSON to @out, in the thread of a lane; returns the status of HTTP.
 */
struct site_route {
	const char *path;
	bool action;
	bool contents;
	unsigned int (*answer)(const struct site_arguments *arguments, FILE *out, void *context);
};

/**
 * struct site - the page of a program
 * @routes: its questions and actions.
 * @nr_routes: their number.
 * @begin: called first, before there are threads: they may use @errands until they have ended.
 * @collect: gets a piece of the newest numbers, in the thread of connections. Sets *@fresh if there
 *	is a new frame. @watched: somebody looks at it. Returns the ms until it is to be called
 *	again.
 * @frame: writes a frame, an object of JSON, in the same thread.
 * @token: for actions; NULL: there are none.
 * @host: a name of this server, for Host and Origin; or NULL.
 * @context: the argument of these functions.
 */
struct site {
	const struct site_route *routes;
	size_t nr_routes;
	void (*begin)(void *context, struct errands *errands);
	int (*collect)(void *context, bool watched, bool *fresh);
	void (*frame)(const struct site_arguments *arguments, FILE *out, void *context);
	const char *token;
	const char *host;
	void *context;
};

/* --- for http.c --- */

struct MHD_Connection;
struct site_server;

/*
 * @local: only programs of this machine can connect. @wake_fd: an eventfd that wakes the thread of
 * connections. Returns 0 or a negative errno.
 */
int site_open(struct site_server **server, const struct site *site, bool local, int wake_fd);

/* Wake the thread of connections. */
void site_wake(struct site_server *server);

/*
 * Two steps: first the lanes end, so that all requests have an answer, and no stream goes on; then,
 * when the library has closed all connections, the memory is freed.
 */
void site_stop(struct site_server *server);
void site_free(struct site_server *server);

/* For the thread of connections: collect, and let streams go on. Returns the ms until the next. */
int site_turn(struct site_server *server);

/* Is this a path of the page? */
bool site_has(const char *path);

/*
 * The library has a request, or more of it. *@request is NULL at first, and is ours. Returns
 * MHD_YES or MHD_NO.
 */
int site_request(struct site_server *server, struct MHD_Connection *connection, const char *path,
		 const char *method, size_t *upload_len, void **request);

/* A request has ended, whatever became of it. */
void site_request_ended(void *request);

#endif /* METRICS_SITE_H */
