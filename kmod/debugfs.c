// SPDX-License-Identifier: GPL-2.0
/*
 * The bases in debugfs: a file for each, twheel/cpuN-CLOCK for events without a deadline,
 * twheel/cpuN-CLOCK-deadlines for those with one, and twheel/cpuN-monotonic-timers for the
 * timers of modules.
 *
 * A line has a name, a colon, and values, separated by tabs:
 *
 *   tick_ns		the length of a tick
 *   clk, now		the tick at which the wheel stands, and the current tick
 *   next		the next tick that has work, or "none"
 *   online		1: nodes may be armed there; 0: its CPU is down
 *   armed		how many nodes are on the wheel
 *   gap		how many more nodes are due before clk, because the clock was set
 *			back; they are on other wheels, which are not shown, or wait for them
 *   wheels		how many wheels there are: more than one after the clock was set
 *			back
 *   interrupts		how often an hrtimer called, ever
 *   expired		how many nodes were due and handled, ever
 *   postponed		how many nodes came out and went back to the wheel, because their
 *			time had been moved (TWHEEL_DEADLINE, twheel_timer_postpone())
 *   due_ticks		at how many ticks they were due: each had its own interrupt,
 *			unless a late run handled several ticks
 *   cascaded		how many times a node was moved to a lower level, ever
 *   prefetched		how many of these moves were ahead of time, from crowded slots
 *   most_touched	the most nodes touched while the lock was held once, ever
 *   longest_hold_ns	the longest time that it was held (with CONFIG_DEBUG_SPINLOCK)
 *   lateness		a histogram of expired nodes: value k is the number of nodes that
 *			were less than 2^(k + 10) ns late, and not in an earlier value;
 *			the last one has all others
 *   level		its number, the occupied and the crowded slots as 64 bits in
 *			hexadecimal, the number of nodes, and that of each slot
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "base.h"
#include "debugfs.h"

static struct dentry *directory;

static void show_level(struct seq_file *seq, const struct wheel *wheel,
		       unsigned int level)
{
	u64 armed = 0;
	unsigned int i;

	for (i = 0; i < WHEEL_SLOTS; i++)
		armed += wheel->slots[level][i].count;
	seq_printf(seq, "level:\t%u\t%016llx\t%016llx\t%llu\t", level,
		   wheel->occupied.slots[level], wheel->crowded.slots[level],
		   armed);
	for (i = 0; i < WHEEL_SLOTS; i++)
		seq_printf(seq, "%u%c", wheel->slots[level][i].count,
			   i < WHEEL_SLOTS - 1 ? ' ' : '\n');
}

static void show_base(struct seq_file *seq, const struct base_view *view)
{
	const struct base *base = &view->base;
	const struct wheel *wheel = &view->wheel;
	unsigned int i;

	seq_printf(seq, "tick_ns:\t%llu\n", base_tick_ns(1));
	seq_printf(seq, "clk:\t%llu\n", wheel->clk);
	seq_printf(seq, "now:\t%llu\n", view->now_tick);
	if (view->next_tick == WHEEL_NEVER)
		seq_puts(seq, "next:\tnone\n");
	else
		seq_printf(seq, "next:\t%llu\n", view->next_tick);
	seq_printf(seq, "online:\t%d\n", base->online);
	seq_printf(seq, "armed:\t%llu\n", wheel->armed);
	seq_printf(seq, "gap:\t%llu\n", view->gap);
	seq_printf(seq, "wheels:\t%u\n", base->wheels.nr);
	seq_printf(seq, "interrupts:\t%llu\n", base->interrupts);
	seq_printf(seq, "expired:\t%llu\n", base->nr_expired);
	seq_printf(seq, "postponed:\t%llu\n", base->nr_postponed);
	seq_printf(seq, "due_ticks:\t%llu\n", base->due_ticks);
	seq_printf(seq, "cascaded:\t%llu\n", wheel->cascaded + wheel->prefetched);
	seq_printf(seq, "prefetched:\t%llu\n", wheel->prefetched);
	seq_printf(seq, "most_touched:\t%u\n", base->most_touched);
#ifdef CONFIG_DEBUG_SPINLOCK
	seq_printf(seq, "longest_hold_ns:\t%llu\n", base->longest_hold_ns);
#endif
	seq_puts(seq, "lateness:\t");
	for (i = 0; i < BASE_LATENESS_BUCKETS; i++)
		seq_printf(seq, "%llu%c", base->lateness[i],
			   i < BASE_LATENESS_BUCKETS - 1 ? ' ' : '\n');
	for (i = 0; i < WHEEL_LEVELS; i++)
		show_level(seq, wheel, i);
}

static int base_show(struct seq_file *seq, void *unused)
{
	struct base_view *view = kvmalloc(sizeof(*view), GFP_KERNEL | __GFP_NOWARN);

	if (!view)
		return -ENOMEM;
	base_look(seq->private, view);
	show_base(seq, view);
	kvfree(view);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(base);

/* The file of a base, which stays until twheel_debugfs_exit(). */
void twheel_debugfs_add(struct base *base)
{
	char name[32];

	snprintf(name, sizeof(name), "cpu%u-%s%s", base->cpu,
		 base_clock_name(base->clock), base_kind_suffix(base->kind));
	debugfs_create_file(name, 0400, directory, base, &base_fops);
}

/* Without debugfs there are no files; everything else works. */
void twheel_debugfs_init(void)
{
	directory = debugfs_create_dir("twheel", NULL);
}

void twheel_debugfs_exit(void)
{
	debugfs_remove(directory);
}
