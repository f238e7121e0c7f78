// SPDX-License-Identifier: GPL-2.0
/*
 * Pieces of a store whose list of files is damaged, so that RocksDB cannot open it.
 *
 * RocksDB's repair makes a new list of the tables that it can read, and writes the readable
 * records of the logs to tables. Here it works on hard links, so the files are not changed.
 *
 * The new list does not tell which of two tables is newer if their changes overlap in time,
 * as is normal after compactions, and RocksDB refuses such a list. Then each file becomes a
 * store of its own, a piece, and the pieces are opened in the order of their last changes. An
 * entry that is in several pieces is copied from the last one. That may be an older state of
 * a job, and a deleted job may be back; it is then delivered again.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "queue/integrity/pieces.h"
#include "queue/store/fault.h"
#include "queue/store/state.h"

#define PIECES		"db.pieces"
#define WHOLE		"whole"

/**
 * struct piece - a store made from a single file
 * @path: path of the store.
 * @last: number of its last change, as RocksDB counts changes.
 */
struct piece {
	char *path;
	uint64_t last;
};

/* --- links -------------------------------------------------------------------------------- */

static int remove_file(const char *path, const struct stat *stat, int type, struct FTW *ftw)
{
	(void)stat;
	(void)type;
	(void)ftw;
	return remove(path);
}

static char *path_of(const struct store *store, const char *name)
{
	char *path;

	if (asprintf(&path, "%s/" PIECES "%s%s", store->dir, *name ? "/" : "", name) < 0)
		abort();
	return path;
}

static void remove_pieces(const struct store *store)
{
	char *path = path_of(store, "");

	nftw(path, remove_file, 16, FTW_DEPTH | FTW_PHYS);
	free(path);
}

/* For scandir(): tables and logs. */
static int has_changes(const struct dirent *file)
{
	const char *dot = strrchr(file->d_name, '.');

	return dot && (!strcmp(dot, ".sst") || !strcmp(dot, ".log"));
}

static int link_file(const struct store *store, const char *name, const char *path)
{
	char *from, *to;
	int ret;

	if (asprintf(&from, "%s/%s", store->db_path, name) < 0 ||
	    asprintf(&to, "%s/%s", path, name) < 0)
		abort();
	ret = link(from, to) ? -errno : 0;
	free(from);
	free(to);
	return ret;
}

/* --- opening ------------------------------------------------------------------------------ */

static void close_piece(struct store *store)
{
	rocksdb_close(store->db);
	store->db = NULL;
}

/* Returns whether it could be opened; if not, logs the error. */
static bool open_piece(struct store *store, const char *path)
{
	char *error = NULL;

	store->db = rocksdb_open_for_read_only(store->options, path, 0, &error);
	if (!error)
		return true;
	store_say(store, LOG_WARNING, "%s: %s", path, error);
	rocksdb_free(error);
	store->db = NULL;
	return false;
}

/* RocksDB moves a table to lost/ if it cannot read the whole table. */
static void say_lost(const struct store *store, const char *path)
{
	char *lost;

	if (asprintf(&lost, "%s/lost", path) < 0)
		abort();
	if (!access(lost, F_OK))
		store_say(store, LOG_ERR, "%s: some of its files cannot be read and are lost",
			  path);
	free(lost);
}

static bool repair_piece(struct store *store, const char *path)
{
	char *error = NULL;

	rocksdb_repair_db(store->options, path, &error);
	if (!error) {
		say_lost(store, path);
		return open_piece(store, path);
	}
	store_say(store, LOG_WARNING, "%s: %s", path, error);
	rocksdb_free(error);
	return false;
}

/* --- as a whole, or one by one ------------------------------------------------------------ */

/* Make a store from these files, and open it. */
static bool make_piece(struct store *store, const char *path, struct dirent **files, int nr)
{
	int i;

	if (mkdir(path, 0700))
		return false;
	for (i = 0; i < nr; i++) {
		if (link_file(store, files[i]->d_name, path)) {
			store_say(store, LOG_ERR, "%s/%s: cannot be linked: %m", path,
				  files[i]->d_name);
			return false;
		}
	}
	return repair_piece(store, path);
}

static int compare_pieces(const void *a, const void *b)
{
	const struct piece *first = a, *second = b;

	return (first->last > second->last) - (first->last < second->last);
}

static void visit_piece(struct store *store, const struct piece *piece,
			void (*each)(void *context), void *context)
{
	if (!open_piece(store, piece->path))
		return;
	each(context);
	close_piece(store);
}

/* Returns the number of pieces that could be opened. */
static int visit_one_by_one(struct store *store, struct dirent **files, int nr_files,
			    void (*each)(void *context), void *context)
{
	struct piece *pieces = calloc((size_t)nr_files, sizeof(*pieces));
	int nr = 0, i;

	if (!pieces)
		abort();
	for (i = 0; i < nr_files; i++) {
		char *path = path_of(store, files[i]->d_name);

		if (!make_piece(store, path, &files[i], 1)) {
			free(path);
			continue;
		}
		pieces[nr].path = path;
		pieces[nr++].last = rocksdb_get_latest_sequence_number(store->db);
		close_piece(store);
	}
	qsort(pieces, (size_t)nr, sizeof(*pieces), compare_pieces);
	for (i = 0; i < nr; i++) {
		visit_piece(store, &pieces[i], each, context);
		free(pieces[i].path);
	}
	free(pieces);
	return nr;
}

/* Returns the number of pieces that could be opened; 1 for the whole store. */
static int visit_all(struct store *store, struct dirent **files, int nr,
		     void (*each)(void *context), void *context)
{
	char *root = path_of(store, ""), *whole = path_of(store, WHOLE);
	int opened = 1;

	mkdir(root, 0700);
	if (make_piece(store, whole, files, nr)) {
		each(context);
		close_piece(store);
	} else {
		store_say(store, LOG_WARNING,
			  "%s: its files are read one by one: some jobs may be in an older state",
			  store->dir);
		opened = visit_one_by_one(store, files, nr, each, context);
	}
	free(whole);
	free(root);
	return opened;
}

int store_each_piece(struct store *store, void (*each)(void *context), void *context)
{
	struct dirent **files;
	int nr = scandir(store->db_path, &files, has_changes, alphasort);
	int opened, i;

	if (nr < 0)
		return -errno;
	remove_pieces(store);
	opened = nr ? visit_all(store, files, nr, each, context) : 0;
	remove_pieces(store);
	for (i = 0; i < nr; i++)
		free(files[i]);
	free(files);
	return opened ? 0 : -EBADMSG;
}
