// SPDX-License-Identifier: GPL-2.0
/*
 * Measures several threads, each with its own CPU and its own timers, which it cancels and
 * arms again at random.  The figures are the changes of all threads in a second, and their
 * ratio to those of one thread.  All numbers of threads take turns, and the best rate of
 * each is the figure, because other load can only make it slower.
 */
#include <err.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench.h"
#include "work.h"

#define THREADS_MAX	4
#define ROUNDS		7
#define TIMERS		10000
#define CHANGES		256
#define ROUND_NS	200000000ULL

static pthread_barrier_t start;
static atomic_bool stop;

/**
 * struct worker - a thread
 * @thread: the thread.
 * @way: the way of its timers.
 * @cpu: its CPU.
 * @changes: the number of timers that it has cancelled and armed again.
 * @ns: the time that this took.
 */
struct worker {
	pthread_t thread;
	const struct way *way;
	int cpu;
	__u64 changes;
	__u64 ns;
};

static void pin_to(int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	if (pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus))
		errx(1, "cannot run on CPU %d", cpu);
}

static void change_some(struct set *set, __u32 *order)
{
	__u64 due_ns[CHANGES];
	const struct timers timers = { order, due_ns, CHANGES };

	bench_shuffle(order, CHANGES, set->nr);
	random_times(due_ns, CHANGES, clock_ns() + FAR_NS, SPAN_NS);
	set->way->cancel(set, &timers);
	set->way->arm(set, &timers);
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	__u32 *order = all_timers(TIMERS);
	__u64 *due_ns = bench_alloc(TIMERS, sizeof(*due_ns));
	const struct timers timers = { order, due_ns, TIMERS };
	struct set *set;
	__u64 begin;

	pin_to(worker->cpu);
	set = worker->way->open(worker->way, TIMERS);
	random_times(due_ns, TIMERS, clock_ns() + FAR_NS, SPAN_NS);
	set->way->arm(set, &timers);
	pthread_barrier_wait(&start);
	begin = clock_ns();
	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		change_some(set, order);
		worker->changes += CHANGES;
	}
	worker->ns = clock_ns() - begin;
	set->way->close(set);
	free(due_ns);
	free(order);
	return NULL;
}

static void start_worker(struct worker *worker, const struct way *way, int cpu)
{
	*worker = (struct worker){ .way = way, .cpu = cpu };
	if (pthread_create(&worker->thread, NULL, work, worker))
		errx(1, "cannot make a thread");
}

/* The number of timers that @threads threads change in a second. */
static double threads_measure(const struct way *way, unsigned int threads)
{
	const struct timespec round = to_timespec(ROUND_NS);
	struct worker workers[THREADS_MAX];
	double rate = 0;
	unsigned int i;

	pthread_barrier_init(&start, NULL, threads + 1);
	atomic_store(&stop, false);
	for (i = 0; i < threads; i++)
		start_worker(&workers[i], way, i);
	pthread_barrier_wait(&start);
	nanosleep(&round, NULL);
	atomic_store(&stop, true);
	for (i = 0; i < threads; i++) {
		pthread_join(workers[i].thread, NULL);
		rate += 1e9 * workers[i].changes / workers[i].ns;
	}
	pthread_barrier_destroy(&start);
	return rate;
}

static void threads_by_way(const struct way *way, unsigned int most)
{
	double best[THREADS_MAX] = {};
	unsigned int round, threads;

	for (round = 0; round < ROUNDS; round++) {
		for (threads = 1; threads <= most; threads++) {
			double rate = threads_measure(way, threads);

			if (rate > best[threads - 1])
				best[threads - 1] = rate;
		}
	}
	printf("%-24s", way->text);
	for (threads = 0; threads < most; threads++)
		printf(" %10.0f %5.2f", best[threads], best[threads] / best[0]);
	printf("\n");
	for (threads = 0; threads < most; threads++) {
		print_result(best[threads], "timers/s", "s2.%s.rate.%u",
			     way_name(way), threads + 1);
		print_result(best[threads] / best[0], "ratio", "s2.%s.ratio.%u",
			     way_name(way), threads + 1);
	}
}

void work_threads(const struct plan *plan)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned int most = cpus < THREADS_MAX ? cpus : THREADS_MAX, i;

	printf("\nTimers cancelled and armed in a second, by threads with %u each (CPUs: %ld)\n\n",
	       TIMERS, cpus);
	printf("%-24s", "");
	for (i = 1; i <= most; i++)
		printf(" %10u ratio", i);
	printf("\n");
	for (i = 0; ways[i]; i++)
		if (ways[i] != &way_uring && !ways[i]->looks &&
		    plan_has(plan, ways[i]))
			threads_by_way(ways[i], most);
}
