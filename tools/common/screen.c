// SPDX-License-Identifier: GPL-2.0
/* A table that is shown again and again with new figures. */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/exit.h"
#include "common/screen.h"
#include "common/standard.h"
#include "common/terminal.h"
#include "common/time.h"
#include "common/wait.h"

static void draw(struct screen *screen)
{
	char *text = NULL, *legend = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len), *keys = open_memstream(&legend, &len);

	if (!out || !keys)
		errx(EXIT_CANNOT, "out of memory for the screen");
	screen->calls->compose(screen, out);
	table_legend(&screen->table, keys);
	if (fclose(out) || fclose(keys))
		errx(EXIT_CANNOT, "out of memory for the screen");
	terminal_show(text, legend);
	free(text);
	free(legend);
}

/* A disk may be full, or the terminal gone. */
static void show(struct screen *screen)
{
	if (screen->is_full)
		draw(screen);
	else
		screen->calls->print(screen);
	standard_output_check();
}

/*
 * Wait for the next refresh, which a pause puts off, and draw the screen again if necessary.
 * Returns false to quit.
 */
static bool wait_for_next(struct screen *screen, __u64 until_ns)
{
	enum terminal_event event;

	for (;;) {
		event = terminal_wait(screen->table.paused ? TIME_NEVER_NS : until_ns);
		if (event == TERMINAL_TIME || event == TERMINAL_QUIT)
			return event == TERMINAL_TIME;
		if (event == TERMINAL_REDRAW || table_key(&screen->table, terminal_key()))
			show(screen);
	}
}

/* After a refresh that came late, the next one is not to catch up. */
static bool watch(struct screen *screen)
{
	__u64 next_ns = wait_now_ns(), now_ns;

	while (!screen->count || screen->nr < screen->count) {
		next_ns += screen->interval_ns;
		if (!wait_for_next(screen, next_ns))
			return true;
		now_ns = wait_now_ns();
		if (!screen->calls->refresh(screen))
			return false;
		if (next_ns + screen->interval_ns < now_ns)
			next_ns = now_ns;
		screen->nr++;
		show(screen);
	}
	return true;
}

bool screen_watch(struct screen *screen)
{
	bool went_well;

	screen->is_full = !screen->only_lines && terminal_can_draw();
	setvbuf(stdout, NULL, screen->is_full ? _IOFBF : _IOLBF, BUFSIZ);
	if (screen->is_full)
		terminal_enter();
	went_well = watch(screen);
	terminal_leave();
	return went_well;
}
