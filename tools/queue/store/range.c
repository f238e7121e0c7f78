// SPDX-License-Identifier: GPL-2.0
#include <string.h>

#include "queue/store/fault.h"
#include "queue/store/range.h"
#include "queue/store/state.h"

void store_range_end(struct store_range *range, const uint8_t *prefix, size_t len)
{
	memcpy(range->end, prefix, len);
	range->end_len = len;
	while (len && ++range->end[len - 1] == 0)
		len--;
}

void store_range_open(struct store *store, struct store_range *range,
		      rocksdb_readoptions_t *options)
{
	range->options = options;
	rocksdb_readoptions_set_iterate_lower_bound(options, (char *)range->begin,
						    range->begin_len);
	rocksdb_readoptions_set_iterate_upper_bound(options, (char *)range->end, range->end_len);
	range->iterator = rocksdb_create_iterator(store->db, options);
}

char *store_range_stop(struct store_range *range)
{
	char *error = NULL;

	rocksdb_iter_get_error(range->iterator, &error);
	rocksdb_iter_destroy(range->iterator);
	rocksdb_readoptions_destroy(range->options);
	return error;
}

int store_range_close(struct store *store, struct store_range *range, const char *what, int ret)
{
	char *error = store_range_stop(range);

	return error ? store_unread(store, what, error) : ret;
}
