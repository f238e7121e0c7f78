// SPDX-License-Identifier: GPL-2.0
/*
 * Opening and closing a store: RocksDB, and the checks before the store is used.
 *
 *	damage mark | open read-only: numbers, counts, witness, scan if small |
 *	open for writing | sync thread, scrub thread
 *
 * RocksDB reads its log up to the first record that it cannot read. After a crash of the
 * machine that is the torn end of the log, which nobody was promised. If the last change that
 * was read is before the last one that was synced, it is damage: the witness (dir.c) tells. A
 * log that is missing, or shorter than it was when it was synced, RocksDB notices itself.
 *
 * The witness is not synced. After a crash of the machine it may be some seconds old, and
 * damage behind it looks like a torn end; RocksDB logs how many bytes it drops, unless a record
 * seems to be of a log that was used before, as its type is another.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/exit.h"
#include "common/log.h"
#include "queue/integrity/open.h"
#include "queue/integrity/pieces.h"
#include "queue/integrity/repair.h"
#include "queue/integrity/salvage.h"
#include "queue/integrity/scan.h"
#include "queue/integrity/scrub.h"
#include "queue/store/backup.h"
#include "queue/store/batch.h"
#include "queue/store/counts.h"
#include "queue/store/dir.h"
#include "queue/store/fault.h"
#include "queue/store/read.h"
#include "queue/store/rocksdb.h"
#include "queue/store/space.h"
#include "queue/store/state.h"
#include "queue/store/sync.h"
#include "queue/store/terminate.h"
#include "queue/store/writer.h"

/* Larger stores are not scanned when they are opened, but by the scrub thread. */
#define SCAN_MOST		(64u << 20)

/* --- RocksDB ------------------------------------------------------------------------------ */

static int open_error(struct store *store, char *error)
{
	int ret = store_is_damage(error) ? -EBADMSG : -EIO;

	/* The store was made: it has had all of its files. Of CURRENT, RocksDB says the latter. */
	if (!store->fresh && (strstr(error, "No such file") || strstr(error, "does not exist")))
		ret = -EBADMSG;
	if (store_is_no_space(error))
		ret = -ENOSPC;
	else if (strstr(error, "Permission denied"))
		ret = -EACCES;
	else if (strstr(error, "Read-only file system"))
		ret = -EROFS;
	else if (strstr(error, "Too many open files"))
		ret = -EMFILE;
	store_say(store, LOG_ERR, "%s: cannot open: %s", store->dir, error);
	rocksdb_free(error);
	return ret;
}

/* Returns RocksDB's error, or NULL. */
static char *open_rocksdb(struct store *store, bool read_only)
{
	char *error = NULL;

	if (read_only)
		store->db = rocksdb_open_for_read_only(store->options, store->db_path, 0, &error);
	else
		store->db = rocksdb_open(store->options, store->db_path, &error);
	return error;
}

static int open_db(struct store *store, bool read_only)
{
	char *error;

	if (!read_only) {
		/* RocksDB makes it too, and logs an error before. */
		if (store->fresh)
			mkdir(store->db_path, 0700);
		store_space_for_opening(store);
	}
	error = open_rocksdb(store, read_only);
	while (error && store_is_no_space(error) && store_space_open_again(store)) {
		rocksdb_free(error);
		error = open_rocksdb(store, read_only);
	}
	return error ? open_error(store, error) : store_dir_note_db(store);
}

/* Remove the files of an interrupted creation: nothing in them was promised to a client. */
static void remove_unfinished(struct store *store)
{
	char *error = NULL;

	rocksdb_destroy_db(store->options, store->db_path, &error);
	rocksdb_free(error);
}

/* --- opening ------------------------------------------------------------------------------ */

