// SPDX-License-Identifier: GPL-2.0
/*
 * Stands in for http.c where libmicrohttpd is missing.
 */
#include <err.h>

#include "twheelctl/http.h"

enum status http_serve(const char *address, const char *debugfs)
{
	(void)address;
	(void)debugfs;
	warnx("--http: this twheelctl was built without libmicrohttpd");
	return STATUS_FAILURE;
}
