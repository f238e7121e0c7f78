// SPDX-License-Identifier: GPL-2.0
/*
 * Measures delayed operations: does the cost of completing one early, or of a signal that
 * completes none, depend on the number of pending operations?
 *
 * It can grow for two reasons: more work, which there should not be, and slower memory,
 * because many operations do not fit into the caches.  The clock shows both.  If it counts
 * instructions (--instruction-ns), it shows only the first.
 *
 * Each figure is the median of rounds.  It includes the system calls, the copying of
 * commands and records, and the reading of the clock, divided by the number of operations
 * or signals.  Adding operations is not measured.  The targets are ratios, and no time is
 * checked.  But each result, record and counter is checked: an error ends the program with
 * status 1.
 */
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

/* No operation expires during the benchmark, and no two have the same time. */
#define FAR_NS		(86400 * 1000000000ULL)
#define APART_NS	1000000ULL

/* The number of watches of all operations that have several. */
#define WATCHES_ALL	1000000

/* A ratio up to this counts as no difference. */
#define TARGET		2.0

/* A key that no population uses. */
#define LONE_KEY	(~0ULL)

/* How much is measured: less with --quick. */
struct scale {
	unsigned int pending[3];
	unsigned int ended[3];
	unsigned int in_memory;
	unsigned int rounds;		/* of many operations each */
	unsigned int short_rounds;	/* of a few */
};

static const struct scale full = {
	.pending = { 10, 1000, 1000000 },
	.ended = { 10, 1000, 100000 },
	.in_memory = 100000,
	.rounds = 31,
	.short_rounds = 301,
};

static const struct scale quick = {
	.pending = { 10, 1000, 20000 },
	.ended = { 10, 1000, 5000 },
	.in_memory = 20000,
	.rounds = 5,
	.short_rounds = 31,
};

#define SIZES		ARRAY_SIZE(full.pending)

static const char *verdict(double ratio)
{
	return ratio <= TARGET ? "ok" : "short";
}

/* --- operations that are pending -------------------------------------------- */

/**
 * struct population - pending operations, each watch on a key of its own
 * @fd: their context.
 * @nr: the number of operations, which does not change: ended ones are added again.
 * @wide: the first @wide operations have @watches watches each; the others have one.
 * @watches: see @wide.
 * @ids: the id of each operation.
 * @order: the wide operations; the first ones are ended next.
 * @ended: the number of operations ended so far.
 */
struct population {
	int fd;
	__u32 nr;
	__u32 wide;
	unsigned int watches;
	__u64 *ids;
	__u32 *order;
	__u64 ended;
};

static __u64 key_of(__u32 operation, unsigned int watch)
{
	return (__u64)operation * TWHEEL_MAX_WATCHES + watch;
}

static void put_add(struct batch *batch, __u32 operation)
{
	struct twheel_cmd *cmd = batch_next(batch);

	cmd->op = TWHEEL_OP_ADD;
	cmd->data = operation;
	cmd->time_ns = FAR_NS + operation * APART_NS;
}

/* A watch of the operation that was put last. */
static void put_watch(struct batch *batch, __u64 key, __u16 flags, __u64 need)
{
	struct twheel_cmd *cmd = batch_next(batch);

	cmd->op = TWHEEL_OP_WATCH;
	cmd->flags = flags;
	cmd->key = key;
	cmd->value = need;
}

static void put_signal(struct batch *batch, __u64 key, __u64 value)
{
	struct twheel_cmd *cmd = batch_next(batch);

	cmd->op = TWHEEL_OP_SIGNAL;
	cmd->key = key;
	cmd->value = value;
}

static void run_adds(struct population *population, struct batch *batch)
{
	unsigned int i;

	batch_run(population->fd, batch);
	for (i = 0; i < batch->nr; i++) {
		const struct twheel_cmd *cmd = &batch->cmds[i];

		if (cmd->op == TWHEEL_OP_ADD)
			population->ids[cmd->data] = cmd->id;
	}
	batch->nr = 0;
}

static void population_add(struct population *population, __u32 operation,
			   struct batch *batch)
{
	unsigned int watches = operation < population->wide ?
			       population->watches : 1;
	unsigned int i;

	if (batch->nr + 1 + watches > BATCH_MAX)
		run_adds(population, batch);
	put_add(batch, operation);
	for (i = 0; i < watches; i++)
		put_watch(batch, key_of(operation, i), 0, 1);
}

