// SPDX-License-Identifier: GPL-2.0
/*
 * Idle timeouts: a server with thousands of connections closes those that have been
 * silent for too long.  Nearly all of these timeouts are moved again and again, by each
 * request, and never fire.
 *
 * So each connection has a deadline: a word in memory shared with the kernel.  A request
 * moves it by a store, without a system call.  When the deadline that the kernel has read
 * comes, the kernel reads the word again.  If the deadline is later now, the event waits on,
 * and no process is woken; else the program reads its record and closes the connection.  One
 * file has the timeouts of all connections, in the epoll that has the connections, too.
 *
 * A server can copy the first two parts, the timeouts and the server.  If it runs for ever,
 * it can use a word for another connection as soon as the event has ended: when its record
 * was read, or CANCEL returned 0.
 *
 * The client is a thread of this program.  Most of its connections send one request and are
 * silent after that.  One of a hundred sends many, until it is silent, too, or hangs up.
 */
#include <argp.h>
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

#include "example.h"

#define BATCH		256	/* connections, epoll events and records in a turn */
#define GROUP		100	/* connections that the client opens in a turn */
#define BUSY		100	/* one in this number of them is busy */
#define PATIENCE_MS	60000	/* for something to happen at all */

static unsigned int nr_connections = 10000;
static __u64 idle_ns = 2 * NSEC_PER_SEC;
static __u64 busy_ns = 3 * NSEC_PER_SEC;

static __u64 now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
}

/* ---- The timeouts --------------------------------------------------------------- */

static int timers;
static __u64 *deadlines;	/* shared with the kernel, one for each connection */

/* Counts system calls, stores and records, and has the greatest lateness. */
static __u64 timer_calls, stores, records_read, worst_late_ns;

static void share_deadlines(void)
{
	struct twheel_config config = {
		.size = sizeof(config),
		.clockid = CLOCK_MONOTONIC,
		.nr_deadlines = nr_connections,
	};

	timers = open_device(O_NONBLOCK);
	if (ioctl(timers, TWHEEL_IOC_CONFIG, &config))
		err(EXIT_FAILURE, "cannot have %u deadlines", nr_connections);
	deadlines = mmap(NULL, nr_connections * sizeof(*deadlines),
			 PROT_READ | PROT_WRITE, MAP_SHARED, timers, 0);
	if (deadlines == MAP_FAILED)
		err(EXIT_FAILURE, "cannot map the deadlines");
	timer_calls = 3;
}

/* Moves a deadline.  A request costs nothing more. */
static void store_deadline(unsigned int i, __u64 time_ns)
{
	__atomic_store_n(&deadlines[i], time_ns, __ATOMIC_RELAXED);
	stores++;
}

/* The command that arms an event for the time in word @i. */
static struct twheel_cmd add_deadline(unsigned int i)
{
	return (struct twheel_cmd){
		.op = TWHEEL_OP_ADD,
		.flags = TWHEEL_DEADLINE,
		.key = i,
		.data = i,
	};
}

static void submit_timers(struct twheel_cmd *cmds, unsigned int nr)
{
	submit(timers, cmds, nr);
	timer_calls++;
}

/* A line of the file's fdinfo, which has the kernel's counters. */
static __u64 counter(const char *name)
{
	char path[64], line[128];
	__u64 value = ~0ULL;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", timers);
	file = fopen(path, "r");
	if (!file)
		err(EXIT_FAILURE, "cannot open %s", path);
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, name, strlen(name)) && line[strlen(name)] == ':')
			value = strtoull(line + strlen(name) + 1, NULL, 10);
	fclose(file);
	return value;
}

/* ---- The server ----------------------------------------------------------------- */

/* A connection, its event, and the time of its last request. */
static struct connection {
	int fd;
	__u64 id;
	__u64 heard_ns;
} *connections;

static int listener, epoll;
static unsigned int accepted, closed_idle, closed_by_client;
static __u64 requests, crossed;

static void watch(int fd, __u64 what)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = what };

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event))
		err(EXIT_FAILURE, "cannot watch");
}

static void heard(unsigned int i)
{
	connections[i].heard_ns = now_ns();
	store_deadline(i, connections[i].heard_ns + idle_ns);
}

