// SPDX-License-Identifier: GPL-2.0
/*
 * A page for people, in a browser: requests, streams and actions.
 *
 *	           refused                        SITE_DONE
 *	(request) --------> response      +----> the lane has answered, and resumes it --> response
 *	    |                             |
 *	    +-- a file, a frame --> response
 *	    +-- a question, an action ----+ SITE_WAITS: suspended
 *	    +-- /api/events --> stream:   has a frame to send <---> suspended until the next one
 *
 * A suspended connection is in no list of the library that is looked at. Only the thread of
 * connections touches requests, but for those that wait: these are their lane's until it resumes
 * the connection. When that thread looks at such a request again, @state says that it is done.
 */
#include <errno.h>
#include <microhttpd.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/time.h"
#include "common/util.h"
#include "metrics/files.h"
#include "metrics/guard.h"
#include "metrics/json.h"
#include "metrics/lane.h"
#include "metrics/site.h"

/*
 * A body of a request is thrown away.  A longer one is refused by its Content-Length; without that
 * header it ends the connection.
 */
#define BODY_MAX	65536

/* The library reads a stream in pieces of this size. */
#define STREAM_BLOCK	4096

#define API		"/api/"
#define BEARER		"Bearer "

enum site_state {
	SITE_NEW,
	SITE_WAITS,
	SITE_DONE,
};

/**
 * struct site_request - a request, or a stream
 * @server: the server.
 * @connection: its connection.
 * @state: of a question or an action.
 * @work: in its lane.
 * @route: which question or action.
 * @arguments: of the request.
 * @swallowed: bytes of its body that were thrown away.
 * @status: the status of the answer.
 * @text: the answer, or the frame that is sent.
 * @len: its length.
 * @sent: bytes of the frame that were sent.
 * @frame: the number of that frame.
 * @is_stream: it is in the list of streams.
 * @suspended: it is a stream that waits for the next frame.
 * @entry: in the list of streams.
 */
struct site_request {
	struct site_server *server;
	struct MHD_Connection *connection;
	_Atomic enum site_state state;
	struct lane_work work;
	const struct site_route *route;
	struct site_arguments arguments;
	size_t swallowed;
	unsigned int status;
	char *text;
	size_t len;
	size_t sent;
	uint64_t frame;
	bool is_stream;
	bool suspended;
	LIST_ENTRY(site_request) entry;
};

/**
 * struct site_server - the page
 * @site: the page of the program.
 * @local: only programs of this machine can connect.
 * @wake_fd: wakes the thread of connections: the library does not.
 * @questions: the lane of questions.
 * @actions: the lane of actions.
 * @streams: all streams.
 * @nr_streams: their number.
 * @frame: the number of the newest frame.
 * @collect_ns: when the program collects again, CLOCK_MONOTONIC.
 * @stopped: streams end.
 */
struct site_server {
	struct site site;
	bool local;
	int wake_fd;
	struct lane questions;
	struct lane actions;
	LIST_HEAD(, site_request) streams;
	unsigned int nr_streams;
	uint64_t frame;
	uint64_t collect_ns;
	bool stopped;
};

/* --- arguments -------------------------------------------------------------------------- */

const char *site_argument(const struct site_arguments *arguments, const char *name)
{
	unsigned int i;

	for (i = 0; i < arguments->nr; i++)
		if (!strcmp(arguments->name[i], name))
			return arguments->value[i];
	return "";
}

uint64_t site_number(const struct site_arguments *arguments, const char *name, uint64_t missing,
		     uint64_t max)
{
	const char *text = site_argument(arguments, name);
	unsigned long long number;
	char *end;

	if (!*text)
		return missing;
	errno = 0;
	number = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end)
		return 0;
	return errno || number > max ? max : number;
}

/**
 * struct argument_reader - reads arguments
 * @arguments: the ones so far.
 * @used: bytes of their text.
 * @wrong: one has a NUL in it, or there are too many.
 */
struct argument_reader {
	struct site_arguments *arguments;
	size_t used;
	bool wrong;
};

static const char *keep(struct argument_reader *reader, const char *bytes, size_t len)
{
	char *at = reader->arguments->text + reader->used;

	if (len >= SITE_ARGUMENT_BYTES - reader->used || (len && memchr(bytes, '\0', len))) {
		reader->wrong = true;
		return "";
	}
	if (len)
		memcpy(at, bytes, len);
	at[len] = '\0';
	reader->used += len + 1;
	return at;
}

static enum MHD_Result read_argument(void *context, enum MHD_ValueKind kind, const char *name,
				     size_t name_len, const char *value, size_t value_len)
{
	struct argument_reader *reader = context;
	unsigned int i = reader->arguments->nr;

	(void)kind;
	if (i == SITE_MAX_ARGUMENTS) {
		reader->wrong = true;
		return MHD_NO;
	}
	reader->arguments->name[i] = keep(reader, name, name_len);
	reader->arguments->value[i] = keep(reader, value, value_len);
	reader->arguments->nr++;
	return reader->wrong ? MHD_NO : MHD_YES;
}

