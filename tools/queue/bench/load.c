// SPDX-License-Identifier: GPL-2.0
/*
 * Put a load on a server with the protocol of beanstalkd, and print results.
 *
 * Prints lines "result NAME VALUE UNIT", for tools/bench/judge.
 */
#include <argp.h>
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "queue/bench/load.h"
#include "queue/bench/roles.h"
#include "queue/bench/wire.h"

#define EVENTS		64
#define MODES		"put, steady, ask, work, mixed, delayed, restart"

/* The time that a server may take to end. */
#define END_S		60

/**
 * struct options - the command line
 * @load: the load.
 * @mode: its name.
 * @name: the name of the results.
 * @command: restart: the command of the server.
 */
struct options {
	struct load load;
	const char *mode;
	const char *name;
	char **command;
};

/* --- running -------------------------------------------------------------------------- */

static bool is_done(const struct load *load)
{
	uint64_t i;

	if (load->timed)
		return load->deleted >= load->jobs;
	for (i = 0; i < load->nr_clients; i++)
		if (load->clients[i].outstanding)
			return false;
	return true;
}

/* Sleep until a socket is ready, or the next put of a timed load is due. */
static int wait_events(const struct load *load, struct epoll_event *events)
{
	uint64_t next_ns = next_put_ns(load), now = time_now_ns(CLOCK_MONOTONIC);
	uint64_t ns = next_ns > now ? next_ns - now : 0;
	struct timespec timeout = time_spec(ns);
	int nr = epoll_pwait2(load->epoll_fd, events, EVENTS,
			      next_ns == UINT64_MAX ? NULL : &timeout, NULL);

	if (nr < 0 && errno != EINTR)
		err(2, "epoll_pwait2");
	return nr;
}

static void run(struct load *load)
{
	struct epoll_event events[EVENTS];
	uint64_t c;
	int i, nr;

	load->start_ns = time_now_ns(CLOCK_MONOTONIC);
	for (c = 0; c < load->nr_clients; c++)
		client_turn(&load->clients[c]);
	while (!is_done(load)) {
		nr = wait_events(load, events);
		for (i = 0; i < nr; i++)
			client_turn(events[i].data.ptr);
		/* The first client puts, the others wait. */
		if (load->timed)
			client_turn(&load->clients[0]);
	}
}

static void connect_all(struct load *load, const struct role *role, const struct role *rest)
{
	uint64_t i;

	load->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	load->clients = calloc(load->nr_clients, sizeof(*load->clients));
	if (load->epoll_fd < 0 || !load->clients)
		err(2, "clients");
	for (i = 0; i < load->nr_clients; i++)
		client_connect(&load->clients[i], load, i ? rest : role);
}

/* --- results -------------------------------------------------------------------------- */

static void print_result(const char *name, const char *part, double value, const char *unit)
{
	printf("result %s%s %.6g %s\n", name, part, value, unit);
}

static void print_rate(const struct options *options, uint64_t nr)
{
	double s = (time_now_ns(CLOCK_MONOTONIC) - options->load.start_ns) / 1e9;

	/* Without work there is no rate. */
	if (!nr)
		return;
	print_result(options->name, "", nr / s, "per_s");
	print_result(options->name, ".took", s, "s");
	print_result(options->name, ".nr", nr, "jobs");
}

static int compare(const void *a, const void *b)
{
	uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;

	return first < second ? -1 : first > second;
}

static void print_lateness(const struct options *options)
{
	const struct load *load = &options->load;
	uint64_t nr = load->reserved;

	qsort(load->late_ns, nr, sizeof(*load->late_ns), compare);
	print_result(options->name, ".p50", load->late_ns[nr / 2] / 1e3, "us");
	print_result(options->name, ".p99", load->late_ns[nr * 99 / 100] / 1e3, "us");
	print_result(options->name, ".p99.9", load->late_ns[nr * 999 / 1000] / 1e3, "us");
	print_result(options->name, ".max", load->late_ns[nr - 1] / 1e3, "us");
	print_result(options->name, ".early", load->early, "jobs");
}

/* The mean of the seconds from @from to before @to. */
static double mean_rate(const struct load *load, uint64_t from, uint64_t to)
{
	uint64_t second, sum = 0;

	for (second = from; second < to; second++)
		sum += load->by_second[second];
	return (double)sum / (to - from);
}

/* Does the rate fall?  Its first quarter, its last one, and its least second. */
static void print_course(const struct options *options)
{
	const struct load *load = &options->load;
	uint64_t seconds = load->duration_ns / NSEC_PER_SEC, quarter = (seconds + 3) / 4;
	uint64_t least = UINT64_MAX, second;

	for (second = 0; second < seconds; second++)
		if (load->by_second[second] < least)
			least = load->by_second[second];
	print_result(options->name, ".first", mean_rate(load, 0, quarter), "per_s");
	print_result(options->name, ".last", mean_rate(load, seconds - quarter, seconds), "per_s");
	print_result(options->name, ".least", least, "per_s");
}

