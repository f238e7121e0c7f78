/* SPDX-License-Identifier: GPL-2.0 */
/*
 * /dev/twheel as the tests use it: the system calls, commands and counters.
 *
 * Calls return what the system call returned, or -errno.  Helpers that cannot
 * do their work end the test as failed.
 */
#ifndef DEVICE_TEST_DEVICE_H
#define DEVICE_TEST_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include <linux/twheel.h>

#include "harness.h"

#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))

#define NSEC_PER_USEC	1000ULL
#define NSEC_PER_MSEC	1000000ULL
#define NSEC_PER_SEC	1000000000ULL

/* The least time that means never. */
#define NEVER_NS	(1ULL << 63)

/* A delay that no test lives to see. */
#define FAR_NS		(1000000 * NSEC_PER_SEC)

/* A delay that is over soon. */
#define SOON_NS		(20 * NSEC_PER_MSEC)

/*
 * How long poll() and ENTER wait for what must happen: for ever, as a hang ends by
 * itself.
 */
#define FOR_EVER	(-1)
#define ENTER_FOR_EVER	(~0ULL)

/* Outputs are filled with this, and fields not yet written to still have it. */
#define FILL		0xcc
#define FILL_RESULT	((__s32)0xcccccccc)
#define FILL_U64	0xccccccccccccccccULL

#define PAGE_BYTES	4096UL
#define CMDS_PER_PAGE	(PAGE_BYTES / sizeof(struct twheel_cmd))

/* A field of a struct; tests have tables of them, which end with an empty one. */
struct field {
	const char *name;
	size_t offset;
	size_t size;
};

#define FIELD(type, member) {						\
	.name = #member,						\
	.offset = offsetof(struct type, member),			\
	.size = sizeof(((struct type *)NULL)->member),			\
}

/* The lines of fdinfo. */
struct counters {
	long long clockid;
	long long max_events;
	long long added;
	long long armed;
	long long ready;
	long long finished;
	long long cancelled;
	long long completed;
	long long records;
};

/* Set a field of a struct. */
void set_field(void *object, const struct field *field, __u64 value);

/* Open the device with @flags, such as O_RDWR | O_NONBLOCK. */
int device_open(int flags);

/* A new context whose reads do not block. */
int device_open_nonblock(void);

/* A new context, set up. */
int device_open_configured(int flags, const struct twheel_config *config);

/* The call itself, with the number made by hand where a test needs that. */
long device_ioctl(int fd, unsigned long cmd, void *arg);

/* TWHEEL_IOC_SUBMIT of @nr commands. */
long submit(int fd, struct twheel_cmd *cmds, __u32 nr);

/* TWHEEL_IOC_SUBMIT of one command: its result. */
int run(int fd, struct twheel_cmd *cmd);

/* Commands with their outputs filled. */
struct twheel_cmd make_cmd(__u16 op, __u64 id);
struct twheel_cmd make_add(__u16 flags, __u64 time_ns, __u64 data);
struct twheel_cmd make_periodic(__u16 flags, __u64 time_ns, __u64 interval_ns,
				__u64 data);
struct twheel_cmd make_modify(__u64 id, __u16 flags, __u64 time_ns);

/* The value of a signal or the need of a watch is @value or @need. */
struct twheel_cmd make_watch(__u64 id, __u64 key, __u64 need);
struct twheel_cmd make_level(__u64 id, __u64 key, __u64 need);
struct twheel_cmd make_signal(__u64 key, __u64 value);
struct twheel_cmd make_quiet(__u64 key);
struct twheel_cmd make_complete(__u64 id, __u64 value);

/* Arm an event: its id, or the test has failed. */
__u64 add(int fd, __u16 flags, __u64 time_ns, __u64 data);
__u64 add_by(int fd, struct twheel_cmd cmd);

/* Arm @nr events, due after @time_ns, whose data is 0, 1, ... */
void add_many(int fd, __u16 flags, __u64 time_ns, size_t nr, __u64 *ids);

/* These return the command's result. */
int modify(int fd, __u64 id, __u16 flags, __u64 time_ns);
int cancel(int fd, __u64 id);
int query(int fd, __u64 id, struct twheel_cmd *answer);
int watch(int fd, __u64 id, __u64 key, __u64 need);
int watch_level(int fd, __u64 id, __u64 key, __u64 need);
int signal_key(int fd, __u64 key, __u64 value);
int signal_quietly(int fd, __u64 key);
int complete(int fd, __u64 id, __u64 value);

/* Arm an operation that is due far off, without watches yet. */
__u64 add_operation(int fd, __u32 quorum, __u64 data);

/* The same with one watch, for a sum. */
__u64 add_watching(int fd, __u64 key, __u64 need, __u64 data);

/* When the event is due. */
__u64 query_time(int fd, __u64 id);

/* read() of up to @nr records: how many came, or -errno. */
long read_records(int fd, struct twheel_record *records, size_t nr);

/* Wait for a record, read it and check all of it but the id and the data. */
struct twheel_record wait_record(int fd);

/* Check what must hold for the record of an expired one-shot event. */
void check_record(const struct twheel_record *record);

/* The same for any event on CLOCK_MONOTONIC: all but the count. */
void check_expired(const struct twheel_record *record);

/*
 * Check what must hold for the record of any event on CLOCK_MONOTONIC that was
 * completed: by a signal of @value on @key, or by COMPLETE, and @key is 0.
 */
void check_completed(const struct twheel_record *record, __u64 value, __u64 key);

/* Wait for such a record and read it. */
struct twheel_record wait_completed(int fd, __u64 value, __u64 key);

