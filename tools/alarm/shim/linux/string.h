/* SPDX-License-Identifier: GPL-2.0 */
/* <linux/string.h> for userspace. */
#include <string.h>
