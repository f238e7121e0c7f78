// SPDX-License-Identifier: GPL-2.0
/*
 * twheelq stats: the numbers of a daemon, or of a tube, as text or as JSON.
 *
 * Keys are those of the daemon, so new ones are shown without a change here. The text groups
 * them by the start of their names and draws the lateness of jobs as a histogram.
 */
#include <argp.h>
#include <err.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/address.h"
#include "common/exit.h"
#include "common/number.h"
#include "common/text.h"
#include "common/util.h"
#include "queue/cli/connection.h"
#include "queue/cli/person.h"
#include "queue/cli/snapshot.h"
#include "queue/cli/stats.h"
#include "queue/cli/yaml.h"

/* Length of the longest bar of a histogram. */
#define BAR_COLUMNS	40

/**
 * struct stats - the state of the command
 * @address: --connect.
 * @tube: name of the tube; NULL: the daemon.
 * @json: --json.
 */
struct stats {
	const char *address;
	const char *tube;
	bool json;
};

/**
 * struct group - a group of keys
 * @heading: heading of the group; of the last one it says what the numbers are of.
 * @starts: starts of the names; the last group has all keys that are in no other.
 */
struct group {
	const char *heading;
	const char *starts[10];
};

static const struct group groups[] = {
	{ "Jobs", { "current-jobs-", "current-schedules", "total-jobs", "job-timeouts",
		    "retries", "dead", "refused-", "jobs-", "max-job" } },
	{ "Clients", { "current-", "total-connections" } },
	{ "Disk", { "sync", "disk-" } },
	{ "Commands", { "cmd-" } },
	{ "Policy", { "policy" } },
	{ NULL, { "" } },
};

/* Keys that are drawn, and keys that exist only for programs written for beanstalkd. */
static const struct group elsewhere = { NULL, { "due-to-", "binlog-" } };

/* --- JSON ----------------------------------------------------------------------------- */

/* A name is a string, even if it has only digits. */
static bool is_text(const char *key, const char *value)
{
	static const char * const texts[] = {
		"id", "name", "hostname", "os", "platform", "version", "policy-dead-tube",
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(texts); i++)
		if (!strcmp(key, texts[i]))
			return true;
	return !*value || value[strspn(value, "0123456789.")];
}

static json_t *json_value(const char *key, char *value)
{
	if (!strcmp(value, "true") || !strcmp(value, "false"))
		return json_boolean(*value == 't');
	if (is_text(key, value))
		return yaml_string(value);
	return strchr(value, '.') ? json_real(strtod(value, NULL)) :
				    json_integer(strtoll(value, NULL, 10));
}

static json_t *json_answer(char *text)
{
	json_t *object = json_object();
	char *key, *value;

	while (yaml_next(&text, &key, &value))
		json_object_set_new(object, key, json_value(key, value));
	return object;
}

static json_t *json_tube(const struct tube_snapshot *tube)
{
	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "name", tube->name,
			 "ready", (json_int_t)tube->ready,
			 "reserved", (json_int_t)tube->reserved,
			 "delayed", (json_int_t)tube->delayed,
			 "buried", (json_int_t)tube->buried,
			 "dead", (json_int_t)tube->dead,
			 "waiting", (json_int_t)tube->waiting,
			 "put", (json_int_t)tube->put,
			 "deleted", (json_int_t)tube->deleted);
}

static void print_json(char *text, const struct snapshot *snapshot)
{
	json_t *object = json_answer(text);
	json_t *tubes = json_array();
	size_t i;

	if (snapshot) {
		for (i = 0; i < snapshot->nr_tubes; i++)
			json_array_append_new(tubes, json_tube(&snapshot->tube[i]));
		json_object_set(object, "tubes", tubes);
		json_object_set_new(object, "tubes-left-out", json_integer(snapshot->left_out));
	}
	json_dumpf(object, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
	putchar('\n');
	json_decref(tubes);
	json_decref(object);
}

/* --- text ----------------------------------------------------------------------------- */

static bool is_of(const struct group *group, const char *key)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(group->starts) && group->starts[i]; i++)
		if (!strncmp(key, group->starts[i], strlen(group->starts[i])))
			return true;
	return false;
}

static const struct group *group_of(const char *key)
{
	const struct group *group;

	if (is_of(&elsewhere, key))
		return &elsewhere;
	for (group = groups; !is_of(group, key); group++)
		;
	return group;
}

/* Copy an answer, as parsing overwrites it. */
static char *copy(const char *text)
{
	char *copied = strdup(text);

	if (!copied)
		errx(EXIT_CANNOT, "out of memory");
	return copied;
}

/* Leave out commands that were never sent. */
static void print_group(const struct group *group, const char *text, const char *last_heading)
{
	char *copied = copy(text), *rest = copied, *key, *value;
	bool is_commands = is_of(group, "cmd-");
	bool begun = false;

	while (yaml_next(&rest, &key, &value)) {
		if (group_of(key) != group || (is_commands && !strcmp(value, "0")))
			continue;
		if (!begun)
			printf("\n%s\n", group->heading ?: last_heading);
		begun = true;
		text_make_printable(value);
		printf("  %-26s %s\n", key, value);
	}
	free(copied);
}

