/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Helpers of all benchmarks: commands in batches, records, clocks, medians.
 *
 * Any error ends the program with status 1, because figures measured during an error mean
 * nothing.
 */
#ifndef _BENCH_H
#define _BENCH_H

#include <stddef.h>
#include <stdbool.h>
#include <time.h>
#include <linux/types.h>
#include <linux/twheel.h>

#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))

/* The maximum number of commands or records of one system call. */
#define BATCH_MAX	256

/* Commands for one SUBMIT, and the result that each of them must have. */
struct batch {
	struct twheel_cmd cmds[BATCH_MAX];
	unsigned int nr;
	int expected;
};

/* Add a command, filled with 0, to a batch that is not full. */
struct twheel_cmd *batch_next(struct batch *batch);

/* Submit all commands and check their results. */
void batch_run(int fd, struct batch *batch);

/* Submit all commands.  batch_check() has to follow. */
void batch_submit(int fd, struct batch *batch);
void batch_check(const struct batch *batch);

int device_open(void);

/* Read exactly @nr records, which must be ready. */
void device_read(int fd, struct twheel_record *records, unsigned int nr);

/* A counter of fdinfo. */
__u64 device_counter(int fd, const char *name);

/* End the program if @seen is not as @expected. */
void expect(const char *what, __u64 seen, __u64 expected);

/* Zeroed memory. */
void *bench_alloc(size_t nr, size_t size);

/*
 * The clock, in nanoseconds.  If the machine's clock counts executed instructions, and
 * each is @ns long, clock_instructions() makes them the unit.
 */
__u64 clock_now(void);
void clock_instructions(unsigned int ns);
bool clock_is_real(void);
const char *clock_unit(void);

/* The clock in ns, whatever the unit is, and such a time as system calls take it. */
__u64 clock_ns(void);
struct timespec to_timespec(__u64 ns);

/*
 * The cost of this thread so far, in the same unit: its CPU time or, if instructions are
 * counted, all instructions since the machine started.
 */
__u64 thread_cost(void);

double median(double *samples, unsigned int nr);

/* A random number.  Each thread has its own sequence, the same in each run. */
__u64 bench_random(void);

/* Shuffle @all numbers, as far as needed for the first @nr to be a random sample. */
void bench_shuffle(__u32 *numbers, size_t nr, size_t all);

/*
 * Print a line for programs, "result NAME VALUE UNIT".  The format makes NAME.  If the clock
 * counts instructions, ".counted" is added to the name, unless the unit shows it.  So a
 * name with its unit is unique, even if results of a run that counts instructions and of
 * one that does not are put together.
 */
__attribute__((format(printf, 3, 4)))
void print_result(double value, const char *unit, const char *format, ...);

/* Returns whether QEMU emulates the processor: then times mean little. */
bool processor_is_emulated(void);

/* Print lines "where NAME TEXT": the kernel, the processor, and whether it is emulated. */
void print_where(void);

/* Bytes of kernel memory in use, from /proc/meminfo. */
__u64 kernel_bytes(void);

/* The cost of a load that depends on the previous one, from @bytes of memory. */
double load_cost(size_t bytes);

#endif /* _BENCH_H */
