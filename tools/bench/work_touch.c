// SPDX-License-Identifier: GPL-2.0
/*
 * Measures the cost of moving idle timeouts, with everything that a move causes later.  Idle
 * timeouts, for example of connections, are moved by each request and hardly ever expire.
 *
 * Moves come in bursts, as in a turn of an event loop.  Each moves a random timeout to 30 s
 * after the burst.  Bursts are run with and without the moves.  The difference between the
 * two, with the interrupts in that time, is the cost of the moves.
 *
 * With most ways a move is complete when its call returns, and a timeout that is moved again
 * and again causes no interrupt.  A store costs nearly nothing.  But about every 30 s each
 * timeout comes out of its wheel, and the kernel checks its deadline.  Both parts are
 * measured: the stores, in bursts while nothing is armed, and the checks.  The number of
 * checks does not depend on the number of moves.  So their cost is divided by the moves in
 * 30 s at 1,000,000 a second: 300 of each of 1e5 timeouts.  With a tenth of the moves, the
 * share of each move is ten times as large.
 *
 * If instructions are counted, the checks are measured over a whole period of 30 s: moves go
 * on at that pace, the process spins for the rest of each burst, and the same bursts are run
 * while nothing is armed.  For one period before, the process sleeps, so that each timeout
 * comes out and waits on.  After that they are spread evenly over the wheel, as after hours.
 *
 * On a clock, two periods of 30 s differ by more than the checks cost.  There a check is
 * measured apart: some timeouts come out while the process spins, one in each tick, so that
 * each has its own interrupt unless it has slack.  The process then spins again without
 * them.
 *
 * The process and its timeouts are on one CPU.  Time that other programs use there counts.
 */
#include <err.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "work.h"

#define NSEC_PER_SEC	1000000000ULL

/* Moves of a burst, moves in a second at the fixed pace, and so the time of a burst. */
#define BURST		1024
#define PACE		1000000ULL
#define BURST_NS	(BURST * (NSEC_PER_SEC / PACE))

/* The time of the bursts that measure a move without the checks. */
#define SOME_NS		NSEC_PER_SEC

/* After a period, until the next one begins. */
#define GAP_NS		NSEC_PER_SEC

/* The number of bursts whose median is the cost of stores. */
#define PAIRS		500

/* How often checks are measured apart; in all, half of the timeouts are checked. */
#define ROUNDS		5

/* How often to try again if the machine stood still while timeouts were armed. */
#define TRIES_MAX	5
#define TICK_NS		65536ULL
#define LITTLE_NS	(NSEC_PER_SEC / 50)

/**
 * struct touched - a way whose timers are moved
 * @way: the way.
 * @fewer: the numbers of timeouts, and of moves of each, are divided by this.
 * @why: what would take too long otherwise.
 */
static const struct touched {
	const struct way *way;
	__u32 fewer;
	const char *why;
} touched[] = {
	{ &way_deadline, 1, NULL },
	{ &way_deadline_slack, 1, NULL },
	{ &way_submit_256, 1, NULL },
	{ &way_submit_1, 1, NULL },
	{ &way_timerfd, 1, NULL },
	{ &way_uring, 10, "a move walks a list" },
	{ &way_heap, 1, NULL },
};

/**
 * struct load - the work done with a set
 * @set: the timers.
 * @timeout_ns: the duration of the timeouts.
 * @turns: the turns of a spin after a burst.
 * @timer: the timers of a burst.
 * @due_ns: their new times.
 */
struct load {
	struct set *set;
	__u64 timeout_ns;
	__u64 turns;
	__u32 timer[BURST];
	__u64 due_ns[BURST];
};

/* The figures of some bursts. */
struct happened {
	__u64 bursts;
	__u64 cost;
	__u64 ns;
	__u64 interrupts;
	__u64 calls;
	__u64 looks;
};

/* The cost of a move.  Only a store has it in two parts, @store and @later. */
struct figures {
	double store;
	double later;
	double all;
	double calls;
	double interrupts;
	double looks;
};

/* --- bursts ----------------------------------------------------------------- */

static void burst(struct load *load, bool moves)
{
	const struct timers timers = { load->timer, load->due_ns, BURST };
	__u64 due_ns = clock_ns() + load->timeout_ns;
	__u32 i;

	for (i = 0; i < BURST; i++) {
		load->timer[i] = bench_random() % load->set->nr;
		load->due_ns[i] = due_ns;
	}
	if (moves)
		load->set->way->rearm(load->set, &timers);
	spin(load->turns);
}

