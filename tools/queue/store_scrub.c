// SPDX-License-Identifier: GPL-2.0
/*
 * Scrubbing: a thread reads the whole store now and then, so that damage of what nobody asks
 * for is known while there are still copies of it, and not on the day it is due.
 *
 * A store that is small was read before it was served; of one that is not, the first pass
 * begins at once. A pass goes in steps of a MiB, each of which sees the store as it is then:
 * a walk of hours would keep all files on the disk that it began with. Between two steps it
 * sleeps ten times as long as the last one took, so it takes at most a tenth of what the
 * disk, and a core, can do.
 *
 * Blocks that are in RocksDB's cache, or files in the kernel's, are not read from the disk;
 * a later pass will.
 *
 * Each second it also looks after the room that deletes give back, see store_space.c.
 *
 * It reads, and RocksDB lets many threads read at once; the batch, which the thread of the
 * queue has not handed over yet, it does not see. What is damaged store_damaged() says, and
 * marks; it is over then, as the rest is read by the repair.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "store_internal.h"

#define STEP_BYTES	(1u << 20)
#define STEP_SHARE	10

/**
 * struct step - how far the scrub has come
 * @bytes: read in this step.
 * @from: where the next step begins: right behind the last key that was seen.
 * @from_len: its length; 0: at the beginning.
 * @kind: of an entry that made no sense, if @senseless.
 * @senseless: there was one.
 * @more: the step ended before the store did.
 */
struct step {
	size_t bytes;
	char from[STORE_KEY_MAX + 1];
	size_t from_len;
	char kind;
	bool senseless;
	bool more;
};

/* --- steps -------------------------------------------------------------------------------- */

static bool see(void *context, const struct store_entry *entry)
{
	struct step *step = context;

	if (!entry->sound || entry->key_len > STORE_KEY_MAX) {
		step->kind = entry->kind;
		step->senseless = true;
		return false;
	}
	step->bytes += entry->key_len + entry->value_len;
	memcpy(step->from, entry->key, entry->key_len);
	step->from[entry->key_len] = 0;
	step->from_len = entry->key_len + 1;
	step->more = step->bytes >= STEP_BYTES;
	return !step->more;
}

/* Returns 0, or what is wrong, which was said. */
static int take_step(struct store *store, struct step *step)
{
	char what[64];
	int ret;

	step->bytes = 0;
	step->more = false;
	ret = store_scan_from(store, step->from, step->from_len, see, step);
	if (ret || !step->senseless)
		return ret;
	snprintf(what, sizeof(what), "an entry of kind '%c'", step->kind);
	return store_damaged(store, what, NULL);
}

/* --- the thread --------------------------------------------------------------------------- */

/* Returns false if it is to end. */
static bool sleep_until(struct store_scrubber *scrubber, uint64_t until_ns)
{
	const struct timespec until = store_timespec(until_ns);
	bool stop;

	pthread_mutex_lock(&scrubber->lock);
	while (!scrubber->stop &&
	       pthread_cond_timedwait(&scrubber->wake, &scrubber->lock, &until) != ETIMEDOUT)
		;
	stop = scrubber->stop;
	pthread_mutex_unlock(&scrubber->lock);
	return !stop;
}

/* The same; and looks after the room on the disk meanwhile. */
static bool rest_until(struct store *store, uint64_t until_ns)
{
	uint64_t next_ns;

	do {
		next_ns = store_now_ns() + STORE_SECOND_NS;
		if (next_ns > until_ns)
			next_ns = until_ns;
		if (!sleep_until(&store->scrubber, next_ns))
			return false;
		store_space_push(store);
	} while (next_ns < until_ns);
	return true;
}

/* Read it all. Returns false if the thread is to end. */
static bool pass(struct store *store)
{
	struct step step = { 0 };
	uint64_t began_ns, took_ns;
	int ret;

	do {
		began_ns = store_now_ns();
		ret = take_step(store, &step);
		store->scrubber.bytes += step.bytes;
		took_ns = store_now_ns() - began_ns;
		if (!rest_until(store, store_now_ns() + STEP_SHARE * took_ns))
			return false;
	} while (!ret && step.more);
	store->scrubber.passes += !ret;
	return true;
}

/* It is done when damage was found; else it comes again. */
static uint64_t next_pass_ns(const struct store *store)
{
	uint64_t interval_ns = store->config.scrub_interval_ns;

	return interval_ns && !store->damaged ? store_now_ns() + interval_ns : UINT64_MAX;
}

static void *run(void *context)
{
	struct store *store = context;
	uint64_t next_ns = next_pass_ns(store);

	if (!store->scanned && next_ns != UINT64_MAX)
		next_ns = 0;
	while (rest_until(store, next_ns)) {
		if (!pass(store))
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
	ret = -pthread_create(&scrubber->thread, NULL, run, store);
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
