/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel's DIV_ROUND_UP(), for userspace. */
#ifndef SHIM_LINUX_MATH_H
#define SHIM_LINUX_MATH_H

#define DIV_ROUND_UP(n, d) ({		\
	__typeof__(d) shim_d = (d);	\
	((n) + shim_d - 1) / shim_d; })

#endif
