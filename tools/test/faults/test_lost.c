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

/* ADDs take turns with commands about an event that each of them gets. */
static struct twheel_cmd make_turn(struct lost *lost, struct ledger *ledger, unsigned int i)
{
	struct twheel_cmd cmd = make_add(0, FAR_NS, i);
	__u64 last_add;

	if (i % 2 == 0)
		return make_add(0, i % 4 ? FAR_NS : 0, i);
	ASSERT_EQ(run(lost->fd, &cmd), 0);
	ledger_command(ledger, &cmd, &last_add);
	return i % 4 == 1 ? make_cmd(TWHEEL_OP_CANCEL, cmd.id) : make_complete(cmd.id, 1);
}

/* Submit; when the kernel waits for the page that is missing, take @size bytes away. */
static void submit_and_lose(struct lost *lost, struct missing_page *page, void *taken, size_t size,
			    const struct twheel_cmd *last, size_t nr_last)
{
	pthread_t thread = start_thread(submit_lost, lost);

	missing_page_wait(page);
	make_read_only(taken, size);
	missing_page_resolve(page, last, nr_last * sizeof(*last));
	join_thread(thread);
	close(page->userfault);
}

static void end_lost(struct lost *lost, struct ledger *ledger)
{
	ledger_check(ledger, lost->fd);
	ledger_close(ledger, lost->fd);
	close(lost->fd);
}

/*
 * Longer commands, of a page each, are all read before it is tried whether their results can be
 * written. From @first on they cannot.
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
	__u64 last_add = 0;
	unsigned int i;

	test_about("from %u", first);
	for (i = 0; i < NR - 1; i++)
		put_command(&lost, i, make_turn(&lost, &ledger, i));
	page = missing_page_at(lost.cmds + (NR - 1) * PAGE_BYTES);
	submit_and_lose(&lost, &page, lost.cmds + first * PAGE_BYTES,
			(NR - 1 - first) * PAGE_BYTES, &last, 1);

	ASSERT_EQ(lost.ret, first ? (long)first : -EFAULT);
	for (i = 0; i < first; i++)
		ledger_command(&ledger, command(&lost, i), &last_add);
	end_lost(&lost, &ledger);
	munmap(lost.cmds, NR * PAGE_BYTES);
}

TEST(results_that_cannot_be_written_are_of_commands_that_are_not_run)
{
	unsigned int first;

	for (first = 0; first < NR - 1; first++)
		lose_from(first);
	printf("# results_foreseen: %u points\n", first);
}

/*
 * Commands as long as ours, @there of them before the page that is missing, have passed the trial
 * by then. They are run; and of these, the caller does not know of the ADDs, which are undone.
 */
static void lose_before(unsigned int there)
{
	const size_t size = sizeof(struct twheel_cmd);
	struct lost lost = { .fd = device_open_nonblock(), .stride = size, .nr = there + 2 };
	char *pages = map_pages(2 * PAGE_BYTES);
	struct twheel_cmd last[] = { make_add(0, 0, 1000), make_add(0, FAR_NS, 1001) };
	struct missing_page page = missing_page_at(pages + PAGE_BYTES);
	struct ledger ledger = { 0 };
	__u64 last_add = 0;
	unsigned int i;

	test_about("%u before", there);
	lost.cmds = pages + PAGE_BYTES - there * size;
	for (i = 0; i < there; i++)
		put_command(&lost, i, make_turn(&lost, &ledger, i));
	submit_and_lose(&lost, &page, pages, PAGE_BYTES, last, 2);

	ASSERT_EQ(lost.ret, -EFAULT);
	for (i = 0; i < there; i++) {
		struct twheel_cmd cmd = *command(&lost, i);

		ASSERT_EQ(cmd.result, FILL_RESULT);
		cmd.result = 0;
		if (cmd.op != TWHEEL_OP_ADD)
			ledger_command(&ledger, &cmd, &last_add);
	}
	end_lost(&lost, &ledger);
	munmap(pages, 2 * PAGE_BYTES);
}

TEST(results_that_are_lost_undo_the_adds)
{
	unsigned int there;

	for (there = 1; there < 46; there += 4)
		lose_before(there);
	printf("# results_lost: %u points\n", there / 4);
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
