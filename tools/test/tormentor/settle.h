/* SPDX-License-Identifier: GPL-2.0 */
/*
 * All memory of this process itself is there, before it enters a cgroup that is full: a fault that
 * cannot be answered would make the kernel kill a process. Commands are only refused.
 */
#ifndef TORMENTOR_SETTLE_H
#define TORMENTOR_SETTLE_H

void settle_memory(void);

#endif /* TORMENTOR_SETTLE_H */
