/* SPDX-License-Identifier: GPL-2.0 */
/* Bytes as text, RFC 4648. */
#ifndef TWHEELQ_BASE64_H
#define TWHEELQ_BASE64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns a string for free(), or NULL: no memory. */
char *base64_encode(const void *bytes, size_t len);

/* The other way round; *@bytes is for free(). False if it is not of that form, or no memory. */
bool base64_decode(const char *text, size_t text_len, uint8_t **bytes, size_t *len);

#endif /* TWHEELQ_BASE64_H */
