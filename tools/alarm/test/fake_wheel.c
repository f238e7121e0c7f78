// SPDX-License-Identifier: GPL-2.0
/*
 * A fake of libtwheel's wheel.c and records.c, with a device in the test's own process: a
 * program that is linked with it runs the backend on the device without the module.
 *
 * The environment says what it refuses:
 *
 *	FAKE_WHEEL_ROOM		how many events a wheel has room for; others get -ENOSPC
 *	FAKE_WHEEL_FAULT	one in so many MODIFY commands gets -ENOMEM, and as often
 *				there is no memory for a command
 *
 * Events are in a tree by due tick and then by the order of arming. A timerfd is set to the
 * first one, and readable when that is due.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <bsd/sys/tree.h>

#include "common/time.h"
#include "lib/private.h"
#include "test/device/harness.h"

#define TICK_SHIFT	16

struct fake_event {
	RB_ENTRY(fake_event) node;
	uint64_t id;
	uint64_t tick;
	uint64_t serial;
	uint64_t due_ns;
	uint64_t data;
};

RB_HEAD(fake_tree, fake_event);

/**
 * struct fake_wheel - a wheel
 * @wheel: the library's part, with the timerfd; first.
 * @tree: the events.
 * @nr: how many there are.
 * @room: how many there can be.
 * @by_id: the event of each id; the ids of ended ones have NULL.
 * @nr_ids: how many ids were given.
 * @serial: how often an event was armed.
 */
struct fake_wheel {
	struct twheel wheel;
	struct fake_tree tree;
	size_t nr;
	size_t room;
	struct fake_event **by_id;
	size_t nr_ids;
	uint64_t serial;
};

static int compare(const struct fake_event *a, const struct fake_event *b)
{
	if (a->tick != b->tick)
		return a->tick < b->tick ? -1 : 1;
	return a->serial < b->serial ? -1 : a->serial > b->serial;
}

RB_PROTOTYPE(fake_tree, fake_event, node, compare)
RB_GENERATE(fake_tree, fake_event, node, compare)

static struct fake_wheel *fake_of(const struct twheel *wheel)
{
	return (struct fake_wheel *)wheel;
}

static unsigned long setting(const char *name, unsigned long otherwise)
{
	const char *value = getenv(name);

	return value ? strtoul(value, NULL, 10) : otherwise;
}

static bool comes_a_fault(void)
{
	static unsigned long calls, one_in;

	if (!one_in)
		one_in = setting("FAKE_WHEEL_FAULT", UINT32_MAX);
	return ++calls % one_in == 0;
}

/* libtwheel's batches get their memory from here. */
void *reallocarray(void *array, size_t nr, size_t size)
{
	return comes_a_fault() ? NULL : realloc(array, nr * size);
}

/* --- events ----------------------------------------------------------------------------- */

static uint64_t now_tick(const struct fake_wheel *fake)
{
	return time_now_ns(fake->wheel.clock) >> TICK_SHIFT;
}

static struct fake_event *event_of(const struct fake_wheel *fake, uint64_t id)
{
	return id && id <= fake->nr_ids ? fake->by_id[id - 1] : NULL;
}

static void place(struct fake_wheel *fake, struct fake_event *event, uint64_t due_ns)
{
	event->due_ns = due_ns;
	event->tick = (due_ns >> TICK_SHIFT) + !!(due_ns & ((1 << TICK_SHIFT) - 1));
	event->serial = fake->serial++;
	RB_INSERT(fake_tree, &fake->tree, event);
}

static int add(struct fake_wheel *fake, struct twheel_cmd *cmd)
{
	struct fake_event *event;

	if (fake->nr == fake->room)
		return -ENOSPC;
	event = calloc(1, sizeof(*event));
	if (!(fake->nr_ids & (fake->nr_ids - 1)))
		fake->by_id = realloc(fake->by_id, (2 * fake->nr_ids + 1) * sizeof(event));
	ASSERT(event && fake->by_id);
	fake->by_id[fake->nr_ids++] = event;
	event->id = fake->nr_ids;
	event->data = cmd->data;
	place(fake, event, cmd->time_ns);
	fake->nr++;
	cmd->id = event->id;
	return 0;
}

static int modify(struct fake_wheel *fake, const struct twheel_cmd *cmd)
{
	struct fake_event *event = event_of(fake, cmd->id);

	if (!event)
		return -ENOENT;
	if (comes_a_fault())
		return -ENOMEM;
	RB_REMOVE(fake_tree, &fake->tree, event);
	event->data = cmd->data;
	place(fake, event, cmd->time_ns);
	return 0;
}

