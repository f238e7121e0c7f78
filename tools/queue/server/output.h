/* SPDX-License-Identifier: GPL-2.0 */
/* The output of a client: bytes in order, some of which wait for the disk. */
#ifndef QUEUE_SERVER_OUTPUT_H
#define QUEUE_SERVER_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* Bytes up to @end, counted from the first byte ever appended, wait for @seq. */
struct output_mark {
	uint64_t seq;
	uint64_t end;
};

/**
 * struct output - bytes for a client; zeros are an empty one
 *
 *	      sent        released        marks[0].end          sent + len
 *	 - - - - |-------------|------------------|-------- ... -----|
 *	  gone     may be sent   wait for its seq   wait for more
 *
 * @data: the memory; NULL while it is empty.
 * @start: the index of the first unsent byte.
 * @len: the number of unsent bytes.
 * @size: bytes of memory of @data.
 * @sent: the number of bytes ever sent.
 * @released: the end of the bytes that may be sent, counted like @sent.
 * @marks: the changes that the other bytes wait for; @seq and @end ascend.
 * @nr_marks: number of marks.
 * @max_marks: room of @marks.
 */
struct output {
	char *data;
	size_t start;
	size_t len;
	size_t size;
	uint64_t sent;
	uint64_t released;
	struct output_mark *marks;
	size_t nr_marks;
	size_t max_marks;
};

/*
 * Append bytes that wait until change @seq is on disk, as all bytes behind them do. @synced is
 * the last change on disk. Returns false without memory; then nothing is appended.
 */
bool output_append(struct output *output, uint64_t seq, uint64_t synced,
		   const struct iovec *parts, size_t nr_parts);

/* The number of bytes that may be sent when @synced is on disk, and these bytes. */
size_t output_sendable(struct output *output, uint64_t synced);
const char *output_data(const struct output *output);

/* @len bytes were sent. When none are left, the memory is freed. */
void output_sent(struct output *output, size_t len);

void output_free(struct output *output);

/* The memory that it takes. */
size_t output_memory(const struct output *output);

#endif /* QUEUE_SERVER_OUTPUT_H */
