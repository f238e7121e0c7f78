/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Deadlines: words that a context shares with its process.
 *
 * deadlines.c tells how long they stay and how they are charged.
 */
#ifndef TWHEEL_DEADLINES_H
#define TWHEEL_DEADLINES_H

#include <linux/compiler.h>
#include <linux/mm_types.h>
#include <linux/types.h>

#include "account.h"

/* How many words are in a page. */
#define DEADLINES_PAGE	(PAGE_SIZE / sizeof(u64))

/**
 * struct deadlines - an array of words
 * @account: the account that is charged, besides a memory cgroup; or NULL.
 * @nr_pages: how many pages they take.
 * @nr_lent: how many of the first pages are charged to the words that these replace.
 * @pages: the pages; they need not be contiguous.
 */
struct deadlines {
	struct account *account;
	unsigned long nr_pages;
	unsigned long nr_lent;
	u64 *pages[];
};

/**
 * deadlines_read() - read a word
 * @deadlines: the words.
 * @index: the index of the word, which exists.
 *
 * The process may write it at any moment, so each call may return another value.
 *
 * Context: any.
 */
static inline u64 deadlines_read(const struct deadlines *deadlines, u32 index)
{
	return READ_ONCE(deadlines->pages[index / DEADLINES_PAGE][index % DEADLINES_PAGE]);
}

struct deadlines *deadlines_create(struct account *account, u32 nr,
				   const struct deadlines *replaced);
void deadlines_take_over(struct deadlines *deadlines, struct deadlines *replaced);
void deadlines_destroy(struct deadlines *deadlines);
int deadlines_map(struct deadlines *deadlines, struct vm_area_struct *vma);

#endif /* TWHEEL_DEADLINES_H */
