/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * twheel: millions of delayed events on one file descriptor.
 *
 * Each open() of /dev/twheel is a context with its own events, ids and limits.
 * Commands (struct twheel_cmd) arm, change and cancel events; each expiration
 * is read as one struct twheel_record.  The last close frees everything.
 *
 * An event can be a delayed operation, which ends as soon as what it waits for has
 * happened, and at its time at the latest.  WATCH attaches it to a key, with a need;
 * each SIGNAL on the key brings the watch nearer to it; when as many of its watches
 * are satisfied as its quorum says, it is completed.  A watch is satisfied once what
 * signals added up to since it was attached reaches the need (bytes, acks) or, with
 * TWHEEL_LEVEL, by one signal of at least that value (a position passed).  A signal
 * acts on the watches that are there and leaves nothing behind for later ones: so
 * check your condition once after WATCH, and COMPLETE the event yourself if it holds.
 * It ends exactly once, whichever is first, and its other watches with it.
 *
 * Deadlines in shared memory: most timeouts are moved again and again and never fire.
 * A context can share an array of 64-bit words with its process (nr_deadlines of
 * TWHEEL_IOC_CONFIG, then mmap() of the file from offset 0, MAP_SHARED), and a word is
 * the time of each event that names it (TWHEEL_DEADLINE): to move that is one store, by
 * any thread, without a call.  A word is an absolute time on the context's clock; 2^63
 * and more is never.  It has to be written in one piece, in a 32-bit program by an atomic
 * 8-byte store.  The kernel reads it when the event is armed and when the time comes
 * that it read last.  If the word says a later time by then, the event waits on until
 * that, and nobody is woken; else its record has the value that was read as due_ns.
 * So a store of a later time always counts, unless it crosses with the expiry.  One of
 * an earlier time is seen when the old one comes, or by a MODIFY with TWHEEL_DEADLINE
 * right after it.  A mapping keeps the context and its events, as the file does.
 * A look at a word takes time in softirq context, of the CPU that armed the event: words
 * by the hundred thousand that always say the next millisecond keep what else is due
 * there waiting for as long as a look at each of them takes, twice.
 *
 * All times are in nanoseconds.  Every structure is laid out alike for 32-bit
 * and 64-bit programs.  Reserved fields, unknown flags and fields that a
 * command does not use must be 0, else -EINVAL: they may be given a meaning
 * later.  Fields marked "out" are not looked at on the way in.
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
#define TWHEEL_OP_COMPLETE	4	/* end an event now, as completed */
#define TWHEEL_OP_WATCH		5	/* let signals on a key complete an event */
#define TWHEEL_OP_SIGNAL	6	/* tell the watches of a key */
#define TWHEEL_OP_QUERY		7	/* look at an event */

/* &struct twheel_cmd.flags */
#define TWHEEL_ABS		1	/* ADD, MODIFY: time_ns is absolute */
#define TWHEEL_CANCEL_ON_SET	2	/* ADD, MODIFY: end when the clock is set */
#define TWHEEL_LEVEL		4	/* WATCH: one signal must reach the need */
#define TWHEEL_QUIET		8	/* SIGNAL: cancel, without records */
#define TWHEEL_SET_DATA		16	/* MODIFY: replace the data too */
#define TWHEEL_DEADLINE		32	/* ADD, MODIFY: the word @key is its time */

/* What QUERY's result and &struct twheel_entry.state say of an event. */
#define TWHEEL_ARMED		1	/* waits for its time */
#define TWHEEL_READY		2	/* its record waits to be read */

/* The most watches an event may wait for at a time, and so the highest quorum. */
#define TWHEEL_MAX_WATCHES	64

