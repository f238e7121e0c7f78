/* SPDX-License-Identifier: GPL-2.0 */
/* The subset of YAML that the daemon and beanstalkd write: "key: value" and "- value". */
#ifndef QUEUE_CLI_YAML_H
#define QUEUE_CLI_YAML_H

#include <jansson.h>
#include <stdbool.h>

/*
 * Read the next line of *@text, which is overwritten. *@key is empty for a list item. The
 * quotes of a value are removed. Other lines are skipped. Returns false at the end.
 */
bool yaml_next(char **text, char **key, char **value);

/* The value as a string of JSON. If it is not UTF-8, "?" stand for all but ASCII, in @value too. */
json_t *yaml_string(char *value);

#endif /* QUEUE_CLI_YAML_H */
