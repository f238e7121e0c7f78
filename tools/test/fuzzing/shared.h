/* SPDX-License-Identifier: GPL-2.0 */
/* Memory that all processes of the fuzzer of the device share. */
#ifndef FUZZING_SHARED_H
#define FUZZING_SHARED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "program.h"

/* Bytes of code of the module, at most. */
#define CODE_BYTES	(2U << 20)
/* Bits of the set of edges, to which they are hashed. */
#define EDGE_BITS	(1U << 20)

#define WORKERS_MAX	16
#define CORPUS_MAX	16384

/* Errors up to this one are counted apart. */
#define ERRORS_MAX	134
#define CALLS_MAX	48
#define OPS_MAX		9

/**
 * struct kept - a program that has reached what no other one has
 * @ready: it is written.
 */
struct kept {
	atomic_bool ready;
	struct program program;
};

/* How often something ended well, or with which error. */
struct outcome {
	atomic_ulong ok;
	atomic_ulong failed[ERRORS_MAX];
};

/**
 * struct shared - all of it
 * @keeps_memory: no memory is taken away from a call that is under way, and no missing page
 *	provided as zeros.
 * @failed: something did not hold.
 * @killed: a worker was to be killed by its own program, once more.
 * @may_hang: the call that a worker makes may block the signals that would end it.
 * @calls: how many calls each worker has made.
 * @programs: how many programs were run.
 * @points: which places in the code were reached, by their distance from its beginning.
 * @edges: which pairs of them were reached one after the other.
 * @nr_edges: how many are in @edges.
 * @nr_points: how many are in @points.
 * @by_call: how calls ended.
 * @by_op: how commands ended, by their op, 0 for unknown ones.
 * @nr_kept: how many programs were kept, or would have been if there were room.
 * @kept: these programs.
 * @next: the number of the next one that is run as it is.
 */
struct shared {
	bool keeps_memory;
	atomic_bool failed;
	atomic_bool killed[WORKERS_MAX];
	atomic_bool may_hang[WORKERS_MAX];
	atomic_ulong calls[WORKERS_MAX];
	atomic_ulong programs;
	atomic_uint_least64_t points[CODE_BYTES / 64];
	atomic_uint_least64_t edges[EDGE_BITS / 64];
	atomic_uint nr_edges;
	atomic_uint nr_points;
	struct outcome by_call[CALLS_MAX];
	struct outcome by_op[OPS_MAX];
	atomic_uint nr_kept;
	struct kept kept[CORPUS_MAX];
	atomic_uint next;
};

extern struct shared *shared;

static inline void outcome_count(struct outcome *outcome, long ret)
{
	if (ret >= 0)
		atomic_fetch_add_explicit(&outcome->ok, 1, memory_order_relaxed);
	else if (-ret < ERRORS_MAX)
		atomic_fetch_add_explicit(&outcome->failed[-ret], 1, memory_order_relaxed);
}

#endif /* FUZZING_SHARED_H */
