/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is to be sent to a client: bytes in order, of which some wait for the disk.
 */
#ifndef TWHEELQ_OUTPUT_H
#define TWHEELQ_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* Bytes up to @end, counted from the first that there ever was, wait for @seq. */
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
 * @data: the memory; NULL while there is nothing to send.
 * @start: where in it the first unsent byte is.
 * @len: how many bytes are not sent.
 * @size: bytes of @data.
 * @sent: how many were sent, ever.
 * @released: up to where they may be sent.
 * @marks: what the others wait for; their numbers and ends grow.
 * @nr_marks: how many.
 * @max_marks: for how many there is room.
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
 * Append bytes that wait until @seq is on disk, as all bytes after them do; @synced is what
 * is there already. False: no memory, and nothing was appended.
 */
bool output_append(struct output *output, uint64_t seq, uint64_t synced,
		   const struct iovec *parts, size_t nr_parts);

/* How many bytes may be sent now that @synced is on disk; and where they are. */
size_t output_sendable(struct output *output, uint64_t synced);
const char *output_data(const struct output *output);

/* So many bytes were sent. Memory is given back when none are left. */
void output_sent(struct output *output, size_t len);

void output_free(struct output *output);

/* What it takes. */
size_t output_memory(const struct output *output);

#endif /* TWHEELQ_OUTPUT_H */
