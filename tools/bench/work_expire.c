// SPDX-License-Identifier: GPL-2.0
/*
 * Measures the cost of expiring timers, and of collecting them, while the process is busy.
 *
 * Timers are armed in random order for times at equal distances.  Then the process spins
 * for a number of turns, once while all timers expire, and once while none does.  The
 * difference between the two spins is the cost of expiry.  After that it collects all
 * timers.  They are sparse (one in a tick of twheel) or dense (64).
 *
 * Where instructions are counted, lone timers are also collected as they come: the process
 * sleeps until one expires.  Meanwhile a thread that runs when nothing else does
 * counts its turns; what it does not get is the cost, with the wake-up and the switches.
 */
#include <err.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "work.h"

#define TICK_NS		65536ULL
#define NSEC_PER_MSEC	1000000ULL

/*
 * The number of rounds, whose median is the figure: other load disturbs a clock, and the
 * kernel's own work, for example after its start, is counted with the rest.
 */
#define ROUNDS		5
#define COUNTED_ROUNDS	3

/* How often a disturbed round is repeated. */
#define TRIES_MAX	5

static const struct density {
	const char *name;
	__u64 apart_ns;
} densities[] = {
	{ "sparse", TICK_NS },
	{ "dense", TICK_NS / 64 },
};

/* Each has been collected before the next one comes. */
static const struct density lone = { "lone", 8 * TICK_NS };

struct figures {
	double expire;
	double deliver;
	double calls;
	double interrupts;
};

/* Arm all for times from @begin_ns on, and return the last of these. */
static __u64 arm_due(struct set *set, const struct density *density,
		     __u64 begin_ns)
{
	__u64 *due_ns = bench_alloc(set->nr, sizeof(*due_ns));
	__u32 *order = all_timers(set->nr), i;
	const struct timers timers = { order, due_ns, set->nr };

	bench_shuffle(order, set->nr, set->nr);
	for (i = 0; i < set->nr; i++)
		due_ns[i] = begin_ns + order[i] * density->apart_ns;
	set->way->arm(set, &timers);
	free(due_ns);
	free(order);
	return begin_ns + set->nr * density->apart_ns;
}

/* Spin while the timers expire, and then for as many turns while none does. */
static void measure_expire(struct set *set, __u64 begin_ns, __u64 end_ns,
			   struct figures *figures)
{
	__u64 turns = turns_of(end_ns - begin_ns + set->nr * enough_ns() +
			       20 * NSEC_PER_MSEC);
	__u64 begin, busy, idle, interrupts, others;

	sleep_until(begin_ns - 10 * NSEC_PER_MSEC);
	interrupts = interrupts_now();
	begin = clock_now();
	spin(turns);
	busy = clock_now() - begin;
	interrupts = interrupts_now() - interrupts;

	others = interrupts_now();
	begin = clock_now();
	spin(turns);
	idle = clock_now() - begin;
	others = interrupts_now() - others;
	/* The spin can be too short if turns_of() was interrupted. */
	sleep_until(end_ns + 20 * NSEC_PER_MSEC);
	figures->expire = ((double)busy - idle) / set->nr;
	figures->interrupts = ((double)interrupts - others) / set->nr;
}

static void check_all_once(const __u8 *seen, __u32 nr)
{
	__u32 i;

	for (i = 0; i < nr; i++)
		if (seen[i] != 1)
			errx(1, "timer %u of %u expired %u times", i, nr, seen[i]);
}

static void measure_deliver(struct set *set, struct figures *figures)
{
	__u8 *seen = bench_alloc(set->nr, sizeof(*seen));
	__u32 timers[COLLECT_MAX], left = set->nr, i, nr;
	__u64 begin, calls = set->calls;

	begin = thread_cost();
	while (left) {
		nr = set->way->collect(set, timers, COLLECT_MAX, false);
		if (!nr || nr > left)
			errx(1, "%u timers come when %u are due; is this machine too slow for it?",
			     nr, left);
		left -= nr;
		for (i = 0; i < nr; i++)
			seen[timers[i]]++;
	}
	figures->deliver = (double)(thread_cost() - begin) / set->nr;
	figures->calls = (double)(set->calls - calls) / set->nr;
	check_all_once(seen, set->nr);
	free(seen);
}

/* Returns false without figures if some timers were due before all were armed. */
static bool try_round(const struct way *way, const struct density *density,
		      __u32 nr, __u64 lead_ns, struct figures *figures)
{
	struct set *set = way->open(way, nr);
	__u64 begin_ns = clock_ns() + lead_ns;
	__u64 end_ns = arm_due(set, density, begin_ns);
	bool in_time = clock_ns() < begin_ns;

	if (in_time) {
		measure_expire(set, begin_ns, end_ns, figures);
		measure_deliver(set, figures);
	}
	way->close(set);
	return in_time;
}

/* Try again after a machine stood still, but only so often. */
static void measure_round(const struct way *way, const struct density *density,
			  __u32 nr, struct figures *figures)
{
	__u64 lead_ns = nr * enough_ns() + 100 * NSEC_PER_MSEC;
	unsigned int tries;

	for (tries = 0; tries < TRIES_MAX; tries++, lead_ns *= 2)
		if (try_round(way, density, nr, lead_ns, figures))
			return;
	errx(1, "arming %u timers takes too long", nr);
}

