// SPDX-License-Identifier: GPL-2.0
/*
 * Parts of the page for people: JSON from any bytes, who may, the last ten minutes, and boards.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/time.h"
#include "metrics/board.h"
#include "metrics/guard.h"
#include "metrics/history.h"
#include "metrics/json.h"
#include "metrics/site.h"
#include "test/device/harness.h"

static char *text;
static size_t text_len;

static FILE *begin(void)
{
	free(text);
	text = NULL;
	return open_memstream(&text, &text_len);
}

/* --- JSON ------------------------------------------------------------------------------- */

static const char *as_json(const void *bytes, size_t len)
{
	FILE *out = begin();

	json_bytes(out, bytes, len);
	fclose(out);
	return text;
}

TEST(json_has_nothing_that_html_or_a_terminal_would_take)
{
	unsigned char bytes[256];
	unsigned int i;

	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = i;
	as_json(bytes, sizeof(bytes));
	for (i = 0; i < text_len; i++) {
		ASSERT_GE((unsigned char)text[i], ' ');
		ASSERT(!strchr("<>&", text[i]));
		ASSERT_LT((unsigned char)text[i], 0x7f);
	}
	ASSERT(!strcmp(as_json("a\"\\\n\0z", 6), "\"a\\\"\\\\\\u000a\\u0000z\""));
	ASSERT(!strcmp(as_json("<b>&", 4), "\"\\u003cb\\u003e\\u0026\""));
}

