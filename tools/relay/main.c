// SPDX-License-Identifier: GPL-2.0
/* twheel-relay: delays and retries records of Kafka; and the commands about that. */
#include <argp.h>
#include <stdio.h>
#include <string.h>

#include "common/log.h"
#include "common/standard.h"
#include "common/util.h"
#include "common/version.h"
#include "relay/cli/list.h"
#include "relay/cli/replay.h"
#include "relay/cli/skip.h"
#include "relay/cli/status.h"
#include "relay/loop.h"
#include "relay/options.h"

/* argp takes --version from here. */
const char *argp_program_version = "twheel-relay " TWHEEL_VERSION;

static int run_main(int argc, char **argv)
{
	struct relay_options options;
	int status;

	relay_options_parse(&options, argc, argv);
	log_set_level(options.log_level);
	status = relay_run(&options);
	relay_options_free(&options);
	return status;
}

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "run", run_main },
	{ "status", status_main },
	{ "list", list_main },
	{ "replay", replay_main },
	{ "skip", skip_main },
};

static int run_command(size_t which, int argc, char **argv)
{
	char name[64];

	snprintf(name, sizeof(name), "twheel-relay %s", commands[which].name);
	argv[0] = name;
	return commands[which].run(argc, argv);
}

/* Without a command it relays. */
int main(int argc, char **argv)
{
	size_t i;

	standard_files_open();
	for (i = 0; argc > 1 && i < ARRAY_SIZE(commands); i++)
		if (!strcmp(argv[1], commands[i].name))
			return run_command(i, argc - 1, argv + 1);
	return run_main(argc, argv);
}
