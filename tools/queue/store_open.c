// SPDX-License-Identifier: GPL-2.0
/*
 * Opening and closing a store, and how RocksDB is set up for a queue.
 *
 * Memory: half of config.memory is the block cache, which holds index and filter blocks
 * too, and a quarter are write buffers: four, of which RocksDB writes out those that are
 * full. Disk: a write buffer is at most a 256th of the reserve. 32 tables of that size wait
 * for their first compaction at most, which takes the whole of the next level, about twice as
 * much: with the result, the buffers and the logs, all that is needed for going on is less
 * than the reserve, if that is 8 MiB or more. When 24 wait, writes are slowed down.
 *
 * The first compaction comes when there are 12, not 4. RocksDB weighs what waits for the
 * first, ten times and in units of that number, against the size of the next level: with 4
 * that level grew to 13 MiB on a disk of 64, and each compaction took all of it; with 12 to
 * 3 MiB. It also took more time than the puts themselves (61,000 puts/s then, and 110,000
 * now). A file of which half of a stretch is deletes is compacted at once, as a queue
 * deletes all that it puts.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "store_internal.h"

#define BUFFERS			4
#define BUFFER_LEAST		(64u << 10)
#define BUFFER_MOST		(16u << 20)
#define TABLES_SLOW		24
#define TABLES_STOP		32
#define BLOOM_BITS		10
#define LOG_WARNINGS		2
/* A store of so many bytes is read whole before it is served. */
#define SCAN_MOST		(64u << 20)

/* --- RocksDB's options -------------------------------------------------------------------- */

static size_t write_buffer_size(const struct store *store)
{
	uint64_t bytes = store->config.memory / 4 / BUFFERS;

	if (bytes > store->space.reserve / 256)
		bytes = store->space.reserve / 256;
	if (bytes < BUFFER_LEAST)
		return BUFFER_LEAST;
	return bytes > BUFFER_MOST ? BUFFER_MOST : bytes;
}

static void set_tables(struct store *store, rocksdb_options_t *options)
{
	rocksdb_block_based_table_options_t *tables = rocksdb_block_based_options_create();
	rocksdb_filterpolicy_t *bloom = rocksdb_filterpolicy_create_bloom_full(BLOOM_BITS);

	store->cache = rocksdb_cache_create_lru(store->config.memory / 2);
	rocksdb_block_based_options_set_block_cache(tables, store->cache);
	rocksdb_block_based_options_set_cache_index_and_filter_blocks(tables, 1);
	rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(tables, 1);
	rocksdb_block_based_options_set_filter_policy(tables, bloom);
	rocksdb_block_based_options_set_format_version(tables, 5);
	rocksdb_options_set_block_based_table_factory(options, tables);
	rocksdb_block_based_options_destroy(tables);
	rocksdb_options_set_optimize_filters_for_hits(options, 1);
	rocksdb_options_set_compression(options, rocksdb_lz4_compression);
}

static void set_shape(struct store *store, rocksdb_options_t *options)
{
	store->write_buffer = write_buffer_size(store);
	rocksdb_options_set_write_buffer_size(options, store->write_buffer);
	rocksdb_options_set_max_write_buffer_number(options, BUFFERS);
	rocksdb_options_set_level_compaction_dynamic_level_bytes(options, 1);
	rocksdb_options_set_max_bytes_for_level_base(options, BUFFERS * store->write_buffer);
	rocksdb_options_set_target_file_size_base(options, store->write_buffer);
	rocksdb_options_set_target_file_size_multiplier(options, 2);
	rocksdb_options_add_compact_on_deletion_collector_factory(options, 4096, 2048);
	rocksdb_options_set_max_compaction_bytes(options, BUFFERS * store->write_buffer);
	rocksdb_options_set_level0_file_num_compaction_trigger(options, STORE_TABLES_COMPACT);
	rocksdb_options_set_level0_slowdown_writes_trigger(options, TABLES_SLOW);
	rocksdb_options_set_level0_stop_writes_trigger(options, TABLES_STOP);
	rocksdb_options_set_soft_pending_compaction_bytes_limit(options, 0);
	rocksdb_options_set_hard_pending_compaction_bytes_limit(options, 0);
	rocksdb_options_set_max_background_jobs(options, 2);
}

