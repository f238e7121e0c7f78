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

static void ask_for_backup(unsigned int who, const char *name)
{
	struct command command = { .op = OP_BACKUP };

	strcpy(command.tube, name);
	ASSERT(!client_begin(who, &command, NULL));
}

/* It has not ended for the queue before a later turn. */
static void begin_backup(void)
{
	while (!queue->backup_runs)
		turn();
}

TEST(session_that_leaves_takes_no_answer_from_the_one_that_waits)
{
	open_queue();
	ask_for_backup(0, "one");
	begin_backup();
	client_leave(1);
	while (queue->backup_runs)
		turn();
	ASSERT_SAID(clients[0].line, "BACKUP");
	queue_remove();
}

TEST(session_that_left_gets_no_answer_and_the_next_one_gets_its_own)
{
	open_queue();
	ask_for_backup(0, "one");
	begin_backup();
	ask_for_backup(1, "two");
	client_leave(0);
	while (!clients[1].replies)
		turn();
	ASSERT_SAID(clients[1].line, "BACKUP");
	ASSERT_EQ(clients[0].replies, 0);
	queue_remove();
}
