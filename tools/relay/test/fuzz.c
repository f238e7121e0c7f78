// SPDX-License-Identifier: GPL-2.0
/*
 * A libFuzzer target: what others may write into the topics that the relay reads.
 *
 * Headers of a record are refused with a reason, or the record is followed through buckets until
 * it is delivered: never early, with the time that was found first, and after few buckets. Keys
 * and values of pieces, names of buckets, and the metadata of commits are read or refused, and
 * what was read is written as it was.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "relay/rules/pieces.h"
#include "relay/rules/rules.h"
#include "relay/rules/runs.h"
#include "test/device/must.h"

#define NOW_MS		1700000000000ULL
#define HOUR_MS		3600000ULL

/* One bucket of each width, and more of the widest, which has half of RELAY_WIDEST_MS or more. */
#define MOVES_MAX	(RELAY_BUCKETS_MAX + 2 * RELAY_DELAY_MAX_MS / RELAY_WIDEST_MS)

#define HEADER_MAX	600

/* What is left of the input. */
struct input {
	const uint8_t *data;
	size_t left;
};

static void draw(struct input *input, void *to, size_t size)
{
	size_t nr = size < input->left ? size : input->left;

	memset(to, 0, size);
	memcpy(to, input->data, nr);
	input->data += nr;
	input->left -= nr;
}

static unsigned int draw_byte(struct input *input)
{
	uint8_t byte;

	draw(input, &byte, 1);
	return byte;
}

static uint64_t draw_number(struct input *input)
{
	uint64_t number;

	draw(input, &number, sizeof(number));
	return number >> (draw_byte(input) & 63);
}

/* --- a record ------------------------------------------------------------------------- */

/* A record whose headers are in @texts. */
struct record {
	struct relay_record record;
	char texts[9][HEADER_MAX];
};

static void set_number(struct relay_text *header, char *text, uint64_t number)
{
	header->len = snprintf(text, HEADER_MAX, "%" PRIu64, number);
	header->data = text;
}

static void draw_header(struct input *input, struct relay_text *header, char *text)
{
	unsigned int kind = draw_byte(input);

	switch (kind & 3) {
	case 0:
		break;
	case 1:
		set_number(header, text, draw_number(input));
		break;
	case 2:
		set_number(header, text, NOW_MS + (kind & 4 ? draw_number(input) :
							      -draw_number(input)));
		break;
	default:
		header->len = draw_byte(input) * 2;
		draw(input, text, header->len);
		header->data = text;
	}
}

static void draw_record(struct input *input, const struct relay_rules *rules,
			struct record *record)
{
	struct relay_text *headers[] = {
		&record->record.target, &record->record.deliver_at, &record->record.delay,
		&record->record.attempt, &record->record.due, &record->record.parked,
		&record->record.tries, &record->record.held_since, &record->record.cancel,
	};
	unsigned int from = draw_byte(input);
	size_t i;

	memset(record, 0, sizeof(*record));
	if (from & 1)
		record->record.width_ms = rules->width_ms[(from >> 1) % rules->nr_buckets];
	record->record.timestamp_ms = NOW_MS - (int64_t)draw_number(input);
	record->record.seed = draw_number(input);
	record->record.policy = &retry_policy_default;
	for (i = 0; i < ARRAY_SIZE(headers); i++)
		draw_header(input, headers[i], record->texts[i]);
	/* Else few get beyond that. */
	if (from & 0x80)
		record->record.target = (struct relay_text){ "target", 6 };
}

static void check_decision(const struct relay_rules *rules, const struct relay_decision *decision,
			   uint64_t now_ms)
{
	MUST(decision->action < RELAY_ACTIONS && decision->action != RELAY_DROP);
	MUST((decision->action == RELAY_REFUSE) == !!decision->reason);
	if (decision->action == RELAY_WAIT)
		MUST(decision->until_ms > now_ms);
	if (decision->action == RELAY_NEAR)
		MUST(decision->due_ms > now_ms);
	if (decision->action == RELAY_DELIVER)
		MUST(decision->due_ms <= now_ms);
	if (decision->action == RELAY_PARK)
		MUST(decision->bucket < rules->nr_buckets);
}

/* The record as the relay parks it. */
static void park(const struct relay_rules *rules, const struct relay_decision *decision,
		 uint64_t now_ms, struct record *record)
{
	struct relay_record *parked = &record->record;

	parked->width_ms = rules->width_ms[decision->bucket];
	set_number(&parked->due, record->texts[4], decision->due_ms);
	set_number(&parked->parked, record->texts[5], now_ms);
	parked->tries.data = NULL;
}

/*
 * Each bucket is read when its head says that it is ready. It may be due so much later than any
 * clock says that it is left alone here.
 */
