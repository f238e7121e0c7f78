// SPDX-License-Identifier: GPL-2.0
/*
 * Options of the suites, in a module that is loaded before them: KUnit in 6.1 runs a suite
 * before the parameters of the suite's own module are set.
 */
#include <linux/module.h>

#include "options.h"

unsigned int twheel_kunit_quick = 1;
module_param_named(quick, twheel_kunit_quick, uint, 0444);
MODULE_PARM_DESC(quick, "Divides the random rounds of the suites (default 1: all of them)");
EXPORT_SYMBOL_GPL(twheel_kunit_quick);

unsigned long twheel_kunit_seed;
module_param_named(seed, twheel_kunit_seed, ulong, 0444);
MODULE_PARM_DESC(seed, "Seed of the random rounds (default 0: each test draws and prints one)");
EXPORT_SYMBOL_GPL(twheel_kunit_seed);

MODULE_DESCRIPTION("Options of twheel's KUnit suites");
MODULE_LICENSE("GPL");
