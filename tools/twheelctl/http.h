/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Serves the page of metrics over HTTP. It is http.c where libmicrohttpd is there, and else
 * no_http.c, which says so.
 */
#ifndef _TWHEELCTL_HTTP_H
#define _TWHEELCTL_HTTP_H

#include "twheelctl/command.h"

/* Serve the wheels of a directory at an address until a signal ends it. */
enum status http_serve(const char *address, const char *debugfs);

#endif /* _TWHEELCTL_HTTP_H */
