/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libtwheel: /dev/twheel from C and C++, without filling its structures by hand.
 *
 * A wheel is an open file of the device, with events of its own.  A command arms, changes
 * or ends an event; a batch is a growing array of commands, which one system call runs.
 * What became of events is read as records.
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
 * <linux/twheel.h>, which is included, says what commands, records and times mean.
 *
 * Functions return 0 or more, or a negative errno; none of them prints, exits or changes
 * a signal's handler, and there is no state but that of the objects.  A wheel may be
 * used by several threads at a time, each of which has batches and records of its own.
 * A loop belongs to one thread at a time.  Whoever has created or initialised an object
 * destroys it; commands and records are copied, so nothing else changes hands.
 *
 * Only what waits for records returns -EINTR, where a signal's handler has run:
 * twheel_wait(), twheel_enter() and twheel_loop_run().  All else goes on after a signal.
 */
#ifndef _LIBTWHEEL_H
#define _LIBTWHEEL_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
/* For sigset_t, which <signal.h> has not with -std=c11. */
#include <sys/select.h>
#include <linux/twheel.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Times are in nanoseconds. */
#define TWHEEL_MICROSECOND	1000ULL
#define TWHEEL_MILLISECOND	1000000ULL
#define TWHEEL_SECOND		1000000000ULL

/* A time that never comes, and a wait without end. */
#define TWHEEL_NEVER		(~0ULL)

/* --- a wheel -------------------------------------------------------------------- */

struct twheel;

/* Begin with the defaults, and CLOCK_MONOTONIC: a config of zeros is for CLOCK_REALTIME. */
static inline void twheel_config_init(struct twheel_config *config)
{
	memset(config, 0, sizeof(*config));
	config->size = sizeof(*config);
	/* CLOCK_MONOTONIC, which <time.h> has not with -std=c11. */
	config->clockid = 1;
}

/*
 * Open the device.  @config is as for TWHEEL_IOC_CONFIG, but for its size, which is set
 * here; NULL: CLOCK_MONOTONIC and the defaults.  With nr_deadlines, the words are mapped.
 * The file is non-blocking and closed by exec().
 *
 * Returns 0, and *@wheel is for twheel_close(); or an error, and *@wheel is NULL.  Errors:
 * those of open() (-ENOENT, there is no device: the module is not loaded; -EACCES, it is
 * not for this user), of TWHEEL_IOC_CONFIG and of mmap(); -ENOMEM; -EPROTO, this is not
 * the device, or it has another ABI.
 */
int twheel_open(struct twheel **wheel, const struct twheel_config *config);

/* The same with another path than /dev/twheel. */
int twheel_open_path(struct twheel **wheel, const char *path,
		     const struct twheel_config *config);

/* End a wheel and all its events; NULL is fine.  No other thread uses it any more. */
void twheel_close(struct twheel *wheel);

/* The file: readable (EPOLLIN) when there are records. */
int twheel_fd(const struct twheel *wheel);

/* What the kernel side is and can do; stays as long as the wheel. */
const struct twheel_info *twheel_info(const struct twheel *wheel);

/* Has the kernel side all of these TWHEEL_FEATURE_*? */
bool twheel_has(const struct twheel *wheel, __u64 features);

/* What the wheel's clock says now: absolute times and words are of this clock. */
__u64 twheel_now_ns(const struct twheel *wheel);

/* --- commands ------------------------------------------------------------------- */

/*
 * Each function fills a whole command; those named twheel_cmd_set_* add to one that was
 * filled.  The fields of struct twheel_cmd are described in <linux/twheel.h>.
 */

static inline void twheel_prep(struct twheel_cmd *cmd, __u16 op, __u16 flags, __u64 id)
{
	memset(cmd, 0, sizeof(*cmd));
	cmd->op = op;
	cmd->flags = flags;
	cmd->id = id;
}

/* ADD: @flags is 0, for a time from now, or TWHEEL_ABS and TWHEEL_CANCEL_ON_SET. */
static inline void twheel_prep_add(struct twheel_cmd *cmd, __u64 time_ns, __u64 data,
				   __u16 flags)
{
	twheel_prep(cmd, TWHEEL_OP_ADD, flags, 0);
	cmd->time_ns = time_ns;
	cmd->data = data;
}

/* ADD of an event whose time is a word: see twheel_deadline_get(). */
static inline void twheel_prep_add_deadline(struct twheel_cmd *cmd, __u32 word,
					    __u64 data)
{
	twheel_prep(cmd, TWHEEL_OP_ADD, TWHEEL_DEADLINE, 0);
	cmd->key = word;
	cmd->data = data;
}

/* MODIFY: @flags as for ADD; the data stays, unless twheel_cmd_set_data() follows. */
static inline void twheel_prep_modify(struct twheel_cmd *cmd, __u64 id, __u64 time_ns,
				      __u16 flags)
{
	twheel_prep(cmd, TWHEEL_OP_MODIFY, flags, id);
	cmd->time_ns = time_ns;
}

