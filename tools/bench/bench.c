// SPDX-License-Identifier: GPL-2.0
/* Helpers of all benchmarks. */
#include <err.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

#define DEVICE		"/dev/twheel"
#define NSEC_PER_SEC	1000000000ULL

struct twheel_cmd *batch_next(struct batch *batch)
{
	struct twheel_cmd *cmd = &batch->cmds[batch->nr++];

	memset(cmd, 0, sizeof(*cmd));
	return cmd;
}

void batch_submit(int fd, struct batch *batch)
{
	struct twheel_submit submit = {
		.size = sizeof(submit),
		.cmds = (unsigned long)batch->cmds,
		.nr = batch->nr,
		.cmd_size = sizeof(batch->cmds[0]),
	};
	int done = ioctl(fd, TWHEEL_IOC_SUBMIT, &submit);

	if (done != (int)batch->nr)
		err(1, "SUBMIT of %u commands ran %d", batch->nr, done);
}

void batch_check(const struct batch *batch)
{
	unsigned int i;

	for (i = 0; i < batch->nr; i++) {
		const struct twheel_cmd *cmd = &batch->cmds[i];

		if (cmd->result != batch->expected)
			errx(1, "a command with op %u gives %d, not %d", cmd->op,
			     cmd->result, batch->expected);
	}
}

void batch_run(int fd, struct batch *batch)
{
	batch_submit(fd, batch);
	batch_check(batch);
}

int device_open(void)
{
	int fd = open(DEVICE, O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		err(1, "cannot open %s", DEVICE);
	return fd;
}

void device_read(int fd, struct twheel_record *records, unsigned int nr)
{
	ssize_t size = nr * sizeof(*records);
	ssize_t ret = read(fd, records, size);

	if (ret != size)
		err(1, "read() of %u records gives %zd bytes", nr, ret);
}

__u64 device_counter(int fd, const char *name)
{
	char path[64], line[128], found[32];
	unsigned long long value;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file = fopen(path, "r");
	if (!file)
		err(1, "cannot open %s", path);
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%31[^:]: %llu", found, &value) == 2 &&
		    !strcmp(found, name)) {
			fclose(file);
			return value;
		}
	}
	errx(1, "%s has no %s", path, name);
}

void expect(const char *what, __u64 seen, __u64 expected)
{
	if (seen != expected)
		errx(1, "%s: %llu, not %llu", what, seen, expected);
}

void *bench_alloc(size_t nr, size_t size)
{
	void *memory = calloc(nr, size);

	if (!memory)
		err(1, "no memory for %zu x %zu bytes", nr, size);
	return memory;
}

/* The ns of an instruction on a clock that counts them, or 0. */
static unsigned int instruction_ns;

void clock_instructions(unsigned int ns)
{
	instruction_ns = ns;
}

bool clock_is_real(void)
{
	return !instruction_ns;
}

const char *clock_unit(void)
{
	return clock_is_real() ? "ns" : "instructions";
}

static __u64 read_clock(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
}

__u64 clock_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

struct timespec to_timespec(__u64 ns)
{
	return (struct timespec){
		.tv_sec = ns / NSEC_PER_SEC,
		.tv_nsec = ns % NSEC_PER_SEC,
	};
}

__u64 clock_now(void)
{
	return clock_is_real() ? clock_ns() : clock_ns() / instruction_ns;
}

__u64 thread_cost(void)
{
	return clock_is_real() ? read_clock(CLOCK_THREAD_CPUTIME_ID) :
				 clock_now();
}

static int compare_numbers(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double median(double *samples, unsigned int nr)
{
	qsort(samples, nr, sizeof(*samples), compare_numbers);
	return nr % 2 ? samples[nr / 2] :
			(samples[nr / 2 - 1] + samples[nr / 2]) / 2;
}

/* xorshift64 */
__u64 bench_random(void)
{
	static __thread __u64 state = 0x9e3779b97f4a7c15;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

void bench_shuffle(__u32 *numbers, size_t nr, size_t all)
{
	size_t i;

	for (i = 0; i < nr; i++) {
		size_t other = i + bench_random() % (all - i);
		__u32 number = numbers[i];

		numbers[i] = numbers[other];
		numbers[other] = number;
	}
}

/* Units that only a clock that counts instructions has. */
static bool has_counted_unit(const char *unit)
{
	return !strcmp(unit, "instructions") || !strcmp(unit, "virtual_ns");
}

void print_result(double value, const char *unit, const char *format, ...)
{
	va_list arguments;

	printf("result ");
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	printf("%s %.6g %s\n", has_counted_unit(unit) || clock_is_real() ? "" : ".counted",
	       value, unit);
	fflush(stdout);
}

/* The name of the processor; QEMU has its own name for one that it emulates. */
static void read_processor(char *name, size_t size)
{
	FILE *file = fopen("/proc/cpuinfo", "r");
	char line[256];

	snprintf(name, size, "unknown");
	if (!file)
		return;
	while (fgets(line, sizeof(line), file)) {
		char *colon = strchr(line, ':');

		if (strncmp(line, "model name", strlen("model name")) || !colon)
			continue;
		line[strcspn(line, "\n")] = 0;
		snprintf(name, size, "%s", colon + 2);
		break;
	}
	fclose(file);
}

bool processor_is_emulated(void)
{
	char processor[128];

	read_processor(processor, sizeof(processor));
	return strstr(processor, "TCG");
}

void print_where(void)
{
	struct utsname system;
	char processor[128];

	if (uname(&system))
		err(1, "uname");
	read_processor(processor, sizeof(processor));
	printf("where kernel %s\n", system.release);
	printf("where processor %s\n", processor);
	printf("where emulated %s\n",
	       processor_is_emulated() ? "yes" : "no");
}

/* Memory of slabs, and of tables too large for contiguous pages. */
__u64 kernel_bytes(void)
{
	unsigned long long kib, total = 0;
	FILE *file = fopen("/proc/meminfo", "r");
	char line[128];

	if (!file)
		err(1, "cannot open /proc/meminfo");
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "Slab: %llu", &kib) == 1 ||
		    sscanf(line, "VmallocUsed: %llu", &kib) == 1)
			total += kib * 1024;
	}
	fclose(file);
	return total;
}

#define LINE_BYTES	64
#define LOADS		1000000

/* Links all lines in one cycle in random order, which a processor cannot predict. */
static void **make_chase(size_t nr)
{
	__u32 *order = bench_alloc(nr, sizeof(*order));
	char *lines = bench_alloc(nr, LINE_BYTES);
	size_t i;

	for (i = 0; i < nr; i++)
		order[i] = i;
	bench_shuffle(order, nr, nr);
	for (i = 0; i < nr; i++) {
		void **line = (void **)(lines + (size_t)order[i] * LINE_BYTES);

		*line = lines + (size_t)order[(i + 1) % nr] * LINE_BYTES;
	}
	free(order);
	return (void **)lines;
}

double load_cost(size_t bytes)
{
	void **lines = make_chase(bytes / LINE_BYTES);
	void **at = lines;
	__u64 begin = clock_now();
	double cost;
	int i;

	for (i = 0; i < LOADS; i++) {
		at = *at;
		asm volatile("" : "+r" (at));
	}
	cost = (double)(clock_now() - begin) / LOADS;
	free(lines);
	return cost;
}
