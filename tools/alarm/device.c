// SPDX-License-Identifier: GPL-2.0
/*
 * Alarms on /dev/twheel, through libtwheel: a wheel for each clock, an event for each alarm.
 *
 * What is armed, moved and cancelled becomes a command in the batch of its wheel, which
 * alarms_flush() submits. The number of an event is known only then: until that, an alarm
 * knows its command by the place in the batch, and takes it back when it is moved or
 * cancelled.
 *
 *	alarm_add()   command 3 -> batch: | ADD | CANCEL | ADD |    event 0
 *	alarms_flush()                 results: event 17            event 17, command 0
 *	alarm_move()  command 1 -> batch: | MODIFY 17 |             event 17, command 1
 *	its time                       record of 17                 idle
 *
 * The data of an event is the address of its alarm. That is safe because no record is ever
 * kept: alarms_take() first submits the batch, then reads records, and returns all that it
 * has read. After a CANCEL there is no record of the event, even if one was ready. So a
 * record that is read always belongs to an alarm that is armed, for that time.
 *
 * An alarm that the device refuses, for want of room or memory, goes to the wheels of
 * process.c, and so does one for which there is no memory for a command:
 *
 *	            alarm_add(), alarm_move()
 *	 IDLE ------------------------------------> ON_DEVICE
 *	  ^  \                                       |   ^
 *	  |   `- no memory for a command -.   refused |   | alarm_move()
 *	  |                                v          v   |
 *	  +---- its time, cancel ---------- IN_PROCESS ---+
 *
 * Each alarm that is armed or moved is tried on the device first. So the device is used
 * again as soon as events end there, and alarms in the process stay there until they fire,
 * are cancelled or moved.
 *
 * The wheels are bound to one CPU, because the order of events that were armed on several
 * CPUs is not promised. The memory of the commands belongs to this process; the events count
 * against max_events of each wheel, and against max_user_events of all that this user has.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "alarm/device.h"
#include "alarm/process.h"
#include "lib/libtwheel.h"

/* A batch with this number of commands is submitted before it gets more. */
#define BATCH_MAX	4096

/* How many records are read at a time. */
#define RECORDS		256

/* &struct twheel_cmd.result of commands that the device did not come to. */
#define NOT_RUN		(-EFAULT)

/**
 * struct device_clock - the wheel of one clock
 * @wheel: the wheel.
 * @batch: commands that were not submitted yet.
 * @nr_armed: events that it has, as far as commands were submitted.
 */
struct device_clock {
	struct twheel *wheel;
	struct twheel_batch batch;
	size_t nr_armed;
};

/**
 * struct device - the alarms
 * @alarms: the part that all backends have; first, so that a pointer to it is one to this.
 * @clocks: the wheels.
 * @records: room for records.
 * @process: the wheels for alarms that the device has no room for.
 */
struct device {
	struct alarms alarms;
	struct device_clock clocks[ALARM_CLOCKS];
	struct twheel_records records;
	struct process_wheels *process;
};

static struct device *device_of(struct alarms *alarms)
{
	return (struct device *)alarms;
}

/* --- commands and their results ------------------------------------------------------- */

/* Make the command do nothing: there is no event 0. */
static void take_back(struct device_clock *clock, struct alarm *alarm)
{
	twheel_prep_query(&clock->batch.cmds[alarm->device.command - 1], 0);
	alarm->device.command = 0;
}

/* The device has no room for an alarm, or none for its new time. */
static void move_to_process(struct device *device, struct device_clock *clock,
			    struct alarm *alarm, uint64_t time_ns)
{
	if (alarm->device.event && !twheel_cancel(clock->wheel, alarm->device.event))
		clock->nr_armed--;
	process_wheels_add(device->process, alarm, time_ns);
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
		move_to_process(device, clock, alarm, cmd->time_ns);
		return;
	}
	if (cmd->op == TWHEEL_OP_ADD)
		clock->nr_armed++;
	alarm->device.event = cmd->id;
}

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
			batch->cmds[i].result = NOT_RUN;
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

/*
 * Room for a command; NULL if there is no memory. This may submit the batch, so that alarms
 * have moved to the process when it returns.
 */
static struct twheel_cmd *next_command(struct device *device, struct device_clock *clock)
{
	if (clock->batch.nr >= BATCH_MAX)
		submit(device, clock);
	return twheel_batch_next(&clock->batch);
}

/* --- the operations ------------------------------------------------------------------- */

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

	if (alarm->state == ALARM_IN_PROCESS) {
		process_wheels_del(device->process, alarm);
		return;
	}
	if (alarm->device.command)
		take_back(clock, alarm);
	if (alarm->device.event)
		cancel_event(device, clock, alarm->device.event);
	alarm->state = ALARM_IDLE;
}

/* Let an alarm that is idle or in the process be one on the device, without an event yet. */
static void move_to_device(struct device *device, struct alarm *alarm)
{
	if (alarm->state == ALARM_IN_PROCESS)
		process_wheels_del(device->process, alarm);
	alarm->device.event = 0;
	alarm->device.command = 0;
	alarm->state = ALARM_ON_DEVICE;
}

static void device_arm(struct alarms *alarms, struct alarm *alarm, uint64_t time_ns)
{
	struct device *device = device_of(alarms);
	struct device_clock *clock = &device->clocks[alarm->clock];
	struct twheel_cmd *cmd = next_command(device, clock);

	if (!cmd) {
		if (alarm->state != ALARM_IDLE)
			device_cancel(alarms, alarm);
		process_wheels_add(device->process, alarm, time_ns);
		return;
	}
	if (alarm->state != ALARM_ON_DEVICE)
		move_to_device(device, alarm);
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
}

static void device_flush(struct alarms *alarms)
{
	struct device *device = device_of(alarms);

	submit_all(device);
	process_wheels_flush(device->process);
}

/* Read records of a wheel, at most @nr, and return the ids of their alarms. */
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

static size_t take_from_device(struct device *device, struct device_clock *clock,
			       uint64_t *ids, size_t nr)
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

	/* So that there is no record of an alarm that was moved or cancelled. */
	submit_all(device);
	/* Each clock has two sources. All four take turns to be the first. */
	for (i = 0; i < 2 * ALARM_CLOCKS; i++) {
		unsigned int source = (alarms->turn + i) % (2 * ALARM_CLOCKS);
		enum alarm_clock clock = source % ALARM_CLOCKS;

		if (source < ALARM_CLOCKS)
			taken += take_from_device(device, &device->clocks[clock], ids + taken,
						  nr - taken);
		else
			taken += process_wheels_take(device->process, clock, ids + taken,
						     nr - taken);
	}
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
	process_wheels_close(device->process);
	alarms_end(alarms);
	free(device);
}

/* Returns 0 or a negative errno; device_close() has to follow in both cases. */
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
	ret = alarms_init(&device->alarms, &alarm_device);
	if (!ret)
		ret = twheel_records_init(&device->records, RECORDS);
	for (i = 0; !ret && i < ALARM_CLOCKS; i++)
		ret = open_wheel(device, i);
	if (!ret)
		ret = process_wheels_open(&device->process, &device->alarms);
	if (ret)
		device_close(&device->alarms);
	else
		*alarms = &device->alarms;
	return ret;
}

const struct alarm_ops alarm_device = {
	.backend = ALARM_DEVICE,
	.name = "device",
	.open = device_open,
	.close = device_close,
	.arm = device_arm,
	.cancel = device_cancel,
	.flush = device_flush,
	.take = device_take,
};
