// SPDX-License-Identifier: GPL-2.0
/*
 * Reads the wheels, which the module shows in debugfs.
 */
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "twheelctl/wheels.h"

#define BLANKS	" \t\n"

/* Returns @error, after it has set @why to a text that the caller frees. */
static __attribute__((format(printf, 3, 4)))
int fail(char **why, int error, const char *format, ...)
{
	va_list args;
	int len;

	va_start(args, format);
	len = vasprintf(why, format, args);
	va_end(args);
	if (len < 0)
		errx(EXIT_FAILURE, "out of memory for a message");
	return error;
}

/* The next blank-separated number of a line, in a base. */
static bool take_number(char **text, int base, __u64 *value)
{
	char *word, *end;

	do {
		word = strsep(text, BLANKS);
	} while (word && !*word);
	if (!word)
		return false;
	errno = 0;
	*value = strtoull(word, &end, base);
	return !errno && !*end;
}

static bool take_numbers(char **text, __u64 *values, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (!take_number(text, 10, &values[i]))
			return false;
	return true;
}

static bool take_next(char *value, struct wheel *wheel)
{
	value += strspn(value, BLANKS);
	if (!strncmp(value, "none", 4))
		return true;
	return take_number(&value, 10, &wheel->next);
}

static bool take_level(char *value, struct wheel *wheel)
{
	struct level *level;
	__u64 nr;

	if (!take_number(&value, 10, &nr) || nr >= WHEEL_LEVELS)
		return false;
	level = &wheel->level[nr];
	return take_number(&value, 16, &level->occupied) &&
	       take_number(&value, 16, &level->crowded) &&
	       take_number(&value, 10, &level->armed) &&
	       take_numbers(&value, level->count, WHEEL_SLOTS);
}

static bool take_field(struct wheel *wheel, const char *name, char *value)
{
	const struct {
		const char *name;
		__u64 *value;
	} numbers[] = {
		{ "tick_ns",	&wheel->tick_ns },
		{ "clk",	&wheel->clk },
		{ "now",	&wheel->now },
		{ "armed",	&wheel->armed },
		{ "online",	&wheel->online },
		{ "gap",	&wheel->gap },
		{ "interrupts",	&wheel->interrupts },
		{ "expired",	&wheel->expired },
		{ "postponed",	&wheel->postponed },
		{ "cascaded",	&wheel->cascaded },
	};

	if (!strcmp(name, "next"))
		return take_next(value, wheel);
	if (!strcmp(name, "level"))
		return take_level(value, wheel);
	if (!strcmp(name, "lateness"))
		return take_numbers(&value, wheel->lateness, WHEEL_LATENESS);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (!strcmp(name, numbers[i].name))
			return take_number(&value, 10, numbers[i].value);
	return true;
}

/* The file ends with the last level, and that line is whole. */
static bool is_last_line(const char *name, const char *value)
{
	return !strcmp(name, "level") && strtoul(value, NULL, 10) == WHEEL_LEVELS - 1 &&
	       strchr(value, '\n');
}

static int parse_wheel(struct wheel *wheel, FILE *file, const char *path, char **why)
{
	unsigned int number = 0;
	bool complete = false;
	char *line = NULL;
	size_t room = 0;
	int ret = 0;

	while (!ret && getline(&line, &room, file) >= 0) {
		char *value = line;
		const char *name = strsep(&value, ":");

		number++;
		complete = value && is_last_line(name, value);
		if (!value || !take_field(wheel, name, value))
			ret = fail(why, -EPROTO,
				   "%s:%u: \"%s\" is not readable: is twheelctl of another version?",
				   path, number, name);
	}
	if (!ret && !feof(file))
		ret = fail(why, -errno, "cannot read %s: %s", path, strerror(errno));
	if (!ret && !wheel->tick_ns)
		ret = fail(why, -EPROTO, "%s has no line \"tick_ns:\"", path);
	if (!ret && !complete)
		ret = fail(why, -EPROTO, "%s ends before the last level", path);
	free(line);
	return ret;
}

