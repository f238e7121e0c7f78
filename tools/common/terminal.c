// SPDX-License-Identifier: GPL-2.0
/*
 * The terminal as a full screen.
 *
 * Signals are blocked except during the waits, so that none can come between the check for
 * one and the sleep. So while the screen is taken, a program must not sleep anywhere else.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>
#include <sys/ioctl.h>

#include "common/color.h"
#include "common/terminal.h"
#include "common/time.h"
#include "common/util.h"
#include "common/wait.h"

#define ENTER_SCREEN	"\033[?1049h\033[?25l"
#define LEAVE_SCREEN	"\033[?25h\033[?1049l"
#define HOME		"\033[H"
#define CLEAR_LINE	"\033[K"
#define ESCAPE		0x1b
#define REDRAW_KEY	'\f'	/* ^L */

/* The size if the terminal does not report one. */
#define DEFAULT_COLUMNS	80
#define DEFAULT_ROWS	24

static const int signals[] = {
	SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH,
};

static volatile sig_atomic_t got_quit, got_stop, got_resize;

static bool entered;
static bool has_keys;
static struct termios saved;
static sigset_t wait_mask;

/**
 * struct pressed - the keys that were read and not yet given out
 * @bytes: as read.
 * @nr: how many.
 * @next: the next one.
 * @state: what comes next: a key, or the rest of the bytes that one key sends.
 * @last: the key that was given out last.
 */
static struct pressed {
	char bytes[64];
	size_t nr;
	size_t next;
	enum { KEY_FIRST, KEY_ESCAPED, KEY_SEQUENCE } state;
	char last;
} pressed;

static void take_signal(int number)
{
	if (number == SIGTSTP)
		got_stop = true;
	else if (number == SIGWINCH)
		got_resize = true;
	else
		got_quit = true;
}

static void take_signals(void)
{
	struct sigaction action = { .sa_handler = take_signal };
	sigset_t blocked;

	sigemptyset(&blocked);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		sigaddset(&blocked, signals[i]);
		sigaction(signals[i], &action, NULL);
	}
	sigprocmask(SIG_BLOCK, &blocked, &wait_mask);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		sigdelset(&wait_mask, signals[i]);
}

static void enter_screen(void)
{
	struct termios keys;

	has_keys = !tcgetattr(STDIN_FILENO, &saved);
	if (has_keys) {
		keys = saved;
		keys.c_lflag &= ~(ICANON | ECHO);
		keys.c_cc[VMIN] = 1;
		keys.c_cc[VTIME] = 0;
		tcsetattr(STDIN_FILENO, TCSANOW, &keys);
	}
	fputs(ENTER_SCREEN, stdout);
	fflush(stdout);
	entered = true;
}

/* Buffers stderr: on the alternate screen a message would vanish. */
void terminal_enter(void)
{
	take_signals();
	setvbuf(stderr, NULL, _IOFBF, BUFSIZ);
	atexit(terminal_leave);
	enter_screen();
}

void terminal_leave(void)
{
	if (!entered)
		return;
	entered = false;
	fputs(LEAVE_SCREEN, stdout);
	fflush(stdout);
	if (has_keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &saved);
}

/* ^Z: stop, with the terminal restored. Then the screen has to be drawn again. */
static void stop(void)
{
	terminal_leave();
	raise(SIGSTOP);
	enter_screen();
	got_stop = false;
	got_resize = true;
}

static struct winsize get_size(void)
{
	struct winsize size = { 0 };

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_col ||
	    !size.ws_row)
		size = (struct winsize){
			.ws_col = DEFAULT_COLUMNS, .ws_row = DEFAULT_ROWS,
		};
	return size;
}

unsigned int terminal_columns(void)
{
	return get_size().ws_col;
}

bool terminal_can_draw(void)
{
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && (!term || strcmp(term, "dumb"));
}

/* The length of the colour that a text begins with, see color.c. */
static size_t color_length(const char *text)
{
	size_t len;

	if (text[0] != ESCAPE || text[1] != '[')
		return 0;
	len = 2 + strspn(text + 2, "0123456789;");
	return text[len] == 'm' ? len + 1 : 0;
}

