/* SPDX-License-Identifier: GPL-2.0 */
/*
 * As much YAML as the daemon and beanstalkd write: lines of "key: value", or of "- value".
 */
#ifndef TWHEELQ_YAML_H
#define TWHEELQ_YAML_H

#include <stdbool.h>

/*
 * Take the next line off *@text, which is written over. *@key is empty in a list. Quotes
 * of a value are gone. Lines that are neither are left out. Returns false at the end.
 */
bool yaml_next(char **text, char **key, char **value);

#endif /* TWHEELQ_YAML_H */
