// SPDX-License-Identifier: GPL-2.0
/* /dev/twheel as the tests use it: the system calls, commands and counters. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "device.h"
#include "util.h"

#define DEVICE		"/dev/twheel"
#define PARAMETERS	"/sys/module/twheel/parameters"
#define DEBUGFS		"/sys/kernel/debug/twheel"

void set_field(void *object, const struct field *field, __u64 value)
{
	/* The first bytes are the lowest. */
	memcpy((char *)object + field->offset, &value, field->size);
}

int device_open(int flags)
{
	int fd = open(DEVICE, flags);

	if (fd < 0)
		test_fail(__FILE__, __LINE__, "open %s: seen -%s, expected >= 0",
			  DEVICE, strerrorname_np(errno));
	return fd;
}

int device_open_nonblock(void)
{
	return device_open(O_RDWR | O_NONBLOCK | O_CLOEXEC);
}

int device_open_configured(int flags, const struct twheel_config *config)
{
	struct twheel_config copy = *config;
	int fd = device_open(flags);

	ASSERT_EQ(device_ioctl(fd, TWHEEL_IOC_CONFIG, &copy), 0);
	return fd;
}

long device_ioctl(int fd, unsigned long cmd, void *arg)
{
	long ret = ioctl(fd, cmd, arg);

	return ret < 0 ? -errno : ret;
}

long submit(int fd, struct twheel_cmd *cmds, __u32 nr)
{
	struct twheel_submit arg = {
		.size = sizeof(arg),
		.cmds = (uintptr_t)cmds,
		.nr = nr,
		.cmd_size = sizeof(*cmds),
	};

	return device_ioctl(fd, TWHEEL_IOC_SUBMIT, &arg);
}

int run(int fd, struct twheel_cmd *cmd)
{
	ASSERT_EQ(submit(fd, cmd, 1), 1);
	return cmd->result;
}

struct twheel_cmd make_cmd(__u16 op, __u64 id)
{
	struct twheel_cmd cmd = { .op = op, .result = FILL_RESULT, .id = id };

	if (op == TWHEEL_OP_QUERY) {
		cmd.time_ns = FILL_U64;
		cmd.interval_ns = FILL_U64;
		cmd.slack_ns = FILL_U64;
	}
	return cmd;
}

struct twheel_cmd make_add(__u16 flags, __u64 time_ns, __u64 data)
{
	struct twheel_cmd cmd = make_cmd(TWHEEL_OP_ADD, FILL_U64);

	cmd.flags = flags;
	cmd.time_ns = time_ns;
	cmd.data = data;
	return cmd;
}

struct twheel_cmd make_periodic(__u16 flags, __u64 time_ns, __u64 interval_ns,
				__u64 data)
{
	struct twheel_cmd cmd = make_add(flags, time_ns, data);

	cmd.interval_ns = interval_ns;
	return cmd;
}

struct twheel_cmd make_modify(__u64 id, __u16 flags, __u64 time_ns)
{
	struct twheel_cmd cmd = make_cmd(TWHEEL_OP_MODIFY, id);

	cmd.flags = flags;
	cmd.time_ns = time_ns;
	return cmd;
}

struct twheel_cmd make_watch(__u64 id, __u64 key, __u64 need)
{
	struct twheel_cmd cmd = make_cmd(TWHEEL_OP_WATCH, id);

	cmd.key = key;
	cmd.value = need;
	return cmd;
}

struct twheel_cmd make_level(__u64 id, __u64 key, __u64 need)
{
	struct twheel_cmd cmd = make_watch(id, key, need);

	cmd.flags = TWHEEL_LEVEL;
	return cmd;
}

struct twheel_cmd make_signal(__u64 key, __u64 value)
{
	struct twheel_cmd cmd = make_cmd(TWHEEL_OP_SIGNAL, 0);

	cmd.key = key;
	cmd.value = value;
	return cmd;
}