static int read_wheel(struct wheel *wheel, const char *directory,
		      const char *name, char **why)
{
	char path[4096];
	FILE *file;
	int ret;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "re");
	if (!file)
		return fail(why, -errno, "cannot open %s: %s", path, strerror(errno));
	ret = parse_wheel(wheel, file, path, why);
	fclose(file);
	return ret;
}

/* Returns whether a file's name is cpu<N>-<clock> or cpu<N>-<clock>-<kind>. */
static bool parse_name(const char *name, struct wheel *wheel)
{
	int end = 0, kind_end = 0;

	if (sscanf(name, "cpu%u-%15[a-z]%n", &wheel->cpu, wheel->clock, &end) != 2)
		return false;
	name += end;
	if (sscanf(name, "-%15[a-z]%n", wheel->kind, &kind_end) != 1)
		strcpy(wheel->kind, WHEEL_PLAIN);
	return !name[kind_end];
}

static int read_all(struct wheels *wheels, DIR *dir, const char *directory, char **why)
{
	const struct dirent *file;
	int ret = 0;

	while (!ret && (file = readdir(dir))) {
		struct wheel wheel = { .online = true };
		struct wheel *all;

		if (!parse_name(file->d_name, &wheel))
			continue;
		ret = read_wheel(&wheel, directory, file->d_name, why);
		all = reallocarray(wheels->wheel, wheels->nr + 1, sizeof(*all));
		if (!all)
			errx(EXIT_FAILURE, "out of memory for the wheels");
		wheels->wheel = all;
		wheels->wheel[wheels->nr++] = wheel;
	}
	return ret;
}

/* Plain events come first. */
static int compare_kinds(const char *a, const char *b)
{
	int plain = !strcmp(b, WHEEL_PLAIN) - !strcmp(a, WHEEL_PLAIN);

	return plain ?: strcmp(a, b);
}

static int compare_wheels(const void *a, const void *b)
{
	const struct wheel *left = a, *right = b;

	if (left->cpu != right->cpu)
		return left->cpu < right->cpu ? -1 : 1;
	return strcmp(left->clock, right->clock) ?: compare_kinds(left->kind, right->kind);
}

static const char *open_advice(int error)
{
	switch (error) {
	case ENOENT:
		return "\nThe module twheel is not loaded, or debugfs is not mounted. As root:\n"
		       "    modprobe twheel\n"
		       "    mount -t debugfs none /sys/kernel/debug";
	case EACCES:
		return "\nOnly root can read debugfs: run this as root.";
	default:
		return "";
	}
}

/*
 * Read all wheels.
 *
 * @directory: where the module shows them.
 * @why: set if that fails: the reason as text, which the caller frees.
 *
 * Return: 0 or a negative errno.
 */
int wheels_try_read(struct wheels *wheels, const char *directory, char **why)
{
	DIR *dir = opendir(directory);
	int ret;

	*wheels = (struct wheels){ 0 };
	if (!dir)
		return fail(why, -errno, "cannot open %s: %s%s", directory,
			    strerror(errno), open_advice(errno));
	ret = read_all(wheels, dir, directory, why);
	closedir(dir);
	if (ret)
		wheels_free(wheels);
	else if (wheels->nr)
		qsort(wheels->wheel, wheels->nr, sizeof(*wheels->wheel),
		      compare_wheels);
	return ret;
}

/*
 * Read all wheels, and report a failure.
 *
 * Return: 0 or a negative errno.
 */
int wheels_read(struct wheels *wheels, const char *directory)
{
	char *why;
	int ret = wheels_try_read(wheels, directory, &why);

	if (ret) {
		warnx("%s", why);
		free(why);
	}
	return ret;
}

void wheels_free(struct wheels *wheels)
{
	free(wheels->wheel);
	*wheels = (struct wheels){ 0 };
}

/* The number of interrupts of all wheels. */
__u64 wheels_interrupts(const struct wheels *wheels)
{
	__u64 sum = 0;

	for (size_t i = 0; i < wheels->nr; i++)
		sum += wheels->wheel[i].interrupts;
	return sum;
}
