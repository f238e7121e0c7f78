// SPDX-License-Identifier: GPL-2.0
/* A dump that is loaded gives the same jobs; a wrong line is named, and nothing is loaded. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/time.h"
#include "common/util.h"
#include "queue/cli/dump.h"
#include "queue/cli/load.h"
#include "queue/integrity/check.h"
#include "queue/integrity/open.h"
#include "queue/store/batch.h"
#include "queue/store/read.h"
#include "queue/store/schedule.h"
#include "queue/test/model_lib.h"

static struct store_config config_of(const char *name)
{
	static char paths[4][80];
	static int next;
	char *path = paths[next++ % 4];

	mkdir(test_dir(), 0700);
	snprintf(path, sizeof(paths[0]), "%s/%s", test_dir(), name);
	return test_config(path);
}

static char *dump(const struct store_config *config)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	struct store *store;

	ASSERT_EQ(store_open_unscanned(&store, config), 0);
	ASSERT_EQ(store_dump(store, out), 0);
	store_close(store);
	fclose(out);
	return text;
}

static int load(const struct store_config *config, const char *text)
{
	FILE *in = fmemopen((void *)text, strlen(text), "r");
	int ret;

	*log_text = 0;
	ret = store_load(config, in);
	if (ret)
		test_about("%s", log_text);
	fclose(in);
	return ret;
}

/* Ids above those of the jobs that were loaded may have been given. */
static void see_next_id(const struct store_config *config)
{
	struct store *store;

	ASSERT_EQ(store_open(&store, config), 0);
	ASSERT_GE(store_next_id(store), 1ull << 40);
	store_close(store);
}

TEST(what_is_loaded_is_what_was_dumped)
{
	struct store_config first = config_of("first"), second = config_of("second");
	struct model *model = malloc(sizeof(*model));
	struct store *store;
	char *text, *again;
	int n;

	model_init(model, 5);
	ASSERT_EQ(store_open(&store, &first), 0);
	for (n = 0; n < 100; n++)
		model_step(model, store);
	store_close(store);
	text = dump(&first);
	ASSERT_EQ(load(&second, text), 0);
	again = dump(&second);
	ASSERT(!strcmp(text, again));
	ASSERT_EQ(store_check(&second, stdout), 0);
	see_next_id(&second);
	free(text);
	free(again);
	free(model);
}

TEST(bytes_that_are_no_text_are_dumped_and_loaded)
{
	struct store_config first = config_of("first"), second = config_of("second");
	struct job_record job = make_job(1, JOB_READY, 1, 0, 0), seen;
	struct store *store;
	const void *body;
	char bytes[256], *text;
	size_t len, i;

	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)i;
	ASSERT_EQ(store_open(&store, &first), 0);
	put_tube(store, 1, "one");
	job.body_len = sizeof(bytes);
	job.reason_len = 3;
	memcpy(job.reason, "\377\376\0", 3);
	store_put(store, &job, bytes);
	for (i = 0; i < 5; i++) {
		job.place.id = i + 2;
		job.body_len = (uint32_t)i;
		store_put(store, &job, bytes + 250);
	}
	store_close(store);
	text = dump(&first);
	ASSERT(strstr(text, "\"body64\":\"AAEC"));
	ASSERT_EQ(load(&second, text), 0);
	free(text);
	ASSERT_EQ(store_open(&store, &second), 0);
	ASSERT_EQ(store_get_body(store, 1, &body, &len), 0);
	ASSERT(len == sizeof(bytes) && !memcmp(body, bytes, len));
	ASSERT_EQ(store_get(store, 1, &seen), 0);
	ASSERT(seen.reason_len == 3 && !memcmp(seen.reason, "\377\376\0", 3));
	for (i = 0; i < 5; i++) {
		ASSERT_EQ(store_get_body(store, i + 2, &body, &len), 0);
		ASSERT(len == i && !memcmp(body, bytes + 250, len));
	}
	store_close(store);
}

TEST(times_follow_the_clock_of_the_store_that_is_loaded)
{
	struct store_config first = config_of("first"), second = config_of("second");
	struct job_record job = make_job(1, JOB_DELAYED, 1, 0, 5000);
	struct store *store;
	char *text;

	ASSERT_EQ(store_open(&store, &first), 0);
	put_tube(store, 1, "one");
	put_job(store, &job);
	store_put_number(store, "skew", 1000);
	store_close(store);
	ASSERT_EQ(store_open(&store, &second), 0);
	store_put_number(store, "skew", (uint64_t)-300);
	store_close(store);
	text = dump(&first);
	ASSERT(strstr(text, "\"due_ns\":6000"));
	ASSERT_EQ(load(&second, text), 0);
	free(text);
	ASSERT_EQ(store_open(&store, &second), 0);
	ASSERT_EQ(store_get(store, 1, &job), 0);
	ASSERT_EQ(job.place.order, 6300);
	store_close(store);
}

