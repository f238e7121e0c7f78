// SPDX-License-Identifier: GPL-2.0
/*
 * The wheel in userspace, beside a binary heap and a red-black tree.
 *
 * Usage: wheel [--quick | COUNT]
 *        wheel --pairs PAIRS COUNT
 *
 * kmod/wheel.c itself, built with the shim of tools/test/wheel.  The heap is what event
 * loops have: an array of 16-byte entries, and in each item the index of its entry, so
 * that it can be cancelled.  The tree is RB_*() of libbsd, with nodes in the items.
 *
 * Items have 64 bytes each and are due evenly over 2^20 ticks.  They are armed in random
 * order, and cancelled in another one, so that with many of them each is cold; they
 * expire in 1024 equal steps, and each is written to then.  Where time is measured,
 * repetitions of the three take turns, as other load comes and goes, and the median of
 * each is printed; but of 1e7 items in the tree, which take most of a minute, there is one
 * repetition only.  Where things are counted, that is of the wheel alone.
 *
 * Prints lines of "result", a name, a value and a unit.
 *
 * With --pairs it measures nothing: COUNT items are armed, and PAIRS times one of them, chosen
 * at random, is cancelled and armed for another tick.  tools/bench/instructions counts that.
 */
#include <bsd/sys/tree.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <linux/minmax.h>

#include "../../kmod/wheel.h"

#define SPREAD_BITS	20
#define STEPS		1024
#define HOLD		64	/* nodes for each hold of the lock, as in the module */
#define TICK_NS		65536

/* One level-3 slot: from where it begins, 32768 ticks. */
#define SLOT_BEGIN	(40ULL << 15)
#define SLOT_TICKS	(1ULL << 15)

enum { MIN_REPETITIONS = 3, MAX_REPETITIONS = 101 };

struct item {
	union {
		struct wheel_node node;
		size_t index;

		RB_ENTRY(item) branch;
	};
	u64 due;
	u64 expired;
} __attribute__((aligned(64)));

/**
 * struct bench - what all competitors have
 * @items: the items, in memory that is touched in random order.
 * @due: when each is due, in the order in which they are armed.
 * @arming: the order in which they are armed.
 * @cancelling: the order in which they are cancelled.
 * @nr: how many there are.
 */
struct bench {
	struct item *items;
	u64 *due;
	u32 *arming;
	u32 *cancelling;
	size_t nr;
};

static u64 random_state = 42;

/* splitmix64 */
static u64 draw(void)
{
	u64 z = random_state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/* The time that this thread has had the CPU: what others take does not count. */
static u64 cpu_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return time.tv_sec * 1000000000ULL + time.tv_nsec;
}

/* Memory in large pages if that can be, as the kernel has its own. */
static void *allocate(size_t size)
{
	size_t page = 1 << 21, whole = (size + page - 1) & ~(page - 1);
	void *memory = aligned_alloc(page, whole);

	if (!memory) {
		fprintf(stderr, "wheel: there is no memory for %zu bytes\n", size);
		exit(1);
	}
	madvise(memory, whole, MADV_HUGEPAGE);
	memset(memory, 0, size);
	return memory;
}

static u32 *shuffled(size_t nr)
{
	u32 *order = allocate(nr * sizeof(*order));
	size_t i;

	for (i = 0; i < nr; i++) {
		size_t j = draw() % (i + 1);

		order[i] = order[j];
		order[j] = i;
	}
	return order;
}

static struct bench bench_make(size_t nr)
{
	struct bench bench = {
		.items = allocate(nr * sizeof(struct item)),
		.due = allocate(nr * sizeof(u64)),
		.arming = shuffled(nr),
		.cancelling = shuffled(nr),
		.nr = nr,
	};
	size_t i;

	for (i = 0; i < nr; i++)
		bench.due[i] = 1 + draw() % ((1 << SPREAD_BITS) - 1);
	return bench;
}

static void bench_free(struct bench *bench)
{
	free(bench->items);
	free(bench->due);
	free(bench->arming);
	free(bench->cancelling);
}

/* --- the wheel -------------------------------------------------------------- */

static struct wheel wheel;

static void wheel_begin(size_t nr)
{
	(void)nr;
	wheel_init(&wheel, 0);
}

static void wheel_arm(struct item *item, u64 due)
{
	wheel_add(&wheel, &item->node, due, wheel.clk);
}

static void wheel_cancel(struct item *item)
{
	wheel_del(&wheel, &item->node);
}

