// SPDX-License-Identifier: GPL-2.0
/*
 * What timers cost and how late they are: twheel's, timer_list and hrtimer beside each
 * other in one kernel.  tools/bench/kernel loads this module, which measures while it
 * is loaded, and takes the lines "result NAME VALUE UNIT" out of the kernel's log.
 *
 * arm and cancel: so many timers are armed in random order, and then all cancelled in
 * another random order, with delays of 60 to 600 s, so that none expires.  Results are
 * the median and the least time for one timer, over many rounds in which each interface
 * has its turn.
 *
 * expire: so many timers are armed, softirqs are kept off until all are due, and then
 * let go: what it takes until the last function was called, in CPU time for one timer.
 * There is no interrupt for each of them, and what an interrupt costs is not compared.
 *
 * late: timers of twheel and hrtimers are left to expire, one by one, at the same time;
 * the result is how much later than its tick, or its time, each one's function was
 * called.
 *
 * To be fair
 * ----------
 * All timers lie in one array, in items of one size, one cache line each, that are
 * taken in random order.  Times are worked out before, in the unit that the interface
 * takes, and are read in sequence.  All of them stay on one CPU, and all call the same
 * function, in softirq context: an hrtimer of the soft kind is armed and cancelled by
 * the same code as the hard one of a timerfd.
 *
 * What remains is that timers of timer_list are due at a jiffy and are up to 12.5 %
 * late, while twheel's and hrtimers are not, and that twheel leaves half of the CPU to
 * others while it has much to do, which CPU time does not show.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/jiffies.h>
#include <linux/kernel_stat.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/sched.h>
#include <linux/sort.h>
#include <linux/tick.h>
#include <linux/timer.h>
#include <linux/vmalloc.h>

#include "../kmod/compat.h"
#include "../kmod/twheel.h"

#define MAX_COUNTS	8
#define MAX_SAMPLES	2048

/* With fewer timers than this, there are more rounds in proportion. */
#define ROUND_TIMERS	100000U

/* Delays of timers that are cancelled. */
#define FAR_MIN_NS	(60ULL * NSEC_PER_SEC)
#define FAR_SPAN_NS	(540ULL * NSEC_PER_SEC)

/*
 * Timers that are to expire become due after all are armed, which takes this long for each.
 */
#define LEAD_NS_EACH	2000ULL

/* The same where lateness is measured and the timers have to be prepared too. */
#define LATE_LEAD_NS_EACH	20000ULL

/* How often a round is repeated in which the machine stood still for longer. */
#define TRIES_MAX		10

static char *what = "arm";
module_param(what, charp, 0444);
MODULE_PARM_DESC(what, "arm (and cancel), expire, late, or nothing: only the parameters (default arm)");
static char *only = "";
module_param(only, charp, 0444);
MODULE_PARM_DESC(only, "The one to measure, such as twheel_abs (default: all)");
static unsigned int counts[MAX_COUNTS] = { 1000 };
static unsigned int nr_counts = 1;
module_param_array(counts, uint, &nr_counts, 0444);
MODULE_PARM_DESC(counts, "How many timers (default 1000)");
static unsigned int rounds = 5;
module_param(rounds, uint, 0444);
MODULE_PARM_DESC(rounds, "How often each one has its turn (default 5)");
static unsigned int span_ms = 1000;
module_param(span_ms, uint, 0444);
MODULE_PARM_DESC(span_ms, "Over which time they expire (default 1000)");
static unsigned int tick_shift = 16;
module_param(tick_shift, uint, 0444);
MODULE_PARM_DESC(tick_shift, "That of twheel.ko (default 16)");
static char *load_name = "idle";
module_param_named(load, load_name, charp, 0444);
MODULE_PARM_DESC(load, "For names of results: what else the machine does (default idle)");

/* A timer of any kind, on a cache line of its own. */
struct item {
	union {
		struct twheel_timer twheel;
		struct timer_list timer_list;
		struct hrtimer hrtimer;
	};
} __aligned(64);

/**
 * struct load - timers, and the orders to arm and cancel them in
 * @items: the timers.
 * @nr: number of timers.
 * @arm_order: which one is armed first, second and so on.
 * @cancel_order: the same for cancelling.
 * @due_ns: when the first one that is armed is due, the second and so on.
 * @times: the same as the interface takes it.
 */
struct load {
	struct item *items;
	unsigned int nr;
	u32 *arm_order;
	u32 *cancel_order;
	u64 *due_ns;
	u64 *times;
};

