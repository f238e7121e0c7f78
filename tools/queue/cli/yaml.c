// SPDX-License-Identifier: GPL-2.0
/* The subset of YAML that the daemon and beanstalkd write. */
#include <stdio.h>
#include <string.h>

#include "common/text.h"
#include "queue/cli/yaml.h"

/* Would a terminal take this byte for a command? */
static bool is_control(unsigned int byte)
{
	return byte < ' ' || byte == 0x7f;
}

/* Remove the quotes of a value, in place; "\x41" is a byte, control bytes stay as they are. */
static char *unquote(char *value)
{
	char *to = value, *from = value + 1;
	unsigned int byte;
	int len;

	if (*value != '"')
		return value;
	while (*from && *from != '"') {
		len = 0;
		if (sscanf(from, "\\x%2x%n", &byte, &len) == 1 && len == 4) {
			if (is_control(byte))
				to = (char *)memmove(to, from, len) + len;
			else
				*to++ = byte;
			from += len;
			continue;
		}
		if (*from == '\\' && from[1])
			from++;
		*to++ = *from++;
	}
	*to = '\0';
	return value;
}

bool yaml_next(char **text, char **key, char **value)
{
	char *line, *colon;

	while ((line = strsep(text, "\n"))) {
		if (!strncmp(line, "- ", 2)) {
			*value = unquote(line + 2);
			*line = '\0';
			*key = line;
			return true;
		}
		colon = strstr(line, ": ");
		if (!colon)
			continue;
		*colon = '\0';
		*key = line;
		*value = unquote(colon + 2);
		return true;
	}
	return false;
}

json_t *yaml_string(char *value)
{
	json_t *string = json_string(value);

	if (string)
		return string;
	text_make_printable(value);
	return json_string(value);
}
