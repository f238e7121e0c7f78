// SPDX-License-Identifier: GPL-2.0
/*
 * Headers in a damaged log on which RocksDB loops for ever.
 *
 * RocksDB can write a new log over an old one. The records of such a log have types of their
 * own, 5 to 8, and the number of their log. The store does not use this, so such a type is
 * damage: a changed bit, or bytes within a record that are taken for a header. The mode in
 * which a repair reads logs ignores a record that has the number of another log. But RocksDB
 * 7.8 does not go past it: it reads the same header again and again.
 *
 * So each such header is set to zero. At a header of zeros RocksDB goes on with the next block,
 * as it does after any other damaged header.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "queue/integrity/records.h"
#include "queue/integrity/recycled.h"
#include "queue/store/state.h"

#define TYPE_FIRST	5
#define TYPE_LAST	8

/* Walk the headers as RocksDB does. Returns whether one was cleared. */
static bool clear_headers(struct store_records *file)
{
	bool cleared = false;
	size_t at = 0;

	for (; at < file->len; at = store_records_skip_rest(at)) {
		uint8_t *piece = file->bytes + at;

		if (file->len - at < STORE_RECORD_HEADER)
			break;
		if (piece[6] >= TYPE_FIRST && piece[6] <= TYPE_LAST) {
			memset(piece, 0, STORE_RECORD_HEADER);
			cleared = true;
		}
		if (store_records_is_intact(file, at))
			at += STORE_RECORD_HEADER + store_records_piece_len(piece);
		else
			at = store_records_next_block(at);
	}
	return cleared;
}

static int write_file(int dir_fd, const char *name, const struct store_records *file)
{
	int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	size_t done = 0;
	ssize_t n = 0;
	int ret = 0;

	if (fd < 0)
		return -errno;
	for (; done < file->len && n >= 0; done += (size_t)n)
		n = write(fd, file->bytes + done, file->len - done);
	if (n < 0 || fsync(fd))
		ret = -errno;
	close(fd);
	return ret;
}

/* If the log is kept already, an earlier repair has not ended. */
static int replace_log(int dir_fd, const char *name, const struct store_records *file)
{
	char kept[80], cleared[80];
	int ret;

	snprintf(kept, sizeof(kept), "%.60s.damaged", name);
	snprintf(cleared, sizeof(cleared), "%.60s.cleared", name);
	ret = write_file(dir_fd, cleared, file);
	if (!ret && linkat(dir_fd, name, dir_fd, kept, 0) && errno != EEXIST)
		ret = -errno;
	if (!ret && renameat(dir_fd, cleared, dir_fd, name))
		ret = -errno;
	if (ret)
		unlinkat(dir_fd, cleared, 0);
	return ret;
}

static int clear_log(struct store *store, int dir_fd, const char *name)
{
	struct store_records file;
	int ret = store_records_open(&file, dir_fd, name);

	if (ret)
		return ret;
	if (clear_headers(&file)) {
		ret = replace_log(dir_fd, name, &file);
		store_say(store, LOG_WARNING, "%s/%s: has headers that RocksDB cannot pass: %s",
			  store->db_path, name, ret ? strerror(-ret) : "they are cleared");
	}
	store_records_close(&file);
	return ret;
}

/* For scandirat(). */
static int is_log(const struct dirent *file)
{
	const char *dot = strrchr(file->d_name, '.');

	return dot && !strcmp(dot, ".log");
}

int store_clear_recycled(struct store *store)
{
	struct dirent **logs;
	int dir_fd = openat(store->dir_fd, "db", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int nr, i, ret = 0;

	if (dir_fd < 0)
		return errno == ENOENT ? 0 : -errno;
	nr = scandirat(dir_fd, ".", &logs, is_log, alphasort);
	for (i = 0; i < nr; i++) {
		if (!ret)
			ret = clear_log(store, dir_fd, logs[i]->d_name);
		free(logs[i]);
	}
	if (nr >= 0)
		free(logs);
	close(dir_fd);
	return nr < 0 ? -EIO : ret;
}
