// SPDX-License-Identifier: GPL-2.0
/*
 * The most timers that the module has touched while it held a lock of its own once, since
 * it was loaded: so this is to run after all else.
 */
#include <stdio.h>

#include "bench.h"
#include "work.h"

void work_hold(const struct plan *plan)
{
	static __u64 touched[BASES_MAX];
	size_t i, bases = read_bases("most_touched", touched);
	__u64 most = 0;

	(void)plan;
	for (i = 0; i < bases; i++)
		if (touched[i] > most)
			most = touched[i];
	printf("\nTouched while a lock was held once: %llu timers at most\n", most);
	print_result(most, "count", "w4.module.most_touched");
}