static bool read_arguments(struct site_request *request)
{
	struct argument_reader reader = { .arguments = &request->arguments };

	MHD_get_connection_values_n(request->connection, MHD_GET_ARGUMENT_KIND, read_argument,
				    &reader);
	return !reader.wrong;
}

/* --- responses -------------------------------------------------------------------------- */

#define NO		" 'none'; "
#define OWN		" 'self'; "
#define POLICY		"default-src" NO "script-src" OWN "style-src" OWN "connect-src" OWN \
			"base-uri" NO "form-action" NO "frame-ancestors" NO "img-src data:"

/* What a browser may do with the page: nothing but show it, and talk to this server. */
static void add_headers(struct MHD_Response *response, const char *type)
{
	static const char *const headers[][2] = {
		{ "Content-Security-Policy", POLICY },
		{ "X-Content-Type-Options", "nosniff" },
		{ "X-Frame-Options", "DENY" },
		{ "Referrer-Policy", "no-referrer" },
		{ "Cross-Origin-Resource-Policy", "same-origin" },
		{ "Cross-Origin-Opener-Policy", "same-origin" },
		{ "Cache-Control", "no-store" },
	};
	size_t i;

	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	for (i = 0; i < ARRAY_SIZE(headers); i++)
		MHD_add_response_header(response, headers[i][0], headers[i][1]);
}

static int send_response(struct MHD_Connection *connection, unsigned int status,
			 struct MHD_Response *response, const char *type)
{
	enum MHD_Result result;

