// SPDX-License-Identifier: GPL-2.0
/* The output of a client: bytes are sent in order, and not before the disk has their change. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/device/harness.h"
#include "queue/server/output.h"

static void append(struct output *output, uint64_t seq, uint64_t synced, const char *text)
{
	const struct iovec part = { (void *)text, strlen(text) };

	ASSERT(output_append(output, seq, synced, &part, 1));
}

/* Exactly these bytes may be sent. */
static void expect(struct output *output, uint64_t synced, const char *text)
{
	size_t len = output_sendable(output, synced);

	ASSERT_EQ(len, strlen(text));
	ASSERT(!len || !memcmp(output_data(output), text, len));
}

TEST(bytes_whose_change_is_on_disk_may_be_sent_at_once)
{
	struct output output = { 0 };

	append(&output, 0, 5, "a");
	append(&output, 5, 5, "b");
	expect(&output, 5, "ab");
	output_free(&output);
}

TEST(bytes_wait_until_their_change_is_on_disk)
{
	struct output output = { 0 };

	append(&output, 6, 5, "a");
	expect(&output, 5, "");
	expect(&output, 6, "a");
	output_free(&output);
}

TEST(bytes_wait_for_the_bytes_before_them)
{
	struct output output = { 0 };

	append(&output, 6, 5, "a");
	append(&output, 0, 5, "b");
	append(&output, 7, 5, "c");
	append(&output, 0, 5, "d");
	expect(&output, 5, "");
	expect(&output, 6, "ab");
	output_sent(&output, 2);
	expect(&output, 6, "");
	expect(&output, 7, "cd");
	output_free(&output);
}

TEST(a_part_may_be_sent_and_more_appended)
{
	struct output output = { 0 };

	append(&output, 0, 0, "abc");
	append(&output, 9, 0, "def");
	expect(&output, 0, "abc");
	output_sent(&output, 1);
	expect(&output, 0, "bc");
	append(&output, 0, 0, "ghi");
	expect(&output, 0, "bc");
	output_sent(&output, 2);
	expect(&output, 9, "defghi");
	output_free(&output);
}

TEST(an_empty_output_has_no_memory)
{
	struct output output = { 0 };

	ASSERT_EQ(output_memory(&output), 0);
	append(&output, 1, 0, "abc");
	ASSERT_GT(output_memory(&output), 0);
	ASSERT_EQ(output_sendable(&output, 1), 3);
	output_sent(&output, 3);
	ASSERT_EQ(output_memory(&output), 0);
}

/* The model: a string, and for each byte the change that it waits for. */
#define MODEL_BYTES	200000

struct model {
	char bytes[MODEL_BYTES];
	uint64_t seq[MODEL_BYTES];
	size_t sent;
	size_t len;
};

static void model_append(struct model *model, struct output *output, uint64_t seq,
			 uint64_t synced)
{
	static char text[4096];
	size_t len = 1 + rand() % (rand() % 100 ? 40 : sizeof(text) - 1);
	const struct iovec parts[] = { { text, len / 2 }, { text + len / 2, len - len / 2 } };
	size_t i;

	if (model->len + len > MODEL_BYTES)
		return;
	for (i = 0; i < len; i++) {
		text[i] = rand();
		model->bytes[model->len] = text[i];
		model->seq[model->len] = model->len && model->seq[model->len - 1] > seq ?
			model->seq[model->len - 1] : seq;
		model->len++;
	}
	ASSERT(output_append(output, seq, synced, parts, 2));
}

static void model_send(struct model *model, struct output *output, uint64_t synced)
{
	size_t len = output_sendable(output, synced);
	size_t expected = model->sent;

	while (expected < model->len && model->seq[expected] <= synced)
		expected++;
	ASSERT_EQ(len, expected - model->sent);
	if (!len)
		return;
	ASSERT(!memcmp(output_data(output), model->bytes + model->sent, len));
	len = rand() % (len + 1);
	output_sent(output, len);
	model->sent += len;
}

TEST(it_agrees_with_a_plain_model)
{
	static struct model model;
	struct output output = { 0 };
	uint64_t seq = 1, synced = 0;
	int i;

	srand(1);
	for (i = 0; i < 20000; i++) {
		if (rand() % 3 == 0)
			seq++;
		if (rand() % 3 == 0)
			synced += rand() % (seq - synced + 1);
		model_append(&model, &output, rand() % 2 ? seq : 0, synced);
		model_send(&model, &output, synced);
	}
	ASSERT_GT(model.sent, MODEL_BYTES / 2);
	output_free(&output);
}