/* --- modes ---------------------------------------------------------------------------- */

static void mode_put(struct options *options)
{
	connect_all(&options->load, &role_put, &role_put);
	run(&options->load);
	print_rate(options, options->load.inserted);
}

static void mode_work(struct options *options)
{
	connect_all(&options->load, &role_work, &role_work);
	run(&options->load);
	print_rate(options, options->load.deleted);
}

static void mode_mixed(struct options *options)
{
	connect_all(&options->load, &role_mixed, &role_mixed);
	run(&options->load);
	print_rate(options, options->load.deleted);
}

static void mode_steady(struct options *options)
{
	struct load *load = &options->load;

	if (!load->duration_ns)
		errx(2, "steady: wants --seconds");
	load->by_second = calloc(load->duration_ns / NSEC_PER_SEC, sizeof(*load->by_second));
	if (!load->by_second)
		err(2, "seconds");
	mode_put(options);
	print_course(options);
}

/* Spread --jobs over --seconds. */
static void plan_times(struct options *options)
{
	struct load *load = &options->load;

	if (!load->jobs || !load->duration_ns)
		errx(2, "%s: wants --jobs and --seconds", options->mode);
	load->timed = true;
	load->late_ns = calloc(load->jobs, sizeof(*load->late_ns));
	if (!load->late_ns)
		err(2, "jobs");
}

static void mode_ask(struct options *options)
{
	plan_times(options);
	if (options->load.nr_clients > 1)
		errx(2, "ask: wants one client");
	connect_all(&options->load, &role_ask, &role_ask);
	run(&options->load);
	print_lateness(options);
}

static void mode_delayed(struct options *options)
{
	struct load *load = &options->load;

	plan_times(options);
	if (load->nr_clients < 2)
		errx(2, "delayed: wants one client to put, and others to wait");
	connect_all(load, &role_put, &role_wait);
	run(load);
	print_lateness(options);
}

static pid_t start_server(char **command)
{
	pid_t pid = fork();

	if (pid < 0)
		err(2, "fork");
	if (!pid) {
		execvp(command[0], command);
		err(127, "%s", command[0]);
	}
	return pid;
}

static void end_server(pid_t pid)
{
	int tries;

	kill(pid, SIGTERM);
	for (tries = 0; tries < END_S * 100; tries++) {
		if (waitpid(pid, NULL, WNOHANG) == pid)
			return;
		usleep(10000);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Reserve a job of a server that is starting, as soon as it listens. */
static void reserve_one(const struct load *load, pid_t server)
{
	static const char line[] = "reserve\r\n";
	char answer[16] = "";
	int fd;

	while ((fd = dial(load->to)) < 0) {
		if (waitpid(server, NULL, WNOHANG) == server)
			errx(2, "the server has ended");
		usleep(200);
	}
	if (write(fd, line, strlen(line)) < 0 || read(fd, answer, 8) != 8)
		err(2, "%s", load->to);
	if (memcmp(answer, "RESERVED", 8))
		errx(2, "the server said: %s", answer);
	close(fd);
}

static void mode_restart(struct options *options)
{
	uint64_t start_ns = time_now_ns(CLOCK_MONOTONIC);
	pid_t server;

	if (!options->command)
		errx(2, "restart: wants the server behind --");
	server = start_server(options->command);
	reserve_one(&options->load, server);
	print_result(options->name, "", (time_now_ns(CLOCK_MONOTONIC) - start_ns) / 1e9, "s");
	end_server(server);
}

static const struct mode {
	const char *name;
	void (*run)(struct options *options);
} modes[] = {
	{ "put", mode_put },
	{ "steady", mode_steady },
	{ "ask", mode_ask },
	{ "work", mode_work },
	{ "mixed", mode_mixed },
	{ "delayed", mode_delayed },
	{ "restart", mode_restart },
};

static const struct mode *find_mode(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(modes) / sizeof(*modes); i++)
		if (!strcmp(modes[i].name, name))
			return &modes[i];
	return NULL;
}

/* --- options -------------------------------------------------------------------------- */

enum option_key {
	OPTION_TO = 't',
	OPTION_TUBE = 'u',
	OPTION_NAME = 'n',
	OPTION_CLIENTS = 'c',
	OPTION_DEPTH = 'p',
	OPTION_JOBS = 'j',
	OPTION_SECONDS = 's',
	OPTION_SIZE = 'b',
	OPTION_DELAY = 'd',
	OPTION_DELAY_MAX = 256,
	OPTION_MS,
	OPTION_AT,
};

static const struct argp_option argp_options[] = {
	{ "to", OPTION_TO, "ADDRESS", 0, "The server, 127.0.0.1:PORT or unix:PATH", 0 },
	{ "tube", OPTION_TUBE, "NAME", 0, "Use and watch this tube (default: default)", 0 },
	{ "name", OPTION_NAME, "NAME", 0, "Name of the results (default: the mode)", 0 },
	{ "clients", OPTION_CLIENTS, "N", 0, "Connections (default 1)", 0 },
	{ "depth", OPTION_DEPTH, "N", 0, "Commands without a reply, each (default 1)", 0 },
	{ "jobs", OPTION_JOBS, "N", 0, "Jobs to put in all (default 0: for --seconds)", 0 },
	{ "seconds", OPTION_SECONDS, "N", 0, "When to stop putting (default 0: after --jobs)", 0 },
	{ "size", OPTION_SIZE, "BYTES", 0, "Length of a body (default 150)", 0 },
	{ "delay", OPTION_DELAY, "MS", 0, "Least delay of a job (default 0)", 0 },
	{ "delay-max", OPTION_DELAY_MAX, "MS", 0, "Greatest delay of a job", 0 },
	{ "ms", OPTION_MS, NULL, 0, "Send delays in ms, which beanstalkd does not know", 0 },
	{ "at", OPTION_AT, NULL, 0, "Send the time instead of a delay, as beanstalkd cannot", 0 },
	{ 0 }
};

static uint64_t parse_number(struct argp_state *state, const char *text)
{
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || *end || end == text || *text == '-')
		argp_error(state, "'%s' is not a number", text);
	return value;
}