/* Accepts all new connections, and arms their timeouts in one call. */
static void accept_connections(void)
{
	struct twheel_cmd adds[BATCH];
	unsigned int first = accepted, nr;
	int fd;

	while (accepted < nr_connections && accepted - first < BATCH &&
	       (fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
		connections[accepted].fd = fd;
		heard(accepted);
		adds[accepted - first] = add_deadline(accepted);
		watch(fd, accepted++);
	}
	nr = accepted - first;
	if (!nr)
		return;
	submit_timers(adds, nr);
	for (unsigned int i = 0; i < nr; i++)
		connections[first + i].id = adds[i].id;
}

static void hang_up(unsigned int i)
{
	close(connections[i].fd);
	connections[i].fd = -1;
}

/* Answers a request of one byte, or closes the connection if the client has hung up. */
static void serve(unsigned int i)
{
	struct twheel_cmd cancel = { .op = TWHEEL_OP_CANCEL, .id = connections[i].id };
	char byte;

	if (read(connections[i].fd, &byte, 1) == 1) {
		requests++;
		heard(i);
		EXPECT(send(connections[i].fd, &byte, 1, MSG_NOSIGNAL) == 1);
		return;
	}
	/* The event has no record after this. */
	submit_timers(&cancel, 1);
	hang_up(i);
	closed_by_client++;
}

/*
 * Closes a connection whose time is up.  If a request has come since the kernel read the
 * deadline, the record has the old one: then the event is added again.
 */
static void time_is_up(const struct twheel_record *record)
{
	unsigned int i = record->data;
	struct twheel_cmd add = add_deadline(i);
	__u64 now = now_ns();

	records_read++;
	if (record->due_ns != deadlines[i]) {
		submit_timers(&add, 1);
		connections[i].id = add.id;
		crossed++;
		return;
	}
	if (now - record->due_ns > worst_late_ns)
		worst_late_ns = now - record->due_ns;
	/* Never early. */
	EXPECT(record->fired_ns >= record->due_ns);
	EXPECT(now >= connections[i].heard_ns + idle_ns);
	hang_up(i);
	closed_idle++;
}

static void read_timers(void)
{
	struct twheel_record records[BATCH];
	ssize_t len = read(timers, records, sizeof(records));

	timer_calls++;
	if (len < 0 && errno != EAGAIN)
		err(EXIT_FAILURE, "cannot read records");
	for (ssize_t i = 0; i < len / (ssize_t)sizeof(*records); i++)
		time_is_up(&records[i]);
}

/* A turn of the event loop: requests first, as each may move a deadline. */
static void turn(void)
{
	struct epoll_event events[BATCH];
	int nr = epoll_wait(epoll, events, BATCH, PATIENCE_MS);
	bool due = false;

	if (nr < 0 && errno != EINTR)
		err(EXIT_FAILURE, "cannot wait");
	if (!nr)
		errx(EXIT_FAILURE, "%u idle connections were not closed",
		     accepted - closed_idle - closed_by_client);
	for (int i = 0; i < nr; i++) {
		if (events[i].data.u64 == nr_connections)
			accept_connections();
		else if (events[i].data.u64 > nr_connections)
			due = true;
		else
			serve(events[i].data.u64);
	}
	if (due)
		read_timers();
}

static void run_server(void)
{
	watch(listener, nr_connections);
	watch(timers, nr_connections + 1);
	while (closed_idle + closed_by_client < nr_connections)
		turn();
}

/* ---- The client ----------------------------------------------------------------- */

static struct sockaddr_in address = { .sin_family = AF_INET };
static __u64 asked, unanswered;

/* The client's side of a connection, with the times of its last two requests. */
static struct peer {
	int fd;
	__u64 spoke_ns, before_ns;
} *peers;

static void open_peer(struct peer *peer)
{
	peer->fd = socket(AF_INET, SOCK_STREAM, 0);
	peer->spoke_ns = now_ns();
	if (connect(peer->fd, (struct sockaddr *)&address, sizeof(address)))
		err(EXIT_FAILURE, "cannot connect to 127.0.0.1: is lo up?");
}

static void leave(struct peer *peer)
{
	if (peer->fd >= 0)
		close(peer->fd);
	peer->fd = -1;
}

static void ask(struct peer *peer)
{
	if (peer->fd < 0)
		return;
	peer->before_ns = peer->spoke_ns;
	peer->spoke_ns = now_ns();
	send(peer->fd, "?", 1, MSG_NOSIGNAL);
	asked++;
}

/* Reads the answer.  There is none if the server has closed the connection as idle. */
static void hear(struct peer *peer)
{
	char byte;

	if (peer->fd < 0 || read(peer->fd, &byte, 1) == 1)
		return;
	EXPECT(now_ns() >= peer->before_ns + idle_ns);
	unanswered++;
	leave(peer);
}

static void ask_all(unsigned int first, unsigned int end, unsigned int step)
{
	for (unsigned int i = first; i < end; i += step)
		ask(&peers[i]);
	for (unsigned int i = first; i < end; i += step)
		hear(&peers[i]);
}

/* The server hangs up. */
static void see_the_end(struct peer *peer)
{
	char byte;

	if (peer->fd >= 0)
		EXPECT(read(peer->fd, &byte, 1) <= 0);
	leave(peer);
}

static void *run_client(void *unused)
{
	__u64 end_ns = now_ns() + busy_ns;
	unsigned int opened = 0;

	while (opened < nr_connections || now_ns() < end_ns) {
		unsigned int first = opened;

		while (opened < nr_connections && opened < first + GROUP)
			open_peer(&peers[opened++]);
		ask_all(first, opened, 1);
		ask_all(0, opened, BUSY);
	}
	for (unsigned int i = 0; i < nr_connections; i += 10 * BUSY)
		leave(&peers[i]);
	for (unsigned int i = 0; i < nr_connections; i++)
		see_the_end(&peers[i]);
	return unused;
}

/* ---- What happened -------------------------------------------------------------- */

static void tell(void)
{
	printf("%u connections on loopback, idle for %.1f s at most\n",
	       nr_connections, (double)idle_ns / NSEC_PER_SEC);
	printf("  %llu requests; %llu deadlines stored, without a call\n", requests, stores);
	printf("  %llu system calls for timers: %llu events added, %llu cancelled, %llu read\n",
	       timer_calls, counter("added"), counter("cancelled"), records_read);
	printf("  %llu times the kernel looked, found a later deadline, and woke nobody\n",
	       counter("postponed"));
	printf("  %u closed as idle, none early, the worst %.3f ms after its time\n",
	       closed_idle, worst_late_ns / 1e6);
	printf("  %u closed by the client; %llu requests came as their time was up\n",
	       closed_by_client, crossed);
}

/* Checks the counters against each other. */
static void check(void)
{
	EXPECT(accepted == nr_connections);
	EXPECT(closed_idle + closed_by_client == nr_connections);
	EXPECT(requests + unanswered == asked);
	EXPECT(stores == nr_connections + requests);
	EXPECT(records_read == closed_idle + crossed);
	EXPECT(counter("added") == nr_connections + crossed);
	EXPECT(counter("finished") == records_read);
	EXPECT(counter("cancelled") == closed_by_client);
	EXPECT(counter("armed") == 0 && counter("ready") == 0);
	EXPECT(counter("postponed") <= requests);
}

static void make_room(void)
{
	rlim_t needed = 2 * nr_connections + 64;
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur < needed) {
		limit.rlim_cur = needed;
		if (limit.rlim_max < needed)
			limit.rlim_max = needed;
		if (setrlimit(RLIMIT_NOFILE, &limit))
			err(EXIT_FAILURE, "cannot have %llu open files",
			    (unsigned long long)needed);
	}
	connections = calloc(nr_connections, sizeof(*connections));
	peers = calloc(nr_connections, sizeof(*peers));
	EXPECT(connections && peers);
}

