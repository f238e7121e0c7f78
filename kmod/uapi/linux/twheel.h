/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * twheel: millions of delayed events on one file descriptor.
 *
 * Each open() of /dev/twheel is a context with its own events, ids and limits.
 * Commands (struct twheel_cmd) arm, change and cancel events; each expiration
 * is read as one struct twheel_record.  The last close frees everything.
 *
 * An event can be a delayed operation, which ends as soon as a condition is true, or when
 * its time comes.  WATCH attaches it to a key, with a need.  Each SIGNAL on the key counts
 * for the watch, and when as many of its watches are satisfied as its quorum says, the
 * event is completed.  A watch is satisfied when the values of the signals since WATCH add
 * up to the need (bytes, acks) or, with TWHEEL_LEVEL, by one signal of at least that value
 * (a position passed).  A signal counts only for the watches that exist: so check your
 * condition once after WATCH, and COMPLETE the event yourself if it is true.  The event
 * ends exactly once, by whatever comes first, and its other watches end with it.
 *
 * Deadlines in shared memory: most timeouts are moved again and again and never fire.
 * A context can share an array of 64-bit words with its process (nr_deadlines of
 * TWHEEL_IOC_CONFIG, then mmap() of the file from offset 0, MAP_SHARED).  A word is the
 * time of each event that names it (TWHEEL_DEADLINE): any thread moves that time by one
 * store, without a call.  A word is an absolute time on the context's clock; 2^63 and more
 * is never.  It must be written in one piece; a 32-bit program needs an atomic 8-byte
 * store.  The kernel reads it when the event is armed, and when the time comes that it
 * read last.  If the word is a later time then, the event waits until that time, and no
 * task is woken; otherwise the event expires, and due_ns of its record is the value read.
 * So a store of a later time always has an effect, unless it is made while the event
 * expires.  A store of an earlier time has none before the old time comes, or before a
 * MODIFY with TWHEEL_DEADLINE.  A mapping keeps the context and its events, like the file.
 * Reading a word takes time in softirq context, on the CPU that armed the event.  Events
 * with words have a wheel of their own, so other events do not wait for that.  But if a
 * context keeps hundreds of thousands of events always just ahead of the clock, the kernel
 * is behind with reading, and its events are read again only after as long as it is
 * behind: they may be late by that time, and other contexts' events with words by as long
 * as it takes to read all of these once.  Between an event with a word and one without,
 * no order is promised.
 *
 * All times are in nanoseconds.  Every structure has the same layout for 32-bit
 * and 64-bit programs.  Reserved fields, unknown flags and fields that a
 * command does not use must be 0, else -EINVAL: they may get a meaning
 * later.  Fields marked "out" are not read.
 */
#ifndef _UAPI_LINUX_TWHEEL_H
#define _UAPI_LINUX_TWHEEL_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* The version of this interface, as in &struct twheel_info.abi. */
#define TWHEEL_ABI_VERSION	1

/* What a command does: &struct twheel_cmd.op. */
#define TWHEEL_OP_ADD		1	/* arm a new event */
#define TWHEEL_OP_MODIFY	2	/* give an event another time */
#define TWHEEL_OP_CANCEL	3	/* end an event without a record */
#define TWHEEL_OP_COMPLETE	4	/* complete an event */
#define TWHEEL_OP_WATCH		5	/* let signals on a key complete an event */
#define TWHEEL_OP_SIGNAL	6	/* add to the watches of a key */
#define TWHEEL_OP_QUERY		7	/* read an event's state and times */

/* &struct twheel_cmd.flags */
#define TWHEEL_ABS		1	/* ADD, MODIFY: time_ns is absolute */
#define TWHEEL_CANCEL_ON_SET	2	/* ADD, MODIFY: end when the clock is set */
#define TWHEEL_LEVEL		4	/* WATCH: one signal must reach the need */
#define TWHEEL_QUIET		8	/* SIGNAL: cancel, without records */
#define TWHEEL_SET_DATA		16	/* MODIFY: replace the data too */
#define TWHEEL_DEADLINE		32	/* ADD, MODIFY: the word @key is its time */

/* The state of an event: QUERY's result, &struct twheel_entry.state. */
#define TWHEEL_ARMED		1	/* waits for its time */
#define TWHEEL_READY		2	/* its record waits to be read */