	if (!response)
		return MHD_NO;
	add_headers(response, type);
	/* Who was refused keeps no place that others could have. */
	if (status >= MHD_HTTP_BAD_REQUEST)
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD, POST");
	if (status == MHD_HTTP_UNAUTHORIZED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
	result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

/* An object of JSON with a sentence. */
static int say(struct MHD_Connection *connection, unsigned int status, const char *sentence)
{
	struct MHD_Response *response;
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return MHD_NO;
	fputs("{\"error\":", out);
	json_text(out, sentence);
	fputs("}\n", out);
	if (fclose(out)) {
		free(text);
		return MHD_NO;
	}
	response = MHD_create_response_from_buffer(len, text, MHD_RESPMEM_MUST_FREE);
	if (!response)
		free(text);
	return send_response(connection, status, response, SITE_JSON);
}

static int send_file(struct MHD_Connection *connection, const struct site_file *file)
{
	return send_response(connection, MHD_HTTP_OK,
			     MHD_create_response_from_buffer(file->end - file->start,
							     (void *)file->start,
							     MHD_RESPMEM_PERSISTENT),
			     file->type);
}

/* --- frames and streams ----------------------------------------------------------------- */

/* Make the text of a frame; false: there is no memory. */
static bool make_frame(struct site_request *request, bool event)
{
	struct site *site = &request->server->site;
	FILE *out;

	free(request->text);
	request->text = NULL;
	out = open_memstream(&request->text, &request->len);
	if (!out)
		return false;
	if (event)
		fputs("data: ", out);
	site->frame(&request->arguments, out, site->context);
	fputs(event ? "\n\n" : "\n", out);
	request->sent = 0;
	request->frame = request->server->frame;
	return !fclose(out);
}

static int send_frame(struct site_request *request)
{
	struct MHD_Response *response;

	if (!make_frame(request, false))
		return MHD_NO;
	response = MHD_create_response_from_buffer(request->len, request->text,
						   MHD_RESPMEM_MUST_FREE);
	if (response)
		request->text = NULL;
	return send_response(request->connection, MHD_HTTP_OK, response, SITE_JSON);
}

/* The library can send more of a stream. */
static ssize_t read_stream(void *context, uint64_t position, char *bytes, size_t max)
{
	struct site_request *request = context;
	size_t len;

	(void)position;
	if (request->server->stopped)
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (request->sent == request->len && request->frame == request->server->frame) {
		request->suspended = true;
		MHD_suspend_connection(request->connection);
		return 0;
	}
	if (request->sent == request->len && !make_frame(request, true))
		return MHD_CONTENT_READER_END_WITH_ERROR;
	len = request->len - request->sent;
	if (len > max)
		len = max;
	memcpy(bytes, request->text + request->sent, len);
	request->sent += len;
	return len;
}

static int begin_stream(struct site_request *request)
{
	struct site_server *server = request->server;

	if (server->nr_streams == SITE_MAX_STREAMS)
		return say(request->connection, MHD_HTTP_SERVICE_UNAVAILABLE,
			   "Too many pages are open.");
	if (!make_frame(request, true))
		return MHD_NO;
	request->is_stream = true;
	LIST_INSERT_HEAD(&server->streams, request, entry);
	server->nr_streams++;
	return send_response(request->connection, MHD_HTTP_OK,
			     MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK,
							       read_stream, request, NULL),
			     "text/event-stream; charset=utf-8");
}

static void resume_streams(struct site_server *server)
{
	struct site_request *request;

	LIST_FOREACH(request, &server->streams, entry) {
		if (!request->suspended)
			continue;
		request->suspended = false;
		MHD_resume_connection(request->connection);
	}
}

void site_wake(struct site_server *server)
{
	const uint64_t one = 1;

	/* It fails only if the file is readable anyway. */
	if (write(server->wake_fd, &one, sizeof(one)) < 0)
		return;
}

int site_turn(struct site_server *server)
{
	uint64_t now_ns = time_now_ns(CLOCK_MONOTONIC);
	bool fresh = false;
	int ms;

	if (now_ns >= server->collect_ns) {
		ms = server->site.collect(server->site.context, server->nr_streams > 0, &fresh);
		now_ns = time_now_ns(CLOCK_MONOTONIC);
		server->collect_ns = now_ns + ms * NSEC_PER_MSEC;
		if (fresh) {
			server->frame++;
			resume_streams(server);
		}
	}
	return (server->collect_ns - now_ns) / NSEC_PER_MSEC + 1;
}

/* --- questions and actions -------------------------------------------------------------- */

/* In the thread of a lane. */
static void answer(struct lane_work *work, bool stopped)
{
	struct site_request *request = container_of(work, struct site_request, work);
	struct MHD_Connection *connection = request->connection;
	struct site_server *server = request->server;
	FILE *out = open_memstream(&request->text, &request->len);

	request->status = MHD_HTTP_SERVICE_UNAVAILABLE;
	if (out && stopped)
		fputs("{\"error\":\"The program ends.\"}", out);
	else if (out)
		request->status = request->route->answer(&request->arguments, out,
							 request->server->site.context);
	if (out && fclose(out))
		request->len = 0;
	request->state = SITE_DONE;
	/* From now on the request belongs to the other thread, which may free it. */
	MHD_resume_connection(connection);
	site_wake(server);
}

static int begin_answer(struct site_request *request)
{
	struct site_server *server = request->server;
	struct lane *lane = request->route->action ? &server->actions : &server->questions;

	request->work.run = answer;
	request->state = SITE_WAITS;
	MHD_suspend_connection(request->connection);
	if (lane_add(lane, &request->work))
		return MHD_YES;
	/* A suspended connection takes no response: so this is one more that is done. */
	request->status = MHD_HTTP_SERVICE_UNAVAILABLE;
	request->text = strdup("{\"error\":\"Too many requests wait; try again.\"}");
	request->len = request->text ? strlen(request->text) : 0;
	request->state = SITE_DONE;
	MHD_resume_connection(request->connection);
	site_wake(server);
	return MHD_YES;
}

static int end_answer(struct site_request *request)
{
	struct MHD_Response *response;

	if (!request->len)
		return say(request->connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "No memory.");
	response = MHD_create_response_from_buffer(request->len, request->text,
						   MHD_RESPMEM_MUST_FREE);
	if (response)
		request->text = NULL;
	return send_response(request->connection, request->status, response, SITE_JSON);
}

/* --- who may ---------------------------------------------------------------------------- */

static const char *header(const struct site_request *request, const char *name)
{
	return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

/* Does a page of somebody else send this request? */
static bool is_from_elsewhere(const struct site_request *request)
{
	const char *origin = header(request, "Origin");
	const char *site = header(request, "Sec-Fetch-Site");

	if (origin && !guard_is_origin(origin, header(request, "Host"), request->server->site.host))
		return true;
	return site && strcmp(site, "same-origin") && strcmp(site, "none");
}

static bool has_token(const struct site_request *request)
{
	const char *token = request->server->site.token;
	const char *given = header(request, "Authorization");

	return token && given && !strncmp(given, BEARER, strlen(BEARER)) &&
	       guard_is_token(token, given + strlen(BEARER));
}

/* Returns the status of a refusal and why; 0: it may be answered. */
static unsigned int refuse(const struct site_request *request, const char *method,
			   const char **why)
{
	const struct site_route *route = request->route;
	const struct site_server *server = request->server;
	bool post = !strcmp(method, MHD_HTTP_METHOD_POST);

	if (!guard_is_host(header(request, "Host"), server->site.host)) {
		*why = "Host is no name of this server: use its address, or --http-host.";
		return MHD_HTTP_FORBIDDEN;
	}
	if (is_from_elsewhere(request)) {
		*why = "This comes from the page of another server.";
		return MHD_HTTP_FORBIDDEN;
	}
	if (post != (route && route->action)) {
		*why = post ? "It is read by GET." : "Actions are POST.";
		return MHD_HTTP_METHOD_NOT_ALLOWED;
	}
	if (post && !server->site.token) {
		*why = "There are no actions without --http-token-file.";
		return MHD_HTTP_FORBIDDEN;
	}
	if (route && (post || (route->contents && !server->local)) && !has_token(request)) {
		*why = server->site.token ? "The token is missing or wrong." :
			"Other machines need a token here: there is no --http-token-file.";
		return MHD_HTTP_UNAUTHORIZED;
	}
	return 0;
}

/* --- requests --------------------------------------------------------------------------- */

bool site_has(const char *path)
{
	return site_file(path) || !strncmp(path, API, strlen(API));
}

static const struct site_route *find_route(const struct site *site, const char *name)
{
	size_t i;

	for (i = 0; i < site->nr_routes; i++)
		if (!strcmp(site->routes[i].path, name))
			return &site->routes[i];
	return NULL;
}

static int respond(struct site_request *request, const char *path, const char *method)
{
	const struct site_file *file = site_file(path);
	const char *name = path + strlen(API), *why;
	bool events = !file && !strcmp(name, "events");
	bool now = !file && !strcmp(name, "now");
	unsigned int status;

	if (!file)
		request->route = find_route(&request->server->site, name);
	if (!file && !events && !now && !request->route)
		return say(request->connection, MHD_HTTP_NOT_FOUND, "There is no such path.");
	status = refuse(request, method, &why);
	if (status)
		return say(request->connection, status, why);
	if (file)
		return send_file(request->connection, file);
	if (!read_arguments(request))
		return say(request->connection, MHD_HTTP_BAD_REQUEST,
			   "The arguments are too long, too many, or have a NUL.");
	if (events)
		return begin_stream(request);
	return now ? send_frame(request) : begin_answer(request);
}

static struct site_request *new_request(struct site_server *server,
					struct MHD_Connection *connection)
{
	struct site_request *request = calloc(1, sizeof(*request));

	if (!request)
		return NULL;
	request->server = server;
	request->connection = connection;
	return request;
}

/* Does the Content-Length tell of a body that is too long? */
static bool has_long_body(struct MHD_Connection *connection)
{
	const char *len = MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
						      MHD_HTTP_HEADER_CONTENT_LENGTH);

	return len && strtoull(len, NULL, 10) > BODY_MAX;
}

static bool is_known_method(const char *method)
{
	return !strcmp(method, MHD_HTTP_METHOD_GET) || !strcmp(method, MHD_HTTP_METHOD_HEAD) ||
	       !strcmp(method, MHD_HTTP_METHOD_POST);
}

int site_request(struct site_server *server, struct MHD_Connection *connection, const char *path,
		 const char *method, size_t *upload_len, void **context)
{
	struct site_request *request = *context;

	if (!request) {
		if (has_long_body(connection))
			return say(connection, MHD_HTTP_CONTENT_TOO_LARGE,
				   "Arguments are in the address; the body is too long.");
		request = *context = new_request(server, connection);
		/* Respond when the whole request is there. */
		return request ? MHD_YES : MHD_NO;
	}
	if (*upload_len) {
		request->swallowed += *upload_len;
		*upload_len = 0;
		return request->swallowed > BODY_MAX ? MHD_NO : MHD_YES;
	}
	if (request->state == SITE_WAITS)
		return MHD_YES;
	if (request->state == SITE_DONE)
		return end_answer(request);
	if (!is_known_method(method))
		return say(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "Only GET, HEAD and POST.");
	return respond(request, path, method);
}

void site_request_ended(void *context)
{
	struct site_request *request = context;

	if (!request)
		return;
	if (request->is_stream) {
		LIST_REMOVE(request, entry);
		request->server->nr_streams--;
	}
	free(request->text);
	free(request);
}

/* --- opening and closing ---------------------------------------------------------------- */

int site_open(struct site_server **result, const struct site *site, bool local, int wake_fd)
{
	struct site_server *server = calloc(1, sizeof(*server));
	int err;

	if (!server)
		return -ENOMEM;
	server->site = *site;
	server->local = local;
	server->wake_fd = wake_fd;
	LIST_INIT(&server->streams);
	err = lane_start(&server->questions);
	if (!err) {
		err = lane_start(&server->actions);
		if (err)
			lane_stop(&server->questions);
	}
	if (err)
		free(server);
	else
		*result = server;
	return err;
}

void site_stop(struct site_server *server)
{
	lane_stop(&server->questions);
	lane_stop(&server->actions);
	server->stopped = true;
	resume_streams(server);
}

void site_free(struct site_server *server)
{
	free(server);
}
