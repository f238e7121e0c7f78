// SPDX-License-Identifier: GPL-2.0
/* Lines of the log. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <unistd.h>

#include "common/log.h"
#include "common/time.h"
#include "test/device/harness.h"

/* Log a line of each priority; returns what was printed. */
static char *log_all(void)
{
	static char text[1000];
	FILE *file = tmpfile();
	int saved = dup(STDERR_FILENO);

	ASSERT(file);
	fflush(stderr);
	dup2(fileno(file), STDERR_FILENO);
	log_say(LOG_ERR, "line %d", 1);
	log_say(LOG_INFO, "line %d", 2);
	log_say(LOG_DEBUG, "line %d", 3);
	fflush(stderr);
	dup2(saved, STDERR_FILENO);
	close(saved);
	rewind(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	return text;
}

TEST(lines_begin_with_the_name_of_the_program)
{
	program_invocation_short_name = "name";
	unsetenv("JOURNAL_STREAM");
	ASSERT(!strcmp(log_all(), "name: line 1\nname: line 2\n"));
}

TEST(lines_for_the_journal_begin_with_their_priority)
{
	setenv("JOURNAL_STREAM", "1:2", true);
	ASSERT(!strcmp(log_all(), "<3>line 1\n<6>line 2\n"));
}

TEST(less_urgent_lines_than_the_level_are_dropped)
{
	unsetenv("JOURNAL_STREAM");
	program_invocation_short_name = "name";
	log_set_level(log_level_parse("error"));
	ASSERT(!strcmp(log_all(), "name: line 1\n"));
	log_set_level(log_level_parse("debug"));
	ASSERT(!strcmp(log_all(), "name: line 1\nname: line 2\nname: line 3\n"));
	ASSERT_EQ(log_level_parse("loud"), -1);
}

TEST(a_limited_line_is_logged_once_a_second_with_the_number_of_its_times)
{
	struct log_limit limit = { 0 };
	unsigned long total, times;
	uint64_t begin_ns = time_now_ns(CLOCK_MONOTONIC);

	ASSERT_EQ(log_limit(&limit), 1);
	for (total = 1; !(times = log_limit(&limit)); total++)
		usleep(1000);
	/* All that happened since the first one are counted. */
	ASSERT_EQ(times, total);
	/* By the seconds of the clock: another one has begun. */
	ASSERT_LT(begin_ns / NSEC_PER_SEC, time_now_ns(CLOCK_MONOTONIC) / NSEC_PER_SEC);
}

TEST(what_stays_wrong_is_logged_again_after_a_while_and_at_once_after_it_was_right)
{
	uint64_t logged_ms = 0;

	ASSERT(log_again(&logged_ms, 500, 1000));
	ASSERT(!log_again(&logged_ms, 500, 1000));
	ASSERT(!log_again(&logged_ms, 1499, 1000));
	ASSERT(log_again(&logged_ms, 1500, 1000));
	ASSERT(!log_again(&logged_ms, 2499, 1000));
	logged_ms = 0;
	ASSERT(log_again(&logged_ms, 2499, 1000));
}