/* The most watches an event may wait for at a time, and so the highest quorum. */
#define TWHEEL_MAX_WATCHES	64

/**
 * struct twheel_cmd - one command
 * @op: the operation, TWHEEL_OP_*.
 * @flags: TWHEEL_ABS, TWHEEL_CANCEL_ON_SET, TWHEEL_LEVEL, TWHEEL_QUIET,
 *	TWHEEL_SET_DATA, TWHEEL_DEADLINE, each with the commands named at its
 *	definition.  TWHEEL_DEADLINE excludes the first two.
 * @result: out: 0 or more, or a negative errno.
 * @id: ADD: out, the new event's id, 0 if it failed.  Others: the id of the event.
 *	WATCH with 0 means the nearest ADD before it in the same call.
 * @data: ADD, and MODIFY with TWHEEL_SET_DATA: a cookie, given back in the
 *	record.
 * @value: WATCH: the need, not 0.  SIGNAL, COMPLETE: the value, for the record; with
 *	TWHEEL_QUIET it has no effect.
 * @time_ns: ADD, MODIFY: when it is due, relative to now or, with TWHEEL_ABS,
 *	absolute on the context's clock.  Past or 0 is due at once; 2^63 and
 *	more, or a relative time that overflows, is never; 0 with TWHEEL_DEADLINE.
 *	QUERY: out, when it is due, absolute.
 * @interval_ns: ADD, MODIFY: the period; 0 for a one-shot event, else at least
 *	one tick; 0 with TWHEEL_DEADLINE.  QUERY: out.
 * @slack_ns: ADD, MODIFY: how much later than its due time it may expire, so that
 *	several events share an interrupt.  QUERY: out.
 * @key: WATCH, SIGNAL: the key.  ADD, MODIFY with TWHEEL_DEADLINE: the index of
 *	the word.
 * @quorum: ADD: how many of its watches must be satisfied to complete it; 0 is
 *	taken as 1, at most TWHEEL_MAX_WATCHES.
 * @reserved: 0.
 *
 * SIGNAL's @result is the number of operations it ended.  It ends all of them in this one
 * command, however long that takes; only the end of the calling process stops it early.
 * With TWHEEL_QUIET it ends all operations that watch the key, without records; a watch
 * that is satisfied does not count as watching its key.  COMPLETE ends any armed event,
 * with a record.  After a MODIFY, an armed operation keeps its watches, and what they have
 * counted; one that expired starts again, without watches.
 *
 * Errors, in @result: -EINVAL, malformed, or a period together with watches or a
 * quorum; -E2BIG, a newer struct whose additional part is not 0; -ENOENT, no such event
 * (never existed, already read, cancelled); -EALREADY, COMPLETE or WATCH of an event that
 * is READY, or MODIFY of one that is READY but did not expire; -ENOSPC, a limit
 * (of events, of an event's watches, of the user's events and watches); -ENOMEM;
 * -EOPNOTSUPP, not in this build.
 */
struct twheel_cmd {
	__u16 op;
	__u16 flags;
	__s32 result;
	__u64 id;
	union {
		__u64 data;
		__u64 value;
	};
	__u64 time_ns;
	__u64 interval_ns;
	__u64 slack_ns;
	__u64 key;
	__u32 quorum;
	__u32 reserved;
};

/* Why an event ended: &struct twheel_record.reason. */
#define TWHEEL_EXPIRED		0	/* its time came */
#define TWHEEL_COMPLETED	1	/* its watches or COMPLETE ended it */
#define TWHEEL_CLOCK_SET	2	/* TWHEEL_CANCEL_ON_SET, and the clock was set */

/* &struct twheel_record.flags */
#define TWHEEL_RECORD_SIGNAL	1	/* COMPLETED: by a signal, on @key */