/* Write the first @columns UTF-8 characters of a line, and all of its colours. */
static void write_line(const char *line, size_t columns)
{
	bool colored = false, fits = true;
	size_t len;

	for (; *line && *line != '\n'; line += len) {
		len = color_length(line);
		colored = colored || len;
		if (!len) {
			if ((*line & 0xc0) != 0x80)
				fits = columns && columns--;
			len = 1;
			if (!fits)
				continue;
		}
		fwrite(line, 1, len, stdout);
	}
	if (colored)
		fputs(color(COLOR_END), stdout);
}

/* A row is cleared first: the cursor stays on the last column when that has been written. */
void terminal_show(const char *text, const char *bottom)
{
	struct winsize size = get_size();
	unsigned int row;

	fputs(HOME, stdout);
	for (row = 0; row + 1 < size.ws_row; row++) {
		fputs(CLEAR_LINE, stdout);
		write_line(text, size.ws_col);
		fputc('\n', stdout);
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	fputs(CLEAR_LINE, stdout);
	write_line(bottom, size.ws_col);
	fflush(stdout);
}

static void read_keys(void)
{
	ssize_t len = read(STDIN_FILENO, pressed.bytes, sizeof(pressed.bytes));

	/* At the end of the file it would always be readable. */
	if (len == 0 || (len < 0 && errno != EINTR && errno != EAGAIN))
		has_keys = false;
	pressed.nr = len > 0 ? len : 0;
	pressed.next = 0;
}

/* Is this byte a key? An arrow is ESC [ A; others are ESC O P or ESC [ 1 5 ~. */
static bool is_key(char byte)
{
	switch (pressed.state) {
	case KEY_ESCAPED:
		pressed.state = byte == '[' || byte == 'O' ? KEY_SEQUENCE : KEY_FIRST;
		return false;
	case KEY_SEQUENCE:
		if (byte >= '@')
			pressed.state = KEY_FIRST;
		return false;
	default:
		if (byte == ESCAPE)
			pressed.state = KEY_ESCAPED;
		return byte != ESCAPE;
	}
}

/* If nothing came with an ESC, it was that key, and not the first byte of another. */
static bool next_key(void)
{
	while (pressed.next < pressed.nr) {
		pressed.last = pressed.bytes[pressed.next++];
		if (is_key(pressed.last))
			return true;
	}
	if (pressed.state == KEY_ESCAPED)
		pressed.state = KEY_FIRST;
	return false;
}

char terminal_key(void)
{
	return pressed.last;
}

static enum terminal_event event_of_key(void)
{
	switch (pressed.last) {
	case 'q':
	case 'Q':
		return TERMINAL_QUIT;
	case REDRAW_KEY:
		return TERMINAL_REDRAW;
	default:
		return TERMINAL_KEY;
	}
}

static void sleep_until(struct pollfd *file, __u64 until_ns)
{
	__u64 now = wait_now_ns();
	__u64 wait_ns = until_ns > now ? until_ns - now : 0;
	struct timespec timeout = time_spec(wait_ns);

	file->revents = 0;
	ppoll(file, 1, &timeout, &wait_mask);
}

enum terminal_event terminal_wait(__u64 until_ns)
{
	if (!entered) {
		struct pollfd none = { .fd = -1 };

		wait_until(&none, 1, until_ns);
		return TERMINAL_TIME;
	}
	do {
		struct pollfd keys = {
			.fd = has_keys ? STDIN_FILENO : -1, .events = POLLIN,
		};

		if (next_key())
			return event_of_key();
		sleep_until(&keys, until_ns);
		if (got_quit)
			return TERMINAL_QUIT;
		if (keys.revents)
			read_keys();
		if (got_stop)
			stop();
		if (got_resize) {
			got_resize = false;
			return TERMINAL_REDRAW;
		}
	} while (pressed.next < pressed.nr || wait_now_ns() < until_ns);
	return TERMINAL_TIME;
}

/* Without terminal_enter(), @wait_mask is empty, and signals do what they usually do. */
bool terminal_wait_for(struct pollfd *file, __u64 *until_ns)
{
	__u64 stopped_at_ns;

	do {
		sleep_until(file, *until_ns);
		if (got_quit)
			return false;
		if (got_stop) {
			stopped_at_ns = wait_now_ns();
			stop();
			if (*until_ns != TIME_NEVER_NS)
				*until_ns += wait_now_ns() - stopped_at_ns;
		}
	} while (!file->revents && wait_now_ns() < *until_ns);
	return true;
}
