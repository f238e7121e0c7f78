// SPDX-License-Identifier: GPL-2.0
/* Options by a table: their values, and what is said of wrong ones. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/exit.h"
#include "common/options.h"
#include "common/util.h"
#include "test/device/harness.h"

struct values {
	const char *text;
	uint64_t count;
	uint64_t size;
	uint64_t time_ns;
	uint64_t hidden;
	int level;
	bool flag;
	char *other;
};

static void parse_other(struct argp_state *state, char *text, void *values)
{
	if (!strcmp(text, "bad"))
		argp_error(state, "--other \"%s\" is bad", text);
	((struct values *)values)->other = text;
}

#define AT(member)	offsetof(struct values, member)

static const struct option_rule rules[] = {
	{ "text", 't', "TEXT", "Any text", OPTION_TEXT, AT(text), 0, 0, NULL },
	{ "count", 'c', "N", "A number", OPTION_COUNT, AT(count), 2, 10, NULL },
	{ "size", 0, "SIZE", "Bytes", OPTION_SIZE, AT(size), 1024, 5ULL << 30, NULL },
	{ "time", 0, "DURATION", "A time", OPTION_DURATION, AT(time_ns), 1, UINT64_MAX, NULL },
	{ "level", 0, "LEVEL", "A level", OPTION_LOG_LEVEL, AT(level), 0, 0, NULL },
	{ "flag", 'f', NULL, "A flag", OPTION_FLAG, AT(flag), 0, 0, NULL },
	{ NULL, 'o', "OTHER", "Something else", OPTION_OTHER, 0, 0, 0, parse_other },
	{ "hidden", 0, "N", NULL, OPTION_COUNT, AT(hidden), 0, UINT64_MAX, NULL },
};

static void check_values(struct argp_state *state, const void *context)
{
	const struct values *values = context;

	if (values->size && values->size < values->count)
		argp_error(state, "--size and --count do not go together");
	if (values->flag && !values->text)
		argp_error(state, "--text is missing");
}

static const struct option_table table = {
	.rules = rules, .nr = ARRAY_SIZE(rules), .doc = "A test.", .check = check_values,
};

/* Parse the words of @line. */
static struct values parse(const char *line)
{
	struct values values = { .count = 7 };
	char *argv[20] = { "program" }, *words = strdup(line);
	int argc = 1;

	while ((argv[argc] = strsep(&words, " ")))
		argc++;
	options_parse(&table, &values, argc, argv);
	return values;
}

TEST(values_are_stored_and_defaults_stay)
{
	struct values values = parse("--text x=1 --size 64K --time 1.5s --level debug -f -o 1");

	ASSERT(!strcmp(values.text, "x=1"));
	ASSERT_EQ(values.count, 7);
	ASSERT_EQ(values.size, 65536);
	ASSERT_EQ(values.time_ns, 1500000000);
	ASSERT_EQ(values.level, LOG_DEBUG);
	ASSERT(values.flag);
	ASSERT(!strcmp(values.other, "1"));
}

TEST(short_and_long_forms_are_the_same_and_the_last_one_holds)
{
	ASSERT_EQ(parse("-c 3").count, 3);
	ASSERT_EQ(parse("--count=3").count, 3);
	ASSERT_EQ(parse("-c3 --count 10").count, 10);
	ASSERT_EQ(parse("--hidden 18446744073709551615").hidden, UINT64_MAX);
}

static void take_operand(struct argp_state *state, char *text, unsigned int nr, void *values)
{
	(void)state;
	if (nr == 1)
		((struct values *)values)->text = text;
}

TEST(operands_go_to_the_function_of_the_table)
{
	struct option_table with_operands = table;
	char *argv[20] = { "program", "a", "-c", "3", "b" };
	struct values values = { .count = 7 };

	with_operands.operand = take_operand;
	options_parse(&with_operands, &values, 5, argv);
	ASSERT(!strcmp(values.text, "b"));
	ASSERT_EQ(values.count, 3);
}

TEST(sizes_have_units)
{
	ASSERT_EQ(parse("--size 1024").size, 1024);
	ASSERT_EQ(parse("--size 2K").size, 2048);
	ASSERT_EQ(parse("--size 3M").size, 3 << 20);
	ASSERT_EQ(parse("--size 5G").size, 5ULL << 30);
}

/* Parse in a child; returns its status, and the text that it printed. */
static int parse_apart(const char *line, char *printed, size_t room)
{
	int files[2], status;
	size_t len = 0;
	ssize_t got;
	pid_t child;

	ASSERT_EQ(pipe(files), 0);
	child = fork();
	ASSERT_GE(child, 0);
	if (!child) {
		dup2(files[1], STDERR_FILENO);
		dup2(files[1], STDOUT_FILENO);
		close(files[0]);
		close(files[1]);
		parse(line);
		exit(0);
	}
	close(files[1]);
	while ((got = read(files[0], printed + len, room - 1 - len)) > 0)
		len += got;
	printed[len] = '\0';
	close(files[0]);
	ASSERT_EQ(waitpid(child, &status, 0), child);
	ASSERT(WIFEXITED(status));
	return WEXITSTATUS(status);
}

TEST(wrong_values_are_a_usage_error_that_says_what_is_wrong)
{
	static const struct {
		const char *line, *message;
	} lines[] = {
		{ "--count 1", "--count \"1\" is not a whole number from 2 to 10\n" },
		{ "--count 11", "--count \"11\" is not a whole number from 2 to 10\n" },
		{ "--count x", "--count \"x\" is not a whole number from 2 to 10\n" },
		{ "--count -3", "--count \"-3\" is not a whole number from 2 to 10\n" },
		{ "--size x", "--size \"x\" is not a size, such as 65535 or 256M\n" },
		{ "--size 1T", "--size \"1T\" is not a size, such as 65535 or 256M\n" },
		{ "--size 1KK", "--size \"1KK\" is not a size, such as 65535 or 256M\n" },
		{ "--size -1", "--size \"-1\" is not a size, such as 65535 or 256M\n" },
		{ "--size 9223372036854775807K", "is not a size" },
		{ "--size 1023", "--size 1023 is less than 1K\n" },
		{ "--size 6G", "--size 6G is more than 5G\n" },
		{ "--time 0", "\"0\" is not a time longer than 0, such as 50ms, 10m or 2h\n" },
		{ "--time x", "--time \"x\" is not a time" },
		{ "--level loud", "\"loud\" is not error, warning, notice, info or debug\n" },
		{ "-o bad", "--other \"bad\" is bad\n" },
		{ "word", "\"word\" is not an option\n" },
		{ "--flag", "--text is missing\n" },
		{ "--nonsense", "unrecognized option '--nonsense'\n" },
	};
	char printed[4096];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(lines); i++) {
		int status = parse_apart(lines[i].line, printed, sizeof(printed));

		test_about("%s: %s", lines[i].line, printed);
		ASSERT_EQ(status, EXIT_USAGE);
		ASSERT(strstr(printed, lines[i].message));
	}
}

TEST(help_shows_all_options_but_the_hidden_one)
{
	char printed[4096];

	ASSERT_EQ(parse_apart("--help", printed, sizeof(printed)), 0);
	ASSERT(strstr(printed, "A test."));
	ASSERT(strstr(printed, "-c, --count=N"));
	ASSERT(strstr(printed, "-o OTHER"));
	ASSERT(strstr(printed, "--time=DURATION"));
	ASSERT(!strstr(printed, "hidden"));
}
