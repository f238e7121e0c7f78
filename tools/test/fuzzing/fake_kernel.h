/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What kmod/command.c and kmod/device.c need of the kernel, and of the files below them, to run
 * in a process with another context beneath. It is included before their first line. The
 * guards of the headers that it stands in for are defined, so that those are empty.
 *
 * User memory is an arena, a part of which can be read, and a part of that be written: see
 * struct arena. Addresses of user memory are never used as such.
 */
#ifndef FUZZING_FAKE_KERNEL_H
#define FUZZING_FAKE_KERNEL_H

#include <errno.h>
#include <limits.h>
#include <linux/ioctl.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/types.h>
#include <time.h>

#include "alarm/shim/linux/compiler.h"
#include "alarm/shim/linux/minmax.h"

/* Headers of the module that this one stands in for. */
#define TWHEEL_BATCH_H
#define TWHEEL_CLOCK_H
#define TWHEEL_COMPAT_H
#define TWHEEL_CONTEXT_H
#define TWHEEL_CPU_H
#define TWHEEL_DEBUGFS_H
#define TWHEEL_EVENT_OPERATION_H
#define TWHEEL_EVENT_TIME_H
#define TWHEEL_READY_H
#define TWHEEL_RECORD_H
#define TWHEEL_WATCH_H

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s64 s64;
typedef s64 ktime_t;
typedef unsigned int __poll_t;

#include "../../../kmod/uapi/linux/twheel.h"

#define __user
#define __init
#define __exit
#undef __always_inline
#define __always_inline		inline __attribute__((__always_inline__))
#define static_assert(condition)	_Static_assert(condition, #condition)
#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))
#define BIT(nr)			(1U << (nr))
#define BIT_ULL(nr)		(1ULL << (nr))
#define READ_ONCE(word)		(word)
#define IS_ENABLED(option)	1
#define EXPORT_SYMBOL_FOR_KUNIT(symbol)
#define offsetofend(type, member)	(offsetof(type, member) + sizeof(((type *)0)->member))
#define check_add_overflow(a, b, sum)	__builtin_add_overflow(a, b, sum)
#define U64_MAX			UINT64_MAX
#define KTIME_MAX		INT64_MAX
#define PAGE_SIZE		4096UL
#define READ			0

#define ERESTARTSYS		512
#define ERESTARTNOHAND		514

/* --- user memory ---------------------------------------------------------------------- */

#define ARENA_AT		0x10000000UL
#define ARENA_BYTES		16384

/**
 * struct arena - user memory
 * @size: how many bytes from ARENA_AT on there are.
 * @hole: from where on it cannot be written.
 * @hole_end: from where on it can again.
 * @bytes: them.
 */
struct arena {
	size_t size;
	size_t hole;
	size_t hole_end;
	u8 bytes[ARENA_BYTES];
};

extern struct arena arena;

bool user_read(void *to, const void *user, size_t size);
bool user_write(void *user, const void *from, size_t size);
bool user_is_address(const void *user, size_t size);
int check_zeroed_user(const void *user, size_t size);
int copy_struct_from_user(void *to, size_t size, const void *user, size_t user_size);

#define might_fault()				((void)0)
#define user_access_begin(user, size)		user_is_address(user, size)
#define user_write_access_begin(user, size)	user_is_address(user, size)
#define user_access_end()			((void)0)
#define user_write_access_end()			((void)0)
#define u64_to_user_ptr(address)		((void *)(uintptr_t)(address))
#define copy_from_user(to, user, size)		(user_read(to, user, size) ? 0 : (size))
#define copy_to_user(user, from, size)		(user_write(user, from, size) ? 0 : (size))
#define get_user(value, user)			\
	(user_read(&(value), user, sizeof(value)) ? 0 : -EFAULT)

#define unsafe_get_user(value, user, label)	\
do {						\
	if (!user_read(&(value), user, sizeof(*(user))))	\
		goto label;			\
} while (0)

#define unsafe_put_user(value, user, label)	\
do {						\
	__typeof__(*(user)) put_value = (value);	\
	if (!user_write(user, &put_value, sizeof(put_value)))	\
		goto label;			\
} while (0)

