// SPDX-License-Identifier: GPL-2.0
/* Timers of libuv: a binary heap, whole ms, and the time of the loop's turn. */
#include <uv.h>

#include "peer.h"

static uv_loop_t *loop;
static uv_timer_t *timers;

static void on_timer(uv_timer_t *timer)
{
	peer_expired(timer - timers);
}

static void begin(uint32_t count)
{
	uint32_t i;

	loop = uv_default_loop();
	timers = peer_alloc(count, sizeof(*timers));
	for (i = 0; i < count; i++)
		uv_timer_init(loop, &timers[i]);
}

static void refresh(void)
{
	uv_update_time(loop);
}

static void arm(uint32_t i, uint64_t delay_us)
{
	uv_timer_start(&timers[i], on_timer, (delay_us + 999) / 1000, 0);
}

static void cancel(uint32_t i)
{
	uv_timer_stop(&timers[i]);
}

static void run(void)
{
	uv_run(loop, UV_RUN_DEFAULT);
}

int main(int argc, char **argv)
{
	static const struct peer libuv = {
		.name = "libuv",
		.begin = begin,
		.refresh = refresh,
		.arm = arm,
		.cancel = cancel,
		.run = run,
	};

	return peer_main(argc, argv, &libuv);
}
