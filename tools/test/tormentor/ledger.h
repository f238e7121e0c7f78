/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The ledger: memory that all processes share, with what each of them did.
 *
 * A round has a number of files and of logs. Each thread that uses the device has a log, which is a
 * row of calls. A call has the commands and the records themselves: the kernel reads the commands
 * there, and writes their results and the records there. So a process can be killed at any moment,
 * and the log of a call that it was in still says which of its commands were run and which records
 * were read; nothing has to be done with the results afterwards. The judge reads all logs when the
 * processes of the round have ended.
 *
 * The memory of logs is zeros where no call is. A thread that fills its log takes another one.
 */
#ifndef TORMENTOR_LEDGER_H
#define TORMENTOR_LEDGER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include <linux/twheel.h>

#define FILES_MAX	512
#define LOGS_MAX	256
/* So many are for main, when the others have ended. */
#define LOGS_RESERVED	32
#define SETS_MAX	4096
#define WORDS_MAX	16
#define BOARD_IDS	32
#define KEYS_MAX	8
#define CALL_CMDS_MAX	32
#define CALL_RECORDS_MAX 64

#define SECOND_NS	1000000000ULL
#define MILLISECOND_NS	1000000ULL

/* As a time: never. */
#define NEVER_NS	(~0ULL)

/* The result of a command that was not run. */
#define NOT_RUN		INT32_MIN

enum call_kind {
	CALL_NONE,
	CALL_DEVICE,	/* runs commands, reads records, or both */
	CALL_STORE,	/* stores a time into a word */
	CALL_LIST,	/* its records have the ids of events that were left in the end */
};

/**
 * struct call - a call of the device, in a log
 * @bytes: how long it is, with what follows it.
 * @kind: enum call_kind. It is written last.
 * @is_done: the call has returned.
 * @file: the number of its file.
 * @nr_cmds: how many commands follow.
 * @nr_records: how many records have room behind them; when @is_done, how many were read.
 * @ret: what the call returned.
 * @before_ns: CLOCK_MONOTONIC before the call, and after it.
 * @after_ns: see @before_ns; 0 unless @is_done.
 * @file_before_ns: the same on the file's clock.
 * @file_after_ns: see @file_before_ns.
 * @word: CALL_STORE: the index of the word.
 * @value: CALL_STORE: the time.
 */
struct call {
	uint32_t bytes;
	uint8_t kind;
	uint8_t is_done;
	uint16_t file;
	uint16_t nr_cmds;
	uint16_t nr_records;
	int32_t ret;
	uint64_t before_ns;
	uint64_t after_ns;
	uint64_t file_before_ns;
	uint64_t file_after_ns;
	uint32_t word;
	uint32_t reserved;
	uint64_t value;
};

/**
 * struct log - what one thread did
 * @pid: its process, or 0: the log is free, or its process has ended.
 * @tid: the thread.
 * @used: how many bytes calls have.
 * @is_last: the thread takes no other log when this one is full.
 */
struct log {
	_Atomic pid_t pid;
	_Atomic pid_t tid;
	uint32_t used;
	bool is_last;
};

/**
 * struct file - an open file of the device
 * @fd: its descriptor, of a file that main has opened for all; else -1.
 * @clock: its clock.
 * @nr_words: how many words it has in shared memory.
 * @is_blocking: it is not O_NONBLOCK.
 * @fdinfo: the counters of its fdinfo in the end, if @survived.
 * @survived: main had a descriptor of it when all others were closed.
 * @once: ids of events, for those who change or cancel them; an id may be of the past.
 * @periodic: the same of events with a period.
 * @highest_ns: the highest time that was ever stored into a word.
 */
struct file {
	int fd;
	clockid_t clock;
	uint32_t nr_words;
	bool is_blocking;
	bool survived;
	struct {
		uint64_t added, armed, ready, finished, cancelled, completed, records, postponed;
	} fdinfo;
	_Atomic uint64_t once[BOARD_IDS];
	_Atomic uint64_t periodic[BOARD_IDS];
	_Atomic uint64_t highest_ns[WORDS_MAX];
};

