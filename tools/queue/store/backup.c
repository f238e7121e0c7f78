// SPDX-License-Identifier: GPL-2.0
/*
 * Backups: copies of an open store.
 *
 *	backups/.new/	a backup that is being made
 *	backups/NAME/	a whole one, which is a store; its files are on disk
 *
 * RocksDB's checkpoint writes what is in memory to tables, links the tables, which never
 * change, and copies the list of files. So a backup takes little time and, at first, little
 * space. The log is left out: all that was committed before is in the tables.
 *
 * A backup has its own marker and witness, and a mark: the store goes on to give ids that the
 * backup does not know. The first open of the backup for writing makes its next id 2^40
 * higher and removes the mark.
 *
 * Names with a dot in front are not whole: the next open of the store removes them.
 *
 * A backup runs in a thread of its own. RocksDB may make it wait for compactions, so the end of
 * the store cancels them.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/tree.h"
#include "queue/store/backup.h"
#include "queue/store/batch.h"
#include "queue/store/dir.h"
#include "queue/store/fault.h"
#include "queue/store/state.h"
#include "queue/store/sync.h"

#define UNFINISHED	".new"

/* --- making one, in its thread ------------------------------------------------------------ */

static int checkpoint_error(struct store *store, char *error)
{
	int ret = store_is_no_space(error) ? -ENOSPC : -EIO;

	if (!store->backup.stop)
		store_say(store, ret == -ENOSPC ? LOG_WARNING : LOG_ERR,
			  "%s: cannot make a backup: %s", store->dir, error);
	rocksdb_free(error);
	return ret;
}

static int make_checkpoint(struct store *store)
{
	rocksdb_checkpoint_t *checkpoint;
	char *error = NULL, *path;

	checkpoint = rocksdb_checkpoint_object_create(store->db, &error);
	if (error)
		return checkpoint_error(store, error);
	if (asprintf(&path, "%s/" BACKUPS_DIR "/" UNFINISHED "/db", store->path) < 0)
		abort();
	/* 0: write all that is in memory to tables before. */
	rocksdb_checkpoint_create(checkpoint, path, 0, &error);
	free(path);
	rocksdb_checkpoint_object_destroy(checkpoint);
	return error ? checkpoint_error(store, error) : 0;
}

static bool is_log(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot && !strcmp(dot, ".log");
}

/* A file with other links is a table of the store, which RocksDB has synced. */
static int settle_file(int dir_fd, const char *name, void *context)
{
	struct store *store = context;
	struct stat stat;

	if (store->backup.stop)
		return -ECANCELED;
	if (is_log(name))
		return unlinkat(dir_fd, name, 0) ? -errno : 0;
	if (fstatat(dir_fd, name, &stat, AT_SYMLINK_NOFOLLOW))
		return -errno;
	return stat.st_nlink > 1 ? 0 : tree_sync_file(dir_fd, name);
}

static int settle_files(struct store *store, int backup_fd)
{
	int fd = tree_open(backup_fd, "db"), ret;

	if (fd < 0)
		return fd;
	ret = tree_each(fd, settle_file, store);
	if (!ret && fsync(fd))
		ret = -errno;
	close(fd);
	return ret;
}

static int fill(struct store *store, int backup_fd)
{
	int ret = make_checkpoint(store);

	if (!ret)
		ret = settle_files(store, backup_fd);
	if (!ret)
		ret = store_dir_make_backup(backup_fd, store->backup.changes);
	return ret;
}

static int make_unfinished(struct store *store, int backups_fd)
{
	int fd, ret = tree_remove(backups_fd, UNFINISHED);

	if (ret)
		return ret;
	if (mkdirat(backups_fd, UNFINISHED, 0700))
		return -errno;
	fd = tree_open(backups_fd, UNFINISHED);
	if (fd < 0)
		return fd;
	ret = fill(store, fd);
	close(fd);
	return ret;
}

