// SPDX-License-Identifier: GPL-2.0
/*
 * Runs a script on the wheel in machine code, so that a page's WebAssembly can be held
 * against it.
 *
 * Usage: native < SCRIPT
 *
 * A script has a line for each step, with ticks as numbers:
 *
 *	start TICK
 *	add FIRST LAST		the next event, counted from 0
 *	cancel ID
 *	pass TICK
 *
 * Prints "ID TICK" for each event that comes out, in that order, and at the end the numbers
 * of the wheel.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wheelview/view.h"

static uint32_t next_id;

static void pass(double until)
{
	bool more;

	do {
		more = view_advance(until);
		view_state();
		for (unsigned int i = 0; i < view_numbers()->nr_fired; i++)
			printf("%u %.0f\n", view_fired_ids()[i], view_fired_ticks()[i]);
	} while (more);
}

static bool run(const char *line)
{
	double first, last;
	unsigned int id;

	if (sscanf(line, "start %lf", &first) == 1)
		view_start(first);
	else if (sscanf(line, "add %lf %lf", &first, &last) == 2)
		view_add(next_id++, first, last);
	else if (sscanf(line, "cancel %u", &id) == 1)
		view_cancel(id);
	else if (sscanf(line, "pass %lf", &first) == 1)
		pass(first);
	else
		return false;
	return true;
}

int main(void)
{
	const struct view_numbers *numbers = view_numbers();
	const char *broken;
	char line[128];

	while (fgets(line, sizeof(line), stdin)) {
		if (!run(line)) {
			fprintf(stderr, "native: what is %s", line);
			return EXIT_FAILURE;
		}
	}
	broken = view_check();
	if (broken) {
		fprintf(stderr, "native: %s\n", broken);
		return EXIT_FAILURE;
	}
	view_state();
	printf("clk %.0f programmed %.0f armed %.0f ", numbers->clk, numbers->programmed,
	       numbers->armed);
	printf("wakeups %.0f idle %.0f cascaded %.0f prefetched %.0f\n", numbers->wakeups,
	       numbers->idle_wakeups, numbers->cascaded, numbers->prefetched);
	return EXIT_SUCCESS;
}
