// SPDX-License-Identifier: GPL-2.0
/*
 * The numbers of a daemon at one moment, and the rates between two such snapshots.
 *
 * Counters start at 0 again when the daemon restarts or a tube is created again. So if a
 * counter is smaller than before, all that it has counted is new.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/cli/snapshot.h"
#include "common/exit.h"
#include "common/text.h"
#include "common/util.h"
#include "queue/cli/yaml.h"

/* Number of commands in flight. */
#define ASK_AT_ONCE	100

/**
 * struct key - the field for a number of an answer
 * @name: key of the number.
 * @offset: offset of the field in its struct.
 */
struct key {
	const char *name;
	size_t offset;
};

static const struct key queue_keys[] = {
	{ "current-jobs-ready",		offsetof(struct snapshot, ready) },
	{ "current-jobs-reserved",	offsetof(struct snapshot, reserved) },
	{ "current-jobs-delayed",	offsetof(struct snapshot, delayed) },
	{ "current-jobs-buried",	offsetof(struct snapshot, buried) },
	{ "current-connections",	offsetof(struct snapshot, connections) },
	{ "current-waiting",		offsetof(struct snapshot, waiting) },
	{ "uptime",			offsetof(struct snapshot, uptime_s) },
	{ "total-jobs",			offsetof(struct snapshot, put) },
	{ "cmd-delete",			offsetof(struct snapshot, deleted) },
	{ "job-timeouts",		offsetof(struct snapshot, timeouts) },
	{ "retries",			offsetof(struct snapshot, retries) },
	{ "dead",			offsetof(struct snapshot, dead) },
};

static const struct key tube_keys[] = {
	{ "current-jobs-ready",		offsetof(struct tube_snapshot, ready) },
	{ "current-jobs-reserved",	offsetof(struct tube_snapshot, reserved) },
	{ "current-jobs-delayed",	offsetof(struct tube_snapshot, delayed) },
	{ "current-jobs-buried",	offsetof(struct tube_snapshot, buried) },
	{ "current-jobs-dead",		offsetof(struct tube_snapshot, dead) },
	{ "current-waiting",		offsetof(struct tube_snapshot, waiting) },
	{ "total-jobs",			offsetof(struct tube_snapshot, put) },
	{ "cmd-delete",			offsetof(struct tube_snapshot, deleted) },
};

static void parse_number(void *to, const struct key *keys, size_t nr, const char *name,
			 uint64_t value)
{
	size_t i;

	for (i = 0; i < nr; i++)
		if (!strcmp(keys[i].name, name))
			*(uint64_t *)((char *)to + keys[i].offset) = value;
}

/* "due-to-reserved-below-8-us: 5"; @start is the start of the name. */
static void parse_bucket(struct histogram *late, const char *start, const char *name,
			 uint64_t value)
{
	unsigned long long limit_us;
	int end = 0;

	if (strncmp(name, start, strlen(start)) ||
	    sscanf(name + strlen(start), "-below-%llu-us%n", &limit_us, &end) != 1 || !end ||
	    !limit_us || limit_us >= 1ULL << HISTOGRAM_BUCKETS)
		return;
	late->nr[63 - __builtin_clzll(limit_us)] = value;
	late->count += value;
}

static void copy_host(struct snapshot *snapshot, char *name)
{
	text_make_printable(name);
	snprintf(snapshot->host, sizeof(snapshot->host), "%s", name);
}

void snapshot_parse_stats(struct snapshot *snapshot, char *text)
{
	char *key, *value;
	uint64_t number;

	while (yaml_next(&text, &key, &value)) {
		number = strtoull(value, NULL, 10);
		parse_number(snapshot, queue_keys, ARRAY_SIZE(queue_keys), key, number);
		parse_bucket(&snapshot->ready_late, "due-to-ready", key, number);
		parse_bucket(&snapshot->late, "due-to-reserved", key, number);
		if (!strncmp(key, "cmd-", 4))
			snapshot->commands += number;
		if (!strcmp(key, "hostname"))
			copy_host(snapshot, value);
	}
}

void snapshot_parse_tube(struct tube_snapshot *tube, char *text)
{
	char *key, *value;

	while (yaml_next(&text, &key, &value))
		parse_number(tube, tube_keys, ARRAY_SIZE(tube_keys), key,
			     strtoull(value, NULL, 10));
}

/* --- asking --------------------------------------------------------------------------- */

