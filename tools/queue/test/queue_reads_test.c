// SPDX-License-Identifier: GPL-2.0
/*
 * How often commands read the record of a job: once, wherever the job is; that none walks where
 * there is nothing to find; and that a queue does not start without what it has to read. The
 * linker has all calls of store_get() go through __wrap_store_get(), and so on.
 */
#include <errno.h>
#include <string.h>

#include "common/log.h"
#include "queue/test/queue_lib.h"

#define LONG	(100000 * NSEC_PER_SEC)

static unsigned int nr_reads;

int __wrap_store_get(struct store *store, uint64_t id, struct job_record *record);
int __real_store_get(struct store *store, uint64_t id, struct job_record *record);

int __wrap_store_get(struct store *store, uint64_t id, struct job_record *record)
{
	nr_reads++;
	return __real_store_get(store, id, record);
}

static unsigned int nr_walks;

int __real_store_walk_tube(struct store *store, const struct job_place *from,
			   bool (*each)(void *context, const struct job_place *place),
			   void *context);
int __wrap_store_walk_tube(struct store *store, const struct job_place *from,
			   bool (*each)(void *context, const struct job_place *place),
			   void *context);

int __wrap_store_walk_tube(struct store *store, const struct job_place *from,
			   bool (*each)(void *context, const struct job_place *place),
			   void *context)
{
	nr_walks++;
	return __real_store_walk_tube(store, from, each, context);
}

/* The name of a number that cannot be read now. */
static const char *unreadable = "";

int __real_store_get_number(struct store *store, const char *name, uint64_t missing,
			    uint64_t *number);
int __wrap_store_get_number(struct store *store, const char *name, uint64_t missing,
			    uint64_t *number);

int __wrap_store_get_number(struct store *store, const char *name, uint64_t missing,
			    uint64_t *number)
{
	if (!strcmp(name, unreadable))
		return -EIO;
	return __real_store_get_number(store, name, missing, number);
}

/* Put a job with a key; one that is due late is on disk only. */
static uint64_t put_keyed(bool in_memory)
{
	struct command command = {
		.op = OP_PUT_UNIQUE, .key = "key", .ttr_ns = LONG, .has_body = true,
		.body_len = 1, .delay_ns = in_memory ? 0 : 1000 * NSEC_PER_SEC,
	};
	uint64_t id = queue->next_id;

	ASSERT(!strncmp(client_run(0, &command, "x"), "INSERTED ", 9));
	ASSERT_EQ(!!job_resident(queue, id), in_memory);
	return id;
}

/* The command reads the record once; @reply is how its reply begins. */
static void reads_once(struct command command, const char *reply)
{
	const char *line;

	command.ttr_ns = LONG;
	command.has_body = command.op == OP_PUT_UNIQUE;
	command.body_len = command.has_body;
	nr_reads = 0;
	line = client_run(0, &command, command.has_body ? "y" : NULL);
	if (strncmp(line, reply, strlen(reply)))
		test_fail(__FILE__, __LINE__, "\"%s\", not \"%s\"", line, reply);
	ASSERT_EQ(nr_reads, 1);
}

static void open_queue(void)
{
	struct queue_config config = queue_test_config(100);

	log_set_level(LOG_CRIT);
	queue_open(&config);
}

static void commands_read_once(bool in_memory)
{
	struct command replace = { .op = OP_PUT_UNIQUE, .key = "key", .delay_ns = 2 * LONG };
	uint64_t id;

	open_queue();
	id = put_keyed(in_memory);
	reads_once((struct command){ .op = OP_STATS_JOB, .id = id }, "OK ");
	reads_once((struct command){ .op = OP_RESCHEDULE, .id = id, .delay_ns = LONG },
		   "RESCHEDULED");
	reads_once((struct command){ .op = OP_KICK_JOB, .id = id }, "KICKED");
	reads_once((struct command){ .op = OP_RESERVE_JOB, .id = id }, "RESERVED ");
	reads_once((struct command){ .op = OP_RELEASE, .id = id, .delay_ns = 2 * LONG },
		   "RELEASED");
	reads_once((struct command){ .op = OP_RESERVE_JOB, .id = id }, "RESERVED ");
	reads_once((struct command){ .op = OP_BURY, .id = id }, "BURIED");
	reads_once((struct command){ .op = OP_RESERVE_JOB, .id = id }, "RESERVED ");
	reads_once((struct command){ .op = OP_RELEASE, .id = id, .delay_ns = 2 * LONG },
		   "RELEASED");
	reads_once(replace, "REPLACED ");
	reads_once((struct command){ .op = OP_DELETE, .id = id }, "DELETED");
	queue_remove();
}

TEST(commands_about_a_keyed_job_in_memory_read_its_record_once)
{
	commands_read_once(true);
}

TEST(commands_about_a_keyed_job_on_disk_read_its_record_once)
{
	commands_read_once(false);
}

TEST(delete_of_a_job_in_memory_without_a_key_reads_no_record)
{
	uint64_t id;

	open_queue();
	id = client_put(0, 1, 0, LONG);
	nr_reads = 0;
	ASSERT_SAID(client_run_id(0, OP_DELETE, id), "DELETED");
	ASSERT_EQ(nr_reads, 0);
	queue_remove();
}

/* They stay in the index of delayed jobs: a walk would pass all of them. */
TEST(no_command_walks_an_index_whose_jobs_are_all_reserved)
{
	struct command command = { .op = OP_PEEK_DELAYED };
	uint64_t id, ids[10];

	open_queue();
	id = client_put(0, 1, 1000 * NSEC_PER_SEC, LONG);
	ASSERT_SAID(client_run_id(0, OP_RESERVE_JOB, id), "RESERVED 1 1");
	nr_walks = 0;
	ASSERT_SAID(client_run(0, &command, NULL), "NOT_FOUND");
	command = (struct command){ .op = OP_KICK, .count = 1 };
	ASSERT_SAID(client_run(0, &command, NULL), "KICKED 0");
	ASSERT_EQ(client_list(0, "default", LIST_DELAYED, 0, 10, ids), 0);
	ASSERT_EQ(nr_walks, 0);
	id = client_put(0, 1, 1000 * NSEC_PER_SEC, LONG);
	ASSERT_SAID(client_run(0, &command, NULL), "KICKED 1");
	ASSERT_GT(nr_walks, 0);
	queue_remove();
}

/* --- the start ---------------------------------------------------------------------------- */

/* Else two tubes have one number, or delays are too short. */
TEST(a_queue_that_cannot_read_its_numbers_does_not_start)
{
	static const char *const names[] = { "tube", "skew", "time", "doubt" };
	struct queue_config config = queue_test_config(100);
	struct queue *other;
	size_t i;

	open_queue();
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		test_about("%s", names[i]);
		unreadable = names[i];
		ASSERT_EQ(queue_create(&other, &config, store, alarms), -EIO);
	}
	unreadable = "";
	queue_reopen(&config, true);
	queue_remove();
}
