// SPDX-License-Identifier: GPL-2.0
/* The map of done offsets, in pieces. */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "relay/rules/pieces.h"

#define VERSION		1
#define WORD_BITS	64
#define LOW_NAME	"low"

/* --- keys ----------------------------------------------------------------------------- */

size_t piece_key_write(const struct piece_key *key, char text[PIECE_KEY_MAX])
{
	char begin[24] = LOW_NAME;

	if (key->begin != PIECE_LOW)
		snprintf(begin, sizeof(begin), "%" PRId64, key->begin);
	return snprintf(text, PIECE_KEY_MAX, "%s:%" PRId32 ":%s:%" PRId64, key->topic,
			key->partition, begin, key->generation);
}

static bool is_valid(const struct piece_key *key)
{
	if (key->partition < 0 || key->generation < 0)
		return false;
	return key->begin == PIECE_LOW ||
		(key->begin >= 0 && key->begin == piece_begin(key->begin));
}

/* Parse the parts of a key; the numbers may have any spelling. */
static bool parse_key(struct piece_key *key, const char *text)
{
	char begin[24];

	if (sscanf(text, "%249[^:]:%" SCNd32 ":%23[^:]:%" SCNd64, key->topic, &key->partition,
		   begin, &key->generation) != 4)
		return false;
	if (!strcmp(begin, LOW_NAME))
		key->begin = PIECE_LOW;
	else if (sscanf(begin, "%" SCNd64, &key->begin) != 1 || key->begin < 0)
		return false;
	return is_valid(key);
}

bool piece_key_read(struct piece_key *key, const char *text, size_t len)
{
	char copy[PIECE_KEY_MAX], again[PIECE_KEY_MAX];

	if (len >= sizeof(copy))
		return false;
	memcpy(copy, text, len);
	copy[len] = '\0';
	/* A tombstone has to have the same key: so only one spelling is one. */
	return parse_key(key, copy) && piece_key_write(key, again) == len &&
		!memcmp(again, text, len);
}

/* --- values --------------------------------------------------------------------------- */

/* The fixed part of a value. */
struct head {
	uint8_t version;
	int64_t newest_ms;
	int32_t epoch;
} __attribute__((packed));

static size_t write_low(const struct piece *piece, unsigned char *to)
{
	int64_t low = htobe64(piece->low);

	memcpy(to, &low, sizeof(low));
	return sizeof(low);
}

static size_t write_bits(const struct piece *piece, unsigned char *to)
{
	size_t len = PIECE_SPAN / 8, i;

	for (i = 0; i < PIECE_WORDS; i++) {
		uint64_t word = htole64(piece->bits[i]);

		memcpy(to + i * sizeof(word), &word, sizeof(word));
	}
	while (len && !to[len - 1])
		len--;
	return len;
}

size_t piece_write(const struct piece *piece, bool is_low, unsigned char value[PIECE_VALUE_MAX])
{
	struct head head = {
		.version = VERSION,
		.newest_ms = htobe64(piece->newest_ms),
		.epoch = htobe32(piece->epoch),
	};
	unsigned char *to = value + sizeof(head);

	memcpy(value, &head, sizeof(head));
	return sizeof(head) + (is_low ? write_low(piece, to) : write_bits(piece, to));
}

static bool read_low(struct piece *piece, const unsigned char *from, size_t len)
{
	if (len != sizeof(piece->low))
		return false;
	memcpy(&piece->low, from, len);
	piece->low = be64toh(piece->low);
	return piece->low >= 0;
}

static bool read_bits(struct piece *piece, const unsigned char *from, size_t len)
{
	size_t i;

	if (len > sizeof(piece->bits))
		return false;
	memcpy(piece->bits, from, len);
	for (i = 0; i < PIECE_WORDS; i++)
		piece->bits[i] = le64toh(piece->bits[i]);
	return true;
}

bool piece_read(struct piece *piece, bool is_low, const void *value, size_t len)
{
	const unsigned char *from = value;
	struct head head;

	*piece = (struct piece){ 0 };
	if (len < sizeof(head))
		return false;
	memcpy(&head, from, sizeof(head));
	from += sizeof(head);
	len -= sizeof(head);
	piece->newest_ms = be64toh(head.newest_ms);
	piece->epoch = be32toh(head.epoch);
	return head.version == VERSION &&
		(is_low ? read_low(piece, from, len) : read_bits(piece, from, len));
}

/* --- the map -------------------------------------------------------------------------- */

static int compare(const struct done_piece *a, const struct done_piece *b)
{
	if (a->begin != b->begin)
		return a->begin < b->begin ? -1 : 1;
	if (a->generation != b->generation)
		return a->generation < b->generation ? -1 : 1;
	return 0;
}

