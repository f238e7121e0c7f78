/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The bases as people see them, under debugfs.
 */
#ifndef TWHEEL_DEBUGFS_H
#define TWHEEL_DEBUGFS_H

#include "base.h"

void twheel_debugfs_add(struct base *base);
void twheel_debugfs_init(void);
void twheel_debugfs_exit(void);

#endif /* TWHEEL_DEBUGFS_H */