static void expire_measure(const struct way *way, const struct density *density,
			   __u32 nr, struct figures *figures)
{
	double expire[ROUNDS], deliver[ROUNDS];
	unsigned int rounds = clock_is_real() ? ROUNDS : COUNTED_ROUNDS, i;

	for (i = 0; i < rounds; i++) {
		measure_round(way, density, nr, figures);
		expire[i] = figures->expire;
		deliver[i] = figures->deliver;
	}
	figures->expire = median(expire, rounds);
	figures->deliver = median(deliver, rounds);
}

static void print_figures(const struct way *way, const struct density *density,
			  __u32 nr, const struct figures *figures)
{
	char tail[64];

	snprintf(tail, sizeof(tail), "%s%s%s.%u",
		 way->variant ? way->variant : "", way->variant ? "." : "",
		 density->name, nr);
	printf("%-24s %-8s %8.0f %8.0f %8.0f   %6.3f %6.3f\n", way->text,
	       density->name, figures->expire, figures->deliver,
	       figures->expire + figures->deliver, figures->calls,
	       figures->interrupts);
	print_result(figures->deliver, clock_unit(), "u3.%s.deliver.%s",
		     way->name, tail);
	if (figures->expire < 0) {
		printf("%-24s %-8s cost less than could be measured to expire\n", way->text,
		       density->name);
	} else {
		print_result(figures->expire, clock_unit(), "u3.%s.expire.%s",
			     way->name, tail);
		print_result(figures->expire + figures->deliver, clock_unit(),
			     "u3.%s.both.%s", way->name, tail);
	}
	print_result(figures->calls, "calls", "calls.%s.deliver.%s", way->name,
		     tail);
	print_result(figures->interrupts, "interrupts",
		     "interrupts.%s.expire.%s", way->name, tail);
}

/* --- as they come -------------------------------------------------------------- */

/* The thread that runs when nothing else does. */
struct background {
	pthread_t thread;
	atomic_ullong turns;
	atomic_bool stop;
};

static void *background_main(void *arg)
{
	const struct sched_param param = { 0 };
	struct background *background = arg;

	if (sched_setscheduler(0, SCHED_IDLE, &param))
		err(1, "sched_setscheduler");
	while (!background->stop) {
		spin(100);
		background->turns++;
	}
	return NULL;
}

static void background_begin(struct background *background)
{
	background->turns = 0;
	background->stop = false;
	if (pthread_create(&background->thread, NULL, background_main, background))
		errx(1, "no thread");
}

static void background_end(struct background *background)
{
	background->stop = true;
	pthread_join(background->thread, NULL);
}

/* What a turn takes while nothing else is to be done. */
static double calm_turn(struct background *background)
{
	__u64 turns = background->turns, begin = clock_now();

	sleep_until(clock_ns() + 200 * NSEC_PER_MSEC);
	return (double)(clock_now() - begin) / (background->turns - turns);
}

static void collect_as_they_come(struct set *set)
{
	__u8 *seen = bench_alloc(set->nr, sizeof(*seen));
	__u32 timers[COLLECT_MAX], left, nr, i;

	for (left = set->nr; left; left -= nr) {
		nr = set->way->collect(set, timers, COLLECT_MAX, true);
		if (nr > left)
			errx(1, "%u timers come when %u are due", nr, left);
		for (i = 0; i < nr; i++)
			seen[timers[i]]++;
	}
	check_all_once(seen, set->nr);
	free(seen);
}

/* The cost of one timer. */
static double measure_come(const struct way *way, __u32 nr)
{
	struct set *set = way->open(way, nr);
	struct background background;
	__u64 begin_ns = clock_ns() + nr * enough_ns() + 100 * NSEC_PER_MSEC;
	__u64 turns, begin, busy;
	double turn;

	arm_due(set, &lone, begin_ns);
	if (clock_ns() >= begin_ns)
		errx(1, "arming %u timers takes too long", nr);
	background_begin(&background);
	sleep_until(begin_ns - 10 * NSEC_PER_MSEC);
	turns = background.turns;
	begin = clock_now();
	collect_as_they_come(set);
	busy = clock_now() - begin;
	turns = background.turns - turns;
	turn = calm_turn(&background);
	background_end(&background);
	way->close(set);
	return (busy - turns * turn) / nr;
}

static void come(const struct way *way, __u32 nr)
{
	double costs[COUNTED_ROUNDS], cost;
	unsigned int i;

	for (i = 0; i < COUNTED_ROUNDS; i++)
		costs[i] = measure_come(way, nr);
	cost = median(costs, COUNTED_ROUNDS);
	printf("%-24s %-8s %8s %8s %8.0f\n", way->text, "as they come", "", "", cost);
	print_result(cost, clock_unit(), "u3.%s.come.%s%slone.%u", way->name,
		     way->variant ? way->variant : "", way->variant ? "." : "", nr);
}

void work_expire(const struct plan *plan)
{
	unsigned int i, k;

	printf("\n%u timers expire and are collected: %s, system calls and interrupts for each\n\n",
	       plan->due, clock_unit());
	printf("%-24s %-8s %8s %8s %8s   %6s %6s\n", "", "", "expire",
	       "deliver", "both", "calls", "interrupts");
	for (i = 0; ways[i]; i++) {
		if (!ways[i]->delivers || !plan_has(plan, ways[i]))
			continue;
		for (k = 0; k < ARRAY_SIZE(densities); k++) {
			struct figures figures;

			expire_measure(ways[i], &densities[k], plan->due, &figures);
			print_figures(ways[i], &densities[k], plan->due,
				      &figures);
		}
		if (!clock_is_real())
			come(ways[i], plan->due);
	}
}