static void set_files(rocksdb_options_t *options)
{
	rocksdb_options_set_paranoid_checks(options, 1);
	rocksdb_options_set_manual_wal_flush(options, 1);
	rocksdb_options_set_wal_recovery_mode(options, TOLERATE_TORN_TAIL);
	rocksdb_options_set_recycle_log_file_num(options, 0);
	rocksdb_options_set_max_open_files(options, 256);
	rocksdb_options_set_manifest_preallocation_size(options, 64 << 10);
	rocksdb_options_set_max_manifest_file_size(options, 4 << 20);
	rocksdb_options_set_skip_stats_update_on_db_open(options, 1);
	rocksdb_options_set_info_log_level(options, LOG_WARNINGS);
	rocksdb_options_set_max_log_file_size(options, 1 << 20);
	rocksdb_options_set_keep_log_file_num(options, 2);
	rocksdb_options_set_stats_dump_period_sec(options, 0);
	rocksdb_options_set_stats_persist_period_sec(options, 0);
}

/*
 * RocksDB 7.8 ends a walk, and says nothing, where the first block of the next table is
 * damaged, if it looks for deleted ranges too; of which there are none here.
 */
rocksdb_readoptions_t *store_make_read_options(void)
{
	rocksdb_readoptions_t *options = rocksdb_readoptions_create();

	rocksdb_readoptions_set_ignore_range_deletions(options, 1);
	return options;
}

/*
 * RocksDB takes all tables of a level that lie within what it merges from the next one, however
 * many, unless it is told not to: a fifth of a full disk at once. Its header for C has no
 * function for that. Later versions, from 9 on, cannot be told.
 */
static void bound_compactions(struct store *store)
{
	rocksdb_options_t *bounded = rocksdb_options_create();
	char *error = NULL;

	rocksdb_get_options_from_string(store->options,
					"ignore_max_compaction_bytes_for_input=false", bounded,
					&error);
	if (error) {
		store_say(store, LOG_WARNING, "%s: compactions are not bounded: %s", store->dir,
			  error);
		rocksdb_options_destroy(bounded);
		rocksdb_free(error);
		return;
	}
	rocksdb_options_destroy(store->options);
	store->options = bounded;
}

static void set_options(struct store *store)
{
	store->options = rocksdb_options_create();
	set_tables(store, store->options);
	set_shape(store, store->options);
	set_files(store->options);
	bound_compactions(store);
	rocksdb_options_set_create_if_missing(store->options, store->fresh);
	rocksdb_options_set_error_if_exists(store->options, store->fresh);
	store->read_options = store_make_read_options();
	store->write_options = rocksdb_writeoptions_create();
	store->batch = rocksdb_writebatch_create();
}

/* --- RocksDB ------------------------------------------------------------------------------ */

