// SPDX-License-Identifier: GPL-2.0
/*
 * What all peers in C do.  Those in other languages do the same, step by step.
 *
 * Time is that of all threads of the process on a CPU, as some peers do a part of their
 * work in another thread: they collect garbage there, or sort timers into a wheel.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "peer.h"

#define NSEC_PER_SEC	1000000000ULL
#define SWEEP_BYTES	(64 << 20)

enum {
	PAIR_DELAY_US = 60000000,	/* and up to twice as much */
	EXPIRE_SPREAD_US = 2,		/* for each timer */
	EXPIRE_MARGIN_US = 20000,	/* no peer in C is coarser */
	CHECK_DELAY_MS = 20,		/* whole ms, as some peers have nothing else */
	CHECK_SPREAD_MS = 300,
};

static const struct peer *peer;
static uint32_t nr_timers;
static uint32_t expired;

/* --- clocks, memory, random numbers ------------------------------------------------------- */

static uint64_t read_clock(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * NSEC_PER_SEC + time.tv_nsec;
}

static uint64_t cpu_ns(void)
{
	return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t peer_now_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

void peer_sleep_until(uint64_t time_ns)
{
	struct timespec time = { time_ns / NSEC_PER_SEC, time_ns % NSEC_PER_SEC };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL))
		;
}

void *peer_alloc(size_t nr, size_t size)
{
	void *memory = calloc(nr, size);

	if (!memory)
		err(1, "no memory for %zu x %zu bytes", nr, size);
	return memory;
}

/* The same numbers in each language: xorshift32. */
static uint32_t draw(void)
{
	static uint32_t state = 2463534242;

	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return state;
}

static uint64_t pair_delay_us(void)
{
	return PAIR_DELAY_US + draw() % PAIR_DELAY_US;
}

/* Put other memory into the caches. */
static void sweep(void)
{
	char *memory = malloc(SWEEP_BYTES);

	if (!memory)
		err(1, "no memory for %d bytes", SWEEP_BYTES);
	memset(memory, 1, SWEEP_BYTES);
	/* The compiler is to believe that it is read. */
	asm volatile("" : : "r" (memory) : "memory");
	free(memory);
}

/* The anonymous memory of this process: smaps_rollup counts pages exactly, status does not. */
static uint64_t memory_bytes(void)
{
	FILE *file = fopen("/proc/self/smaps_rollup", "r");
	unsigned long long kib = 0;
	char line[256];

	if (!file)
		err(1, "/proc/self/smaps_rollup");
	while (fgets(line, sizeof(line), file) && sscanf(line, "Anonymous: %llu", &kib) != 1)
		;
	fclose(file);
	return kib * 1024;
}

/* --- results ------------------------------------------------------------------------------ */

static void print(const char *work, double value, const char *unit)
{
	printf("result w6.%s.%s.%u %.6g %s\n", peer->name, work, nr_timers, value, unit);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *samples, uint32_t nr)
{
	qsort(samples, nr, sizeof(*samples), compare);
	return samples[nr / 2];
}

/* --- pair: cancel one at random and arm another --------------------------------------------- */

static uint32_t pairs;

static void measure_pairs(void)
{
	uint64_t start;
	uint32_t i;

	for (i = 0; i < nr_timers; i++)
		peer->arm(i, pair_delay_us());
	start = cpu_ns();
	for (i = 0; i < pairs; i++) {
		uint32_t victim = draw() % nr_timers;

		peer->cancel(victim);
		peer->arm(victim, pair_delay_us());
	}
	print("pair", (double)(cpu_ns() - start) / pairs, "ns");
	fflush(stdout);
	if (expired)
		errx(1, "%u timers expired in the first minute", expired);
	/* The others are still armed. */
	exit(0);
}

static void pair(uint32_t times)
{
	pairs = times;
	if (peer->within)
		peer->within(measure_pairs);
	else
		measure_pairs();
}

/* --- expire: all that are armed, when all are due ----------------------------------------- */