static void population_make(struct population *population, __u32 nr,
			    unsigned int watches)
{
	struct batch batch = {};
	__u32 i;

	*population = (struct population){
		.fd = device_open(),
		.nr = nr,
		.wide = nr < WATCHES_ALL / watches ? nr : WATCHES_ALL / watches,
		.watches = watches,
		.ids = bench_alloc(nr, sizeof(__u64)),
		.order = bench_alloc(nr, sizeof(__u32)),
	};
	for (i = 0; i < nr; i++) {
		population->order[i] = i;
		population_add(population, i, &batch);
	}
	run_adds(population, &batch);
}

static void population_end(struct population *population)
{
	int fd = population->fd;

	expect("armed", device_counter(fd, "armed"), population->nr);
	expect("completed", device_counter(fd, "completed"), population->ended);
	expect("finished", device_counter(fd, "finished"), population->ended);
	expect("added", device_counter(fd, "added"),
	       population->nr + population->ended);
	close(fd);
	free(population->ids);
	free(population->order);
}

/* --- completing early ------------------------------------------------------- */

/* The cost of ending an operation: of the command, of reading the record, and of both. */
struct cost {
	double command;
	double read;
	double both;
};

/* The way in which operations are ended. */
enum way {
	BY_COMPLETE,
	BY_SIGNAL,
	WAYS
};

static const char *const way_names[] = { "COMPLETE", "SIGNAL" };

/*
 * Half of the smallest number of pending operations.  If all were ended, the table of keys
 * would shrink and grow each time, and the cost would include that.
 */
#define FEW		5

/* Which operations are ended, and how many together. */
static const struct pattern {
	const char *name;
	unsigned int batch;
	bool random;
} patterns[] = {
	{ "same 5", FEW, false },
	{ "any 5", FEW, true },
	{ "same 256", BATCH_MAX, false },
	{ "any 256", BATCH_MAX, true },
};

#define PATTERNS	ARRAY_SIZE(patterns)

static const unsigned int watches_of[] = { 1, 4, 16, 64 };

#define WIDTHS		ARRAY_SIZE(watches_of)

static void put_end(const struct population *population, enum way way,
		    __u32 operation, struct batch *batch)
{
	struct twheel_cmd *cmd;

	if (way == BY_SIGNAL) {
		put_signal(batch, key_of(operation, 0), 1);
		batch->expected = 1;
		return;
	}
	cmd = batch_next(batch);
	cmd->op = TWHEEL_OP_COMPLETE;
	cmd->id = population->ids[operation];
	cmd->value = 1;
}

/* They come in the order in which they were completed. */
static void check_records(const struct population *population, enum way way,
			  const struct twheel_record *records, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		const struct twheel_record *record = &records[i];
		__u32 operation = population->order[i];

		expect("id", record->id, population->ids[operation]);
		expect("data", record->data, operation);
		expect("reason", record->reason, TWHEEL_COMPLETED);
		expect("value", record->value, 1);
		expect("key", record->key,
		       way == BY_SIGNAL ? key_of(operation, 0) : 0);
	}
}

/* End the first @nr in the order, and add them again. */
static struct cost measure_round(struct population *population, enum way way,
				 unsigned int nr)
{
	static struct twheel_record records[BATCH_MAX];
	struct batch batch = {}, adds = {};
	__u64 begin, middle, end;
	unsigned int i;

	for (i = 0; i < nr; i++)
		put_end(population, way, population->order[i], &batch);
	begin = clock_now();
	batch_submit(population->fd, &batch);
	middle = clock_now();
	device_read(population->fd, records, nr);
	end = clock_now();

	batch_check(&batch);
	check_records(population, way, records, nr);
	population->ended += nr;
	for (i = 0; i < nr; i++)
		population_add(population, population->order[i], &adds);
	run_adds(population, &adds);
	return (struct cost){
		.command = (double)(middle - begin) / nr,
		.read = (double)(end - middle) / nr,
		.both = (double)(end - begin) / nr,
	};
}

/* The first round is not counted. */
static struct cost measure_early(struct population *population, enum way way,
				 const struct pattern *pattern,
				 unsigned int rounds)
{
	double *commands = bench_alloc(rounds + 1, sizeof(double));
	double *reads = bench_alloc(rounds + 1, sizeof(double));
	double *boths = bench_alloc(rounds + 1, sizeof(double));
	struct cost cost;
	unsigned int i;

	for (i = 0; i <= rounds; i++) {
		if (pattern->random)
			bench_shuffle(population->order, pattern->batch,
				      population->wide);
		cost = measure_round(population, way, pattern->batch);
		commands[i] = cost.command;
		reads[i] = cost.read;
		boths[i] = cost.both;
	}
	cost.command = median(commands + 1, rounds);
	cost.read = median(reads + 1, rounds);
	cost.both = median(boths + 1, rounds);
	free(commands);
	free(reads);
	free(boths);
	return cost;
}

