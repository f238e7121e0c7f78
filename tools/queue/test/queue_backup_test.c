// SPDX-License-Identifier: GPL-2.0
/* Sessions that wait for a backup, beside others that leave. */
#include <string.h>

#include "common/log.h"
#include "queue/jobs/state.h"
#include "queue/test/queue_lib.h"

static void open_queue(void)
{
	struct queue_config config = queue_test_config(100);

	log_set_level(LOG_CRIT);
	queue_open(&config);
}

/* The backup runs after this, and has not ended for the queue. */
static void begin_backup(unsigned int who, const char *name)
{
	struct command command = { .op = OP_BACKUP };

	strcpy(command.tube, name);
	ASSERT(!client_begin(who, &command, NULL));
	while (!queue->backup_runs)
		turn();
}

static void end_backup(void)
{
	while (queue->backup_runs)
		turn();
}

TEST(session_that_leaves_takes_no_answer_from_the_one_that_waits)
{
	open_queue();
	begin_backup(0, "one");
	client_leave(1);
	end_backup();
	ASSERT_SAID(clients[0].line, "BACKUP");
	queue_remove();
}

TEST(session_that_left_gets_no_answer_and_the_next_one_gets_its_own)
{
	struct command two = { .op = OP_BACKUP, .tube = "two" };

	open_queue();
	begin_backup(0, "one");
	ASSERT(!client_begin(1, &two, NULL));
	client_leave(0);
	while (!clients[1].replies)
		turn();
	ASSERT_SAID(clients[1].line, "BACKUP");
	ASSERT_EQ(clients[0].replies, 0);
	queue_remove();
}
