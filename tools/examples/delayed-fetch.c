// SPDX-License-Identifier: GPL-2.0
/*
 * A delayed fetch: a consumer asks for at least so many bytes, and does not want to
 * wait for them longer than so long.
 *
 * The fetch is one event.  Its time is the longest wait, and it watches the key of
 * each partition that it reads.  A producer that appends to a partition signals how
 * many bytes that were: the kernel adds them up for all who wait, and ends each
 * fetch once, by its bytes or by its time, whichever is first.
 *
 * One thread plays all parts here, so that the output is always the same; in a
 * broker, producers append at any moment.
 */
#include <stdbool.h>
#include <stdio.h>

#include "example.h"

#define NR_PARTITIONS	3

/* The key of a partition: any number on which all agree. */
#define KEY(partition)	(100 + (partition))

/* How many bytes of each partition nobody has fetched yet. */
static __u64 unread[NR_PARTITIONS];

static int device;

/* A producer appends: first the bytes, then the signal.  Returns how many it ends. */
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

/* The watch of a partition for so many bytes more; 0: of the ADD before it. */
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
 * Looks at what there is already: after the watch, never before.
 *
 * A watch counts what is signalled once it is attached, and nothing before.  Had we
 * looked first and watched then, a producer could append in between: its bytes come
 * too late for the look and its signal too early for the watch, and the fetch waits
 * for its time although all is there.  So what we see counts only once we watch for
 * no more than what it lacks, and that we have seen it all.
 *
 * A signal that is on its way may be counted by the look and by the watch; the fetch
 * then ends with fewer bytes, and whoever minds fetches again.  Where look and watch
 * both end it, the first one does: with more threads than this one, COMPLETE may say
 * EALREADY or ENOENT, which is fine.
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

/* The fetch ends: its record says why, and what there is goes to the consumer. */
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

	/* By bytes that add up. */
	fetch(0, 0, 4096, 30 * NSEC_PER_SEC);
	EXPECT(append(0, 1024) == 0);
	EXPECT(append(0, 2048) == 0);
	EXPECT(append(0, 1024) == 1);
	answer(0, TWHEEL_COMPLETED, KEY(0), 4096);

	/* By whichever of three partitions has enough first. */
	fetch(0, 2, 1000, 30 * NSEC_PER_SEC);
	EXPECT(append(0, 600) == 0);
	EXPECT(append(1, 900) == 0);
	EXPECT(append(2, 700) == 0);
	EXPECT(append(2, 800) == 1);
	answer(2, TWHEEL_COMPLETED, KEY(2), 1500);

	/* By time, with what there is then. */
	fetch(0, 1, 1000, 200 * NSEC_PER_MSEC);
	EXPECT(append(0, 300) == 0);
	answer(0, TWHEEL_EXPIRED, 0, 900);

	/* At once: orders-1 still has 900 bytes. */
	fetch(0, 1, 900, 30 * NSEC_PER_SEC);
	answer(1, TWHEEL_COMPLETED, 0, 900);
	return EXIT_SUCCESS;
}
