/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Contexts: what one open file of /dev/twheel has.
 *
 * context.c tells the object model, the lifetimes and the locking.
 */
#ifndef TWHEEL_CONTEXT_H
#define TWHEEL_CONTEXT_H

#include <linux/seq_file.h>

#include "batch.h"

/* Words need caches that allow two addresses of the same memory. */
#define CONTEXT_HAS_DEADLINES	(!IS_ENABLED(CONFIG_ARCH_HAS_CPU_CACHE_ALIASING))

extern unsigned int context_max_events;

struct context *twheel_context_create(void);
void twheel_context_destroy(struct context *context);
int twheel_context_configure(struct context *context, const struct twheel_config *config);

int context_map(struct context *context, struct vm_area_struct *vma);

int context_add(struct context_batch *batch, struct twheel_cmd *cmd);
void context_undo_add(struct context_batch *batch, u64 id);
int context_modify(struct context_batch *batch, struct twheel_cmd *cmd);
int context_cancel(struct context_batch *batch, struct twheel_cmd *cmd);
int context_query(struct context_batch *batch, struct twheel_cmd *cmd);

void context_show(const struct context *context, struct seq_file *seq);

#endif /* TWHEEL_CONTEXT_H */
