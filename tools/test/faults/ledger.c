// SPDX-License-Identifier: GPL-2.0
/* What a context must have, by what was returned. */
#include <errno.h>
#include <string.h>

#include "ledger.h"

static struct ledger_event *ledger_find(struct ledger *ledger, __u64 id)
{
	size_t i;

	for (i = 0; i < ledger->nr; i++) {
		if (ledger->events[i].id == id)
			return &ledger->events[i];
	}
	return NULL;
}

static void ledger_remove(struct ledger *ledger, struct ledger_event *event)
{
	*event = ledger->events[--ledger->nr];
}

static void note_add(struct ledger *ledger, const struct twheel_cmd *cmd)
{
	if (cmd->result) {
		ASSERT_EQ(cmd->id, 0);
		return;
	}
	ASSERT_NE(cmd->id, 0);
	ASSERT(!ledger_find(ledger, cmd->id));
	ASSERT_LT(ledger->nr, LEDGER_MAX);
	ledger->events[ledger->nr++] = (struct ledger_event){
		.id = cmd->id,
		.data = cmd->data,
		.state = cmd->time_ns || cmd->flags & TWHEEL_DEADLINE ?
			 TWHEEL_ARMED : TWHEEL_READY,
		.periodic = cmd->interval_ns,
	};
	ledger->added++;
}

static void note_watch(struct ledger_event *event, const struct twheel_cmd *cmd)
{
	ASSERT_LT(event->watches, ARRAY_SIZE(event->keys));
	event->keys[event->watches++] = cmd->key;
}

static void note_complete(struct ledger *ledger, struct ledger_event *event)
{
	event->state = TWHEEL_READY;
	event->reason = TWHEEL_COMPLETED;
	event->watches = 0;
	ledger->completed++;
}

static bool is_watching(const struct ledger_event *event, __u64 key)
{
	__u32 i;

	for (i = 0; i < event->watches; i++) {
		if (event->keys[i] == key)
			return true;
	}
	return false;
}

/* Each watch waits for what any signal has, and the quorum is 1. */
static void note_signal(struct ledger *ledger, const struct twheel_cmd *cmd)
{
	int ended = 0;
	size_t i;

	for (i = ledger->nr; i-- > 0;) {
		struct ledger_event *event = &ledger->events[i];

		if (!is_watching(event, cmd->key))
			continue;
		ended++;
		if (cmd->flags & TWHEEL_QUIET) {
			ledger_remove(ledger, event);
			ledger->cancelled++;
		} else {
			note_complete(ledger, event);
		}
	}
	ASSERT_EQ(cmd->result, ended);
}

void ledger_command(struct ledger *ledger, const struct twheel_cmd *cmd, __u64 *last_add)
{
	struct ledger_event *event;

	if (cmd->op == TWHEEL_OP_SIGNAL) {
		note_signal(ledger, cmd);
		return;
	}
	if (cmd->op == TWHEEL_OP_ADD) {
		note_add(ledger, cmd);
		*last_add = cmd->id;
		return;
	}
	event = ledger_find(ledger, cmd->id ? cmd->id : *last_add);
	if (!event)
		ASSERT_EQ(cmd->result, -ENOENT);
	else if (cmd->op == TWHEEL_OP_QUERY)
		ASSERT_EQ(cmd->result, event->state);
	else if (cmd->result == -ENOMEM)
		ASSERT(cmd->op == TWHEEL_OP_WATCH || cmd->op == TWHEEL_OP_COMPLETE);
	else
		ASSERT_EQ(cmd->result, 0);
	if (!event || cmd->result)
		return;
	if (cmd->op == TWHEEL_OP_WATCH) {
		note_watch(event, cmd);
	} else if (cmd->op == TWHEEL_OP_COMPLETE) {
		note_complete(ledger, event);
	} else if (cmd->op == TWHEEL_OP_MODIFY) {
		event->state = cmd->time_ns ? TWHEEL_ARMED : TWHEEL_READY;
	} else if (cmd->op == TWHEEL_OP_CANCEL) {
		ledger_remove(ledger, event);
		ledger->cancelled++;
	}
}

