// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/twheel: open, ioctl, read, poll, mmap, fdinfo; loading and unloading the module.
 */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "clock.h"
#include "command.h"
#include "compat.h"
#include "context.h"
#include "cpu.h"
#include "debugfs.h"
#include "event_operation.h"
#include "ready.h"
#include "record.h"
#include "watch.h"

/* The interface is the same for 32-bit programs, in every byte. */
static_assert(sizeof(struct twheel_cmd) == 64);
static_assert(offsetof(struct twheel_cmd, op) == 0);
static_assert(offsetof(struct twheel_cmd, flags) == 2);
static_assert(offsetof(struct twheel_cmd, result) == 4);
static_assert(offsetof(struct twheel_cmd, id) == 8);
static_assert(offsetof(struct twheel_cmd, data) == 16);
static_assert(offsetof(struct twheel_cmd, value) == 16);
static_assert(offsetof(struct twheel_cmd, time_ns) == 24);
static_assert(offsetof(struct twheel_cmd, interval_ns) == 32);
static_assert(offsetof(struct twheel_cmd, slack_ns) == 40);
static_assert(offsetof(struct twheel_cmd, key) == 48);
static_assert(offsetof(struct twheel_cmd, quorum) == 56);
static_assert(offsetof(struct twheel_cmd, reserved) == 60);
static_assert(sizeof(struct twheel_record) == 64);
static_assert(offsetof(struct twheel_record, count) == 32);
static_assert(offsetof(struct twheel_record, reason) == 56);
static_assert(offsetof(struct twheel_record, flags) == 60);
static_assert(sizeof(struct twheel_info) == 32);
static_assert(offsetof(struct twheel_info, max_events) == 24);
static_assert(sizeof(struct twheel_config) == 48);
static_assert(offsetof(struct twheel_config, max_events) == 16);
static_assert(offsetof(struct twheel_config, wake_count) == 32);
static_assert(offsetof(struct twheel_config, nr_deadlines) == 36);
static_assert(offsetof(struct twheel_config, wake_delay_ns) == 40);
static_assert(sizeof(struct twheel_submit) == 24);
static_assert(offsetof(struct twheel_submit, nr) == 16);
static_assert(sizeof(struct twheel_enter) == 80);
static_assert(offsetof(struct twheel_enter, nr_cmds) == 32);
static_assert(offsetof(struct twheel_enter, cmds_done) == 52);
static_assert(offsetof(struct twheel_enter, sigmask) == 64);
static_assert(offsetof(struct twheel_enter, sigset_size) == 72);
static_assert(sizeof(struct twheel_uring) == 16);
static_assert(sizeof(struct twheel_list) == 32);
static_assert(offsetof(struct twheel_list, cursor) == 16);
static_assert(sizeof(struct twheel_entry) == 72);
static_assert(offsetof(struct twheel_entry, deadline) == 40);
static_assert(offsetof(struct twheel_entry, state) == 48);
static_assert(offsetof(struct twheel_entry, flags) == 64);

static int device_open(struct inode *inode, struct file *file)
{
	struct context *context = twheel_context_create();

	if (!context)
		return -ENOMEM;
	file->private_data = context;
	/* Tells io_uring that read() with IOCB_NOWAIT does not sleep. */
	file->f_mode |= FMODE_NOWAIT;
	return stream_open(inode, file);
}

static int device_release(struct inode *inode, struct file *file)
{
	twheel_context_destroy(file->private_data);
	return 0;
}

/* The CONTEXT_ flags of a read(). */
static unsigned int how_to_wait(const struct kiocb *iocb)
{
	return (iocb->ki_filp->f_flags & O_NONBLOCK ? CONTEXT_NONBLOCK : 0) |
	       (iocb->ki_flags & IOCB_NOWAIT ? CONTEXT_NOWAIT : 0);
}

static ssize_t device_read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	return twheel_context_read(iocb->ki_filp->private_data, to, how_to_wait(iocb));
}

