/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What any of the files may need, as the kernel has it.
 */
#ifndef _TWHEELCTL_COMMON_H
#define _TWHEELCTL_COMMON_H

#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))

#define __printf(a, b)		__attribute__((__format__(printf, a, b)))

#endif /* _TWHEELCTL_COMMON_H */
