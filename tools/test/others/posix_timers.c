// SPDX-License-Identifier: GPL-2.0
/*
 * Of kselftest's posix_timers.c, the checks of a timer that sends no signal. The others are about
 * signals, or about clocks of CPU time.
 */
#define main posix_timers_main
#include <timers/posix_timers.c>
#undef main

int main(void)
{
	ksft_print_header();
	ksft_set_plan(2);
	check_sigev_none(CLOCK_MONOTONIC, "CLOCK_MONOTONIC");
	check_gettime(CLOCK_MONOTONIC, "CLOCK_MONOTONIC");
	ksft_finished();
}
