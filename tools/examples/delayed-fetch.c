// SPDX-License-Identifier: GPL-2.0
/*
 * A delayed fetch: a consumer asks for a minimum number of bytes, and waits for them at
 * most for some time.
 *
 * The fetch is one event.  Its time is the longest wait, and it watches the key of each
 * partition that it reads.  A producer that appends to a partition signals the number of
 * bytes.  The kernel adds them up for each waiting fetch, and ends each fetch once, by its
 * bytes or by its time, whichever is first.
 *
 * Here one thread plays all parts, so that the output is always the same; in a broker,
 * producers append at any time.
 */
#include <stdbool.h>
#include <stdio.h>

#include "example.h"

#define NR_PARTITIONS	3

/* The key of a partition: any number that all use. */
#define KEY(partition)	(100 + (partition))

/* The bytes of each partition that were not fetched yet. */
static __u64 unread[NR_PARTITIONS];

static int device;

/* A producer appends: first the bytes, then the signal.  Returns the fetches it ends. */
static int append(int partition, __u64 bytes)
{
	struct twheel_cmd signal = {
		.op = TWHEEL_OP_SIGNAL,
		.key = KEY(partition),
		.value = bytes,
	};

	unread[partition] += bytes;
	submit(device, &signal, 1);
	printf("  %llu bytes to orders-%d: ends %d\n", bytes, partition, signal.result);
	return signal.result;
}

/* A watch of a partition for @bytes.  With @id 0 it belongs to the ADD before it. */
static struct twheel_cmd watch_partition(__u64 id, int partition, __u64 bytes)
{
	return (struct twheel_cmd){
		.op = TWHEEL_OP_WATCH,
		.id = id,
		.key = KEY(partition),
		.value = bytes,
	};
}

static void complete(__u64 id, int partition)
{
	struct twheel_cmd cmd = {
		.op = TWHEEL_OP_COMPLETE,
		.id = id,
		.value = unread[partition],
	};

	submit(device, &cmd, 1);
	printf("  there is enough in orders-%d\n", partition);
}

/*
 * Checks the bytes that are there already: after the watch, never before it.
 *
 * A watch counts only signals that come after it.  If the check came first, a producer
 * could append between the two: the check would miss its bytes and the watch its signal,
 * and the fetch would wait for its time although all bytes are there.
 *
 * A signal that comes at the same time may be counted by the check and by the watch.  Then
 * the fetch ends with fewer bytes, and the consumer can fetch again.  If check and watch
 * both end the fetch, the first one counts: with several threads, COMPLETE may return
 * -EALREADY or -ENOENT, which is no error here.
 */
static bool look(__u64 id, int partition, __u64 bytes)
{
	__u64 seen = 0;

	while (unread[partition] != seen) {
		struct twheel_cmd watch;

		seen = unread[partition];
		if (seen >= bytes) {
			complete(id, partition);
			return true;
		}
		watch = watch_partition(id, partition, bytes - seen);
		submit(device, &watch, 1);
	}
	return false;
}

/* A consumer begins to fetch, from whichever partition has @bytes first. */
static void fetch(int first, int last, __u64 bytes, __u64 wait_ns)
{
	struct twheel_cmd cmds[1 + NR_PARTITIONS] = {
		{ .op = TWHEEL_OP_ADD, .time_ns = wait_ns, .quorum = 1 },
	};
	int nr = 1;

	printf("fetch %llu bytes of", bytes);
	for (int partition = first; partition <= last; partition++) {
		cmds[nr++] = watch_partition(0, partition, bytes);
		printf(" orders-%d", partition);
	}
	printf("\n");
	submit(device, cmds, nr);
	for (int partition = first; partition <= last; partition++)
		if (look(cmds[0].id, partition, bytes))
			break;
}

/* The fetch ends: its record has the reason, and the consumer gets the bytes. */
static void answer(int partition, __u32 reason, __u64 key, __u64 bytes)
{
	struct twheel_record record = next_record(device);

	EXPECT(record.reason == reason);
	EXPECT(record.key == key);
	EXPECT(unread[partition] == bytes);
	printf("  %s: %llu bytes of orders-%d\n",
	       reason == TWHEEL_COMPLETED ? "completed" : "time is up", bytes,
	       partition);
	unread[partition] = 0;
}

int main(void)
{
	device = open_device(0);

	/* It ends by bytes that add up, */
	fetch(0, 0, 4096, 30 * NSEC_PER_SEC);
	EXPECT(append(0, 1024) == 0);
	EXPECT(append(0, 2048) == 0);
	EXPECT(append(0, 1024) == 1);
	answer(0, TWHEEL_COMPLETED, KEY(0), 4096);

	/* by the first of three partitions that has enough, */
	fetch(0, 2, 1000, 30 * NSEC_PER_SEC);
	EXPECT(append(0, 600) == 0);
	EXPECT(append(1, 900) == 0);
	EXPECT(append(2, 700) == 0);
	EXPECT(append(2, 800) == 1);
	answer(2, TWHEEL_COMPLETED, KEY(2), 1500);

	/* by its time, with the bytes that are there then, */
	fetch(0, 1, 1000, 200 * NSEC_PER_MSEC);
	EXPECT(append(0, 300) == 0);
	answer(0, TWHEEL_EXPIRED, 0, 900);

	/* and at once, because orders-1 still has 900 bytes. */
	fetch(0, 1, 900, 30 * NSEC_PER_SEC);
	answer(1, TWHEEL_COMPLETED, 0, 900);
	return EXIT_SUCCESS;
}
