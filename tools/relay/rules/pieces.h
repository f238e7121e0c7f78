/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The map of done offsets: which offsets above the committed one are done. It is kept in a
 * compacted topic, "delays-done", in pieces. A piece covers PIECE_SPAN offsets of a partition,
 * aligned, with a bit for each:
 *
 *	                committed
 *	                    |
 *	  ... | piece 4096  v     | piece 8192          | piece 12288         | ...
 *	      | 1 1 1 1 1 1 0 1 1 | 1 0 0 1 1 1 0 1 ... | 0 0 1 0 0 0 0 0 ... |
 *
 * The key of a piece names topic, partition, first offset, and the writer: the generation of the
 * group in which it got the partition, and when that was. So a writer that was put out of the
 * group, and does not know that yet, cannot replace the pieces of its successor. (The generation
 * alone is not enough: if a group is forgotten, its generations begin anew.) A reader takes the
 * union of the pieces of all generations: a bit says that Kafka has acknowledged what was written
 * for this record, which stays true whoever says it.
 *
 * A piece is void for a record that it cannot have meant: one that is younger than the newest
 * record that it covers, or that has a later leader epoch. Such a record has an offset that
 * belonged to another one before: the topic was deleted and made anew, or the log lost its end
 * in an unclean election. So a writer sets the bits only of records that it has read itself, be
 * it that an earlier piece said that they are done, and of offsets below its low one. Pieces of
 * several generations must not be merged into one: the newer one would vouch for the bits of the
 * older one. Example: a piece says that offset 7 is done, and is of 12:00. The topic is made
 * anew, and its record 3 of 13:00 is done. A merged piece would say that 3 and 7 are done, and
 * be of 13:00: so record 7 of the new topic, of 12:59, would never be delivered.
 *
 * The low offset of a partition (all offsets below it are done) is a piece, too, with a key of its
 * own. It counts only if the group has no committed offset any more. Then it covers all offsets
 * below itself, with the same rule for younger records.
 */
#ifndef RELAY_RULES_PIECES_H
#define RELAY_RULES_PIECES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <bsd/sys/tree.h>

/* Offsets of a piece; a power of two, and a multiple of 64. */
#define PIECE_SPAN	4096
#define PIECE_WORDS	(PIECE_SPAN / 64)

/* @begin of the key of a low offset. */
#define PIECE_LOW	(-1)

/* Sizes that are enough for each key and each value. */
#define PIECE_KEY_MAX	320
#define PIECE_VALUE_MAX	(32 + PIECE_SPAN / 8)

/*
 * The generation that a writer puts into the keys of its pieces: that of the group when it got
 * the partition, in the low 31 bits, and the time of that in seconds above them.
 */
static inline int64_t piece_generation(int32_t group_generation, uint64_t assigned_ms)
{
	return (int64_t)(assigned_ms / 1000 & UINT32_MAX) << 31 | (group_generation & INT32_MAX);
}

/* The first offset of the piece that has this one. */
static inline int64_t piece_begin(int64_t offset)
{
	return offset & ~(int64_t)(PIECE_SPAN - 1);
}

/**
 * struct piece_key - the key of a piece: "topic:partition:begin:generation", all decimal; "low"
 *	in place of begin for a low offset. No topic's name has a colon. Each key has one spelling.
 * @topic: the topic; NUL-terminated.
 * @partition: the number of the partition.
 * @begin: the first offset that the piece covers, a multiple of PIECE_SPAN; or PIECE_LOW.
 * @generation: of its writer: see piece_generation().
 */
struct piece_key {
	char topic[250];
	int32_t partition;
	int64_t begin;
	int64_t generation;
};

/* Write a key, without a NUL. Returns its length. */
size_t piece_key_write(const struct piece_key *key, char text[PIECE_KEY_MAX]);

/* Returns false if it is not a key. */
bool piece_key_read(struct piece_key *key, const char *text, size_t len);

/**
 * struct piece - what a piece says
 * @newest_ms: the newest timestamp of the records that are done and that it covers; negative:
 *	none of them has a timestamp.
 * @epoch: the latest leader epoch of them; negative: unknown.
 * @low: the low offset, if it is one.
 * @bits: bit i is set: the record at offset begin + i is done.
 */
struct piece {
	int64_t newest_ms;
	int32_t epoch;
	int64_t low;
	uint64_t bits[PIECE_WORDS];
};

/*
 * Write a value: a version byte, newest_ms, epoch, and either the low offset or the bits, up to
 * the last byte that is not 0. Numbers are big-endian; the lowest bit of the first byte is that
 * of the first offset. Returns the length.
 */
size_t piece_write(const struct piece *piece, bool is_low, unsigned char value[PIECE_VALUE_MAX]);

/* Returns false if it is not such a value. */
bool piece_read(struct piece *piece, bool is_low, const void *value, size_t len);

/**
 * struct done_piece - a piece in memory
 * @node: in @pieces of the map, by @begin and @generation.
 * @begin: see struct piece_key.
 * @generation: see struct piece_key.
 * @piece: what it says.
 */
struct done_piece {
	RB_ENTRY(done_piece) node;
	int64_t begin;
	int64_t generation;
	struct piece piece;
};

RB_HEAD(done_pieces, done_piece);

/**
 * struct done_map - what was read of the map for one partition
 * @pieces: its pieces, low offsets among them.
 * @bytes: the memory that it takes.
 *
 * All zeros is an empty map. Callers serialize.
 */
struct done_map {
	struct done_pieces pieces;
	size_t bytes;
};

/* Add a piece, or replace that of the same key. Returns 0 or -ENOMEM. */
int done_map_add(struct done_map *map, int64_t begin, int64_t generation,
		 const struct piece *piece);

/* Remove the piece of this key, if there is one: a tombstone was read, or written. */
void done_map_remove(struct done_map *map, int64_t begin, int64_t generation);

void done_map_free(struct done_map *map);

/*
 * Is the record at this offset done? By a piece, or, with @use_low, by a low offset above it. A
 * negative @timestamp_ms or @epoch of the record is unknown, and makes nothing void. Nor does the
 * epoch if that of the piece is unknown.
 */
bool done_map_has(const struct done_map *map, bool use_low, int64_t offset, int64_t timestamp_ms,
		  int32_t epoch);

/*
 * The highest low offset; negative if there is none. It may be void for the records that there
 * are now: done_map_has() knows.
 */
int64_t done_map_low(const struct done_map *map);

/* The piece that has it; NULL if there is none. */
const struct done_piece *done_map_low_piece(const struct done_map *map);

/*
 * The first piece that covers only offsets below @low; NULL if there is none. Low offsets are
 * not pieces here. Call it again after done_map_remove().
 */
const struct done_piece *done_map_passed(const struct done_map *map, int64_t low);

/*
 * The first low offset of another generation that is not above @low, the low offset that Kafka
 * has acknowledged as that of @generation, and so says all that the other one says. NULL if there
 * is none. Call it again after done_map_remove().
 */
const struct done_piece *done_map_passed_low(const struct done_map *map, int64_t low,
					     int64_t generation);

#endif /* RELAY_RULES_PIECES_H */
