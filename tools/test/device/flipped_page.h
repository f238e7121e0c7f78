/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A page of commands that becomes read-only and writable again all the time.
 */
#ifndef FLIPPED_PAGE_H
#define FLIPPED_PAGE_H

#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device.h"
#include "util.h"

/* A page of commands, seen twice; a thread flips the protection of one view. */
struct flipped {
	pthread_t thread;
	struct twheel_cmd *writable;
	struct twheel_cmd *flipped;
	atomic_bool stop;
};

static inline struct twheel_cmd *map_view(int memory)
{
	void *view = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
			  memory, 0);

	ASSERT(view != MAP_FAILED);
	return view;
}

static inline void *flip_protection(void *arg)
{
	struct flipped *page = arg;

	while (!page->stop) {
		ASSERT_EQ(mprotect(page->flipped, PAGE_BYTES, PROT_READ), 0);
		ASSERT_EQ(mprotect(page->flipped, PAGE_BYTES,
				   PROT_READ | PROT_WRITE), 0);
	}
	return NULL;
}

static inline void start_flipping(struct flipped *page)
{
	int memory = memfd_create("cmds", 0);

	ASSERT_EQ(ftruncate(memory, PAGE_BYTES), 0);
	page->writable = map_view(memory);
	page->flipped = map_view(memory);
	page->stop = false;
	page->thread = start_thread(flip_protection, page);
}

static inline void stop_flipping(struct flipped *page)
{
	page->stop = true;
	join_thread(page->thread);
}

#endif /* FLIPPED_PAGE_H */