static void open_listener(void)
{
	socklen_t len = sizeof(address);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (bind(listener, (struct sockaddr *)&address, len) || listen(listener, SOMAXCONN) ||
	    getsockname(listener, (struct sockaddr *)&address, &len))
		err(EXIT_FAILURE, "cannot listen on 127.0.0.1");
	epoll = epoll_create1(EPOLL_CLOEXEC);
}

static error_t parse(int key, char *text, struct argp_state *state)
{
	char *end = "";

	if (key == 'c')
		nr_connections = strtoul(text, &end, 10);
	else if (key == 'i')
		idle_ns = strtod(text, &end) * NSEC_PER_SEC;
	else if (key == 'b')
		busy_ns = strtod(text, &end) * NSEC_PER_SEC;
	else
		return ARGP_ERR_UNKNOWN;
	if (*end || !nr_connections || nr_connections > 25000)
		argp_error(state, "-%c \"%s\" will not do", key, text);
	return 0;
}

static const struct argp_option options[] = {
	{ "connections", 'c', "N", 0, "How many, up to 25000; default 10000", 0 },
	{ "idle", 'i', "S", 0, "Close a connection after S silent seconds; default 2", 0 },
	{ "busy", 'b', "S", 0, "Keep one of a hundred busy for S seconds; default 3", 0 },
	{ 0 }
};

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.doc = "Closes idle connections, whose timeouts are words that requests move.",
};

int main(int argc, char **argv)
{
	pthread_t client;

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	make_room();
	share_deadlines();
	open_listener();
	EXPECT(!pthread_create(&client, NULL, run_client, NULL));
	run_server();
	EXPECT(!pthread_join(client, NULL));
	tell();
	check();
	return EXIT_SUCCESS;
}