RB_PROTOTYPE(done_pieces, done_piece, node, compare)
RB_GENERATE(done_pieces, done_piece, node, compare)

/* RB_FIND() takes no constant tree, though it changes nothing. */
static struct done_pieces *pieces_of(const struct done_map *map)
{
	return (struct done_pieces *)&map->pieces;
}

/* The first piece from this key on. */
static struct done_piece *first_from(const struct done_map *map, int64_t begin,
				     int64_t generation)
{
	struct done_piece key = { .begin = begin, .generation = generation };

	return RB_NFIND(done_pieces, pieces_of(map), &key);
}

static struct done_piece *find(const struct done_map *map, int64_t begin, int64_t generation)
{
	struct done_piece *found = first_from(map, begin, generation);

	return found && found->begin == begin && found->generation == generation ? found : NULL;
}

int done_map_add(struct done_map *map, int64_t begin, int64_t generation,
		 const struct piece *piece)
{
	struct done_piece *added = find(map, begin, generation);

	if (!added) {
		added = malloc(sizeof(*added));
		if (!added)
			return -ENOMEM;
		added->begin = begin;
		added->generation = generation;
		RB_INSERT(done_pieces, &map->pieces, added);
		map->bytes += sizeof(*added);
	}
	added->piece = *piece;
	return 0;
}

static void remove_piece(struct done_map *map, struct done_piece *piece)
{
	RB_REMOVE(done_pieces, &map->pieces, piece);
	map->bytes -= sizeof(*piece);
	free(piece);
}

void done_map_remove(struct done_map *map, int64_t begin, int64_t generation)
{
	struct done_piece *piece = find(map, begin, generation);

	if (piece)
		remove_piece(map, piece);
}

void done_map_free(struct done_map *map)
{
	while (!RB_EMPTY(&map->pieces))
		remove_piece(map, RB_ROOT(&map->pieces));
}

/* Can this piece not have meant this record? */
static bool is_void(const struct piece *piece, int64_t timestamp_ms, int32_t epoch)
{
	if (timestamp_ms >= 0 && timestamp_ms > piece->newest_ms)
		return true;
	return epoch >= 0 && piece->epoch >= 0 && epoch > piece->epoch;
}

static bool says_done(const struct done_piece *done, int64_t offset)
{
	uint64_t i = offset - done->begin;

	if (done->begin == PIECE_LOW)
		return offset < done->piece.low;
	return done->piece.bits[i / WORD_BITS] & 1ULL << i % WORD_BITS;
}

/* Does a piece of any generation say that the record is done? @begin: which pieces. */
static bool any_says_done(const struct done_map *map, int64_t begin, int64_t offset,
			  int64_t timestamp_ms, int32_t epoch)
{
	struct done_piece *at = first_from(map, begin, INT64_MIN);

	for (; at && at->begin == begin; at = RB_NEXT(done_pieces, pieces_of(map), at))
		if (says_done(at, offset) && !is_void(&at->piece, timestamp_ms, epoch))
			return true;
	return false;
}

bool done_map_has(const struct done_map *map, bool use_low, int64_t offset, int64_t timestamp_ms,
		  int32_t epoch)
{
	return any_says_done(map, piece_begin(offset), offset, timestamp_ms, epoch) ||
		(use_low && any_says_done(map, PIECE_LOW, offset, timestamp_ms, epoch));
}

const struct done_piece *done_map_low_piece(const struct done_map *map)
{
	struct done_piece *at = first_from(map, PIECE_LOW, INT64_MIN), *highest = NULL;

	for (; at && at->begin == PIECE_LOW; at = RB_NEXT(done_pieces, pieces_of(map), at))
		if (!highest || at->piece.low > highest->piece.low)
			highest = at;
	return highest;
}

int64_t done_map_low(const struct done_map *map)
{
	const struct done_piece *low = done_map_low_piece(map);

	return low ? low->piece.low : -1;
}

const struct done_piece *done_map_passed(const struct done_map *map, int64_t low)
{
	struct done_piece *first = first_from(map, 0, INT64_MIN);

	return first && first->begin <= low - PIECE_SPAN ? first : NULL;
}

const struct done_piece *done_map_passed_low(const struct done_map *map, int64_t low,
					     int64_t generation)
{
	struct done_piece *at = first_from(map, PIECE_LOW, INT64_MIN);

	for (; at && at->begin == PIECE_LOW; at = RB_NEXT(done_pieces, pieces_of(map), at))
		if (at->generation != generation && at->piece.low <= low)
			return at;
	return NULL;
}
