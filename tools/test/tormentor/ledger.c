// SPDX-License-Identifier: GPL-2.0
/* The ledger: see ledger.h. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ledger.h"

struct ledger *ledger;

static char *memory;
static size_t bytes_per_log;
static unsigned int nr_logs;

uint64_t clock_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * SECOND_NS + time.tv_nsec;
}

static void *map_shared(size_t bytes)
{
	void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	return map == MAP_FAILED ? NULL : map;
}

static void make_lock(pthread_mutex_t *lock)
{
	pthread_mutexattr_t shared;

	pthread_mutexattr_init(&shared);
	pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&shared, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(lock, &shared);
	pthread_mutexattr_destroy(&shared);
}

int ledger_make(unsigned int logs, size_t log_bytes)
{
	nr_logs = logs;
	bytes_per_log = log_bytes;
	ledger = map_shared(sizeof(*ledger));
	memory = map_shared(nr_logs * bytes_per_log);
	if (!ledger || !memory)
		return -ENOMEM;
	make_lock(&ledger->cpus);
	return 0;
}

void ledger_reset(void)
{
	unsigned int i;

	for (i = 0; i < nr_logs; i++)
		memset(memory + i * bytes_per_log, 0, ledger->logs[i].used);
	memset(ledger, 0, offsetof(struct ledger, passed));
	ledger->logs_limit = nr_logs - LOGS_RESERVED;
	ledger->offset_ns = wall_offset_ns();
}

void ledger_end(void)
{
	ledger->logs_limit = nr_logs;
}

void cpus_lock(void)
{
	if (pthread_mutex_lock(&ledger->cpus) == EOWNERDEAD)
		pthread_mutex_consistent(&ledger->cpus);
}

void cpus_unlock(void)
{
	pthread_mutex_unlock(&ledger->cpus);
}

unsigned int nr_files(void)
{
	return ledger->nr_files < FILES_MAX ? ledger->nr_files : FILES_MAX;
}

/* --- logs ----------------------------------------------------------------------------- */

int log_take(void)
{
	unsigned int number = ledger->nr_logs;

	do {
		if (number >= ledger->logs_limit)
			return -1;
	} while (!atomic_compare_exchange_weak(&ledger->nr_logs, &number, number + 1));
	ledger->logs[number].tid = gettid();
	ledger->logs[number].pid = getpid();
	return number;
}

static void *log_memory(unsigned int log)
{
	return memory + log * bytes_per_log;
}

bool is_of_logs(uintptr_t address)
{
	return address - (uintptr_t)memory < nr_logs * bytes_per_log;
}

static void touch(const char *bytes, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i += 4096)
		__atomic_load_n(&bytes[i], __ATOMIC_RELAXED);
}

void log_settle(int log)
{
	touch(log_memory(log), bytes_per_log);
	ledger->logs[log].is_last = true;
}

struct call *call_begin(int *log, unsigned int file, unsigned int nr_cmds,
			unsigned int nr_records)
{
	uint32_t bytes = sizeof(struct call) + nr_cmds * sizeof(struct twheel_cmd) +
			 nr_records * sizeof(struct twheel_record);
	struct call *call;
	unsigned int i;

	if (ledger->logs[*log].used + bytes > bytes_per_log) {
		int next = ledger->logs[*log].is_last ? -1 : log_take();

		if (next < 0)
			return NULL;
		ledger->logs[*log].pid = 0;
		*log = next;
	}
	call = log_memory(*log) + ledger->logs[*log].used;
	ledger->logs[*log].used += bytes;
	call->bytes = bytes;
	call->file = file;
	call->nr_cmds = nr_cmds;
	call->nr_records = nr_records;
	for (i = 0; i < nr_cmds; i++)
		call_cmds(call)[i].result = NOT_RUN;
	return call;
}

void call_go(struct call *call, enum call_kind kind)
{
	call->file_before_ns = clock_ns(ledger->files[call->file].clock);
	call->before_ns = now_ns();
	/* The process can be killed: what is above comes first. */
	atomic_signal_fence(memory_order_seq_cst);
	call->kind = kind;
	atomic_signal_fence(memory_order_seq_cst);
}

void call_end(int log, struct call *call, int ret, unsigned int nr_records)
{
	uint32_t spare = (call->nr_records - nr_records) * sizeof(struct twheel_record);

	atomic_signal_fence(memory_order_seq_cst);
	call->after_ns = now_ns();
	call->file_after_ns = clock_ns(ledger->files[call->file].clock);
	call->ret = ret;
	call->nr_records = nr_records;
	atomic_signal_fence(memory_order_seq_cst);
	call->is_done = true;
	atomic_signal_fence(memory_order_seq_cst);
	call->bytes -= spare;
	ledger->logs[log].used -= spare;
}

static struct call *call_at(unsigned int log, size_t offset)
{
	struct call *call = log_memory(log) + offset;

	if (offset + sizeof(*call) > bytes_per_log || call->kind == CALL_NONE)
		return NULL;
	return call;
}

struct call *log_first(unsigned int log)
{
	return call_at(log, 0);
}

struct call *log_next(unsigned int log, struct call *call)
{
	return call_at(log, (char *)call - (char *)log_memory(log) + call->bytes);
}

unsigned int call_nr_read(struct call *call)
{
	const struct twheel_record *record = call_records(call);
	unsigned int nr = 0;

	if (call->is_done)
		return call->nr_records;
	/*
	 * The kernel may take a page away at any moment, and does not get it back for a process
	 * that is killed.  So a record may be there in part, and then it was not read.
	 */
	while (nr < call->nr_records && record[nr].id && record[nr].count)
		nr++;
	return nr;
}

/* --- the wall clock ------------------------------------------------------------------- */

int64_t wall_offset_ns(void)
{
	uint64_t monotonic_ns = now_ns();

	return clock_ns(CLOCK_REALTIME) - monotonic_ns;
}

int64_t lowest_wall_offset_ns(void)
{
	int64_t lowest_ns = wall_offset_ns();
	unsigned int i;

	if (ledger->offset_ns < lowest_ns)
		lowest_ns = ledger->offset_ns;
	for (i = 0; i < ledger->nr_sets; i++)
		if (ledger->sets[i].offset_ns < lowest_ns)
			lowest_ns = ledger->sets[i].offset_ns;
	return lowest_ns;
}

/* One process at a time does this: see disturb.c. */
int note_clock_set(int set)
{
	struct clock_set *clock_set;

	if (set < 0) {
		if (ledger->nr_sets == SETS_MAX)
			return -1;
		clock_set = &ledger->sets[ledger->nr_sets];
		clock_set->before_ns = now_ns();
		clock_set->after_ns = NEVER_NS;
		clock_set->offset_ns = INT64_MAX;
		return ledger->nr_sets++;
	}
	clock_set = &ledger->sets[set];
	clock_set->offset_ns = wall_offset_ns();
	clock_set->after_ns = now_ns();
	return set;
}
