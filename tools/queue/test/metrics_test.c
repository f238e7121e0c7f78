// SPDX-License-Identifier: GPL-2.0
/*
 * The page of /metrics: its numbers and its format (0.0.4). The queue and the store are fake
 * ones, below. metrics/test/http_test.c tests how it is served.
 */
#include <ctype.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "queue/jobs/queue.h"
#include "queue/serve/page.h"
#include "queue/store/fault.h"
#include "queue/store/space.h"
#include "queue/store/stats.h"
#include "test/device/harness.h"

/* --- the numbers -------------------------------------------------------------------- */

static struct queue_stats queue_now;
static struct protocol protocol_now;
static struct store_stats store_now;
static struct tube_stats *tubes_now;
static size_t nr_tubes;

void queue_stats(struct queue *queue, struct queue_stats *stats)
{
	(void)queue;
	*stats = queue_now;
}

void store_stats(struct store *store, struct store_stats *stats)
{
	(void)store;
	*stats = store_now;
}

void queue_each_tube(struct queue *queue,
		     void (*each)(void *context, const struct tube_stats *stats), void *context)
{
	size_t i;

	(void)queue;
	for (i = 0; i < nr_tubes; i++)
		each(context, &tubes_now[i]);
}

static bool draining, no_room, damage;

bool queue_is_draining(const struct queue *queue)
{
	(void)queue;
	return draining;
}

bool store_has_room(struct store *store)
{
	(void)store;
	return !no_room;
}

bool store_is_damaged(const struct store *store)
{
	(void)store;
	return damage;
}

const char *alarms_name(const struct alarms *alarms)
{
	(void)alarms;
	return "process";
}

const char *command_name(enum command_op op)
{
	static char name[16];

	snprintf(name, sizeof(name), "command-%d", op);
	return name;
}

/* All numbers differ, so that a test sees it if two are confused. */
static void count_all(void)
{
	uint64_t *numbers = (uint64_t *)&queue_now;
	size_t i;

	for (i = 0; i < offsetof(struct queue_stats, draining) / sizeof(uint64_t); i++)
		numbers[i] = 1000 + i;
	numbers = (uint64_t *)&store_now;
	for (i = 0; i < sizeof(store_now) / sizeof(uint64_t); i++)
		numbers[i] = 2000 + i;
	for (i = 0; i < NR_OPS; i++)
		protocol_now.commands[i] = 3000 + i;
	queue_now.uptime_ns = 1500000000;
	queue_now.draining = true;
}

static void make_tubes(size_t nr)
{
	size_t i;
	char *name;

	tubes_now = calloc(nr, sizeof(*tubes_now));
	nr_tubes = nr;
	for (i = 0; i < nr; i++) {
		ASSERT(asprintf(&name, "tube-%zu", i) > 0);
		tubes_now[i] = (struct tube_stats){
			.name = name, .urgent = 1, .ready = 2, .reserved = 3, .delayed = 4,
			.buried = 5, .waiting = 6, .oldest_ready_s = 7, .total = 8,
			.reserves = 9, .retries = 10, .dead = 11,
		};
	}
}

/* --- the page ------------------------------------------------------------------------- */

static char *make_text(void)
{
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	ASSERT_EQ(metrics_page_write(out, &protocol_now, NULL, NULL), 0);
	fclose(out);
	return text;
}

/* Does the page have this line? */
static bool has_line(const char *text, const char *line)
{
	size_t len = strlen(line);

	for (; text; text = strchr(text, '\n'), text += !!text)
		if (!strncmp(text, line, len) && text[len] == '\n')
			return true;
	return false;
}

static size_t count_lines(const char *text, const char *start)
{
	size_t nr = 0;

	for (; *text; text = strchr(text, '\n') + 1)
		nr += !strncmp(text, start, strlen(start));
	return nr;
}

#define ASSERT_LINE(text, line)						\
	do {								\
		const char *line_ = (line);				\
									\
		test_about("%s", line_);				\
		ASSERT(has_line(text, line_));				\
	} while (0)

TEST(each_number_of_the_queue_is_on_the_page)
{
	static const char * const lines[] = {
		"twheelq_urgent_jobs 1000", "twheelq_jobs{state=\"ready\"} 1001",
		"twheelq_jobs{state=\"reserved\"} 1002", "twheelq_jobs{state=\"delayed\"} 1003",
		"twheelq_jobs{state=\"buried\"} 1004", "twheelq_tubes 1005",
		"twheelq_tubes_max 1006",
		"twheelq_resident_jobs 1007", "twheelq_resident_bytes 1008",
		"twheelq_connections 1009", "twheelq_producers 1010", "twheelq_workers 1011",
		"twheelq_waiting_connections 1012", "twheelq_schedules 1013",
		"twheelq_commands_total{command=\"unknown\"} 3000",
		"twheelq_commands_total{command=\"command-1\"} 3001",
		"twheelq_uptime_seconds 1.500000000", "twheelq_draining 1",
	};
	char *text;
	size_t i;

	count_all();
	text = make_text();
	for (i = 0; i < ARRAY_SIZE(lines); i++)
		ASSERT_LINE(text, lines[i]);
	ASSERT_EQ(count_lines(text, "twheelq_commands_total{"), NR_OPS);
}

