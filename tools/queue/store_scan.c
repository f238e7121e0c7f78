// SPDX-License-Identifier: GPL-2.0
/*
 * Reading everything once, which has RocksDB check every block, and decoding all of it.
 *
 * A store that is small is read before it is served. Counts are held against the indexes
 * then, too: a count that was written with changes that are lost does not agree.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "store_internal.h"

/* One entry; the value of a body is whatever it is. */
static bool makes_sense(struct store *store, const char *key, size_t key_len,
			const char *value, size_t len)
{
	struct tube_counts counts;
	struct job_record job;
	struct tube_record tube;
	uint64_t number;
	uint32_t id;

	switch (*key) {
	case 'p':
		return key_len == 9;
	case 'v':
		return key_len == 9 && !len;
	case 'j':
		return store_decode_id(key, key_len, 'j', &number) &&
			store_decode_job(number, value, len, &job);
	case 'r': case 'd': case 'w': case 'b':
		if (!store_decode_place(key, key_len, value, len, &job.place))
			return false;
		store_tubes_see(store, &job.place);
		return true;
	case 't':
		return store_decode_tube(key, key_len, value, len, &tube);
	case 'c':
		return store_decode_counts(key, key_len, value, len, &id, &counts);
	case 'k': case 'm':
		return store_decode_u64(value, len, &number);
	}
	return false;
}

static int scan_entries(struct store *store, rocksdb_iterator_t *iterator)
{
	const char *key, *value;
	size_t key_len, len;
	char what[64];

	rocksdb_iter_seek_to_first(iterator);
	for (; rocksdb_iter_valid(iterator); rocksdb_iter_next(iterator)) {
		key = rocksdb_iter_key(iterator, &key_len);
		value = rocksdb_iter_value(iterator, &len);
		if (key_len && makes_sense(store, key, key_len, value, len))
			continue;
		snprintf(what, sizeof(what), "an entry of kind '%.1s'", key_len ? key : "?");
		return store_damaged(store, what, NULL);
	}
	return 0;
}

int store_scan(struct store *store)
{
	rocksdb_readoptions_t *options = rocksdb_readoptions_create();
	rocksdb_iterator_t *iterator;
	char *error = NULL, what[64];
	uint32_t wrong;
	int ret;

	rocksdb_readoptions_set_fill_cache(options, 0);
	rocksdb_readoptions_set_verify_checksums(options, 1);
	iterator = rocksdb_create_iterator(store->db, options);
	ret = scan_entries(store, iterator);
	rocksdb_iter_get_error(iterator, &error);
	rocksdb_iter_destroy(iterator);
	rocksdb_readoptions_destroy(options);
	if (error)
		return store_damaged(store, "a block", error);
	if (ret || store_tubes_agree(store, &wrong))
		return ret;
	snprintf(what, sizeof(what), "the counts of tube %" PRIu32, wrong);
	return store_damaged(store, what, NULL);
}
