/* SPDX-License-Identifier: GPL-2.0 */
/* <string.h> for WebAssembly without a library: memory.fill does it. */
#ifndef _WHEELVIEW_STRING_H
#define _WHEELVIEW_STRING_H

#include <stddef.h>

#define memset(area, byte, size)	__builtin_memset(area, byte, size)

#endif /* _WHEELVIEW_STRING_H */
