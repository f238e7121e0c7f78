/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel's bit operations that wheel.c uses, for userspace. */
#ifndef SHIM_LINUX_BITOPS_H
#define SHIM_LINUX_BITOPS_H

#include <linux/types.h>

#define BIT(nr)		(1UL << (nr))
#define BIT_ULL(nr)	(1ULL << (nr))

static inline int fls(unsigned int word)
{
	return word ? 32 - __builtin_clz(word) : 0;
}

/*
 * The number of the highest bit of a word that is not 0.  The module's kernels have words
 * of 64 bits, and so has this, also where the compiler's unsigned long has 32.
 */
static inline unsigned int __fls(u64 word)
{
	return 63 - __builtin_clzll(word);
}

static inline int fls64(u64 word)
{
	return word ? 64 - __builtin_clzll(word) : 0;
}

static inline unsigned long __ffs(unsigned long word)
{
	return __builtin_ctzl(word);
}

static inline unsigned long __ffs64(u64 word)
{
	return __builtin_ctzll(word);
}

static inline u64 ror64(u64 word, unsigned int shift)
{
	return (word >> (shift & 63)) | (word << (-shift & 63));
}

#endif
