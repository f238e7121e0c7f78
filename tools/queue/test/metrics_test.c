// SPDX-License-Identifier: GPL-2.0
/*
 * /metrics: what is on the page, that it is of format 0.0.4, and that no client of it
 * can hold up the loop. The queue and the store are those below.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "address.h"
#include "harness.h"
#include "metrics.h"
#include "metrics_page.h"
#include "util.h"

/* --- what is counted ------------------------------------------------------------------ */

static struct queue_stats queue_now;
static struct store_stats store_now;
static struct tube_stats *tubes_now;
static size_t nr_tubes;
static unsigned int pages_made;

void queue_stats(struct queue *queue, struct queue_stats *stats)
{
	(void)queue;
	*stats = queue_now;
	pages_made++;
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

/* Every number another one, so that none is taken for another. */
static void count_all(void)
{
	uint64_t *numbers = (uint64_t *)&queue_now;
	size_t i;

	for (i = 0; i < offsetof(struct queue_stats, draining) / sizeof(uint64_t); i++)
		numbers[i] = 1000 + i;
	numbers = (uint64_t *)&store_now;
	for (i = 0; i < sizeof(store_now) / sizeof(uint64_t); i++)
		numbers[i] = 2000 + i;
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
			.buried = 5, .waiting = 6, .total = 7,
		};
	}
}

/* --- the page ------------------------------------------------------------------------- */

static char *make_text(void)
{
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	ASSERT_EQ(metrics_page_write(out, NULL, NULL, NULL), 0);
	fclose(out);
	return text;
}

/* Is there a line of the page that is this one? */
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
		"twheelq_resident_jobs 1006", "twheelq_resident_bytes 1007",
		"twheelq_connections 1008", "twheelq_producers 1009", "twheelq_workers 1010",
		"twheelq_waiting_connections 1011",
		"twheelq_commands_total{command=\"unknown\"} 1012",
		"twheelq_commands_total{command=\"command-1\"} 1013",
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
	ASSERT_LINE(text, "twheelq_store_disk_bytes 2004");
	ASSERT_LINE(text, "twheelq_store_free_bytes 2005");
	ASSERT_LINE(text, "twheelq_store_memory_bytes 2006");
	ASSERT_LINE(text, "twheelq_store_scrubs_total 2007");
	ASSERT_LINE(text, "twheelq_store_scrubbed_bytes_total 2008");
	ASSERT_LINE(text, "twheelq_store_damaged 2009");
}

TEST(the_largest_number_keeps_all_its_digits)
{
	queue_now.delayed = UINT64_MAX;
	ASSERT_LINE(make_text(), "twheelq_jobs{state=\"delayed\"} 18446744073709551615");
}

TEST(a_tube_has_each_of_its_numbers)
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
	ASSERT_LINE(text, "twheelq_tube_jobs_put_total{tube=\"tube-0\"} 7");
	ASSERT_LINE(text, "twheelq_tubes_left_out 0");
}

TEST(tubes_beyond_the_bound_are_counted_only)
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
	histogram_add(&queue_now.ready_late, 3000ULL * 1000000000);
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