/**
 * struct competitor - an interface for timers
 * @name: for the results.
 * @setup: prepare a timer.
 * @time: what arming takes for a time on CLOCK_MONOTONIC.
 * @arm_all: arm all timers of a load.
 * @cancel_all: cancel them.
 */
struct competitor {
	const char *name;
	void (*setup)(struct item *item);
	u64 (*time)(u64 due_ns);
	void (*arm_all)(const struct load *load);
	void (*cancel_all)(const struct load *load);
};

/**
 * struct lateness - how late timers of an interface are
 * @load: the timers.
 * @due_ns: when the function of each of them should be called.
 * @ns: how much later each was called, in all rounds.
 * @round_ns: the part of @ns for this round; NULL: lateness is not measured.
 * @first_ns: no timer of this round is due before this time.
 * @early: number of functions called too early, which count as 0 ns late.
 */
struct lateness {
	struct load load;
	u64 *due_ns;
	u32 *ns;
	u32 *round_ns;
	u64 first_ns;
	unsigned int early;
};

/* Results of many passes. */
struct samples {
	unsigned int nr;
	u64 ns[MAX_SAMPLES];
};

/* Timers that have expired; all functions are called on one CPU, in softirq context. */
static DECLARE_COMPLETION(all_expired);
static unsigned int nr_expired, nr_armed;
static struct lateness twheel_lateness, hrtimer_lateness;

static struct rnd_state random;

/* --- expiry ----------------------------------------------------------------- */

static void note_lateness(struct lateness *lateness, const struct item *item)
{
	size_t i = item - lateness->load.items;
	u64 now_ns = ktime_get_ns(), due_ns = lateness->due_ns[i];

	if (now_ns < due_ns)
		lateness->early++;
	else
		lateness->round_ns[i] = min_t(u64, now_ns - due_ns, U32_MAX);
}

static __always_inline void item_expired(const struct item *item,
					 struct lateness *lateness)
{
	if (lateness && lateness->round_ns)
		note_lateness(lateness, item);
	if (++nr_expired == nr_armed)
		complete(&all_expired);
}

static void expect_to_expire(unsigned int nr)
{
	nr_armed = nr;
	nr_expired = 0;
	reinit_completion(&all_expired);
}

/* --- the interfaces --------------------------------------------------------- */

static __always_inline void
for_all_arm(const struct load *load, void (*arm)(struct item *item, u64 time))
{
	unsigned int i;

	for (i = 0; i < load->nr; i++)
		arm(&load->items[load->arm_order[i]], load->times[i]);
}

static __always_inline void
for_all_cancel(const struct load *load, void (*cancel)(struct item *item))
{
	unsigned int i;

	for (i = 0; i < load->nr; i++)
		cancel(&load->items[load->cancel_order[i]]);
}

static void twheel_expired(struct twheel_timer *timer)
{
	item_expired(container_of(timer, struct item, twheel), &twheel_lateness);
}

static void twheel_setup(struct item *item)
{
	twheel_timer_setup(&item->twheel, twheel_expired);
}

static u64 twheel_abs_time(u64 due_ns)
{
	return due_ns;
}

static u64 twheel_rel_time(u64 due_ns)
{
	return due_ns - ktime_get_ns();
}

static void twheel_abs_arm(struct item *item, u64 time)
{
	twheel_timer_arm(&item->twheel, time, 0, TWHEEL_TIMER_ABS);
}

static void twheel_rel_arm(struct item *item, u64 time)
{
	twheel_timer_arm(&item->twheel, time, 0, TWHEEL_TIMER_REL);
}

static void twheel_cancel(struct item *item)
{
	twheel_timer_cancel(&item->twheel);
}

static void twheel_abs_arm_all(const struct load *load)
{
	for_all_arm(load, twheel_abs_arm);
}

static void twheel_rel_arm_all(const struct load *load)
{
	for_all_arm(load, twheel_rel_arm);
}

static void twheel_cancel_all(const struct load *load)
{
	for_all_cancel(load, twheel_cancel);
}

static void timer_list_expired(struct timer_list *timer)
{
	item_expired(container_of(timer, struct item, timer_list), NULL);
}

static void timer_list_setup(struct item *item)
{
	timer_setup(&item->timer_list, timer_list_expired, TIMER_PINNED);
}

static u64 timer_list_time(u64 due_ns)
{
	return jiffies + nsecs_to_jiffies(due_ns - ktime_get_ns()) + 1;
}