/* Every store has these numbers from its creation on. */
static int load_numbers(struct store *store)
{
	uint64_t version;
	int ret = store_number(store, NUMBER_VERSION, &version);

	if (!ret)
		ret = store_number(store, NUMBER_CHANGES, &store->changes);
	if (!ret)
		ret = store_number(store, NUMBER_NEXT_ID, &store->next_id);
	if (ret == -ENOENT || (!ret && version != STORE_VERSION))
		ret = store_damaged(store, "the store's own numbers", NULL);
	return ret ? ret : store_tubes_load(store);
}

/*
 * Check a store without changing it. When RocksDB opens a store for writing, it removes files
 * that it does not know, and a damaged list of files may have lost them.
 */
static int check_before(struct store *store)
{
	bool unfinished;
	int marked = store->unscanned ? 0 : store_dir_is_marked(store, &unfinished);
	int ret;

	if (marked < 0)
		return marked;
	ret = marked && (unfinished || !store->config.repair) ? -EBADMSG : 0;
	if (!ret)
		ret = open_db(store, true);
	if (!ret)
		ret = load_numbers(store);
	if (!ret)
		ret = store_witness_open(store);
	if (ret || store->unscanned ||
	    (!store->config.repair && store_dir_bytes(store) > SCAN_MOST))
		return ret;
	store->scanned = true;
	ret = store_scan(store);
	/* The error that was marked is gone. */
	if (!ret && marked && !store->config.read_only)
		store_dir_unmark(store);
	return ret;
}

static void close_db(struct store *store)
{
	if (store->db)
		rocksdb_close(store->db);
	store->db = NULL;
}

/*
 * A repair that was stopped after its copy was in place goes on with that copy, unless that is
 * damaged itself; then it is copied once more.
 */
static int open_copy(struct store *store)
{
	int ret = store_dir_is_copied(store);

	if (ret < 0)
		return ret;
	if (ret) {
		ret = open_db(store, false);
		if (ret != -EBADMSG)
			return ret;
	}
	if (!store_dir_mark(store, MARK_UNFINISHED))
		return -EIO;
	ret = store_salvage(store);
	if (ret)
		return ret;
	/* If this fails, the next repair only makes another copy. */
	store_dir_mark(store, MARK_COPIED);
	return open_db(store, false);
}

static int open_repaired(struct store *store)
{
	int ret;

	close_db(store);
	store_say(store, LOG_WARNING, "%s: repairing", store->dir);
	store_space_for_files(store, 0);
	ret = open_copy(store);
	if (!ret && store->syncer.witness_fd < 0) {
		store->changes = 0;
		ret = store_number(store, NUMBER_CHANGES, &store->changes);
		if (!ret || ret == -ENOENT || ret == -EBADMSG)
			ret = store_witness_open(store);
		ret = ret == -EBADMSG ? 0 : ret;
	}
	if (!ret)
		ret = store_sync_start(store);
	if (!ret)
		ret = store_repair_jobs(store);
	if (!ret) {
		/* An earlier repair may have been stopped in the middle of them. */
		store_remove_pieces(store);
		store_dir_unmark(store);
	} else if (ret == -EBADMSG) {
		store_dir_mark(store, MARK_UNFINISHED);
	}
	store->scanned = true;
	return ret;
}

static int open_existing(struct store *store)
{
	int ret = check_before(store);

	if (ret == -EBADMSG && store->config.repair && !store->config.read_only)
		return open_repaired(store);
	if (ret || store->config.read_only)
		return ret;
	close_db(store);
	ret = open_db(store, false);
	if (ret)
		return ret;
	/* RocksDB has written the records of the log to tables, and synced them. */
	store_witness_write(store, store->changes);
	return store_sync_start(store);
}

/* Make the first commit; after it is on disk, the marker gets its final name. */
static int make_store(struct store *store)
{
	int ret;

	remove_unfinished(store);
	ret = open_db(store, false);
	if (!ret)
		ret = store_witness_open(store);
	if (!ret)
		ret = store_sync_start(store);
	if (ret)
		return ret;
	store->next_id = 1;
	store->next_id_changed = true;
	store->scanned = true;
	store_put_number(store, NUMBER_VERSION, STORE_VERSION);
	store_flush(store);
	return store_dir_made(store);
}