TEST(a_version_and_the_make_of_the_wheel_are_told)
{
	char *text = make_text();

	ASSERT_EQ(count_lines(text, "twheelq_build_info{version=\""), 1);
	ASSERT_LINE(text, "twheelq_wheel_info{make=\"process\"} 1");
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

/* What follows the name of a family in the name of one of its samples is right for its type. */
static bool is_suffix(const char *suffix, const char *type)
{
	if (strcmp(type, "histogram"))
		return *suffix == '{' || *suffix == ' ';
	return !strncmp(suffix, "_bucket{", 8) || !strncmp(suffix, "_sum{", 5) ||
	       !strncmp(suffix, "_count{", 7);
}

/* A family is told once, HELP before TYPE, and its samples follow. */
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

/* --- over HTTP ------------------------------------------------------------------------ */

static struct metrics *metrics;

static int write_page(FILE *out, void *context)
{
	(void)context;
	return metrics_page_write(out, NULL, NULL, NULL);
}

static const struct metrics_source source = { .write = write_page };

static void open_metrics(void)
{
	ASSERT_EQ(metrics_open(&metrics, "127.0.0.1:0", &source), 0);
}

static int connect_client(void)
{
	struct address address;
	int fd;

	ASSERT(!address_parse(&address, metrics_address(metrics), "0"));
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ASSERT_EQ(connect(fd, (struct sockaddr *)&address.socket, address.len), 0);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	return fd;
}

static void send_text(int fd, const char *text)
{
	ASSERT_EQ(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* A turn of the loop as the server's: it waits until something can go on, here or there. */
static void turn_until(int client)
{
	struct pollfd files[] = {
		{ .fd = metrics_fd(metrics), .events = POLLIN },
		{ .fd = client, .events = POLLIN },
	};

	poll(files, 2, metrics_timeout_ms(metrics));
	metrics_run(metrics);
}

/* A turn that waits for a moment only. */
static void turn(void)
{
	struct pollfd file = { .fd = metrics_fd(metrics), .events = POLLIN };

	poll(&file, 1, 10);
	metrics_run(metrics);
}

/* All that comes until the connection ends. */
static char *receive(int fd)
{
	static char text[4000000];
	size_t len = 0;
	ssize_t got;

	while ((got = recv(fd, text + len, sizeof(text) - 1 - len, 0)) != 0) {
		if (got > 0)
			len += got;
		else if (errno == EAGAIN)
			turn_until(fd);
		else
			break;
	}
	text[len] = '\0';
	close(fd);
	return text;
}

static char *ask(const char *request)
{
	int fd = connect_client();

	send_text(fd, request);
	return receive(fd);
}

#define GET	"GET /metrics HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"

TEST(get_metrics_is_answered_with_the_page)
{
	char *text, *body;

	count_all();
	open_metrics();
	text = ask(GET);
	ASSERT(!strncmp(text, "HTTP/1.1 200 ", 13));
	ASSERT(strcasestr(text, "\r\nContent-Type: " METRICS_PAGE_TYPE "\r\n"));
	body = strstr(text, "\r\n\r\n") + 4;
	ASSERT_EQ(strcmp(body, make_text()), 0);
	metrics_close(metrics);
}

TEST(a_large_page_comes_whole)
{
	char *body;

	make_tubes(METRICS_MAX_TUBES);
	open_metrics();
	body = strstr(ask(GET), "\r\n\r\n") + 4;
	ASSERT_GT(strlen(body), 200000);
	ASSERT_EQ(strcmp(body, make_text()), 0);
	metrics_close(metrics);
}

TEST(other_paths_and_methods_are_refused)
{
	open_metrics();
	ASSERT(!strncmp(ask("GET / HTTP/1.0\r\n\r\n"), "HTTP/1.0 404 ", 13) ||
	       !strncmp(ask("GET / HTTP/1.0\r\n\r\n"), "HTTP/1.1 404 ", 13));
	ASSERT(strstr(ask("GET /metrics/../x HTTP/1.0\r\n\r\n"), " 404 "));
	ASSERT(strstr(ask("POST /metrics HTTP/1.0\r\nContent-Length: 9\r\n\r\n"), " 405 "));
	ASSERT(strstr(ask("DELETE /metrics HTTP/1.0\r\n\r\n"), " 405 "));
	ASSERT_EQ(pages_made, 0);
	metrics_close(metrics);
}

TEST(head_has_no_body)
{
	char *text;

	open_metrics();
	text = ask("HEAD /metrics HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
	ASSERT(!strncmp(text, "HTTP/1.1 200 ", 13));
	ASSERT_EQ(strlen(strstr(text, "\r\n\r\n")), 4);
	metrics_close(metrics);
}

TEST(what_is_no_http_ends_the_connection)
{
	char *text;

	open_metrics();
	text = ask("put 0 0 1 1\r\na\r\n\r\n");
	ASSERT(!*text || strstr(text, " 400 ") || strstr(text, " 505 "));
	ASSERT(strstr(ask(GET), " 200 "));
	metrics_close(metrics);
}

TEST(headers_without_end_are_bounded)
{
	char header[1000];
	int fd, i;

	open_metrics();
	fd = connect_client();
	send_text(fd, "GET /metrics HTTP/1.1\r\n");
	snprintf(header, sizeof(header), "X: %0900d\r\n", 0);
	for (i = 0; i < 1000 && send(fd, header, strlen(header), MSG_NOSIGNAL) > 0; i++)
		turn();
	ASSERT_LT(i, 1000);
	close(fd);
	ASSERT(strstr(ask(GET), " 200 "));
	metrics_close(metrics);
}

TEST(one_that_does_not_read_holds_up_nobody)
{
	int slow, i;

	make_tubes(METRICS_MAX_TUBES);
	open_metrics();
	slow = connect_client();
	for (i = 0; i < METRICS_MAX_CONNECTIONS; i++)
		send_text(slow, "GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n");
	for (i = 0; i < 20; i++)
		turn();
	ASSERT(strstr(ask(GET), " 200 "));
	close(slow);
	metrics_close(metrics);
}

/* As many that say nothing as there may be, and then one that asks; true if it has to wait. */
static bool ask_last(int *idle, int *late)
{
	int i;

	for (i = 0; i < METRICS_MAX_CONNECTIONS; i++)
		idle[i] = connect_client();
	for (i = 0; i < 2 * METRICS_MAX_CONNECTIONS; i++)
		turn();
	*late = connect_client();
	send_text(*late, GET);
	for (i = 0; i < 10; i++)
		turn();
	return recv(*late, &i, 1, MSG_PEEK) == -1 && errno == EAGAIN;
}

TEST(more_connections_than_the_bound_wait_for_their_turn)
{
	int idle[METRICS_MAX_CONNECTIONS], late, i;
	time_t begin;

	for (;;) {
		begin = time(NULL);
		open_metrics();
		if (ask_last(idle, &late))
			break;
		/* The others may have been closed by then, as they say nothing. */
		ASSERT_GE(time(NULL) - begin, METRICS_TIMEOUT_S - 1);
		metrics_close(metrics);
		for (i = 0; i < METRICS_MAX_CONNECTIONS; i++)
			close(idle[i]);
		close(late);
	}
	close(idle[0]);
	ASSERT(strstr(receive(late), " 200 "));
	metrics_close(metrics);
}

/* In turns of the loop, how often there was something to do. */
static unsigned int count_wakeups(unsigned int turns)
{
	struct pollfd file = { .fd = metrics_fd(metrics), .events = POLLIN };
	unsigned int wakeups = 0;

	while (turns--) {
		wakeups += poll(&file, 1, 10) > 0 || !metrics_timeout_ms(metrics);
		metrics_run(metrics);
	}
	return wakeups;
}

/* Where the process has no file left, the loop does not turn in vain. */
TEST(a_connection_that_cannot_be_accepted_is_accepted_later)
{
	struct rlimit limit, none;
	int client;

	ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
	open_metrics();
	client = connect_client();
	send_text(client, GET);
	none = (struct rlimit){ .rlim_cur = client + 1, .rlim_max = limit.rlim_max };
	ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
	ASSERT_LT(count_wakeups(50), 10);
	ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	ASSERT(strstr(receive(client), " 200 "));
	metrics_close(metrics);
}

TEST(a_silent_connection_is_closed)
{
	int fd;

	open_metrics();
	fd = connect_client();
	send_text(fd, "GET /metr");
	ASSERT_EQ(strlen(receive(fd)), 0);
	metrics_close(metrics);
}

TEST(pages_are_made_at_most_once_in_their_age)
{
	struct timespec start, end;
	uint64_t took_ns;
	int i;

	open_metrics();
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (i = 0; i < 200; i++)
		ASSERT(strstr(ask(GET), " 200 "));
	clock_gettime(CLOCK_MONOTONIC, &end);
	took_ns = (end.tv_sec - start.tv_sec) * 1000000000ULL + end.tv_nsec - start.tv_nsec;
	ASSERT_LE(pages_made, 1 + took_ns / METRICS_PAGE_AGE_NS);
	metrics_close(metrics);
}

TEST(a_page_is_made_anew_when_it_is_old)
{
	struct timespec age = { .tv_nsec = METRICS_PAGE_AGE_NS };

	open_metrics();
	ASSERT(strstr(ask(GET), "\ntwheelq_tubes 0\n"));
	queue_now.tubes = 3;
	nanosleep(&age, NULL);
	ASSERT(strstr(ask(GET), "\ntwheelq_tubes 3\n"));
	metrics_close(metrics);
}

TEST(closing_frees_what_is_being_sent)
{
	int fd, i;

	make_tubes(METRICS_MAX_TUBES);
	open_metrics();
	fd = connect_client();
	send_text(fd, GET);
	for (i = 0; i < 5; i++)
		turn();
	metrics_close(metrics);
	close(fd);
}

TEST(an_address_that_is_none_is_refused)
{
	ASSERT_EQ(metrics_open(&metrics, "", &source), -EINVAL);
	ASSERT_EQ(metrics_open(&metrics, "127.0.0.1:99999", &source), -EINVAL);
	ASSERT_EQ(metrics_open(&metrics, "unix:/tmp/x", &source), -EINVAL);
	ASSERT_EQ(metrics_open(&metrics, "192.0.2.1:1", &source), -EADDRNOTAVAIL);
}

TEST(an_address_in_use_is_refused)
{
	struct metrics *second;

	open_metrics();
	ASSERT_EQ(metrics_open(&second, metrics_address(metrics), &source), -EADDRINUSE);
	metrics_close(metrics);
}

TEST(a_port_alone_is_of_the_loopback_interface)
{
	ASSERT_EQ(metrics_open(&metrics, "0", &source), 0);
	ASSERT_EQ(strncmp(metrics_address(metrics), "127.0.0.1:", 10), 0);
	metrics_close(metrics);
}