#define GOOD "{\"id\":1,\"tube\":\"one\",\"state\":\"ready\",\"key\":\"k\",\"body\":\"b\"}\n"

#define JOB(fields)	"{\"id\":2,\"tube\":\"one\"," fields ",\"body\":\"b\"}"
#define READY(fields)	JOB("\"state\":\"ready\"," fields)

#define POLICY(attempts, base, factor, dead) \
	"{\"tube\":\"one\",\"policy\":{\"max_attempts\":" attempts ",\"base_ns\":" base \
	",\"factor\":" factor ",\"cap_ns\":1,\"jitter_percent\":0,\"dead\":" dead "}}"

#define SCHEDULE(name, id) \
	"{\"every\":\"" name "\",\"tube\":\"one\",\"id\":" id ",\"interval_ns\":1000000000," \
	"\"next_ns\":1,\"body\":\"\"}"

static const char *const wrong_lines[] = {
	"\n", "{", "[]", "{}", "null", "\"id\"", "\377",
	"{\"id\":1,\"tube\":\"one\",\"state\":\"ready\",\"body\":\"b\"}",
	"{\"id\":0,\"tube\":\"one\",\"state\":\"ready\",\"body\":\"b\"}",
	"{\"id\":\"2\",\"tube\":\"one\",\"state\":\"ready\",\"body\":\"b\"}",
	"{\"id\":2,\"id\":3,\"tube\":\"one\",\"state\":\"ready\",\"body\":\"b\"}",
	"{\"id\":2,\"tube\":\"\",\"state\":\"ready\",\"body\":\"b\"}",
	"{\"id\":2,\"tube\":1,\"state\":\"ready\",\"body\":\"b\"}",
	"{\"id\":2,\"state\":\"ready\",\"body\":\"b\"}",
	"{\"id\":2,\"tube\":\"one\",\"body\":\"b\"}",
	JOB("\"state\":\"reserved\""),
	JOB("\"state\":\"delayed\",\"due_ns\":1.5"),
	READY("\"pri\":-1"),
	READY("\"pri\":4294967296"),
	"{\"id\":2,\"tube\":\"one\",\"state\":\"ready\",\"body\":7}",
	"{\"id\":2,\"tube\":\"one\",\"state\":\"ready\",\"body64\":\"abc\"}",
	"{\"id\":2,\"tube\":\"one\",\"state\":\"ready\",\"body64\":\"ab.=\"}",
	READY("\"key64\":\"ab.=\""), READY("\"reason64\":\"ab.=\""),
	READY("\"key\":\"k\""),
	READY("\"key\":5"),
	"{\"tube\":\"one\",\"policy\":{}}", "{\"tube\":\"one\",\"policy\":5}",
	"{\"policy\":{\"max_attempts\":1}}",
	/* The queue keeps the kind of an alarm in the bits from 62 on. */
	"{\"id\":2305843009213693952,\"tube\":\"one\",\"state\":\"ready\",\"body\":\"b\"}",
	"{\"id\":-2,\"tube\":\"one\",\"state\":\"ready\",\"body\":\"b\"}",
	/* No client could give these names. */
	"{\"id\":2,\"tube\":\"a b\",\"state\":\"ready\",\"body\":\"b\"}",
	"{\"id\":2,\"tube\":\"-a\",\"state\":\"ready\",\"body\":\"b\"}",
	"{\"id\":2,\"tube\":\"a\\u0000\",\"state\":\"ready\",\"body\":\"b\"}",
	JOB("\"origin\":\"a\\n\",\"state\":\"ready\""),
	JOB("\"origin\":5,\"state\":\"ready\""),
	READY("\"key\":\"k k\""),
	/* Nor a job that has died and still has a key, which another one may have got. */
	READY("\"key\":\"j\",\"origin\":\"one\""), READY("\"key\":\"j\",\"died_ns\":1"),
	/* Nor one that is dead by half. */
	READY("\"origin\":\"one\""), READY("\"died_ns\":1"),
	POLICY("1", "1", "2", "\"a b\""), SCHEDULE("a b", "1"),
	/* Times and numbers. */
	JOB("\"state\":\"delayed\""),
	JOB("\"state\":\"wall\""),
	JOB("\"state\":\"wall\",\"due_ns\":-1"),
	JOB("\"state\":\"buried\",\"order\":-1"),
	READY("\"ttr_ns\":-1"), READY("\"ttr_ns\":4294967295000000001"),
	READY("\"body64\":\"YQ==\""),
	READY("\"created_ns\":\"now\""),
	POLICY("0", "1", "2", "\"\""), POLICY("1", "-1", "2", "\"\""),
	POLICY("1", "1", "0.5", "\"\""),
	POLICY("4294967297", "1", "2", "\"\""), POLICY("1", "4294967296000000000", "2", "\"\""),
	POLICY("1", "1", "\"2\"", "\"\""),
	SCHEDULE("a", "-1"), SCHEDULE("a", "2305843009213693952"),
	NULL
};

