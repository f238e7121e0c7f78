// SPDX-License-Identifier: GPL-2.0
/* Base64, RFC 4648: three bytes become four letters; `=` pads the last four. */
#include <stdlib.h>
#include <string.h>

#include "queue/cli/base64.h"

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *base64_encode(const void *bytes, size_t len)
{
	const uint8_t *at = bytes;
	char *text = malloc(len / 3 * 4 + 5), *out = text;
	uint32_t three;
	size_t n;

	if (!text)
		return NULL;
	for (; len; len -= n, at += n) {
		n = len < 3 ? len : 3;
		three = (uint32_t)at[0] << 16 | (n > 1 ? at[1] << 8 : 0) | (n > 2 ? at[2] : 0);
		*out++ = letters[three >> 18];
		*out++ = letters[three >> 12 & 63];
		*out++ = n > 1 ? letters[three >> 6 & 63] : '=';
		*out++ = n > 2 ? letters[three & 63] : '=';
	}
	*out = 0;
	return text;
}

static int value_of(char letter)
{
	const char *found = letter ? strchr(letters, letter) : NULL;

	return found ? (int)(found - letters) : -1;
}

static bool decode_four(const char *text, size_t letters_there, uint8_t *out)
{
	uint32_t three = 0;
	size_t i;
	int value;

	for (i = 0; i < 4; i++) {
		value = i < letters_there ? value_of(text[i]) : 0;
		if (value < 0)
			return false;
		three = three << 6 | (uint32_t)value;
	}
	out[0] = (uint8_t)(three >> 16);
	out[1] = (uint8_t)(three >> 8);
	out[2] = (uint8_t)three;
	return true;
}

bool base64_decode(const char *text, size_t text_len, uint8_t **bytes, size_t *len)
{
	size_t fill = 0, i;

	if (text_len % 4)
		return false;
	while (fill < 2 && fill < text_len && text[text_len - 1 - fill] == '=')
		fill++;
	*len = text_len / 4 * 3 - fill;
	*bytes = malloc(text_len / 4 * 3 + 1);
	if (!*bytes)
		return false;
	for (i = 0; i < text_len; i += 4) {
		size_t there = i + 4 == text_len ? 4 - fill : 4;

		if (!decode_four(text + i, there, *bytes + i / 4 * 3)) {
			free(*bytes);
			*bytes = NULL;
			return false;
		}
	}
	return true;
}
