// SPDX-License-Identifier: GPL-2.0
/*
 * A delayed produce: a producer wants to hear that enough replicas have its record,
 * or, when its time is up, that they do not.
 *
 * The produce is one event, and its time is the timeout.  Each replica has a key, on which
 * it signals the number of its records.  Another key is for the high watermark, the number
 * of records that all replicas have.  A produce that needs k replicas watches the keys of
 * all of them with a quorum of k; one that needs all replicas watches only the watermark.
 * These numbers must not be added up, so the watches are for a level: one signal of at
 * least that value.
 *
 * Here one thread plays all parts, so that the output is always the same.
 */
#include <stdio.h>

#include "example.h"

#define NR_REPLICAS	3

/* The keys: any numbers that all use. */
#define KEY_WATERMARK	200
#define KEY_REPLICA(n)	(201 + (n))

/* The number of records in the log, in each replica, and in all replicas. */
static __u64 log_end;
static __u64 replicated[NR_REPLICAS];
static __u64 watermark;

static int device;

static struct twheel_cmd make_signal(__u64 key, __u64 records)
{
	return (struct twheel_cmd){
		.op = TWHEEL_OP_SIGNAL,
		.key = key,
		.value = records,
	};
}

/* Signals a value.  Returns the number of events that it ends. */
static int signal_level(__u64 key, __u64 records)
{
	struct twheel_cmd signal = make_signal(key, records);

	submit(device, &signal, 1);
	printf(" %llu: ends %d\n", records, signal.result);
	return signal.result;
}

/* First the state changes, then the signal is sent. */
static int acknowledge(int replica, __u64 records)
{
	replicated[replica] = records;
	printf("  replica %d has", replica);
	return signal_level(KEY_REPLICA(replica), records);
}

static int raise_watermark(__u64 records)
{
	watermark = records;
	printf("  all replicas have");
	return signal_level(KEY_WATERMARK, records);
}

static struct twheel_cmd watch_level(__u64 key, __u64 level)
{
	return (struct twheel_cmd){
		.op = TWHEEL_OP_WATCH,		/* without id: of the ADD before it */
		.flags = TWHEEL_LEVEL,
		.key = key,
		.value = level,
	};
}

/*
 * Waits until @quorum replicas have a record.
 *
 * A signal has no effect on later watches, and a replica may have signalled before the
 * watch.  So the state of each replica is signalled again, which is allowed for levels.
 */
static void await_replicas(__u64 record, unsigned int quorum, __u64 timeout_ns)
{
	struct twheel_cmd again[NR_REPLICAS];
	struct twheel_cmd cmds[1 + NR_REPLICAS] = { {
		.op = TWHEEL_OP_ADD,
		.data = record,
		.time_ns = timeout_ns,
		.quorum = quorum,
	} };

	printf("record %llu awaits %u of %d replicas\n", record, quorum, NR_REPLICAS);
	for (int i = 0; i < NR_REPLICAS; i++)
		cmds[1 + i] = watch_level(KEY_REPLICA(i), record);
	submit(device, cmds, 1 + NR_REPLICAS);

	for (int i = 0; i < NR_REPLICAS; i++)
		again[i] = make_signal(KEY_REPLICA(i), replicated[i]);
	submit(device, again, NR_REPLICAS);
}

/*
 * Waits until all replicas have a record: watch, check once, complete it here if it is so.
 *
 * The check must come after the watch.  Then a watermark that is raised before the check is
 * seen by the check, and one that is raised after the watch is seen by the watch.  In the
 * other order, neither sees one that is raised between the two, and the produce times out
 * although all replicas have the record.
 */
static void await_watermark(__u64 record, __u64 timeout_ns)
{
	struct twheel_cmd cmds[] = {
		{ .op = TWHEEL_OP_ADD, .data = record, .time_ns = timeout_ns },
		watch_level(KEY_WATERMARK, record),
	};
	struct twheel_cmd complete = { .op = TWHEEL_OP_COMPLETE };

	printf("record %llu awaits the watermark\n", record);
	submit(device, cmds, 2);
	if (watermark < record)
		return;
	complete.id = cmds[0].id;
	complete.value = watermark;
	submit(device, &complete, 1);
	printf("  it is there already\n");
}

/* The produce ends: its record has the reason, which the producer gets. */
static void answer(__u64 record, __u32 reason)
{
	struct twheel_record ended = next_record(device);

	EXPECT(ended.data == record && ended.reason == reason);
	printf("  record %llu: %s\n", record,
	       reason == TWHEEL_COMPLETED ? "acknowledged" : "timed out");
}

int main(void)
{
	device = open_device(0);

	/* Two of three; a replica that signals twice counts once. */
	await_replicas(++log_end, 2, 30 * NSEC_PER_SEC);
	EXPECT(acknowledge(1, 0) == 0);
	EXPECT(acknowledge(1, 1) == 0);
	EXPECT(acknowledge(1, 1) == 0);
	EXPECT(acknowledge(2, 1) == 1);
	answer(1, TWHEEL_COMPLETED);

	/* Three of three, one of which does not answer in time. */
	await_replicas(++log_end, 3, 200 * NSEC_PER_MSEC);
	EXPECT(acknowledge(0, 2) == 0);
	EXPECT(acknowledge(2, 2) == 0);
	answer(2, TWHEEL_EXPIRED);

	/* A watermark that passes two records at once. */
	await_watermark(++log_end, 30 * NSEC_PER_SEC);
	await_watermark(++log_end, 30 * NSEC_PER_SEC);
	EXPECT(raise_watermark(2) == 0);
	EXPECT(raise_watermark(4) == 2);
	answer(3, TWHEEL_COMPLETED);
	answer(4, TWHEEL_COMPLETED);

	/* Replicas that are quicker than the watch: one of two, then all. */
	log_end++;
	EXPECT(acknowledge(1, 5) == 0);
	await_replicas(log_end, 2, 30 * NSEC_PER_SEC);
	EXPECT(acknowledge(0, 5) == 1);
	answer(5, TWHEEL_COMPLETED);

	log_end++;
	EXPECT(raise_watermark(6) == 0);
	await_watermark(log_end, 30 * NSEC_PER_SEC);
	answer(6, TWHEEL_COMPLETED);
	return EXIT_SUCCESS;
}
