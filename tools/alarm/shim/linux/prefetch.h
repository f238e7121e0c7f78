/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel's prefetchw(), for userspace. */
#ifndef SHIM_LINUX_PREFETCH_H
#define SHIM_LINUX_PREFETCH_H

static inline void prefetchw(const void *address)
{
	__builtin_prefetch(address, 1);
}

#endif
