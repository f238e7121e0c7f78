/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory for the arguments of calls: good, read-only, absent, at the end of what is mapped,
 * missing until another thread provides it, and more. memory.c has the list.
 */
#ifndef FUZZING_MEMORY_H
#define FUZZING_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "program.h"

/* What memory is for. Each has memory of its own, of each kind. */
enum memory_use {
	MEMORY_ARGUMENT,
	MEMORY_IN,
	MEMORY_OUT,
	MEMORY_USES,
};

/* How much memory there is of a kind. */
#define MEMORY_BYTES	32768

/* Where the words of the file of a slot are mapped, and how much there is room for. */
#define WORDS_AT(slot)	(0x50000000UL + (slot) * WORDS_BYTES)
#define WORDS_BYTES	(1UL << 20)

/**
 * struct memory - the memory of one thread
 * @base: where it begins.
 * @uses_missing: the call under way uses memory that is missing.
 * @overlaps: it uses the same memory for two things.
 */
struct memory {
	uint64_t base;
	bool uses_missing;
	bool overlaps;
};

void memory_start(void);
void memory_open(struct memory *memory, unsigned int thread);
uint64_t memory_at(struct memory *memory, enum memory_use use, struct memory_plan plan,
		   size_t size, unsigned int slot);
void memory_put(struct memory *memory, uint64_t to, const void *from, size_t size);
bool memory_get(void *to, uint64_t from, size_t size);
bool memory_store(uint64_t to, uint64_t value, int *signal);
bool memory_is_steady(const struct memory *memory, uint64_t address);
void memory_provide_by(uint8_t fault);
void memory_mend(struct memory *memory);

/* What another thread does to memory during a call. */
void memory_unmap(struct memory *memory, uint64_t address);
void memory_protect(uint64_t address, int protection);
void memory_drop(uint64_t address);
void memory_scribble(uint64_t address, struct random *random);

#endif /* FUZZING_MEMORY_H */
