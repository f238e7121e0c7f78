// SPDX-License-Identifier: GPL-2.0
/*
 * Numbers of bases.
 *
 * A node names its base by a number of 16 bits.  A base gets the next number when it is
 * made, and keeps it until all bases are freed: a number for each possible CPU, clock and
 * kind would not fit.
 */
#include <linux/errno.h>
#include <linux/minmax.h>
#include <linux/mm.h>

#include "base_number.h"

struct base **twheel_base_table;
static unsigned int nr_numbers, nr_given;

/**
 * base_numbers_init() - make the table of bases, before the first base is made
 * @nr: how many bases there may be; it is lowered to as many as a node can name.
 *
 * Return: 0 or -ENOMEM.
 */
int base_numbers_init(size_t nr)
{
	nr_numbers = min_t(size_t, nr, BASE_MIGRATING);
	nr_given = 0;
	twheel_base_table = kvcalloc(nr_numbers, sizeof(*twheel_base_table), GFP_KERNEL);
	return twheel_base_table ? 0 : -ENOMEM;
}

/**
 * base_numbers_exit() - free the table of bases, which need not exist
 */
void base_numbers_exit(void)
{
	kvfree(twheel_base_table);
	twheel_base_table = NULL;
}

/**
 * base_give_number() - choose the number of a new base
 * @base: the base, which no node names yet.
 *
 * Callers serialize.
 *
 * Return: the number; -ENOSPC, all numbers are in use.
 */
int base_give_number(struct base *base)
{
	if (nr_given == nr_numbers)
		return -ENOSPC;
	twheel_base_table[nr_given] = base;
	return nr_given++;
}