struct twheel_cmd make_quiet(__u64 key)
{
	struct twheel_cmd cmd = make_signal(key, 0);

	cmd.flags = TWHEEL_QUIET;
	return cmd;
}

struct twheel_cmd make_complete(__u64 id, __u64 value)
{
	struct twheel_cmd cmd = make_cmd(TWHEEL_OP_COMPLETE, id);

	cmd.value = value;
	return cmd;
}

__u64 add_by(int fd, struct twheel_cmd cmd)
{
	ASSERT_EQ(run(fd, &cmd), 0);
	ASSERT_NE(cmd.id, 0);
	ASSERT_NE(cmd.id, FILL_U64);
	return cmd.id;
}

__u64 add(int fd, __u16 flags, __u64 time_ns, __u64 data)
{
	return add_by(fd, make_add(flags, time_ns, data));
}

void add_many(int fd, __u16 flags, __u64 time_ns, size_t nr, __u64 *ids)
{
	struct twheel_cmd *cmds = calloc(nr, sizeof(*cmds));
	size_t i;

	ASSERT(cmds);
	for (i = 0; i < nr; i++)
		cmds[i] = make_add(flags, time_ns, i);
	ASSERT_EQ(submit(fd, cmds, nr), nr);
	for (i = 0; i < nr; i++) {
		ASSERT_EQ(cmds[i].result, 0);
		if (ids)
			ids[i] = cmds[i].id;
	}
	free(cmds);
}

int modify(int fd, __u64 id, __u16 flags, __u64 time_ns)
{
	struct twheel_cmd cmd = make_modify(id, flags, time_ns);

	return run(fd, &cmd);
}

int cancel(int fd, __u64 id)
{
	struct twheel_cmd cmd = make_cmd(TWHEEL_OP_CANCEL, id);

	return run(fd, &cmd);
}

int query(int fd, __u64 id, struct twheel_cmd *answer)
{
	struct twheel_cmd cmd = make_cmd(TWHEEL_OP_QUERY, id);
	int result = run(fd, &cmd);

	if (answer)
		*answer = cmd;
	return result;
}

int watch(int fd, __u64 id, __u64 key, __u64 need)
{
	struct twheel_cmd cmd = make_watch(id, key, need);

	return run(fd, &cmd);
}

int watch_level(int fd, __u64 id, __u64 key, __u64 need)
{
	struct twheel_cmd cmd = make_level(id, key, need);

	return run(fd, &cmd);
}

int signal_key(int fd, __u64 key, __u64 value)
{
	struct twheel_cmd cmd = make_signal(key, value);

	return run(fd, &cmd);
}

int signal_quietly(int fd, __u64 key)
{
	struct twheel_cmd cmd = make_quiet(key);

	return run(fd, &cmd);
}

int complete(int fd, __u64 id, __u64 value)
{
	struct twheel_cmd cmd = make_complete(id, value);

	return run(fd, &cmd);
}

__u64 add_operation(int fd, __u32 quorum, __u64 data)
{
	struct twheel_cmd cmd = make_add(0, FAR_NS, data);

	cmd.quorum = quorum;
	return add_by(fd, cmd);
}

__u64 add_watching(int fd, __u64 key, __u64 need, __u64 data)
{
	__u64 id = add_operation(fd, 0, data);

	ASSERT_EQ(watch(fd, id, key, need), 0);
	return id;
}

__u64 query_time(int fd, __u64 id)
{
	struct twheel_cmd answer;

	ASSERT_GT(query(fd, id, &answer), 0);
	return answer.time_ns;
}

long read_records(int fd, struct twheel_record *records, size_t nr)
{
	ssize_t ret = read(fd, records, nr * sizeof(*records));

	if (ret < 0)
		return -errno;
	ASSERT_EQ(ret % sizeof(*records), 0);
	return ret / sizeof(*records);
}

struct twheel_record wait_record(int fd)
{
	struct twheel_record record;