TEST(json_keeps_utf8_and_replaces_what_is_none)
{
	static const struct {
		const char *bytes;
		const char *json;
	} cases[] = {
		{ "\xc3\xa4", "\"\xc3\xa4\"" },
		{ "\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xe2\x82\xac\xf0\x9f\x98\x80\"" },
		{ "\xc0\xaf", "\"\\ufffd\\ufffd\"" },		/* "/" in two bytes */
		{ "\xe0\x80\xaf", "\"\\ufffd\\ufffd\\ufffd\"" },
		{ "\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\"" },	/* half of a pair */
		{ "\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"" },
		{ "\xc3", "\"\\ufffd\"" },
		{ "a\xffz", "\"a\\ufffdz\"" },
		{ "\xf4\x8f\xbf\xbf", "\"\xf4\x8f\xbf\xbf\"" },	/* the last one */
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		ASSERT(!strcmp(as_json(cases[i].bytes, strlen(cases[i].bytes)), cases[i].json));
}

/* --- who may ---------------------------------------------------------------------------- */

TEST(a_token_is_only_itself)
{
	const char *token = "0123456789abcdef";

	ASSERT(guard_is_token(token, "0123456789abcdef"));
	ASSERT(!guard_is_token(token, ""));
	ASSERT(!guard_is_token(token, "0"));
	ASSERT(!guard_is_token(token, "0123456789abcdeg"));
	ASSERT(!guard_is_token(token, "1123456789abcdef"));
	ASSERT(!guard_is_token(token, "0123456789abcde"));
	ASSERT(!guard_is_token(token, "0123456789abcdef0123456789abcdef"));
	ASSERT(!guard_is_token("aaaaaaaaaaaaaaaa", "a"));
	ASSERT(!guard_is_token("abababababababab", "ab"));
}

TEST(hosts_are_addresses_and_names_of_this_machine)
{
	char name[256];

	ASSERT(guard_is_host("127.0.0.1", NULL) && guard_is_host("10.1.2.3:80", NULL));
	ASSERT(guard_is_host("[::1]:80", NULL) && guard_is_host("[fe80::1]", NULL));
	ASSERT(guard_is_host("localhost:1", NULL) && guard_is_host("LOCALHOST", NULL));
	ASSERT(!guard_is_host(NULL, NULL) && !guard_is_host("", NULL));
	ASSERT(!guard_is_host(":80", NULL) && !guard_is_host("evil.example", NULL));
	ASSERT(!guard_is_host("127.0.0.1.evil.example", NULL));
	ASSERT(!guard_is_host("[::1", NULL) && !guard_is_host("[::1]x", NULL));
	ASSERT(!guard_is_host("localhost.evil.example", "queue.example"));
	ASSERT(guard_is_host("queue.example:443", "queue.example"));
	ASSERT_EQ(gethostname(name, sizeof(name)), 0);
	ASSERT(guard_is_host(name, NULL));
}

TEST(origins_are_this_server_or_the_proxy_s_name)
{
	ASSERT(guard_is_origin("http://127.0.0.1:1", "127.0.0.1:1", NULL));
	ASSERT(guard_is_origin("https://q.example:8", "127.0.0.1:1", "q.example"));
	ASSERT(!guard_is_origin("http://127.0.0.1:2", "127.0.0.1:1", NULL));
	ASSERT(!guard_is_origin("http://q.example.evil", "127.0.0.1:1", "q.example"));
	ASSERT(!guard_is_origin("null", "127.0.0.1:1", NULL) && !guard_is_origin("", "", NULL));
	ASSERT(!guard_is_origin("file://127.0.0.1:1", "127.0.0.1:1", NULL));
}

/* --- the last ten minutes --------------------------------------------------------------- */

static const char *series(const struct history *history, uint64_t now_s, unsigned int number)
{
	FILE *out = begin();

	history_write(history, now_s, number, out);
	fclose(out);
	return text;
}

/* The last @nr values of a series. */
static const char *tail(const struct history *history, uint64_t now_s, unsigned int nr)
{
	const char *at = series(history, now_s, 0) + text_len - 1;

	while (nr) {
		at--;
		if (*at == ',' || *at == '[')
			nr--;
	}
	return at + 1;
}

TEST(a_history_has_the_last_value_of_each_step)
{
	struct history history = { .step = 0 };

	history_note(&history, 1000, 0, 5, false);
	history_note(&history, 1009, 0, 6, false);
	history_note(&history, 1010, 0, 7, false);
	ASSERT(!strcmp(tail(&history, 1019, 3), "null,6,7]"));
	/* A step that was passed over has no value; nor have those to come. */
	history_note(&history, 1030, 0, 8, false);
	ASSERT(!strcmp(tail(&history, 1045, 6), "null,6,7,null,8,null]"));
	ASSERT(!strncmp(series(&history, 1045, 1), "[null,", 6));
}

TEST(a_history_sums_what_a_counter_has_grown)
{
	struct history history = { .step = 0 };

	history_note(&history, 1000, 0, 5, true);
	history_note(&history, 1001, 0, 6, true);
	history_note(&history, 1010, 0, 1, true);
	ASSERT(!strcmp(tail(&history, 1010, 2), "11,1]"));
	history_note(&history, 1011, 0, UINT64_MAX / 2, true);
	ASSERT(!strcmp(tail(&history, 1011, 2), "11,4294967294]"));
}

TEST(a_history_is_ten_minutes_long)
{
	struct history history = { .step = 0 };
	unsigned int i, commas = 0;
	uint64_t s;

	for (s = 0; s < 3000; s += 10)
		history_note(&history, s, 0, s, false);
	series(&history, 2999, 0);
	ASSERT(!strncmp(text, "[2400,2410,", 11));
	for (i = 0; i < text_len; i++)
		commas += text[i] == ',';
	ASSERT_EQ(commas, HISTORY_STEPS - 1);
	/* After a longer time nothing is left. */
	history_note(&history, 100000, 0, 1, false);
	ASSERT(!strcmp(tail(&history, 100000, 2), "null,1]"));
	ASSERT(!strncmp(series(&history, 100000, 0), "[null,null,", 11));
}

/* --- boards ----------------------------------------------------------------------------- */

static const struct board_column columns[] = {
	{ .key = "now", .title = "Now", .help = "", .history = true },
	{ .key = "ever", .title = "Ever", .help = "", .counter = true, .history = true },
};

static struct board *board_of(size_t max_rows)
{
	const struct board_config config = {
		.name = "b", .title = "B", .columns = columns, .nr_columns = 2,
		.max_rows = max_rows,
	};

	return board_create(&config);
}

static void tell(struct board *board, const char *name, uint64_t now, uint64_t ever, uint64_t at_s)
{
	const uint64_t values[] = { now, ever };

	board_row(board, name, values, at_s * NSEC_PER_SEC);
}

/* What a page gets; the arguments are names and values in turn. */
static const char *page(struct board *board, uint64_t at_s, const char *const *pairs)
{
	struct site_arguments arguments = { .nr = 0 };
	FILE *out;

	for (; *pairs; pairs += 2) {
		arguments.name[arguments.nr] = pairs[0];
		arguments.value[arguments.nr++] = pairs[1];
	}
	out = begin();
	board_write(board, &arguments, at_s * NSEC_PER_SEC, out);
	fclose(out);
	return text;
}

#define PAGE(board, at_s, ...) page(board, at_s, (const char *const []){ __VA_ARGS__, NULL })

/* The names of the rows, in order. */
static const char *names(const char *json)
{
	static char found[4096];
	const char *at = strstr(json, "\"rows\":[");
	size_t len = 0;

	while ((at = strstr(at, "{\"name\":\""))) {
		at += 9;
		while (*at != '"')
			found[len++] = *at++;
		found[len++] = ' ';
	}
	found[len] = '\0';
	return found;
}

TEST(a_board_has_the_rows_of_the_last_pass)
{
	struct board *board = board_of(10);

	ASSERT(!strcmp(names(PAGE(board, 1, "", "")), ""));
	board_begin(board);
	tell(board, "a", 1, 0, 10);
	tell(board, "c", 2, 0, 10);
	tell(board, "d", 3, 0, 10);
	ASSERT(!strcmp(names(PAGE(board, 10, "", "")), ""));
	board_end(board);
	ASSERT(!strcmp(names(PAGE(board, 10, "", "")), "a c d "));
	board_begin(board);
	tell(board, "a", 1, 0, 11);
	tell(board, "b", 5, 0, 11);
	/* In the midst of a pass, that one is whole. */
	ASSERT(!strcmp(names(PAGE(board, 11, "", "")), "a c d "));
	tell(board, "d", 2, 0, 11);
	board_end(board);
	ASSERT(!strcmp(names(PAGE(board, 11, "", "")), "a b d "));
	ASSERT(strstr(text, "\"matched\":3,\"total\":3,\"left_out\":0}"));
	board_begin(board);
	tell(board, "b", 5, 0, 12);
	tell(board, "x", 5, 0, 12);
	board_destroy(board);
}

TEST(a_board_is_sorted_filtered_and_cut)
{
	struct board *board = board_of(10);

	board_begin(board);
	tell(board, "alpha", 2, 0, 10);
	tell(board, "beta", 7, 0, 10);
	tell(board, "gamma", 2, 0, 10);
	tell(board, "zeta", 9, 0, 10);
	board_end(board);
	ASSERT(!strcmp(names(PAGE(board, 10, "b.sort", "now")), "zeta beta alpha gamma "));
	ASSERT(!strcmp(names(PAGE(board, 10, "b.sort", "none")), "alpha beta gamma zeta "));
	ASSERT(!strcmp(names(PAGE(board, 10, "b.filter", "ETA")), "beta zeta "));
	ASSERT(strstr(text, "\"matched\":2,\"total\":4"));
	ASSERT(!strcmp(names(PAGE(board, 10, "b.from", "1", "b.count", "2")), "beta gamma "));
	ASSERT(!strcmp(names(PAGE(board, 10, "b.from", "9")), ""));
	ASSERT(!strcmp(names(PAGE(board, 10, "c.filter", "eta")), "alpha beta gamma zeta "));
	board_destroy(board);
}

TEST(rates_are_reckoned_over_five_to_ten_seconds)
{
	struct board *board = board_of(10);
	uint64_t s;

	for (s = 100; s <= 130; s++) {
		board_begin(board);
		tell(board, "a", 0, s < 120 ? s * 10 : 1200, s);
		board_end(board);
		if (s == 119)
			ASSERT(strstr(PAGE(board, s, "", ""), "\"rates\":[null,10.000]"));
	}
	ASSERT(strstr(PAGE(board, 130, "", ""), "\"rates\":[null,0.000]"));
	/* A counter that begins anew is another thing's: no rate is below 0, nor a huge one. */
	board_begin(board);
	tell(board, "a", 0, 3, 131);
	board_end(board);
	ASSERT(strstr(PAGE(board, 131, "", ""), "\"values\":[0,3],\"rates\":[null,0.000]"));
	board_destroy(board);
}

TEST(rows_beyond_the_limit_are_counted)
{
	struct board *board = board_of(3);
	char name[16];
	int i;

	board_begin(board);
	for (i = 0; i < 10; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		tell(board, name, 0, 0, 1);
	}
	board_end(board);
	ASSERT(!strcmp(names(PAGE(board, 1, "", "")), "n0 n1 n2 "));
	ASSERT(strstr(text, "\"total\":10,\"left_out\":7}"));
	/* One that was known, and is beyond the limit now, is gone. */
	board_begin(board);
	tell(board, "a", 0, 0, 2);
	tell(board, "b", 0, 0, 2);
	for (i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		tell(board, name, 0, 0, 2);
	}
	board_end(board);
	ASSERT(!strcmp(names(PAGE(board, 2, "", "")), "a b n0 "));
	board_destroy(board);
}

TEST(a_row_has_its_history_by_the_keys_of_columns)
{
	struct board *board = board_of(3);
	FILE *out;

	board_begin(board);
	tell(board, "a", 7, 100, 1000);
	board_end(board);
	board_begin(board);
	tell(board, "a", 8, 103, 1001);
	board_end(board);
	out = begin();
	board_write_history(board, "a", 1001 * NSEC_PER_SEC, out);
	fclose(out);
	ASSERT(strstr(text, "{\"step_s\":10,\"now\":[") && strstr(text, ",8],\"ever\":["));
	ASSERT(strstr(text, ",3]}"));
	out = begin();
	board_write_history(board, "b", 1001 * NSEC_PER_SEC, out);
	fclose(out);
	ASSERT(!strcmp(text, "null"));
	board_destroy(board);
}

TEST(as_many_rows_as_the_memory_has_fit)
{
	ASSERT_GE(board_rows(16 << 20), 10000);
	ASSERT_LE(board_memory(board_rows(16 << 20)), 16 << 20);
	ASSERT_LE(board_memory(1), 2048);
}