/* Lines, and what the message has. */
static const char *const named[][2] = {
	{ READY("\"prio\":1"), "a job has no field \"prio\"" },
	{ READY("\"pri\":4294967296"), "\"pri\" is not a whole number from 0 to 4294967295" },
	{ READY("\"ttr_ns\":4294967295000000001"), "\"ttr_ns\" is more than" },
	{ READY("\"\\u001b[31m\\n<0>p\":1"), "a job has no field \"\\u001B[31m\\n<0>p\"" },
	{ POLICY("1", "1", "2", "\"\",\"delay\":1"), "a policy has no field \"delay\"" },
	{ POLICY("0", "1", "2", "\"\""), "\"max_attempts\" of at least 1" },
	{ POLICY("1", "-1", "2", "\"\""), "\"base_ns\" is not" },
	{ "{\"tube\":\"one\",\"pri\":1,\"policy\":{}}", "has no field \"pri\"" },
	{ SCHEDULE("a", "1,\"delay_ns\":1"), "a schedule has no field \"delay_ns\"" },
	{ SCHEDULE("a", "1,\"pri\":-1"), "\"pri\" is not" },
};

static bool none(void *context, const struct job_place *place)
{
	(void)place;
	*(bool *)context = true;
	return false;
}

TEST(a_wrong_line_is_named_and_nothing_is_loaded)
{
	struct job_place any = { .state = JOB_READY, .tube = 1 };
	struct store_config config = config_of("store");
	bool found = false;
	struct store *store;
	char text[1000];
	size_t i;

	for (i = 0; wrong_lines[i]; i++) {
		test_about("%s", wrong_lines[i]);
		snprintf(text, sizeof(text), GOOD "%s\n", wrong_lines[i]);
		ASSERT_EQ(load(&config, text), -EINVAL);
		ASSERT(strstr(log_text, "line 2"));
	}
	ASSERT_EQ(store_open(&store, &config), 0);
	ASSERT_EQ(store_walk(store, &any, none, &found), 0);
	ASSERT(!found);
	ASSERT_EQ(store_next_id(store), 1);
	store_close(store);
}

TEST(a_message_names_the_field_that_is_wrong)
{
	struct store_config config = config_of("store");
	char text[1000];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(named); i++) {
		snprintf(text, sizeof(text), GOOD "%s\n", named[i][0]);
		ASSERT_EQ(load(&config, text), -EINVAL);
		test_about("%s: %s", named[i][0], log_text);
		ASSERT(strstr(log_text, "line 2"));
		ASSERT(strstr(log_text, named[i][1]));
	}
}

/* A file with a good line, behind which it cannot be read. */
static ssize_t read_good(void *at, char *buf, size_t size)
{
	size_t len = strlen(GOOD) - *(size_t *)at;

	if (!len) {
		errno = EIO;
		return -1;
	}
	len = len < size ? len : size;
	memcpy(buf, GOOD + *(size_t *)at, len);
	*(size_t *)at += len;
	return (ssize_t)len;
}

/* A file with a line that never ends. */
static ssize_t read_endless(void *at, char *buf, size_t size)
{
	memset(buf, 'a', size);
	*(size_t *)at += size;
	return (ssize_t)size;
}

static int seek(void *at, off64_t *offset, int whence)
{
	if (whence == SEEK_CUR)
		*offset += (off64_t)*(size_t *)at;
	*(size_t *)at = (size_t)*offset;
	return 0;
}

/* Read by @read; @seek is NULL for one that is not to be read twice, as a pipe. */
static int load_from(const struct store_config *config, cookie_read_function_t *read,
		     cookie_seek_function_t *seek)
{
	size_t at = 0;
	FILE *in = fopencookie(&at, "r", (cookie_io_functions_t){ .read = read, .seek = seek });
	int ret = store_load(config, in);

	fclose(in);
	return ret;
}

static void see_no_job(const struct store_config *config)
{
	struct job_record job;
	struct store *store;

	ASSERT_EQ(store_open(&store, config), 0);
	ASSERT_EQ(store_get(store, 1, &job), -ENOENT);
	store_close(store);
}