/* For each size; 0 if fewer operations are pending than the pattern ends together. */
struct early_costs {
	struct cost of[WAYS][PATTERNS][SIZES];
};

static void measure_early_at(const struct scale *scale, unsigned int watches,
			     unsigned int size, struct early_costs *costs)
{
	struct population population;
	unsigned int way, i;

	population_make(&population, scale->pending[size], watches);
	for (way = 0; way < WAYS; way++) {
		for (i = 0; i < PATTERNS; i++) {
			const struct pattern *pattern = &patterns[i];

			if (pattern->batch > population.wide)
				continue;
			costs->of[way][i][size] =
				measure_early(&population, way, pattern,
					      pattern->batch < BATCH_MAX ?
					      scale->short_rounds :
					      scale->rounds);
		}
	}
	population_end(&population);
}

static void print_costs(const struct cost costs[SIZES], size_t offset)
{
	unsigned int i;

	for (i = 0; i < SIZES; i++) {
		const double *cost = (const double *)((const char *)&costs[i] +
						      offset);

		if (costs[i].both)
			printf(" %7.0f", *cost);
		else
			printf(" %7s", "-");
	}
}

/* @load: the extra cost of a load from memory over one from a cache; 0: unknown. */
static void print_early(const char *way, unsigned int watches,
			const struct pattern *pattern,
			const struct cost costs[SIZES], double load)
{
	const struct cost *least = costs[0].both ? &costs[0] : &costs[1];
	double most = costs[SIZES - 1].both, ratio = most / least->both;

	printf("%-8s %7u %-8s", way, watches, pattern->name);
	print_costs(costs, offsetof(struct cost, command));
	printf(" ");
	print_costs(costs, offsetof(struct cost, read));
	printf(" ");
	print_costs(costs, offsetof(struct cost, both));
	printf("  %4.2f %-5s", ratio, verdict(ratio));
	if (pattern->random && load)
		printf(" %4.0f", (most - least->both) / load);
	printf("\n");
}

static void head_early(const struct scale *scale)
{
	static const char *const parts[] = { "command", "read", "both" };
	unsigned int i, size;

	printf("\nEnding an operation early: %s for each, with so many pending\n\n",
	       clock_unit());
	printf("%-25s", "");
	for (i = 0; i < ARRAY_SIZE(parts); i++)
		printf(" %*s ", (int)(8 * SIZES - 1), parts[i]);
	printf("\n%-8s %7s %-8s", "by", "watches", "which");
	for (i = 0; i < ARRAY_SIZE(parts); i++) {
		for (size = 0; size < SIZES; size++)
			printf(" %7u", scale->pending[size]);
		printf(" ");
	}
	printf(" %-10s%s\n", "ratio", clock_is_real() ? " loads" : "");
}

static void bench_early(const struct scale *scale, double load)
{
	unsigned int width, way, pattern, size;

	head_early(scale);
	for (width = 0; width < WIDTHS; width++) {
		struct early_costs costs = {};

		for (size = 0; size < SIZES; size++)
			measure_early_at(scale, watches_of[width], size, &costs);
		for (way = 0; way < WAYS; way++)
			for (pattern = 0; pattern < PATTERNS; pattern++)
				print_early(way_names[way], watches_of[width],
					    &patterns[pattern],
					    costs.of[way][pattern], load);
		fflush(stdout);
	}
	printf("\n"
	       "command: a SUBMIT of %u or %u commands; SIGNAL also frees the watch that it satisfies.\n"
	       "read: a read() of as many records, which unlinks and frees the watches that are left.\n"
	       "Each watch is on a key of its own; of the most pending, as many have several watches as\n"
	       "come to %u, the rest have one.\n"
	       "same: the same operations each time, added again, so that their memory is warm. any: a\n"
	       "random choice of those pending. ratio: both, most pending to fewest, at most %.0f is ok.\n",
	       FEW, BATCH_MAX, WATCHES_ALL, TARGET);
	if (clock_is_real())
		printf("loads: how many loads from afar the difference is worth. A ratio\n"
		       "that is short for these only is not so in instructions.\n");
}

/* --- signals that end nothing ----------------------------------------------- */

