// SPDX-License-Identifier: GPL-2.0
/* Memory that is there in time: see settle.h. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "ledger.h"
#include "settle.h"

/* mlockall() would take all logs, too, and longer than a round in User-mode Linux. */
static void settle_mappings(void)
{
	unsigned long first, end;
	char line[512], mode[8];
	FILE *maps = fopen("/proc/self/maps", "r");

	if (!maps)
		return;
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %7s", &first, &end, mode) != 3 || is_of_logs(first))
			continue;
		/* Some mappings are of the kernel, and are there. */
		madvise((void *)first, end - first,
			mode[1] == 'w' ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
	}
	fclose(maps);
}

void settle_memory(void)
{
	char stack[65536];

	/* The stack grows as far as it will. */
	memset(stack, 1, sizeof(stack));
	__asm__ volatile("" : : "r"(stack) : "memory");
	settle_mappings();
}
