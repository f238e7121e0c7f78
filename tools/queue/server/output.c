// SPDX-License-Identifier: GPL-2.0
/* The output of a client: bytes in order, some of which wait for the disk. */
#include <stdlib.h>
#include <string.h>

#include "queue/server/output.h"

/* The first size; the size doubles up to the second. */
#define OUTPUT_SIZE_MIN		512
#define OUTPUT_SIZE_DOUBLES	(256 * 1024)

#define OUTPUT_MARKS_MIN	4

static size_t next_size(size_t size, size_t needed)
{
	if (size < OUTPUT_SIZE_MIN)
		size = OUTPUT_SIZE_MIN;
	while (size < needed && size < OUTPUT_SIZE_DOUBLES)
		size *= 2;
	return size < needed ? needed + needed / 4 : size;
}

/* Make room for @len more bytes. */
static bool output_make_room(struct output *output, size_t len)
{
	size_t needed = output->len + len;
	size_t size;
	char *data;

	if (output->start + needed <= output->size)
		return true;
	if (needed <= output->size) {
		memmove(output->data, output->data + output->start, output->len);
		output->start = 0;
		return true;
	}
	size = next_size(output->size, needed);
	data = malloc(size);
	if (!data)
		return false;
	if (output->len)
		memcpy(data, output->data + output->start, output->len);
	free(output->data);
	output->data = data;
	output->size = size;
	output->start = 0;
	return true;
}

static bool make_room_for_mark(struct output *output)
{
	size_t max = output->max_marks ? output->max_marks * 2 : OUTPUT_MARKS_MIN;
	struct output_mark *marks;

	if (output->nr_marks < output->max_marks)
		return true;
	marks = reallocarray(output->marks, max, sizeof(*marks));
	if (!marks)
		return false;
	output->marks = marks;
	output->max_marks = max;
	return true;
}

/* Bytes wait at least for what the bytes before them wait for: the marks ascend. */
static bool add_mark(struct output *output, uint64_t seq, uint64_t synced, uint64_t end)
{
	struct output_mark *last;

	if (!output->nr_marks && seq <= synced) {
		output->released = end;
		return true;
	}
	last = output->nr_marks ? &output->marks[output->nr_marks - 1] : NULL;
	if (last && seq <= last->seq) {
		last->end = end;
		return true;
	}
	if (!make_room_for_mark(output))
		return false;
	output->marks[output->nr_marks++] = (struct output_mark){ .seq = seq, .end = end };
	return true;
}

bool output_append(struct output *output, uint64_t seq, uint64_t synced,
		   const struct iovec *parts, size_t nr_parts)
{
	size_t len = 0;
	size_t i;

	for (i = 0; i < nr_parts; i++)
		len += parts[i].iov_len;
	if (!output_make_room(output, len) ||
	    !add_mark(output, seq, synced, output->sent + output->len + len))
		return false;
	for (i = 0; i < nr_parts; i++) {
		if (parts[i].iov_len)
			memcpy(output->data + output->start + output->len,
			       parts[i].iov_base, parts[i].iov_len);
		output->len += parts[i].iov_len;
	}
	return true;
}

size_t output_sendable(struct output *output, uint64_t synced)
{
	size_t nr;

	for (nr = 0; nr < output->nr_marks && output->marks[nr].seq <= synced; nr++)
		output->released = output->marks[nr].end;
	if (nr) {
		output->nr_marks -= nr;
		memmove(output->marks, output->marks + nr,
			output->nr_marks * sizeof(*output->marks));
	}
	return output->released - output->sent;
}

const char *output_data(const struct output *output)
{
	return output->data + output->start;
}

void output_sent(struct output *output, size_t len)
{
	output->start += len;
	output->len -= len;
	output->sent += len;
	if (!output->len)
		output_free(output);
}

void output_free(struct output *output)
{
	free(output->data);
	free(output->marks);
	*output = (struct output){ .sent = output->sent, .released = output->sent };
}

size_t output_memory(const struct output *output)
{
	return output->size + output->max_marks * sizeof(*output->marks);
}