static void timer_list_arm(struct item *item, u64 time)
{
	mod_timer(&item->timer_list, time);
}

static void timer_list_cancel(struct item *item)
{
	timer_delete(&item->timer_list);
}

static void timer_list_arm_all(const struct load *load)
{
	for_all_arm(load, timer_list_arm);
}

static void timer_list_cancel_all(const struct load *load)
{
	for_all_cancel(load, timer_list_cancel);
}

static enum hrtimer_restart hrtimer_expired(struct hrtimer *timer)
{
	item_expired(container_of(timer, struct item, hrtimer), &hrtimer_lateness);
	return HRTIMER_NORESTART;
}

static void hrtimer_item_setup(struct item *item)
{
	twheel_hrtimer_setup(&item->hrtimer, hrtimer_expired, CLOCK_MONOTONIC,
			     HRTIMER_MODE_ABS_PINNED_SOFT);
}

static u64 hrtimer_time(u64 due_ns)
{
	return due_ns;
}

static void hrtimer_arm(struct item *item, u64 time)
{
	hrtimer_start(&item->hrtimer, ns_to_ktime(time), HRTIMER_MODE_ABS_PINNED_SOFT);
}

static void hrtimer_item_cancel(struct item *item)
{
	hrtimer_cancel(&item->hrtimer);
}

static void hrtimer_arm_all(const struct load *load)
{
	for_all_arm(load, hrtimer_arm);
}

static void hrtimer_cancel_all(const struct load *load)
{
	for_all_cancel(load, hrtimer_item_cancel);
}

enum {
	TWHEEL_ABS,
	TWHEEL_REL,
	TIMER_LIST,
	HRTIMER,
	NR_COMPETITORS,
};

static const struct competitor competitors[NR_COMPETITORS] = {
	[TWHEEL_ABS] = {
		.name = "twheel_abs",
		.setup = twheel_setup,
		.time = twheel_abs_time,
		.arm_all = twheel_abs_arm_all,
		.cancel_all = twheel_cancel_all,
	},
	[TWHEEL_REL] = {
		.name = "twheel_rel",
		.setup = twheel_setup,
		.time = twheel_rel_time,
		.arm_all = twheel_rel_arm_all,
		.cancel_all = twheel_cancel_all,
	},
	[TIMER_LIST] = {
		.name = "timer_list",
		.setup = timer_list_setup,
		.time = timer_list_time,
		.arm_all = timer_list_arm_all,
		.cancel_all = timer_list_cancel_all,
	},
	[HRTIMER] = {
		.name = "hrtimer",
		.setup = hrtimer_item_setup,
		.time = hrtimer_time,
		.arm_all = hrtimer_arm_all,
		.cancel_all = hrtimer_cancel_all,
	},
};

static struct samples arm_samples[NR_COMPETITORS];
static struct samples cancel_samples[NR_COMPETITORS];

/* --- the CPU ---------------------------------------------------------------- */

#ifdef CONFIG_UML
/*
 * User-mode Linux is one thread of its host, whose other processes must not count. So ask
 * the host for the time of the thread, by a system call of the host.
 */
static u64 cpu_ns(void)
{
	const long clock_gettime_nr = 228, thread_cputime = 3;
	s64 time[2] = {};
	long ret;

	asm volatile("syscall"
		     : "=a" (ret)
		     : "a" (clock_gettime_nr), "D" (thread_cputime), "S" (time)
		     : "rcx", "r11", "memory");
	return ret ? 0 : time[0] * NSEC_PER_SEC + time[1];
}
#else
/* The time for which this CPU was not idle. */
static u64 cpu_ns(void)
{
	return ktime_get_ns() -
	       get_cpu_idle_time_us(raw_smp_processor_id(), NULL) * NSEC_PER_USEC;
}
#endif

/* Keep the CPU busy, with softirqs off. */
static void hold_off_softirqs_until(u64 end_ns)
{
	while (ktime_get_ns() < end_ns)
		udelay(5);
}

/* CPU time at the end of a program's hold_until_ns. */
static u64 released_ns;

static int get_cpu_ns(char *buffer, const struct kernel_param *param)
{
	return sysfs_emit(buffer, "%llu\n", cpu_ns() - released_ns);
}

static int set_hold_until_ns(const char *value, const struct kernel_param *param)
{
	u64 end_ns;
	int ret = kstrtou64(value, 0, &end_ns);

	if (ret)
		return ret;
	local_bh_disable();
	hold_off_softirqs_until(end_ns);
	released_ns = cpu_ns();
	local_bh_enable();
	return 0;
}