TEST(each_counter_of_the_queue_is_on_the_page)
{
	static const struct {
		const char *name;
		const uint64_t *value;
	} counters[] = {
		{ "connections", &queue_now.total_connections },
		{ "jobs_put", &queue_now.total_jobs },
		{ "job_timeouts", &queue_now.job_timeouts },
		{ "retries", &queue_now.retries },
		{ "dead", &queue_now.dead },
		{ "puts_refused", &queue_now.refused_full },
		{ "jobs_loaded", &queue_now.loaded },
		{ "jobs_evicted", &queue_now.evicted },
	};
	char line[100], *text;
	size_t i;

	count_all();
	text = make_text();
	for (i = 0; i < ARRAY_SIZE(counters); i++) {
		snprintf(line, sizeof(line), "twheelq_%s_total %llu", counters[i].name,
			 (unsigned long long)*counters[i].value);
		ASSERT_LINE(text, line);
	}
}

TEST(each_number_of_the_store_is_on_the_page)
{
	char *text;

	count_all();
	text = make_text();
	ASSERT_LINE(text, "twheelq_store_changes_total 2000");
	ASSERT_LINE(text, "twheelq_store_syncs_total 2001");
	ASSERT_LINE(text, "twheelq_store_sync_seconds_total 0.000002002");
	ASSERT_LINE(text, "twheelq_store_sync_max_seconds 0.000002003");
	ASSERT_LINE(text, "twheelq_store_slow_syncs_total 2004");
	ASSERT_LINE(text, "twheelq_store_disk_bytes 2005");
	ASSERT_LINE(text, "twheelq_store_free_bytes 2006");
	ASSERT_LINE(text, "twheelq_store_least_free_bytes 2007");
	ASSERT_LINE(text, "twheelq_store_memory_bytes 2008");
	ASSERT_LINE(text, "twheelq_store_scrubs_total 2009");
	ASSERT_LINE(text, "twheelq_store_scrubbed_bytes_total 2010");
	ASSERT_LINE(text, "twheelq_store_damaged 2011");
}

TEST(the_largest_number_keeps_all_its_digits)
{
	queue_now.delayed = UINT64_MAX;
	ASSERT_LINE(make_text(), "twheelq_jobs{state=\"delayed\"} 18446744073709551615");
}

TEST(each_number_of_a_tube_is_on_the_page)
{
	char *text;

	make_tubes(1);
	text = make_text();
	ASSERT_LINE(text, "twheelq_tube_urgent_jobs{tube=\"tube-0\"} 1");
	ASSERT_LINE(text, "twheelq_tube_jobs{tube=\"tube-0\",state=\"ready\"} 2");
	ASSERT_LINE(text, "twheelq_tube_jobs{tube=\"tube-0\",state=\"reserved\"} 3");
	ASSERT_LINE(text, "twheelq_tube_jobs{tube=\"tube-0\",state=\"delayed\"} 4");
	ASSERT_LINE(text, "twheelq_tube_jobs{tube=\"tube-0\",state=\"buried\"} 5");
	ASSERT_LINE(text, "twheelq_tube_waiting_connections{tube=\"tube-0\"} 6");
	ASSERT_LINE(text, "twheelq_tube_oldest_ready_seconds{tube=\"tube-0\"} 7");
	ASSERT_LINE(text, "twheelq_tube_jobs_put_total{tube=\"tube-0\"} 8");
	ASSERT_LINE(text, "twheelq_tube_attempts_total{tube=\"tube-0\"} 9");
	ASSERT_LINE(text, "twheelq_tube_retries_total{tube=\"tube-0\"} 10");
	ASSERT_LINE(text, "twheelq_tube_dead_total{tube=\"tube-0\"} 11");
	ASSERT_LINE(text, "twheelq_tubes_left_out 0");
}

TEST(tubes_beyond_the_limit_are_only_counted)
{
	char *text;

	make_tubes(METRICS_MAX_TUBES + 5);
	text = make_text();
	ASSERT_EQ(count_lines(text, "twheelq_tube_urgent_jobs{"), METRICS_MAX_TUBES);
	ASSERT_LINE(text, "twheelq_tubes_left_out 5");
}

TEST(the_name_of_a_tube_cannot_end_its_label)
{
	make_tubes(1);
	tubes_now[0].name = "a\"} 1\nb\\";
	ASSERT_LINE(make_text(), "twheelq_tube_urgent_jobs{tube=\"a\\\"} 1\\nb\\\\\"} 1");
}

