/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Workers: processes whose threads do anything to any file, until the round ends or until they are
 * killed. What a thread does most is its role.
 */
#ifndef TORMENTOR_WORKER_H
#define TORMENTOR_WORKER_H

#include <stdint.h>

/**
 * struct worker_options - what a process is to be
 * @nr_threads: how many threads it has.
 * @seed: what chance begins with.
 * @cgroup: the file to enter its cgroup by, where memory is short; or NULL. Such a process only
 *	runs commands and reads: all else could need memory that the kernel cannot refuse.
 * @fails: allocations of the kernel fail for it, if somebody has said so in debugfs.
 */
struct worker_options {
	unsigned int nr_threads;
	uint64_t seed;
	const char *cgroup;
	bool fails;
};

/* Do all of it in this process, which ends then. */
void __attribute__((noreturn)) work(const struct worker_options *options);

#endif /* TORMENTOR_WORKER_H */
