// SPDX-License-Identifier: GPL-2.0
/* Values of JSON from bytes that others have sent. */
#include <string.h>

#include "metrics/json.h"

/* The least code point of a character of that many bytes: shorter forms are not UTF-8. */
static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };

static size_t expected_len(unsigned char first)
{
	if (first < 0x80)
		return 1;
	if (first >> 5 == 0x6)
		return 2;
	if (first >> 4 == 0xe)
		return 3;
	return first >> 3 == 0x1e ? 4 : 0;
}

size_t json_utf8_len(const unsigned char *bytes, size_t len)
{
	size_t want = len ? expected_len(bytes[0]) : 0, i;
	uint32_t code;

	if (want < 2)
		return want;
	if (want > len)
		return 0;
	code = bytes[0] & (0x7f >> want);
	for (i = 1; i < want; i++) {
		if (bytes[i] >> 6 != 0x2)
			return 0;
		code = code << 6 | (bytes[i] & 0x3f);
	}
	if (code < least[want] || code > 0x10ffff || code >> 11 == 0xd800 >> 11)
		return 0;
	return want;
}

static void write_ascii(FILE *out, unsigned char c)
{
	if (c == '"' || c == '\\')
		fprintf(out, "\\%c", c);
	else if (c < ' ' || c == 0x7f || c == '<' || c == '>' || c == '&')
		fprintf(out, "\\u%04x", c);
	else
		fputc(c, out);
}

void json_bytes(FILE *out, const void *from, size_t len)
{
	const unsigned char *bytes = from;
	size_t n;

	fputc('"', out);
	for (; len; bytes += n, len -= n) {
		n = json_utf8_len(bytes, len);
		if (n == 1) {
			write_ascii(out, *bytes);
		} else if (n) {
			fwrite(bytes, 1, n, out);
		} else {
			fputs("\\ufffd", out);
			n = 1;
		}
	}
	fputc('"', out);
}

void json_text(FILE *out, const char *text)
{
	json_bytes(out, text, strlen(text));
}

void json_hex(FILE *out, const void *from, size_t len)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *bytes = from;
	size_t i;

	fputc('"', out);
	for (i = 0; i < len; i++) {
		fputc(digits[bytes[i] >> 4], out);
		fputc(digits[bytes[i] & 0xf], out);
	}
	fputc('"', out);
}