static int compare_tubes(const void *a, const void *b)
{
	const struct tube_snapshot *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static void parse_names(struct snapshot *snapshot, char *text)
{
	char *key, *name;

	snapshot->tube = calloc(SNAPSHOT_MAX_TUBES, sizeof(*snapshot->tube));
	if (!snapshot->tube)
		errx(EXIT_CANNOT, "out of memory");
	while (yaml_next(&text, &key, &name)) {
		text_make_printable(name);
		if (snapshot->nr_tubes == SNAPSHOT_MAX_TUBES || strlen(name) > TUBE_NAME_MAX)
			snapshot->left_out++;
		else
			strcpy(snapshot->tube[snapshot->nr_tubes++].name, name);
	}
	qsort(snapshot->tube, snapshot->nr_tubes, sizeof(*snapshot->tube), compare_tubes);
}

/* Ask about @nr tubes from @first on; all numbers of a tube that is gone stay 0. */
static void ask_tubes(struct snapshot *snapshot, struct connection *connection,
		      size_t first, size_t nr)
{
	size_t i;

	for (i = first; i < first + nr; i++)
		connection_send(connection, "stats-tube %s", snapshot->tube[i].name);
	for (i = first; i < first + nr; i++) {
		char *text = connection_receive(connection);

		if (text)
			snapshot_parse_tube(&snapshot->tube[i], text);
		free(text);
	}
}

static char *ask(struct connection *connection, const char *command)
{
	char *text;

	connection_send(connection, "%s", command);
	text = connection_receive(connection);
	if (!text)
		errx(EXIT_CANNOT, "the answer to %s was NOT_FOUND", command);
	return text;
}

void snapshot_take(struct snapshot *snapshot, struct connection *connection, uint64_t now_ns)
{
	size_t first, rest;
	char *text;

	connection_begin_round(connection);
	text = ask(connection, "stats");
	*snapshot = (struct snapshot){ .at_ns = now_ns };
	snapshot_parse_stats(snapshot, text);
	free(text);
	text = ask(connection, "list-tubes");
	parse_names(snapshot, text);
	free(text);
	for (first = 0; first < snapshot->nr_tubes; first += ASK_AT_ONCE) {
		rest = snapshot->nr_tubes - first;
		ask_tubes(snapshot, connection, first, rest < ASK_AT_ONCE ? rest : ASK_AT_ONCE);
	}
	connection_end_round(connection);
}

void snapshot_free(struct snapshot *snapshot)
{
	free(snapshot->tube);
	snapshot->tube = NULL;
}

/* --- rates ---------------------------------------------------------------------------- */

static uint64_t difference(uint64_t before, uint64_t after)
{
	return after >= before ? after - before : after;
}

static void late_between(struct histogram *late, const struct histogram *before,
			 const struct histogram *after)
{
	unsigned int n;

	*late = (struct histogram){ 0 };
	for (n = 0; n < HISTOGRAM_BUCKETS; n++) {
		late->nr[n] = difference(before->nr[n], after->nr[n]);
		late->count += late->nr[n];
		if (late->nr[n])
			late->max_ns = histogram_limit_us(n) * 1000;
	}
}

/* A tube that was not in the snapshot before has counted from 0. */
static void tube_rates(struct tube_snapshot *tube, const struct snapshot *before, double seconds)
{
	static const struct tube_snapshot none;
	const struct tube_snapshot *old = NULL;

	if (before->nr_tubes)
		old = bsearch(tube, before->tube, before->nr_tubes, sizeof(*tube), compare_tubes);
	if (!old)
		old = &none;
	tube->put_per_s = difference(old->put, tube->put) / seconds;
	tube->deleted_per_s = difference(old->deleted, tube->deleted) / seconds;
}

void snapshot_rates(struct rates *rates, const struct snapshot *before, struct snapshot *after)
{
	double seconds = (after->at_ns - before->at_ns) / 1e9;
	size_t i;

	if (seconds <= 0)
		seconds = 1;
	*rates = (struct rates){
		.put = difference(before->put, after->put) / seconds,
		.deleted = difference(before->deleted, after->deleted) / seconds,
		.timeouts = difference(before->timeouts, after->timeouts) / seconds,
		.retries = difference(before->retries, after->retries) / seconds,
		.dead = difference(before->dead, after->dead) / seconds,
		.commands = difference(before->commands, after->commands) / seconds,
	};
	late_between(&rates->ready_late, &before->ready_late, &after->ready_late);
	late_between(&rates->late, &before->late, &after->late);
	for (i = 0; i < after->nr_tubes; i++)
		tube_rates(&after->tube[i], before, seconds);
}