TEST(lateness_is_a_cumulative_histogram_in_seconds)
{
	char *text;

	histogram_add(&queue_now.ready_late, 900);
	histogram_add(&queue_now.ready_late, 1500);
	histogram_add(&queue_now.ready_late, 3000000);
	histogram_add(&queue_now.ready_late, 3000 * NSEC_PER_SEC);
	text = make_text();
	ASSERT_LINE(text, "twheelq_lateness_seconds_bucket{to=\"ready\",le=\"0.000001\"} 1");
	ASSERT_LINE(text, "twheelq_lateness_seconds_bucket{to=\"ready\",le=\"0.000002\"} 2");
	ASSERT_LINE(text, "twheelq_lateness_seconds_bucket{to=\"ready\",le=\"0.002048\"} 2");
	ASSERT_LINE(text, "twheelq_lateness_seconds_bucket{to=\"ready\",le=\"0.004096\"} 3");
	ASSERT_LINE(text, "twheelq_lateness_seconds_bucket{to=\"ready\",le=\"1073.741824\"} 3");
	ASSERT_LINE(text, "twheelq_lateness_seconds_bucket{to=\"ready\",le=\"+Inf\"} 4");
	ASSERT_LINE(text, "twheelq_lateness_seconds_sum{to=\"ready\"} 3000.003002400");
	ASSERT_LINE(text, "twheelq_lateness_seconds_count{to=\"ready\"} 4");
	ASSERT_LINE(text, "twheelq_lateness_seconds_count{to=\"reserved\"} 0");
	ASSERT_LINE(text, "twheelq_lateness_max_seconds{to=\"ready\"} 3000.000000000");
}

TEST(the_version_and_the_backend_of_the_wheel_are_on_the_page)
{
	char *text = make_text();

	ASSERT_EQ(count_lines(text, "twheelq_build_info{version=\""), 1);
	ASSERT_LINE(text, "twheelq_wheel_info{make=\"process\"} 1");
}

/* --- health ------------------------------------------------------------------------- */

TEST(health_says_what_is_wrong)
{
	ASSERT(!metrics_health(NULL, NULL));
	draining = true;
	ASSERT(strstr(metrics_health(NULL, NULL), "draining"));
	no_room = true;
	ASSERT(strstr(metrics_health(NULL, NULL), "disk is full"));
	damage = true;
	ASSERT(strstr(metrics_health(NULL, NULL), "damage"));
}

/* --- the format ----------------------------------------------------------------------- */

#define NAME	"[a-zA-Z_:][a-zA-Z0-9_:]*"
#define LABEL	"[a-zA-Z_][a-zA-Z0-9_]*=\"([^\"\\\\\n]|\\\\[\"\\\\n])*\""
#define SAMPLE	"^(" NAME ")([{]" LABEL "(," LABEL ")*[}])? ([0-9]+([.][0-9]+)?)$"

static bool matches(const char *pattern, const char *line)
{
	regex_t regex;
	bool match;

	ASSERT_EQ(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
	match = !regexec(&regex, line, 0, NULL, 0);
	regfree(&regex);
	return match;
}

/* Is this a valid suffix of a sample for the type of its family? */
static bool is_suffix(const char *suffix, const char *type)
{
	if (strcmp(type, "histogram"))
		return *suffix == '{' || *suffix == ' ';
	return !strncmp(suffix, "_bucket{", 8) || !strncmp(suffix, "_sum{", 5) ||
	       !strncmp(suffix, "_count{", 7);
}

/* A family begins once, with HELP before TYPE, and its samples follow. */
static void check_line(const char *line, char family[100], char type[20])
{
	static char seen[20000];
	char name[100], key[120];

	test_about("%s", line);
	if (sscanf(line, "# HELP %99s %*s", name) == 1) {
		snprintf(key, sizeof(key), "|%s|", name);
		ASSERT(!strstr(seen, key));
		strncat(seen, key, sizeof(seen) - strlen(seen) - 1);
		strcpy(family, name);
		*type = '\0';
	} else if (sscanf(line, "# TYPE %99s %19s", name, type) == 2) {
		ASSERT_EQ(strcmp(name, family), 0);
		ASSERT(matches("^(counter|gauge|histogram)$", type));
		ASSERT_EQ(matches("_total$", name), !strcmp(type, "counter"));
	} else {
		ASSERT(matches(SAMPLE, line));
		ASSERT_EQ(strncmp(line, family, strlen(family)), 0);
		ASSERT(is_suffix(line + strlen(family), type));
	}
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(*(char **)a, *(char **)b);
}

/* No two samples of a page have the same name and labels. */
static void check_unique(char **lines, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		*strrchr(lines[i], ' ') = '\0';
	qsort(lines, nr, sizeof(*lines), compare_lines);
	for (i = 1; i < nr; i++) {
		test_about("%s", lines[i]);
		ASSERT_NE(strcmp(lines[i - 1], lines[i]), 0);
	}
}

TEST(the_page_is_of_format_0_0_4)
{
	char family[100] = "", type[20] = "", *line, *lines[2000], *rest;
	size_t nr = 0;

	count_all();
	make_tubes(10);
	tubes_now[3].name = "a \"quoted\", \\slashed\nname{le=\"1\"}";
	rest = make_text();
	ASSERT_EQ(rest[strlen(rest) - 1], '\n');
	while ((line = strsep(&rest, "\n")) && *line) {
		check_line(line, family, type);
		if (*line != '#')
			lines[nr++] = line;
	}
	ASSERT(line && !rest);
	ASSERT_GT(nr, 150);
	check_unique(lines, nr);
}
