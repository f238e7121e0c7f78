// SPDX-License-Identifier: GPL-2.0
/* The option --wheel of programs that have alarms. */
#include <string.h>

#include "alarm/options.h"
#include "common/util.h"

enum alarm_backend alarm_backend_option(struct argp_state *state, const char *arg)
{
	static const char *const names[] = {
		[ALARM_AUTO] = "auto",
		[ALARM_DEVICE] = "device",
		[ALARM_PROCESS] = "process",
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(arg, names[i]))
			return i;
	argp_error(state, "--wheel \"%s\" is not auto, device or process", arg);
	return ALARM_AUTO;
}
