/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The files of the device that a program has open, and what is known of each.
 */
#ifndef FUZZING_FILES_H
#define FUZZING_FILES_H

#include <linux/twheel.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "program.h"

#define NOTED_IDS	16

/**
 * struct file_note - what is known of an open file of the device
 * @uncertain: some calls were made whose results are not known.
 * @clock: the clock of its events.
 * @added: how many ADDs have succeeded.
 * @records: how many records were read.
 * @ids: some ids of its events, the last of which is number @nr_ids - 1.
 * @cancelled: some ids of events that were cancelled.
 */
struct file_note {
	atomic_bool uncertain;
	atomic_int clock;
	atomic_ulong added;
	atomic_ulong records;
	atomic_uint nr_ids;
	atomic_uint nr_cancelled;
	atomic_uint_least64_t ids[NOTED_IDS];
	atomic_uint_least64_t cancelled[NOTED_IDS];
};

void files_begin(void);
void files_check(void);
void files_end(void);
void files_doubt(void);

int file_of(unsigned int slot);
struct file_note *note_of(unsigned int slot);
bool may_be_closed(unsigned int slot);
long file_open(unsigned int slot, int flags);
long file_dup(unsigned int from, unsigned int to);
long file_close(unsigned int slot);
long file_check(unsigned int slot);

void note_command(struct file_note *note, const struct twheel_cmd *cmd, bool newer);
void note_record(struct file_note *note, const struct twheel_record *record);
void note_records(struct file_note *note, unsigned long nr);

void violation(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void violation_of(const struct program *program, unsigned int worker);

#endif /* FUZZING_FILES_H */
