// SPDX-License-Identifier: GPL-2.0
/*
 * Alarms of the relay. Where the device has no room for one, it is kept in a list and is
 * tried again each second: so it is late by so much, but is not lost.
 */
#include "relay.h"

/* How many are woken in a turn of the loop. */
#define BATCH	256

static void refuse(struct relay *relay, struct relay_waker *waker)
{
	waker->refused = true;
	TAILQ_INSERT_TAIL(&relay->refused, waker, entry);
	relay->nr_refused++;
}

static void wake(struct relay *relay, struct relay_waker *waker, enum alarm_clock clock,
		 uint64_t time_ms)
{
	relay_wake_never(relay, waker);
	waker->clock = clock;
	waker->time_ms = time_ms;
	if (alarm_add(relay->alarms, &waker->alarm, (uintptr_t)waker, clock,
		      time_ms * NSEC_PER_MSEC))
		refuse(relay, waker);
}

void relay_wake_at(struct relay *relay, struct relay_waker *waker, uint64_t time_ms)
{
	wake(relay, waker, ALARM_WALL, time_ms);
}

void relay_wake_in(struct relay *relay, struct relay_waker *waker, uint64_t ms)
{
	wake(relay, waker, ALARM_BOOT, relay_boot_ms() + ms);
}

bool relay_wake_pending(const struct relay_waker *waker)
{
	return waker->refused || alarm_pending(&waker->alarm);
}

void relay_wake_never(struct relay *relay, struct relay_waker *waker)
{
	alarm_cancel(relay->alarms, &waker->alarm);
	if (!waker->refused)
		return;
	TAILQ_REMOVE(&relay->refused, waker, entry);
	waker->refused = false;
	relay->nr_refused--;
}

/*
 * Whoever is woken frees nobody else: what a target or a partition has in lists is freed
 * in callbacks of librdkafka only. So all of a batch are still there.
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
	uint64_t id;

	if (!alarms_flush(relay->alarms))
		return;
	while (alarms_refused(relay->alarms, &id))
		refuse(relay, (struct relay_waker *)(uintptr_t)id);
}

void relay_wake_refused(struct relay *relay)
{
	uint64_t nr = relay->nr_refused;
	struct relay_waker *waker;

	for (; nr && (waker = TAILQ_FIRST(&relay->refused)); nr--) {
		/* It is last in the list, where it is refused once more. */
		relay_wake_never(relay, waker);
		if (waker->time_ms <= alarms_now_ns(waker->clock) / NSEC_PER_MSEC)
			waker->wake(relay, waker);
		else
			wake(relay, waker, waker->clock, waker->time_ms);
	}
}