static const struct kernel_param_ops cpu_ns_ops = { .get = get_cpu_ns };
static const struct kernel_param_ops hold_until_ns_ops = { .set = set_hold_until_ns };

module_param_cb(hold_until_ns, &hold_until_ns_ops, NULL, 0200);
MODULE_PARM_DESC(hold_until_ns, "For programs: written, it keeps softirqs off this CPU until then");
module_param_cb(cpu_ns, &cpu_ns_ops, NULL, 0444);
MODULE_PARM_DESC(cpu_ns, "For programs: CPU time since that ended");

/* --- loads ------------------------------------------------------------------ */

static u64 random_below(u64 bound)
{
	u64 value = prandom_u32_state(&random);

	return (value << 32 | prandom_u32_state(&random)) % bound;
}

static void shuffle(u32 *order, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		order[i] = i;
	for (i = nr; i > 1; i--) {
		unsigned int other = random_below(i);

		swap(order[i - 1], order[other]);
	}
}

static void load_free(struct load *load)
{
	vfree(load->items);
	vfree(load->arm_order);
	vfree(load->cancel_order);
	vfree(load->due_ns);
	vfree(load->times);
}

static int load_alloc(struct load *load, unsigned int nr)
{
	*load = (struct load){
		.items = vzalloc(array_size(nr, sizeof(*load->items))),
		.nr = nr,
		.arm_order = vzalloc(array_size(nr, sizeof(*load->arm_order))),
		.cancel_order = vzalloc(array_size(nr, sizeof(*load->cancel_order))),
		.due_ns = vzalloc(array_size(nr, sizeof(*load->due_ns))),
		.times = vzalloc(array_size(nr, sizeof(*load->times))),
	};
	if (load->items && load->arm_order && load->cancel_order && load->due_ns &&
	    load->times)
		return 0;
	load_free(load);
	return -ENOMEM;
}

/* Make new orders, and random times in the @span_ns after @first_ns. */
static void load_shuffle(struct load *load, u64 first_ns, u64 span_ns)
{
	unsigned int i;

	shuffle(load->arm_order, load->nr);
	shuffle(load->cancel_order, load->nr);
	for (i = 0; i < load->nr; i++)
		load->due_ns[i] = first_ns + random_below(span_ns);
}

/* Prepare the load for a competitor, with times @shift_ns later than shuffled. */
static void load_prepare(struct load *load, const struct competitor *competitor,
			 u64 shift_ns)
{
	unsigned int i;

	for (i = 0; i < load->nr; i++) {
		competitor->setup(&load->items[i]);
		load->times[i] = competitor->time(load->due_ns[i] + shift_ns);
	}
}

/* --- results ---------------------------------------------------------------- */

static int compare_u64(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

static int compare_u32(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return x < y ? -1 : x > y;
}

static void samples_add(struct samples *samples, u64 ns)
{
	samples->ns[samples->nr++] = ns;
}

static void print_result(const char *name, const char *action, unsigned int nr,
			 const char *suffix, u64 ns)
{
	u64 tenths = (ns * 10 + nr / 2) / nr;

	pr_info("twheel_benchmark: result k.%s.%s.%u%s %llu.%llu ns\n", name, action,
		nr, suffix, tenths / 10, tenths % 10);
}

/* Print the median and the least time for one timer. */
static void samples_print(struct samples *samples, const char *name,
			  const char *action, unsigned int nr)
{
	if (!samples->nr)
		return;
	sort(samples->ns, samples->nr, sizeof(samples->ns[0]), compare_u64, NULL);
	print_result(name, action, nr, "", samples->ns[samples->nr / 2]);
	print_result(name, action, nr, ".min", samples->ns[0]);
	samples->nr = 0;
}

static void lateness_print(const char *name, struct lateness *lateness)
{
	static const struct {
		const char *name;
		unsigned int per_mille;
	} parts[] = {
		{ "p50", 500 }, { "p99", 990 }, { "p999", 999 }, { "max", 1000 },
	};
	unsigned int i, nr = lateness->load.nr * rounds;
	u32 *ns = lateness->ns;

	sort(ns, nr, sizeof(*ns), compare_u32, NULL);
	for (i = 0; i < ARRAY_SIZE(parts); i++)
		pr_info("twheel_benchmark: result l1.%s.%s.%s %u ns\n", name, parts[i].name,
			load_name, ns[(u64)(nr - 1) * parts[i].per_mille / 1000]);
	pr_info("twheel_benchmark: result l2.kernel.%s.early.%s %u count\n", name, load_name,
		lateness->early);
}

/* --- what is measured ------------------------------------------------------- */

static bool is_wanted(const struct competitor *competitor)
{
	return !*only || !strcmp(only, competitor->name);
}

static void pass_arm(const struct load *load, unsigned int i)
{
	u64 begin_ns, armed_ns;

	begin_ns = cpu_ns();
	competitors[i].arm_all(load);
	armed_ns = cpu_ns();
	competitors[i].cancel_all(load);
	samples_add(&cancel_samples[i], cpu_ns() - armed_ns);
	samples_add(&arm_samples[i], armed_ns - begin_ns);
}

/* Orders and times are new in each round, or the CPU would learn to predict them. */
static void round_arm(struct load *load)
{
	unsigned int i;

	load_shuffle(load, FAR_MIN_NS, FAR_SPAN_NS);
	for (i = 0; i < NR_COMPETITORS; i++) {
		if (!is_wanted(&competitors[i]))
			continue;
		load_prepare(load, &competitors[i], ktime_get_ns());
		pass_arm(load, i);
		cond_resched();
	}
}

static void print_arm(unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < NR_COMPETITORS; i++) {
		samples_print(&arm_samples[i], competitors[i].name, "arm", nr);
		samples_print(&cancel_samples[i], competitors[i].name, "cancel", nr);
	}
}