/**
 * struct twheel_record - one expiration, in the form of read() and TWHEEL_IOC_ENTER
 * @data: the cookie of the event.
 * @id: the id of the event.
 * @due_ns: when it was due, as asked for, absolute on the context's clock.  For a
 *	relative time, it was calculated when the event was armed; for a word, it is the
 *	value of the word when the event became ready.  A periodic event with a relative
 *	time on CLOCK_REALTIME follows CLOCK_MONOTONIC; then this is calculated from the
 *	offset of the two clocks when the record is read.
 * @fired_ns: when the kernel made it ready, on the context's clock.
 * @count: how many expirations of a periodic event this record covers; else 1.
 * @value: the value of the signal or COMPLETE that completed it, else 0.
 * @key: the key of the signal that completed it, which may be 0, too; else 0.
 * @reason: TWHEEL_EXPIRED, TWHEEL_COMPLETED or TWHEEL_CLOCK_SET.
 * @flags: TWHEEL_RECORD_SIGNAL or 0.
 *
 * read() will always return records of this size, 64 bytes.  If a record grows, only
 * TWHEEL_IOC_ENTER returns the longer one, because it knows the caller's size.
 *
 * read() returns as many whole records as fit, oldest first.  Its errors: -EINVAL,
 * the buffer is shorter than one record; -EAGAIN, no record is ready and the file
 * is O_NONBLOCK; -EFAULT, the first record could not be copied out, and none is
 * lost.
 */
struct twheel_record {
	__u64 data;
	__u64 id;
	__u64 due_ns;
	__u64 fired_ns;
	__u64 count;
	__u64 value;
	__u64 key;
	__u32 reason;
	__u32 flags;
};

/* &struct twheel_info.features: what this build of the module can do. */
#define TWHEEL_FEATURE_PERIODIC		0x001	/* interval_ns */
#define TWHEEL_FEATURE_SLACK		0x002	/* slack_ns */
#define TWHEEL_FEATURE_CLOCKS		0x004	/* BOOTTIME, REALTIME, CANCEL_ON_SET */
#define TWHEEL_FEATURE_ENTER		0x008	/* TWHEEL_IOC_ENTER */
#define TWHEEL_FEATURE_WAKE		0x010	/* wake_count, wake_delay_ns */
#define TWHEEL_FEATURE_CPU		0x020	/* TWHEEL_CONFIG_CPU */
#define TWHEEL_FEATURE_LIST		0x040	/* TWHEEL_IOC_LIST */
#define TWHEEL_FEATURE_OPERATIONS	0x080	/* COMPLETE, WATCH, SIGNAL */
#define TWHEEL_FEATURE_URING_CMD	0x100	/* SUBMIT by IORING_OP_URING_CMD */
#define TWHEEL_FEATURE_DEADLINES	0x200	/* nr_deadlines, TWHEEL_DEADLINE */
#define TWHEEL_FEATURE_ENTRY_FLAGS	0x400	/* &struct twheel_entry.flags */

/*
 * Each argument of an ioctl begins with the size of the caller's struct.  If that is
 * smaller than the kernel's, the rest is taken as 0; if it is larger, the rest must be 0,
 * else -E2BIG.  Nothing is written beyond it.  The ioctl is recognised by its number
 * alone, so a struct can grow.
 */

/**
 * struct twheel_info - TWHEEL_IOC_INFO: properties of the module and the context
 * @size: sizeof(struct twheel_info).
 * @abi: out: TWHEEL_ABI_VERSION.
 * @features: out: TWHEEL_FEATURE_*.
 * @tick_ns: out: the length of a tick; a due time is rounded up to one.
 * @max_events: out: how many events this context may have at once.
 */
struct twheel_info {
	__u32 size;
	__u32 abi;
	__u64 features;
	__u64 tick_ns;
	__u64 max_events;
};

/* &struct twheel_config.flags */
#define TWHEEL_CONFIG_CPU	1	/* bind the context to @cpu */

