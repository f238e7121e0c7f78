// SPDX-License-Identifier: GPL-2.0
/*
 * A check of RocksDB's logs before RocksDB opens them: is the end torn, or is there damage?
 *
 * RocksDB treats unreadable bytes at the end of a log as a write that was not finished when the
 * machine stopped. It cannot tell this from a damaged length in the last 32 KiB, and would drop
 * all records after it silently. This check tells them apart:
 *
 *	intact records | bytes, with no intact record in this or a later log	torn: cut off
 *	intact records | bytes | ... | an intact record				damage
 *	intact records up to change n | a record that starts after n + 1	damage
 *
 * A log is a file of records (records.c). The contents of a record start with the number of its
 * first change (8 bytes) and its number of changes (4 bytes), both little-endian, so a missing
 * record is noticed. Logs that are no longer needed (manifest.c) are not checked.
 */
#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "queue/integrity/log.h"
#include "queue/integrity/manifest.h"
#include "queue/integrity/records.h"
#include "queue/store/fault.h"
#include "queue/store/state.h"

#define BATCH_HEADER	12

/**
 * struct log_check - state of the check
 * @store: the store.
 * @cut: cut off torn ends.
 * @name: name of the current log.
 * @file: contents of the current log.
 * @next: the number that the next change must have; 0: any.
 * @torn: the position where the intact records of this log end, or STORE_NO_RECORD.
 */
struct log_check {
	struct store *store;
	bool cut;
	char name[64];
	struct store_records file;
	uint64_t next;
	size_t torn;
};

/* --- records after damage ----------------------------------------------------------------- */

/* A quick test of each byte: can a record start at @at? */
static bool may_be_record(const struct log_check *check, size_t at)
{
	const uint8_t *piece = check->file.bytes + at;
	uint64_t number;

	if (check->file.len - at < STORE_RECORD_HEADER + BATCH_HEADER ||
	    piece[6] < STORE_PIECE_WHOLE || piece[6] > STORE_PIECE_FIRST ||
	    store_records_piece_len(piece) < BATCH_HEADER)
		return false;
	memcpy(&number, piece + STORE_RECORD_HEADER, sizeof(number));
	number = le64toh(number);
	return number >= check->next && number - check->next < 1ull << 48;
}

/* Returns whether an intact record starts at @at that can follow a missing one. */
static bool is_later_record(const struct log_check *check, size_t at)
{
	return (store_records_starts_block(at) || may_be_record(check, at)) &&
		store_records_is_intact(&check->file, at);
}

static size_t find_later_record(const struct log_check *check, size_t at)
{
	for (; at < check->file.len; at++)
		if (is_later_record(check, at))
			return at;
	return STORE_NO_RECORD;
}

/* --- records ------------------------------------------------------------------------------ */

static bool follows(struct log_check *check, const struct store_record_head *head)
{
	uint64_t number;
	uint32_t count;

	memcpy(&number, head->bytes, sizeof(number));
	memcpy(&count, head->bytes + sizeof(number), sizeof(count));
	number = le64toh(number);
	if (check->next && number != check->next)
		return false;
	check->next = number + le32toh(count);
	return true;
}

/* --- logs --------------------------------------------------------------------------------- */

static int say_damage(const struct log_check *check, size_t at, size_t found)
{
	store_say(check->store, LOG_ERR,
		  "%s/%s: damaged at byte %zu: %zu bytes follow, with an intact record at byte %zu",
		  check->store->db_path, check->name, at, check->file.len - at, found);
	return -EBADMSG;
}

static int say_gap(const struct log_check *check, size_t at, uint64_t before)
{
	store_say(check->store, LOG_ERR,
		  "%s/%s: damaged: the changes before byte %zu, from number %" PRIu64
		  " on, are missing", check->store->db_path, check->name, at, before);
	return -EBADMSG;
}

/* Returns the end of the record at @at, or STORE_NO_RECORD if it is not intact. */
static size_t read_batch(const struct log_check *check, size_t at, struct store_record_head *head)
{
	size_t end = store_records_read(&check->file, at, head);

	return head->len < BATCH_HEADER ? STORE_NO_RECORD : end;
}

static int check_log(struct log_check *check)
{
	struct store_record_head head;
	size_t at = 0, end, found;
	uint64_t next;

	check->torn = STORE_NO_RECORD;
	while (store_records_skip_rest(at) < check->file.len) {
		end = read_batch(check, at, &head);
		if (end == STORE_NO_RECORD) {
			found = find_later_record(check, at + 1);
			if (found != STORE_NO_RECORD)
				return say_damage(check, at, found);
			check->torn = at;
			return 0;
		}
		next = check->next;
		if (!follows(check, &head))
			return say_gap(check, at, next);
		at = end;
	}
	return 0;
}

static int cut_log(struct log_check *check, int dir_fd)
{
	int fd = openat(dir_fd, check->name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	int ret = 0;

	if (fd < 0 || ftruncate(fd, (off_t)check->torn) || fsync(fd))
		ret = -errno;
	if (fd >= 0)
		close(fd);
	return ret;
}

/*
 * Logs after a log with a torn end must continue at its end: check_log() finds a gap, because
 * @next is kept.
 */
static int check_file(struct log_check *check, int dir_fd)
{
	int ret = store_records_open(&check->file, dir_fd, check->name);
	size_t len;

	if (ret)
		return ret;
	ret = check_log(check);
	len = check->file.len;
	store_records_close(&check->file);
	if (ret || check->torn == STORE_NO_RECORD)
		return ret;
	store_say(check->store, LOG_WARNING,
		  "%s/%s: the end is torn: %zu bytes are not a record%s",
		  check->store->db_path, check->name, len - check->torn,
		  check->cut ? " and are cut off" : "");
	return check->cut ? cut_log(check, dir_fd) : 0;
}

static int is_log(const struct dirent *file)
{
	uint64_t number;
	int len = 0;

	return sscanf(file->d_name, "%" SCNu64 ".log%n", &number, &len) == 1 && len &&
		!file->d_name[len];
}

static int compare_numbers(const struct dirent **a, const struct dirent **b)
{
	uint64_t number_a = strtoull((*a)->d_name, NULL, 10);
	uint64_t number_b = strtoull((*b)->d_name, NULL, 10);

	return number_a < number_b ? -1 : number_a > number_b;
}

int store_log_check(struct store *store, bool cut_torn)
{
	struct log_check check = { .store = store, .cut = cut_torn };
	struct dirent **files;
	int nr, i, dir_fd, ret = 0;
	uint64_t first;

	dir_fd = openat(store->dir_fd, "db", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return errno == ENOENT ? store_damaged(store, "there is no db/", NULL) : -errno;
	first = store_manifest_first_log(dir_fd);
	nr = scandirat(store->dir_fd, "db", &files, is_log, compare_numbers);
	for (i = 0; i < nr; i++) {
		snprintf(check.name, sizeof(check.name), "%.60s", files[i]->d_name);
		if (!ret && strtoull(check.name, NULL, 10) >= first)
			ret = check_file(&check, dir_fd);
		free(files[i]);
	}
	if (nr >= 0)
		free(files);
	close(dir_fd);
	return nr < 0 ? -EIO : ret;
}