static __poll_t device_poll(struct file *file, poll_table *wait)
{
	struct context *context = file->private_data;

	poll_wait(file, &context->pollers, wait);
	/* Pairs with wq_has_sleeper() in has_sleepers(); poll_wait() has it from 6.14 on only. */
	smp_mb();
	return twheel_context_readable(context) ? EPOLLIN | EPOLLRDNORM : 0;
}

static int device_mmap(struct file *file, struct vm_area_struct *vma)
{
	return context_map(file->private_data, vma);
}

static void device_show_fdinfo(struct seq_file *seq, struct file *file)
{
	context_show(file->private_data, seq);
}

/*
 * Copy an argument that begins with its size.  If the caller's struct is shorter than
 * ours, the rest is 0; if it is longer, the rest must be 0.  Returns the size of the
 * caller's struct, or an errno.
 */
static long copy_argument(void *argument, size_t size, void __user *user)
{
	u32 user_size;
	int ret;

	if (get_user(user_size, (u32 __user *)user))
		return -EFAULT;
	if (user_size < sizeof(user_size))
		return -EINVAL;
	if (user_size > PAGE_SIZE)
		return -E2BIG;
	ret = copy_struct_from_user(argument, size, user, user_size);
	if (ret)
		return ret;
	return user_size;
}

#define FEATURES							\
	(TWHEEL_FEATURE_PERIODIC | TWHEEL_FEATURE_SLACK |		\
	 TWHEEL_FEATURE_CLOCKS | TWHEEL_FEATURE_ENTER |			\
	 TWHEEL_FEATURE_WAKE | TWHEEL_FEATURE_CPU |			\
	 TWHEEL_FEATURE_LIST | TWHEEL_FEATURE_OPERATIONS |		\
	 TWHEEL_FEATURE_ENTRY_FLAGS |					\
	 (CONTEXT_HAS_DEADLINES ? TWHEEL_FEATURE_DEADLINES : 0) |	\
	 (IS_ENABLED(CONFIG_IO_URING) ? TWHEEL_FEATURE_URING_CMD : 0))

static long ioctl_info(struct context *context, void __user *user)
{
	struct twheel_info info;
	long size = copy_argument(&info, sizeof(info), user);

	if (size < 0)
		return size;
	info = (struct twheel_info){
		.size = size,
		.abi = TWHEEL_ABI_VERSION,
		.features = FEATURES,
		.tick_ns = base_tick_ns(1),
		.max_events = READ_ONCE(context->max_events),
	};
	if (copy_to_user(user, &info, min_t(size_t, size, sizeof(info))))
		return -EFAULT;
	return 0;
}

/* Is a CONFIG well-formed?  Returns 0 or -EINVAL. */
static int check_config(const struct twheel_config *config)
{
	if (config->flags & ~TWHEEL_CONFIG_CPU)
		return -EINVAL;
	if (config->cpu && !(config->flags & TWHEEL_CONFIG_CPU))
		return -EINVAL;
	if (config->wake_delay_ns ? config->wake_count < 2 : config->wake_count > 1)
		return -EINVAL;

	switch (config->clockid) {
	case CLOCK_MONOTONIC:
	case CLOCK_BOOTTIME:
	case CLOCK_REALTIME:
		return 0;
	default:
		return -EINVAL;
	}
}

static long ioctl_config(struct context *context, void __user *user)
{
	struct twheel_config config;
	long ret = copy_argument(&config, sizeof(config), user);

	if (ret < 0)
		return ret;
	ret = check_config(&config);
	return ret ?: twheel_context_configure(context, &config);
}

static long ioctl_submit(struct context *context, void __user *user,
			 unsigned int how)
{
	struct twheel_submit submit;
	long ret = copy_argument(&submit, sizeof(submit), user);

	return ret < 0 ? ret : command_submit(context, &submit, how);
}

/* A SUBMIT, to compare it word by word. */
union submit_words {
	struct twheel_submit submit;
	struct {
		u64 first;	/* size, flags */
		u64 cmds;
		u64 last;	/* nr, cmd_size */
	};
};

/*
 * Is this a SUBMIT of one command, with both structs as long as ours?  If not,
 * ioctl_submit() runs what there is, or says what is wrong.
 */
