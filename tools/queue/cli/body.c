// SPDX-License-Identifier: GPL-2.0
/* The body of a job: from the command line, a file or standard input; and shown to people. */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/exit.h"
#include "queue/cli/base64.h"
#include "queue/cli/body.h"
#include "queue/cli/person.h"

/* No daemon takes a longer one. */
#define BODY_MAX	(1UL << 30)
/* Bytes in a line of hex. */
#define LINE_BYTES	16

static void *grow(char *bytes, size_t size)
{
	bytes = realloc(bytes, size);
	if (!bytes)
		errx(EXIT_CANNOT, "out of memory");
	return bytes;
}

static struct body read_all(FILE *file, const char *name)
{
	struct body body = { .bytes = NULL };
	size_t size = 0;

	do {
		if (body.len == size) {
			size = size ? 2 * size : 65536;
			body.bytes = grow(body.bytes, size);
		}
		body.len += fread(body.bytes + body.len, 1, size - body.len, file);
		if (body.len > BODY_MAX)
			errx(EXIT_CANNOT, "%s has more than 1 GiB", name);
	} while (!feof(file) && !ferror(file));
	if (ferror(file))
		err(EXIT_CANNOT, "cannot read %s", name);
	return body;
}

struct body body_read(const char *operand, const char *name)
{
	struct body body;
	FILE *file;

	if (operand && strcmp(operand, "-")) {
		body.len = strlen(operand);
		body.bytes = grow(NULL, body.len + 1);
		memcpy(body.bytes, operand, body.len + 1);
		return body;
	}
	if (operand)
		return read_all(stdin, "standard input");
	file = fopen(name, "r");
	if (!file)
		err(EXIT_CANNOT, "cannot open %s", name);
	body = read_all(file, name);
	fclose(file);
	return body;
}

/* As "hexdump -C" has it. */
static void print_hex(const char *bytes, size_t len)
{
	size_t line, i;

	for (line = 0; line < len; line += LINE_BYTES) {
		printf("%08zx ", line);
		for (i = line; i < line + LINE_BYTES; i++) {
			fputs(i == line + LINE_BYTES / 2 ? "  " : " ", stdout);
			if (i < len)
				printf("%02x", (unsigned char)bytes[i]);
			else
				fputs("  ", stdout);
		}
		fputs("  |", stdout);
		for (i = line; i < line + LINE_BYTES && i < len; i++)
			putchar(bytes[i] >= ' ' && bytes[i] < 0x7f ? bytes[i] : '.');
		puts("|");
	}
}

void body_print(const char *bytes, size_t len)
{
	if (!person_is_text(bytes, len)) {
		print_hex(bytes, len);
		return;
	}
	fwrite(bytes, 1, len, stdout);
	if (len && bytes[len - 1] != '\n')
		putchar('\n');
}

void body_set_json(json_t *object, const char *name, const char *bytes, size_t len)
{
	json_t *string = json_stringn(bytes, len);
	char name64[16], *text;

	if (string) {
		json_object_set_new(object, name, string);
		return;
	}
	text = base64_encode(bytes, len);
	snprintf(name64, sizeof(name64), "%s64", name);
	json_object_set_new(object, name64, json_string(text));
	free(text);
}
