// SPDX-License-Identifier: GPL-2.0
/*
 * Files of a store whose list of tables is damaged, so that RocksDB cannot open them.
 *
 * RocksDB's repair makes a new list, of the tables that it can read, and tables of what it
 * can read of the logs. It works on links here, and the files stay as they are.
 *
 * The new list does not know which of two tables is newer where both have changes of the
 * same time, which is the rule once there were compactions, and RocksDB refuses it then. So
 * each file is made a store of its own, and they are given out one after the other, in the
 * order of the last change of each. What is in several is copied from the last of them: that
 * may be an older state of a job, and one that was deleted may be back. It comes again then.
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

#include "store_internal.h"

#define PIECES		"db.pieces"
#define WHOLE		"whole"

/**
 * struct piece - a file that is a store of its own
 * @path: the store's.
 * @last: the number of its last change, as RocksDB counts them.
 */
struct piece {
	char *path;
	uint64_t last;
};

/* --- links -------------------------------------------------------------------------------- */

static int remove_one(const char *path, const struct stat *stat, int type, struct FTW *ftw)
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

	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(path);
}

/* A table or a log; for scandir(). */
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

/* Returns whether it is open, after what is wrong was said. */
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

/* RocksDB puts a table away of which it cannot read all. */
static void say_lost(const struct store *store, const char *path)
{
	char *lost;

	if (asprintf(&lost, "%s/lost", path) < 0)
		abort();
	if (!access(lost, F_OK))
		store_say(store, LOG_ERR, "%s: not all of its files can be read: these are lost",
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

/* --- all at once, or one by one ----------------------------------------------------------- */

/* Make a store of these files, and open it. */
static bool put_together(struct store *store, const char *path, struct dirent **files, int nr)
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

static int compare(const void *a, const void *b)
{
	const struct piece *first = a, *second = b;

	return (first->last > second->last) - (first->last < second->last);
}

static void give_out(struct store *store, const struct piece *piece,
		     void (*each)(void *context), void *context)
{
	if (!open_piece(store, piece->path))
		return;
	each(context);
	close_piece(store);
}

/* Returns how many could be opened. */
static int one_by_one(struct store *store, struct dirent **files, int nr_files,
		      void (*each)(void *context), void *context)
{
	struct piece *pieces = calloc((size_t)nr_files, sizeof(*pieces));
	int nr = 0, i;

	if (!pieces)
		abort();
	for (i = 0; i < nr_files; i++) {
		char *path = path_of(store, files[i]->d_name);

		if (!put_together(store, path, &files[i], 1)) {
			free(path);
			continue;
		}
		pieces[nr].path = path;
		pieces[nr++].last = rocksdb_get_latest_sequence_number(store->db);
		close_piece(store);
	}
	qsort(pieces, (size_t)nr, sizeof(*pieces), compare);
	for (i = 0; i < nr; i++) {
		give_out(store, &pieces[i], each, context);
		free(pieces[i].path);
	}
	free(pieces);
	return nr;
}

/* Returns how many stores were given out. */
static int give_out_all(struct store *store, struct dirent **files, int nr,
			void (*each)(void *context), void *context)
{
	char *root = path_of(store, ""), *whole = path_of(store, WHOLE);
	int given = 1;

	mkdir(root, 0700);
	if (put_together(store, whole, files, nr)) {
		each(context);
		close_piece(store);
	} else {
		store_say(store, LOG_WARNING,
			  "%s: its files are read one by one: jobs may be in an earlier state",
			  store->dir);
		given = one_by_one(store, files, nr, each, context);
	}
	free(whole);
	free(root);
	return given;
}

int store_each_piece(struct store *store, void (*each)(void *context), void *context)
{
	struct dirent **files;
	int nr = scandir(store->db_path, &files, has_changes, alphasort);
	int given, i;

	if (nr < 0)
		return -errno;
	remove_pieces(store);
	given = nr ? give_out_all(store, files, nr, each, context) : 0;
	remove_pieces(store);
	for (i = 0; i < nr; i++)
		free(files[i]);
	free(files);
	return given ? 0 : -EBADMSG;
}