/*
 * TWHEEL_IOC_ENTER with these commands and this room for records; it neither
 * waits for a record nor is there a time.
 */
struct twheel_enter make_enter(struct twheel_cmd *cmds, __u32 nr_cmds,
			       struct twheel_record *records, __u32 nr_records);

/*
 * Call it, with its outputs filled before.  They must be written unless the
 * call is malformed; nothing else may be.
 */
long enter(int fd, struct twheel_enter *arg);

/* TWHEEL_IOC_LIST from the beginning, with room for @nr entries. */
struct twheel_list make_list(struct twheel_entry *entries, __u32 nr);

/* The entry that TWHEEL_IOC_LIST has of an event; there must be exactly one. */
struct twheel_entry list_one(int fd, __u64 id);

/* poll() for POLLIN: the revents. */
int poll_events(int fd, int timeout_ms);

/* Wait until there is something to read. */
void wait_readable(int fd);

/* Wait until @nr records are there to be read. */
void wait_ready(int fd, long long nr);

/* Check that nothing can be read, by poll() and read(). */
void check_nothing_ready(int fd);

struct twheel_info get_info(int fd);
struct twheel_config default_config(void);

struct counters get_counters(int fd);

/* Check that the counters are as they were. */
void check_counters(int fd, const struct counters *expected);

/* Check that the counters add up. */
void check_sum(const struct counters *counters);

/*
 * Run a command that must be refused with -@error, and check that it did
 * nothing.
 */
void check_refused(int fd, const struct twheel_cmd *cmd, int error);

/* A number in a file that begins with it, or -1. */
long long read_number(const char *path);

/* Parameter of the loaded module, or -1. */
long long module_parameter(const char *name);

/* Skip the test where debugfs does not show the wheels. */
void need_debugfs(void);

/* The events armed on all wheels of the machine; needs debugfs. */
long long armed_on_machine(void);

/* Wait until the wheels hold @armed events again. */
void wait_armed_on_machine(long long armed);

/* The interrupts that all of these wheels took; needs debugfs. */
long long interrupts_on_machine(void);

/* The most nodes that any of them touched while its lock was held once; needs debugfs. */
long long most_touched_on_machine(void);

/* A new context on a clock, whose reads do not block. */
int device_open_clock(clockid_t clock);

/* wait_record() and check_expired() for contexts on any clock. */
struct twheel_record wait_expired_on(int fd, clockid_t clock);
void check_expired_on(const struct twheel_record *record, clockid_t clock);

/* Check that an event is armed and stays so for that long by CLOCK_MONOTONIC. */
void check_armed_for(int fd, __u64 id, __u64 time_ns);

/* The number in the first line `name:<tab>number` of a file, or -1. */
long long number_in_file(const char *path, const char *name);

/* The number in a line of fdinfo, or -1 if fdinfo does not have the line. */
long long fdinfo_number(int fd, const char *name);

/* The number in a line that debugfs has of a CPU's base, or -1: events without a word. */
long long base_number(int cpu, clockid_t clock, const char *name);

/* The same of the base of events with TWHEEL_DEADLINE. */
long long deadline_base_number(int cpu, clockid_t clock, const char *name);

/*
 * The words that a context shares with its process.  A plain assignment is an atomic
 * store, of 32-bit programs too.
 */
_Atomic __u64 *map_deadlines(int fd, size_t nr);

/* A configuration with @nr words, and a context that has it, with its words mapped. */
struct twheel_config deadlines_config(clockid_t clock, __u32 nr);
int open_deadlines_on(clockid_t clock, __u32 nr, _Atomic __u64 **words);

/* Such a context on CLOCK_MONOTONIC. */
int open_deadlines(__u32 nr, _Atomic __u64 **words);

/* Commands for an event whose time is a word. */
struct twheel_cmd make_deadline_add(__u64 index, __u64 data);
struct twheel_cmd make_deadline_modify(__u64 id, __u64 index);

/* Arm it: its id, or the test has failed; and MODIFY's result. */
__u64 add_deadline(int fd, __u64 index, __u64 data);
int modify_deadline(int fd, __u64 id, __u64 index);

/* How often events of the context were postponed; wait until that is more than @nr. */
long long count_postponed(int fd);
void wait_postponed_after(int fd, long long nr);

/* The same, of one event; or false, it is READY, as its time came before the store. */
bool wait_event_postponed_after(int fd, __u64 id, long long nr);

/*
 * What has to be done before an event comes is done in attempts, as the machine may stand
 * still meanwhile. The event is @lead_ns ahead: @first_ns in the first attempt, and twice
 * as much in each later one. The body leaves the loop when it was in time, and else undoes
 * what it did. The test fails when even very much time was too little.
 *
 *	for_each_attempt(lead_ns, SOON_NS) {
 *		__u64 due_ns = monotonic_ns() + lead_ns;
 *
 *		id = add(fd, TWHEEL_ABS, due_ns, 0);
 *		if (monotonic_ns() < due_ns)
 *			break;
 *		ASSERT_EQ(cancel(fd, id), 0);
 *	}
 */
#define for_each_attempt(lead_ns, first_ns)				\
	for (__u64 lead_ns = (first_ns);; lead_ns = next_attempt_ns(lead_ns))

__u64 next_attempt_ns(__u64 lead_ns);

/*
 * Arm an event whose word then says @later_ns, of which the kernel has taken note: the
 * event has come out of its wheel and waits for that.
 */
__u64 add_postponed(int fd, _Atomic __u64 *words, __u64 index, __u64 later_ns,
		    __u64 data);

#endif /* DEVICE_TEST_DEVICE_H */