/* Deal with what came out, as the owner of a wheel does; return how many. */
static size_t deal_with(struct list_head *out, u64 now)
{
	struct wheel_node *node, *safe;
	size_t nr = 0;

	list_for_each_entry_safe(node, safe, out, list) {
		wheel_del(&wheel, node);
		container_of(node, struct item, node)->expired = now;
		nr++;
	}
	return nr;
}

/* The work of a wheel's owner in one hold of its lock; false: nothing is left. */
static bool wheel_hold(u64 now, size_t *expired)
{
	unsigned int budget = HOLD;
	LIST_HEAD(out);
	bool more = wheel_advance(&wheel, now, &budget, &out) ||
		    wheel_prefetch(&wheel, now, &budget);

	*expired += deal_with(&out, now);
	return more;
}

static size_t wheel_expire(u64 now)
{
	size_t expired = 0;

	while (wheel_hold(now, &expired))
		;
	return expired;
}

/* --- a binary heap ---------------------------------------------------------- */

struct heap_entry {
	u64 due;
	struct item *item;
};

static struct {
	struct heap_entry *entries;	/* the children of i are 2 i + 1 and 2 i + 2 */
	size_t nr;
	size_t size;
} heap;

static void heap_begin(size_t nr)
{
	if (heap.size != nr) {
		free(heap.entries);
		heap.entries = allocate(nr * sizeof(*heap.entries));
		heap.size = nr;
	}
	heap.nr = 0;
}

static void heap_put(size_t i, struct heap_entry entry)
{
	heap.entries[i] = entry;
	entry.item->index = i;
}

