/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel's min() and max(), for userspace. */
#ifndef SHIM_LINUX_MINMAX_H
#define SHIM_LINUX_MINMAX_H

#define min_t(type, a, b) ({		\
	type shim_a = (a);		\
	type shim_b = (b);		\
	shim_a < shim_b ? shim_a : shim_b; })
#define max_t(type, a, b) ({		\
	type shim_a = (a);		\
	type shim_b = (b);		\
	shim_a > shim_b ? shim_a : shim_b; })
#define min(a, b)	min_t(__typeof__(a), a, b)
#define min3(a, b, c)	min(min(a, b), c)
#define max(a, b)	max_t(__typeof__(a), a, b)

#endif
