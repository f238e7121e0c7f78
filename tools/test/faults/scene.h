/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A call that is made again and again, each time with another fault, in a scene that is the same
 * each time: a context of its own, the caller's memory, and a ledger of what must be.
 */
#ifndef FAULTS_SCENE_H
#define FAULTS_SCENE_H

#include <sys/types.h>

#include "ledger.h"
#include "pages.h"

/* The parts of a caller's memory. */
enum {
	ARGUMENT,
	COMMANDS,
	RECORDS,
	ENTRIES,
	MASK,
	PIECES,
};

/**
 * struct scene - what an attempt has
 * @walk: the call.
 * @fd: the context, or -1.
 * @ledger: what it must have.
 * @pieces: the memory of the caller.
 * @other: a file, a mapping or what else the call needs.
 * @files: how many files the process has open, if @prepare has counted them.
 * @ends: the memory that ends did so all the time, and not only for one copy.
 * @faulty: the call met a fault, or memory that ends: it need not have done all.
 */
struct scene {
	const struct walk *walk;
	int fd;
	struct ledger ledger;
	struct piece pieces[PIECES];
	long other;
	void *mapping;
	int files;
	bool ends;
	bool faulty;
};

/**
 * struct walk - a call
 * @name: its name, in the file "points".
 * @prepare: makes what it needs, the same in each attempt: a context, the content of pieces.
 * @call: makes the call, and nothing else that could meet a fault; returns what it returns, or
 *	-errno.
 * @check: what it returned is allowed, and the ledger is told what was done.
 * @finish: undoes what @prepare has made, except for the context.
 * @errors: what it may fail with; 0 ends them.
 * @alone: faults come alone only, because what all of them hit is tried again for ever.
 * @config: the configuration of the context, or NULL.
 * @nr, @nr_ready: numbers for @prepare.
 * @stride: how long a command, a record or an entry is, or 0.
 * @commands: fills the commands; returns how many.
 * @before: makes events in the context, which the commands are about.
 */
struct walk {
	const char *name;
	void (*prepare)(struct scene *scene);
	long (*call)(struct scene *scene);
	void (*check)(struct scene *scene, long ret);
	void (*finish)(struct scene *scene);
	int errors[8];
	bool alone;
	const struct twheel_config *config;
	unsigned int nr;
	unsigned int nr_ready;
	size_t stride;
	unsigned int (*commands)(struct scene *scene, struct twheel_cmd *cmds);
	void (*before)(struct scene *scene);
};

/* Let each allocation and each copy of the call fail, alone, and with all that follow. */
void walk_faults(const struct walk *walk);

/*
 * Let the memory of a piece end at each multiple of 8 bytes: behind it nothing can be accessed,
 * or nothing can be written.
 */
void walk_ends(const struct walk *walk, unsigned int piece);

/* A context, whose ledger is empty. */
void scene_open(struct scene *scene);

/* Run a command for the ledger, without faults; its id. */
__u64 scene_run(struct scene *scene, struct twheel_cmd cmd);

/* Give a piece its size, with the end of what is accessible where walk_ends() wants it. */
void *scene_piece(struct scene *scene, unsigned int piece, size_t size);

/* -errno of a call that has failed. */
long result_of(long ret);

/* How many files the process has open. */
int count_files(void);

#endif /* FAULTS_SCENE_H */
