// SPDX-License-Identifier: GPL-2.0
/*
 * The scrub thread reads the whole store at intervals. So damage to a job that nobody reads is
 * found while there are still copies of it, and not on the day when the job is due.
 *
 * A small store was scanned when it was opened; for a larger one, the first pass starts at
 * once. A pass consists of steps of 1 MiB, and each step sees the store as it is then: a single
 * walk of hours would keep all files of its start on the disk. Between two steps the thread
 * sleeps ten times as long as the last step took, so it uses at most a tenth of the disk and
 * of a core.
 *
 * Blocks in RocksDB's cache and files in the page cache are not read from the disk; a later
 * pass reads them.
 *
 * Every second the thread also frees the space of deleted jobs, see space.c.
 *
 * The thread only reads, and RocksDB allows reads by many threads. It does not see the batch
 * that the queue's thread has not passed to RocksDB. store_damaged() logs and marks damage;
 * after that no pass follows, as a repair reads the rest.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/time.h"
#include "queue/integrity/scan.h"
#include "queue/integrity/scrub.h"
#include "queue/store/fault.h"
#include "queue/store/keys.h"
#include "queue/store/space.h"
#include "queue/store/state.h"
#include "queue/store/sync.h"

#define STEP_BYTES	(1u << 20)
#define STEP_SHARE	10

/**
 * struct step - progress of a pass
 * @bytes: bytes read in this step.
 * @from: key where the next step starts: the first one after the last key that was read.
 * @from_len: length of @from; 0: the next step starts at the first key.
 * @kind: kind of the entry that is not valid, if @invalid.
 * @invalid: an entry is not valid.
 * @more: the step ended before the end of the store.
 */
struct step {
	size_t bytes;
	char from[STORE_KEY_MAX + 1];
	size_t from_len;
	char kind;
	bool invalid;
	bool more;
};

/* --- steps -------------------------------------------------------------------------------- */

static bool scrub_entry(void *context, const struct store_entry *entry)
{
	struct step *step = context;

	if (!entry->sound || entry->key_len > STORE_KEY_MAX) {
		step->kind = entry->kind;
		step->invalid = true;
		return false;
	}
	step->bytes += entry->key_len + entry->value_len;
	memcpy(step->from, entry->key, entry->key_len);
	step->from[entry->key_len] = 0;
	step->from_len = entry->key_len + 1;
	step->more = step->bytes >= STEP_BYTES;
	return !step->more;
}

/* Returns 0, or a negative errno of an error that was logged. */
static int scrub_step(struct store *store, struct step *step)
{
	char what[64];
	int ret;

	step->bytes = 0;
	step->more = false;
	ret = store_scan_from(store, step->from, step->from_len, scrub_entry, step);
	if (ret || !step->invalid)
		return ret;
	snprintf(what, sizeof(what), "an entry of kind '%c'", step->kind);
	return store_damaged(store, what, NULL);
}

/* --- the thread --------------------------------------------------------------------------- */

/* Returns false if the thread must end. */
static bool sleep_until(struct store_scrubber *scrubber, uint64_t until_ns)
{
	const struct timespec until = time_spec(until_ns);
	bool stop;

	pthread_mutex_lock(&scrubber->lock);
	while (!scrubber->stop &&
	       pthread_cond_timedwait(&scrubber->wake, &scrubber->lock, &until) != ETIMEDOUT)
		;
	stop = scrubber->stop;
	pthread_mutex_unlock(&scrubber->lock);
	return !stop;
}

/* The same; every second, free the space of deleted jobs. */
static bool rest_until(struct store *store, uint64_t until_ns)
{
	uint64_t next_ns;

	do {
		next_ns = time_now_ns(CLOCK_MONOTONIC) + NSEC_PER_SEC;
		if (next_ns > until_ns)
			next_ns = until_ns;
		if (!sleep_until(&store->scrubber, next_ns))
			return false;
		store_space_push(store);
	} while (next_ns < until_ns);
	return true;
}

/* Read the whole store. Returns false if the thread must end. */
static bool scrub_pass(struct store *store)
{
	struct step step = { 0 };
	uint64_t start_ns, took_ns;
	int ret;

	do {
		start_ns = time_now_ns(CLOCK_MONOTONIC);
		ret = scrub_step(store, &step);
		store->scrubber.bytes += step.bytes;
		took_ns = time_now_ns(CLOCK_MONOTONIC) - start_ns;
		if (!rest_until(store, time_now_ns(CLOCK_MONOTONIC) + STEP_SHARE * took_ns))
			return false;
	} while (!ret && step.more);
	store->scrubber.passes += !ret;
	return true;
}

/* The time of the next pass: never if damage was found. */
static uint64_t next_pass_ns(const struct store *store)
{
	uint64_t interval_ns = store->config.scrub_interval_ns;

	if (!interval_ns || store->damaged)
		return UINT64_MAX;
	return time_now_ns(CLOCK_MONOTONIC) + interval_ns;
}

static void *scrub_thread(void *context)
{
	struct store *store = context;
	uint64_t next_ns = next_pass_ns(store);

	if (!store->scanned && next_ns != UINT64_MAX)
		next_ns = 0;
	while (rest_until(store, next_ns)) {
		if (!scrub_pass(store))
			break;
		next_ns = next_pass_ns(store);
	}
	return NULL;
}

int store_scrub_start(struct store *store)
{
	struct store_scrubber *scrubber = &store->scrubber;
	int ret;

	ret = store_monotonic_cond(&scrubber->wake);
	if (ret)
		return ret;
	pthread_mutex_init(&scrubber->lock, NULL);
	ret = -pthread_create(&scrubber->thread, NULL, scrub_thread, store);
	scrubber->running = !ret;
	return ret;
}

void store_scrub_stop(struct store *store)
{
	struct store_scrubber *scrubber = &store->scrubber;

	if (!scrubber->running)
		return;
	pthread_mutex_lock(&scrubber->lock);
	scrubber->stop = true;
	pthread_cond_signal(&scrubber->wake);
	pthread_mutex_unlock(&scrubber->lock);
	pthread_join(scrubber->thread, NULL);
}
