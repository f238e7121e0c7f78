// SPDX-License-Identifier: GPL-2.0
/* Wakers: alarms that call a function. */
#include "relay/state.h"
#include "relay/wake.h"

/* How many wakers are called in a turn of the loop. */
#define BATCH	256

static void set_waker(struct relay *relay, struct relay_waker *waker, enum alarm_clock clock,
		      uint64_t time_ms)
{
	relay_wake_never(relay, waker);
	waker->time_ms = time_ms;
	alarm_add(relay->alarms, &waker->alarm, (uintptr_t)waker, clock,
		  time_ms * NSEC_PER_MSEC);
}

void relay_wake_at(struct relay *relay, struct relay_waker *waker, uint64_t time_ms)
{
	set_waker(relay, waker, ALARM_WALL, time_ms);
}

void relay_wake_in(struct relay *relay, struct relay_waker *waker, uint64_t ms)
{
	set_waker(relay, waker, ALARM_BOOT, relay_boot_ms() + ms);
}

bool relay_wake_pending(const struct relay_waker *waker)
{
	return alarm_pending(&waker->alarm);
}

void relay_wake_never(struct relay *relay, struct relay_waker *waker)
{
	alarm_cancel(relay->alarms, &waker->alarm);
}

/*
 * A waker that is called frees no entry, partition or target whose waker is set: only callbacks of
 * librdkafka and relay_send_poll() do that. So all wakers of a batch stay valid.
 */
bool relay_wake_due(struct relay *relay)
{
	uint64_t ids[BATCH];
	size_t nr = alarms_take(relay->alarms, ids, BATCH);
	size_t i;

	for (i = 0; i < nr; i++) {
		struct relay_waker *waker = (struct relay_waker *)(uintptr_t)ids[i];

		waker->wake(relay, waker);
	}
	return nr == BATCH;
}

void relay_wake_flush(struct relay *relay)
{
	alarms_flush(relay->alarms);
}
