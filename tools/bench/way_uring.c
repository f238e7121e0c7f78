// SPDX-License-Identifier: GPL-2.0
/* Timers by IORING_OP_TIMEOUT, submitted in batches. */
#include <err.h>
#include <errno.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "way.h"

#define ENTRIES		256
#define COMPLETIONS	16384

/* Marks completions of commands, as opposed to timers. */
#define COMMAND		(1ULL << 32)

struct uring_set {
	struct set set;
	struct io_uring ring;
	struct __kernel_timespec times[ENTRIES];
};

static struct uring_set *uring(struct set *set)
{
	return (struct uring_set *)set;
}

static struct __kernel_timespec kernel_time(__u64 ns)
{
	struct timespec time = to_timespec(ns);

	return (struct __kernel_timespec){ time.tv_sec, time.tv_nsec };
}

/*
 * Setups of a ring, the cheapest for one thread first, then those for older kernels.  With
 * deferred completions, the process has to ask for them, and IORING_SQ_TASKRUN tells when.
 */
static const struct setup {
	const char *text;
	unsigned int flags;
} setups[] = {
	{ "SINGLE_ISSUER, DEFER_TASKRUN",
	  IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
	  IORING_SETUP_TASKRUN_FLAG },
	{ "SINGLE_ISSUER, COOP_TASKRUN",
	  IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN },
	{ "COOP_TASKRUN", IORING_SETUP_COOP_TASKRUN },
	{ "no flags", 0 },
};

/* Submit @nr entries, and take @completions off the ring. */
static void submit(struct uring_set *set, __u32 nr, __u32 completions,
		   int command, int timer)
{
	struct io_uring_cqe *cqe;

	if (io_uring_submit_and_wait(&set->ring, completions) != (int)nr)
		errx(1, "io_uring did not take all of %u entries", nr);
	set->set.calls++;
	while (completions--) {
		int wanted;

		if (io_uring_peek_cqe(&set->ring, &cqe))
			errx(1, "io_uring lacks a completion");
		wanted = cqe->user_data & COMMAND ? command : timer;
		if (cqe->res != wanted)
			errx(1, "an entry of io_uring gives %d (%s), not %d",
			     cqe->res, strerror(-cqe->res), wanted);
		io_uring_cqe_seen(&set->ring, cqe);
	}
}

/* The timers of one submission, from index @from of @timers. */
static __u32 part(const struct timers *timers, __u32 from)
{
	return timers->nr - from < ENTRIES ? timers->nr - from : ENTRIES;
}

static void uring_arm(struct set *of, const struct timers *timers)
{
	struct uring_set *set = uring(of);
	__u32 from, i, nr;

	for (from = 0; from < timers->nr; from += nr) {
		nr = part(timers, from);
		for (i = 0; i < nr; i++) {
			struct io_uring_sqe *sqe = io_uring_get_sqe(&set->ring);

			set->times[i] = kernel_time(timers->due_ns[from + i]);
			io_uring_prep_timeout(sqe, &set->times[i], 0,
					      IORING_TIMEOUT_ABS);
			io_uring_sqe_set_data64(sqe, timers->timer[from + i]);
		}
		submit(set, nr, 0, 0, 0);
	}
}

/* Both the timer and the command that cancels it complete. */
static void uring_cancel(struct set *of, const struct timers *timers)
{
	struct uring_set *set = uring(of);
	__u32 from, i, nr;

	for (from = 0; from < timers->nr; from += nr) {
		nr = part(timers, from);
		for (i = 0; i < nr; i++) {
			struct io_uring_sqe *sqe = io_uring_get_sqe(&set->ring);

			io_uring_prep_timeout_remove(sqe,
						     timers->timer[from + i], 0);
			io_uring_sqe_set_data64(sqe, COMMAND);
		}
		submit(set, nr, 2 * nr, 0, -ECANCELED);
	}
}

static void uring_rearm(struct set *of, const struct timers *timers)
{
	struct uring_set *set = uring(of);
	__u32 from, i, nr;

	for (from = 0; from < timers->nr; from += nr) {
		nr = part(timers, from);
		for (i = 0; i < nr; i++) {
			struct io_uring_sqe *sqe = io_uring_get_sqe(&set->ring);

			set->times[i] = kernel_time(timers->due_ns[from + i]);
			io_uring_prep_timeout_update(sqe, &set->times[i],
						     timers->timer[from + i],
						     IORING_TIMEOUT_ABS);
			io_uring_sqe_set_data64(sqe, COMMAND);
		}
		submit(set, nr, nr, 0, 0);
	}
}

static __u32 uring_collect(struct set *of, __u32 *timers, __u32 room, bool wait)
{
	struct io_uring_cqe *cqes[COLLECT_MAX], *cqe;
	struct uring_set *set = uring(of);
	__u32 i, nr;

	if (!io_uring_cq_ready(&set->ring)) {
		of->calls++;
		if (wait ? io_uring_wait_cqe(&set->ring, &cqe) :
			   io_uring_get_events(&set->ring))
			errx(1, "io_uring cannot wait");
	}
	nr = io_uring_peek_batch_cqe(&set->ring, cqes, room);
	for (i = 0; i < nr; i++) {
		if (cqes[i]->res != -ETIME)
			errx(1, "a timeout of io_uring ends with %d", cqes[i]->res);
		timers[i] = cqes[i]->user_data;
	}
	io_uring_cq_advance(&set->ring, nr);
	return nr;
}

static bool init_ring(struct io_uring *ring, const struct setup *setup)
{
	struct io_uring_params params = {
		.flags = IORING_SETUP_CQSIZE | setup->flags,
		.cq_entries = COMPLETIONS,
	};

	return !io_uring_queue_init_params(ENTRIES, ring, &params);
}

/* Make a ring with the first setup that this kernel knows, and print that once. */
static void init_best_ring(struct io_uring *ring)
{
	static const struct setup *told;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(setups); i++)
		if (init_ring(ring, &setups[i]))
			break;
	if (i == ARRAY_SIZE(setups))
		errx(1, "cannot have an io_uring");
	if (told != &setups[i])
		printf("%-24s with %s\n", way_uring.text, setups[i].text);
	told = &setups[i];
}

static struct set *uring_open(const struct way *way, __u32 nr)
{
	struct uring_set *set = bench_alloc(1, sizeof(*set));

	set->set.way = way;
	set->set.nr = nr;
	init_best_ring(&set->ring);
	return &set->set;
}

static void uring_close(struct set *of)
{
	io_uring_queue_exit(&uring(of)->ring);
	free(of);
}

const struct way way_uring = {
	.name = "io_uring",
	.text = "io_uring timeouts",
	.batch = ENTRIES,
	.most = 100000,
	.why = "a cancel walks a list",
	.delivers = true,
	.open = uring_open,
	.close = uring_close,
	.arm = uring_arm,
	.cancel = uring_cancel,
	.rearm = uring_rearm,
	.collect = uring_collect,
};