	memset(&record, FILL, sizeof(record));
	wait_readable(fd);
	ASSERT_EQ(read_records(fd, &record, 1), 1);
	check_record(&record);
	return record;
}

void check_record(const struct twheel_record *record)
{
	check_expired(record);
	ASSERT_EQ(record->count, 1);
}

void check_expired(const struct twheel_record *record)
{
	check_expired_on(record, CLOCK_MONOTONIC);
}

void check_completed(const struct twheel_record *record, __u64 value, __u64 key)
{
	ASSERT_LE(record->fired_ns, monotonic_ns());
	ASSERT_NE(record->id, 0);
	ASSERT_EQ(record->count, 1);
	ASSERT_EQ(record->value, value);
	ASSERT_EQ(record->key, key);
	ASSERT_EQ(record->reason, TWHEEL_COMPLETED);
	/* A signal may be on key 0 as well. */
	ASSERT_EQ(record->flags | (key ? 0 : TWHEEL_RECORD_SIGNAL),
		  TWHEEL_RECORD_SIGNAL);
}

struct twheel_record wait_completed(int fd, __u64 value, __u64 key)
{
	struct twheel_record record;

	memset(&record, FILL, sizeof(record));
	wait_readable(fd);
	ASSERT_EQ(read_records(fd, &record, 1), 1);
	check_completed(&record, value, key);
	return record;
}

struct twheel_enter make_enter(struct twheel_cmd *cmds, __u32 nr_cmds,
			       struct twheel_record *records, __u32 nr_records)
{
	return (struct twheel_enter){
		.size = sizeof(struct twheel_enter),
		.cmds = (uintptr_t)cmds,
		.records = (uintptr_t)records,
		.nr_cmds = nr_cmds,
		.nr_records = nr_records,
		.cmd_size = sizeof(*cmds),
		.record_size = sizeof(*records),
	};
}

long enter(int fd, struct twheel_enter *arg)
{
	struct twheel_enter expected;
	long ret;

	arg->cmds_done = (__u32)FILL_RESULT;
	arg->records_done = (__u32)FILL_RESULT;
	expected = *arg;
	ret = device_ioctl(fd, TWHEEL_IOC_ENTER, arg);
	if (!ret) {
		ASSERT_LE(arg->cmds_done, arg->nr_cmds);
		ASSERT_LE(arg->records_done, arg->nr_records);
	} else if (ret == -EINTR || ret == -EFAULT) {
		ASSERT_EQ(arg->cmds_done, 0);
		ASSERT_EQ(arg->records_done, 0);
	}
	expected.cmds_done = arg->cmds_done;
	expected.records_done = arg->records_done;
	ASSERT_EQ(memcmp(arg, &expected, sizeof(expected)), 0);
	return ret;
}

struct twheel_list make_list(struct twheel_entry *entries, __u32 nr)
{
	return (struct twheel_list){
		.size = sizeof(struct twheel_list),
		.nr = nr,
		.entry_size = sizeof(*entries),
		.entries = (uintptr_t)entries,
	};
}

struct twheel_entry list_one(int fd, __u64 id)
{
	struct twheel_entry entries[64], found = { .id = 0 };
	struct twheel_list list = make_list(entries, ARRAY_SIZE(entries));
	long nr, i;

	while ((nr = device_ioctl(fd, TWHEEL_IOC_LIST, &list)) > 0) {
		for (i = 0; i < nr; i++) {
			if (entries[i].id != id)
				continue;
			ASSERT_EQ(found.id, 0);
			found = entries[i];
		}
	}
	ASSERT_EQ(nr, 0);
	ASSERT_EQ(found.id, id);
	return found;
}

int poll_events(int fd, int timeout_ms)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };

	/* Alarms may be on: poll() is never restarted after a signal. */
	ASSERT_GE(TEMP_FAILURE_RETRY(poll(&pollfd, 1, timeout_ms)), 0);
	return pollfd.revents;
}

void wait_readable(int fd)
{
	ASSERT_EQ(poll_events(fd, FOR_EVER), POLLIN);
}

