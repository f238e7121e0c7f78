/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Who may do what on a page: the token, and the headers Host and Origin. Pure.
 *
 * A browser that shows a page of somebody else may be made to send requests to this server. It
 * says in Origin whose page that is, and in Host which name it has looked up: so both are
 * checked. An address in place of a name cannot have been made to point here by others.
 */
#ifndef METRICS_GUARD_H
#define METRICS_GUARD_H

#include <stdbool.h>
#include <stddef.h>

/* A token has so many characters, all of them visible ones of ASCII. */
#define GUARD_TOKEN_MIN	16
#define GUARD_TOKEN_MAX	256

/*
 * Read the token of a file: its first line, the only one. Returns NULL and sets @token; or what
 * is wrong, a sentence that can follow the name of the file and a colon.
 */
const char *guard_read_token(const char *path, char token[GUARD_TOKEN_MAX + 1]);

/* May others than the owner and the group of the file read it? */
bool guard_others_may_read(const char *path);

/* Is this the token? It takes the same time for all tokens of one length. */
bool guard_is_token(const char *token, const char *given);

/* A name for guard_is_host(): does it look like one? */
bool guard_is_name(const char *name);

/*
 * Is @host, a header, an address, "localhost", the name of this machine, or @name, which may be
 * NULL? A port may follow.
 */
bool guard_is_host(const char *host, const char *name);

/* Does @origin, a header, name a page of this server: its host is @host, or @name? */
bool guard_is_origin(const char *origin, const char *host, const char *name);

#endif /* METRICS_GUARD_H */
