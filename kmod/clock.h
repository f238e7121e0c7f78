/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Clocks that are set, and the offsets of time namespaces.
 */
#ifndef TWHEEL_CLOCK_H
#define TWHEEL_CLOCK_H

#include <linux/list.h>
#include <linux/workqueue.h>

#include "base.h"

/**
 * struct clock_notice - a work that is queued after CLOCK_REALTIME was set
 * @list: private.
 * @work: the work; it calls the owner's function.
 */
struct clock_notice {
	struct list_head list;
	struct work_struct work;
};

s64 clock_offset_ns(void);
unsigned long clock_nr_sets(void);
s64 clock_namespace_ns(enum base_clock clock);
void clock_notice_begin(struct clock_notice *notice, work_func_t function);
void clock_notice_end(struct clock_notice *notice);
void clock_notice_give(struct clock_notice *notice);

int clock_init(void);
void clock_exit(void);

#endif /* TWHEEL_CLOCK_H */
