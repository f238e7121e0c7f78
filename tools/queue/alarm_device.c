// SPDX-License-Identifier: GPL-2.0
/*
 * Alarms on /dev/twheel, through libtwheel: a wheel for each clock, an event for each alarm.
 *
 * What is armed, moved and cancelled becomes a command in the batch of its wheel, which
 * alarms_flush() submits. An event's number is known only then: until that, an alarm knows
 * its command by its place in the batch, and takes it back when it is moved or cancelled.
 *
 *	alarm_add()   command 3 -> batch: | ADD | CANCEL | ADD |    event 0
 *	alarms_flush()                 results: event 17            event 17, command 0
 *	alarm_move()  command 1 -> batch: | MODIFY 17 |             event 17, command 1
 *	its time                       record of 17                 idle
 *
 * The data of an event is the alarm's address, which is safe because no record is ever
 * kept: alarms_take() first submits what waits, then reads records, and gives out all that
 * it has read. After a CANCEL was run there is no record of its event, also if one was
 * ready: so a record that is read is always of an alarm that is armed, for that time.
 *
 * An ADD that the device has no room for makes its alarm REFUSED: a list of these goes
 * through the alarms themselves, so that to refuse needs no memory, and an alarm that is
 * armed again or cancelled can leave it.
 *
 * The wheels are bound to one CPU, as the order of events that were armed by several is
 * not promised. The memory of the commands is this process's; the events count against
 * max_events of each wheel, and max_user_events of all that this user has open.
 */
#include <sched.h>
#include <stdlib.h>

#include "alarm_make.h"
#include "libtwheel.h"

/* A batch that has so many commands is submitted before there are more. */
#define BATCH_MAX	4096

/* How many records are read at a time. */
#define RECORDS		256

TAILQ_HEAD(refused_list, alarm);

/**
 * struct device_clock - the wheel of one clock
 * @wheel: the wheel.
 * @batch: what it has not been told yet.
 * @nr_armed: events that it has, as far as it was told.
 */
struct device_clock {
	struct twheel *wheel;
	struct twheel_batch batch;
	size_t nr_armed;
};

/**
 * struct device - the alarms
 * @alarms: what all makes have; first, so that one is the other.
 * @clocks: the wheels.
 * @records: room for records.
 * @refused: alarms that there was no room for.
 */
struct device {
	struct alarms alarms;
	struct device_clock clocks[ALARM_CLOCKS];
	struct twheel_records records;
	struct refused_list refused;
};

static struct device *device_of(struct alarms *alarms)
{
	return (struct device *)alarms;
}

/* --- commands and their results ------------------------------------------------------- */

/* The command does nothing any more: there is no event 0. */
static void take_back(struct device_clock *clock, struct alarm *alarm)
{
	twheel_prep_query(&clock->batch.cmds[alarm->device.command - 1], 0);
	alarm->device.command = 0;
}

static void leave_refused(struct device *device, struct alarm *alarm)
{
	TAILQ_REMOVE(&device->refused, alarm, refused);
	alarm->state = ALARM_IDLE;
}

/* The device had no room for an alarm, or none for its new time. */
static void refuse(struct device *device, struct device_clock *clock, struct alarm *alarm)
{
	if (alarm->device.event && !twheel_cancel(clock->wheel, alarm->device.event))
		clock->nr_armed--;
	alarm->state = ALARM_REFUSED;
	TAILQ_INSERT_TAIL(&device->refused, alarm, refused);
}

static void note_result(struct device *device, struct device_clock *clock,
			const struct twheel_cmd *cmd)
{
	struct alarm *alarm = (struct alarm *)(uintptr_t)cmd->data;

	if (cmd->op == TWHEEL_OP_CANCEL && !cmd->result)
		clock->nr_armed--;
	if (cmd->op != TWHEEL_OP_ADD && cmd->op != TWHEEL_OP_MODIFY)
		return;
	alarm->device.command = 0;
	if (cmd->result < 0) {
		refuse(device, clock, alarm);
		return;
	}
	if (cmd->op == TWHEEL_OP_ADD)
		clock->nr_armed++;
	alarm->device.event = cmd->id;
}

/* Run the commands of a batch. Those that could not be run count as refused. */
static void submit(struct device *device, struct device_clock *clock)
{
	struct twheel_batch *batch = &clock->batch;
	unsigned int i, done;
	int ret;

	if (!batch->nr)
		return;
	ret = twheel_submit(clock->wheel, batch);
	done = ret < 0 ? 0 : ret;
	for (i = 0; i < batch->nr; i++) {
		if (i >= done)
			batch->cmds[i].result = -EFAULT;
		note_result(device, clock, &batch->cmds[i]);
	}
	twheel_batch_clear(batch);
}

static void submit_all(struct device *device)
{
	unsigned int i;

	for (i = 0; i < ALARM_CLOCKS; i++)
		submit(device, &device->clocks[i]);
}

/* Room for a command; NULL for want of memory. Alarms may have been refused then. */
static struct twheel_cmd *next_command(struct device *device, struct device_clock *clock)
{
	if (clock->batch.nr >= BATCH_MAX)
		submit(device, clock);
	return twheel_batch_next(&clock->batch);
}

/* --- the operations ------------------------------------------------------------------- */