static int open_all(struct store *store)
{
	int ret = store_dir_open(store);

	if (!ret && !store->config.read_only)
		ret = store_space_open(store);
	if (ret)
		return ret;
	store_set_options(store);
	if (!store->fresh && store->config.repair && !store->config.read_only)
		ret = store_salvage_try(store);
	if (ret)
		return ret;
	ret = store->fresh ? make_store(store) : open_existing(store);
	if (ret || store->config.read_only)
		return ret;
	store_backup_clean(store);
	store_backup_restored(store);
	/* Jobs may have been deleted shortly before the store was closed. */
	store->space.deleted = !store->fresh;
	store->served = true;
	return store_scrub_start(store);
}

static struct store *new_store(const struct store_config *config)
{
	struct store *store = calloc(1, sizeof(*store));

	if (!store)
		return NULL;
	store->config = *config;
	store_writer_init(store);
	store->dir_fd = -1;
	store->db_fd = -1;
	store->space.ballast_fd = -1;
	store->syncer.event_fd = -1;
	store->syncer.witness_fd = -1;
	store->dir = strdup(config->dir);
	if (!store->dir)
		abort();
	return store;
}

static void free_rocksdb(struct store *store)
{
	if (store->body)
		rocksdb_pinnableslice_destroy(store->body);
	if (store->db)
		rocksdb_close(store->db);
	if (!store->options)
		return;
	rocksdb_writebatch_destroy(store->batch);
	rocksdb_writeoptions_destroy(store->write_options);
	rocksdb_writeoptions_destroy(store->write_at_once);
	rocksdb_readoptions_destroy(store->read_options);
	rocksdb_options_destroy(store->options);
	rocksdb_cache_destroy(store->cache);
}

static void free_store(struct store *store)
{
	store_backup_stop(store);
	store_scrub_stop(store);
	store_sync_stop(store);
	store_writer_destroy(store);
	free_rocksdb(store);
	store_tubes_free(store);
	store_space_close(store);
	store_dir_close(store);
	free(store->dir);
	free(store);
}

static int open_new(struct store **store, const struct store_config *config, bool unscanned)
{
	struct store *opened = new_store(config);
	int ret;

	*store = NULL;
	if (!opened)
		return -ENOMEM;
	opened->unscanned = unscanned;
	store_end_by_exceptions(config->log, STORE_EXIT_IO);
	ret = open_all(opened);
	if (ret)
		free_store(opened);
	else
		*store = opened;
	return ret;
}

int store_open(struct store **store, const struct store_config *config)
{
	return open_new(store, config, false);
}

int store_open_unscanned(struct store **store, const struct store_config *config)
{
	struct store_config read_only = *config;

	read_only.read_only = true;
	return open_new(store, &read_only, true);
}

void store_close(struct store *store)
{
	if (!store->config.read_only)
		store_flush(store);
	free_store(store);
}

int store_status(int error)
{
	switch (-error) {
	case 0:
		return 0;
	case EIO:
	case EBADMSG:
	case ENOSPC:
	case EDQUOT:
	case EROFS:
	case EFBIG:
		return EX_IOERR;
	default:
		return EXIT_CANNOT;
	}
}

int store_cannot_open(const char *dir, int error)
{
	const char *why;

	switch (-error) {
	case ENODATA:
		why = "is empty: it has no job store";
		break;
	case ENOTEMPTY:
		why = "is not a job store, and is not empty";
		break;
	case EBUSY:
		why = "cannot be opened: another process has it open";
		break;
	case EPROTO:
		why = "is not a job store that this version of twheelq can read";
		break;
	case EBADMSG:
		why = "is damaged: see \"twheelq check\"; serve --repair drops the damaged jobs";
		break;
	default:
		log_say(LOG_ERR, "%s cannot be opened: %s", dir, strerror(-error));
		return store_status(error);
	}
	log_say(LOG_ERR, "%s %s", dir, why);
	return store_status(error);
}
