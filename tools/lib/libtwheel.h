/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libtwheel: uses /dev/twheel from C and C++, and fills its structures.
 *
 * A wheel is an open file of the device, with events of its own.  A command arms, changes
 * or ends an event; a batch is a growing array of commands, which one system call runs.
 * A record tells that an event has ended or expired, and why.
 *
 *	struct twheel *wheel;
 *	struct twheel_records records;
 *	const struct twheel_record *record;
 *
 *	if (twheel_open(&wheel, NULL) || twheel_records_init(&records, 64))
 *		...
 *	twheel_add(wheel, 2 * TWHEEL_SECOND, 42, 0, NULL);
 *	if (twheel_wait(wheel, &records, TWHEEL_NEVER) > 0)
 *		twheel_for_each_record(record, &records)
 *			printf("event %llu\n", record->data);
 *	twheel_records_destroy(&records);
 *	twheel_close(wheel);
 *
 * <linux/twheel.h>, which is included, describes commands, records and times.
 *
 * Functions return 0 or more, or a negative errno.  None of them prints, exits or changes
 * a signal handler, and all state is in the objects.  Several threads may use a wheel at
 * the same time, each with its own batches and records.  Only one thread at a time may use
 * a loop.  The program destroys the objects that it has created or initialised.  Commands
 * and records are copied, so no other memory changes its owner.
 *
 * After fork(), parent and child have the same wheel, with the same events and words: what
 * one of them reads, cancels or stores counts for both.  But each has its own list of free
 * words, so only one of them may allocate words.  A loop belongs to the process that created
 * it: see below.  A child that does not use the wheel calls twheel_loop_destroy() and
 * twheel_close(), which end none of the parent's events.
 *
 * Only functions that wait for records return -EINTR, and only after a signal handler has
 * run: twheel_wait(), twheel_enter() and twheel_loop_run().  They continue after a stop and
 * continue, and still end in time.  All others continue after any signal.  Waits go by
 * CLOCK_MONOTONIC: a process in another time namespace than the one that opened the wheel
 * cannot wait.
 */
#ifndef _LIBTWHEEL_H
#define _LIBTWHEEL_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
/* For sigset_t: <signal.h> does not define it with -std=c11. */
#include <sys/select.h>
#include <linux/twheel.h>

