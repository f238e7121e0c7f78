/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The terminal as a full screen that is drawn again and again.
 *
 * From terminal_enter() to terminal_leave() the terminal shows its alternate screen without
 * a cursor, and keys are read one by one. When the program ends in between, by an error, by
 * ^C or because the terminal hangs up, and while ^Z stops it, the terminal is as before.
 */
#ifndef COMMON_TERMINAL_H
#define COMMON_TERMINAL_H

#include <poll.h>
#include <stdbool.h>
#include <linux/types.h>

/* Why terminal_wait() returns. */
enum terminal_event {
	TERMINAL_TIME,		/* the time has come */
	TERMINAL_REDRAW,	/* the size has changed, or the program was stopped */
	TERMINAL_KEY,		/* a key was pressed: terminal_key() */
	TERMINAL_QUIT,		/* q, ^C or a signal that ends the program */
};

/* Is stdout a terminal that can be drawn on? */
bool terminal_can_draw(void);

/* Take over the terminal. Messages on stderr are printed after terminal_leave(). */
void terminal_enter(void);

/* Restore the terminal. */
void terminal_leave(void);

/* The number of characters in a line. */
unsigned int terminal_columns(void);

/*
 * Show a text from the top of the screen, as much of it as fits, and a line at the bottom.
 * Both may have colours, which take no room.
 */
void terminal_show(const char *text, const char *bottom);

/*
 * Wait until wait_now_ns() is @until_ns, or for another event; without terminal_enter(),
 * for the time only.
 */
enum terminal_event terminal_wait(__u64 until_ns);

/*
 * Wait until a file has an event that poll() is to wait for, or until wait_now_ns() is
 * @until_ns: file->revents is 0 then. Keys are left for terminal_wait(). While ^Z stops the
 * program the time does not count: @until_ns becomes later. Returns false if a signal is to
 * end the program.
 */
bool terminal_wait_for(struct pollfd *file, __u64 *until_ns);

/* The key that was pressed. Those that send several bytes, as arrows do, are left out. */
char terminal_key(void);

#endif /* COMMON_TERMINAL_H */