static double expire_all(void)
{
	uint64_t spread_us = (uint64_t)EXPIRE_SPREAD_US * nr_timers, start;
	uint32_t i;

	if (peer->refresh)
		peer->refresh();
	for (i = 0; i < nr_timers; i++)
		peer->arm(i, 1 + draw() % spread_us);
	sweep();
	peer_sleep_until(peer_now_ns() + (spread_us + EXPIRE_MARGIN_US) * 1000);
	expired = 0;
	start = cpu_ns();
	peer->run();
	start = cpu_ns() - start;
	if (expired != nr_timers)
		errx(1, "of %u timers %u expired", nr_timers, expired);
	return (double)start / nr_timers;
}

static void expire(uint32_t times)
{
	double *samples = peer_alloc(times, sizeof(*samples));
	uint32_t i;

	for (i = 0; i < times; i++)
		samples[i] = expire_all();
	print("expire", median(samples, times), "ns");
	free(samples);
}

/* --- bytes: of an armed timer ------------------------------------------------------------- */

static void bytes(uint64_t before)
{
	uint32_t i;

	for (i = 0; i < nr_timers; i++)
		peer->arm(i, pair_delay_us());
	print("bytes", ((double)memory_bytes() - before) / nr_timers, "bytes");
}

/* --- check: all that were not cancelled expire, once and in time ---------------------------- */

/**
 * struct fate - what becomes of a timer
 * @due_ns: when it is due.
 * @expirations: how often it has expired.
 * @cancelled: it was cancelled.
 */
struct fate {
	uint64_t due_ns;
	uint32_t expirations;
	bool cancelled;
};

static struct fate *fates;
static double *lateness_us;
static uint32_t early;

void peer_expired(uint32_t i)
{
	double late_us;

	expired++;
	if (!fates)
		return;
	late_us = ((double)peer_now_ns() - fates[i].due_ns) / 1000;
	early += late_us < 0;
	/* Should more expire than there are, the last place is written to again. */
	lateness_us[expired <= nr_timers ? expired - 1 : nr_timers - 1] = late_us;
	fates[i].expirations++;
}

static uint32_t arm_all_and_cancel_half(void)
{
	uint32_t i, cancelled = 0;

	for (i = 0; i < nr_timers; i++) {
		uint64_t delay_us = 1000 * (CHECK_DELAY_MS + draw() % CHECK_SPREAD_MS);

		/* The peer may take the time later, but not earlier. */
		fates[i].due_ns = peer_now_ns() + delay_us * 1000;
		if (peer->refresh)
			peer->refresh();
		peer->arm(i, delay_us);
	}
	for (i = 0; i < nr_timers; i++) {
		if (draw() % 2)
			continue;
		peer->cancel(i);
		fates[i].cancelled = true;
		cancelled++;
	}
	return cancelled;
}

static void check(void)
{
	uint32_t i, cancelled;

	lateness_us = peer_alloc(nr_timers, sizeof(*lateness_us));
	fates = peer_alloc(nr_timers, sizeof(*fates));
	cancelled = arm_all_and_cancel_half();
	peer->run();
	print("armed", nr_timers, "count");
	print("cancelled", cancelled, "count");
	print("expired", expired, "count");
	print("early", early, "count");
	for (i = 0; i < nr_timers; i++) {
		if (fates[i].expirations != !fates[i].cancelled)
			errx(1, "timer %u expired %u times, and was %scancelled", i,
			     fates[i].expirations, fates[i].cancelled ? "" : "not ");
	}
	if (!expired)
		errx(1, "all timers were cancelled");
	print("late", median(lateness_us, expired), "us");
	/* It is sorted now. */
	print("least_late", lateness_us[0], "us");
	if (early && peer->never_early)
		errx(1, "%u timers were early", early);
}

/* --- main --------------------------------------------------------------------------------- */

int peer_main(int argc, char **argv, const struct peer *its)
{
	uint32_t times = argc > 3 ? strtoul(argv[3], NULL, 10) : 1;
	const char *work = argc > 1 ? argv[1] : "";
	uint64_t before = memory_bytes();

	peer = its;
	nr_timers = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	if (!nr_timers || !times)
		errx(2, "usage: %s pair|expire|bytes|check COUNT [TIMES]", peer->name);
	peer->begin(nr_timers);
	if (!strcmp(work, "pair"))
		pair(times);
	else if (!strcmp(work, "expire"))
		expire(times);
	else if (!strcmp(work, "bytes"))
		bytes(before);
	else if (!strcmp(work, "check"))
		check();
	else
		errx(2, "there is no work \"%s\"", work);
	return 0;
}
