// SPDX-License-Identifier: GPL-2.0
/* Writing YAML. */
#include <stdlib.h>

#include "common/time.h"
#include "queue/protocol/yaml.h"

bool yaml_begin(struct yaml *yaml, struct peer *peer)
{
	yaml->file = open_memstream(&yaml->text, &yaml->len);
	if (!yaml->file) {
		peer_say(peer, 0, "OUT_OF_MEMORY");
		return false;
	}
	fputs("---\n", yaml->file);
	return true;
}

void yaml_say(struct yaml *yaml, struct peer *peer, uint64_t seq)
{
	char line[64];

	if (fclose(yaml->file)) {
		peer_say(peer, 0, "OUT_OF_MEMORY");
	} else {
		snprintf(line, sizeof(line), "OK %zu\r\n", yaml->len);
		peer->ops->reply(peer, seq, line, yaml->text, yaml->len);
	}
	free(yaml->text);
}

void yaml_number(struct yaml *yaml, const char *key, uint64_t number)
{
	fprintf(yaml->file, "%s: %llu\n", key, (unsigned long long)number);
}

void yaml_word(struct yaml *yaml, const char *key, const char *word)
{
	fprintf(yaml->file, "%s: %s\n", key, word);
}

void yaml_text(struct yaml *yaml, const char *key, const char *text, size_t len)
{
	size_t i;

	fprintf(yaml->file, "%s: \"", key);
	for (i = 0; i < len; i++) {
		unsigned char c = text[i];

		if (c == '"' || c == '\\')
			fprintf(yaml->file, "\\%c", c);
		else if (c < ' ' || c >= 0x7f)
			fprintf(yaml->file, "\\x%02x", c);
		else
			fputc(c, yaml->file);
	}
	fputs("\"\n", yaml->file);
}

void yaml_seconds(struct yaml *yaml, const char *key, uint64_t ns)
{
	yaml_number(yaml, key, ns / NSEC_PER_SEC);
}

void yaml_item(struct yaml *yaml, const char *word)
{
	fprintf(yaml->file, "- %s\n", word);
}