static __always_inline bool has_one_command(const void __user *user, u64 *cmd)
{
	const union submit_words one = {
		.submit = {
			.size = sizeof(one.submit),
			.nr = 1,
			.cmd_size = sizeof(struct twheel_cmd),
		},
	};
	const union submit_words __user *words = user;
	u64 first, last;

	might_fault();
	if (!user_access_begin(words, sizeof(*words)))
		return false;
	unsafe_get_user(first, &words->first, fault);
	unsafe_get_user(*cmd, &words->cmds, fault);
	unsafe_get_user(last, &words->last, fault);
	user_access_end();
	return first == one.first && last == one.last;
fault:
	user_access_end();
	return false;
}

/* Write a part of an argument back, as much of it as the caller's struct has. */
static int put_part(void __user *user, size_t user_size, size_t offset,
		    const void *part, size_t size)
{
	if (user_size <= offset)
		return 0;
	size = min(size, user_size - offset);
	return copy_to_user(user + offset, part, size) ? -EFAULT : 0;
}

/* Write back how many commands and records an ENTER has done. */
static int put_done(const struct twheel_enter *enter, void __user *user,
		    size_t user_size)
{
	size_t offset = offsetof(struct twheel_enter, cmds_done);

	static_assert(offsetof(struct twheel_enter, records_done) ==
		      offsetofend(struct twheel_enter, cmds_done));
	return put_part(user, user_size, offset, &enter->cmds_done,
			offsetofend(struct twheel_enter, records_done) - offset);
}

/* The results are written back once before anything is done, to know that this works. */
static long ioctl_enter(struct context *context, void __user *user)
{
	struct twheel_enter enter;
	long size = copy_argument(&enter, sizeof(enter), user);
	long ret;

	if (size < 0)
		return size;
	if (put_done(&enter, user, size))
		return -EFAULT;
	ret = command_enter(context, &enter);
	if (put_done(&enter, user, size))
		return -EFAULT;
	return ret;
}

static long ioctl_list(struct context *context, void __user *user)
{
	struct twheel_list list;
	long size = copy_argument(&list, sizeof(list), user);
	long ret;

	if (size < 0)
		return size;
	ret = command_list(context, &list);
	if (ret > 0 && put_part(user, size, offsetof(struct twheel_list, cursor),
				&list.cursor, sizeof(list.cursor)))
		return -EFAULT;
	return ret;
}

/* All ioctls, but a SUBMIT of one command only if it is unusual. */
static noinline long any_ioctl(struct context *context, unsigned int cmd,
			       void __user *user)
{
	if (_IOC_TYPE(cmd) != TWHEEL_IOC_TYPE)
		return -ENOTTY;

	/* Only the number is compared: the size in the command may grow with the struct. */
	switch (_IOC_NR(cmd)) {
	case _IOC_NR(TWHEEL_IOC_INFO):
		return ioctl_info(context, user);
	case _IOC_NR(TWHEEL_IOC_CONFIG):
		return ioctl_config(context, user);
	case _IOC_NR(TWHEEL_IOC_SUBMIT):
		return ioctl_submit(context, user, CONTEXT_BLOCK);
	case _IOC_NR(TWHEEL_IOC_ENTER):
		return ioctl_enter(context, user);
	case _IOC_NR(TWHEEL_IOC_LIST):
		return ioctl_list(context, user);
	default:
		return -ENOTTY;
	}
}

static long device_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct context *context = file->private_data;
	void __user *user = (void __user *)arg;
	u64 one;

	/* As below, by type and number alone. */
	if (_IOC(0, _IOC_TYPE(cmd), _IOC_NR(cmd), 0) ==
	    _IOC(0, TWHEEL_IOC_TYPE, _IOC_NR(TWHEEL_IOC_SUBMIT), 0) &&
	    has_one_command(user, &one))
		return command_submit_one(context, u64_to_user_ptr(one));
	return any_ioctl(context, cmd, user);
}