static int open_error(struct store *store, char *error)
{
	int ret = store_is_damage(error) ? -EBADMSG : -EIO;

	if (strstr(error, "No space"))
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

static int open_db(struct store *store, bool read_only)
{
	char *error = NULL;

	if (read_only)
		store->db = rocksdb_open_for_read_only(store->options, store->db_path, 0, &error);
	else
		store->db = rocksdb_open(store->options, store->db_path, &error);
	return error ? open_error(store, error) : 0;
}

/* What the making of a store that was broken off has left behind was never promised. */
static void clear_away(struct store *store)
{
	char *error = NULL;

	rocksdb_destroy_db(store->options, store->db_path, &error);
	rocksdb_free(error);
}

/* --- opening ------------------------------------------------------------------------------ */

/* Every store has these, from its making on. */
static int load_numbers(struct store *store)
{
	uint64_t version;
	int ret = store_number(store, NUMBER_VERSION, &version);

	if (!ret)
		ret = store_number(store, NUMBER_CHANGES, &store->changes);
	if (!ret)
		ret = store_number(store, NUMBER_NEXT_ID, &store->next_id);
	if (ret == -ENOENT || (!ret && version != STORE_VERSION))
		ret = store_damaged(store, "the numbers of the store", NULL);
	return ret ? ret : store_tubes_load(store);
}

/*
 * Look at a store without changing anything: RocksDB removes files that it does not know
 * when it is opened for writing, and those may be what a damaged list of files has lost.
 */
static int look_before(struct store *store)
{
	bool unfinished, marked = !store->unscanned && store_dir_is_marked(store, &unfinished);
	int ret = store_log_look(store, false);

	if (marked && (unfinished || !store->config.repair))
		ret = -EBADMSG;
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
	/* What was marked was an error that has passed. */
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

static int open_repaired(struct store *store)
{
	int ret;

	close_db(store);
	store_say(store, LOG_WARNING, "%s: is repaired", store->dir);
	if (!store_dir_mark(store, MARK_UNFINISHED))
		return -EIO;
	ret = store_salvage(store);
	if (!ret)
		ret = open_db(store, false);
	if (!ret && store->syncer.witness_fd < 0) {
		store->changes = store_get_number(store, NUMBER_CHANGES, 0);
		ret = store_witness_open(store);
		ret = ret == -EBADMSG ? 0 : ret;
	}
	if (!ret)
		ret = store_sync_start(store);
	if (!ret)
		ret = store_repair_jobs(store);
	if (!ret)
		store_dir_unmark(store);
	store->scanned = true;
	return ret;
}

static int open_existing(struct store *store)
{
	int ret = look_before(store);

	if (ret == -EBADMSG && store->config.repair && !store->config.read_only)
		return open_repaired(store);
	if (ret || store->config.read_only)
		return ret;
	close_db(store);
	ret = store_log_look(store, true);
	if (!ret)
		ret = open_db(store, false);
	if (ret)
		return ret;
	/* RocksDB has written to tables, and synced, what it has found in the log. */
	store_witness_write(store, store->changes);
	return store_sync_start(store);
}

/* The first change of a store; the directory is one when it is on disk. */
static int make_store(struct store *store)
{
	int ret;

	clear_away(store);
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
	set_options(store);
	ret = store->fresh ? make_store(store) : open_existing(store);
	if (ret || store->config.read_only)
		return ret;
	/* Before it was closed, maybe. */
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
	store->dir_fd = -1;
	store->space.ballast_fd = -1;
	store->syncer.event_fd = -1;
	store->syncer.witness_fd = -1;
	store->dir = strdup(config->dir);
	if (!store->dir || asprintf(&store->db_path, "%s/db", config->dir) < 0)
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
	rocksdb_readoptions_destroy(store->read_options);
	rocksdb_options_destroy(store->options);
	rocksdb_cache_destroy(store->cache);
}

static void free_store(struct store *store)
{
	store_scrub_stop(store);
	store_sync_stop(store);
	free_rocksdb(store);
	store_tubes_free(store);
	store_space_close(store);
	store_dir_close(store);
	free(store->db_path);
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

/* --- what it takes ------------------------------------------------------------------------ */

static uint64_t memory_bytes(struct store *store)
{
	uint64_t buffers = 0;

	rocksdb_property_int(store->db, "rocksdb.cur-size-all-mem-tables", &buffers);
	return buffers + rocksdb_cache_get_usage(store->cache);
}

void store_stats(struct store *store, struct store_stats *stats)
{
	struct statvfs disk;

	memset(stats, 0, sizeof(*stats));
	if (!fstatvfs(store->dir_fd, &disk))
		stats->free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
	stats->changes = store->records;
	stats->syncs = store->syncer.syncs;
	stats->sync_ns = store->syncer.sync_ns;
	stats->sync_max_ns = store->syncer.sync_max_ns;
	stats->disk_bytes = store_dir_bytes(store);
	stats->memory_bytes = memory_bytes(store);
	stats->scrubs = store->scrubber.passes;
	stats->scrubbed_bytes = store->scrubber.bytes;
	stats->damaged = store->damaged;
}