/* A timer of timer_list may be late by an eighth of the delay it was armed with. */
static u64 all_due_ns(const struct load *load)
{
	u64 lead_ns = load->nr * LEAD_NS_EACH, span_ns = span_ms * NSEC_PER_MSEC;

	return (lead_ns + span_ns) / 8 * 9 + 3 * TICK_NSEC;
}

static void pass_expire(struct load *load, unsigned int i)
{
	u64 begin_ns = ktime_get_ns(), released_ns;

	load_prepare(load, &competitors[i], begin_ns);
	expect_to_expire(load->nr);
	local_bh_disable();
	competitors[i].arm_all(load);
	hold_off_softirqs_until(begin_ns + all_due_ns(load));
	released_ns = cpu_ns();
	local_bh_enable();
	wait_for_completion(&all_expired);
	samples_add(&arm_samples[i], cpu_ns() - released_ns);
}

static void round_expire(struct load *load)
{
	unsigned int i;

	load_shuffle(load, load->nr * LEAD_NS_EACH, span_ms * NSEC_PER_MSEC);
	for (i = 0; i < NR_COMPETITORS; i++)
		if (is_wanted(&competitors[i]) && i != TWHEEL_REL)
			pass_expire(load, i);
}

static void print_expire(unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < NR_COMPETITORS; i++)
		samples_print(&arm_samples[i], competitors[i].name, "expire", nr);
}

static void lateness_free(struct lateness *lateness)
{
	lateness->round_ns = NULL;
	load_free(&lateness->load);
	vfree(lateness->due_ns);
	vfree(lateness->ns);
}

static int lateness_alloc(struct lateness *lateness, unsigned int nr)
{
	int ret = load_alloc(&lateness->load, nr);

	if (ret)
		return ret;
	lateness->due_ns = vzalloc(array_size(nr, sizeof(*lateness->due_ns)));
	lateness->ns = vzalloc(array3_size(nr, rounds, sizeof(*lateness->ns)));
	if (lateness->due_ns && lateness->ns)
		return 0;
	lateness_free(lateness);
	return -ENOMEM;
}

/*
 * Functions should be called at the next tick of 2^tick_shift ns, after at least @lead_ns.
 */
static void lateness_prepare(struct lateness *lateness, unsigned int round, u64 lead_ns,
			     const struct competitor *competitor, unsigned int shift)
{
	struct load *load = &lateness->load;
	u64 tick_ns = 1ULL << shift, now_ns = ktime_get_ns();
	unsigned int i;

	lateness->round_ns = lateness->ns + (size_t)round * load->nr;
	memset(lateness->round_ns, 0, array_size(load->nr, sizeof(*lateness->round_ns)));
	lateness->first_ns = now_ns + lead_ns;
	load_shuffle(load, lead_ns, span_ms * NSEC_PER_MSEC);
	load_prepare(load, competitor, now_ns);
	for (i = 0; i < load->nr; i++)
		lateness->due_ns[load->arm_order[i]] =
			(load->due_ns[i] + now_ns + tick_ns - 1) & ~(tick_ns - 1);
}