TEST(nothing_is_loaded_of_a_file_that_cannot_be_read_to_its_end)
{
	struct store_config config = config_of("store");

	ASSERT_EQ(load_from(&config, read_good, seek), -EIO);
	ASSERT_EQ(load_from(&config, read_good, NULL), -EIO);
	see_no_job(&config);
}

/* Else AddressSanitizer ends a process without memory. */
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

/* A hundred megabytes more than it has. */
static void limit_memory(void)
{
	struct rlimit limit;
	unsigned long pages;
	FILE *file = fopen("/proc/self/statm", "r");

	ASSERT_EQ(fscanf(file, "%lu", &pages), 1);
	fclose(file);
	limit.rlim_cur = pages * (rlim_t)sysconf(_SC_PAGESIZE) + (100 << 20);
	limit.rlim_max = limit.rlim_cur;
	ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
}

static ssize_t read_endless_in_little_memory(void *at, char *buf, size_t size)
{
	if (!*(size_t *)at)
		limit_memory();
	return read_endless(at, buf, size);
}

static void load_endless(void)
{
	struct store_config config = config_of("store");

	ASSERT_EQ(load_from(&config, read_endless_in_little_memory, seek), -ENOMEM);
}

TEST(a_line_for_which_there_is_no_memory_is_not_the_end)
{
	ASSERT_EQ(in_child(load_endless), 0);
}

#define LAST_ID(fields) \
	"{\"id\":2305843009213693951,\"tube\":\"one\"," fields ",\"body\":\"\"}\n"

/* What the caller has read of the file is not loaded. */
TEST(lines_are_loaded_from_where_the_file_is)
{
	static const char text[] = "a head\n" GOOD;
	struct store_config config = config_of("store");
	FILE *in = fmemopen((void *)text, strlen(text), "r");
	struct job_record job;
	struct store *store;
	char head[20];

	ASSERT(fgets(head, sizeof(head), in));
	ASSERT_EQ(store_load(&config, in), 0);
	fclose(in);
	ASSERT_EQ(store_open(&store, &config), 0);
	ASSERT_EQ(store_get(store, 1, &job), 0);
	store_close(store);
}

/* Lines that a program or a person has written, not twheelq. */
TEST(what_a_line_leaves_out_is_as_put_has_it)
{
	struct store_config config = config_of("store");
	struct schedule_record schedule;
	struct job_record job;
	struct store *store;
	uint64_t skew_ns = 1000000000000;

	ASSERT_EQ(store_open(&store, &config), 0);
	store_put_number(store, "skew", skew_ns);
	store_close(store);
	ASSERT_EQ(load(&config, GOOD POLICY("1", "1", "2.5", "\"d\"") "\n" SCHEDULE("a", "7") "\n"
		       LAST_ID("\"state\":\"delayed\",\"due_ns\":5,\"created_ns\":-5")), 0);
	ASSERT_EQ(store_open(&store, &config), 0);
	ASSERT_EQ(store_get(store, 1, &job), 0);
	ASSERT_EQ(job.ttr_ns, NSEC_PER_SEC);
	ASSERT_LE(job.created_ns, time_now_ns(CLOCK_REALTIME) - skew_ns);
	ASSERT_GT(job.created_ns, 0);
	ASSERT_EQ(store_get_schedule(store, 7, &schedule), 0);
	ASSERT_EQ(schedule.ttr_ns, NSEC_PER_SEC);
	/* Before the queue's clock began: due at once, not in 500 years. */
	ASSERT_EQ(store_get(store, 2305843009213693951, &job), 0);
	ASSERT_EQ(job.place.order, 0);
	ASSERT_EQ(job.created_ns, 0);
	ASSERT_GT(store_next_id(store), job.place.id);
	store_close(store);
	ASSERT_EQ(store_check(&config, stdout), 0);
}

#define SAME_KEY(tube) \
	"{\"id\":2,\"tube\":\"" tube "\",\"state\":\"ready\",\"key\":\"k\",\"body\":\"\"}"

TEST(an_id_and_a_key_that_the_store_has_are_not_loaded)
{
	struct store_config config = config_of("store");

	ASSERT_EQ(load(&config, GOOD), 0);
	ASSERT_EQ(load(&config, GOOD), -EINVAL);
	ASSERT(strstr(log_text, "line 1: the store has a job 1"));
	ASSERT_EQ(load(&config, SAME_KEY("one")), -EINVAL);
	ASSERT(strstr(log_text, "line 1: the store has job 1 with this key"));
	ASSERT_EQ(load(&config, SAME_KEY("two")), 0);
	ASSERT_EQ(store_check(&config, stdout), 0);
}
