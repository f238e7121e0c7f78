// SPDX-License-Identifier: GPL-2.0
/*
 * What a daemon tells of itself at one moment, and how fast it works between two.
 *
 * Counters go on from 0 when the daemon, or a tube, is made anew: a counter that has become
 * less has counted all it says since then.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "looks.h"
#include "subcommand.h"
#include "util.h"
#include "yaml.h"

/* So many questions are on their way at a time. */
#define ASK_AT_ONCE	100

/**
 * struct key - where a number of an answer goes
 * @name: its key.
 * @offset: where in the struct.
 */
struct key {
	const char *name;
	size_t offset;
};

static const struct key queue_keys[] = {
	{ "current-jobs-ready",		offsetof(struct look, ready) },
	{ "current-jobs-reserved",	offsetof(struct look, reserved) },
	{ "current-jobs-delayed",	offsetof(struct look, delayed) },
	{ "current-jobs-buried",	offsetof(struct look, buried) },
	{ "current-connections",	offsetof(struct look, connections) },
	{ "current-waiting",		offsetof(struct look, waiting) },
	{ "uptime",			offsetof(struct look, uptime_s) },
	{ "total-jobs",			offsetof(struct look, put) },
	{ "cmd-delete",			offsetof(struct look, deleted) },
	{ "job-timeouts",		offsetof(struct look, timeouts) },
	{ "retries",			offsetof(struct look, retries) },
	{ "dead",			offsetof(struct look, dead) },
};

static const struct key tube_keys[] = {
	{ "current-jobs-ready",		offsetof(struct tube_look, ready) },
	{ "current-jobs-reserved",	offsetof(struct tube_look, reserved) },
	{ "current-jobs-delayed",	offsetof(struct tube_look, delayed) },
	{ "current-jobs-buried",	offsetof(struct tube_look, buried) },
	{ "current-waiting",		offsetof(struct tube_look, waiting) },
	{ "total-jobs",			offsetof(struct tube_look, put) },
	{ "cmd-delete",			offsetof(struct tube_look, deleted) },
};

static void take_number(void *to, const struct key *keys, size_t nr, const char *name,
			uint64_t value)
{
	size_t i;

	for (i = 0; i < nr; i++)
		if (!strcmp(keys[i].name, name))
			*(uint64_t *)((char *)to + keys[i].offset) = value;
}

/* "due-to-reserved-below-8-us: 5"; @start is what the name is to begin with. */
static void take_bucket(struct histogram *late, const char *start, const char *name,
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

void look_at_stats(struct look *look, char *text)
{
	char *key, *value;
	uint64_t number;

	while (yaml_next(&text, &key, &value)) {
		number = strtoull(value, NULL, 10);
		take_number(look, queue_keys, ARRAY_SIZE(queue_keys), key, number);
		take_bucket(&look->ready_late, "due-to-ready", key, number);
		take_bucket(&look->late, "due-to-reserved", key, number);
		if (!strncmp(key, "cmd-", 4))
			look->commands += number;
	}
}

void look_at_tube(struct tube_look *tube, char *text)
{
	char *key, *value;

	while (yaml_next(&text, &key, &value))
		take_number(tube, tube_keys, ARRAY_SIZE(tube_keys), key,
			    strtoull(value, NULL, 10));
}

/* --- asking --------------------------------------------------------------------------- */

static int compare_tubes(const void *a, const void *b)
{
	return strcmp(((const struct tube_look *)a)->name, ((const struct tube_look *)b)->name);
}

static void take_names(struct look *look, char *text)
{
	char *key, *name;

	look->tube = calloc(LOOK_MAX_TUBES, sizeof(*look->tube));
	if (!look->tube)
		errx(EXIT_CANNOT, "out of memory");
	while (yaml_next(&text, &key, &name)) {
		if (look->nr_tubes == LOOK_MAX_TUBES || strlen(name) > TUBE_NAME_MAX)
			look->left_out++;
		else
			strcpy(look->tube[look->nr_tubes++].name, name);
	}
	qsort(look->tube, look->nr_tubes, sizeof(*look->tube), compare_tubes);
}

/* Ask about tubes, from one on; one that is gone meanwhile has nothing. */
static void ask_tubes(struct look *look, struct connection *connection, size_t first, size_t nr)
{
	size_t i;

	for (i = first; i < first + nr; i++)
		connection_send(connection, "stats-tube %s", look->tube[i].name);
	for (i = first; i < first + nr; i++) {
		char *text = connection_receive(connection);

		if (text)
			look_at_tube(&look->tube[i], text);
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

void look_take(struct look *look, struct connection *connection, uint64_t now_ns)
{
	char *text = ask(connection, "stats");
	size_t first, rest;

	*look = (struct look){ .at_ns = now_ns };
	look_at_stats(look, text);
	free(text);
	text = ask(connection, "list-tubes");
	take_names(look, text);
	free(text);
	for (first = 0; first < look->nr_tubes; first += ASK_AT_ONCE) {
		rest = look->nr_tubes - first;
		ask_tubes(look, connection, first, rest < ASK_AT_ONCE ? rest : ASK_AT_ONCE);
	}
}

void look_end(struct look *look)
{
	free(look->tube);
	look->tube = NULL;
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

/* A tube that was not there before has counted from 0. */
static void tube_rates(struct tube_look *tube, const struct look *before, double seconds)
{
	static const struct tube_look none;
	const struct tube_look *old = NULL;

	if (before->nr_tubes)
		old = bsearch(tube, before->tube, before->nr_tubes, sizeof(*tube), compare_tubes);
	if (!old)
		old = &none;
	tube->put_per_s = difference(old->put, tube->put) / seconds;
	tube->deleted_per_s = difference(old->deleted, tube->deleted) / seconds;
}

void look_rates(struct rates *rates, const struct look *before, struct look *after)
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
	late_between(&rates->late, &before->late, &after->late);
	for (i = 0; i < after->nr_tubes; i++)
		tube_rates(&after->tube[i], before, seconds);
}
