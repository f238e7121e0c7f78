/* SPDX-License-Identifier: GPL-2.0 */
/* The files of the page, which the program holds. */
#ifndef METRICS_FILES_H
#define METRICS_FILES_H

#include <stddef.h>

/**
 * struct site_file - a file
 * @path: of its URL.
 * @type: its Content-Type.
 * @start: its first byte.
 * @end: behind its last one.
 */
struct site_file {
	const char *path;
	const char *type;
	const char *start;
	const char *end;
};

/* The file of a path, or NULL. */
const struct site_file *site_file(const char *path);

#endif /* METRICS_FILES_H */
