// SPDX-License-Identifier: GPL-2.0
/*
 * Deadlines: words that a context shares with its process.
 *
 * The words have their own pages, which are allocated and charged when the array is made:
 * so a store of the process cannot fail for lack of memory.  The kernel only reads them,
 * by its own mapping, in any context.
 *
 * The words are charged to the user who opened the file, like events of the same size.
 * Otherwise a process could have the words of many files if no memory cgroup limits it.
 * While words replace others, a file has both for a moment, and the larger array is charged.
 *
 * A mapping holds the file, which holds the context, which holds the words: they stay as
 * long as a process maps them.  A single page that is used by other means, for example by
 * a device that does DMA to it, is kept by a reference.
 */
#include <linux/err.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "compat.h"
#include "deadlines.h"
#include "event.h"

/* At the limit of a memory cgroup the allocation fails; no process is killed. */
#define DEADLINES_GFP	(GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN | __GFP_ZERO)

/* A page of words is charged like this many events. */
#define PAGE_EVENTS	(PAGE_SIZE / sizeof(struct event))

/* Allocate one more page.  Returns 0, -ENOSPC, -ENOMEM or -ERESTARTSYS. */
static int deadlines_grow(struct deadlines *deadlines)
{
	u64 *page;
	bool lent;

	/* After a signal with a handler the call would begin again, perhaps for ever. */
	if (fatal_signal_pending(current))
		return -ERESTARTSYS;
	lent = deadlines->nr_pages < deadlines->nr_lent;
	if (!lent && !account_charge(deadlines->account, PAGE_EVENTS))
		return -ENOSPC;
	page = (u64 *)__get_free_page(DEADLINES_GFP);
	if (!page) {
		if (!lent)
			account_uncharge(deadlines->account, PAGE_EVENTS);
		return -ENOMEM;
	}
	deadlines->pages[deadlines->nr_pages++] = page;
	return 0;
}

/**
 * deadlines_create() - make an array of words, all 0
 * @account: the account to charge, which stays as long as the words; or NULL.
 * @nr: how many, not 0.
 * @replaced: the words that these will replace: deadlines_take_over(); or NULL.
 *
 * Context: a task; sleeps.
 *
 * Return: the words, for deadlines_destroy(); an ERR_PTR of -ENOSPC, the user has as many
 * as allowed; -ENOMEM; -ERESTARTSYS, a fatal signal.
 */
struct deadlines *deadlines_create(struct account *account, u32 nr,
				   const struct deadlines *replaced)
{
	unsigned long nr_pages = DIV_ROUND_UP_ULL(nr, DEADLINES_PAGE);
	struct deadlines *deadlines;

	deadlines = kvmalloc(struct_size(deadlines, pages, nr_pages), DEADLINES_GFP);
	if (!deadlines)
		return ERR_PTR(-ENOMEM);
	deadlines->account = account;
	deadlines->nr_lent = replaced ? min(nr_pages, replaced->nr_pages) : 0;
	while (deadlines->nr_pages < nr_pages) {
		int ret = deadlines_grow(deadlines);

		if (ret) {
			deadlines_destroy(deadlines);
			return ERR_PTR(ret);
		}
		cond_resched();
	}
	return deadlines;
}

/**
 * deadlines_take_over() - words replace others, and are charged for their first pages
 * @deadlines: the new words; or NULL.
 * @replaced: those that were given to deadlines_create(), for deadlines_destroy(); or NULL.
 */
void deadlines_take_over(struct deadlines *deadlines, struct deadlines *replaced)
{
	if (deadlines && replaced)
		swap(deadlines->nr_lent, replaced->nr_lent);
}

/**
 * deadlines_destroy() - free an array of words
 * @deadlines: the words, which no process maps; or NULL.
 */
void deadlines_destroy(struct deadlines *deadlines)
{
	unsigned long i;

	if (!deadlines)
		return;
	for (i = 0; i < deadlines->nr_pages; i++) {
		free_page((unsigned long)deadlines->pages[i]);
		if (i >= deadlines->nr_lent)
			account_uncharge(deadlines->account, PAGE_EVENTS);
		cond_resched();
	}
	kvfree(deadlines);
}

static vm_fault_t deadlines_fault(struct vm_fault *vmf)
{
	const struct deadlines *deadlines = vmf->vma->vm_private_data;

	if (vmf->pgoff >= deadlines->nr_pages)
		return VM_FAULT_SIGBUS;
	vmf->page = virt_to_page(deadlines->pages[vmf->pgoff]);
	get_page(vmf->page);
	return 0;
}

static const struct vm_operations_struct deadlines_vm_ops = {
	.fault = deadlines_fault,
};

/**
 * deadlines_map() - let a process map the words
 * @deadlines: the words, which stay as long as the file of @vma.
 * @vma: the mapping.
 *
 * Return: 0; -EINVAL, the mapping is private, executable or longer than the words, or it
 * does not begin with the first word.
 */
int deadlines_map(struct deadlines *deadlines, struct vm_area_struct *vma)
{
	/* If the file is open for reading only, a shared mapping has no VM_SHARED. */
	if (!(vma->vm_flags & VM_MAYSHARE) || vma->vm_flags & VM_EXEC ||
	    vma->vm_pgoff || vma_pages(vma) > deadlines->nr_pages)
		return -EINVAL;
	twheel_vm_flags_mod(vma, VM_DONTEXPAND, VM_MAYEXEC);
	vma->vm_ops = &deadlines_vm_ops;
	vma->vm_private_data = deadlines;
	return 0;
}