/**
 * struct twheel_config - TWHEEL_IOC_CONFIG: configure a context
 * @size: sizeof(struct twheel_config).
 * @flags: TWHEEL_CONFIG_CPU or 0.
 * @clockid: CLOCK_MONOTONIC, CLOCK_BOOTTIME or CLOCK_REALTIME, always explicit
 *	(0 is CLOCK_REALTIME).  Without a CONFIG it is CLOCK_MONOTONIC.
 * @cpu: with TWHEEL_CONFIG_CPU, the CPU whose wheel holds the events; else 0.
 * @max_events: how many events the context may have at once; 0: the default.
 * @slack_ns: the least slack of every event.
 * @wake_count: how many records make the file readable; 0: 1.
 * @nr_deadlines: how many words the context shares with its process, at most as many
 *	as it may have events; 0: none.  See "Deadlines in shared memory" above.
 * @wake_delay_ns: required with @wake_count above 1: the age of the oldest record at
 *	which the file is readable with fewer records; else 0.
 *
 * May be repeated until the first ADD, or until the words are mapped; each time it
 * replaces all values of the last one.
 *
 * Errors: -EBUSY, the context has had an event, or its words were mapped; -EINVAL,
 * malformed; -ENOSPC, @max_events is above the module's limit, or the words exceed the
 * user's limit of events (eight words count as one event); -EPERM, @cpu is not in
 * the caller's affinity mask (CAP_SYS_NICE may); -EOPNOTSUPP, this kernel has no
 * TWHEEL_FEATURE_DEADLINES; -ENOMEM; -E2BIG; -EFAULT; -EINTR.
 */
struct twheel_config {
	__u32 size;
	__u32 flags;
	__s32 clockid;
	__u32 cpu;
	__u64 max_events;
	__u64 slack_ns;
	__u32 wake_count;
	__u32 nr_deadlines;
	__u64 wake_delay_ns;
};

/**
 * struct twheel_submit - TWHEEL_IOC_SUBMIT: run commands, in order
 * @size: sizeof(struct twheel_submit).
 * @flags: 0.
 * @cmds: address of the commands.
 * @nr: how many there are.
 * @cmd_size: sizeof(struct twheel_cmd); the distance from one to the next.
 *
 * Each command gets its own result; one that fails does not stop the rest.
 * Returns how many had their result written.  A pending signal ends it early, but
 * not between an ADD and the WATCHes with id 0 directly behind it.
 * An ADD whose result cannot be written is undone.
 *
 * Errors, only if no result was written: -EFAULT; -EINVAL, malformed; -E2BIG;
 * -EINTR.
 */
struct twheel_submit {
	__u32 size;
	__u32 flags;
	__u64 cmds;
	__u32 nr;
	__u32 cmd_size;
};

/**
 * struct twheel_uring - TWHEEL_IOC_SUBMIT by IORING_OP_URING_CMD
 * @argument: address of the struct twheel_submit.
 * @reserved: 0.
 *
 * It is in the cmd area of the sqe, whose cmd_op is TWHEEL_IOC_SUBMIT.  The
 * completion's result is what the ioctl returns; -EOPNOTSUPP for another cmd_op.
 *
 * It is run at once, in the caller's own task, if it has at most 512 commands, these do
 * not take long, and no other task uses the context; else by a worker.  Commands that
 * unlink more than 512 watches take long: a SIGNAL of hundreds of operations, or the
 * CANCELs of a few that have many watches.
 */
struct twheel_uring {
	__u64 argument;
	__u64 reserved;
};

/* &struct twheel_enter.flags */
#define TWHEEL_ENTER_ABS	1	/* timeout_ns is absolute, on CLOCK_MONOTONIC */

/**
 * struct twheel_enter - TWHEEL_IOC_ENTER: a turn of an event loop in one call
 * @size: sizeof(struct twheel_enter).
 * @flags: TWHEEL_ENTER_ABS or 0.
 * @cmds: address of the commands to run first, as with TWHEEL_IOC_SUBMIT.
 * @records: address of a buffer for records.
 * @timeout_ns: how long to wait for @min_records; 0: not at all; U64_MAX: for
 *	ever.
 * @nr_cmds: how many commands there are.
 * @nr_records: how many records fit into the buffer.
 * @min_records: how many records to wait for, at most @nr_records.
 * @cmd_size: sizeof(struct twheel_cmd).
 * @record_size: sizeof(struct twheel_record).
 * @cmds_done: out: how many commands had their result written.
 * @records_done: out: how many records were copied out.
 * @reserved: 0.
 * @sigmask: address of the signal mask during the wait, as with epoll_pwait(): a signal
 *	that it does not block ends the wait, also one that came before.  0: the mask is
 *	not changed.
 * @sigset_size: 8, the size of that mask; 0 without one.
 * @reserved2: 0.
 *
 * Returns 0 if a command was run or a record was read, or the time ran out.  While there
 * are fewer records than @min_records, it reads those that there are, and waits.  It stops
 * waiting when no more can come before some are read: no event is armed, or the context is
 * full.  But if it has got no record it goes on waiting, because another thread may ADD.
 *
 * A struct that ends before @sigmask, at 64 bytes, is also accepted.  With a shorter one the
 * call does the same, but nothing is written past its end: if @records_done lies there,
 * records are read and nobody is told how many.
 *
 * Errors: -EINTR, only if nothing was done; -EINVAL, malformed; -EFAULT;
 * -E2BIG.  A signal without a handler, such as a stop and continue, does not end a call
 * that waits for ever or until an absolute time and has done nothing.
 */