/**
 * struct clock_set - the wall clock was set, or the machine has slept
 * @before_ns: CLOCK_MONOTONIC before that.
 * @after_ns: CLOCK_MONOTONIC after it.
 * @offset_ns: the most that the wall clock was ahead of CLOCK_MONOTONIC afterwards.
 */
struct clock_set {
	uint64_t before_ns;
	uint64_t after_ns;
	int64_t offset_ns;
};

/**
 * struct ledger - all of it
 * @stop: all processes shall end, as the round does.
 * @nr_files: how many files there are.
 * @nr_logs: how many logs are taken, and how many there may be.
 * @logs_limit: see @nr_logs.
 * @nr_sets: how many times the clock was set.
 * @offset_ns: as &struct clock_set.offset_ns, before the first one.
 * @passed: files that were received through a socket; and so on.
 * @sleep_ns: when the machine is to sleep next, on CLOCK_MONOTONIC.
 * @cpus: see cpus_lock().
 */
struct ledger {
	_Atomic bool stop;
	_Atomic uint32_t nr_files;
	_Atomic uint32_t nr_logs;
	_Atomic uint32_t logs_limit;
	_Atomic uint32_t nr_sets;
	int64_t offset_ns;
	struct file files[FILES_MAX];
	struct log logs[LOGS_MAX];
	struct clock_set sets[SETS_MAX];
	/* These count through all rounds. */
	_Atomic uint64_t passed, duplicated, forked, unmapped, hotplugs, suspends;
	_Atomic uint64_t clock_sets, hog_events, hog_refused;
	uint64_t sleep_ns;
	pthread_mutex_t cpus;
};

extern struct ledger *ledger;

/* Make it, with room for @nr_logs logs of @log_bytes. Returns 0 or -ENOMEM. */
int ledger_make(unsigned int nr_logs, size_t log_bytes);

/* Begin a round: no files, no logs, no sets of the clock. */
void ledger_reset(void);

/*
 * Held to let a CPU go or come, and to make a ring of io_uring: see the script torture. A process
 * that is killed meanwhile unlocks it.
 */
void cpus_lock(void);
void cpus_unlock(void);

/* How many files there are. */
unsigned int nr_files(void);

/* Let main have the logs that are reserved for it. */
void ledger_end(void);

/* Take a log for this thread. Returns its number, or -1: all are taken. */
int log_take(void);

/* Is this address in the memory of logs? */
bool is_of_logs(uintptr_t address);

/* Let all memory of a log be mapped here, and take no other log when it is full. */
void log_settle(int log);

/*
 * Begin a call, with room for commands and records: a log that is full is replaced, in *@log. The
 * caller fills the commands, and calls call_go(). Returns NULL if no log is left.
 */
struct call *call_begin(int *log, unsigned int file, unsigned int nr_cmds,
			unsigned int nr_records);
void call_go(struct call *call, enum call_kind kind);

/* The call has returned, and read @nr_records records. */
void call_end(int log, struct call *call, int ret, unsigned int nr_records);

/* The first call of a log, and the next one. NULL: there is none. */
struct call *log_first(unsigned int log);
struct call *log_next(unsigned int log, struct call *call);

static inline struct twheel_cmd *call_cmds(struct call *call)
{
	return (struct twheel_cmd *)(call + 1);
}

static inline struct twheel_record *call_records(struct call *call)
{
	return (struct twheel_record *)(call_cmds(call) + call->nr_cmds);
}

/* How many records a call has read, also when its process was killed in it. */
unsigned int call_nr_read(struct call *call);

uint64_t clock_ns(clockid_t clock);

static inline uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* Note that the clock is going to be set (@set is -1, returns its number), and that it was. */
int note_clock_set(int set);

/* The most that the wall clock is ahead of CLOCK_MONOTONIC. */
int64_t wall_offset_ns(void);

/* The least of wall_offset_ns() at the round's begin, after each set of the clock, and now. */
int64_t lowest_wall_offset_ns(void);

#endif /* TORMENTOR_LEDGER_H */