#ifdef __cplusplus
extern "C" {
#endif

/* In C++, functions with the names of structures hide their constructors. */
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif

/* Times are in nanoseconds. */
#define TWHEEL_MICROSECOND	1000ULL
#define TWHEEL_MILLISECOND	1000000ULL
#define TWHEEL_SECOND		1000000000ULL

/* As a time: never.  As a timeout: wait without limit. */
#define TWHEEL_NEVER		(~0ULL)

/* --- a wheel -------------------------------------------------------------------- */

struct twheel;

/* Set the defaults, with CLOCK_MONOTONIC.  (A config of zeros means CLOCK_REALTIME.) */
static inline void twheel_config_init(struct twheel_config *config)
{
	memset(config, 0, sizeof(*config));
	config->size = sizeof(*config);
	/* CLOCK_MONOTONIC: <time.h> does not define it with -std=c11. */
	config->clockid = 1;
}

/*
 * Open the device.  @config is the argument of TWHEEL_IOC_CONFIG, without its size, which
 * is set here; NULL means CLOCK_MONOTONIC and the defaults.  With nr_deadlines, the words
 * are mapped.  The file is non-blocking and is closed by exec().
 *
 * Returns 0, and *@wheel has to be closed by twheel_close(); or an error, and *@wheel is
 * NULL.  The errors are those of open() (-ENOENT: the module is not loaded; -EACCES: this
 * user may not open the device), of TWHEEL_IOC_CONFIG and of mmap(); -ENOMEM; -EPROTO: the
 * file is not the device, or has another version of the ABI.
 */
int twheel_open(struct twheel **wheel, const struct twheel_config *config);

/* The same with another path than /dev/twheel. */
int twheel_open_path(struct twheel **wheel, const char *path,
		     const struct twheel_config *config);

/*
 * Close a wheel, or NULL, and end its events, unless another process has the file, too: as
 * after fork(), the last one that closes it ends them.  No other thread may use it any more.
 */
void twheel_close(struct twheel *wheel);

/* The file, which is readable (EPOLLIN) when there are records. */
int twheel_fd(const struct twheel *wheel);

/* The answer to TWHEEL_IOC_INFO.  It is valid until the wheel is closed. */
const struct twheel_info *twheel_info(const struct twheel *wheel);

/* Returns whether the module has all of these TWHEEL_FEATURE_*. */
bool twheel_has(const struct twheel *wheel, __u64 features);

/* The time on the wheel's clock, which absolute times and words use. */
__u64 twheel_now_ns(const struct twheel *wheel);

/* --- commands ------------------------------------------------------------------- */

/*
 * Each function fills a whole command; twheel_cmd_set_* change a command that was filled
 * before.  <linux/twheel.h> describes the fields of struct twheel_cmd.
 */

static inline void twheel_prep(struct twheel_cmd *cmd, __u16 op, __u16 flags, __u64 id)
{
	memset(cmd, 0, sizeof(*cmd));
	cmd->op = op;
	cmd->flags = flags;
	cmd->id = id;
}

/* ADD: @flags is 0 for a time from now, or TWHEEL_ABS, also with TWHEEL_CANCEL_ON_SET. */
static inline void twheel_prep_add(struct twheel_cmd *cmd, __u64 time_ns, __u64 data,
				   __u16 flags)
{
	twheel_prep(cmd, TWHEEL_OP_ADD, flags, 0);
	cmd->time_ns = time_ns;
	cmd->data = data;
}

/* ADD of an event whose time is in a word: see twheel_deadline_get(). */
static inline void twheel_prep_add_deadline(struct twheel_cmd *cmd, __u32 word,
					    __u64 data)
{
	twheel_prep(cmd, TWHEEL_OP_ADD, TWHEEL_DEADLINE, 0);
	cmd->key = word;
	cmd->data = data;
}

/* MODIFY: @flags as for ADD.  Only twheel_cmd_set_data() changes the event's data. */
static inline void twheel_prep_modify(struct twheel_cmd *cmd, __u64 id, __u64 time_ns,
				      __u16 flags)
{
	twheel_prep(cmd, TWHEEL_OP_MODIFY, flags, id);
	cmd->time_ns = time_ns;
}

/* MODIFY that reads a word at once. */
static inline void twheel_prep_modify_deadline(struct twheel_cmd *cmd, __u64 id,
					       __u32 word)
{
	twheel_prep(cmd, TWHEEL_OP_MODIFY, TWHEEL_DEADLINE, id);
	cmd->key = word;
}

static inline void twheel_prep_cancel(struct twheel_cmd *cmd, __u64 id)
{
	twheel_prep(cmd, TWHEEL_OP_CANCEL, 0, id);
}

static inline void twheel_prep_complete(struct twheel_cmd *cmd, __u64 id, __u64 value)
{
	twheel_prep(cmd, TWHEEL_OP_COMPLETE, 0, id);
	cmd->value = value;
}

/*
 * WATCH: @flags is 0 or TWHEEL_LEVEL.  With @id 0 it belongs to the ADD before it in the
 * batch.  Only other such WATCHes may stand between them, because a signal can split the
 * batch after any other command.
 */
static inline void twheel_prep_watch(struct twheel_cmd *cmd, __u64 id, __u64 key,
				     __u64 need, __u16 flags)
{
	twheel_prep(cmd, TWHEEL_OP_WATCH, flags, id);
	cmd->key = key;
	cmd->value = need;
}

/* SIGNAL: @flags is 0 or TWHEEL_QUIET. */
static inline void twheel_prep_signal(struct twheel_cmd *cmd, __u64 key, __u64 value,
				      __u16 flags)
{
	twheel_prep(cmd, TWHEEL_OP_SIGNAL, flags, 0);
	cmd->key = key;
	cmd->value = value;
}

static inline void twheel_prep_query(struct twheel_cmd *cmd, __u64 id)
{
	twheel_prep(cmd, TWHEEL_OP_QUERY, 0, id);
}

/* ADD, MODIFY: the period. */
static inline void twheel_cmd_set_interval(struct twheel_cmd *cmd, __u64 interval_ns)
{
	cmd->interval_ns = interval_ns;
}

/* ADD, MODIFY: how late the event may be. */
static inline void twheel_cmd_set_slack(struct twheel_cmd *cmd, __u64 slack_ns)
{
	cmd->slack_ns = slack_ns;
}

/* ADD: the number of its watches that have to be satisfied. */
static inline void twheel_cmd_set_quorum(struct twheel_cmd *cmd, __u32 quorum)
{
	cmd->quorum = quorum;
}

/* MODIFY: other data. */
static inline void twheel_cmd_set_data(struct twheel_cmd *cmd, __u64 data)
{
	cmd->flags |= TWHEEL_SET_DATA;
	cmd->data = data;
}

/* --- one command at a time -------------------------------------------------------- */

/*
 * Run one command.  Returns its result, which is also in @cmd, or -EFAULT if it was not
 * run.
 */
int twheel_run(struct twheel *wheel, struct twheel_cmd *cmd);

/* ADD; @id: out, unless NULL. */
int twheel_add(struct twheel *wheel, __u64 time_ns, __u64 data, __u16 flags, __u64 *id);
int twheel_modify(struct twheel *wheel, __u64 id, __u64 time_ns, __u16 flags);
int twheel_cancel(struct twheel *wheel, __u64 id);
int twheel_complete(struct twheel *wheel, __u64 id, __u64 value);
int twheel_watch(struct twheel *wheel, __u64 id, __u64 key, __u64 need, __u16 flags);
int twheel_signal(struct twheel *wheel, __u64 key, __u64 value, __u16 flags);
/* TWHEEL_ARMED or TWHEEL_READY; @due_ns: out, unless NULL. */
int twheel_query(struct twheel *wheel, __u64 id, __u64 *due_ns);

/* --- batches ---------------------------------------------------------------------- */

/**
 * struct twheel_batch - commands, in order
 * @cmds: the commands.
 * @nr: the number of commands.
 * @room: the number of commands that fit into the memory allocated, which grows.
 */
struct twheel_batch {
	struct twheel_cmd *cmds;
	unsigned int nr;
	unsigned int room;
};

/* Make an empty batch.  The first command allocates memory. */
static inline void twheel_batch_init(struct twheel_batch *batch)
{
	memset(batch, 0, sizeof(*batch));
}

/* Free the memory of a batch, which is empty afterwards. */
void twheel_batch_destroy(struct twheel_batch *batch);

/* Remove all commands, and keep the memory. */
static inline void twheel_batch_clear(struct twheel_batch *batch)
{
	batch->nr = 0;
}

/* Allocate memory for @nr more commands, at most 2^30 in all.  Returns 0 or -ENOMEM. */
int twheel_batch_reserve(struct twheel_batch *batch, unsigned int nr);

/*
 * Add a command, to be filled by a twheel_prep_*() function.  Returns NULL if there is no
 * memory, but never after twheel_batch_reserve() for it.  The pointer is valid until the
 * batch has to grow.
 */
struct twheel_cmd *twheel_batch_next(struct twheel_batch *batch);

/*
 * Run the commands of a batch, in order.  Each has its own result in batch->cmds; the rest
 * is run even if one fails, and after a signal.  The batch keeps its commands and results
 * until twheel_batch_clear().
 *
 * Returns the number of commands that were run: all, or fewer if the kernel could not read
 * or write one of them; or -EFAULT if that was the first one.
 */
int twheel_submit(struct twheel *wheel, struct twheel_batch *batch);

/* --- records ---------------------------------------------------------------------- */

/**
 * struct twheel_records - an array that records are read into
 * @records: the records.
 * @nr: the number of records that were read.
 * @room: the number of records that fit.
 */
struct twheel_records {
	struct twheel_record *records;
	unsigned int nr;
	unsigned int room;
};

/* Allocate memory for @room records.  Returns 0; -EINVAL: @room is 0; -ENOMEM. */
int twheel_records_init(struct twheel_records *records, unsigned int room);

/* Free the memory. */
void twheel_records_destroy(struct twheel_records *records);

/* Each record of the last read, oldest first. */
#define twheel_for_each_record(record, from)					\
	for ((record) = (from)->records;					\
	     (record) < (from)->records + (from)->nr; (record)++)

/*
 * Read the records that are ready, as many as fit, without waiting.  They replace those of
 * the last call.  Returns their number, which may be 0.  If several threads read, each
 * record goes to one of them.
 */
int twheel_read(struct twheel *wheel, struct twheel_records *records);

/*
 * Wait for a record, at most @timeout_ns (TWHEEL_NEVER: no limit), and read like
 * twheel_read().  Returns the number of records, 0 after the timeout, or -EINTR: a signal's
 * handler has run.
 */
int twheel_wait(struct twheel *wheel, struct twheel_records *records, __u64 timeout_ns);

/*
 * One turn of an event loop in one system call, TWHEEL_IOC_ENTER: run the commands of
 * @batch (NULL: none), wait for @min_records at most @timeout_ns (0: do not wait,
 * TWHEEL_NEVER: no limit), and read.  @mask, if not NULL, is the signal mask during the
 * call.
 *
 * *@done is the number of commands that were run (@done may be NULL).  A signal may stop
 * the kernel between two commands: then the next call has to run the rest.
 *
 * Returns the number of records; -EINVAL: @min_records is more than fit; -EINTR: a signal's
 * handler has run, and nothing was done; -EFAULT.  If commands were run or records read, any
 * signal ends the wait, also one without a handler, such as a stop and continue.
 */
int twheel_enter(struct twheel *wheel, struct twheel_batch *batch, unsigned int *done,
		 struct twheel_records *records, unsigned int min_records,
		 __u64 timeout_ns, const sigset_t *mask);

/*
 * As twheel_list(), of entries whose structure has @entry_size bytes, at least 64 and below
 * 2^32; else -EINVAL.
 */
int twheel_list_sized(struct twheel *wheel, void *entries, size_t entry_size,
		      unsigned int nr, __u64 *cursor);

/*
 * List some events.  *@cursor is 0 at first.  Returns the number of entries written, 0 at
 * the end.
 */
static inline int twheel_list(struct twheel *wheel, struct twheel_entry *entries,
			      unsigned int nr, __u64 *cursor)
{
	return twheel_list_sized(wheel, entries, sizeof(*entries), nr, cursor);
}

/* --- deadlines in shared memory ---------------------------------------------------- */

/*
 * A wheel that was opened with nr_deadlines has that number of words.  An event that was
 * armed for a word (twheel_prep_add_deadline()) is due at the time in the word, and one
 * store moves it to a later time:
 *
 *	__u64 *words = twheel_deadlines(wheel);
 *	int word = twheel_deadline_get(wheel);
 *
 *	twheel_deadline_set(words, word, now_ns + 30 * TWHEEL_SECOND);
 *	twheel_prep_add_deadline(cmd, word, connection);
 *	...
 *	twheel_deadline_set(words, word, now_ns + 30 * TWHEEL_SECOND);
 */

/*
 * Allocate a word and set it to TWHEEL_NEVER.  Returns its index, or -ENOSPC if all words
 * are in use.  Several threads may allocate and free words at the same time.
 */
int twheel_deadline_get(struct twheel *wheel);

/* Free a word that no event uses.  Returns 0; -EINVAL: the word is not allocated. */
int twheel_deadline_put(struct twheel *wheel, __u32 word);

/*
 * A word.  It is aligned to 8 bytes, so that the compiler makes one store of it in 32-bit
 * programs, too (for i586 and later, and without libatomic).
 */
typedef __u64 twheel_word __attribute__((aligned(8)));

/* The words, for twheel_deadline_set(), or NULL if the wheel has none. */
__u64 *twheel_deadlines(const struct twheel *wheel);

/*
 * Set the due time of a word's events to @time_ns, absolute on the wheel's clock.  If it is
 * earlier than before, MODIFY with TWHEEL_DEADLINE must follow.  @words is the result of
 * twheel_deadlines().
 */
static inline void twheel_deadline_set(__u64 *words, __u32 word, __u64 time_ns)
{
	__atomic_store_n((twheel_word *)words + word, time_ns, __ATOMIC_RELEASE);
}

/* The time in a word. */
static inline __u64 twheel_deadline_ns(const __u64 *words, __u32 word)
{
	return __atomic_load_n((const twheel_word *)words + word, __ATOMIC_ACQUIRE);
}

/* --- an event loop ------------------------------------------------------------------ */

/*
 * Timeouts with callbacks, for a program with a loop of its own: it polls twheel_loop_fd()
 * beside its other files (not edge-triggered) and calls twheel_loop_run() with 0 when that
 * is readable; or it lets twheel_loop_run() wait.
 *
 * The next twheel_loop_run() submits all starts and stops in one call.  So it has to be
 * called before the program sleeps.  It also submits those made by callbacks before it
 * returns.
 *
 * No callback is called after twheel_timeout_stop() has returned, nor for an earlier time
 * than that of the last twheel_timeout_start().  A callback may start and stop any timeout,
 * and may free timeouts that are not started: its own is one of these unless it has an
 * interval.  It must not destroy the loop.  It must return: no longjmp() and no exception may
 * leave it, since the loop would count as running for ever, and lose records.
 *
 * A loop belongs to the process that created it.  In a child of fork(), twheel_loop_run()
 * and twheel_timeout_start() return -ECHILD, and twheel_timeout_stop() and
 * twheel_loop_destroy() free the child's memory only: the parent's timeouts go on.  So a
 * program that calls daemon() creates its loops after that.
 */
struct twheel_loop;

/**
 * struct twheel_timeout - a function to be called later
 * @callback: the function; its @record has the time and the reason.
 * @context: for the caller.
 * @loop: private, like all that follows.
 * @slot: the index in the loop's table, or 0 if the timeout is not started.
 */
struct twheel_timeout {
	void (*callback)(struct twheel_timeout *timeout,
			 const struct twheel_record *record);
	void *context;
	struct twheel_loop *loop;
	__u32 slot;
};

/* Make a timeout, which is not started. */
static inline void twheel_timeout_init(struct twheel_timeout *timeout,
				       void (*callback)(struct twheel_timeout *,
							const struct twheel_record *),
				       void *context)
{
	memset(timeout, 0, sizeof(*timeout));
	timeout->callback = callback;
	timeout->context = context;
}

/*
 * Make a loop for a wheel, which the caller still owns.  Only the loop may read the wheel
 * from now on: it drops the records of other events, whose data must be below 2^32.
 * Returns 0 or -ENOMEM.
 */
int twheel_loop_create(struct twheel_loop **loop, struct twheel *wheel);

/* Stop all timeouts of a loop, and free it (or NULL).  Close the wheel after that. */
void twheel_loop_destroy(struct twheel_loop *loop);

/* The wheel's file, to be polled. */
int twheel_loop_fd(const struct twheel_loop *loop);

/*
 * Start a timeout, or give it another time.  @flags is 0 for a time that counts from the
 * next twheel_loop_run(), which submits it; or TWHEEL_ABS for a time on the wheel's clock,
 * also with TWHEEL_CANCEL_ON_SET.  With @interval_ns it repeats until it is stopped.
 *
 * Returns 0; or an error, and nothing changes: -EINVAL: it belongs to another loop, the
 * interval is less than a tick, or a flag is not allowed; -ECHILD: another process created
 * the loop; -ENOMEM.
 */
int twheel_timeout_start(struct twheel_loop *loop, struct twheel_timeout *timeout,
			 __u64 time_ns, __u64 interval_ns, __u64 slack_ns, __u16 flags);

/*
 * Start a timeout that is due at the time in a word.  If a later time was stored while the
 * event expired, the loop arms it again and does not call the callback.  After a store of
 * an earlier time, this function has to be called again.
 *
 * Returns as twheel_timeout_start(); -EINVAL: there is no such word.
 */
int twheel_timeout_start_deadline(struct twheel_loop *loop, struct twheel_timeout *timeout,
				  __u32 word, __u64 slack_ns);

/* Stop a timeout, even if it is not started.  Its memory may be freed after that. */
void twheel_timeout_stop(struct twheel_timeout *timeout);

/* Returns whether a timeout is started, so that its callback is going to be called. */
static inline bool twheel_timeout_pending(const struct twheel_timeout *timeout)
{
	return timeout->slot != 0;
}

/*
 * Submit all starts and stops, wait at most @timeout_ns (0: do not wait; TWHEEL_NEVER: no
 * limit) until a timeout is due, and call the callbacks of those that are due, at most some
 * hundred.
 *
 * Returns the number of callbacks that were called, which is 0 after the timeout, or if all
 * that were due had been stopped, or if a record came of an event that is not the loop's;
 * -EINTR: a signal's handler has run, and no callback was called; -ENOSPC, -ENOMEM: the
 * kernel refused to arm a timeout, which is then not started (twheel_timeout_pending() shows
 * which one): the function did not wait, but has called the callbacks that were due.  After
 * each of these, all starts and stops have been submitted.
 *
 * Returns -EBUSY: a callback has called this function; -ECHILD: another process created the
 * loop.  Then nothing was done.
 */
int twheel_loop_run(struct twheel_loop *loop, __u64 timeout_ns);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#ifdef __cplusplus
}
#endif

#endif /* _LIBTWHEEL_H */
