/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Values of JSON from bytes that others have sent. What is written can stand in a page of HTML,
 * too: it has none of < > & and no control characters.
 */
#ifndef METRICS_JSON_H
#define METRICS_JSON_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A string. Bytes that are not UTF-8 become U+FFFD, one each. */
void json_bytes(FILE *out, const void *bytes, size_t len);
void json_text(FILE *out, const char *text);

/* A string of hexadecimal digits. */
void json_hex(FILE *out, const void *bytes, size_t len);

/* The length of the character of UTF-8 that the bytes begin with; 0: they begin with none. */
size_t json_utf8_len(const unsigned char *bytes, size_t len);

#endif /* METRICS_JSON_H */
