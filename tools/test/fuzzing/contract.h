/* SPDX-License-Identifier: GPL-2.0 */
/* The contract of the device's ioctls, stated a second time. */
#ifndef FUZZING_CONTRACT_H
#define FUZZING_CONTRACT_H

#include "fake_kernel.h"

/**
 * struct world - what is below the ioctls: how contexts answer, and what they were asked
 * @records: how many records are ready.
 * @entries: how many events there are.
 * @configure: what twheel_context_configure() returns.
 * @nr_ids: how many ids were given.
 * @nr_asked: how many commands a context was asked to run.
 * @asked: a hash of these, with what belongs to each.
 */
struct world {
	u64 records;
	u64 entries;
	int configure;
	u64 nr_ids;
	u64 nr_asked;
	u64 asked;
};

int world_run(struct world *world, struct twheel_cmd *cmd, u64 last_add);

long contract_uring(struct world *world, struct arena *arena, unsigned int request,
		    const u8 *area, bool is_long);
long contract_ioctl(struct world *world, struct arena *arena, unsigned int request, u64 argument);

#endif /* FUZZING_CONTRACT_H */
