// SPDX-License-Identifier: GPL-2.0
/*
 * kmod/wheel.c in a process.
 *
 * As event loops do, "wheel" takes the time once in a turn; "wheel --clock" reads the clock
 * whenever a timer is armed, as peers without a loop of one's own have to.
 *
 * A timer has the node, a function and its argument: 40 bytes.
 */
#include <string.h>

#include <linux/minmax.h>

#include "../../../kmod/wheel.h"
#include "peer.h"

#define TICK_SHIFT	15	/* 33 us, as in tools/alarm */
#define HOLD		64	/* nodes for each hold of the lock, as in the module */

struct timer {
	struct wheel_node node;
	void (*function)(void *argument);
	void *argument;
};

static struct wheel wheel;
static struct timer *timers;
static uint64_t now_ns;

static void take_time(void)
{
	now_ns = peer_now_ns();
}

static void on_timer(void *argument)
{
	peer_expired((unsigned long)argument);
}

static void begin(uint32_t count)
{
	timers = peer_alloc(count, sizeof(*timers));
	take_time();
	wheel_init(&wheel, now_ns >> TICK_SHIFT);
}

/* In the first tick that begins at the time or after it. */
static void arm(uint32_t i, uint64_t delay_us)
{
	uint64_t due_ns = now_ns + delay_us * 1000;

	timers[i].function = on_timer;
	timers[i].argument = (void *)(unsigned long)i;
	wheel_add(&wheel, &timers[i].node, (due_ns + (1 << TICK_SHIFT) - 1) >> TICK_SHIFT,
		  now_ns >> TICK_SHIFT);
}

static void arm_by_clock(uint32_t i, uint64_t delay_us)
{
	take_time();
	arm(i, delay_us);
}

static void cancel(uint32_t i)
{
	wheel_del(&wheel, &timers[i].node);
}

/* The work of one hold; false: nothing is left to do now. */
static bool hold(uint64_t now)
{
	unsigned int budget = HOLD;
	LIST_HEAD(out);
	bool more = wheel_advance(&wheel, now, &budget, &out) ||
		    wheel_prefetch(&wheel, now, &budget);

	while (!list_empty(&out)) {
		struct timer *timer = container_of(out.next, struct timer, node.list);

		wheel_del(&wheel, &timer->node);
		timer->function(timer->argument);
	}
	return more;
}

static void run(void)
{
	while (wheel.armed) {
		uint64_t due_ns = wheel_next(&wheel) << TICK_SHIFT;

		take_time();
		if (due_ns > now_ns) {
			peer_sleep_until(due_ns);
			take_time();
		}
		while (hold(now_ns >> TICK_SHIFT))
			;
	}
}

int main(int argc, char **argv)
{
	struct peer peer = {
		.name = "wheel",
		.never_early = true,
		.begin = begin,
		.refresh = take_time,
		.arm = arm,
		.cancel = cancel,
		.run = run,
	};

	if (argc > 1 && !strcmp(argv[1], "--clock")) {
		peer.name = "wheel_clock";
		peer.arm = arm_by_clock;
		argc--;
		argv++;
	}
	return peer_main(argc, argv, &peer);
}
