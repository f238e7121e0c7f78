// SPDX-License-Identifier: GPL-2.0
/* Timers of libev: a heap with four children a node, and the time of the loop's turn. */
#include <ev.h>

#include "peer.h"

static struct ev_loop *loop;
static ev_timer *timers;

static void on_timer(struct ev_loop *its_loop, ev_timer *timer, int events)
{
	(void)its_loop;
	(void)events;
	peer_expired(timer - timers);
}

static void begin(uint32_t count)
{
	loop = ev_default_loop(0);
	timers = peer_alloc(count, sizeof(*timers));
}

static void refresh(void)
{
	ev_now_update(loop);
}

static void arm(uint32_t i, uint64_t delay_us)
{
	ev_timer_init(&timers[i], on_timer, delay_us / 1e6, 0);
	ev_timer_start(loop, &timers[i]);
}

static void cancel(uint32_t i)
{
	ev_timer_stop(loop, &timers[i]);
}

static void run(void)
{
	ev_run(loop, 0);
}

int main(int argc, char **argv)
{
	static const struct peer libev = {
		.name = "libev",
		.never_early = true,
		.begin = begin,
		.refresh = refresh,
		.arm = arm,
		.cancel = cancel,
		.run = run,
	};

	return peer_main(argc, argv, &libev);
}
