// SPDX-License-Identifier: GPL-2.0
/* Errors of RocksDB: damage, and errors that end the process. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "queue/store/dir.h"
#include "queue/store/fault.h"
#include "queue/store/state.h"

void store_shorten_paths(char *text)
{
	char *end;

	while ((text = strstr(text, STORE_FD_PATHS))) {
		end = text + strlen(STORE_FD_PATHS);
		end += strspn(end, "0123456789");
		end += *end == '/';
		memmove(text, end, strlen(end) + 1);
	}
}

void store_say(const struct store *store, int priority, const char *format, ...)
{
	va_list args;
	char *text;
	int len;

	va_start(args, format);
	len = vasprintf(&text, format, args);
	va_end(args);
	if (len < 0)
		return;
	store_shorten_paths(text);
	store->config.log(priority, "%s", text);
	free(text);
}

void store_die(struct store *store, const char *what, const char *error)
{
	store_say(store, LOG_ERR, "%s: %s: %s; commands without a reply may be lost",
		  store->dir, what, error);
	/* A compaction has found damage. */
	if (strstr(error, "Corruption"))
		store_mark_damage(store, what);
	_exit(STORE_EXIT_IO);
}

/* An error for lack of files or memory is temporary, and is not damage. */
bool store_is_damage(const char *error)
{
	return !error || strstr(error, "Corruption") || strstr(error, "Input/output error");
}

/* Errors have paths, which may have the word alone. */
bool store_is_quota(const char *error)
{
	return strstr(error, ": Disk quota exceeded");
}

bool store_is_no_space(const char *error)
{
	return strstr(error, "No space left on device") || strstr(error, "Space limit reached") ||
		store_is_quota(error);
}

int store_errno(const char *error)
{
	if (store_is_no_space(error))
		return -ENOSPC;
	if (store_is_damage(error) || strstr(error, "No such file") || !strstr(error, "IO error"))
		return -EBADMSG;
	return -EIO;
}

/* If the mark cannot be written, the next damage tries again. */
void store_mark_damage(struct store *store, const char *what)
{
	if (!store->served)
		return;
	store->damaged = true;
	if (!atomic_exchange(&store->marked, true) && !store_dir_mark(store, what))
		store->marked = false;
}

bool store_is_damaged(const struct store *store)
{
	return store->damaged;
}

int store_damaged(struct store *store, const char *what, char *error)
{
	bool damage = store_is_damage(error);

	store_say(store, LOG_ERR, "%s: %s: %s: %s", store->dir,
		  damage ? "damaged" : "cannot be read", what,
		  error ? error : "its contents are not valid");
	if (damage)
		store_mark_damage(store, what);
	rocksdb_free(error);
	return damage ? -EBADMSG : -EIO;
}

int store_unread(struct store *store, const char *what, char *error)
{
	char text[64];

	if (!store->served || store_is_damage(error))
		return store_damaged(store, what, error);
	snprintf(text, sizeof(text), "cannot read %s", what);
	store_die(store, text, error);
}
