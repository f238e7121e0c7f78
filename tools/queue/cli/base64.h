/* SPDX-License-Identifier: GPL-2.0 */
/* Base64, RFC 4648. */
#ifndef QUEUE_CLI_BASE64_H
#define QUEUE_CLI_BASE64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns a string that the caller frees, or NULL without memory. */
char *base64_encode(const void *bytes, size_t len);

/* The caller frees *@bytes. Returns false if @text is not base64, or without memory. */
bool base64_decode(const char *text, size_t text_len, uint8_t **bytes, size_t *len);

#endif /* QUEUE_CLI_BASE64_H */
