// SPDX-License-Identifier: GPL-2.0
/* A file of settings of librdkafka. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/exit.h"
#include "relay/client/config.h"

/* The text without the white space at both ends. */
static char *trim(char *text)
{
	char *end = text + strlen(text);

	while (end > text && isspace((unsigned char)end[-1]))
		end--;
	*end = '\0';
	while (isspace((unsigned char)*text))
		text++;
	return text;
}

/* A copy of a line as a setting; NULL: out of memory. */
static struct relay_setting *new_setting(const char *line)
{
	struct relay_setting *setting = malloc(sizeof(*setting) + strlen(line) + 1);

	if (!setting)
		return NULL;
	*setting = (struct relay_setting){ .name = setting->text };
	strcpy(setting->text, line);
	return setting;
}

/* Split NAME=VALUE; false: it is not that. */
static bool split(struct relay_setting *setting)
{
	char *equals = strchr(setting->text, '=');

	if (!equals)
		return false;
	*equals = '\0';
	setting->name = trim(setting->text);
	setting->value = trim(equals + 1);
	return *setting->name && !strpbrk(setting->name, " \t");
}

/* Returns what is wrong with a line, or NULL. */
static const char *take_line(struct relay_settings *settings, char *line, size_t len,
			     const char *path, unsigned int number)
{
	struct relay_setting *setting;

	if (strlen(line) != len)
		return "this is not text";
	line = trim(line);
	if (!*line || *line == '#')
		return NULL;
	setting = new_setting(line);
	if (!setting)
		return strerror(ENOMEM);
	setting->path = path;
	setting->line = number;
	if (split(setting)) {
		STAILQ_INSERT_TAIL(settings, setting, entry);
		return NULL;
	}
	free(setting);
	return "this is not NAME=VALUE";
}

static int take_lines(FILE *file, const char *path, struct relay_settings *settings,
		      char why[RELAY_CONFIG_WHY])
{
	unsigned int number = 0;
	const char *wrong = NULL;
	char *line = NULL;
	size_t size = 0;
	ssize_t len;

	while (!wrong && (len = getline(&line, &size, file)) >= 0)
		wrong = take_line(settings, line, len, path, ++number);
	free(line);
	if (wrong) {
		snprintf(why, RELAY_CONFIG_WHY, "%s:%u: %s", path, number, wrong);
		return EXIT_USAGE;
	}
	if (ferror(file)) {
		snprintf(why, RELAY_CONFIG_WHY, "cannot read %s: %s", path, strerror(errno));
		return EXIT_CANNOT;
	}
	return 0;
}

int relay_config_read(const char *path, struct relay_settings *settings,
		      char why[RELAY_CONFIG_WHY])
{
	FILE *file = fopen(path, "re");
	int status;

	if (!file) {
		snprintf(why, RELAY_CONFIG_WHY, "cannot open %s: %s", path, strerror(errno));
		return EXIT_CANNOT;
	}
	status = take_lines(file, path, settings, why);
	fclose(file);
	return status;
}

bool relay_config_is_open(const char *path)
{
	struct stat status;

	return !stat(path, &status) && S_ISREG(status.st_mode) && (status.st_mode & 0004);
}
