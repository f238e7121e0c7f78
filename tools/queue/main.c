// SPDX-License-Identifier: GPL-2.0
/* twheelq: which subcommand is meant. */
#include <stdio.h>
#include <string.h>

#include "subcommand.h"
#include "util.h"
#include "version.h"

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
} subcommands[] = {
	{ "serve", serve_main, "be the queue" },
	{ "relay", relay_main, "delay and retry records of Kafka" },
	{ "check", check_main, "look whether a directory of jobs is whole" },
	{ "dump",  dump_main,  "write the jobs of a directory as lines of JSON" },
	{ "load",  load_main,  "put jobs that dump wrote into a directory" },
	{ "stats", stats_main, "tell what a daemon does" },
	{ "top",   top_main,   "watch a daemon at work" },
};

static void print_help(FILE *out)
{
	size_t i;

	fputs("Usage: twheelq COMMAND [OPTION...]\n"
	      "A durable queue of jobs that are delayed and tried again.\n\n", out);
	for (i = 0; i < ARRAY_SIZE(subcommands); i++)
		fprintf(out, "  %-10s %s\n", subcommands[i].name, subcommands[i].help);
	fputs("\n\"twheelq COMMAND --help\" tells what each takes; twheelq(8) tells more.\n", out);
}

static int run(size_t which, int argc, char **argv)
{
	char name[64];

	snprintf(name, sizeof(name), "twheelq %s", subcommands[which].name);
	argv[0] = name;
	return subcommands[which].run(argc, argv);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	size_t i;

	for (i = 0; i < ARRAY_SIZE(subcommands); i++)
		if (!strcmp(what, subcommands[i].name))
			return run(i, argc - 1, argv + 1);
	if (!strcmp(what, "--help") || !strcmp(what, "-?")) {
		print_help(stdout);
		return 0;
	}
	if (!strcmp(what, "--version") || !strcmp(what, "-V")) {
		puts("twheelq " TWHEELQ_VERSION);
		return 0;
	}
	if (*what)
		fprintf(stderr, "twheelq: \"%s\" is no command\n", what);
	print_help(stderr);
	return EXIT_CANNOT;
}
