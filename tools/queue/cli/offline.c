// SPDX-License-Identifier: GPL-2.0
/* twheelq check, dump and load: the subcommands for a store that no daemon has open. */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/exit.h"
#include "common/log.h"
#include "common/options.h"
#include "queue/cli/dump.h"
#include "queue/cli/load.h"
#include "queue/cli/offline.h"
#include "queue/integrity/check.h"
#include "queue/integrity/open.h"

/* Memory of the store: check, dump and load only walk. */
#define MAINTAIN_MEMORY	(64 * 1024 * 1024)

struct arguments {
	const char *dir;
	const char *file;
	bool takes_file;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *arguments = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		if (state->arg_num > (arguments->takes_file ? 1 : 0))
			argp_error(state, "\"%s\" is one argument too many", arg);
		if (state->arg_num)
			arguments->file = arg;
		else
			arguments->dir = arg;
		if (!*arg)
			argp_error(state, "%s is empty", state->arg_num ? "FILE" : "DIR");
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "DIR is missing");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void parse_arguments(struct arguments *arguments, const char *args, const char *doc,
			    int argc, char **argv)
{
	const struct argp argp = { .parser = parse, .args_doc = args, .doc = doc };

	argp_err_exit_status = EXIT_USAGE;
	options_argp(&argp, argc, argv, 0, arguments);
}

int check_main(int argc, char **argv)
{
	struct arguments arguments = { 0 };
	struct store_config config = {
		.read_only = true,
		.memory = MAINTAIN_MEMORY,
		.log = log_say,
	};
	int wrong;

	parse_arguments(&arguments, "DIR",
			"Read a whole store and list its errors. With errors the exit status is 74.",
			argc, argv);
	config.dir = arguments.dir;
	wrong = store_check(&config, stdout);
	if (wrong < 0)
		return store_cannot_open(arguments.dir, wrong);
	return wrong ? EX_IOERR : 0;
}

/* Open the file of an argument; without one, or for "-", return @std. */
static FILE *open_file(const char *name, const char *mode, FILE *std)
{
	FILE *file = name && strcmp(name, "-") ? fopen(name, mode) : std;

	if (!file)
		log_say(LOG_ERR, "cannot open %s: %m", name);
	return file;
}

int dump_main(int argc, char **argv)
{
	struct arguments arguments = { .takes_file = true };
	struct store_config config = {
		.read_only = true,
		.memory = MAINTAIN_MEMORY,
		.log = log_say,
	};
	bool unwritten = false;
	struct store *store;
	FILE *file;
	int error;

	parse_arguments(&arguments, "DIR [FILE]", "Write each job as a line of JSON.", argc, argv);
	config.dir = arguments.dir;
	/* A DIR that cannot be opened must not empty FILE, which may be an older dump. */
	error = store_open_unscanned(&store, &config);
	if (error)
		return store_cannot_open(arguments.dir, error);
	file = open_file(arguments.file, "w", stdout);
	if (file) {
		error = store_dump(store, file);
		unwritten = ferror(file);
		/* What ends the program looks at the standard output, which stays open for it. */
		if ((file == stdout ? fflush(file) : fclose(file)) && !error) {
			error = -errno;
			unwritten = true;
		}
	}
	store_close(store);
	if (!file)
		return EXIT_CANNOT;
	if (unwritten) {
		log_say(LOG_ERR, "cannot write the jobs: %s", strerror(-error));
		return EX_IOERR;
	}
	return error ? store_cannot_open(arguments.dir, error) : 0;
}

int load_main(int argc, char **argv)
{
	struct arguments arguments = { .takes_file = true };
	struct store_config config = {
		.create = true,
		.memory = MAINTAIN_MEMORY,
		.log = log_say,
	};
	FILE *file;
	int error;

	parse_arguments(&arguments, "DIR [FILE]",
			"Put jobs into a store, which is created if there is none.", argc, argv);
	config.dir = arguments.dir;
	file = open_file(arguments.file, "r", stdin);
	if (!file)
		return EXIT_CANNOT;
	error = store_load(&config, file);
	fclose(file);
	return store_status(error);
}
