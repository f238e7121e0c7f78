// SPDX-License-Identifier: GPL-2.0
/*
 * A look at RocksDB's logs before it opens them: is an end torn, or is there damage?
 *
 * RocksDB takes whatever it cannot read at the end of a log for the end of what was
 * written when the machine stopped. It cannot tell that from a damaged length in the last
 * 32 KiB, and would go on silently without all that is behind it. This can:
 *
 *	intact records | not a record | nothing like a record, in no log	torn: is cut
 *	intact records | not a record | ... | an intact record			damage
 *	intact records of numbers up to n | a record of a number > n + 1	damage
 *
 * A log is records (store_records.c), and what one holds begins with the number of its first
 * change (8) and how many these are (4), so that a record that is missing is noticed. Both
 * are little-endian. Logs that are needed no more are not looked at (store_manifest.c).
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

#include "store_internal.h"
#include "store_records.h"

#define BATCH_HEADER	12

/**
 * struct log_look - what is known so far
 * @store: of this store.
 * @cut: torn ends are cut off.
 * @name: the log that is looked at.
 * @file: what it has.
 * @next: the number that the next change must have; 0: any.
 * @torn: where intact records of this log end, or STORE_NO_RECORD.
 */
struct log_look {
	struct store *store;
	bool cut;
	char name[64];
	struct store_records file;
	uint64_t next;
	size_t torn;
};

/* --- behind what is missing --------------------------------------------------------------- */

/* Could a record begin at @at? This is asked of each byte, and mostly says no. */
static bool looks_like_record(const struct log_look *look, size_t at)
{
	const uint8_t *piece = look->file.bytes + at;
	uint64_t number;

	if (look->file.len - at < STORE_RECORD_HEADER + BATCH_HEADER ||
	    piece[6] < STORE_PIECE_WHOLE || piece[6] > STORE_PIECE_FIRST ||
	    store_records_piece_len(piece) < BATCH_HEADER)
		return false;
	memcpy(&number, piece + STORE_RECORD_HEADER, sizeof(number));
	number = le64toh(number);
	return number >= look->next && number - look->next < 1ull << 48;
}

/* Is there a record at @at, as it may be behind one that is missing? */
static bool is_later_record(const struct log_look *look, size_t at)
{
	return (store_records_starts_block(at) || looks_like_record(look, at)) &&
		store_records_is_intact(&look->file, at);
}

static size_t find_later_record(const struct log_look *look, size_t at)
{
	for (; at < look->file.len; at++)
		if (is_later_record(look, at))
			return at;
	return STORE_NO_RECORD;
}

/* --- records ------------------------------------------------------------------------------ */

static bool follows(struct log_look *look, const struct store_record_head *head)
{
	uint64_t number;
	uint32_t count;

	memcpy(&number, head->bytes, sizeof(number));
	memcpy(&count, head->bytes + sizeof(number), sizeof(count));
	number = le64toh(number);
	if (look->next && number != look->next)
		return false;
	look->next = number + le32toh(count);
	return true;
}

/* --- logs --------------------------------------------------------------------------------- */

static int say_damage(const struct log_look *look, size_t at, size_t found)
{
	store_say(look->store, LOG_ERR,
		  "%s/%s: damaged at byte %zu: %zu bytes follow, with an intact record at byte %zu",
		  look->store->db_path, look->name, at, look->file.len - at, found);
	return -EBADMSG;
}

static int say_gap(const struct log_look *look, size_t at, uint64_t before)
{
	store_say(look->store, LOG_ERR,
		  "%s/%s: damaged: what was changed before byte %zu, from number %" PRIu64
		  " on, is missing", look->store->db_path, look->name, at, before);
	return -EBADMSG;
}

/* Returns where the record at @at ends, or STORE_NO_RECORD if it is not intact. */
static size_t read_batch(const struct log_look *look, size_t at, struct store_record_head *head)
{
	size_t end = store_records_read(&look->file, at, head);

	return head->len < BATCH_HEADER ? STORE_NO_RECORD : end;
}

static int look_at_log(struct log_look *look)
{
	struct store_record_head head;
	size_t at = 0, end, found;
	uint64_t next;

	look->torn = STORE_NO_RECORD;
	while (store_records_skip_rest(at) < look->file.len) {
		end = read_batch(look, at, &head);
		if (end == STORE_NO_RECORD) {
			found = find_later_record(look, at + 1);
			if (found != STORE_NO_RECORD)
				return say_damage(look, at, found);
			look->torn = at;
			return 0;
		}
		next = look->next;
		if (!follows(look, &head))
			return say_gap(look, at, next);
		at = end;
	}
	return 0;
}

static int cut(struct log_look *look, int dir_fd)
{
	int fd = openat(dir_fd, look->name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	int ret = 0;

	if (fd < 0 || ftruncate(fd, (off_t)look->torn) || fsync(fd))
		ret = -errno;
	if (fd >= 0)
		close(fd);
	return ret;
}

/*
 * Logs behind one whose end is torn must go on where it ends: look_at_log() sees to that,
 * as @next stays.
 */
static int look_at_file(struct log_look *look, int dir_fd)
{
	int ret = store_records_open(&look->file, dir_fd, look->name);
	size_t len;

	if (ret)
		return ret;
	ret = look_at_log(look);
	len = look->file.len;
	store_records_close(&look->file);
	if (ret || look->torn == STORE_NO_RECORD)
		return ret;
	store_say(look->store, LOG_WARNING,
		  "%s/%s: the end is torn: %zu bytes that make no record%s",
		  look->store->db_path, look->name, len - look->torn,
		  look->cut ? " are cut off" : "");
	return look->cut ? cut(look, dir_fd) : 0;
}

static int is_log(const struct dirent *file)
{
	uint64_t number;
	int len = 0;

	return sscanf(file->d_name, "%" SCNu64 ".log%n", &number, &len) == 1 && len &&
		!file->d_name[len];
}

static int by_number(const struct dirent **a, const struct dirent **b)
{
	uint64_t number_a = strtoull((*a)->d_name, NULL, 10);
	uint64_t number_b = strtoull((*b)->d_name, NULL, 10);

	return number_a < number_b ? -1 : number_a > number_b;
}

int store_log_look(struct store *store, bool cut_torn)
{
	struct log_look look = { .store = store, .cut = cut_torn };
	struct dirent **files;
	int nr, i, dir_fd, ret = 0;
	uint64_t first;

	dir_fd = openat(store->dir_fd, "db", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return errno == ENOENT ? store_damaged(store, "there is no db/", NULL) : -errno;
	first = store_manifest_first_log(dir_fd);
	nr = scandirat(store->dir_fd, "db", &files, is_log, by_number);
	for (i = 0; i < nr; i++) {
		snprintf(look.name, sizeof(look.name), "%.60s", files[i]->d_name);
		if (!ret && strtoull(look.name, NULL, 10) >= first)
			ret = look_at_file(&look, dir_fd);
		free(files[i]);
	}
	if (nr >= 0)
		free(files);
	close(dir_fd);
	return nr < 0 ? -EIO : ret;
}