void wait_ready(int fd, long long nr)
{
	while (get_counters(fd).ready < nr)
		poll(NULL, 0, 1);
}

void check_nothing_ready(int fd)
{
	struct twheel_record record;
	int flags = fcntl(fd, F_GETFL);

	ASSERT_EQ(poll_events(fd, 0), 0);
	ASSERT(flags & O_NONBLOCK);
	ASSERT_EQ(read_records(fd, &record, 1), -EAGAIN);
}

struct twheel_info get_info(int fd)
{
	struct twheel_info info;

	memset(&info, FILL, sizeof(info));
	info.size = sizeof(info);
	ASSERT_EQ(device_ioctl(fd, TWHEEL_IOC_INFO, &info), 0);
	return info;
}

struct twheel_config default_config(void)
{
	return (struct twheel_config){
		.size = sizeof(struct twheel_config),
		.clockid = CLOCK_MONOTONIC,
	};
}

/* The value of the line `name:<tab>value`, which must be there once. */
static long long fdinfo_value(const char *text, const char *name)
{
	size_t length = strlen(name);
	const char *line, *found = NULL;

	for (line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, length) || line[length] != ':')
			continue;
		if (found)
			test_fail(__FILE__, __LINE__,
				  "fdinfo: seen two lines %s, expected one",
				  name);
		found = line + length + 1;
	}
	if (!found || *found != '\t')
		test_fail(__FILE__, __LINE__,
			  "fdinfo: seen no line '%s:<tab>', expected one", name);
	return strtoll(found, NULL, 10);
}

struct counters get_counters(int fd)
{
	char path[64], text[4096];
	ssize_t length;
	int info;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	info = open(path, O_RDONLY | O_CLOEXEC);
	ASSERT_GE(info, 0);
	length = read(info, text, sizeof(text) - 1);
	ASSERT_GT(length, 0);
	close(info);
	text[length] = 0;
	return (struct counters){
		.clockid = fdinfo_value(text, "clockid"),
		.max_events = fdinfo_value(text, "max_events"),
		.added = fdinfo_value(text, "added"),
		.armed = fdinfo_value(text, "armed"),
		.ready = fdinfo_value(text, "ready"),
		.finished = fdinfo_value(text, "finished"),
		.cancelled = fdinfo_value(text, "cancelled"),
		.completed = fdinfo_value(text, "completed"),
		.records = fdinfo_value(text, "records"),
	};
}

void check_counters(int fd, const struct counters *expected)
{
	struct counters seen = get_counters(fd);

	ASSERT_EQ(seen.clockid, expected->clockid);
	ASSERT_EQ(seen.max_events, expected->max_events);
	ASSERT_EQ(seen.added, expected->added);
	ASSERT_EQ(seen.armed, expected->armed);
	ASSERT_EQ(seen.ready, expected->ready);
	ASSERT_EQ(seen.finished, expected->finished);
	ASSERT_EQ(seen.cancelled, expected->cancelled);
	ASSERT_EQ(seen.completed, expected->completed);
	ASSERT_EQ(seen.records, expected->records);
}

void check_sum(const struct counters *counters)
{
	ASSERT_EQ(counters->added, counters->armed + counters->ready +
		  counters->finished + counters->cancelled);
}

void check_refused(int fd, const struct twheel_cmd *cmd, int error)
{
	struct counters before = get_counters(fd);
	struct twheel_cmd seen = *cmd, expected = *cmd;

	expected.result = -error;
	if (cmd->op == TWHEEL_OP_ADD)
		expected.id = 0;
	ASSERT_EQ(run(fd, &seen), expected.result);
	ASSERT_EQ(seen.id, expected.id);
	ASSERT_EQ(memcmp(&seen, &expected, sizeof(seen)), 0);
	check_counters(fd, &before);
}