static void print_bars(const struct histogram *histogram)
{
	char limit[NUMBER_TEXT];
	uint64_t most = 1;
	unsigned int n;
	int columns;

	for (n = 0; n < HISTOGRAM_BUCKETS; n++)
		if (histogram->nr[n] > most)
			most = histogram->nr[n];
	for (n = 0; n < HISTOGRAM_BUCKETS; n++) {
		if (!histogram->nr[n])
			continue;
		columns = (histogram->nr[n] * BAR_COLUMNS + most - 1) / most;
		printf("  < %-10s %12llu  %.*s\n",
		       duration_format(limit, histogram_limit_us(n) * 1000.0),
		       (unsigned long long)histogram->nr[n], columns,
		       "########################################");
	}
}

static void print_lateness(const char *what, const struct histogram *histogram)
{
	char p50[NUMBER_TEXT], p99[NUMBER_TEXT];

	if (!histogram->count)
		return;
	printf("\nLateness of %llu delayed jobs, from due to %s: p50 < %s, p99 < %s\n",
	       (unsigned long long)histogram->count, what,
	       duration_format(p50, histogram_permille_us(histogram, 500) * 1000.0),
	       duration_format(p99, histogram_permille_us(histogram, 990) * 1000.0));
	print_bars(histogram);
}

static void print_tubes(const struct snapshot *snapshot)
{
	size_t i;

	printf("\n%12s %9s %12s %9s %8s %12s  %s\n", "ready", "reserved", "delayed",
	       "buried", "waiting", "put", "tube");
	for (i = 0; i < snapshot->nr_tubes; i++) {
		const struct tube_snapshot *tube = &snapshot->tube[i];

		printf("%12llu %9llu %12llu %9llu %8llu %12llu  %s\n",
		       (unsigned long long)tube->ready, (unsigned long long)tube->reserved,
		       (unsigned long long)tube->delayed, (unsigned long long)tube->buried,
		       (unsigned long long)tube->waiting, (unsigned long long)tube->put,
		       tube->name);
	}
	if (snapshot->left_out)
		printf("and %zu more\n", snapshot->left_out);
}

static void print_people(const char *text, const struct snapshot *snapshot)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(groups); i++)
		print_group(&groups[i], text, snapshot ? "Daemon" : "Tube");
	if (snapshot) {
		print_lateness("ready", &snapshot->ready_late);
		print_lateness("reserved", &snapshot->late);
		print_tubes(snapshot);
	}
}

/* --- the command ---------------------------------------------------------------------- */

static error_t parse_stats(int key, char *arg, struct argp_state *state)
{
	struct stats *stats = state->input;

	switch (key) {
	case 'a':
		stats->address = arg;
		return 0;
	case 'j':
		stats->json = true;
		return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num)
			argp_error(state, "\"%s\" is one tube too many", arg);
		stats->tube = person_tube(state, arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option stats_options[] = {
	{ "connect", 'a', "ADDRESS", 0,
	  "Where the daemon is: HOST:PORT or unix:PATH (default " ADDRESS_DEFAULT ")", 0 },
	{ "json", 'j', NULL, 0, "Print JSON", 0 },
	{ 0 }
};

static const struct argp stats_argp = {
	.options = stats_options,
	.parser = parse_stats,
	.args_doc = "[TUBE]",
	.doc = "Show the numbers of a daemon: its jobs, clients, tubes, the lateness of jobs,\n"
	       "and the commands since its start; or the numbers of one TUBE.",
};

static int stats_of_tube(struct connection *connection, const struct stats *stats)
{
	char *text;

	connection_send(connection, "stats-tube %s", stats->tube);
	text = connection_receive(connection);
	if (!text)
		errx(EXIT_CANNOT, "%s has no tube \"%s\"", stats->address, stats->tube);
	if (stats->json)
		print_json(text, NULL);
	else
		print_people(text, NULL);
	free(text);
	return 0;
}

static int stats_of_daemon(struct connection *connection, const struct stats *stats)
{
	struct snapshot snapshot;
	char *text;

	connection_send(connection, "stats");
	text = connection_receive(connection);
	if (!text)
		errx(EXIT_CANNOT, "%s does not know \"stats\"", stats->address);
	snapshot_take(&snapshot, connection, 0);
	if (stats->json)
		print_json(text, &snapshot);
	else
		print_people(text, &snapshot);
	snapshot_free(&snapshot);
	free(text);
	return 0;
}

int stats_main(int argc, char **argv)
{
	struct stats stats = { .address = ADDRESS_DEFAULT };
	struct connection *connection;
	int status;

	argp_err_exit_status = EXIT_USAGE;
	options_argp(&stats_argp, argc, argv, 0, &stats);
	connection = connection_open(stats.address);
	status = stats.tube ? stats_of_tube(connection, &stats) :
			      stats_of_daemon(connection, &stats);
	connection_close(connection);
	return status;
}