static __u64 looks_of(struct set *set)
{
	return set->way->looks ? set->way->looks(set) : 0;
}

/* Runs @nr bursts, or as many as fit in @ns. */
static struct happened bursts(struct load *load, bool moves, __u64 nr, __u64 ns)
{
	struct happened happened = {
		.interrupts = interrupts_now(),
		.calls = load->set->calls,
		.looks = looks_of(load->set),
	};
	__u64 begin_ns = clock_ns(), begin = thread_cost();

	while (happened.bursts < nr && clock_ns() - begin_ns < ns) {
		burst(load, moves);
		happened.bursts++;
	}
	happened.cost = thread_cost() - begin;
	happened.ns = clock_ns() - begin_ns;
	happened.interrupts = interrupts_now() - happened.interrupts;
	happened.calls = load->set->calls - happened.calls;
	happened.looks = looks_of(load->set) - happened.looks;
	return happened;
}

static double burst_cost(const struct happened *happened)
{
	return (double)happened->cost / happened->bursts;
}

/*
 * The interrupts that moves caused: those of bursts with moves less those without. A few
 * are the kernel's own.
 */
static double more_interrupts(const struct happened *happened, const struct happened *bare)
{
	double others = (double)bare->interrupts / bare->ns * happened->ns;

	return happened->interrupts > others ? happened->interrupts - others : 0;
}

/* --- ways in which a move is complete at once ------------------------------- */

static void arm_some(struct set *set, const __u32 *some, __u32 nr, __u64 from_ns,
		     __u64 span_ns)
{
	__u64 *due_ns = bench_alloc(nr, sizeof(*due_ns));
	const struct timers timers = { some, due_ns, nr };

	random_times(due_ns, nr, from_ns, span_ns);
	set->way->arm(set, &timers);
	free(due_ns);
}

static void touch_arm_all(struct set *set, __u64 from_ns, __u64 span_ns)
{
	__u32 *all = all_timers(set->nr);

	arm_some(set, all, set->nr, from_ns, span_ns);
	free(all);
}

/* The time allowed to arm all timeouts. */
static __u64 lead_ns(const struct set *set)
{
	return NSEC_PER_SEC + set->nr * enough_ns();
}

static void measure_at_once(struct load *load, __u64 moves, struct figures *figures)
{
	struct happened bare, moved;

	bare = bursts(load, false, ~0ULL, SOME_NS);
	touch_arm_all(load->set, clock_ns() + lead_ns(load->set) + load->timeout_ns,
		      load->timeout_ns);
	moved = bursts(load, true, moves / BURST + 1, ~0ULL);
	moves = moved.bursts * BURST;
	figures->all = (burst_cost(&moved) - burst_cost(&bare)) / BURST;
	figures->calls = (double)moved.calls / moves;
	figures->interrupts = more_interrupts(&moved, &bare) / moves;
}

/* --- stores, and checks by the kernel --------------------------------------- */

/* Choose the spin after a burst so that bursts have the fixed pace. */
static void keep_pace(struct load *load)
{
	__u64 begin_ns = clock_ns(), took_ns;

	burst(load, true);
	took_ns = clock_ns() - begin_ns;
	if (took_ns < BURST_NS)
		load->turns = turns_of(BURST_NS - took_ns);
}

/*
 * Sleep for a period in which each timeout comes out once, at times spread evenly over it,
 * and then waits for the same time of the next period, which begins when this returns.
 */
static void sleep_a_period(struct load *load)
{
	struct set *set = load->set;
	__u64 *due_ns = bench_alloc(set->nr, sizeof(*due_ns));
	__u32 *all = all_timers(set->nr), i;
	const struct timers timers = { all, due_ns, set->nr };
	__u64 begin_ns = clock_ns() + lead_ns(set);
	__u64 end_ns = begin_ns + load->timeout_ns;

	random_times(due_ns, set->nr, begin_ns, load->timeout_ns);
	set->way->arm(set, &timers);
	for (i = 0; i < set->nr; i++)
		due_ns[i] += load->timeout_ns + GAP_NS;
	set->way->rearm(set, &timers);
	if (clock_ns() >= begin_ns)
		errx(1, "arming %u timers takes too long", set->nr);
	sleep_until(end_ns + GAP_NS / 2);
	expect("looks in a period", set->way->looks(set), set->nr);
	for (i = 0; i < set->nr; i++)
		due_ns[i] = end_ns + GAP_NS + load->timeout_ns;
	set->way->rearm(set, &timers);
	sleep_until(end_ns + GAP_NS);
	free(due_ns);
	free(all);
}

