// SPDX-License-Identifier: GPL-2.0
/*
 * The options of RocksDB.
 *
 * Memory: half of config.memory is the block cache, which also holds index and filter blocks.
 * A quarter is write buffers: four, and RocksDB flushes the full ones to tables.
 *
 * Disk: a write buffer is at most 1/256 of the reserve. At most 32 tables of that size wait in
 * level 0. Their compaction reads them and the whole next level, about twice their size. With
 * the result, the buffers and the logs, the space that RocksDB needs to go on is less than the
 * reserve, if the reserve is 8 MiB or more. When 24 tables wait, writes are slowed down. A
 * small reserve makes small buffers, and more compactions: with 128 MiB 7.1 bytes were written
 * for each byte of 4 KB bodies, with 1 GiB 5.3, at twice the rate.
 *
 * The compaction of level 0 starts at 12 tables, not at RocksDB's default of 4. RocksDB compares
 * the size of level 0, ten times and in units of that number, with the size of the next level.
 * With 4, that level grew to 13 MiB on a disk of 64 MiB, and each compaction read all of it;
 * with 12 it grew to 3 MiB. With 4, compactions also took more time than the puts themselves
 * (61,000 puts/s, compared with 110,000 with 12). A queue deletes all jobs that it puts, so a
 * table in which half of the entries of a window are deletes is compacted at once.
 */
#include "queue/store/fault.h"
#include "queue/store/info_log.h"
#include "queue/store/rocksdb.h"
#include "queue/store/state.h"

#define BUFFERS			4
#define BUFFER_LEAST		(64u << 10)
#define BUFFER_MOST		(16u << 20)
#define TABLES_SLOW		24
#define TABLES_STOP		32
#define BLOOM_BITS		10
#define OPEN_TABLES		256

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

static void set_files(struct store *store, rocksdb_options_t *options)
{
	unsigned int open_tables = store->config.open_tables;

	rocksdb_options_set_paranoid_checks(options, 1);
	rocksdb_options_set_manual_wal_flush(options, 1);
	rocksdb_options_set_wal_recovery_mode(options, rocksdb_point_in_time_recovery);
	rocksdb_options_set_recycle_log_file_num(options, 0);
	rocksdb_options_set_max_open_files(options, open_tables ? (int)open_tables : OPEN_TABLES);
	rocksdb_options_set_manifest_preallocation_size(options, 64 << 10);
	rocksdb_options_set_max_manifest_file_size(options, 4 << 20);
	rocksdb_options_set_skip_stats_update_on_db_open(options, 1);
	rocksdb_options_set_stats_dump_period_sec(options, 0);
	rocksdb_options_set_stats_persist_period_sec(options, 0);
}

/*
 * RocksDB 7.8 ends a walk without an error where the first block of the next table is damaged,
 * unless it ignores deleted ranges. The store deletes no ranges.
 */
rocksdb_readoptions_t *store_make_read_options(void)
{
	rocksdb_readoptions_t *options = rocksdb_readoptions_create();

	rocksdb_readoptions_set_ignore_range_deletions(options, 1);
	return options;
}

/* Set an option for which the header for C has no function. Returns whether RocksDB knows it. */
static bool set_by_name(struct store *store, const char *option)
{
	rocksdb_options_t *changed = rocksdb_options_create();
	char *error = NULL;

	rocksdb_get_options_from_string(store->options, option, changed, &error);
	if (error) {
		store_say(store, LOG_WARNING, "%s: RocksDB refuses an option: %s", store->dir,
			  error);
		rocksdb_options_destroy(changed);
		rocksdb_free(error);
		return false;
	}
	rocksdb_options_destroy(store->options);
	store->options = changed;
	return true;
}

/*
 * By default a compaction also takes all tables of its level that lie within the range of the
 * next level's tables, however many: a fifth of a full disk at once. Switch this off. From
 * version 9 on RocksDB has no such option.
 */
static void bound_compactions(struct store *store)
{
	if (!set_by_name(store, "ignore_max_compaction_bytes_for_input=false"))
		store_say(store, LOG_WARNING, "%s: compactions are not bounded", store->dir);
}

/*
 * RocksDB notes in its list of files which logs were synced, and how long they are: one that is
 * missing, or too short, is noticed when the store is opened.
 */
static void verify_logs(struct store *store)
{
	if (!set_by_name(store, "track_and_verify_wals_in_manifest=true"))
		store_say(store, LOG_WARNING, "%s: a missing log may not be noticed", store->dir);
}

rocksdb_options_t *store_make_salvage_options(const struct store *store)
{
	rocksdb_options_t *options = rocksdb_options_create_copy(store->options);

	rocksdb_options_set_wal_recovery_mode(options,
					      rocksdb_skip_any_corrupted_records_recovery);
	return options;
}

void store_set_options(struct store *store)
{
	store->options = rocksdb_options_create();
	set_tables(store, store->options);
	set_shape(store, store->options);
	set_files(store, store->options);
	bound_compactions(store);
	verify_logs(store);
	info_log_set(store->options, store->config.log, NULL);
	rocksdb_options_set_create_if_missing(store->options, store->fresh);
	rocksdb_options_set_error_if_exists(store->options, store->fresh);
	store->read_options = store_make_read_options();
	store->write_options = rocksdb_writeoptions_create();
	store->write_at_once = rocksdb_writeoptions_create();
	rocksdb_writeoptions_set_no_slowdown(store->write_at_once, 1);
	store->batch = rocksdb_writebatch_create();
}
