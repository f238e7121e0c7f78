/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The only place that knows that kernels differ.
 *
 * Kbuild looks into the headers for each feature and defines TWHEEL_HAVE_*;
 * stable kernels carry features of later versions, so a version says little.
 */
#ifndef TWHEEL_COMPAT_H
#define TWHEEL_COMPAT_H

/* Times of 64 bits are loaded and stored in one piece, without a lock. */
#ifndef CONFIG_64BIT
#error "twheel needs a 64-bit kernel. 32-bit programs may use it there."
#endif

#include <linux/export.h>
#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/isolation.h>
#include <linux/workqueue.h>

/* hrtimer_init() and a public .function were replaced by hrtimer_setup(). */
#ifdef TWHEEL_HAVE_HRTIMER_SETUP
#define twheel_hrtimer_setup	hrtimer_setup
#else
static inline void
twheel_hrtimer_setup(struct hrtimer *timer,
		     enum hrtimer_restart (*function)(struct hrtimer *timer),
		     clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#endif

/* Flags of a mapping are changed by functions, which note it for the memory's owner. */
static inline void twheel_vm_flags_mod(struct vm_area_struct *vma, vm_flags_t set,
				       vm_flags_t clear)
{
#ifdef TWHEEL_HAVE_VM_FLAGS_MOD
	vm_flags_mod(vma, set, clear);
#else
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
#endif
}

/* May there be isolated CPUs at all?  Without a call, where the kernel lets us see. */
static inline bool twheel_may_be_isolated(void)
{
#if !defined(CONFIG_CPU_ISOLATION)
	return false;
#elif defined(TWHEEL_HAVE_HOUSEKEEPING_OVERRIDDEN)
	return static_branch_unlikely(&housekeeping_overridden);
#else
	return true;
#endif
}

/* The queue of work for any CPU.  7.2 has both names, and warns of the old one. */
#ifdef TWHEEL_HAVE_SYSTEM_DFL_WQ
#define twheel_unbound_wq	system_dfl_wq
#else
#define twheel_unbound_wq	system_unbound_wq
#endif

/*
 * What the caller of IORING_OP_URING_CMD put into the sqe's cmd area, and how to
 * tell it that it was done.
 */
#if !IS_ENABLED(CONFIG_IO_URING)
#elif defined(TWHEEL_HAVE_SQE_CMD_OF_TYPE)
#include <linux/io_uring/cmd.h>
#define twheel_uring_cmd_data(command, type)	\
	io_uring_sqe_cmd((command)->sqe, type)
#define twheel_uring_cmd_done(command, result, flags)	\
	io_uring_cmd_done(command, result, flags)
#elif defined(TWHEEL_HAVE_SQE_CMD)
#include <linux/io_uring/cmd.h>
#define twheel_uring_cmd_data(command, type)	\
	((const type *)io_uring_sqe_cmd((command)->sqe))
#define twheel_uring_cmd_done(command, result, flags)	\
	io_uring_cmd_done(command, result, 0, flags)
#else
#include <linux/io_uring.h>
#define twheel_uring_cmd_data(command, type)	((const type *)(command)->cmd)
#define twheel_uring_cmd_done(command, result, flags)	\
	io_uring_cmd_done(command, result, 0, flags)
#endif

/*
 * Symbols for the KUnit suites under kunit/.  The namespace of an export became
 * a string where it had been a token.
 */
#if !IS_ENABLED(CONFIG_KUNIT)
#define EXPORT_SYMBOL_FOR_KUNIT(symbol)
#elif defined(TWHEEL_HAVE_STRING_NAMESPACE)
#define EXPORT_SYMBOL_FOR_KUNIT(symbol) EXPORT_SYMBOL_NS_GPL(symbol, "TWHEEL_KUNIT")
#define TWHEEL_IMPORT_FOR_KUNIT()	MODULE_IMPORT_NS("TWHEEL_KUNIT")
#else
#define EXPORT_SYMBOL_FOR_KUNIT(symbol) EXPORT_SYMBOL_NS_GPL(symbol, TWHEEL_KUNIT)
#define TWHEEL_IMPORT_FOR_KUNIT()	MODULE_IMPORT_NS(TWHEEL_KUNIT)
#endif

#endif /* TWHEEL_COMPAT_H */