/* MODIFY that looks at a word at once. */
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
 * WATCH: @flags is 0 or TWHEEL_LEVEL.  With @id 0 it is of the ADD that it follows in the
 * batch, directly or after other such WATCHes: what stands between may be cut off from
 * them by a signal.
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

/* ADD, MODIFY: how much later it may be. */
static inline void twheel_cmd_set_slack(struct twheel_cmd *cmd, __u64 slack_ns)
{
	cmd->slack_ns = slack_ns;
}

/* ADD: how many of its watches have to be satisfied. */
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
 * Run one command.  Returns its result, which it has in @cmd too, or why it was not run:
 * -EFAULT.
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
 * @cmds: these.
 * @nr: how many they are.
 * @room: for how many there is room; it grows.
 */
struct twheel_batch {
	struct twheel_cmd *cmds;
	unsigned int nr;
	unsigned int room;
};

/* Make an empty batch; no memory is got before the first command. */
static inline void twheel_batch_init(struct twheel_batch *batch)
{
	memset(batch, 0, sizeof(*batch));
}

/* Free the memory of a batch, which is empty afterwards. */
void twheel_batch_destroy(struct twheel_batch *batch);

/* Begin anew, in the same memory. */
static inline void twheel_batch_clear(struct twheel_batch *batch)
{
	batch->nr = 0;
}

/* Make room for @nr more commands, at most 2^30 in all.  Returns 0 or -ENOMEM. */
int twheel_batch_reserve(struct twheel_batch *batch, unsigned int nr);

/*
 * The next command, for twheel_prep_*() to fill; NULL for want of memory, which is not if
 * room was made for it.  It stays where it is until there is no room for another.
 */
struct twheel_cmd *twheel_batch_next(struct twheel_batch *batch);

/*
 * Run the commands of a batch, in order.  Each has its own result in batch->cmds, and one
 * that fails does not stop the rest.  Goes on after signals.  The batch stays as it is,
 * with results, until twheel_batch_clear().
 *
 * Returns how many were run, which is all of them; less where a command could be run
 * no more, and a negative errno if the first one could not: -EFAULT.
 */
int twheel_submit(struct twheel *wheel, struct twheel_batch *batch);

/* --- records ---------------------------------------------------------------------- */

/**
 * struct twheel_records - room for records, and those that were read
 * @records: the records.
 * @nr: how many were read.
 * @room: for how many there is room.
 */
struct twheel_records {
	struct twheel_record *records;
	unsigned int nr;
	unsigned int room;
};

/* Make room for @room records.  Returns 0; -EINVAL, @room is 0; -ENOMEM. */
int twheel_records_init(struct twheel_records *records, unsigned int room);

/* Free the memory; afterwards there are no records and no room. */
void twheel_records_destroy(struct twheel_records *records);

/* Each record that was read last, oldest first. */
#define twheel_for_each_record(record, from)					\
	for ((record) = (from)->records;					\
	     (record) < (from)->records + (from)->nr; (record)++)

/*
 * Read what is there, as far as there is room, without waiting.  Returns how many records,
 * which is 0 where there are none; in place of those of the last call.  Of several threads
 * that read, each record goes to one.
 */
int twheel_read(struct twheel *wheel, struct twheel_records *records);

/*
 * Wait until there is a record, at most @timeout_ns (TWHEEL_NEVER: for ever), and read as
 * twheel_read().  Returns how many, 0 when the time was up, or -EINTR.
 */
int twheel_wait(struct twheel *wheel, struct twheel_records *records, __u64 timeout_ns);

/*
 * A turn of an event loop in one system call, TWHEEL_IOC_ENTER: run the commands of @batch
 * (or none, NULL), then wait for @min_records at most @timeout_ns (0: do not wait,
 * TWHEEL_NEVER: for ever) and read.  @mask, if not NULL, is the signal mask meanwhile.
 *
 * Of the batch, *@done commands were run (@done may be NULL).  Where a signal comes in
 * between, these are fewer than there are: the rest is for the next call.
 *
 * Returns how many records there are; -EINVAL, @min_records is more than there is room
 * for; -EINTR, and nothing was done; -EFAULT.
 */
int twheel_enter(struct twheel *wheel, struct twheel_batch *batch, unsigned int *done,
		 struct twheel_records *records, unsigned int min_records,
		 __u64 timeout_ns, const sigset_t *mask);

/*
 * A page of the list of events; *@cursor is 0 at first.  Returns how many entries were
 * written, 0 at the end.
 */
int twheel_list(struct twheel *wheel, struct twheel_entry *entries, unsigned int nr,
		__u64 *cursor);

/* --- deadlines in shared memory ---------------------------------------------------- */

