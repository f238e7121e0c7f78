// SPDX-License-Identifier: GPL-2.0
/*
 * The maximum number of timers that the module touched in one hold of a lock since it was
 * loaded.  So this has to be the last measurement.
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
