// SPDX-License-Identifier: GPL-2.0
/*
 * Measures the CPU time to expire events and to read their records; for
 * tools/bench/kernel.
 *
 * Events are armed at random in 2^20 ticks.  The module kunit/benchmark.c holds softirqs
 * back until all events are due.  From then on until the last record is read, the CPU does
 * nothing but expiry and delivery.  The figure is the median of some rounds.
 */
#include <err.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "bench.h"

static struct twheel_record records[4096];

#define PARAMETERS	"/sys/module/twheel_benchmark/parameters/"
#define TICKS		(1ULL << 20)
#define ROUNDS_MAX	100

/* The first event is due after all have been armed at this pace, and after a pause. */
#define LEAD_NS_EACH	5000ULL
#define LEAD_NS		100000000ULL

/* How often to try again if the machine stood still for longer than the pause. */
#define TRIES_MAX	5

/* The CPU time of the kernel since hold_until(). */
static uint64_t cpu_ns(void)
{
	unsigned long long ns;
	FILE *file = fopen(PARAMETERS "cpu_ns", "r");

	if (!file || fscanf(file, "%llu", &ns) != 1)
		err(1, "cannot read %s", PARAMETERS "cpu_ns");
	fclose(file);
	return ns;
}

static void hold_until(uint64_t end_ns)
{
	FILE *file = fopen(PARAMETERS "hold_until_ns", "w");

	if (!file || fprintf(file, "%" PRIu64 "\n", end_ns) < 0 || fclose(file))
		err(1, "cannot write %s", PARAMETERS "hold_until_ns");
}

/* The ticks of the device, in ns. */
static uint64_t tick_ns(int fd)
{
	struct twheel_info info = { .size = sizeof(info) };

	if (ioctl(fd, TWHEEL_IOC_INFO, &info))
		err(1, "INFO");
	return info.tick_ns;
}

static void deliver_arm_all(int fd, unsigned int nr, uint64_t first_ns, uint64_t span_ns)
{
	static struct batch batch;
	unsigned int i;

	for (i = 0; i < nr; i++) {
		struct twheel_cmd *cmd = batch_next(&batch);

		cmd->op = TWHEEL_OP_ADD;
		cmd->flags = TWHEEL_ABS;
		cmd->time_ns = first_ns + bench_random() % span_ns;
		if (batch.nr < BATCH_MAX && i + 1 < nr)
			continue;
		batch_run(fd, &batch);
		batch.nr = 0;
	}
}

/* The number of reads shows how many records each read returned on average. */
static unsigned int read_all(int fd, unsigned int nr)
{
	unsigned int reads = 0;

	while (nr) {
		ssize_t ret = read(fd, records, sizeof(records));

		if (ret <= 0)
			err(1, "read() gives %zd", ret);
		nr -= ret / sizeof(records[0]);
		reads++;
	}
	return reads;
}

/* Arm all events, so that none is due before the last one is armed. Returns the end. */
static uint64_t arm_in_time(int fd, unsigned int nr)
{
	uint64_t lead_ns = LEAD_NS + nr * LEAD_NS_EACH, span_ns = TICKS * tick_ns(fd);
	int tries;

	for (tries = 0; tries < TRIES_MAX; tries++, lead_ns *= 2) {
		uint64_t first_ns = clock_now() + lead_ns;

		deliver_arm_all(fd, nr, first_ns, span_ns);
		if (clock_now() < first_ns)
			return first_ns + span_ns;
		fprintf(stderr, "some were due before all were armed: once more\n");
		read_all(fd, nr);
	}
	errx(1, "some events were due before all were armed, %d times", tries);
}

/* The cost of an event. */
static double run(int fd, unsigned int nr)
{
	unsigned int reads;
	double ns;

	hold_until(arm_in_time(fd, nr));
	reads = read_all(fd, nr);
	ns = (double)cpu_ns() / nr;
	fprintf(stderr, "%u events, %u reads, %.1f ns each\n", nr, reads, ns);
	return ns;
}

int main(int argc, char **argv)
{
	unsigned int i, nr = argc > 1 ? strtoul(argv[1], NULL, 0) : 0;
	unsigned int rounds = argc > 2 ? strtoul(argv[2], NULL, 0) : 5;
	double samples[ROUNDS_MAX];
	int fd = device_open();

	if (!nr || !rounds || rounds > ROUNDS_MAX)
		errx(1, "usage: kernel_deliver EVENTS [ROUNDS]");
	/* read() has to block */
	if (fcntl(fd, F_SETFL, 0))
		err(1, "F_SETFL");
	for (i = 0; i < rounds; i++)
		samples[i] = run(fd, nr);
	printf("result k3.twheel.%u %.1f ns\n", nr, median(samples, rounds));
	return 0;
}
