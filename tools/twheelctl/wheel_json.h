/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A wheel as JSON.
 */
#ifndef _TWHEELCTL_WHEEL_JSON_H
#define _TWHEELCTL_WHEEL_JSON_H

#include <jansson.h>
#include <stdbool.h>

#include "twheelctl/wheels.h"

json_t *wheel_json(const struct wheel *wheel, bool all_levels);

#endif /* _TWHEELCTL_WHEEL_JSON_H */
