/* SPDX-License-Identifier: GPL-2.0 */
/* What wheel.c tells the kernel's compiler, for userspace. */
#ifndef SHIM_LINUX_COMPILER_H
#define SHIM_LINUX_COMPILER_H

#define likely(condition)	__builtin_expect(!!(condition), 1)
#define unlikely(condition)	__builtin_expect(!!(condition), 0)
#define noinline		__attribute__((__noinline__))

/* glibc's headers have it; without them, nobody has. */
#ifndef __always_inline
#define __always_inline		inline __attribute__((__always_inline__))
#endif

/* The compiler knows nothing of how the variable got its value. */
#define OPTIMIZER_HIDE_VAR(variable)	({ __asm__ ("" : "+r" (variable)); })

#endif /* SHIM_LINUX_COMPILER_H */
