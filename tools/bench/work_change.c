// SPDX-License-Identifier: GPL-2.0
/*
 * Measures the cost to arm, cancel and re-arm random timers, for several numbers of armed
 * timers.
 *
 * A round takes a random sample of the timers, re-arms them, cancels them and arms them
 * again.  Each part is measured as a whole, with the work of the process for it: filling
 * and checking commands, and all the work of a heap.
 */
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "work.h"

/* The maximum number of timers of a round, and of rounds. */
#define ROUND_MAX	1024
#define ROUNDS_MAX	64

/* Operations that take longer than this, in ns, are measured less often. */
#define ENOUGH_NS	500000000ULL

enum part { REARM, QUERY, CANCEL, ARM, PARTS };

static const char *const part_names[PARTS] = {
	"rearm", "query", "cancel", "arm"
};

/* The names of results begin with their target. */
static const char *const part_targets[PARTS] = { "u1", "u1", "u2", "u1" };

/* The figures of a way with one number of timers, for each operation. */
struct figures {
	double cost[PARTS];
	double calls[PARTS];
	bool has[PARTS];
};

typedef void (*operation)(struct set *set, const struct timers *timers);

static operation operation_of(const struct way *way, enum part part)
{
	const operation operations[PARTS] = {
		way->rearm, way->query, way->cancel, way->arm
	};

	return operations[part];
}

/* One part of a round.  Returns the cost of an operation. */
static double run_part(struct set *set, enum part part, __u32 *order, __u32 nr,
		       double *calls)
{
	__u64 due_ns[ROUND_MAX], begin, calls_before = set->calls;
	const struct timers timers = { order, due_ns, nr };
	double cost;

	random_times(due_ns, nr, clock_ns() + FAR_NS, SPAN_NS);
	begin = thread_cost();
	operation_of(set->way, part)(set, &timers);
	cost = (double)(thread_cost() - begin) / nr;
	*calls = (double)(set->calls - calls_before) / nr;
	return cost;
}

/* The number of operations of a round, if the slowest one took @ns. */
static __u32 round_size(__u32 nr, __u64 ns)
{
	__u32 size = nr / 2 < ROUND_MAX ? nr / 2 : ROUND_MAX;
	__u64 bearable = ENOUGH_NS / (ns + 1);

	if (size > bearable)
		size = bearable;
	return size > 16 ? size : 16;
}

/* A small first round shows how many operations the next rounds can have. */
static __u32 try_round(struct set *set, __u32 *order)
{
	__u64 begin = clock_ns();
	double calls;
	enum part part;

	bench_shuffle(order, 16, set->nr);
	for (part = 0; part < PARTS; part++)
		if (operation_of(set->way, part))
			run_part(set, part, order, 16, &calls);
	return round_size(set->nr, (clock_ns() - begin) / 16);
}

static void measure_rounds(struct set *set, __u32 *order, __u32 size,
			   __u32 rounds, struct figures *figures)
{
	double costs[PARTS][ROUNDS_MAX];
	enum part part;
	__u32 round;

	for (round = 0; round < rounds; round++) {
		bench_shuffle(order, size, set->nr);
		for (part = 0; part < PARTS; part++)
			if (operation_of(set->way, part))
				costs[part][round] =
					run_part(set, part, order, size,
						 &figures->calls[part]);
	}
	for (part = 0; part < PARTS; part++) {
		figures->has[part] = operation_of(set->way, part);
		if (figures->has[part])
			figures->cost[part] = median(costs[part], rounds);
	}
}

static void change_arm_all(struct set *set, __u32 *order)
{
	__u64 *due_ns = bench_alloc(set->nr, sizeof(*due_ns));
	const struct timers timers = { order, due_ns, set->nr };

	random_times(due_ns, set->nr, clock_ns() + FAR_NS, SPAN_NS);
	set->way->arm(set, &timers);
	free(due_ns);
}

static void change_measure(const struct way *way, __u32 nr, __u32 operations,
			   struct figures *figures)
{
	__u32 *order = all_timers(nr), size, rounds;
	struct set *set = way->open(way, nr);

	change_arm_all(set, order);
	size = try_round(set, order);
	rounds = operations / size;
	if (rounds < 3)
		rounds = 3;
	else if (rounds > ROUNDS_MAX)
		rounds = ROUNDS_MAX;
	if (size < ROUND_MAX && size < nr / 2)
		rounds = 3;
	measure_rounds(set, order, size, rounds, figures);
	way->close(set);
	free(order);
}

static void print_figures(const struct way *way, __u32 nr,
			  const struct figures *figures)
{
	enum part part;

	printf("%-24s %9u", way->text, nr);
	for (part = 0; part < PARTS; part++) {
		if (figures->has[part])
			printf(" %8.0f", figures->cost[part]);
		else
			printf(" %8s", "-");
	}
	printf("   %8.3f\n", figures->calls[ARM]);
}

static void print_results(const struct way *way, __u32 nr,
			  const struct figures *figures)
{
	enum part part;

	for (part = 0; part < PARTS; part++) {
		if (!figures->has[part])
			continue;
		print_result(figures->cost[part], clock_unit(), "%s.%s.%s%s%s.%u",
			     part_targets[part], way->name, part_names[part],
			     way->variant ? "." : "",
			     way->variant ? way->variant : "", nr);
		print_result(figures->calls[part], "calls", "calls.%s.%s%s%s.%u",
			     way->name, part_names[part],
			     way->variant ? "." : "",
			     way->variant ? way->variant : "", nr);
	}
}

static void change_by_way(const struct plan *plan, const struct way *way)
{
	struct figures figures;
	unsigned int i;

	for (i = 0; plan->counts[i]; i++) {
		if (plan->counts[i] > way->most) {
			printf("%-24s %9u  too long: %s\n", way->text,
			       plan->counts[i], way->why);
			continue;
		}
		figures = (struct figures){};
		change_measure(way, plan->counts[i], plan->operations, &figures);
		print_figures(way, plan->counts[i], &figures);
		print_results(way, plan->counts[i], &figures);
	}
}

void work_change(const struct plan *plan)
{
	unsigned int i;
	enum part part;

	printf("\nChanging timers at random, with so many armed: %s for each\n\n",
	       clock_unit());
	printf("%-24s %9s", "", "armed");
	for (part = 0; part < PARTS; part++)
		printf(" %8s", part_names[part]);
	printf("   calls for an arm\n");
	for (i = 0; ways[i]; i++)
		if (!ways[i]->looks && plan_has(plan, ways[i]))
			change_by_way(plan, ways[i]);
}