static const struct kind {
	const char *name;
	__u16 flags;
} kinds[] = {
	{ "sum", 0 },
	{ "level", TWHEEL_LEVEL },
};

/* Operations that watch one key and need more than is ever signalled. */
static void wait_in_vain(int fd, __u16 flags, __u32 nr)
{
	struct batch batch = {};
	__u32 i;

	for (i = 0; i < nr; i++) {
		if (batch.nr + 2 > BATCH_MAX) {
			batch_run(fd, &batch);
			batch.nr = 0;
		}
		put_add(&batch, i);
		put_watch(&batch, LONE_KEY, flags,
			  (1ULL << 62) + (bench_random() >> 8));
	}
	batch_run(fd, &batch);
}

/* The cost of a signal, with @together signals in a SUBMIT. */
static double measure_signals(int fd, unsigned int together, unsigned int rounds)
{
	double *samples = bench_alloc(rounds + 1, sizeof(double));
	struct batch batch = {};
	unsigned int i, call;
	double cost;

	for (i = 0; i < together; i++)
		put_signal(&batch, LONE_KEY, 1);
	for (i = 0; i <= rounds; i++) {
		__u64 begin = clock_now();

		for (call = 0; call < BATCH_MAX / together; call++)
			batch_run(fd, &batch);
		samples[i] = (double)(clock_now() - begin) / BATCH_MAX;
	}
	cost = median(samples + 1, rounds);
	free(samples);
	return cost;
}

/* @how: describes the signals, in the table and in the name of the result. */
static void print_ratios(const char *name, const char *how, const char *short_how,
			 const unsigned int waiting[SIZES],
			 const double costs[SIZES])
{
	double ratio = costs[SIZES - 1] / costs[0];
	unsigned int i;

	printf("%-6s %-14s", name, how);
	for (i = 0; i < SIZES; i++)
		printf(" %7.0f", costs[i]);
	printf("  %4.2f %s\n", ratio, verdict(ratio));
	for (i = 0; i < SIZES; i++)
		print_result(costs[i], clock_unit(), "o1.%s.%s.%u", name,
			     short_how, waiting[i]);
}

static void bench_in_vain(const struct scale *scale)
{
	unsigned int waiting[SIZES] = { 1, scale->pending[1], scale->pending[2] };
	unsigned int i, size;

	printf("\nA signal that ends nothing: %s for each, with so many waiting on its key\n\n",
	       clock_unit());
	printf("%-6s %-14s", "for", "signals");
	for (size = 0; size < SIZES; size++)
		printf(" %7u", waiting[size]);
	printf("  ratio\n");
	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		double together[SIZES], alone[SIZES];

		for (size = 0; size < SIZES; size++) {
			int fd = device_open();

			wait_in_vain(fd, kinds[i].flags, waiting[size]);
			together[size] = measure_signals(fd, BATCH_MAX,
							 scale->short_rounds);
			alone[size] = measure_signals(fd, 1, scale->rounds);
			expect("armed", device_counter(fd, "armed"),
			       waiting[size]);
			close(fd);
		}
		print_ratios(kinds[i].name, "256 a SUBMIT", "submit256",
			     waiting, together);
		print_ratios(kinds[i].name, "1 a SUBMIT", "submit1", waiting,
			     alone);
		fflush(stdout);
	}
}

/* --- signals that end many -------------------------------------------------- */

static void wait_for_one(int fd, __u32 nr)
{
	struct batch batch = {};
	__u32 i;

	for (i = 0; i < nr; i++) {
		if (batch.nr + 2 > BATCH_MAX) {
			batch_run(fd, &batch);
			batch.nr = 0;
		}
		put_add(&batch, i);
		put_watch(&batch, LONE_KEY, 0, 1);
	}
	batch_run(fd, &batch);
}

static void read_completed(int fd, __u32 nr)
{
	static struct twheel_record records[BATCH_MAX];

	while (nr) {
		unsigned int some = nr < BATCH_MAX ? nr : BATCH_MAX;
		unsigned int i;

		device_read(fd, records, some);
		for (i = 0; i < some; i++) {
			expect("key", records[i].key, LONE_KEY);
			expect("reason", records[i].reason, TWHEEL_COMPLETED);
		}
		nr -= some;
	}
}

/* Let @nr wait on one key and end them by one signal. */
static struct cost measure_many(int fd, __u32 nr)
{
	struct batch batch = { .expected = nr };
	__u64 begin, middle, end;