/**
 * struct twheel_cmd - one command
 * @op: what to do, TWHEEL_OP_*.
 * @flags: TWHEEL_ABS, TWHEEL_CANCEL_ON_SET, TWHEEL_LEVEL, TWHEEL_QUIET,
 *	TWHEEL_SET_DATA, TWHEEL_DEADLINE, each with the commands named at its
 *	definition.  TWHEEL_DEADLINE goes without the first two.
 * @result: out: 0 or more, or a negative errno.
 * @id: ADD: out, the new event's id, 0 where it failed.  Others: which event.
 *	WATCH with 0 means the nearest ADD before it in the same call.
 * @data: ADD, and MODIFY with TWHEEL_SET_DATA: a cookie, given back in the
 *	record.
 * @value: WATCH: the need, not 0.  SIGNAL, COMPLETE: the value, for the record; with
 *	TWHEEL_QUIET it does not matter.
 * @time_ns: ADD, MODIFY: when it is due, relative to now or, with TWHEEL_ABS,
 *	absolute on the context's clock.  Past or 0 is due at once; 2^63 and
 *	more, or a relative time that overflows, is never; 0 with TWHEEL_DEADLINE.
 *	QUERY: out, when it is due, absolute.
 * @interval_ns: ADD, MODIFY: the period; 0 for a one-shot event, else at least
 *	one tick; 0 with TWHEEL_DEADLINE.  QUERY: out.
 * @slack_ns: ADD, MODIFY: how much later than asked it may be, so that
 *	neighbours share an interrupt.  QUERY: out.
 * @key: WATCH, SIGNAL: which key.  ADD, MODIFY with TWHEEL_DEADLINE: the index of
 *	the word.
 * @quorum: ADD: how many of its watches must be satisfied to complete it; 0 is
 *	taken as 1, at most TWHEEL_MAX_WATCHES.
 * @reserved: 0.
 *
 * SIGNAL's @result is how many operations it ended, all of them in this one command,
 * which takes as long as that takes; only the end of the caller cuts it short.  With
 * TWHEEL_QUIET these are all that watch the key, and they leave no records.  COMPLETE
 * ends any armed event, with a record.  A MODIFY of an armed operation leaves it its
 * watches, and how far they are; one that expired begins anew, without watches.
 *
 * Errors, in @result: -EINVAL, malformed, or a period together with watches or a
 * quorum; -E2BIG, a newer struct with something in its tail; -ENOENT, no such event
 * (never was, already read, cancelled); -EALREADY, COMPLETE or WATCH of an event that
 * is READY, or MODIFY of one that is READY other than by expiring; -ENOSPC, a limit
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
 * struct twheel_record - one expiration, as read() and TWHEEL_IOC_ENTER give it
 * @data: the cookie of the event.
 * @id: the event.
 * @due_ns: when it was due, as asked for (absolute; of a relative time, as
 *	worked out when it was armed; of a word, what it said when the event
 *	became ready), on the context's clock.  A periodic event
 *	with a relative time on CLOCK_REALTIME goes by CLOCK_MONOTONIC; this is
 *	then its time by the offset of the two when it is read.
 * @fired_ns: when the kernel made it ready, on the context's clock.
 * @count: how many expirations of a periodic event this record covers; else 1.
 * @value: of the signal or COMPLETE that completed it, else 0.
 * @key: of the signal that completed it, which may be 0 as any other number; else 0.
 * @reason: TWHEEL_EXPIRED, TWHEEL_COMPLETED or TWHEEL_CLOCK_SET.
 * @flags: TWHEEL_RECORD_SIGNAL or 0.
 *
 * read() gives records of this size, 64 bytes, for ever.  Should a record grow, it is
 * TWHEEL_IOC_ENTER that gives the longer one, as it is told the caller's size.
 *
 * read() gives as many whole records as fit, oldest first.  Its errors: -EINVAL,
 * the buffer is shorter than one record; -EAGAIN, nothing is ready and the file
 * is O_NONBLOCK; -EFAULT, not even one record could be copied out, and none is
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

/*
 * Each argument of an ioctl begins with its size, as the caller knows it.  A
 * smaller one is taken as if it went on with zeros; a larger one must hold
 * zeros there, else -E2BIG.  Nothing is written past it.  The ioctl is
 * recognised by its number alone, so a struct can grow.
 */

