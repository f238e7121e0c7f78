// SPDX-License-Identifier: GPL-2.0
/* The loop of twheel-relay: it opens everything, runs until it is told to end, and closes. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/param.h>
#include <sys/signalfd.h>
#include <sysexits.h>
#include <unistd.h>

#include "common/exit.h"
#include "common/log.h"
#include "common/notify.h"
#include "common/util.h"
#include "common/version.h"
#include "metrics/http.h"
#include "relay/cancels.h"
#include "relay/check.h"
#include "relay/commit.h"
#include "relay/doubt.h"
#include "relay/group.h"
#include "relay/kafka.h"
#include "relay/lag.h"
#include "relay/library.h"
#include "relay/loop.h"
#include "relay/map.h"
#include "relay/near.h"
#include "relay/page.h"
#include "relay/web.h"
#include "relay/partition.h"
#include "relay/send.h"
#include "relay/settings.h"
#include "relay/state.h"
#include "relay/topics.h"
#include "relay/turn.h"
#include "relay/wake.h"
#include "relay/work.h"

/* How often the relay commits and checks for rare events. */
#define TICK_MS	500

/* How long the end may take: it waits for records and commits in flight, 10 s for each. */
#define END_S	60

/**
 * struct loop - the loop and what it waits for
 * @relay: the relay.
 * @metrics: the server of its page; NULL: none.
 * @web: what the page for people shows.
 * @epoll_fd: has all files that wake the loop.
 * @signal_fd: SIGTERM and SIGINT.
 * @tick_ms: the time of the next tick, by the clock since boot.
 */
struct loop {
	struct relay relay;
	struct metrics *metrics;
	struct relay_web *web;
	int epoll_fd;
	int signal_fd;
	uint64_t tick_ms;
};

/* --- opening: each function logs what is wrong, and returns an exit status ------------ */

static int open_alarms(struct loop *loop)
{
	struct relay *relay = &loop->relay;
	int error = alarms_open(&relay->alarms, relay->options.wheel);

	if (!error)
		return 0;
	log_say(LOG_ERR, "cannot open the timing wheel%s: %s",
		relay->options.wheel == ALARM_DEVICE ? " of /dev/twheel" : "", strerror(-error));
	return EXIT_CANNOT;
}

static int open_metrics(struct loop *loop)
{
	struct metrics_source source = {
		.write = relay_page_write,
		.health = relay_health,
		.context = &loop->relay,
	};
	const char *address = loop->relay.options.metrics;
	int error;

	if (!address)
		return 0;
	loop->web = relay_web_create(&loop->relay, loop->relay.options.http_host);
	source.site = loop->web ? relay_web_site(loop->web) : NULL;
	error = loop->web ? metrics_open(&loop->metrics, address, &source) : -ENOMEM;
	if (!error) {
		log_say(LOG_INFO, "metrics on %s", metrics_address(loop->metrics));
		log_say(LOG_INFO, "page for people at http://%s/", metrics_address(loop->metrics));
		return 0;
	}
	log_say(LOG_ERR, "cannot listen on \"%s\" for metrics: %s", address, strerror(-error));
	return EXIT_CANNOT;
}

static int open_clients(struct loop *loop)
{
	int status = relay_client_open(&loop->relay);

	return status || !loop->metrics ? status : relay_lag_open(&loop->relay);
}

static void end_before_start(int signal)
{
	(void)signal;
	_exit(0);
}

/*
 * If no broker answers, this waits for a minute or two. Nothing has begun that has to be ended in
 * order. Later the signals are blocked, and come by a signalfd.
 */
static int open_topics(struct loop *loop)
{
	sigset_t signals;
	int status;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	signal(SIGTERM, end_before_start);
	signal(SIGINT, end_before_start);
	sigprocmask(SIG_UNBLOCK, &signals, NULL);
	status = relay_topics_open(&loop->relay);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	return status;
}

static int open_cancels(struct loop *loop)
{
	return relay_cancels_open(&loop->relay);
}

static int open_work(struct loop *loop)
{
	return relay_work_open(&loop->relay);
}

