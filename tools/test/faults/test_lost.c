// SPDX-License-Identifier: GPL-2.0
/*
 * Results that cannot be written any more, although this could be done before the commands were
 * run: while the kernel waits for a page of the caller, another thread takes others away.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "test/device/missing_page.h"
#include "test/device/util.h"

#include "scene.h"

/* Commands of a page each: the last one lies on a page that is missing at first. */
#define NR		8

struct lost {
	int fd;
	char *cmds;
	size_t stride;
	unsigned int nr;
	long ret;
};

static void *submit_lost(void *arg)
{
	struct lost *lost = arg;
	struct twheel_submit submit = {
		.size = sizeof(submit),
		.cmds = (uintptr_t)lost->cmds,
		.nr = lost->nr,
		.cmd_size = lost->stride,
	};

	lost->ret = device_ioctl(lost->fd, TWHEEL_IOC_SUBMIT, &submit);
	return NULL;
}

static void put_command(struct lost *lost, unsigned int i, struct twheel_cmd cmd)
{
	memcpy(lost->cmds + i * lost->stride, &cmd, sizeof(cmd));
}

static const struct twheel_cmd *command(const struct lost *lost, unsigned int i)
{
	return (const struct twheel_cmd *)(lost->cmds + i * lost->stride);
}

/*
 * ADDs and others take turns. The results of those from @first on are lost, except for that of
 * the last one.
 */
static void lose_from(unsigned int first)
{
	struct lost lost = {
		.fd = device_open_nonblock(),
		.cmds = map_pages(NR * PAGE_BYTES),
		.stride = PAGE_BYTES,
		.nr = NR,
	};
	struct twheel_cmd last = make_add(0, FAR_NS, NR - 1);
	struct ledger ledger = { 0 };
	struct missing_page page;
	__u64 id, last_add = 0;
	pthread_t thread;
	unsigned int i;

	test_about("from %u", first);
	for (i = 0; i < NR; i++) {
		struct twheel_cmd cmd = make_add(0, FAR_NS, 100 + i);

		ASSERT_EQ(run(lost.fd, &cmd), 0);
		ledger_command(&ledger, &cmd, &last_add);
		id = cmd.id;
		if (i % 2 == 0)
			cmd = make_add(0, i % 4 ? FAR_NS : 0, i);
		else if (i % 4 == 1)
			cmd = make_cmd(TWHEEL_OP_CANCEL, id);
		else
			cmd = make_complete(id, 1);
		if (i < NR - 1)
			put_command(&lost, i, cmd);
	}
	page = missing_page_at(lost.cmds + (NR - 1) * PAGE_BYTES);
	thread = start_thread(submit_lost, &lost);
	missing_page_wait(&page);
	make_read_only(lost.cmds + first * PAGE_BYTES, (NR - 1 - first) * PAGE_BYTES);
	missing_page_resolve(&page, &last, sizeof(last));
	join_thread(thread);
	close(page.userfault);

	ASSERT_EQ(lost.ret, first ? (long)first : -EFAULT);
	/* Each ADD that the caller does not know of was undone; the other commands were run. */
	for (i = 0; i < NR - 1; i++) {
		struct twheel_cmd cmd = *command(&lost, i);

		if (i >= first)
			cmd.result = 0;
		if (i < first || cmd.op != TWHEEL_OP_ADD)
			ledger_command(&ledger, &cmd, &last_add);
	}
	ledger_check(&ledger, lost.fd);
	ledger_close(&ledger, lost.fd);
	close(lost.fd);
	munmap(lost.cmds, NR * PAGE_BYTES);
}

TEST(results_that_are_lost_undo_the_adds)
{
	unsigned int first;

	for (first = 0; first < NR - 1; first++)
		lose_from(first);
	printf("# results_lost: %u points\n", NR - 1);
}

/* Commands as long as ours, of which @there lie before the missing page. */
static void lose_before(unsigned int there)
{
	const size_t size = sizeof(struct twheel_cmd);
	struct lost lost = { .fd = device_open_nonblock(), .stride = size, .nr = there + 2 };
	char *pages = map_pages(2 * PAGE_BYTES);
	struct twheel_cmd last[] = { make_add(0, 0, 1000), make_add(0, FAR_NS, 1001) };
	struct missing_page page = missing_page_at(pages + PAGE_BYTES);
	struct ledger ledger = { 0 };
	pthread_t thread;
	unsigned int i;

	test_about("%u before", there);
	lost.cmds = pages + PAGE_BYTES - there * size;
	for (i = 0; i < there; i++)
		put_command(&lost, i, make_add(0, i % 2 ? FAR_NS : 0, i));
	thread = start_thread(submit_lost, &lost);
	missing_page_wait(&page);
	make_read_only(pages, PAGE_BYTES);
	missing_page_resolve(&page, last, sizeof(last));
	join_thread(thread);
	close(page.userfault);

	ASSERT_EQ(lost.ret, -EFAULT);
	ledger_check(&ledger, lost.fd);
	ledger_close(&ledger, lost.fd);
	close(lost.fd);
	munmap(pages, 2 * PAGE_BYTES);
}

TEST(results_that_are_lost_undo_the_adds_of_a_chunk)
{
	unsigned int there;

	for (there = 1; there < 46; there += 4)
		lose_before(there);
	printf("# results_lost_of_a_chunk: %u points\n", (there - 1) / 4);
}

/* --- ENTER ------------------------------------------------------------------ */

struct waiting {
	int fd;
	struct twheel_enter *enter;
	pid_t tid;
	sem_t started;
	long ret;
};

static void *enter_waiting(void *arg)
{
	struct waiting *waiting = arg;

	waiting->tid = thread_id();
	sem_post(&waiting->started);
	waiting->ret = device_ioctl(waiting->fd, TWHEEL_IOC_ENTER, waiting->enter);
	return NULL;
}

/*
 * The memory for the numbers is taken away during the wait. The record has been copied to its
 * place, and is not read again.
 */
TEST(results_of_an_enter_that_are_lost_leave_the_record_in_its_place)
{
	struct waiting waiting = {
		.fd = device_open_nonblock(),
		.enter = map_pages(PAGE_BYTES),
	};
	struct twheel_record record;
	pthread_t thread;
	__u64 id;

	memset(&record, FILL, sizeof(record));
	*waiting.enter = make_enter(NULL, 0, &record, 1);
	waiting.enter->min_records = 1;
	waiting.enter->timeout_ns = ENTER_FOR_EVER;
	sem_init(&waiting.started, 0, 0);
	thread = start_thread(enter_waiting, &waiting);
	while (sem_wait(&waiting.started))
		;
	wait_asleep(waiting.tid);
	make_read_only(waiting.enter, PAGE_BYTES);
	id = add(waiting.fd, 0, 0, 7);
	join_thread(thread);

	ASSERT_EQ(waiting.ret, -EFAULT);
	check_record(&record);
	ASSERT_EQ(record.id, id);
	ASSERT_EQ(record.data, 7);
	check_nothing_ready(waiting.fd);
	ASSERT_EQ(get_counters(waiting.fd).finished, 1);
	printf("# results_lost_of_enter: 1 points\n");
}