static void take_argument(struct argp_state *state, struct options *options, char *arg)
{
	if (options->mode)
		argp_error(state, "one mode only, not '%s' too", arg);
	options->mode = arg;
	if (!find_mode(arg))
		argp_error(state, "'%s' is not a mode: " MODES, arg);
}

/* The arguments behind "--" are the command of the server; returns the number of the others. */
static int split_command(struct options *options, int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--"))
			continue;
		argv[i] = NULL;
		if (i + 1 < argc)
			options->command = argv + i + 1;
		return i;
	}
	return argc;
}

/* The field of an option that is a number; NULL: it is another option. */
static uint64_t *number_of(struct load *load, int key)
{
	switch (key) {
	case OPTION_CLIENTS:
		return &load->nr_clients;
	case OPTION_DEPTH:
		return &load->depth;
	case OPTION_JOBS:
		return &load->jobs;
	case OPTION_SECONDS:
		return &load->duration_ns;
	case OPTION_SIZE:
		return &load->size;
	case OPTION_DELAY:
		return &load->delay_ms;
	case OPTION_DELAY_MAX:
		return &load->delay_max_ms;
	}
	return NULL;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *options = state->input;
	uint64_t *number = number_of(&options->load, key);

	if (number)
		*number = parse_number(state, arg) * (key == OPTION_SECONDS ? NSEC_PER_SEC : 1);
	else if (key == OPTION_TO)
		options->load.to = arg;
	else if (key == OPTION_TUBE)
		options->load.tube = arg;
	else if (key == OPTION_NAME)
		options->name = arg;
	else if (key == OPTION_MS)
		options->load.milliseconds = true;
	else if (key == OPTION_AT)
		options->load.at = true;
	else if (key == ARGP_KEY_ARG)
		take_argument(state, options, arg);
	else if (key == ARGP_KEY_NO_ARGS)
		argp_error(state, "no mode: " MODES);
	else
		return ARGP_ERR_UNKNOWN;
	return 0;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		argp_options, parse, "MODE [-- SERVER...]",
		"Put a load on a server with the protocol of beanstalkd.\n"
		"\vput: jobs a second.\n"
		"steady: the same, and whether the rate falls.\n"
		"ask: --jobs commands that need no disk, evenly over --seconds; how late answers are.\n"
		"work: reserve and delete jobs until none is left.\n"
		"mixed: put, reserve and delete, each client by itself.\n"
		"delayed: one client puts --jobs evenly over --seconds, the others wait; lateness.\n"
		"restart: start SERVER; the time until it has answered a reserve.\n",
		NULL, NULL, NULL
	};
	struct options options = {
		.load = { .to = "127.0.0.1:11300", .nr_clients = 1, .depth = 1, .size = 150 },
	};

	argc = split_command(&options, argc, argv);
	argp_parse(&argp, argc, argv, 0, NULL, &options);
	if (!options.load.nr_clients || !options.load.depth)
		errx(2, "--clients and --depth must be at least 1");
	if (!options.name)
		options.name = options.mode;
	find_mode(options.mode)->run(&options);
	return 0;
}
