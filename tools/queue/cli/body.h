/* SPDX-License-Identifier: GPL-2.0 */
/* The body of a job: from the command line, a file or standard input; and shown to people. */
#ifndef QUEUE_CLI_BODY_H
#define QUEUE_CLI_BODY_H

#include <jansson.h>
#include <stddef.h>

/**
 * struct body - the bytes of a job
 * @bytes: the bytes.
 * @len: their number.
 */
struct body {
	char *bytes;
	size_t len;
};

/*
 * The body that an operand is, with "-" for standard input; or without one, that of a file. Ends
 * the program if it cannot be read. The caller frees the bytes.
 */
struct body body_read(const char *operand, const char *file);

/* Print a body: as it is if it is text, else in hex. */
void body_print(const char *bytes, size_t len);

/* Set a member of @object to these bytes; if they are not UTF-8, NAME64 to their base64. */
void body_set_json(json_t *object, const char *name, const char *bytes, size_t len);

#endif /* QUEUE_CLI_BODY_H */