void ledger_record(struct ledger *ledger, const struct twheel_record *record)
{
	struct ledger_event *event = ledger_find(ledger, record->id);

	ASSERT(event);
	ASSERT_EQ(event->state, TWHEEL_READY);
	ASSERT_EQ(record->data, event->data);
	ASSERT_EQ(record->reason, event->reason);
	ASSERT_EQ(record->count > 1 && !event->periodic, 0);
	ledger->records++;
	if (event->periodic && event->reason == TWHEEL_EXPIRED) {
		event->state = TWHEEL_ARMED;
		return;
	}
	ledger_remove(ledger, event);
	ledger->finished++;
}

const struct ledger_event *ledger_next(const struct ledger *ledger)
{
	const struct ledger_event *next = NULL;
	size_t i;

	for (i = 0; i < ledger->nr; i++) {
		const struct ledger_event *event = &ledger->events[i];

		if (event->state == TWHEEL_READY && (!next || event->data < next->data))
			next = event;
	}
	return next;
}

static size_t count_ready(const struct ledger *ledger)
{
	size_t i, ready = 0;

	for (i = 0; i < ledger->nr; i++)
		ready += ledger->events[i].state == TWHEEL_READY;
	return ready;
}

static void check_numbers(const struct ledger *ledger, int fd)
{
	struct counters counters = get_counters(fd);
	size_t ready = count_ready(ledger);

	check_sum(&counters);
	ASSERT_EQ(counters.added, ledger->added);
	ASSERT_EQ(counters.ready, ready);
	ASSERT_EQ(counters.armed, ledger->nr - ready);
	ASSERT_EQ(counters.finished, ledger->finished);
	ASSERT_EQ(counters.cancelled, ledger->cancelled);
	ASSERT_EQ(counters.completed, ledger->completed);
	ASSERT_EQ(counters.records, ledger->records);
}

void ledger_check(const struct ledger *ledger, int fd)
{
	static struct twheel_entry entries[LEDGER_MAX];
	struct twheel_list list = make_list(entries, ARRAY_SIZE(entries));
	bool seen[LEDGER_MAX] = { false };
	const struct ledger_event *event;
	long nr, i;

	check_numbers(ledger, fd);
	nr = device_ioctl(fd, TWHEEL_IOC_LIST, &list);
	ASSERT_EQ(nr, ledger->nr);
	for (i = 0; i < nr; i++) {
		event = ledger_find((struct ledger *)ledger, entries[i].id);
		ASSERT(event);
		ASSERT(!seen[event - ledger->events]);
		seen[event - ledger->events] = true;
		ASSERT_EQ(entries[i].data, event->data);
		ASSERT_EQ(entries[i].state, event->state);
		ASSERT_EQ(entries[i].reason, event->reason);
		ASSERT_EQ(entries[i].watches, event->watches);
	}
}

/* An event that comes by the clock, behind all that are READY. */
static void add_soon(struct ledger *ledger, int fd)
{
	struct twheel_cmd cmd = make_add(0, NSEC_PER_MSEC, ~0ULL);
	__u64 last_add;

	ASSERT_EQ(run(fd, &cmd), 0);
	ledger_command(ledger, &cmd, &last_add);
	ledger->events[ledger->nr - 1].state = TWHEEL_READY;
	wait_ready(fd, count_ready(ledger));
}

static void read_all(struct ledger *ledger, int fd)
{
	static struct twheel_record records[LEDGER_MAX];
	long nr = read_records(fd, records, LEDGER_MAX), i;

	ASSERT_EQ(nr, count_ready(ledger));
	for (i = 0; i < nr; i++) {
		ASSERT_EQ(records[i].data, ledger_next(ledger)->data);
		ledger_record(ledger, &records[i]);
	}
	ASSERT_EQ(read_records(fd, records, 1), -EAGAIN);
}

static void cancel_all(struct ledger *ledger, int fd)
{
	static struct twheel_cmd cmds[LEDGER_MAX];
	size_t nr = ledger->nr, i;
	__u64 last_add;

	for (i = 0; i < nr; i++)
		cmds[i] = make_cmd(TWHEEL_OP_CANCEL, ledger->events[i].id);
	ASSERT_EQ(submit(fd, cmds, nr), nr);
	for (i = 0; i < nr; i++) {
		ASSERT_EQ(cmds[i].result, 0);
		ledger_command(ledger, &cmds[i], &last_add);
	}
	ASSERT_EQ(ledger->nr, 0);
}

void ledger_close(struct ledger *ledger, int fd)
{
	add_soon(ledger, fd);
	read_all(ledger, fd);
	cancel_all(ledger, fd);
	check_numbers(ledger, fd);
}
