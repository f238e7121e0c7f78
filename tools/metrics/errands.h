/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Errands: what the threads of a page want of the loop of the program.
 *
 * The loop owns the data of the program, and takes no lock. A thread that needs some of it hands
 * in a function, which the loop runs in one of its turns while the thread waits. Such a function
 * must be short: it delays everything else that the loop does.
 */
#ifndef METRICS_ERRANDS_H
#define METRICS_ERRANDS_H

#include <bsd/sys/queue.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The loop runs so many in a turn. */
#define ERRANDS_A_TURN	2

struct errand;

TAILQ_HEAD(errand_list, errand);

/**
 * struct errands - errands that wait for the loop
 * @lock: guards @list and @closed, and of each errand that it is done.
 * @done: signalled when errands are done.
 * @list: the errands, the oldest first.
 * @closed: the loop runs none any more.
 * @fd: an eventfd, which is readable while @list is not empty.
 * @nr: errands that were run.
 * @cpu_ns: the time of the processor that they took.
 * @cpu_max_ns: that of the longest one.
 */
struct errands {
	pthread_mutex_t lock;
	pthread_cond_t done;
	struct errand_list list;
	bool closed;
	int fd;
	_Atomic uint64_t nr;
	_Atomic uint64_t cpu_ns;
	_Atomic uint64_t cpu_max_ns;
};

/* Returns 0 or a negative errno. */
int errands_init(struct errands *errands);
void errands_destroy(struct errands *errands);

/*
 * For threads: let the loop run @function, and wait until it has. Returns 0, or -ESHUTDOWN: it
 * was not run, since the program ends.
 */
int errands_do(struct errands *errands, void (*function)(void *context), void *context);

/* For the loop: run some, when @fd is readable. */
void errands_run(struct errands *errands);

/* Write the numbers of the errands that were run as an object of JSON. */
void errands_write(const struct errands *errands, FILE *out);

/* For the loop: run none any more. Those that wait return. */
void errands_close(struct errands *errands);

#endif /* METRICS_ERRANDS_H */
