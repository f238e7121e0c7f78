// SPDX-License-Identifier: GPL-2.0
/*
 * A delayed produce: a producer wants to hear that enough replicas have its record,
 * or, when its time is up, that they do not.
 *
 * The produce is one event, and its time is the time-out.  Each replica has a key,
 * on which it signals how many records it has; another is of the high watermark,
 * how many records all replicas have.  A produce that wants k replicas watches the
 * keys of all with a quorum of k; one that wants all needs the watermark only.  Such
 * numbers do not add up: the watches are for a level, one signal of at least so much.
 *
 * One thread plays all parts here, so that the output is always the same.
 */
#include <stdio.h>

#include "example.h"

#define NR_REPLICAS	3

/* The keys: any numbers on which all agree. */
#define KEY_WATERMARK	200
#define KEY_REPLICA(n)	(201 + (n))

/* How many records are in the log, each replica has, and all replicas have. */
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

/* Signals; returns how many events that ends. */
static int signal_level(__u64 key, __u64 records)
{
	struct twheel_cmd signal = make_signal(key, records);

	submit(device, &signal, 1);
	printf(" %llu: ends %d\n", records, signal.result);
	return signal.result;
}

/* First the fact, then the signal. */
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
 * A signal leaves nothing behind for later watches, and a replica may have been
 * quicker than ours.  So what each one has is signalled once more: a level may be.
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
 * Waits until all replicas have a record: watch, look once, complete it ourselves.
 *
 * The look must come after the watch.  Whoever raises the watermark before the look
 * is seen by the look, and whoever does so after the watch by the watch.  The other
 * way round, one that comes between the two is seen by neither, and the produce times
 * out although all is well.
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

/* The produce ends: its record says why, and the producer hears of it. */
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

	/* Two of three; a replica that says it twice is still one. */
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
