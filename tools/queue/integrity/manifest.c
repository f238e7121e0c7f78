// SPDX-License-Identifier: GPL-2.0
/*
 * Which of RocksDB's logs are needed: RocksDB's list of files, MANIFEST, has the number of the
 * first. The data of older logs is in tables, and RocksDB deletes these logs later, in any
 * order. If it is killed before, a log in the middle may be gone, and no data is missing.
 *
 *	CURRENT		the name of the list, and a newline
 *	MANIFEST-N	records (records.c), each a change of the list:
 *			tag and number, tag and number, ... | tables
 *
 * Tags and numbers are varints. The numbers come before the tables; reading stops at these.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "queue/integrity/manifest.h"
#include "queue/integrity/records.h"
#include "queue/store/state.h"

enum tag {
	TAG_COMPARATOR = 1,
	TAG_LOG_NUMBER,
	TAG_NEXT_FILE,
	TAG_LAST_SEQUENCE,
	TAG_PREVIOUS_LOG = 9,
	TAG_MAX_FAMILY = 203,
	TAG_DB_ID = 8193,
};

/* Returns false at the end of @head. */
static bool get_varint(struct store_record_head *head, size_t *at, uint64_t *number)
{
	unsigned int shift = 0;
	uint8_t byte;

	*number = 0;
	do {
		if (*at >= head->len || shift > 63)
			return false;
		byte = head->bytes[(*at)++];
		*number |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	return true;
}

/* Returns false at the end of the numbers of a record. */
static bool read_field(struct store_record_head *head, size_t *at, uint64_t *log)
{
	uint64_t tag, number;

	if (!get_varint(head, at, &tag) || !get_varint(head, at, &number))
		return false;
	switch (tag) {
	case TAG_LOG_NUMBER:
		if (number > *log)
			*log = number;
		return true;
	case TAG_NEXT_FILE:
	case TAG_LAST_SEQUENCE:
	case TAG_PREVIOUS_LOG:
	case TAG_MAX_FAMILY:
		return true;
	case TAG_COMPARATOR:
	case TAG_DB_ID:
		/* The number is the length of a string. */
		if (number > head->len - *at)
			return false;
		*at += number;
		return true;
	default:
		return false;
	}
}

/* As RocksDB does, stop at the first record that is not intact. */
static uint64_t read_list(const struct store_records *list)
{
	struct store_record_head head;
	uint64_t log = 0;
	size_t at = 0;

	while (store_records_skip_rest(at) < list->len) {
		size_t field = 0;

		at = store_records_read(list, at, &head);
		if (at == STORE_NO_RECORD)
			break;
		while (read_field(&head, &field, &log))
			;
	}
	return log;
}

static bool read_name(int dir_fd, char name[64])
{
	int fd = openat(dir_fd, "CURRENT", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t len;

	if (fd < 0)
		return false;
	len = read(fd, name, 63);
	close(fd);
	if (len < 0)
		return false;
	name[len] = '\0';
	name[strcspn(name, "\n")] = '\0';
	return !strncmp(name, "MANIFEST-", 9) && !strchr(name, '/');
}

uint64_t store_manifest_first_log(int dir_fd)
{
	struct store_records list;
	uint64_t log;
	char name[64];

	if (!read_name(dir_fd, name) || store_records_open(&list, dir_fd, name))
		return 0;
	log = read_list(&list);
	store_records_close(&list);
	return log;
}