static void follow(const struct relay_rules *rules, struct record *record)
{
	struct relay_decision decision;
	uint64_t now_ms = NOW_MS, due_ms;
	unsigned int moves = 0;

	relay_decide(rules, &record->record, now_ms, &decision);
	check_decision(rules, &decision, now_ms);
	due_ms = decision.due_ms;
	while ((decision.action == RELAY_WAIT || decision.action == RELAY_PARK) &&
	       due_ms <= NOW_MS + RELAY_DELAY_MAX_MS / rules->scale) {
		if (decision.action == RELAY_PARK) {
			MUST(moves++ < MOVES_MAX);
			park(rules, &decision, now_ms, record);
		} else {
			now_ms = decision.until_ms;
		}
		relay_decide(rules, &record->record, now_ms, &decision);
		check_decision(rules, &decision, now_ms);
		MUST(decision.action != RELAY_REFUSE);
		MUST(decision.due_ms == due_ms);
	}
}

static void try_record(struct input *input)
{
	static const uint64_t horizons_ms[] = { 1000, 10000, 600000, HOUR_MS, 24 * HOUR_MS };
	unsigned int what = draw_byte(input);
	struct relay_rules rules;
	struct record record;

	relay_rules_init(&rules, "delays", horizons_ms[what % ARRAY_SIZE(horizons_ms)],
			 what & 0x80 ? 1000 : 1);
	draw_record(input, &rules, &record);
	follow(&rules, &record);
}

/* --- names, the map, commits ---------------------------------------------------------- */

static void try_bucket(struct input *input)
{
	char topic[RELAY_TOPIC_MAX + 1] = "", name[RELAY_TOPIC_MAX + 1];
	uint64_t width_ms = 0;
	struct relay_rules rules;

	relay_rules_init(&rules, "delays", 600000, 1);
	strcpy(topic, draw_byte(input) & 1 ? "delays-b" : "");
	draw(input, topic + strlen(topic), 40);
	if (!relay_is_bucket(&rules, topic, &width_ms))
		return;
	relay_bucket_name(&rules, width_ms / 1000, name);
	MUST(!strcmp(topic, name));
}

static void try_piece_key(struct input *input)
{
	char text[PIECE_KEY_MAX];
	struct piece_key key;

	if (!piece_key_read(&key, (const char *)input->data, input->left))
		return;
	MUST(key.begin == PIECE_LOW || piece_begin(key.begin) == key.begin);
	MUST(piece_key_write(&key, text) == input->left);
	MUST(!memcmp(text, input->data, input->left));
}

static void try_piece(struct input *input)
{
	bool is_low = draw_byte(input) & 1;
	unsigned char value[PIECE_VALUE_MAX];
	struct piece piece, again;
	size_t len;

	if (!piece_read(&piece, is_low, input->data, input->left))
		return;
	len = piece_write(&piece, is_low, value);
	MUST(len <= sizeof(value));
	MUST(piece_read(&again, is_low, value, len));
	MUST(again.newest_ms == piece.newest_ms && again.epoch == piece.epoch);
	if (is_low)
		MUST(again.low == piece.low);
	else
		MUST(!memcmp(again.bits, piece.bits, sizeof(piece.bits)));
}

/* What was done before is written again for a reader that has not come as far. */
static void try_runs(struct input *input)
{
	int64_t low = draw_number(input) & INT64_MAX, at;
	char text[RUNS_TEXT_MAX] = "", again[RUNS_TEXT_MAX];
	struct runs runs, before, copy;
	struct watermark mark;
	uint64_t left_out;
	int head = 0;

	if (draw_byte(input) & 1)
		head = snprintf(text, sizeof(text), "2:%" PRId64 ":%" PRIu64 ":", low,
				(uint64_t)NOW_MS);
	draw(input, text + head, sizeof(text) - 1 - head);
	if (!runs_begin(&runs, text, low))
		return;
	before = runs;
	watermark_init(&mark, low);
	if (runs_write(&mark, &before, NOW_MS, again, &left_out)) {
		MUST(strlen(again) < sizeof(again));
		MUST(runs_begin(&copy, again, low));
	} else {
		copy = (struct runs){ 0 };
	}
	for (at = low; at - low < 1000 && at < INT64_MAX; at++) {
		bool done = runs_has(&runs, at, 0);

		/* There may be no room for all of it. */
		if (copy.text)
			MUST(done || !runs_has(&copy, at, 0));
	}
	watermark_free(&mark);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const tries[])(struct input *input) = {
		try_record, try_bucket, try_piece_key, try_piece, try_runs,
	};
	struct input input = { .data = data, .left = size };

	tries[draw_byte(&input) % ARRAY_SIZE(tries)](&input);
	return 0;
}
