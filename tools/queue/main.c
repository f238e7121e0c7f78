// SPDX-License-Identifier: GPL-2.0
/* twheelq: run the subcommand. */
#include <stdio.h>
#include <string.h>

#include "queue/cli/backup.h"
#include "queue/cli/change.h"
#include "queue/cli/every.h"
#include "queue/cli/offline.h"
#include "queue/cli/peek.h"
#include "queue/cli/policy.h"
#include "queue/cli/put.h"
#include "queue/cli/stats.h"
#include "queue/cli/top.h"
#include "queue/serve/serve.h"
#include "common/exit.h"
#include "common/standard.h"
#include "common/util.h"
#include "common/version.h"

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
} subcommands[] = {
	{ "serve",  serve_main,  "run the daemon" },
	{ "check",  check_main,  "check a directory of jobs for damage" },
	{ "dump",   dump_main,   "write the jobs of a directory as lines of JSON" },
	{ "load",   load_main,   "load jobs that dump wrote into a directory" },
	{ "backup", backup_main, "copy the jobs of a running daemon" },
	{ "put",    put_main,    "put a job" },
	{ "peek",   peek_main,   "show a job and its body" },
	{ "jobs",   jobs_main,   "list the jobs of a tube" },
	{ "kick",   kick_main,   "make buried or delayed jobs ready" },
	{ "delete", delete_main, "delete jobs" },
	{ "purge",  purge_main,  "delete all jobs of a tube and a state" },
	{ "pause",  pause_main,  "give no jobs of a tube for some time" },
	{ "policy", policy_main, "show or set how jobs of a tube are retried" },
	{ "every",  every_main,  "put a job again and again" },
	{ "stats",  stats_main,  "show the numbers of a running daemon" },
	{ "top",    top_main,    "show them again and again, on a full screen" },
};

static void print_help(FILE *out)
{
	size_t i;

	fputs("Usage: twheelq COMMAND [OPTION...]\n"
	      "A durable queue of delayed jobs and retries.\n\n", out);
	for (i = 0; i < ARRAY_SIZE(subcommands); i++)
		fprintf(out, "  %-10s %s\n", subcommands[i].name, subcommands[i].help);
	fputs("\n  --help     show this, or with a command the options of the command\n"
	      "  --version  show the version\n"
	      "\nExit status: 0, done; 1, it could not be done; 2, wrong use; 74, a disk error or damage.\n"
	      "The manual is twheelq(8); twheelq(7) has the protocol.\n", out);
}

static int run_subcommand(size_t which, int argc, char **argv)
{
	char name[64];

	snprintf(name, sizeof(name), "twheelq %s", subcommands[which].name);
	argv[0] = name;
	return subcommands[which].run(argc, argv);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	size_t i;

	standard_files_open();
	for (i = 0; i < ARRAY_SIZE(subcommands); i++)
		if (!strcmp(name, subcommands[i].name))
			return run_subcommand(i, argc - 1, argv + 1);
	if (!strcmp(name, "--help") || !strcmp(name, "-?")) {
		print_help(stdout);
		return 0;
	}
	if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
		puts("twheelq " TWHEEL_VERSION);
		return 0;
	}
	if (*name)
		fprintf(stderr, "twheelq: \"%s\" is not a command\n", name);
	print_help(stderr);
	return EXIT_USAGE;
}
