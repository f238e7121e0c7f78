/* SPDX-License-Identifier: GPL-2.0 */
/* static_assert() as the kernel has it, without a message, for userspace. */
#ifndef SHIM_LINUX_BUILD_BUG_H
#define SHIM_LINUX_BUILD_BUG_H

#undef static_assert
#define static_assert(condition)	_Static_assert(condition, #condition)

#endif /* SHIM_LINUX_BUILD_BUG_H */