static int device_arm(struct alarms *alarms, struct alarm *alarm, uint64_t time_ns)
{
	struct device *device = device_of(alarms);
	struct device_clock *clock = &device->clocks[alarm->clock];
	struct twheel_cmd *cmd = next_command(device, clock);

	if (!cmd)
		return -ENOMEM;
	if (alarm->state == ALARM_REFUSED)
		leave_refused(device, alarm);
	if (alarm->state == ALARM_IDLE) {
		alarm->device.event = 0;
		alarm->device.command = 0;
	}
	/* A command of its own, at the end: so it is the youngest of its new tick. */
	if (alarm->device.command)
		take_back(clock, alarm);
	if (alarm->device.event) {
		twheel_prep_modify(cmd, alarm->device.event, time_ns, TWHEEL_ABS);
		twheel_cmd_set_data(cmd, (uintptr_t)alarm);
	} else {
		twheel_prep_add(cmd, time_ns, (uintptr_t)alarm, TWHEEL_ABS);
	}
	alarm->device.command = clock->batch.nr;
	alarm->state = ALARM_ARMED;
	return 0;
}

/* End an event: at the next submit, or now if there is no memory for a command. */
static void cancel_event(struct device *device, struct device_clock *clock, uint64_t event)
{
	struct twheel_cmd *cmd = next_command(device, clock);

	if (cmd)
		twheel_prep_cancel(cmd, event);
	else if (!twheel_cancel(clock->wheel, event))
		clock->nr_armed--;
}

static void device_cancel(struct alarms *alarms, struct alarm *alarm)
{
	struct device *device = device_of(alarms);
	struct device_clock *clock = &device->clocks[alarm->clock];

	if (alarm->state == ALARM_REFUSED) {
		leave_refused(device, alarm);
		return;
	}
	if (alarm->device.command)
		take_back(clock, alarm);
	if (alarm->device.event)
		cancel_event(device, clock, alarm->device.event);
	alarm->state = ALARM_IDLE;
}

static int device_flush(struct alarms *alarms)
{
	struct device *device = device_of(alarms);

	submit_all(device);
	return TAILQ_EMPTY(&device->refused) ? 0 : -ENOSPC;
}

static bool device_refused(struct alarms *alarms, uint64_t *id)
{
	struct device *device = device_of(alarms);
	struct alarm *alarm = TAILQ_FIRST(&device->refused);

	if (!alarm)
		return false;
	leave_refused(device, alarm);
	*id = alarm->id;
	return true;
}

/* Read records of a wheel, at most @nr, and give their alarms out; returns how many. */
static size_t take_some(struct device *device, struct device_clock *clock, uint64_t *ids,
			size_t nr)
{
	struct twheel_records records = device->records;
	const struct twheel_record *record;
	size_t taken = 0;

	if (records.room > nr)
		records.room = nr;
	if (twheel_read(clock->wheel, &records) <= 0)
		return 0;
	twheel_for_each_record(record, &records) {
		struct alarm *alarm = (struct alarm *)(uintptr_t)record->data;

		alarm->state = ALARM_IDLE;
		ids[taken++] = alarm->id;
	}
	clock->nr_armed -= taken;
	return taken;
}

static size_t take_of(struct device *device, struct device_clock *clock, uint64_t *ids,
		      size_t nr)
{
	size_t taken = 0, some;

	while (taken < nr && clock->nr_armed) {
		some = take_some(device, clock, ids + taken, nr - taken);
		taken += some;
		if (some < RECORDS)
			break;
	}
	return taken;
}

static size_t device_take(struct alarms *alarms, uint64_t *ids, size_t nr)
{
	struct device *device = device_of(alarms);
	size_t taken = 0;
	unsigned int i;

	/* So that there is no record of what was moved or cancelled. */
	submit_all(device);
	for (i = 0; i < ALARM_CLOCKS; i++)
		taken += take_of(device, &device->clocks[(alarms->turn + i) % ALARM_CLOCKS],
				 ids + taken, nr - taken);
	return taken;
}

/* --- beginning and end ------------------------------------------------------------------ */

static void device_close(struct alarms *alarms)
{
	struct device *device = device_of(alarms);
	unsigned int i;

	for (i = 0; i < ALARM_CLOCKS; i++) {
		twheel_batch_destroy(&device->clocks[i].batch);
		twheel_close(device->clocks[i].wheel);
	}
	twheel_records_destroy(&device->records);
	alarms_end(alarms);
	free(device);
}

/* Returns 0 or a negative errno; device_close() has to follow also then. */
static int open_wheel(struct device *device, enum alarm_clock id)
{
	struct twheel **wheel = &device->clocks[id].wheel;
	struct twheel_config config;
	int ret;

	twheel_config_init(&config);
	config.clockid = alarm_clock_ids[id];
	config.flags = TWHEEL_CONFIG_CPU;
	config.cpu = sched_getcpu();
	ret = twheel_open(wheel, &config);
	if (ret)
		return ret;
	return alarms_watch(&device->alarms, twheel_fd(*wheel));
}

static int device_open(struct alarms **alarms)
{
	struct device *device = calloc(1, sizeof(*device));
	enum alarm_clock i;
	int ret;

	*alarms = NULL;
	if (!device)
		return -ENOMEM;
	TAILQ_INIT(&device->refused);
	ret = alarms_init(&device->alarms, &alarm_device);
	if (!ret)
		ret = twheel_records_init(&device->records, RECORDS);
	for (i = 0; !ret && i < ALARM_CLOCKS; i++)
		ret = open_wheel(device, i);
	if (ret)
		device_close(&device->alarms);
	else
		*alarms = &device->alarms;
	return ret;
}

const struct alarm_ops alarm_device = {
	.make = ALARM_DEVICE,
	.name = "device",
	.open = device_open,
	.close = device_close,
	.arm = device_arm,
	.cancel = device_cancel,
	.flush = device_flush,
	.refused = device_refused,
	.take = device_take,
};