long long read_number(const char *path)
{
	FILE *file = fopen(path, "r");
	long long value;

	if (!file)
		return -1;
	if (fscanf(file, "%lld", &value) != 1)
		value = -1;
	fclose(file);
	return value;
}

long long module_parameter(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), PARAMETERS "/%s", name);
	return read_number(path);
}

/* The value of the line `field:<tab>value` of a base. */
static long long base_value(const char *base, const char *field)
{
	size_t length = strlen(field);
	char path[512], line[256];
	long long value = -1;
	FILE *file;

	snprintf(path, sizeof(path), DEBUGFS "/%s", base);
	file = fopen(path, "r");
	ASSERT(file);
	while (value < 0 && fgets(line, sizeof(line), file)) {
		if (!strncmp(line, field, length) && line[length] == ':')
			value = strtoll(line + length + 1, NULL, 10);
	}
	fclose(file);
	ASSERT_GE(value, 0);
	return value;
}

void need_debugfs(void)
{
	if (access(DEBUGFS, R_OK | X_OK))
		test_skip("no " DEBUGFS ": %s", strerror(errno));
}

/* The sum and the largest of a field, over all bases of CLOCK_MONOTONIC. */
struct of_bases {
	long long sum;
	long long most;
};

static struct of_bases of_bases(const char *field)
{
	struct of_bases all = {};
	struct dirent *entry;
	long long value;
	DIR *dir;

	need_debugfs();
	dir = opendir(DEBUGFS);
	ASSERT(dir);
	while ((entry = readdir(dir))) {
		if (!strstr(entry->d_name, "-monotonic"))
			continue;
		value = base_value(entry->d_name, field);
		all.sum += value;
		if (value > all.most)
			all.most = value;
	}
	closedir(dir);
	return all;
}

long long armed_on_machine(void)
{
	return of_bases("armed").sum;
}

long long interrupts_on_machine(void)
{
	return of_bases("interrupts").sum;
}

long long most_touched_on_machine(void)
{
	return of_bases("most_touched").most;
}

void wait_armed_on_machine(long long armed)
{
	while (armed_on_machine() != armed)
		poll(NULL, 0, 1);
}

int device_open_clock(clockid_t clock)
{
	struct twheel_config config = default_config();

	config.clockid = clock;
	return device_open_configured(O_RDWR | O_NONBLOCK | O_CLOEXEC, &config);
}

void check_expired_on(const struct twheel_record *record, clockid_t clock)
{
	__u64 now_ns = clock_ns(clock);

	ASSERT_GE(record->fired_ns, record->due_ns);
	ASSERT_GE(now_ns, record->due_ns);
	ASSERT_GE(now_ns, record->fired_ns);
	ASSERT_NE(record->id, 0);
	ASSERT_NE(record->count, 0);
	ASSERT_EQ(record->value, 0);
	ASSERT_EQ(record->key, 0);
	ASSERT_EQ(record->reason, TWHEEL_EXPIRED);
	ASSERT_EQ(record->flags, 0);
}

struct twheel_record wait_expired_on(int fd, clockid_t clock)
{
	struct twheel_record record;

	memset(&record, FILL, sizeof(record));
	wait_readable(fd);
	ASSERT_EQ(read_records(fd, &record, 1), 1);
	check_expired_on(&record, clock);
	return record;
}

void check_armed_for(int fd, __u64 id, __u64 time_ns)
{
	int other = device_open_nonblock();

	add(other, 0, time_ns, 0);
	do {
		ASSERT_EQ(query(fd, id, NULL), TWHEEL_ARMED);
	} while (!poll_events(other, 10));
	ASSERT_EQ(query(fd, id, NULL), TWHEEL_ARMED);
	close(other);
}

long long number_in_file(const char *path, const char *name)
{
	size_t length = strlen(name);
	long long value = -1;
	char line[4096];
	FILE *file = fopen(path, "r");

	if (!file)
		return -1;
	while (value < 0 && fgets(line, sizeof(line), file)) {
		if (!strncmp(line, name, length) && line[length] == ':')
			value = strtoll(line + length + 1, NULL, 10);
	}
	fclose(file);
	return value;
}

