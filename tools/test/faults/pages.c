// SPDX-License-Identifier: GPL-2.0
/* Memory of a caller that is missing. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pages.h"

/* Pieces are so far apart that each has page tables of its own. */
#define DISTANCE	(16UL << 20)
#define FIRST_PLACE	0x200000000000UL

/* Half of the file lies before the end of what is accessible, and half behind it. */
#define FILE_BYTES	(2 * PIECE_MAX)

void piece_make(struct piece *piece, unsigned int nr)
{
	piece->file = memfd_create("piece", MFD_CLOEXEC);
	ASSERT_GE(piece->file, 0);
	ASSERT_EQ(ftruncate(piece->file, FILE_BYTES), 0);
	piece->shared = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, piece->file, 0);
	ASSERT(piece->shared != MAP_FAILED);
	piece->place = (char *)(FIRST_PLACE + nr * DISTANCE);
}

void piece_place(struct piece *piece, size_t size, size_t whole, int behind)
{
	ASSERT_LE(size, PIECE_MAX);
	ASSERT_LE(whole, PIECE_MAX);
	ASSERT_EQ(whole % 8, 0);
	piece->size = size;
	piece->whole = whole;
	piece->behind = behind;
	piece->image = piece->shared + PIECE_MAX - whole;
	piece->user = piece->place + PIECE_MAX - whole;
	memset(piece->shared, FILL, FILE_BYTES);
}

void piece_map(struct piece *piece)
{
	munmap(piece->place, DISTANCE);
	ASSERT(mmap(piece->place, FILE_BYTES, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_FIXED_NOREPLACE, piece->file, 0) == piece->place);
	ASSERT_EQ(mprotect(piece->place + PIECE_MAX, PIECE_MAX, piece->behind), 0);
}

void piece_open(struct piece *piece)
{
	ASSERT_EQ(mprotect(piece->place, FILE_BYTES, PROT_READ | PROT_WRITE), 0);
}