static void end(struct fake_wheel *fake, struct fake_event *event)
{
	RB_REMOVE(fake_tree, &fake->tree, event);
	fake->by_id[event->id - 1] = NULL;
	fake->nr--;
	free(event);
}

static int cancel(struct fake_wheel *fake, const struct twheel_cmd *cmd)
{
	struct fake_event *event = event_of(fake, cmd->id);

	if (!event)
		return -ENOENT;
	end(fake, event);
	return 0;
}

static int run(struct fake_wheel *fake, struct twheel_cmd *cmd)
{
	switch (cmd->op) {
	case TWHEEL_OP_ADD:
		ASSERT_EQ(cmd->flags, TWHEEL_ABS);
		return add(fake, cmd);
	case TWHEEL_OP_MODIFY:
		ASSERT_EQ(cmd->flags, TWHEEL_ABS | TWHEEL_SET_DATA);
		return modify(fake, cmd);
	case TWHEEL_OP_CANCEL:
		return cancel(fake, cmd);
	case TWHEEL_OP_QUERY:
		ASSERT_EQ(cmd->id, 0);
		return -ENOENT;
	default:
		return -EINVAL;
	}
}

static void set_timer(struct fake_wheel *fake)
{
	struct fake_event *first = RB_MIN(fake_tree, &fake->tree);
	struct itimerspec time = { 0 };

	if (first && first->tick <= (uint64_t)INT64_MAX >> TICK_SHIFT)
		time.it_value = time_spec((first->tick << TICK_SHIFT) | 1);
	timerfd_settime(fake->wheel.fd, TFD_TIMER_ABSTIME, &time, NULL);
}

/* --- the library's functions ------------------------------------------------------------ */

int twheel__ioctl(const struct twheel *wheel, unsigned long request, void *argument)
{
	const struct twheel_submit *submit = argument;
	struct fake_wheel *fake = fake_of(wheel);
	struct twheel_cmd *cmds;
	uint32_t i;

	ASSERT_EQ(request, TWHEEL_IOC_SUBMIT);
	cmds = (struct twheel_cmd *)(uintptr_t)submit->cmds;
	for (i = 0; i < submit->nr; i++)
		cmds[i].result = run(fake, &cmds[i]);
	set_timer(fake);
	return submit->nr;
}

int twheel_open(struct twheel **wheel, const struct twheel_config *config)
{
	struct fake_wheel *fake = calloc(1, sizeof(*fake));

	*wheel = NULL;
	ASSERT(fake);
	RB_INIT(&fake->tree);
	fake->room = setting("FAKE_WHEEL_ROOM", SIZE_MAX);
	fake->wheel.clock = config->clockid;
	fake->wheel.fd = timerfd_create(config->clockid, TFD_CLOEXEC | TFD_NONBLOCK);
	if (fake->wheel.fd < 0) {
		free(fake);
		return -errno;
	}
	*wheel = &fake->wheel;
	return 0;
}

void twheel_close(struct twheel *wheel)
{
	struct fake_wheel *fake = fake_of(wheel);

	if (!fake)
		return;
	while (!RB_EMPTY(&fake->tree))
		end(fake, RB_MIN(fake_tree, &fake->tree));
	close(wheel->fd);
	free(fake->by_id);
	free(fake);
}

int twheel_fd(const struct twheel *wheel)
{
	return wheel->fd;
}

int twheel_records_init(struct twheel_records *records, unsigned int room)
{
	records->records = calloc(room, sizeof(*records->records));
	records->room = room;
	return records->records ? 0 : -ENOMEM;
}

void twheel_records_destroy(struct twheel_records *records)
{
	free(records->records);
}

int twheel_read(struct twheel *wheel, struct twheel_records *records)
{
	struct fake_wheel *fake = fake_of(wheel);
	struct fake_event *first;

	for (records->nr = 0; records->nr < records->room; records->nr++) {
		first = RB_MIN(fake_tree, &fake->tree);
		if (!first || first->tick > now_tick(fake))
			break;
		records->records[records->nr] = (struct twheel_record){
			.data = first->data, .id = first->id, .due_ns = first->due_ns,
		};
		end(fake, first);
	}
	set_timer(fake);
	return records->nr;
}
