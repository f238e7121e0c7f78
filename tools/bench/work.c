// SPDX-License-Identifier: GPL-2.0
/* What is shared by all that is measured. */
#include <stdio.h>
#include <string.h>

#include "bench.h"
#include "work.h"

/* The names are a list with commas; "twheel" means each of its variants. */
static bool is_named(const char *names, const char *name)
{
	size_t length = strlen(name);
	const char *at = names;

	while (at) {
		size_t part = strcspn(at, ",");

		if (part <= length && !strncmp(at, name, part) &&
		    (!name[part] || name[part] == '.'))
			return true;
		at = strchr(at, ',');
		if (at)
			at++;
	}
	return false;
}

bool plan_has(const struct plan *plan, const struct way *way)
{
	const char *lack;

	if (plan->ways && !is_named(plan->ways, way_name(way)))
		return false;
	lack = way->lacks ? way->lacks() : NULL;
	if (lack)
		printf("%-24s not here: %s\n", way->text, lack);
	return !lack;
}

__u32 *all_timers(__u32 nr)
{
	__u32 *timers = bench_alloc(nr, sizeof(*timers)), i;

	for (i = 0; i < nr; i++)
		timers[i] = i;
	return timers;
}

void random_times(__u64 *due_ns, __u32 nr, __u64 from_ns, __u64 span_ns)
{
	__u32 i;

	for (i = 0; i < nr; i++)
		due_ns[i] = from_ns + bench_random() % span_ns;
}
