/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The options of the suites, which twheel_kunit_options.ko has: how many of its random
 * rounds a suite does, and where they begin.
 *
 * A behaviour that one round proves is not in such a loop. What the loop finds is found
 * by chance, and a quick run has less of it.
 */
#ifndef TWHEEL_OPTIONS_H
#define TWHEEL_OPTIONS_H

#include <kunit/test.h>
#include <linux/minmax.h>
#include <linux/random.h>

extern unsigned int twheel_kunit_quick;
extern unsigned long twheel_kunit_seed;

/* The part of @nr random rounds, at least one, that this run does. */
static inline unsigned int rounds_of(unsigned int nr)
{
	return max(nr / max(twheel_kunit_quick, 1U), 1U);
}

/* The seed of a test, which is printed: with it as the option, the test does the same again. */
static inline unsigned long seed_of(struct kunit *test)
{
	unsigned long seed = twheel_kunit_seed ?: get_random_u32();

	kunit_info(test, "seed %lu", seed);
	return seed;
}

#endif /* TWHEEL_OPTIONS_H */
