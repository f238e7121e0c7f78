// SPDX-License-Identifier: GPL-2.0
/* Arguments of options, for several subcommands. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "log.h"
#include "arguments.h"
#include "util.h"

/* Digits, and K, M or G. */
static bool parse_size(const char *text, uint64_t *size)
{
	static const char units[] = "KMG";
	unsigned long long value;
	uint64_t unit = 1;
	const char *which;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || end == text || strspn(text, "0123456789") != (size_t)(end - text))
		return false;
	which = *end ? strchr(units, *end) : NULL;
	if (which) {
		unit = KIB << (10 * (which - units));
		end++;
	}
	*size = value * unit;
	return !*end && value <= INT64_MAX / unit;
}

void take_size(struct argp_state *state, const char *option, const char *arg,
	       uint64_t min, uint64_t max, uint64_t *size)
{
	if (!parse_size(arg, size))
		argp_error(state, "--%s \"%s\" is no size, such as 65535 or 256M", option, arg);
	if (*size < min || *size > max)
		argp_error(state, "--%s %s is not from %llu to %llu", option, arg,
			   (unsigned long long)min, (unsigned long long)max);
}

void take_count(struct argp_state *state, const char *option, const char *arg,
		uint64_t min, uint64_t max, uint64_t *count)
{
	char *end;

	errno = 0;
	*count = strtoull(arg, &end, 10);
	if (errno || end == arg || strspn(arg, "0123456789") != strlen(arg))
		argp_error(state, "--%s \"%s\" is no number", option, arg);
	if (*count < min || *count > max)
		argp_error(state, "--%s %s is not from %llu to %llu", option, arg,
			   (unsigned long long)min, (unsigned long long)max);
}

void take_duration(struct argp_state *state, const char *option, const char *arg,
		   uint64_t *ns)
{
	if (!command_duration(arg, ns) || !*ns)
		argp_error(state, "--%s \"%s\" is no time, such as 50ms, 10m or 2h", option, arg);
}

enum alarm_make take_wheel(struct argp_state *state, const char *arg)
{
	static const char *const makes[] = {
		[ALARM_AUTO] = "auto",
		[ALARM_DEVICE] = "device",
		[ALARM_PROCESS] = "process",
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(makes); i++)
		if (!strcmp(arg, makes[i]))
			return i;
	argp_error(state, "--wheel \"%s\" is not auto, device or process", arg);
	return ALARM_AUTO;
}

int take_log_level(struct argp_state *state, const char *arg)
{
	int level = log_level_parse(arg);

	if (level < 0)
		argp_error(state, "--log-level \"%s\" is not error, warning, notice, info or debug",
			   arg);
	return level;
}
