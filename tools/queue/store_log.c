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
 * A log is blocks of 32 KiB; a record does not cross them, but is in pieces then:
 *
 *	crc32c of type and bytes, masked (4) | length (2) | type (1) | bytes
 *	type: 1 whole, 2 first piece, 3 one in the middle, 4 last piece
 *
 * and what it holds begins with the number of its first change (8) and how many these are
 * (4), so that a record that is missing is noticed. All of these are little-endian.
 */
#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "crc32c.h"
#include "store_internal.h"

#define BLOCK		32768
#define HEADER		7
#define BATCH_HEADER	12
#define NO_RECORD	SIZE_MAX

enum piece {
	PIECE_WHOLE = 1,
	PIECE_FIRST,
	PIECE_MIDDLE,
	PIECE_LAST
};

/**
 * struct log_look - what is known so far
 * @store: of this store.
 * @cut: torn ends are cut off.
 * @name: the log that is looked at.
 * @bytes: what it has.
 * @len: how much that is.
 * @next: the number that the next change must have; 0: any.
 * @torn: where intact records of this log end, or NO_RECORD.
 */
struct log_look {
	struct store *store;
	bool cut;
	char name[64];
	const uint8_t *bytes;
	size_t len;
	uint64_t next;
	size_t torn;
};

/* --- pieces of records -------------------------------------------------------------------- */

static uint16_t piece_len(const uint8_t *piece)
{
	return (uint16_t)(piece[4] | piece[5] << 8);
}

static bool is_intact(const struct log_look *look, size_t at)
{
	size_t room = BLOCK - at % BLOCK;
	const uint8_t *piece = look->bytes + at;
	uint32_t stored, crc;

	if (room > look->len - at)
		room = look->len - at;
	if (room < HEADER || piece[6] < PIECE_WHOLE || piece[6] > PIECE_LAST ||
	    (size_t)HEADER + piece_len(piece) > room)
		return false;
	memcpy(&stored, piece, sizeof(stored));
	crc = crc32c(piece + 6, (size_t)piece_len(piece) + 1);
	crc = (crc >> 15 | crc << 17) + 0xa282ead8;
	return le32toh(stored) == crc;
}

/* The rest of a block that has no room for a header is not used. */
static size_t skip_rest(size_t at)
{
	return BLOCK - at % BLOCK < HEADER ? at + BLOCK - at % BLOCK : at;
}

/* Could a record begin at @at? This is asked of each byte, and mostly says no. */
static bool looks_like_record(const struct log_look *look, size_t at)
{
	const uint8_t *piece = look->bytes + at;
	uint64_t number;

	if (look->len - at < HEADER + BATCH_HEADER || piece[6] < PIECE_WHOLE ||
	    piece[6] > PIECE_FIRST || piece_len(piece) < BATCH_HEADER)
		return false;
	memcpy(&number, piece + HEADER, sizeof(number));
	number = le64toh(number);
	return number >= look->next && number - look->next < 1ull << 48;
}

/* Is there a record at @at, as it may be behind one that is missing? */
static bool is_later_record(const struct log_look *look, size_t at)
{
	return (at % BLOCK == 0 || looks_like_record(look, at)) && is_intact(look, at);
}

static size_t find_later_record(const struct log_look *look, size_t at)
{
	for (; at < look->len; at++)
		if (is_later_record(look, at))
			return at;
	return NO_RECORD;
}

/* --- records ------------------------------------------------------------------------------ */

/* The first bytes of a record, from as many pieces as that takes. */
struct batch_head {
	uint8_t bytes[BATCH_HEADER];
	size_t len;
};

static void add_to_head(struct batch_head *head, const uint8_t *piece)
{
	size_t len = piece_len(piece);

	if (len > BATCH_HEADER - head->len)
		len = BATCH_HEADER - head->len;
	memcpy(head->bytes + head->len, piece + HEADER, len);
	head->len += len;
}

/* Returns where the record that begins at @at ends, or NO_RECORD if it is not intact. */
static size_t read_record(const struct log_look *look, size_t at, struct batch_head *head)
{
	bool first = true;
	uint8_t type;

	head->len = 0;
	do {
		at = skip_rest(at);
		if (at >= look->len || !is_intact(look, at))
			return NO_RECORD;
		type = look->bytes[at + 6];
		if (first != (type == PIECE_WHOLE || type == PIECE_FIRST))
			return NO_RECORD;
		first = false;
		add_to_head(head, look->bytes + at);
		at += HEADER + piece_len(look->bytes + at);
	} while (type == PIECE_FIRST || type == PIECE_MIDDLE);
	return head->len == BATCH_HEADER ? at : NO_RECORD;
}

static bool follows(struct log_look *look, const struct batch_head *head)
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
		  look->store->db_path, look->name, at, look->len - at, found);
	return -EBADMSG;
}

static int say_gap(const struct log_look *look, size_t at, uint64_t before)
{
	store_say(look->store, LOG_ERR,
		  "%s/%s: damaged: what was changed before byte %zu, from number %" PRIu64
		  " on, is missing", look->store->db_path, look->name, at, before);
	return -EBADMSG;
}

static int look_at_log(struct log_look *look)
{
	struct batch_head head;
	size_t at = 0, end, found;
	uint64_t next;

	look->torn = NO_RECORD;
	while (skip_rest(at) < look->len) {
		end = read_record(look, at, &head);
		if (end == NO_RECORD) {
			found = find_later_record(look, at + 1);
			if (found != NO_RECORD)
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

static int map_log(struct log_look *look, int dir_fd)
{
	int fd = openat(dir_fd, look->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat stat;
	int ret = 0;

	if (fd < 0)
		return -errno;
	look->bytes = NULL;
	if (fstat(fd, &stat)) {
		ret = -errno;
	} else if (stat.st_size) {
		look->len = (size_t)stat.st_size;
		look->bytes = mmap(NULL, look->len, PROT_READ, MAP_PRIVATE, fd, 0);
		if (look->bytes == MAP_FAILED)
			ret = -errno;
	}
	close(fd);
	return ret;
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
	int ret = map_log(look, dir_fd);

	if (ret || !look->bytes)
		return ret;
	ret = look_at_log(look);
	munmap((void *)look->bytes, look->len);
	if (ret || look->torn == NO_RECORD)
		return ret;
	store_say(look->store, LOG_WARNING,
		  "%s/%s: the end is torn: %zu bytes that make no record%s",
		  look->store->db_path, look->name, look->len - look->torn,
		  look->cut ? " are cut off" : "");
	return look->cut ? cut(look, dir_fd) : 0;
}

static int is_log(const struct dirent *file)
{
	uint64_t number;
	char end;

	return sscanf(file->d_name, "%" SCNu64 ".lo%c", &number, &end) == 2 && end == 'g';
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

	dir_fd = openat(store->dir_fd, "db", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return errno == ENOENT ? store_damaged(store, "there is no db/", NULL) : -errno;
	nr = scandirat(store->dir_fd, "db", &files, is_log, by_number);
	for (i = 0; i < nr; i++) {
		snprintf(look.name, sizeof(look.name), "%.60s", files[i]->d_name);
		if (!ret)
			ret = look_at_file(&look, dir_fd);
		free(files[i]);
	}
	if (nr >= 0)
		free(files);
	close(dir_fd);
	return nr < 0 ? -EIO : ret;
}