#if IS_ENABLED(CONFIG_IO_URING)
/* Is an unknown byte of the cmd area not 0?  The area of a large sqe has 80 bytes. */
static bool has_unknown(const struct twheel_uring *user, unsigned int issue_flags)
{
	size_t size = issue_flags & IO_URING_F_SQE128 ? 80 : sizeof(*user);

	return READ_ONCE(user->reserved) ||
	       memchr_inv(user + 1, 0, size - sizeof(*user));
}

/*
 * Is this a worker that runs what is still queued of a process that is ending?  It may have
 * taken its SIGKILL already.  Then a page fault does not end before the process closes its
 * userfaultfd, which it does only after its workers have ended.
 */
static bool is_late_worker(unsigned int issue_flags)
{
	return !(issue_flags & IO_URING_F_NONBLOCK) &&
	       READ_ONCE(current->signal->flags) & SIGNAL_GROUP_EXIT;
}

/*
 * SUBMIT by io_uring.  The first attempt must not wait for commands of other tasks; the
 * second one is made by a worker, which may.
 */
static int device_uring_cmd(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	const struct twheel_uring *user =
		twheel_uring_cmd_data(cmd, struct twheel_uring);
	u64 argument = READ_ONCE(user->argument);
	bool nonblock = issue_flags & IO_URING_F_NONBLOCK;
	long ret;

	if (_IOC_TYPE(cmd->cmd_op) != TWHEEL_IOC_TYPE ||
	    _IOC_NR(cmd->cmd_op) != _IOC_NR(TWHEEL_IOC_SUBMIT))
		return -EOPNOTSUPP;
	if (has_unknown(user, issue_flags))
		return -EINVAL;
	if (is_late_worker(issue_flags))
		return -EINTR;
	ret = ioctl_submit(cmd->file->private_data, u64_to_user_ptr(argument),
			   nonblock ? CONTEXT_NOWAIT : CONTEXT_BLOCK);
	if (ret == -EAGAIN && nonblock)
		return ret;
	/* The result is not returned: 6.1 loses what a worker returns above 0. */
	twheel_uring_cmd_done(cmd, ret == -ERESTARTSYS ? -EINTR : ret, issue_flags);
	return -EIOCBQUEUED;
}
#endif

static const struct file_operations device_fops = {
	.owner		= THIS_MODULE,
	.open		= device_open,
	.release	= device_release,
	.read_iter	= device_read_iter,
	.poll		= device_poll,
	.mmap		= device_mmap,
	.unlocked_ioctl	= device_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.show_fdinfo	= device_show_fdinfo,
#if IS_ENABLED(CONFIG_IO_URING)
	.uring_cmd	= device_uring_cmd,
#endif
};

static struct miscdevice device = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "twheel",
	.fops	= &device_fops,
};

static int __init twheel_init(void)
{
	int ret;

	ret = watches_init() ?: events_init() ?: event_operations_init();
	if (ret)
		goto no_memory;
	twheel_debugfs_init();
	ret = bases_init(&context_ops, twheel_debugfs_add);
	if (ret)
		goto no_clock;
	ret = clock_init();
	if (ret)
		goto no_clock;
	ret = misc_register(&device);
	if (ret)
		goto no_device;
	return 0;

no_device:
	clock_exit();
no_clock:
	bases_ignore_changes();
	twheel_debugfs_exit();
	bases_exit();
no_memory:
	event_operations_exit();
	events_exit();
	watches_exit();
	return ret;
}

/* Called when no file is open and no module uses our timers. */
static void __exit twheel_exit(void)
{
	misc_deregister(&device);
	bases_ignore_changes();
	clock_exit();
	twheel_debugfs_exit();
	bases_exit();
	rcu_barrier();
	event_operations_exit();
	events_exit();
	watches_exit();
}

module_init(twheel_init);
module_exit(twheel_exit);

MODULE_DESCRIPTION("Timing wheels: delayed events by a file descriptor, and timers for modules");
MODULE_AUTHOR("The twheel authors");
MODULE_VERSION("0.2.0");
MODULE_LICENSE("GPL");
