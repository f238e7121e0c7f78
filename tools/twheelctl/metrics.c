// SPDX-License-Identifier: GPL-2.0
/*
 * twheelctl metrics: prints the numbers of the wheels for Prometheus, writes them to a file
 * for node_exporter, or serves them over HTTP.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/options.h"
#include "twheelctl/command.h"
#include "twheelctl/http.h"
#include "twheelctl/page.h"

struct metrics_options {
	struct settings *settings;
	const char *output;
	const char *http;
};

/* --- a file ----------------------------------------------------------------- */

/**
 * struct output - a file that is replaced as a whole
 * @path: the path of the file.
 * @temporary: the path of the new file, until it is complete.
 * @out: the new file.
 */
struct output {
	const char *path;
	char *temporary;
	FILE *out;
};

/* Only a file may be replaced, and nothing like /dev/stdout. */
static bool may_replace(const char *path)
{
	struct stat stats;

	if (lstat(path, &stats)) {
		if (errno == ENOENT)
			return true;
		warn("cannot look at %s", path);
		return false;
	}
	if (S_ISREG(stats.st_mode))
		return true;
	warnx("%s is not a regular file, so it is not replaced", path);
	return false;
}

/* The mode that open() gives a new file: mkostemp() lets only its owner read it. */
static mode_t usual_mode(void)
{
	mode_t mask = umask(0);

	umask(mask);
	return 0666 & ~mask;
}

/* Create the new file, which @output->temporary names. */
static FILE *create_temporary(const struct output *output)
{
	int fd = mkostemp(output->temporary, O_CLOEXEC);
	FILE *out = NULL;

	if (fd < 0) {
		warn("cannot create a file beside %s", output->path);
		return NULL;
	}
	if (!fchmod(fd, usual_mode()))
		out = fdopen(fd, "w");
	if (!out) {
		warn("cannot prepare %s", output->temporary);
		unlink(output->temporary);
		close(fd);
	}
	return out;
}

static bool output_open(struct output *output, const char *path)
{
	*output = (struct output){ .path = path };
	/* node_exporter reads what ends with .prom, which this does not. */
	if (asprintf(&output->temporary, "%s.XXXXXX", path) < 0)
		errx(STATUS_FAILURE, "out of memory");
	output->out = create_temporary(output);
	if (!output->out)
		free(output->temporary);
	return output->out;
}

/* A crash of the machine may lose the new name, but not the old file. */
static void sync_directory(const char *path)
{
	char *copy = strdup(path);
	int fd = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (fd >= 0) {
		fsync(fd);
		close(fd);
	}
	free(copy);
}

/* Returns NULL if all is written, else why not. The errno of an earlier write is lost. */
static const char *flush(FILE *out)
{
	if (fflush(out))
		return strerror(errno);
	return ferror(out) ? "an earlier write failed" : NULL;
}

/* Put the new file in the place of the old one. If that fails, the old one stays. */
static bool output_close(struct output *output)
{
	const char *why = flush(output->out);

	if (!why && fsync(fileno(output->out)))
		why = strerror(errno);
	if (fclose(output->out) && !why)
		why = strerror(errno);
	if (!why && rename(output->temporary, output->path))
		why = strerror(errno);
	if (why) {
		warnx("cannot write %s: %s", output->path, why);
		unlink(output->temporary);
	} else {
		sync_directory(output->path);
	}
	free(output->temporary);
	return !why;
}

/* --- the command ------------------------------------------------------------ */

/*
 * Without the module the file is replaced, too: stale numbers would look current. The wheels
 * are read first, so that a signal meanwhile leaves no temporary file.
 */
static enum status write_file(const char *path, const char *debugfs)
{
	struct output output;
	struct wheels wheels;
	bool up, written;

	if (!may_replace(path))
		return STATUS_FAILURE;
	up = !wheels_read(&wheels, debugfs);
	/* A file that would become too large is an error, after which the temporary one goes. */
	signal(SIGXFSZ, SIG_IGN);
	written = output_open(&output, path);
	if (written) {
		page_write(output.out, up ? &wheels : NULL);
		written = output_close(&output);
	}
	wheels_free(&wheels);
	return written && up ? STATUS_OK : STATUS_FAILURE;
}

static enum status print(const char *debugfs)
{
	struct wheels wheels;
	const char *why;

	if (wheels_read(&wheels, debugfs))
		return STATUS_FAILURE;
	page_write(stdout, &wheels);
	wheels_free(&wheels);
	why = flush(stdout);
	if (why)
		warnx("cannot write: %s", why);
	return why ? STATUS_FAILURE : STATUS_OK;
}

static error_t parse_metrics(int key, char *arg, struct argp_state *state)
{
	struct metrics_options *options = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = options->settings;
		return 0;
	case 'o':
		if (!*arg)
			argp_error(state, "--output \"\" is not the path of a file");
		options->output = arg;
		return 0;
	case 'H':
		options->http = arg;
		return 0;
	case ARGP_KEY_END:
		if (options->output && options->http)
			argp_error(state, "--output and --http exclude each other");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option metrics_argp_options[] = {
	{ "output", 'o', "FILE", 0,
	  "Replace FILE as a whole, for the textfile collector of node_exporter", 0 },
	{ "http", 'H', "ADDRESS", 0,
	  "Serve /metrics and /healthz at HOST:PORT; PORT alone is on the loopback interface",
	  0 },
	{ 0 }
};

static const struct argp metrics_argp = {
	.options = metrics_argp_options,
	.parser = parse_metrics,
	.children = settings_child,
	.doc = "Prints the counters of the wheels of each CPU and clock, and how late their\n"
	       "events expired, for Prometheus. The wheels are those that show draws.\n"
	       "\vIf the wheels cannot be read, because the module is not loaded, the page of\n"
	       "--http and the FILE of --output have only twheel_up 0, the version of twheelctl\n"
	       "and the time. With --output the exit status is then 1. If FILE cannot be\n"
	       "written, it stays as it was.\n"
	       "\n"
	       "Examples:\n"
	       "  twheelctl metrics\n"
	       "  twheelctl metrics --output /var/lib/prometheus/node-exporter/twheel.prom\n"
	       "  twheelctl metrics --http 9481",
};

enum status metrics_main(int argc, char **argv, struct settings *settings)
{
	struct metrics_options options = { .settings = settings };

	options_argp(&metrics_argp, argc, argv, 0, &options);
	if (options.http)
		return http_serve(options.http, settings->debugfs);
	if (options.output)
		return write_file(options.output, settings->debugfs);
	return print(settings->debugfs);
}