/*
 * The timers of both are armed at the same time, so that what stops the machine for a
 * while, where it is a virtual one, stops both.  All have to be armed before the first
 * may be due, or the lateness of some would be that of arming: false.
 */
static bool try_round_late(struct lateness *twheel, struct lateness *hrtimer,
			   unsigned int round, u64 lead_ns)
{
	u64 armed_ns;

	lateness_prepare(twheel, round, lead_ns, &competitors[TWHEEL_ABS], tick_shift);
	lateness_prepare(hrtimer, round, lead_ns, &competitors[HRTIMER], 0);
	expect_to_expire(twheel->load.nr + hrtimer->load.nr);
	competitors[TWHEEL_ABS].arm_all(&twheel->load);
	competitors[HRTIMER].arm_all(&hrtimer->load);
	armed_ns = ktime_get_ns();
	wait_for_completion(&all_expired);
	return armed_ns < min(twheel->first_ns, hrtimer->first_ns);
}

/* The machine may stand still for a while, but not in every attempt. */
static int round_late(struct lateness *twheel, struct lateness *hrtimer, unsigned int round)
{
	u64 lead_ns = twheel->load.nr * LATE_LEAD_NS_EACH;
	unsigned int tries;

	for (tries = 0; tries < TRIES_MAX; tries++, lead_ns *= 2)
		if (try_round_late(twheel, hrtimer, round, lead_ns))
			return 0;
	pr_err("twheel_benchmark: some timers were due before all were armed\n");
	return -ETIME;
}

static int measure_late(unsigned int nr)
{
	unsigned int round;
	int ret = lateness_alloc(&twheel_lateness, nr);

	if (ret)
		return ret;
	ret = lateness_alloc(&hrtimer_lateness, nr);
	if (ret)
		goto out;
	for (round = 0; round < rounds && !ret; round++)
		ret = round_late(&twheel_lateness, &hrtimer_lateness, round);
	if (!ret) {
		lateness_print(competitors[TWHEEL_ABS].name, &twheel_lateness);
		lateness_print(competitors[HRTIMER].name, &hrtimer_lateness);
	}
	lateness_free(&hrtimer_lateness);
out:
	lateness_free(&twheel_lateness);
	return ret;
}

static void measure_rounds(struct load *load, unsigned int nr_rounds,
			   void (*round)(struct load *load),
			   void (*print)(unsigned int nr))
{
	unsigned int i;

	for (i = 0; i < nr_rounds; i++)
		round(load);
	print(load->nr);
}

static int measure_cost(unsigned int nr)
{
	bool arm = !strcmp(what, "arm");
	unsigned int times = arm ? max(ROUND_TIMERS / nr, 1U) : 1;
	struct load load;
	int ret;

	if (rounds > MAX_SAMPLES / times) {
		pr_err("twheel_benchmark: rounds=%u is too much with %u timers: at most %u\n",
		       rounds, nr, MAX_SAMPLES / times);
		return -EINVAL;
	}
	ret = load_alloc(&load, nr);
	if (ret)
		return ret;
	if (arm)
		measure_rounds(&load, rounds * times, round_arm, print_arm);
	else
		measure_rounds(&load, rounds, round_expire, print_expire);
	load_free(&load);
	return ret;
}

static int measure(unsigned int nr)
{
	if (!nr || !rounds)
		return -EINVAL;
	if (!strcmp(what, "late"))
		return measure_late(nr);
	if (!strcmp(what, "arm") || !strcmp(what, "expire"))
		return measure_cost(nr);
	return -EINVAL;
}

/* Keep the process that loads the module on its present CPU. */
static int __init benchmark_init(void)
{
	unsigned int i;
	int ret;

	if (!strcmp(what, "nothing"))
		return 0;
	prandom_seed_state(&random, 1);
	ret = set_cpus_allowed_ptr(current, cpumask_of(raw_smp_processor_id()));
	for (i = 0; i < nr_counts && !ret; i++)
		ret = measure(counts[i]);
	return ret;
}
module_init(benchmark_init);

/* No timer is armed. */
static void __exit benchmark_exit(void)
{
}
module_exit(benchmark_exit);

MODULE_DESCRIPTION("Benchmark of twheel's timers");
MODULE_LICENSE("GPL");