static void measure_period(struct load *load, struct figures *figures)
{
	struct happened paced, period;
	double moves;

	keep_pace(load);
	paced = bursts(load, true, ~0ULL, SOME_NS);
	sleep_a_period(load);
	period = bursts(load, true, ~0ULL, load->timeout_ns);
	moves = (double)period.ns * PACE / NSEC_PER_SEC;
	figures->later = (period.cost - burst_cost(&paced) * period.bursts) / moves;
	figures->calls = period.calls / moves;
	figures->interrupts = more_interrupts(&period, &paced) / moves;
	figures->looks = period.looks / moves;
}

/*
 * Arm timeouts for successive ticks, and move them to later times.  Returns the last tick,
 * or 0 if some were due before that.
 */
static __u64 arm_in_ticks(struct set *set, const __u32 *some, __u32 nr, __u64 begin_ns)
{
	__u64 *due_ns = bench_alloc(nr, sizeof(*due_ns));
	const struct timers timers = { some, due_ns, nr };
	__u32 i;

	for (i = 0; i < nr; i++)
		due_ns[i] = begin_ns + i * TICK_NS;
	set->way->arm(set, &timers);
	for (i = 0; i < nr; i++)
		due_ns[i] = begin_ns + FAR_NS;
	set->way->rearm(set, &timers);
	free(due_ns);
	return clock_ns() < begin_ns ? begin_ns + nr * TICK_NS : 0;
}

/*
 * Measure the cost of a check, and its interrupts: the difference between a spin with checks
 * and one without, divided by their number.  Returns false if some came before the spin.
 */
static bool measure_looks(struct set *set, const __u32 *some, __u32 nr, __u64 lead_ns,
			  double *cost, double *more)
{
	__u64 begin_ns = clock_ns() + LITTLE_NS + lead_ns;
	__u64 end_ns = arm_in_ticks(set, some, nr, begin_ns);
	__u64 turns, looks, interrupts, begin, busy;

	if (!end_ns)
		return false;
	turns = turns_of(end_ns - begin_ns + nr * enough_ns() + LITTLE_NS);
	looks = set->way->looks(set);
	sleep_until(begin_ns - LITTLE_NS / 2);
	interrupts = interrupts_now();
	begin = clock_now();
	spin(turns);
	busy = clock_now() - begin;
	*more = interrupts_now() - interrupts;
	interrupts = interrupts_now();
	begin = clock_now();
	spin(turns);
	*cost = ((double)busy - (clock_now() - begin)) / nr;
	*more = (*more - (interrupts_now() - interrupts)) / nr;
	/* The spin can be too short if turns_of() was interrupted. */
	sleep_until(end_ns + GAP_NS);
	expect("looks", set->way->looks(set) - looks, nr);
	return true;
}

/* Measures the cost of checks.  Nothing in the set may be armed before. */
static bool try_apart(struct load *load, __u64 lead_ns, double *costs, double *interrupts)
{
	struct set *set = load->set;
	__u32 *all = all_timers(set->nr), some = set->nr / 2 / ROUNDS, i;
	bool in_time = true;

	bench_shuffle(all, set->nr, set->nr);
	arm_some(set, all + some * ROUNDS, set->nr - some * ROUNDS,
		 clock_ns() + FAR_NS, load->timeout_ns);
	for (i = 0; i < ROUNDS && in_time; i++)
		in_time = measure_looks(set, all + some * i, some, lead_ns, &costs[i],
					&interrupts[i]);
	free(all);
	return in_time;
}

/* Replaces the set by a new one, in which nothing is armed. */
static void reopen(struct load *load)
{
	const struct way *way = load->set->way;
	__u32 nr = load->set->nr;

	way->close(load->set);
	load->set = way->open(way, nr);
}

