// SPDX-License-Identifier: GPL-2.0
/*
 * Deadlines: words that a context shares with its process.
 *
 * The words are on pages of their own, got and charged when the array is made, so that
 * a store of the process never finds that there is no memory.  The kernel only reads
 * them, by its own mapping, in any context.
 *
 * A mapping holds the file, which holds the context, which holds the words: they stay as
 * long as somebody maps them.  Who has got hold of a single page by other means, as
 * a device that does DMA to it, has a reference to that.
 */
#include <linux/err.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "compat.h"
#include "deadlines.h"

/* At the limit of a memory cgroup it fails, and nobody is killed. */
#define DEADLINES_GFP	(GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN | __GFP_ZERO)

/**
 * deadlines_create() - make an array of words, all 0
 * @nr: how many, not 0.
 *
 * Context: a task; sleeps.
 *
 * Return: the words, for deadlines_destroy(); ERR_PTR(-ENOMEM); ERR_PTR(-ERESTARTSYS),
 * a signal.
 */
struct deadlines *deadlines_create(u32 nr)
{
	unsigned long nr_pages = DIV_ROUND_UP_ULL(nr, DEADLINES_PAGE);
	struct deadlines *deadlines;

	deadlines = kvmalloc(struct_size(deadlines, pages, nr_pages), DEADLINES_GFP);
	if (!deadlines)
		return ERR_PTR(-ENOMEM);
	while (deadlines->nr_pages < nr_pages) {
		u64 *page = (u64 *)__get_free_page(DEADLINES_GFP);

		if (!page || signal_pending(current)) {
			free_page((unsigned long)page);
			deadlines_destroy(deadlines);
			return ERR_PTR(page ? -ERESTARTSYS : -ENOMEM);
		}
		deadlines->pages[deadlines->nr_pages++] = page;
		cond_resched();
	}
	return deadlines;
}

/**
 * deadlines_destroy() - free an array of words
 * @deadlines: the words, which nobody maps; or NULL.
 */
void deadlines_destroy(struct deadlines *deadlines)
{
	unsigned long i;

	if (!deadlines)
		return;
	for (i = 0; i < deadlines->nr_pages; i++) {
		free_page((unsigned long)deadlines->pages[i]);
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
 * @vma: where it maps them.
 *
 * Return: 0; -EINVAL, it is private, executable, longer than the words, or does not
 * begin with the first one.
 */
int deadlines_map(struct deadlines *deadlines, struct vm_area_struct *vma)
{
	if (!(vma->vm_flags & VM_SHARED) || vma->vm_flags & VM_EXEC ||
	    vma->vm_pgoff || vma_pages(vma) > deadlines->nr_pages)
		return -EINVAL;
	twheel_vm_flags_mod(vma, VM_DONTEXPAND, VM_MAYEXEC);
	vma->vm_ops = &deadlines_vm_ops;
	vma->vm_private_data = deadlines;
	return 0;
}