static int open_checker(struct loop *loop)
{
	return relay_check_open(&loop->relay);
}

static int open_turns(struct loop *loop)
{
	return relay_turn_open(&loop->relay);
}

static int watch(struct loop *loop, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

static int open_epoll(struct loop *loop)
{
	struct relay *relay = &loop->relay;
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	loop->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->signal_fd >= 0 && loop->epoll_fd >= 0 && !watch(loop, loop->signal_fd) &&
	    !watch(loop, relay->reader_fd) && !watch(loop, relay->sender_fd) &&
	    !watch(loop, alarms_fd(relay->alarms)) &&
	    !watch(loop, relay_work_fd(relay->work)) &&
	    !watch(loop, relay_cancels_fd(relay->cancels)) &&
	    (!relay->turn || !watch(loop, relay_turn_fd(relay->turn))) &&
	    (!loop->metrics || !watch(loop, metrics_fd(loop->metrics))))
		return 0;
	log_say(LOG_ERR, "cannot poll: %m");
	return EXIT_CANNOT;
}

static int join_group(struct loop *loop)
{
	return relay_group_join(&loop->relay);
}

static int open_all(struct loop *loop)
{
	static int (*const opens[])(struct loop *loop) = {
		open_alarms, open_metrics, open_clients, open_topics, open_work, open_checker,
		open_cancels, open_turns, open_epoll, join_group,
	};
	int status = 0;
	size_t i;

	for (i = 0; !status && i < ARRAY_SIZE(opens); i++)
		status = opens[i](loop);
	return status;
}

/* The threads first: they use the clients. */
static void close_all(struct loop *loop)
{
	struct relay *relay = &loop->relay;

	relay_lag_close(relay);
	relay_turn_close(relay);
	relay_work_close(relay);
	relay_check_close(relay);
	relay_cancels_close(relay);
	relay_client_close(relay);
	relay_map_free_writes(&relay->map_queue);
	if (loop->metrics)
		metrics_close(loop->metrics);
	if (loop->web)
		relay_web_destroy(loop->web);
	alarms_close(loop->relay.alarms);
	if (loop->epoll_fd >= 0)
		close(loop->epoll_fd);
	if (loop->signal_fd >= 0)
		close(loop->signal_fd);
}

/* --- the loop ------------------------------------------------------------------------- */

static int timeout_ms(const struct loop *loop, bool busy)
{
	uint64_t now_ms = relay_boot_ms();
	uint64_t begin_ms = MIN(relay_send_gathers_until(&loop->relay),
				relay_turn_waits_until(&loop->relay));
	uint64_t end_ms = MIN(loop->tick_ms, begin_ms);
	int other = loop->metrics ? metrics_timeout_ms(loop->metrics) : -1;
	int timeout;

	timeout = end_ms > now_ms ? end_ms - now_ms : 0;

	if (busy)
		return 0;
	return other >= 0 && other < timeout ? other : timeout;
}

/* Is it an eventfd, which is to be drained? */
static bool is_event(const struct relay *relay, int fd)
{
	return fd == relay->reader_fd || fd == relay->sender_fd ||
		fd == relay_work_fd(relay->work) || fd == relay_cancels_fd(relay->cancels) ||
		(relay->turn && fd == relay_turn_fd(relay->turn));
}

/* Returns false if a signal tells the relay to end. */
static bool wait_for_work(struct loop *loop, bool busy)
{
	struct epoll_event events[8];
	uint64_t count;
	int nr, i;

	nr = epoll_wait(loop->epoll_fd, events, ARRAY_SIZE(events), timeout_ms(loop, busy));
	for (i = 0; i < nr; i++) {
		int fd = events[i].data.fd;

		if (fd == loop->signal_fd)
			return false;
		if (is_event(&loop->relay, fd) && read(fd, &count, sizeof(count)) < 0)
			continue;
	}
	return true;
}

static void tick(struct loop *loop)
{
	if (relay_boot_ms() < loop->tick_ms)
		return;
	loop->tick_ms = relay_boot_ms() + TICK_MS;
	relay_settings_check(&loop->relay);
	relay_cancels_ask(&loop->relay);
	relay_cancels_expire(&loop->relay);
	relay_commit(&loop->relay);
}

