/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The terminal, as a full screen that is drawn again and again.
 *
 * From terminal_enter() to terminal_leave() it has another screen, no cursor, and
 * gives each key at once. Whatever ends the program in between (an error, ^C, the
 * terminal that hangs up), the terminal is then as it was before; also while ^Z
 * stops it.
 */
#ifndef _TWHEELCTL_TERMINAL_H
#define _TWHEELCTL_TERMINAL_H

#include <linux/types.h>

/* What ended a wait. */
enum terminal_event {
	TERMINAL_TIME,
	TERMINAL_REDRAW,
	TERMINAL_QUIT,
};

void terminal_enter(void);
void terminal_leave(void);
unsigned int terminal_columns(void);
void terminal_show(const char *text);
enum terminal_event terminal_wait(__u64 until_ns);

#endif /* _TWHEELCTL_TERMINAL_H */