long long fdinfo_number(int fd, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	return number_in_file(path, name);
}

/* @suffix: what the name of the base has behind its clock. */
static long long kind_number(int cpu, clockid_t clock, const char *suffix, const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), DEBUGFS "/cpu%d-%s%s", cpu,
		 clock == CLOCK_REALTIME ? "realtime" :
		 clock == CLOCK_BOOTTIME ? "boottime" : "monotonic", suffix);
	return number_in_file(path, name);
}

long long base_number(int cpu, clockid_t clock, const char *name)
{
	return kind_number(cpu, clock, "", name);
}

long long deadline_base_number(int cpu, clockid_t clock, const char *name)
{
	return kind_number(cpu, clock, "-deadlines", name);
}

_Atomic __u64 *map_deadlines(int fd, size_t nr)
{
	void *words = mmap(NULL, nr * sizeof(__u64), PROT_READ | PROT_WRITE, MAP_SHARED,
			   fd, 0);

	ASSERT(words != MAP_FAILED);
	return words;
}

struct twheel_config deadlines_config(clockid_t clock, __u32 nr)
{
	struct twheel_config config = default_config();

	config.clockid = clock;
	config.nr_deadlines = nr;
	return config;
}

int open_deadlines_on(clockid_t clock, __u32 nr, _Atomic __u64 **words)
{
	struct twheel_config config = deadlines_config(clock, nr);
	int fd = device_open_configured(O_RDWR | O_NONBLOCK | O_CLOEXEC, &config);

	*words = map_deadlines(fd, nr);
	return fd;
}

int open_deadlines(__u32 nr, _Atomic __u64 **words)
{
	return open_deadlines_on(CLOCK_MONOTONIC, nr, words);
}

struct twheel_cmd make_deadline_add(__u64 index, __u64 data)
{
	struct twheel_cmd cmd = make_add(TWHEEL_DEADLINE, 0, data);

	cmd.key = index;
	return cmd;
}

struct twheel_cmd make_deadline_modify(__u64 id, __u64 index)
{
	struct twheel_cmd cmd = make_modify(id, TWHEEL_DEADLINE, 0);

	cmd.key = index;
	return cmd;
}

__u64 add_deadline(int fd, __u64 index, __u64 data)
{
	return add_by(fd, make_deadline_add(index, data));
}

int modify_deadline(int fd, __u64 id, __u64 index)
{
	struct twheel_cmd cmd = make_deadline_modify(id, index);

	return run(fd, &cmd);
}

long long count_postponed(int fd)
{
	return fdinfo_number(fd, "postponed");
}

void wait_postponed_after(int fd, long long nr)
{
	while (count_postponed(fd) <= nr)
		poll(NULL, 0, 1);
}

bool wait_event_postponed_after(int fd, __u64 id, long long nr)
{
	while (count_postponed(fd) <= nr) {
		if (query(fd, id, NULL) != TWHEEL_ARMED)
			return false;
		poll(NULL, 0, 1);
	}
	return true;
}

__u64 next_attempt_ns(__u64 lead_ns)
{
	if (lead_ns > 60 * NSEC_PER_SEC)
		test_fail(__FILE__, __LINE__, "each attempt came too late");
	return 2 * lead_ns;
}

__u64 add_postponed(int fd, _Atomic __u64 *words, __u64 index, __u64 later_ns,
		    __u64 data)
{
	clockid_t clock = get_counters(fd).clockid;
	long long before = count_postponed(fd);

	for_each_attempt(lead_ns, SOON_NS) {
		__u64 id;

		words[index] = clock_ns(clock) + lead_ns;
		id = add_deadline(fd, index, data);
		words[index] = later_ns;
		if (wait_event_postponed_after(fd, id, before))
			return id;
		ASSERT_EQ(cancel(fd, id), 0);
	}
}
