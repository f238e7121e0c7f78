/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Numbers of bases, by which nodes name them.
 *
 * base_number.c tells how they are given.
 */
#ifndef TWHEEL_BASE_NUMBER_H
#define TWHEEL_BASE_NUMBER_H

#include <linux/types.h>

/* &struct twheel_node.base of a node that moves between two bases. */
#define BASE_MIGRATING	U16_MAX

struct base;

extern struct base **twheel_base_table;

/* The base of a number other than BASE_MIGRATING. */
static inline struct base *base_of_number(u16 number)
{
	return twheel_base_table[number];
}

int base_numbers_init(size_t nr);
void base_numbers_exit(void);
int base_give_number(struct base *base);

#endif /* TWHEEL_BASE_NUMBER_H */