struct iov_iter {
	u64 user;
	size_t count;
};

static inline void iov_iter_ubuf(struct iov_iter *to, unsigned int direction, void *user,
				 size_t count)
{
	*to = (struct iov_iter){ .user = (uintptr_t)user, .count = count };
}

static inline size_t iov_iter_count(const struct iov_iter *to)
{
	return to->count;
}

/* --- tasks: there is one, without signals --------------------------------------------- */

struct kernel_sigset {
	u64 bits;
};

#define sigset_t	struct kernel_sigset
#undef sigmask
#define sigmask(nr)	(1ULL << ((nr) - 1))
#undef SIGKILL
#define SIGKILL		9
#undef SIGSTOP
#define SIGSTOP		19
#undef SIG_SETMASK
#define SIG_SETMASK	2

#define SIGNAL_GROUP_EXIT	4

struct fake_task {
	sigset_t blocked, saved_sigmask;
	bool restore;
	struct {
		unsigned int flags;
	} signal[1];
};

extern struct fake_task *current;

#define task_sigpending(task)			false
#define signal_pending(task)			false
#define cond_resched()				((void)0)
#define set_restore_sigmask()			(current->restore = true)
#define sigdelsetmask(set, mask)		((set)->bits &= ~(mask))

static inline bool test_and_clear_restore_sigmask(void)
{
	bool restore = current->restore;

	current->restore = false;
	return restore;
}

static inline void sigprocmask(int how, const sigset_t *set, sigset_t *before)
{
	current->blocked = *set;
}

static inline u64 ktime_get_ns(void)
{
	return 1000000000;
}

static inline const void *memchr_inv(const void *from, int byte, size_t size)
{
	const u8 *at = from;

	for (; size--; at++)
		if (*at != byte)
			return at;
	return NULL;
}

/* --- contexts ------------------------------------------------------------------------- */

#define CONTEXT_CHUNK		48
#define CONTEXT_BLOCK		0
#define CONTEXT_NONBLOCK	BIT(0)
#define CONTEXT_NOWAIT		BIT(1)
#define CONTEXT_HAS_DEADLINES	1

enum base_clock {
	BASE_MONOTONIC,
};

struct base_hold {
	int unused;
};

struct context_batch {
	struct context *context;
	struct base_hold hold;
	u64 last_add;
};

struct context {
	u64 max_events;
	u64 nr_watches;
	int events;
	struct context_batch batch;
	struct twheel_cmd cmds[CONTEXT_CHUNK];
};

int context_add(struct context_batch *batch, struct twheel_cmd *cmd);
int context_cancel(struct context_batch *batch, struct twheel_cmd *cmd);
int context_modify(struct context_batch *batch, struct twheel_cmd *cmd);
int context_signal(struct context_batch *batch, struct twheel_cmd *cmd);
int context_watch(struct context_batch *batch, struct twheel_cmd *cmd);
int context_query(struct context_batch *batch, struct twheel_cmd *cmd);
int context_complete(struct context_batch *batch, struct twheel_cmd *cmd);
void context_undo_add(struct context_batch *batch, u64 id);
int twheel_context_configure(struct context *context, const struct twheel_config *config);
ssize_t context_reap(struct context *context, struct iov_iter *to, size_t stride, u64 *left);
int context_wait_for(struct context *context, u64 nr, bool at_hand, ktime_t *until);
ssize_t twheel_context_list(struct context *context, u64 *cursor, struct iov_iter *to,
			    size_t stride);

static inline u64 base_tick_ns(u64 tick)
{
	return tick << 16;
}

static inline u64 add_saturating(u64 a, u64 b)
{
	return a + b < a ? U64_MAX : a + b;
}

static inline u64 context_host_ns(const struct context *context, enum base_clock clock, u64 ns)
{
	return ns;
}

/* The mutex is always free, and nothing has to be woken. */
static inline int context_lock(struct context *context, unsigned int how)
{
	return 0;
}