/* The name is free: only an empty directory would be replaced. */
static int finish(int backups_fd, const char *name)
{
	if (renameat(backups_fd, UNFINISHED, backups_fd, name))
		return errno == ENOTEMPTY || errno == ENOTDIR ? -EEXIST : -errno;
	return fsync(backups_fd) ? -errno : 0;
}

static int make_in(struct store *store, int backups_fd)
{
	const char *name = store->backup.name;
	int ret;

	if (!faccessat(backups_fd, name, F_OK, AT_SYMLINK_NOFOLLOW))
		return -EEXIST;
	ret = make_unfinished(store, backups_fd);
	if (!ret)
		ret = finish(backups_fd, name);
	if (ret)
		tree_remove(backups_fd, UNFINISHED);
	return ret;
}

static int make_backup(struct store *store)
{
	int fd, ret;

	/* It would have the damage, and not the mark that says so. */
	if (store->damaged)
		return -EBADMSG;
	if (mkdirat(store->dir_fd, BACKUPS_DIR, 0700) ? errno != EEXIST : fsync(store->dir_fd))
		return -errno;
	fd = tree_open(store->dir_fd, BACKUPS_DIR);
	if (fd < 0)
		return fd;
	ret = make_in(store, fd);
	close(fd);
	return ret == -EDQUOT ? -ENOSPC : ret;
}

static void *backup_thread(void *context)
{
	struct store *store = context;
	struct store_backup *backup = &store->backup;

	backup->result = make_backup(store);
	if (backup->result && backup->result != -EEXIST && !backup->stop)
		store_say(store, LOG_ERR, "%s/" BACKUPS_DIR "/%s: no backup was made: %s",
			  store->dir, backup->name, backup->result == -EBADMSG ?
			  "the store is damaged" : strerror(-backup->result));
	backup->ended = true;
	store_wake(store);
	return NULL;
}

/* --- for the queue's thread --------------------------------------------------------------- */

int store_backup_begin(struct store *store, const char *name)
{
	struct store_backup *backup = &store->backup;
	int ret;

	store_commit(store);
	store_hand_over(store);
	backup->name = strdup(name);
	if (!backup->name)
		return -ENOMEM;
	backup->changes = store->changes;
	backup->ended = false;
	ret = -pthread_create(&backup->thread, NULL, backup_thread, store);
	backup->running = !ret;
	if (ret)
		free(backup->name);
	return ret;
}

static void join(struct store_backup *backup)
{
	pthread_join(backup->thread, NULL);
	backup->running = false;
	free(backup->name);
}

bool store_backup_ended(struct store *store, int *result)
{
	struct store_backup *backup = &store->backup;

	if (!backup->running || !backup->ended)
		return false;
	join(backup);
	*result = backup->result;
	return true;
}

void store_backup_stop(struct store *store)
{
	if (!store->backup.running)
		return;
	store->backup.stop = true;
	rocksdb_cancel_all_background_work(store->db, 0);
	join(&store->backup);
}

/* --- opening a store ---------------------------------------------------------------------- */

static int remove_unfinished(int dir_fd, const char *name, void *context)
{
	(void)context;
	return *name == '.' ? tree_remove(dir_fd, name) : 0;
}

void store_backup_clean(struct store *store)
{
	int fd = tree_open(store->dir_fd, BACKUPS_DIR);
	int ret = fd < 0 ? fd : tree_each(fd, remove_unfinished, NULL);

	if (fd >= 0)
		close(fd);
	if (ret && ret != -ENOENT)
		store_say(store, LOG_WARNING, "%s/" BACKUPS_DIR
			  ": what is left of a backup cannot be removed: %s", store->dir,
			  strerror(-ret));
}

void store_backup_restored(struct store *store)
{
	if (!store_dir_is_backup(store))
		return;
	store_skip_ids(store, 0);
	store_flush(store);
	store_say(store, LOG_NOTICE, "%s: this is a backup: its next id is %" PRIu64
		  ", so that none is given twice", store->dir, store->next_id);
	store_dir_not_backup(store);
}