/**
 * struct twheel_info - TWHEEL_IOC_INFO: what the kernel side is
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
 * struct twheel_config - TWHEEL_IOC_CONFIG: set a context up
 * @size: sizeof(struct twheel_config).
 * @flags: TWHEEL_CONFIG_CPU or 0.
 * @clockid: CLOCK_MONOTONIC, CLOCK_BOOTTIME or CLOCK_REALTIME, always explicit
 *	(0 is CLOCK_REALTIME).  Without a CONFIG it is CLOCK_MONOTONIC.
 * @cpu: with TWHEEL_CONFIG_CPU, the CPU whose wheel holds the events; else 0.
 * @max_events: how many events the context may have at once; 0: the default.
 * @slack_ns: the least slack of every event.
 * @wake_count: how many records make the file readable; 0: 1.
 * @nr_deadlines: how many words the context shares with its process, at most as many
 *	as it may have events; 0: none.  Above: "Deadlines in shared memory".
 * @wake_delay_ns: with @wake_count above 1, required: how old the oldest record
 *	may become before the file is readable all the same; else 0.
 *
 * May be repeated until the first ADD, or until the words are mapped; each time it
 * replaces all that the last one set.
 *
 * Errors: -EBUSY, the context has had an event, or its words were mapped; -EINVAL,
 * malformed; -ENOSPC, @max_events is above the module's ceiling, or the user has
 * too much for so many words, eight of which count as an event; -EPERM, @cpu is not in
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
 * Returns how many had their result written.  A pending signal stops it short,
 * though not among an ADD and the WATCHes with id 0 directly behind it.
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
 * It is run at once, in the caller's own task, if it has at most 512 commands, these
 * take not very long, and nobody else is at the context; else by a worker.  A SIGNAL
 * that ends hundreds of operations takes long.
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
 * @records: address of room for records.
 * @timeout_ns: how long to wait for @min_records; 0: not at all; U64_MAX: for
 *	ever.
 * @nr_cmds: how many commands there are.
 * @nr_records: for how many records there is room.
 * @min_records: how many records to wait for, at most @nr_records.
 * @cmd_size: sizeof(struct twheel_cmd).
 * @record_size: sizeof(struct twheel_record).
 * @cmds_done: out: how many commands had their result written.
 * @records_done: out: how many records were copied out.
 * @reserved: 0.
 * @sigmask: address of the signal mask for the time of the wait, as with
 *	epoll_pwait(): what it lets through ends the wait, and is not lost if it came
 *	before.  0: the mask stays as it is.
 * @sigset_size: 8, the size of that mask; 0 without one.
 * @reserved2: 0.
 *
 * Returns 0 when anything was submitted or reaped, or the time ran out.  With fewer
 * records than @min_records it does not wait on when no more can come before some are
 * read: nothing is armed, or the context is full.  It takes those that are there and
 * waits on if others are armed.  Without any record it waits, as another thread may ADD.
 *
 * A program whose struct ends before @sigmask, at 64 bytes, is served as ever.
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
 * @nr: for how many entries there is room.
 * @entry_size: sizeof(struct twheel_entry).
 * @reserved: 0.
 * @cursor: 0 first, then as written back.
 * @entries: address of room for the entries.
 *
 * Returns how many entries were written, 0 at the end.  An event that exists
 * throughout is listed exactly once.
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
 * struct twheel_entry - one event, as TWHEEL_IOC_LIST gives it
 * @id: the event.
 * @data: its cookie.
 * @due_ns: when it is due, absolute, on the context's clock.
 * @interval_ns: its period, 0 for a one-shot event.
 * @slack_ns: its slack.
 * @deadline: the index of the word that is its time, plus 1; 0: it has none.
 * @state: TWHEEL_ARMED or TWHEEL_READY.
 * @reason: of a READY event, why: TWHEEL_EXPIRED and so on; else 0.
 * @quorum: how many watches must be satisfied to complete it.
 * @watches: how many watches it still waits for; of a READY event 0.
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
};

#define TWHEEL_IOC_TYPE		0xBE
#define TWHEEL_IOC_INFO		_IOWR(TWHEEL_IOC_TYPE, 0, struct twheel_info)
#define TWHEEL_IOC_CONFIG	_IOW(TWHEEL_IOC_TYPE, 1, struct twheel_config)
#define TWHEEL_IOC_SUBMIT	_IOWR(TWHEEL_IOC_TYPE, 2, struct twheel_submit)
#define TWHEEL_IOC_ENTER	_IOWR(TWHEEL_IOC_TYPE, 3, struct twheel_enter)
#define TWHEEL_IOC_LIST		_IOWR(TWHEEL_IOC_TYPE, 4, struct twheel_list)

#endif /* _UAPI_LINUX_TWHEEL_H */