struct twheel_enter {
	__u32 size;
	__u32 flags;
	__u64 cmds;
	__u64 records;
	__u64 timeout_ns;
	__u32 nr_cmds;
	__u32 nr_records;
	__u32 min_records;
	__u32 cmd_size;
	__u32 record_size;
	__u32 cmds_done;
	__u32 records_done;
	__u32 reserved;
	__u64 sigmask;
	__u32 sigset_size;
	__u32 reserved2;
};

/**
 * struct twheel_list - TWHEEL_IOC_LIST: page through the events
 * @size: sizeof(struct twheel_list).
 * @nr: how many entries fit into the buffer.
 * @entry_size: sizeof(struct twheel_entry).
 * @reserved: 0.
 * @cursor: 0 in the first call, then the value that was written back.
 * @entries: address of a buffer for the entries.
 *
 * Returns how many entries were written, 0 at the end; fewer than @nr do not mean the
 * end.  An event that exists during all calls is listed exactly once.
 *
 * Errors: -EINVAL, malformed; -EFAULT; -E2BIG; -EINTR.
 */
struct twheel_list {
	__u32 size;
	__u32 nr;
	__u32 entry_size;
	__u32 reserved;
	__u64 cursor;
	__u64 entries;
};

/**
 * struct twheel_entry - one event in a list of TWHEEL_IOC_LIST
 * @id: the id of the event.
 * @data: its cookie.
 * @due_ns: when it is due, absolute, on the context's clock.
 * @interval_ns: its period, 0 for a one-shot event.
 * @slack_ns: its slack.
 * @deadline: the index of the word that is its time, plus 1; 0: it has none.
 * @state: TWHEEL_ARMED or TWHEEL_READY.
 * @reason: why it is READY: TWHEEL_EXPIRED, TWHEEL_COMPLETED or TWHEEL_CLOCK_SET; else 0.
 * @quorum: how many watches must be satisfied to complete it.
 * @watches: how many watches it still waits for; of a READY event 0.
 * @flags: the flags of an ADD that makes it again, with @due_ns as its time: TWHEEL_ABS,
 *	unless it was added by a relative time on CLOCK_REALTIME, which setting the clock
 *	does not move; TWHEEL_CANCEL_ON_SET; TWHEEL_DEADLINE, without the others.
 * @reserved: 0.
 *
 * An entry that ends before @flags, at 64 bytes, is also accepted.
 */
struct twheel_entry {
	__u64 id;
	__u64 data;
	__u64 due_ns;
	__u64 interval_ns;
	__u64 slack_ns;
	__u64 deadline;
	__u32 state;
	__u32 reason;
	__u32 quorum;
	__u32 watches;
	__u32 flags;
	__u32 reserved;
};

#define TWHEEL_IOC_TYPE		0xBE
#define TWHEEL_IOC_INFO		_IOWR(TWHEEL_IOC_TYPE, 0, struct twheel_info)
#define TWHEEL_IOC_CONFIG	_IOW(TWHEEL_IOC_TYPE, 1, struct twheel_config)
#define TWHEEL_IOC_SUBMIT	_IOWR(TWHEEL_IOC_TYPE, 2, struct twheel_submit)
#define TWHEEL_IOC_ENTER	_IOWR(TWHEEL_IOC_TYPE, 3, struct twheel_enter)
#define TWHEEL_IOC_LIST		_IOWR(TWHEEL_IOC_TYPE, 4, struct twheel_list)

#endif /* _UAPI_LINUX_TWHEEL_H */
