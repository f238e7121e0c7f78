// SPDX-License-Identifier: GPL-2.0
/*
 * Records that wait in memory until they are due, each with an alarm.
 *
 * When memory is short, what is due last gives way: it is parked in the widest bucket that is
 * over before it is due (rules/rules.h). So records that are due soon find room, however many
 * there are that are due later. A record that is due in some seconds does not give way: no
 * bucket would be over in time. Only if such records fill the memory, partitions are paused.
 */
#include "common/util.h"
#include "relay/near.h"
#include "relay/send.h"
#include "relay/state.h"
#include "relay/wake.h"

/* How many entries give way in one turn of the loop. */
#define BATCH		1000

static int compare(const struct relay_entry *a, const struct relay_entry *b)
{
	if (a->decision.due_ms != b->decision.due_ms)
		return a->decision.due_ms > b->decision.due_ms ? 1 : -1;
	return ((uintptr_t)a > (uintptr_t)b) - ((uintptr_t)a < (uintptr_t)b);
}

RB_PROTOTYPE(relay_near, relay_entry, in_near, compare)
RB_GENERATE(relay_near, relay_entry, in_near, compare)

/* It is due, unless somebody has set the clock back. */
static void wake_entry(struct relay *relay, struct relay_waker *waker)
{
	struct relay_entry *entry = container_of(waker, struct relay_entry, waker);

	if (entry->decision.due_ms > relay_now_ms()) {
		relay_wake_at(relay, waker, entry->decision.due_ms);
		return;
	}
	relay_near_remove(relay, entry);
	relay_send(relay, entry);
}

void relay_near_add(struct relay *relay, struct relay_entry *entry)
{
	entry->state = ENTRY_NEAR;
	relay->nr_near++;
	RB_INSERT(relay_near, &relay->near, entry);
	entry->waker.wake = wake_entry;
	relay_wake_at(relay, &entry->waker, entry->decision.due_ms);
}

void relay_near_remove(struct relay *relay, struct relay_entry *entry)
{
	RB_REMOVE(relay_near, &relay->near, entry);
	relay->nr_near--;
	entry->state = ENTRY_LOOSE;
}

/* Park an entry that is due last. Returns false if it is due too soon for that. */
static bool give_way(struct relay *relay, struct relay_entry *entry)
{
	uint64_t now_ms = relay_now_ms(), due_ms = entry->decision.due_ms;
	int bucket = due_ms > now_ms ? relay_give_way_bucket(&relay->rules, due_ms - now_ms) : -1;

	if (bucket < 0)
		return false;
	relay_wake_never(relay, &entry->waker);
	relay_near_remove(relay, entry);
	entry->gives_way = true;
	relay->leaving_bytes += entry->size;
	relay->stats.gave_way++;
	entry->decision.action = RELAY_PARK;
	entry->decision.bucket = bucket;
	relay_send(relay, entry);
	return true;
}

/* What gives way already is freed only when its bucket has it. */
static bool is_short(const struct relay *relay)
{
	return relay->pressure.give_way && relay->pressure.bytes - relay->leaving_bytes >
		relay->pressure.cap / 8 * 5;
}

void relay_near_give_way(struct relay *relay)
{
	struct relay_entry *entry;
	unsigned int nr;

	if (relay->revoking)
		return;
	for (nr = 0; nr < BATCH && is_short(relay); nr++) {
		entry = RB_MAX(relay_near, &relay->near);
		if (!entry || !give_way(relay, entry))
			return;
	}
}