static void heap_up(size_t i, struct heap_entry entry)
{
	while (i && heap.entries[(i - 1) / 2].due > entry.due) {
		heap_put(i, heap.entries[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	heap_put(i, entry);
}

static void heap_down(size_t i, struct heap_entry entry)
{
	size_t child;

	while ((child = 2 * i + 1) < heap.nr) {
		if (child + 1 < heap.nr &&
		    heap.entries[child + 1].due < heap.entries[child].due)
			child++;
		if (heap.entries[child].due >= entry.due)
			break;
		heap_put(i, heap.entries[child]);
		i = child;
	}
	heap_put(i, entry);
}

static void heap_arm(struct item *item, u64 due)
{
	heap_up(heap.nr++, (struct heap_entry){ due, item });
}

static void heap_cancel(struct item *item)
{
	size_t i = item->index;
	struct heap_entry last = heap.entries[--heap.nr];

	if (i == heap.nr)
		return;
	if (i && heap.entries[(i - 1) / 2].due > last.due)
		heap_up(i, last);
	else
		heap_down(i, last);
}

static size_t heap_expire(u64 now)
{
	size_t expired = 0;

	while (heap.nr && heap.entries[0].due <= now) {
		struct item *item = heap.entries[0].item;

		heap_cancel(item);
		item->expired = now;
		expired++;
	}
	return expired;
}

/* --- a red-black tree ------------------------------------------------------- */

static int item_compare(const struct item *a, const struct item *b)
{
	if (a->due != b->due)
		return a->due < b->due ? -1 : 1;
	return a < b ? -1 : a > b;
}

RB_HEAD(tree, item);
RB_PROTOTYPE(tree, item, branch, item_compare)
RB_GENERATE(tree, item, branch, item_compare)

static struct tree tree;
static struct item *tree_first;		/* cached, as timerqueue.c and hrtimer.c do */

static void tree_begin(size_t nr)
{
	(void)nr;
	RB_INIT(&tree);
	tree_first = NULL;
}

static void tree_arm(struct item *item, u64 due)
{
	item->due = due;
	RB_INSERT(tree, &tree, item);
	if (!tree_first || item_compare(item, tree_first) < 0)
		tree_first = item;
}

static void tree_cancel(struct item *item)
{
	if (item == tree_first)
		tree_first = RB_NEXT(tree, &tree, item);
	RB_REMOVE(tree, &tree, item);
}

static size_t tree_expire(u64 now)
{
	size_t expired = 0;

	while (tree_first && tree_first->due <= now) {
		struct item *item = tree_first;

		tree_cancel(item);
		item->expired = now;
		expired++;
	}
	return expired;
}

/* --- what it costs in time -------------------------------------------------- */

enum { WHEEL, HEAP, RBTREE, COMPETITORS };

/**
 * struct competitor - what is measured
 * @name: for the results.
 * @begin: have none armed, and the memory for so many.
 * @arm: arm an item.
 * @cancel: cancel it.
 * @expire: let all expire that are due, and return how many.
 * @repeated: of more items than these, one repetition has to do.
 */
static const struct competitor {
	const char *name;
	void (*begin)(size_t nr);
	void (*arm)(struct item *item, u64 due);
	void (*cancel)(struct item *item);
	size_t (*expire)(u64 now);
	size_t repeated;
} competitors[COMPETITORS] = {
	[WHEEL] = { "wheel", wheel_begin, wheel_arm, wheel_cancel, wheel_expire, SIZE_MAX },
	[HEAP] = { "heap", heap_begin, heap_arm, heap_cancel, heap_expire, SIZE_MAX },
	[RBTREE] = { "rbtree", tree_begin, tree_arm, tree_cancel, tree_expire, 1000000 },
};

enum { ARM, CANCEL, EXPIRE, KINDS };

struct times {
	double ns[MAX_REPETITIONS];
};

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(struct times *times, unsigned int nr)
{
	qsort(times->ns, nr, sizeof(times->ns[0]), compare_doubles);
	return times->ns[nr / 2];
}

static void wheel_arm_all(const struct competitor *competitor, const struct bench *bench)
{
	size_t i;

	for (i = 0; i < bench->nr; i++)
		competitor->arm(&bench->items[bench->arming[i]], bench->due[i]);
}

static void cancel_all(const struct competitor *competitor, const struct bench *bench)
{
	size_t i;

	for (i = 0; i < bench->nr; i++)
		competitor->cancel(&bench->items[bench->cancelling[i]]);
}

static void expire_all(const struct competitor *competitor, const struct bench *bench)
{
	size_t expired = 0;
	u64 step;

	for (step = 1; step <= STEPS; step++)
		expired += competitor->expire(step << (SPREAD_BITS - 10));
	if (expired != bench->nr) {
		fprintf(stderr, "wheel: of %zu items %zu expired\n", bench->nr, expired);
		exit(1);
	}
}

/*
 * One repetition: arm and cancel all, then arm all and let them expire.  What it takes
 * to have an empty wheel, heap or tree is not measured.
 */
static void wheel_measure(const struct competitor *competitor, const struct bench *bench,
			  double ns[KINDS])
{
	u64 start, armed, cancelled, expiring;

	competitor->begin(bench->nr);
	start = cpu_ns();
	wheel_arm_all(competitor, bench);
	armed = cpu_ns();
	cancel_all(competitor, bench);
	cancelled = cpu_ns();
	competitor->begin(bench->nr);
	wheel_arm_all(competitor, bench);
	expiring = cpu_ns();
	expire_all(competitor, bench);
	ns[ARM] = (double)(armed - start) / bench->nr;
	ns[CANCEL] = (double)(cancelled - armed) / bench->nr;
	ns[EXPIRE] = (double)(cpu_ns() - expiring) / bench->nr;
}

static unsigned int repetitions_of(const struct competitor *competitor, size_t nr,
				   unsigned int repetitions)
{
	return nr > competitor->repeated ? 1 : repetitions;
}

static void bench_times(size_t nr, unsigned int repetitions)
{
	static const char * const kinds[KINDS] = { "arm", "cancel", "expire" };
	static struct times times[COMPETITORS][KINDS];
	struct bench bench = bench_make(nr);
	unsigned int i, c, kind;

	for (i = 0; i < repetitions; i++) {
		for (c = 0; c < COMPETITORS; c++) {
			double ns[KINDS];

			if (i >= repetitions_of(&competitors[c], nr, repetitions))
				continue;
			wheel_measure(&competitors[c], &bench, ns);
			for (kind = 0; kind < KINDS; kind++)
				times[c][kind].ns[i] = ns[kind];
		}
	}
	for (kind = 0; kind < KINDS; kind++)
		for (c = 0; c < COMPETITORS; c++)
			printf("result w%d.%s.%s.%zu %.1f ns\n", kind == EXPIRE ? 2 : 1,
			       competitors[c].name, kinds[kind], nr,
			       median(&times[c][kind],
				      repetitions_of(&competitors[c], nr, repetitions)));
	fflush(stdout);
	bench_free(&bench);
}

/* --- what is counted -------------------------------------------------------- */

/**
 * struct counts - of a wheel that is advanced at each tick that has work
 * @wakeups: how often it was.
 * @empty: how often there was nothing to do.
 * @extra: how often there was only something to prefetch.
 * @most_per_hold: the most nodes that were touched in a hold.
 * @most_before_due: the most nodes that were moved at a tick before one came out.
 */
struct counts {
	u64 wakeups;
	u64 empty;
	u64 extra;
	u64 most_per_hold;
	u64 most_before_due;
};

static u64 moves(void)
{
	return wheel.cascaded + wheel.prefetched;
}

/* A wakeup at the tick @now: as many holds as it takes. */
static void count_wakeup(struct counts *counts, u64 now)
{
	u64 before = moves();
	size_t expired = 0;
	bool more;

	do {
		size_t expired_before = expired;
		u64 moves_before = moves(), cascaded = wheel.cascaded;

		more = wheel_hold(now, &expired);
		counts->most_per_hold = max(counts->most_per_hold,
					    moves() - moves_before +
					    expired - expired_before);
		if (!expired_before && expired)
			counts->most_before_due = max(counts->most_before_due,
						      moves_before - before +
						      wheel.cascaded - cascaded);
	} while (more);
	counts->wakeups++;
	counts->extra += !expired && moves() > before;
	counts->empty += !expired && moves() == before;
}

/* Arm all, and hop from one tick that has work to the next. */
static struct counts hop(const struct bench *bench)
{
	struct counts counts = {};

	competitors[WHEEL].begin(bench->nr);
	wheel_arm_all(&competitors[WHEEL], bench);
	while (wheel.armed)
		count_wakeup(&counts, wheel_next(&wheel));
	return counts;
}

/* How many different ticks the items are due at, which are all below 2^SPREAD_BITS. */
static size_t distinct_ticks(const struct bench *bench)
{
	bool *seen = allocate(1 << SPREAD_BITS);
	size_t i, distinct = 0;

	for (i = 0; i < bench->nr; i++) {
		distinct += !seen[bench->due[i]];
		seen[bench->due[i]] = true;
	}
	free(seen);
	return distinct;
}

static void bench_uniform(size_t nr)
{
	struct bench bench = bench_make(nr);
	struct counts counts = hop(&bench);

	printf("result w3.wheel.wakeups_per_tick.uniform.%zu %.5f ratio\n", nr,
	       (double)counts.wakeups / distinct_ticks(&bench));
	printf("result w3.wheel.empty.uniform.%zu %" PRIu64 " count\n", nr,
	       counts.empty);
	printf("result w4.wheel.most_per_hold.uniform.%zu %" PRIu64 " count\n", nr,
	       counts.most_per_hold);
	printf("result w4.wheel.most_before_due.uniform.%zu %" PRIu64 " count\n", nr,
	       counts.most_before_due);
	printf("result wheel.moves_per_event.%zu %.3f ratio\n", nr,
	       (double)moves() / nr);
	fflush(stdout);
	bench_free(&bench);
}

/* Everything at one tick. */
static void bench_one_tick(size_t nr)
{
	struct bench bench = bench_make(nr);
	struct counts counts;
	size_t i;

	for (i = 0; i < nr; i++)
		bench.due[i] = SLOT_BEGIN + 12345;
	counts = hop(&bench);
	printf("result w4.wheel.most_per_hold.one_tick.%zu %" PRIu64 " count\n", nr,
	       counts.most_per_hold);
	fflush(stdout);
	bench_free(&bench);
}

/* All in one slot of level 3. */
static struct bench bench_make_crowded(size_t nr)
{
	struct bench bench = bench_make(nr);
	size_t i;

	for (i = 0; i < nr; i++)
		bench.due[i] = SLOT_BEGIN + draw() % SLOT_TICKS;
	return bench;
}

static void bench_crowded(size_t nr)
{
	struct bench bench = bench_make_crowded(nr);
	struct counts counts = hop(&bench);

	printf("result w3.wheel.extra_per_256.crowded.%zu %.3f ratio\n", nr,
	       wheel.prefetched ? counts.extra * 256.0 / wheel.prefetched : 0);
	printf("result w3.wheel.empty.crowded.%zu %" PRIu64 " count\n", nr,
	       counts.empty);
	printf("result w4.wheel.most_per_hold.crowded.%zu %" PRIu64 " count\n", nr,
	       counts.most_per_hold);
	printf("result w4.wheel.most_before_due.crowded.%zu %" PRIu64 " count\n", nr,
	       counts.most_before_due);
	fflush(stdout);
	bench_free(&bench);
}

/* --- lateness --------------------------------------------------------------- */

/*
 * Time goes on by what the CPU needs, and where there is nothing to do, at once to the
 * next tick that has work, as if the machine had slept till then.
 */
struct simulation {
	u64 slept_ns;
	double worst_ticks;
};

static u64 simulated_ns(const struct simulation *simulation)
{
	return cpu_ns() + simulation->slept_ns;
}

static void note_lateness(struct simulation *simulation, struct list_head *out)
{
	struct wheel_node *node, *safe;

	list_for_each_entry_safe(node, safe, out, list) {
		u64 due_ns = wheel_due(node) * TICK_NS;
		double ticks = ((double)simulated_ns(simulation) - due_ns) / TICK_NS;

		wheel_del(&wheel, node);
		simulation->worst_ticks = max(simulation->worst_ticks, ticks);
	}
}

/* Without prefetch, each tick is one to look at. */
static void sleep_until_next(struct simulation *simulation, bool prefetch)
{
	u64 now_ns = simulated_ns(simulation);
	u64 next = prefetch ? wheel_next(&wheel) : now_ns / TICK_NS + 1;

	next = max(next, now_ns / TICK_NS + 1);
	simulation->slept_ns += next * TICK_NS - now_ns;
}

static double worst_lateness(const struct bench *bench, bool prefetch)
{
	struct simulation simulation = {};

	competitors[WHEEL].begin(bench->nr);
	wheel_arm_all(&competitors[WHEEL], bench);
	/* From well before the slot begins. */
	simulation.slept_ns = (SLOT_BEGIN - SLOT_TICKS) * TICK_NS -
			      simulated_ns(&simulation);
	while (wheel.armed) {
		u64 now = simulated_ns(&simulation) / TICK_NS;
		unsigned int budget = HOLD;
		LIST_HEAD(out);
		bool more = wheel_advance(&wheel, now, &budget, &out);

		if (prefetch && !more)
			more = wheel_prefetch(&wheel, now, &budget);
		note_lateness(&simulation, &out);
		if (!more)
			sleep_until_next(&simulation, prefetch);
	}
	return simulation.worst_ticks;
}

static void bench_lateness(size_t nr)
{
	struct bench bench = bench_make_crowded(nr);

	printf("result w4.wheel.worst_lateness.with_prefetch.%zu %.2f ticks\n", nr,
	       worst_lateness(&bench, true));
	printf("result w4.wheel.worst_lateness.without_prefetch.%zu %.2f ticks\n", nr,
	       worst_lateness(&bench, false));
	fflush(stdout);
	bench_free(&bench);
}

/* Measure one count. */
static void bench_count(size_t nr, size_t total)
{
	size_t repetitions = max_t(size_t, total / nr, MIN_REPETITIONS);

	bench_times(nr, min_t(size_t, repetitions, MAX_REPETITIONS));
	bench_uniform(nr);
}

static void bench_crowds(size_t nr)
{
	bench_one_tick(nr);
	bench_crowded(nr);
	bench_lateness(nr);
}

static void run_pairs(size_t pairs, size_t nr)
{
	struct bench bench = bench_make(nr);

	competitors[WHEEL].begin(nr);
	wheel_arm_all(&competitors[WHEEL], &bench);
	while (pairs--) {
		struct item *item = &bench.items[draw() % nr];

		wheel_cancel(item);
		wheel_arm(item, 1 + draw() % ((1 << SPREAD_BITS) - 1));
	}
	bench_free(&bench);
}

int main(int argc, char **argv)
{
	bool quick = argc == 2 && !strcmp(argv[1], "--quick");
	size_t only = argc == 2 && !quick ? strtoul(argv[1], NULL, 0) : 0;
	size_t most = quick ? 10000 : 10000000, total = quick ? 50000 : 5000000, nr;

	if (argc == 4 && !strcmp(argv[1], "--pairs") && atol(argv[2]) >= 0 && atol(argv[3]) > 0) {
		run_pairs(atol(argv[2]), atol(argv[3]));
		return 0;
	}
	if (argc > 2 || (argc == 2 && !quick && !only)) {
		fprintf(stderr, "Usage: wheel [--quick | COUNT | --pairs PAIRS COUNT]\n");
		return 2;
	}
	if (only) {
		bench_count(only, total);
		bench_crowds(only);
		return 0;
	}
	for (nr = 1000; nr <= most; nr *= 10)
		bench_count(nr, total);
	bench_crowds(quick ? 10000 : 1000000);
	return 0;
}