/*
 * A wheel that was opened with nr_deadlines has so many words.  An event that was armed
 * for a word (twheel_prep_add_deadline()) is due when the word says, and to move that
 * later is one store:
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
 * Take a word that nobody uses; it says never.  Returns its index, or -ENOSPC: there is
 * none left, or the wheel has none.  Several threads may take words and give them back.
 */
int twheel_deadline_get(struct twheel *wheel);

/* Give a word back, which no event goes by any more.  Returns 0; -EINVAL, nobody took it. */
int twheel_deadline_put(struct twheel *wheel, __u32 word);

/*
 * A word.  An 8-byte store is one store in a 32-bit program too (for i586 and later, and
 * without libatomic) if the compiler knows that it is aligned, as words are.
 */
typedef __u64 twheel_word __attribute__((aligned(8)));

/* The words, for twheel_deadline_set(); NULL: there are none. */
__u64 *twheel_deadlines(const struct twheel *wheel);

/*
 * Let the events of a word be due at @time_ns, absolute on the wheel's clock.  A time that
 * is later than the one before counts by itself; for an earlier one, MODIFY with
 * TWHEEL_DEADLINE must follow.  @words is what twheel_deadlines() returns.
 */
static inline void twheel_deadline_set(__u64 *words, __u32 word, __u64 time_ns)
{
	__atomic_store_n((twheel_word *)words + word, time_ns, __ATOMIC_RELEASE);
}

/* What a word says. */
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
 * What was started and stopped goes to the kernel with the next twheel_loop_run(), all at
 * once however much it is: so that has to be called before the program sleeps.  What
 * callbacks start and stop is seen to before it returns.
 *
 * No callback is called after twheel_timeout_stop() has returned, nor for a time before
 * the one of the last twheel_timeout_start().  A callback may start and stop any timeout,
 * and free those that are not started any more: its own, unless it has an interval, is one
 * of these.  It must not destroy the loop.
 */
struct twheel_loop;

/**
 * struct twheel_timeout - something to be called later
 * @callback: what to call; @record tells when and why.
 * @context: the caller's.
 * @loop: private, as all that follows.
 * @slot: its place in the loop's table; 0: it is not started.
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
 * Make a loop of a wheel, which stays the caller's.  Nobody else reads the wheel from now
 * on.  Records of events that are not the loop's are lost, and must have data below 2^32.
 * Returns 0 or -ENOMEM.
 */
int twheel_loop_create(struct twheel_loop **loop, struct twheel *wheel);

/* End a loop, or NULL: its timeouts are stopped.  The wheel is to be closed after it. */
void twheel_loop_destroy(struct twheel_loop *loop);

/* The wheel's file, to be polled. */
int twheel_loop_fd(const struct twheel_loop *loop);

/*
 * Start a timeout, or give it another time.  @flags is 0, for a time that counts from when
 * the kernel gets the command, in twheel_loop_run(); or TWHEEL_ABS, on the wheel's clock,
 * and TWHEEL_CANCEL_ON_SET.  With @interval_ns it goes on until it is stopped.
 *
 * Returns 0; or an error, and nothing changes: -EINVAL, it belongs to another loop, the
 * interval is less than a tick, or the flags are not for this; -ENOMEM.
 */
int twheel_timeout_start(struct twheel_loop *loop, struct twheel_timeout *timeout,
			 __u64 time_ns, __u64 interval_ns, __u64 slack_ns, __u16 flags);

/*
 * Start a timeout that is due when a word says.  When a store of a later time has crossed
 * with the expiry, the loop arms it again, and the callback is not called.  After a store
 * of an earlier time, this has to be called once more.
 *
 * Returns as twheel_timeout_start(); -EINVAL, there is no such word.
 */
int twheel_timeout_start_deadline(struct twheel_loop *loop, struct twheel_timeout *timeout,
				  __u32 word, __u64 slack_ns);

/* Stop a timeout, whether it is started or not.  Its memory can be freed then. */
void twheel_timeout_stop(struct twheel_timeout *timeout);

/* Is it started, and so going to be called? */
static inline bool twheel_timeout_pending(const struct twheel_timeout *timeout)
{
	return timeout->slot != 0;
}

/*
 * Bring what was started and stopped to the kernel, wait at most @timeout_ns (0: do not
 * wait; TWHEEL_NEVER: for ever) until something is due, and call what is, up to some
 * hundred at a time.
 *
 * Returns how many callbacks were called, 0 when the time was up, or what was due had been
 * stopped; -EINTR, a signal, and none was called; -EBUSY, this is a callback; -ENOSPC,
 * -ENOMEM: the kernel refused to arm a timeout, which is not started any more
 * (twheel_timeout_pending() says which), and it did not wait, but those that were due were
 * called all the same.  Whatever it returns, nothing waits any more to be brought to the
 * kernel.
 */
int twheel_loop_run(struct twheel_loop *loop, __u64 timeout_ns);

#ifdef __cplusplus
}
#endif

#endif /* _LIBTWHEEL_H */
