/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints: twheel:twheel_arm, _postpone, _cancel, _complete, _due and _run.
 * Times are in nanoseconds on the base's clock; a node is known by its address.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM twheel

#if !defined(TWHEEL_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define TWHEEL_TRACE_H

#include <linux/tracepoint.h>

#include "base.h"

/* perf and trace-cmd read the format file, which has to have numbers for names. */
TRACE_DEFINE_ENUM(BASE_MONOTONIC);
TRACE_DEFINE_ENUM(BASE_BOOTTIME);
TRACE_DEFINE_ENUM(BASE_REALTIME);
TRACE_DEFINE_ENUM(BASE_EVENTS);
TRACE_DEFINE_ENUM(BASE_DEADLINES);
TRACE_DEFINE_ENUM(BASE_TIMERS);

#define show_clock(clock)				\
	__print_symbolic(clock,				\
			 { BASE_MONOTONIC, "monotonic" },	\
			 { BASE_BOOTTIME, "boottime" },		\
			 { BASE_REALTIME, "realtime" })

#define show_kind(kind)					\
	__print_symbolic(kind,				\
			 { BASE_EVENTS, "events" },			\
			 { BASE_DEADLINES, "deadlines" },	\
			 { BASE_TIMERS, "timers" })

DECLARE_EVENT_CLASS(twheel_place,
	TP_PROTO(const struct base *base, const struct twheel_node *node,
		 u64 due_ns, u64 fires_ns),
	TP_ARGS(base, node, due_ns, fires_ns),
	TP_STRUCT__entry(
		__field(const void *, node)
		__field(unsigned int, cpu)
		__field(int, clock)
		__field(int, kind)
		__field(u64, due_ns)
		__field(u64, fires_ns)
	),
	TP_fast_assign(
		__entry->node = node;
		__entry->cpu = base->cpu;
		__entry->clock = base->clock;
		__entry->kind = base->kind;
		__entry->due_ns = due_ns;
		__entry->fires_ns = fires_ns;
	),
	TP_printk("node=%p base=%u/%s due_ns=%llu fires_ns=%llu kind=%s", __entry->node,
		  __entry->cpu, show_clock(__entry->clock), __entry->due_ns,
		  __entry->fires_ns, show_kind(__entry->kind))
);

/* A node is put on a wheel, to come out at fires_ns or later. */
DEFINE_EVENT(twheel_place, twheel_arm,
	TP_PROTO(const struct base *base, const struct twheel_node *node,
		 u64 due_ns, u64 fires_ns),
	TP_ARGS(base, node, due_ns, fires_ns)
);

/* A node came out, but its time had been moved: it is put on the wheel again. */
DEFINE_EVENT(twheel_place, twheel_postpone,
	TP_PROTO(const struct base *base, const struct twheel_node *node,
		 u64 due_ns, u64 fires_ns),
	TP_ARGS(base, node, due_ns, fires_ns)
);

/* A node is taken off before its time. */
TRACE_EVENT(twheel_cancel,
	TP_PROTO(const struct base *base, const struct twheel_node *node),
	TP_ARGS(base, node),
	TP_STRUCT__entry(
		__field(const void *, node)
		__field(unsigned int, cpu)
		__field(int, clock)
		__field(int, kind)
	),
	TP_fast_assign(
		__entry->node = node;
		__entry->cpu = base->cpu;
		__entry->clock = base->clock;
		__entry->kind = base->kind;
	),
	TP_printk("node=%p base=%u/%s kind=%s", __entry->node, __entry->cpu,
		  show_clock(__entry->clock), show_kind(__entry->kind))
);

/* An event is completed before its time. */
TRACE_EVENT(twheel_complete,
	TP_PROTO(const struct base *base, const struct twheel_node *node, u64 key,
		 u64 value),
	TP_ARGS(base, node, key, value),
	TP_STRUCT__entry(
		__field(const void *, node)
		__field(unsigned int, cpu)
		__field(int, clock)
		__field(int, kind)
		__field(u64, key)
		__field(u64, value)
	),
	TP_fast_assign(
		__entry->node = node;
		__entry->cpu = base->cpu;
		__entry->clock = base->clock;
		__entry->kind = base->kind;
		__entry->key = key;
		__entry->value = value;
	),
	TP_printk("node=%p base=%u/%s key=%llu value=%llu kind=%s", __entry->node,
		  __entry->cpu, show_clock(__entry->clock), __entry->key,
		  __entry->value, show_kind(__entry->kind))
);

/* A node came out; late_ns counts from the beginning of its tick. */
TRACE_EVENT(twheel_due,
	TP_PROTO(const struct base *base, const struct twheel_node *node,
		 u64 late_ns),
	TP_ARGS(base, node, late_ns),
	TP_STRUCT__entry(
		__field(const void *, node)
		__field(unsigned int, cpu)
		__field(int, clock)
		__field(int, kind)
		__field(u64, late_ns)
	),
	TP_fast_assign(
		__entry->node = node;
		__entry->cpu = base->cpu;
		__entry->clock = base->clock;
		__entry->kind = base->kind;
		__entry->late_ns = late_ns;
	),
	TP_printk("node=%p base=%u/%s late_ns=%llu kind=%s", __entry->node,
		  __entry->cpu, show_clock(__entry->clock), __entry->late_ns,
		  show_kind(__entry->kind))
);

/*
 * A run of a base ended; more: its time was up before its work was done.  In hard interrupt
 * context spent_ns is 0, and more means that the softirq does the rest.
 */
TRACE_EVENT(twheel_run,
	TP_PROTO(const struct base *base, u64 expired, u64 spent_ns, bool more),
	TP_ARGS(base, expired, spent_ns, more),
	TP_STRUCT__entry(
		__field(unsigned int, cpu)
		__field(int, clock)
		__field(int, kind)
		__field(u64, expired)
		__field(u64, spent_ns)
		__field(bool, more)
	),
	TP_fast_assign(
		__entry->cpu = base->cpu;
		__entry->clock = base->clock;
		__entry->kind = base->kind;
		__entry->expired = expired;
		__entry->spent_ns = spent_ns;
		__entry->more = more;
	),
	TP_printk("base=%u/%s expired=%llu spent_ns=%llu more=%d kind=%s", __entry->cpu,
		  show_clock(__entry->clock), __entry->expired,
		  __entry->spent_ns, __entry->more, show_kind(__entry->kind))
);

#endif /* TWHEEL_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