static void measure_apart(struct load *load, struct figures *figures)
{
	double costs[ROUNDS], interrupts[ROUNDS];
	__u64 lead = lead_ns(load->set);
	unsigned int tries = 1;

	for (; !try_apart(load, lead, costs, interrupts); lead *= 2) {
		if (tries++ == TRIES_MAX)
			errx(1, "arming %u timers takes too long", load->set->nr);
		fprintf(stderr, "some were due before all were armed: once more\n");
		reopen(load);
	}
	figures->looks = load->set->nr / ((double)load->timeout_ns / NSEC_PER_SEC * PACE);
	figures->later = figures->looks * median(costs, ROUNDS);
	figures->interrupts = figures->looks * median(interrupts, ROUNDS);
}

static double one_burst(struct load *load, bool moves)
{
	__u64 begin = clock_now();

	burst(load, moves);
	return clock_now() - begin;
}

/* Alternate both kinds of bursts, because disturbances come and go. */
static double measure_store(struct load *load)
{
	double more[PAIRS];
	unsigned int i;

	for (i = 0; i < PAIRS; i++) {
		double bare = one_burst(load, false);

		more[i] = one_burst(load, true) - bare;
	}
	return median(more, PAIRS) / BURST;
}

static void measure_later(struct load *load, struct figures *figures)
{
	figures->store = measure_store(load);
	if (clock_is_real())
		measure_apart(load, figures);
	else
		measure_period(load, figures);
	figures->all = figures->store + figures->later;
}

/* --- output ----------------------------------------------------------------- */

static void print_part(double cost)
{
	if (cost)
		printf(" %9.2f", cost);
	else
		printf(" %9s", "");
}

static void touch_print(const struct touched *this, __u32 nr, const struct figures *figures)
{
	const char *name = way_name(this->way);

	printf("%-24s %9u", this->way->text, nr);
	print_part(figures->store);
	print_part(figures->later);
	printf(" %9.2f %8.4f %10.6f %8.6f", figures->all, figures->calls,
	       figures->interrupts, figures->looks);
	printf("%s%s\n", this->why ? "  fewer: " : "", this->why ? this->why : "");
	if (this->way->looks) {
		print_result(figures->store, clock_unit(), "d1.%s.store.%u", name, nr);
		print_result(figures->later, clock_unit(), "d1.%s.later.%u", name, nr);
		print_result(figures->looks, "looks", "d1.%s.looks.%u", name, nr);
	}
	print_result(figures->all, clock_unit(), "d1.%s.move.%u", name, nr);
	print_result(figures->calls, "calls", "d1.%s.calls.%u", name, nr);
	print_result(figures->interrupts, "interrupts", "d1.%s.interrupts.%u", name, nr);
}

static void touch_by_way(const struct plan *plan, const struct touched *this)
{
	__u32 nr = plan->touched / this->fewer;
	struct load *load = bench_alloc(1, sizeof(*load));
	struct figures figures = {};

	load->set = this->way->open(this->way, nr);
	load->timeout_ns = plan->timeout_s * NSEC_PER_SEC;
	if (this->way->looks)
		measure_later(load, &figures);
	else
		measure_at_once(load, plan->touches / this->fewer / this->fewer,
				&figures);
	this->way->close(load->set);
	free(load);
	touch_print(this, nr, &figures);
}

/* Bind the thread to its current CPU.  *@before gets its previous affinity. */
static void stay(cpu_set_t *before)
{
	cpu_set_t here;

	CPU_ZERO(&here);
	CPU_SET(sched_getcpu(), &here);
	if (sched_getaffinity(0, sizeof(*before), before) ||
	    sched_setaffinity(0, sizeof(here), &here))
		err(1, "cannot stay on a CPU");
}

void work_touch(const struct plan *plan)
{
	cpu_set_t before;
	unsigned int i;

	printf("\nTimeouts of %u s, moved by chance, %llu moves a second: %s, calls, interrupts\n"
	       "and looks for each move\n\n", plan->timeout_s, PACE, clock_unit());
	printf("%-24s %9s %9s %9s %9s %8s %10s %8s\n", "", "timeouts", "store",
	       "later", "all", "calls", "interrupts", "looks");
	stay(&before);
	for (i = 0; i < ARRAY_SIZE(touched); i++)
		if (plan_has(plan, touched[i].way))
			touch_by_way(plan, &touched[i]);
	sched_setaffinity(0, sizeof(before), &before);
}
