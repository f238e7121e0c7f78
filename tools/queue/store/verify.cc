// SPDX-License-Identifier: GPL-2.0
/*
 * Checksums of all blocks of RocksDB's tables. The header for C has no function for it: hence
 * C++.
 */
#include <string.h>

#include <rocksdb/db.h>

#include "queue/store/verify.h"

/* As in RocksDB's db/c.cc. */
struct rocksdb_t {
	rocksdb::DB *rep;
};

char *verify_tables(rocksdb_t *db)
{
	rocksdb::ReadOptions options;
	rocksdb::Status status;

	options.readahead_size = 1 << 20;
	status = db->rep->VerifyChecksum(options);
	return status.ok() ? NULL : strdup(status.ToString().c_str());
}