static inline int twheel_context_begin(struct context *context, unsigned int how)
{
	context->batch.last_add = 0;
	return 0;
}

#define context_unlock(context)			((void)0)
#define twheel_context_end(batch)		((void)0)
#define context_give_way(context, tired)		(*(tired))
#define batch_settle(batch)			((void)0)
#define base_release(hold)			((void)0)
#define events_trim(events)			((void)0)
#define context_wants_sweep(context)		false
#define context_unlinks(context, cmd, sum, max)	min_t(unsigned int, (cmd)->value, max)

/* --- the rest of device.c -------------------------------------------------------------- */

struct inode;
struct file;
struct seq_file;
struct vm_area_struct;
struct kiocb;
struct poll_table;
struct io_uring_cmd;

struct file_operations {
	void *owner;
	int (*open)(struct inode *inode, struct file *file);
	int (*release)(struct inode *inode, struct file *file);
	ssize_t (*read_iter)(struct kiocb *iocb, struct iov_iter *to);
	__poll_t (*poll)(struct file *file, struct poll_table *wait);
	int (*mmap)(struct file *file, struct vm_area_struct *vma);
	long (*unlocked_ioctl)(struct file *file, unsigned int cmd, unsigned long arg);
	long (*compat_ioctl)(struct file *file, unsigned int cmd, unsigned long arg);
	void (*show_fdinfo)(struct seq_file *seq, struct file *file);
	int (*uring_cmd)(struct io_uring_cmd *cmd, unsigned int issue_flags);
};

struct file {
	void *private_data;
	unsigned int f_mode, f_flags;
};

struct kiocb {
	struct file *ki_filp;
	unsigned int ki_flags;
};

struct miscdevice {
	int minor;
	const char *name;
	const struct file_operations *fops;
};

typedef struct poll_table poll_table;

/* The request of io_uring, with the part of it that is for the device. */
struct io_uring_cmd {
	struct file *file;
	unsigned int cmd_op;
	u8 area[80];
	long result;
};

#define IO_URING_F_NONBLOCK	1
#define IO_URING_F_SQE128	2
#define EIOCBQUEUED		529

#define twheel_uring_cmd_data(cmd, type)	((const type *)(cmd)->area)
#define twheel_uring_cmd_done(cmd, ret, flags)	((cmd)->result = (ret))

#define FMODE_NOWAIT		1
#define IOCB_NOWAIT		1
#define O_NONBLOCK		04000
#define THIS_MODULE		NULL
#define MISC_DYNAMIC_MINOR	255
#define compat_ptr_ioctl	NULL
#define module_init(function)	int fake_module_init(void) { return function(); }
#define module_exit(function)	void fake_module_exit(void) { function(); }
#define MODULE_DESCRIPTION(text)
#define MODULE_AUTHOR(text)
#define MODULE_VERSION(text)
#define MODULE_LICENSE(text)

int fake_module_init(void);
void fake_module_exit(void);
int misc_register(struct miscdevice *device);

/* None of these is reached by an ioctl. */
#define stream_open(inode, file)		0
#define twheel_context_create()			NULL
#define twheel_context_destroy(context)		((void)0)
#define twheel_context_read(context, to, how)	0
#define twheel_context_readable(context)	false
#define poll_wait(file, queue, wait)		((void)(context))
#define smp_mb()				((void)0)
#define context_map(context, vma)		0
#define context_show(context, seq)		((void)0)
#define misc_deregister(device)			((void)0)
#define bases_ignore_changes()			((void)0)
#define rcu_barrier()				((void)0)
#define watches_init()				0
#define watches_exit()				((void)0)
#define events_init()				0
#define events_exit()				((void)0)
#define event_operations_init()			0
#define event_operations_exit()			((void)0)
#define twheel_debugfs_init()			((void)0)
#define twheel_debugfs_exit()			((void)0)
#define bases_init(ops, add)			0
#define bases_exit()				((void)0)
#define clock_init()				0
#define clock_exit()				((void)0)

#endif /* FUZZING_FAKE_KERNEL_H */
