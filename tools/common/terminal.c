// SPDX-License-Identifier: GPL-2.0
/*
 * The terminal as a full screen.
 *
 * Signals are blocked except during the wait, so that none can come between the check for
 * one and the sleep.
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

#include "common/terminal.h"
#include "common/time.h"
#include "common/util.h"
#include "common/wait.h"

#define ENTER_SCREEN	"\033[?1049h\033[?25l"
#define LEAVE_SCREEN	"\033[?25h\033[?1049l"
#define HOME		"\033[H"
#define CLEAR_LINE	"\033[K"
#define CLEAR_BELOW	"\033[J"

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

/* ^Z: stop, with the terminal restored. */
static void stop(void)
{
	terminal_leave();
	raise(SIGSTOP);
	enter_screen();
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

/* The number of bytes in the first @columns UTF-8 characters of a line. */
static size_t clip(const char *line, size_t columns)
{
	size_t len = 0;

	while (line[len] && line[len] != '\n') {
		if ((line[len] & 0xc0) != 0x80 && columns-- == 0)
			break;
		len++;
	}
	return len;
}

void terminal_show(const char *text)
{
	struct winsize size = get_size();

	fputs(HOME, stdout);
	for (unsigned int row = 0; *text && row < size.ws_row; row++) {
		if (row)
			fputc('\n', stdout);
		fwrite(text, 1, clip(text, size.ws_col), stdout);
		fputs(CLEAR_LINE, stdout);
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	fputs(CLEAR_BELOW, stdout);
	fflush(stdout);
}

/* Read keys. Returns true if one of them is q. */
static bool read_keys(void)
{
	char keys[64];
	ssize_t len = read(STDIN_FILENO, keys, sizeof(keys));

	/* At the end of the file it would always be readable. */
	if (len == 0 || (len < 0 && errno != EINTR && errno != EAGAIN))
		has_keys = false;
	return len > 0 && (memchr(keys, 'q', len) || memchr(keys, 'Q', len));
}

static void sleep_until(struct pollfd *keys, __u64 until_ns)
{
	__u64 now = wait_now_ns();
	__u64 wait_ns = until_ns > now ? until_ns - now : 0;
	struct timespec timeout = time_spec(wait_ns);

	keys->revents = 0;
	ppoll(keys, 1, &timeout, &wait_mask);
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

		sleep_until(&keys, until_ns);
		if (got_quit || (keys.revents && read_keys()))
			return TERMINAL_QUIT;
		if (got_stop)
			stop();
		if (got_stop || got_resize) {
			got_stop = false;
			got_resize = false;
			return TERMINAL_REDRAW;
		}
	} while (wait_now_ns() < until_ns);
	return TERMINAL_TIME;
}
