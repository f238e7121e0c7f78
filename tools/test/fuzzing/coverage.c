// SPDX-License-Identifier: GPL-2.0
/*
 * Which places in the module the calls of this thread reach: kcov.
 *
 * The compiler has put a call at each place where the module's code branches, and kcov writes
 * the addresses of those that a task reaches to memory of the task. What runs in an interrupt
 * is not written. A pair of places, one after the other, is an edge.
 */
#include <err.h>
#include <fcntl.h>
#include <linux/kcov.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "coverage.h"
#include "shared.h"

#define KCOV		"/sys/kernel/debug/kcov"

/* Longer calls are not followed to their end. */
#define TRACE_WORDS	16384

static unsigned long code, code_size;
static atomic_ulong *trace;

/**
 * coverage_find_module() - find where the module's code is
 *
 * Return: whether the module is loaded.
 */
bool coverage_find_module(void)
{
	char line[512];
	FILE *file = fopen("/proc/modules", "r");

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "twheel %lu %*s %*s %*s %lx", &code_size, &code) == 2)
			break;
	if (file)
		fclose(file);
	if (code_size > CODE_BYTES)
		code_size = CODE_BYTES;
	return code;
}

/**
 * coverage_exists() - does the kernel have kcov?
 */
bool coverage_exists(void)
{
	return !access(KCOV, F_OK);
}

/* To be called once by the thread that is followed. Without kcov, nothing is. */
void coverage_open(void)
{
	int fd;

	if (!coverage_exists())
		return;
	fd = open(KCOV, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		err(1, KCOV);
	if (ioctl(fd, KCOV_INIT_TRACE, TRACE_WORDS))
		err(1, "KCOV_INIT_TRACE");
	trace = mmap(NULL, TRACE_WORDS * sizeof(*trace), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (trace == MAP_FAILED)
		err(1, "mmap of kcov");
	if (ioctl(fd, KCOV_ENABLE, KCOV_TRACE_PC))
		err(1, "KCOV_ENABLE");
}

/* Forget what was reached before. */
void coverage_begin(void)
{
	if (!trace)
		return;
	atomic_store_explicit(&trace[0], 0, memory_order_relaxed);
}

static bool set_bit(atomic_uint_least64_t *bits, unsigned long nr)
{
	uint64_t bit = 1ULL << (nr % 64);
	atomic_uint_least64_t *word = &bits[nr / 64];

	if (atomic_load_explicit(word, memory_order_relaxed) & bit)
		return false;
	return !(atomic_fetch_or(word, bit) & bit);
}

/**
 * coverage_end() - note what was reached since coverage_begin()
 *
 * Return: how many edges are new.
 */
unsigned int coverage_end(void)
{
	unsigned long nr = trace ? atomic_load_explicit(&trace[0], memory_order_relaxed) : 0, i;
	uint64_t previous = 0;
	unsigned int edges = 0;

	for (i = 1; i <= nr && i < TRACE_WORDS; i++) {
		unsigned long point = atomic_load_explicit(&trace[i], memory_order_relaxed) - code;
		uint64_t edge = (previous ^ point) * 0x9e3779b97f4a7c15ULL;

		if (point >= code_size)
			continue;
		if (set_bit(shared->edges, (edge >> 40) % EDGE_BITS)) {
			atomic_fetch_add(&shared->nr_edges, 1);
			edges++;
		}
		if (set_bit(shared->points, point))
			atomic_fetch_add(&shared->nr_points, 1);
		previous = point * 2;
	}
	return edges;
}
