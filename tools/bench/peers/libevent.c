// SPDX-License-Identifier: GPL-2.0
/*
 * Timers of libevent: a binary heap.
 *
 * Within the loop it has the time of the turn, elsewhere it reads the clock: so pairs are
 * measured within.
 */
#include <event2/event.h>
#include <event2/event_struct.h>

#include "peer.h"

static struct event_base *base;
static struct event *timers;

static void on_timer(evutil_socket_t fd, short events, void *timer)
{
	(void)fd;
	(void)events;
	peer_expired((struct event *)timer - timers);
}

static void begin(uint32_t count)
{
	base = event_base_new();
	timers = peer_alloc(count, sizeof(*timers));
}

static void arm(uint32_t i, uint64_t delay_us)
{
	struct timeval delay = { delay_us / 1000000, delay_us % 1000000 };

	evtimer_assign(&timers[i], base, on_timer, &timers[i]);
	evtimer_add(&timers[i], &delay);
}

static void cancel(uint32_t i)
{
	evtimer_del(&timers[i]);
}

static void run(void)
{
	event_base_dispatch(base);
}

static void on_start(evutil_socket_t fd, short events, void *work)
{
	(void)fd;
	(void)events;
	(*(void (**)(void))work)();
}

static void within(void (*work)(void))
{
	struct timeval at_once = { 0 };

	event_base_once(base, -1, EV_TIMEOUT, on_start, &work, &at_once);
	run();
}

int main(int argc, char **argv)
{
	static const struct peer libevent = {
		.name = "libevent",
		.begin = begin,
		.arm = arm,
		.cancel = cancel,
		.run = run,
		.within = within,
	};

	return peer_main(argc, argv, &libevent);
}
