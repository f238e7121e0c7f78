// SPDX-License-Identifier: GPL-2.0
/* The options of twheel-relay: their defaults, their values, and what is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/exit.h"
#include "common/util.h"
#include "relay/options.h"
#include "relay/test/caught_lib.h"
#include "test/device/harness.h"

#define WORDS_MAX	8

static struct relay_options options;

/* Parse words of a command line, which are separated by spaces. */
static void parse(const char *line)
{
	static char words[512];
	char *argv[WORDS_MAX + 1] = { "twheel-relay" }, *word, *rest;
	int argc = 1;

	snprintf(words, sizeof(words), "--brokers=b %s", line);
	for (word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		ASSERT_LT(argc, WORDS_MAX);
		argv[argc++] = word;
	}
	relay_options_parse(&options, argc, argv);
}

/* The exit status of a program with these options; what it says is caught. */
static int status_of(const char *line)
{
	int status;
	pid_t pid;

	catch_stderr();
	pid = fork();
	if (!pid) {
		parse(line);
		_exit(0);
	}
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	ASSERT(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void assert_refused(const char *line, const char *words)
{
	int status = status_of(line);

	test_about("%s: %s", line, caught());
	ASSERT_EQ(status, EXIT_USAGE);
	ASSERT(strstr(caught(), words));
}

TEST(options_have_defaults)
{
	parse("");
	ASSERT(!strcmp(options.topic, "delays"));
	ASSERT(!options.group);
	ASSERT_EQ(options.horizon_ms, 600000);
	ASSERT_EQ(options.delivery, RELAY_AT_LEAST_ONCE);
	ASSERT(!options.instance);
	ASSERT_EQ(options.hold_ms, 60000);
	ASSERT_EQ(options.hold_max_ms, 7 * 24 * 3600 * 1000LL);
	ASSERT_EQ(options.replicas, 0);
	ASSERT_EQ(options.partitions, 0);
	ASSERT(!options.has_targets);
	relay_options_free(&options);
}

TEST(options_have_the_values_that_are_given)
{
	parse("--delivery exactly-once --instance=r-1.a_B --hold=0 --hold-max=366d --replicas=5");
	ASSERT_EQ(options.delivery, RELAY_EXACTLY_ONCE);
	ASSERT(!strcmp(options.instance, "r-1.a_B"));
	ASSERT_EQ(options.hold_ms, 0);
	ASSERT_EQ(options.hold_max_ms, RELAY_HOLD_MAX_LIMIT_MS);
	ASSERT_EQ(options.replicas, 5);
	relay_options_free(&options);
	parse("--delivery at-least-once --hold 1h --hold-max 1h");
	ASSERT_EQ(options.delivery, RELAY_AT_LEAST_ONCE);
	ASSERT_EQ(options.hold_ms, RELAY_HOLD_LIMIT_MS);
	relay_options_free(&options);
}

TEST(an_instance_has_up_to_100_characters)
{
	char line[256];

	snprintf(line, sizeof(line), "--instance=%0100d", 1);
	parse(line);
	ASSERT_EQ(strlen(options.instance), RELAY_INSTANCE_MAX);
	relay_options_free(&options);
	snprintf(line, sizeof(line), "--instance=%0101d", 1);
	assert_refused(line, "is not up to 100 letters, digits and \"._-\"");
}

static bool may_be_a_target(const char *name)
{
	test_about("target %s", name);
	return !regexec(&options.targets, name, 0, NULL, 0);
}

TEST(targets_match_by_their_whole_name)
{
	parse("--targets=mails|team\\.[a-z]+");
	ASSERT(options.has_targets);
	ASSERT(may_be_a_target("mails"));
	ASSERT(may_be_a_target("team.orders"));
	ASSERT(!may_be_a_target("mails2"));
	ASSERT(!may_be_a_target("my-mails"));
	ASSERT(!may_be_a_target("team.orders.dead"));
	ASSERT(!may_be_a_target("teamxorders"));
	ASSERT(!may_be_a_target(""));
	relay_options_free(&options);
}

TEST(the_last_expression_for_targets_holds)
{
	parse("--targets=a --targets=b");
	ASSERT(may_be_a_target("b"));
	ASSERT(!may_be_a_target("a"));
	relay_options_free(&options);
}

TEST(an_expression_cannot_leave_the_parentheses_that_make_it_match_whole_names)
{
	assert_refused("--targets=a)|(b", "--targets \"a)|(b\" is not a regular expression");
	assert_refused("--targets=a)|b", "Unmatched )");
	parse("--targets=(a|[)]b)");
	ASSERT(may_be_a_target("a"));
	ASSERT(!may_be_a_target("ab"));
	relay_options_free(&options);
}

TEST(wrong_values_are_refused_with_a_reason)
{
	static const struct {
		const char *line;
		const char *words;
	} wrong[] = {
		{ "--delivery=once", "--delivery \"once\" is not at-least-once or exactly-once" },
		{ "--delivery=", "--delivery \"\" is not" },
		{ "--instance=", "--instance \"\" is not up to 100 letters" },
		{ "--instance=a/b", "--instance \"a/b\" is not up to 100 letters" },
		{ "--topic=..", "--topic \"..\": Kafka takes no topic of this name" },
		{ "--topic=a/b", "--topic \"a/b\" is not up to" },
		{ "--policy=a/b=25,1s,2,1h,10", "--policy \"a/b\" is not up to" },
		{ "--policy=.=25,1s,2,1h,10", "--policy \".\": Kafka takes no topic of this name" },
		{ "--hold=soon", "--hold \"soon\" is not a time, such as 60s" },
		{ "--hold=-1s", "--hold \"-1s\" is not a time" },
		{ "--hold=3601s", "--hold 3601s is longer than 1h" },
		{ "--hold-max=x", "--hold-max \"x\" is not a time" },
		{ "--hold-max=367d", "--hold-max 367d is longer than 366d" },
		{ "--hold-max=59s", "--hold-max is shorter than --hold" },
		{ "--replicas=x", "--replicas \"x\" is not a whole number from 1 to 100" },
		{ "--replicas=0", "--replicas \"0\" is not a whole number" },
		{ "--targets=", "--targets is empty" },
		{ "--targets=[a", "--targets \"[a\" is not a regular expression: Unmatched [" },
		{ "--targets=(", "--targets \"(\" is not a regular expression: Unmatched (" },
		{ "--targets=a\\", "is not a regular expression: Trailing backslash" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_refused(wrong[i].line, wrong[i].words);
}
