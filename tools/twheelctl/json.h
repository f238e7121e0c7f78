/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Lines of JSON.
 *
 * Ids, keys and values are strings of decimal digits, because many readers of JSON keep a
 * number as a double, which cannot hold 64 bits.
 */
#ifndef _TWHEELCTL_JSON_H
#define _TWHEELCTL_JSON_H

#include <stdio.h>
#include <jansson.h>
#include <linux/types.h>

json_t *json_u64(__u64 value);
json_t *json_seconds(__u64 ns);
json_t *json_time(__u64 ns);
void json_setup(void);
void json_write(json_t *object, FILE *out);
void json_line(json_t *object, FILE *out);

#endif /* _TWHEELCTL_JSON_H */
