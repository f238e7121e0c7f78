/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory of a caller that is missing: a piece of it, an argument for instance, is brought in at
 * the first access, so that this can fail; or it ends where one wants it to end.
 *
 * A piece is filled through one mapping of a file, and the kernel is given a private one, of
 * which no page is there yet, and no page table: reading a page needs a page table, and writing
 * it a page.
 */
#ifndef FAULTS_PAGES_H
#define FAULTS_PAGES_H

#include <stddef.h>

#include "test/device/device.h"

/* The most that a piece may have. */
#define PIECE_MAX	(4 * PAGE_BYTES)

/**
 * struct piece - a part of a caller's memory
 * @size: how long it is.
 * @image: where the test fills it, before piece_map().
 * @user: where the call has it, after piece_map().
 */
struct piece {
	size_t size;
	void *image;
	void *user;
	int file;
	char *shared;
	char *place;
	size_t whole;
	int behind;
};

/* Make a piece; @nr: a number of its own. */
void piece_make(struct piece *piece, unsigned int nr);

/*
 * Fill it with FILL, give it a size, and let it be accessible for its first @whole bytes, a
 * multiple of 8. The rest has the protection @behind.
 */
void piece_place(struct piece *piece, size_t size, size_t whole, int behind);

/* Let the call see what was filled in, in pages that are not there yet. */
void piece_map(struct piece *piece);

/* Let the test read all of it, after the call. */
void piece_open(struct piece *piece);

#endif /* FAULTS_PAGES_H */
