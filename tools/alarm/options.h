/* SPDX-License-Identifier: GPL-2.0 */
/* The option --wheel of programs that have alarms. */
#ifndef ALARM_OPTIONS_H
#define ALARM_OPTIONS_H

#include <argp.h>

#include "alarm/alarm.h"

/* Parse "auto", "device" or "process"; any other text is a usage error. */
enum alarm_backend alarm_backend_option(struct argp_state *state, const char *arg);

#endif /* ALARM_OPTIONS_H */