	wait_for_one(fd, nr);
	put_signal(&batch, LONE_KEY, 1);
	begin = clock_now();
	batch_submit(fd, &batch);
	middle = clock_now();
	read_completed(fd, nr);
	end = clock_now();
	batch_check(&batch);
	return (struct cost){
		.command = (double)(middle - begin) / nr,
		.read = (double)(end - middle) / nr,
	};
}

static void bench_many(const struct scale *scale)
{
	double commands[64], reads[64];
	unsigned int size, i;

	printf("\nA signal that ends all that wait on its key: %s for each operation\n\n",
	       clock_unit());
	printf("%-14s %7s %7s\n", "ended by it", "signal", "read");
	for (size = 0; size < SIZES; size++) {
		int fd = device_open();

		for (i = 0; i <= scale->rounds; i++) {
			struct cost cost = measure_many(fd, scale->ended[size]);

			commands[i] = cost.command;
			reads[i] = cost.read;
		}
		printf("%-14u %7.0f %7.0f\n", scale->ended[size],
		       median(commands + 1, scale->rounds),
		       median(reads + 1, scale->rounds));
		fflush(stdout);
		close(fd);
	}
}

/* --- memory ----------------------------------------------------------------- */

/* The first population allocates memory that is needed only once. */
static void bench_memory(const struct scale *scale)
{
	struct population first, population;
	__u64 before, after;

	population_make(&first, 1, 1);
	before = kernel_bytes();
	population_make(&population, scale->in_memory, 1);
	after = kernel_bytes();
	printf("\nMemory: %.0f bytes for an operation with one watch on its own key, %u of them\n"
	       "(Slab and VmallocUsed of /proc/meminfo; event, operation, watch, key, table of keys)\n",
	       ((double)after - before) / scale->in_memory, scale->in_memory);
	print_result(((double)after - before) / scale->in_memory, "bytes",
		     "operation.memory.%u", scale->in_memory);
	population_end(&population);
	population_end(&first);
}

/* --- main ------------------------------------------------------------------- */

#define NEAR_BYTES	(16UL << 10)
#define AFAR_BYTES	(256UL << 20)

static void print_processor(void)
{
	char line[256];
	FILE *file = fopen("/proc/cpuinfo", "r");

	if (!file)
		return;
	while (fgets(line, sizeof(line), file)) {
		if (!strncmp(line, "model name", strlen("model name"))) {
			fputs(line, stdout);
			break;
		}
	}
	fclose(file);
}

/* Returns the extra cost of a load from memory over one from a cache; 0: unknown. */
static double measure_load(void)
{
	double near, afar;

	if (!clock_is_real()) {
		printf("Instructions are counted: what waiting for memory costs is not in it.\n");
		return 0;
	}
	near = load_cost(NEAR_BYTES);
	afar = load_cost(AFAR_BYTES);
	printf("A load that waits for another: %.1f ns within %lu KiB, %.1f ns within %lu MiB\n",
	       near, NEAR_BYTES >> 10, afar, AFAR_BYTES >> 20);
	printf("On an emulated processor (TCG) look at ratios only.\n");
	return afar - near;
}

static void usage(void)
{
	printf("Usage: operations [--quick] [--instruction-ns N]\n\n"
	       "What delayed operations of /dev/twheel cost, with few and with many pending.\n\n"
	       "  --quick             fewer operations and rounds: does it work?\n"
	       "  --instruction-ns N  the clock counts instructions, each as N ns (QEMU's -icount):\n"
	       "                      tell instructions\n"
	       "  --help              this text\n");
}

static unsigned int instruction_ns(const char *text)
{
	char *end;
	unsigned long ns = strtoul(text, &end, 10);

	if (!ns || *end || ns > UINT_MAX)
		errx(2, "--instruction-ns \"%s\" is not a number from 1 to %u",
		     text, UINT_MAX);
	return ns;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "quick", no_argument, NULL, 'q' },
		{ "instruction-ns", required_argument, NULL, 'i' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	const struct scale *scale = &full;
	double load;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'q':
			scale = &quick;
			break;
		case 'i':
			clock_instructions(instruction_ns(optarg));
			break;
		case 'h':
			usage();
			return 0;
		default:
			return 2;
		}
	}
	if (optind < argc)
		errx(2, "there is nothing to do with \"%s\"; see --help",
		     argv[optind]);

	print_processor();
	load = measure_load();
	bench_memory(scale);
	bench_in_vain(scale);
	bench_many(scale);
	bench_early(scale, load);
	return 0;
}
