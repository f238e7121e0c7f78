// SPDX-License-Identifier: GPL-2.0
/*
 * Pieces of a store whose list of files is damaged, so that RocksDB cannot open it.
 *
 * RocksDB's repair makes a new list of the tables that it can read, and writes the readable
 * records of the logs to tables. Here it works on hard links, so the files are not changed.
 * It would go on without a log for whose table there is no space, and without a file that it may
 * not open now: then there are no pieces.
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
#include "queue/store/dir.h"
#include "queue/store/fault.h"
#include "queue/store/info_log.h"
#include "queue/store/space.h"
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

	if (asprintf(&path, "%s/" PIECES "%s%s", store->path, *name ? "/" : "", name) < 0)
		abort();
	return path;
}

void store_remove_pieces(const struct store *store)
{
	char *path = path_of(store, "");

	nftw(path, remove_file, 16, FTW_DEPTH | FTW_PHYS);
	free(path);
}

/* A negative errno. A quota is a lack of space, too. */
static int last_error(void)
{
	return errno == EDQUOT ? -ENOSPC : -errno;
}

/* Is it an error that ends the salvage, as the files may be whole? */
static bool is_no_damage(int ret)
{
	return ret && ret != -EBADMSG;
}

/* Remove what an earlier repair has left. */
static int begin_pieces(const struct store *store)
{
	char *path = path_of(store, "");
	int ret;

	store_remove_pieces(store);
	ret = mkdir(path, 0700) ? last_error() : 0;
	free(path);
	return ret;
}

static bool has_end(const struct dirent *file, const char *end)
{
	const char *dot = strrchr(file->d_name, '.');

	return dot && !strcmp(dot, end);
}

/* For scandir(). */
static int is_table(const struct dirent *file)
{
	return has_end(file, ".sst");
}

static int has_changes(const struct dirent *file)
{
	return is_table(file) || has_end(file, ".log");
}

/* Free what scandir() has returned. */
static void free_list(struct dirent **files, int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		free(files[i]);
	free(files);
}

static int link_file(const struct store *store, const char *name, const char *path)
{
	char *from, *to;
	int ret;

	if (asprintf(&from, "%s/%s", store->db_path, name) < 0 ||
	    asprintf(&to, "%s/%s", path, name) < 0)
		abort();
	ret = link(from, to) ? last_error() : 0;
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

/* Log an error of RocksDB; returns a negative errno. */
static int piece_error(struct store *store, const char *path, char *error)
{
	int ret = store_errno(error);

	store_say(store, LOG_WARNING, "%s: %s", path, error);
	rocksdb_free(error);
	return ret;
}

static int open_piece(struct store *store, const char *path)
{
	char *error = NULL;

	store->db = rocksdb_open_for_read_only(store->options, path, 0, &error);
	if (!error)
		return 0;
	store->db = NULL;
	return piece_error(store, path, error);
}

/* RocksDB moves a table to lost/ if it cannot read the whole table; and each log, when read. */
static void say_lost(const struct store *store, const char *path)
{
	struct dirent **files;
	char *lost;
	int nr;

	if (asprintf(&lost, "%s/lost", path) < 0)
		abort();
	nr = scandir(lost, &files, is_table, NULL);
	free(lost);
	if (nr < 0)
		return;
	if (nr)
		store_say(store, LOG_ERR, "%s: %d of its tables cannot be read, and are left out",
			  path, nr);
	free_list(files, nr);
}

static int repair_piece(struct store *store, const char *path)
{
	rocksdb_options_t *options = rocksdb_options_create_copy(store->options);
	char *error = NULL;
	int ignored = 0;

	info_log_set(options, store->config.log, &ignored);
	rocksdb_repair_db(options, path, &error);
	rocksdb_options_destroy(options);
	if (error)
		return piece_error(store, path, error);
	if (ignored)
		return ignored;
	say_lost(store, path);
	return open_piece(store, path);
}

/* --- as a whole, or one by one ------------------------------------------------------------ */

/* Make a store from these files, and open it. */
static int make_piece(struct store *store, const char *path, struct dirent **files, int nr)
{
	int ret, i;

	if (mkdir(path, 0700))
		return last_error();
	for (i = 0; i < nr; i++) {
		ret = link_file(store, files[i]->d_name, path);
		if (ret) {
			store_say(store, LOG_ERR, "%s/%s: cannot be linked: %s", path,
				  files[i]->d_name, strerror(-ret));
			return ret;
		}
	}
	return repair_piece(store, path);
}

static int compare_pieces(const void *a, const void *b)
{
	const struct piece *first = a, *second = b;

	return (first->last > second->last) - (first->last < second->last);
}

static int visit_piece(struct store *store, const struct piece *piece,
		       void (*each)(void *context), void *context)
{
	int ret = open_piece(store, piece->path);

	if (ret)
		return ret;
	each(context);
	close_piece(store);
	return 0;
}

/* Make a piece of each file that is not damaged. Returns how many there are, or an errno. */
static int make_pieces(struct store *store, struct dirent **files, int nr_files,
		       struct piece *pieces)
{
	int nr = 0, ret, i;

	for (i = 0; i < nr_files; i++) {
		pieces[nr].path = path_of(store, files[i]->d_name);
		ret = make_piece(store, pieces[nr].path, &files[i], 1);
		if (is_no_damage(ret))
			return ret;
		if (ret) {
			free(pieces[nr].path);
			pieces[nr].path = NULL;
			continue;
		}
		pieces[nr++].last = rocksdb_get_latest_sequence_number(store->db);
		close_piece(store);
	}
	return nr;
}

static int visit_one_by_one(struct store *store, struct dirent **files, int nr_files,
			    void (*each)(void *context), void *context)
{
	struct piece *pieces = calloc((size_t)nr_files, sizeof(*pieces));
	int ret = 0, nr, i;

	if (!pieces)
		abort();
	nr = make_pieces(store, files, nr_files, pieces);
	if (nr > 0)
		qsort(pieces, (size_t)nr, sizeof(*pieces), compare_pieces);
	for (i = 0; i < nr && !is_no_damage(ret); i++)
		ret = visit_piece(store, &pieces[i], each, context);
	for (i = 0; i < nr_files; i++)
		free(pieces[i].path);
	free(pieces);
	if (nr < 0)
		return nr;
	if (is_no_damage(ret))
		return ret;
	return nr ? 0 : -EBADMSG;
}

static int visit_all(struct store *store, struct dirent **files, int nr,
		     void (*each)(void *context), void *context)
{
	char *whole = path_of(store, WHOLE);
	int ret = begin_pieces(store);

	store_space_for_files(store, 2 * store_dir_log_bytes(store));
	if (!ret)
		ret = make_piece(store, whole, files, nr);
	if (!ret) {
		each(context);
		close_piece(store);
	} else if (ret == -EBADMSG) {
		store_say(store, LOG_WARNING,
			  "%s: its files are read one by one: some jobs may be in an older state",
			  store->dir);
		ret = begin_pieces(store);
		if (!ret)
			ret = visit_one_by_one(store, files, nr, each, context);
	}
	free(whole);
	return ret;
}

int store_each_piece(struct store *store, void (*each)(void *context), void *context)
{
	struct dirent **files;
	int nr = scandir(store->db_path, &files, has_changes, alphasort);
	int ret;

	if (nr < 0)
		return -errno;
	ret = nr ? visit_all(store, files, nr, each, context) : -EBADMSG;
	store_remove_pieces(store);
	free_list(files, nr);
	return ret;
}