/* Do what there is to do, up to limits. Returns whether there may be more. */
static bool turn(struct loop *loop)
{
	struct relay *relay = &loop->relay;
	bool busy;

	relay_doubt_check(relay);
	relay_send_poll(relay, 0);
	relay_work_poll(relay);
	busy = relay_cancels_poll(relay);
	relay_group_update(relay);
	busy |= relay_wake_due(relay);
	busy |= relay_group_read(relay);
	relay_near_give_way(relay);
	relay_partition_backpressure(relay);
	tick(loop);
	relay_turn_run(relay);
	if (loop->metrics)
		metrics_run(loop->metrics);
	relay_wake_flush(relay);
	return busy || relay->doubt_over;
}

static void end_at_once(int signal)
{
	static const char text[] =
		"twheel-relay: ended without leaving the group: no broker answers\n";

	(void)signal;
	(void)!write(STDERR_FILENO, text, strlen(text));
	_exit(EX_UNAVAILABLE);
}

/* librdkafka 2.0.2 can wait for ever in what follows, if no broker answers. */
static void bound_end(void)
{
	sigset_t alarms;

	signal(SIGALRM, end_at_once);
	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	sigprocmask(SIG_UNBLOCK, &alarms, NULL);
	alarm(END_S);
}

static void run_loop(struct loop *loop)
{
	bool busy = true;

	notify("READY=1");
	while (!loop->relay.ending && wait_for_work(loop, busy))
		busy = turn(loop);
	notify("STOPPING=1");
}

static void log_start(const struct relay *relay)
{
	log_say(LOG_INFO, "twheel-relay " TWHEEL_VERSION " of topic %s, horizon %" PRIu64
		" s, %u buckets, wheel: %s", relay->options.topic,
		relay->options.horizon_ms / 1000, relay->rules.nr_buckets,
		alarms_name(relay->alarms));
	relay_say_library();
	if (relay->options.scale > 1)
		log_say(LOG_WARNING, "times are divided by %" PRIu64, relay->options.scale);
}

static void init(struct loop *loop)
{
	struct relay *relay = &loop->relay;

	loop->epoll_fd = -1;
	loop->signal_fd = -1;
	relay->reader_fd = -1;
	relay->sender_fd = -1;
	relay->started_ms = relay_boot_ms();
	relay->pressure.cap = relay->options.memory;
	relay->handlers = (struct relay_handlers){
		.done = relay_partition_done,
		.drop = relay_partition_drop,
		.put_off = relay_partition_put_off,
		.reconsider = relay_partition_reconsider,
		.ask = relay_commit_ask,
		.map_report = relay_map_report,
	};
	RB_INIT(&relay->partitions);
	RB_INIT(&relay->targets);
	RB_INIT(&relay->near);
	TAILQ_INIT(&relay->blocked);
	TAILQ_INIT(&relay->blocked_own);
	TAILQ_INIT(&relay->gathered);
	TAILQ_INIT(&relay->dropped);
	TAILQ_INIT(&relay->map_queue);
	LIST_INIT(&relay->loads);
	relay->suspended = -1;
	relay_rules_init(&relay->rules, relay->options.topic, relay->options.horizon_ms,
			 relay->options.scale);
	if (relay->options.has_targets)
		relay->rules.targets = &relay->options.targets;
}

/* Only the loop handles signals: the threads of librdkafka inherit that they are blocked. */
static void block_signals(void)
{
	sigset_t signals;

	sigfillset(&signals);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
}

int relay_run(const struct relay_options *options)
{
	struct loop loop = { .relay.options = *options };
	int status;

	block_signals();
	init(&loop);
	status = open_all(&loop);
	if (!status) {
		log_start(&loop.relay);
		run_loop(&loop);
	}
	bound_end();
	if (!status) {
		relay_group_leave(&loop.relay);
		status = loop.relay.status;
	}
	close_all(&loop);
	return status;
}
