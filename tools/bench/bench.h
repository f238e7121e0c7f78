/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What benchmarks need: commands in batches, records, the clock, medians.
 *
 * Whatever is not as it has to be ends the program, with status 1: a number that
 * was measured while something went wrong is worth nothing.
 */
#ifndef _BENCH_H
#define _BENCH_H

#include <stddef.h>
#include <stdbool.h>
#include <time.h>
#include <linux/types.h>
#include <linux/twheel.h>

#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))

/* How many commands or records go with one system call, where that many can. */
#define BATCH_MAX	256

/* Commands for one SUBMIT, and the result that each of them must have. */
struct batch {
	struct twheel_cmd cmds[BATCH_MAX];
	unsigned int nr;
	int expected;
};

/* The next command of a batch that is not full, all 0. */
struct twheel_cmd *batch_next(struct batch *batch);

/* Run them all and check the results. */
void batch_run(int fd, struct batch *batch);

/* Only run them; batch_check() is to follow. */
void batch_submit(int fd, struct batch *batch);
void batch_check(const struct batch *batch);

int device_open(void);

/* Read just this many records, which must be there. */
void device_read(int fd, struct twheel_record *records, unsigned int nr);

/* A counter of fdinfo. */
__u64 device_counter(int fd, const char *name);

/* End if something is not as it has to be. */
void expect(const char *what, __u64 seen, __u64 expected);

/* Zeroed memory. */
void *bench_alloc(size_t nr, size_t size);

/*
 * The clock, in nanoseconds.  Where a machine's clock counts the instructions that it
 * executed, each as @ns, clock_instructions() makes them the unit instead.
 */
__u64 clock_now(void);
void clock_instructions(unsigned int ns);
bool clock_is_real(void);
const char *clock_unit(void);

/* The clock as it is, in ns, and as programs are told times. */
__u64 clock_ns(void);
struct timespec to_timespec(__u64 ns);

/*
 * What this thread has cost so far, in the same unit: its CPU time, or all instructions
 * since the machine began where these are counted.
 */
__u64 thread_cost(void);

double median(double *samples, unsigned int nr);

/* The same numbers in each run, for each thread of its own. */
__u64 bench_random(void);

/* Bring the first @nr of @numbers to an order, and a choice of all, by chance. */
void bench_shuffle(__u32 *numbers, size_t nr, size_t all);

/*
 * Print a line that a program can read, "result NAME VALUE UNIT", of a name that the
 * format and what follows make up.  Where the clock counts instructions, ".counted" is
 * added to the name, unless the unit tells: so a name with its unit is there once, also
 * among the results of two runs of which one is on the clock.
 */
__attribute__((format(printf, 3, 4)))
void print_result(double value, const char *unit, const char *format, ...);

/* QEMU emulates the processor: times say little, and are disturbed by other load. */
bool processor_is_emulated(void);

/* Print lines "where NAME TEXT": the kernel, the processor, and whether it is emulated. */
void print_where(void);

/* Bytes of kernel memory in use, as /proc/meminfo tells. */
__u64 kernel_bytes(void);

/* What a load costs that has to wait for the one before it, among @bytes. */
double load_cost(size_t bytes);

#endif /* _BENCH_H */
