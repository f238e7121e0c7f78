// SPDX-License-Identifier: GPL-2.0
/*
 * CPUs: making the bases of each CPU, following the CPUs that come and go, and freeing
 * the bases at the end.
 *
 * The bases of a role are made when it is first used, for the CPUs that are up; for
 * another CPU, they are made when it comes up for the first time.  They stay until the
 * module is unloaded.  Those of CLOCK_MONOTONIC for events, which a file has before it is
 * configured, and for timers, which are set up in any context, are made at once.  The
 * wheels that a base needs after its clock was set back are made when that has happened.
 *
 * Nodes can be armed on a base while it is online.  When its CPU goes down, the base goes
 * offline.  As soon as no run of the base is under way, its nodes move to another base
 * in batches, the youngest first, each to the front of its tick.  The kernel moves the
 * base's hrtimer to another CPU, like all hrtimers of that CPU.  After the CPU has come
 * back, the next run that ends on another CPU kicks it to set the hrtimer there again.
 * If the kick is quicker than the return from the hrtimer's callback, the hrtimer stays
 * on the other CPU, and the run after that kicks again.
 */
#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/slab.h>

#include "base_hold.h"
#include "clock.h"
#include "cpu.h"

static DEFINE_PER_CPU(unsigned int, offline_count);
/* A bit for each role that has a base on each CPU that is up. */
static unsigned long roles_in_use;
static enum cpuhp_state hotplug_state = CPUHP_INVALID;
static void (*base_made)(struct base *base);
static struct clock_notice realtime_notice;
static bool follows_realtime;

/* --- making of one base ----------------------------------------------------- */

/* Returns 0, -ENOMEM or -ENOSPC. */
static int base_create(unsigned int cpu, unsigned int role)
{
	struct base *base;
	int number;

	base = kvzalloc_node(struct_size(base, wheel, 1),
			     GFP_KERNEL | __GFP_NOWARN, cpu_to_node(cpu));
	if (!base)
		return -ENOMEM;
	number = base_give_number(base);
	if (number < 0) {
		kvfree(base);
		return number;
	}
	base_init(base, number, cpu, role);
	/* Pairs with grow_bases(). */
	smp_store_release(per_cpu_ptr(&twheel_bases[role], cpu), base);
	/*
	 * Was CLOCK_REALTIME set back since base_init() read it?  If grow_bases() does not
	 * see the base, we see the new time.  An empty base needs no more wheels.
	 */
	smp_mb();
	base_go_back(base);
	base_made(base);
	return 0;
}

/* Make the base of a CPU and role, unless there is one.  Returns as base_create(). */
static int make_base(unsigned int cpu, unsigned int role)
{
	return base_get(cpu, role) ? 0 : base_create(cpu, role);
}

/* Make the bases of a CPU, of all roles that are in use. */
static int make_bases(unsigned int cpu)
{
	unsigned int role;
	int ret = 0;

	for (role = 0; role < BASE_ROLES && !ret; role++)
		if (roles_in_use & BIT(role))
			ret = make_base(cpu, role);
	return ret;
}

/* --- a clock that is set back ----------------------------------------------- */

/* If the clock of a base was set back, make the wheels that it needs then. */
static void grow_if_set_back(struct base *base)
{
	const unsigned int nr = WHEELS_MAX - 1;
	struct wheel *more;
	unsigned int i;

	if (!base_go_back(base))
		return;
	/* Without memory, nodes are late, and the next setting of the clock tries again. */
	more = kvmalloc_node(nr * sizeof(*more), GFP_KERNEL | __GFP_NOWARN,
			     cpu_to_node(base->cpu));
	if (!more)
		return;
	for (i = 0; i < nr; i++)
		wheel_init(&more[i], 0);
	base_grow(base, more);
}

/* CLOCK_REALTIME was set, perhaps back. */
static void grow_bases(struct work_struct *work)
{
	unsigned int cpu, kind;

	for (kind = 0; kind < BASE_KINDS; kind++) {
		unsigned int role = base_role(kind, BASE_REALTIME);

		for_each_possible_cpu(cpu) {
			/* Pairs with base_create(). */
			struct base *base = smp_load_acquire(per_cpu_ptr(&twheel_bases[role],
									 cpu));

			if (base)
				grow_if_set_back(base);
		}
	}
}

/* --- making of bases -------------------------------------------------------- */

/* Begin to be told when CLOCK_REALTIME is set.  Called once at the most. */
static void follow_realtime(void)
{
	if (follows_realtime)
		return;
	clock_notice_begin(&realtime_notice, grow_bases);
	follows_realtime = true;
}

/* The slow path of bases_use(). */
static int use_role(unsigned int role)
{
	static DEFINE_MUTEX(mutex);
	unsigned int cpu;
	int ret = 0;

	cpus_read_lock();
	mutex_lock(&mutex);
	if (base_role_clock(role) == BASE_REALTIME)
		follow_realtime();
	for_each_online_cpu(cpu) {
		ret = make_base(cpu, role);
		if (ret)
			break;
	}
	if (!ret)
		/* Pairs with bases_use(). */
		smp_store_release(&roles_in_use, roles_in_use | BIT(role));
	mutex_unlock(&mutex);
	cpus_read_unlock();
	return ret;
}

/**
 * bases_use() - make sure that there are bases for a kind of nodes and a clock
 * @kind: the kind.
 * @clock: the clock; with BASE_TIMERS, BASE_MONOTONIC.
 *
 * They stay until bases_exit().  If it fails, the bases that were made stay for the next
 * attempt.
 *
 * Context: a task; sleeps, but takes no lock if there are bases already.
 *
 * Return: 0; -ENOMEM; -ENOSPC, there are as many bases as a node can name.
 */
int bases_use(enum base_kind kind, enum base_clock clock)
{
	unsigned int role = base_role(kind, clock);

	/* Pairs with use_role(): with the bit, its bases are seen. */
	return smp_load_acquire(&roles_in_use) & BIT(role) ? 0 : use_role(role);
}

/* --- nodes that move to another base ---------------------------------------- */

/* Put a node before all nodes of its tick that are on the base that is held. */
static void place_older(struct base_hold *hold, struct twheel_node *node)
{
	struct base *base = hold->base;

	base_assert_held(hold);
	hold_wants(hold, wheels_add_older(&base->wheels, &node->wheel,
					  wheel_due(&node->wheel), hold_tick(hold)));
}

/* Take a node out, the youngest of its tick; NULL: there is none. */
static struct twheel_node *base_pop(struct base *base)
{
	struct wheel_node *node = wheels_pop(&base->wheels);

	if (!node && !list_empty(&base->expired)) {
		node = list_last_entry(&base->expired, struct wheel_node, list);
		wheels_del(&base->wheels, node);
	}
	return node ? container_of(node, struct twheel_node, wheel) : NULL;
}

/*
 * Take some nodes of a base that is offline; false: none is left.  During a run none is
 * taken, because a timer whose function is running must not move.
 */
static bool take_batch(struct base *base, struct list_head *nodes)
{
	unsigned int budget = BASE_BATCH;
	struct base_hold hold = {};
	struct twheel_node *node;
	bool running;

	hold_enter(&hold, base);
	running = base->running;
	while (!running && budget-- && (node = base_pop(base))) {
		WRITE_ONCE(node->base, BASE_MIGRATING);
		list_add_tail(&node->wheel.list, nodes);
		hold.touched++;
	}
	hold_leave(&hold);
	return running || !list_empty(nodes);
}

/* Put nodes, the youngest first, on the base that serves instead of @base. */
static void put_batch(const struct base *base, struct list_head *nodes)
{
	struct base_hold hold = {};

	hold_enter_cpu(&hold, base->role, base->cpu);
	/* Read the clock: the last tick that the base has read may be long ago. */
	hold_now_ns(&hold);
	while (!list_empty(nodes)) {
		struct twheel_node *node =
			list_first_entry(nodes, struct twheel_node, wheel.list);

		list_del(&node->wheel.list);
		place_older(&hold, node);
		WRITE_ONCE(node->base, hold.base->number);
		hold.touched++;
	}
	hold_leave(&hold);
}

static void base_evacuate(struct base *base)
{
	bool more, taken;

	do {
		LIST_HEAD(nodes);

		local_irq_disable();
		more = take_batch(base, &nodes);
		taken = !list_empty(&nodes);
		if (taken)
			put_batch(base, &nodes);
		local_irq_enable();
		if (more && !taken)
			base_wait_for_function(base);
		cond_resched();
	} while (more);
}

/* --- CPUs that come and go -------------------------------------------------- */

/**
 * bases_offline_count() - how often a CPU went down since the module was loaded
 * @cpu: a possible CPU.
 */
unsigned int bases_offline_count(unsigned int cpu)
{
	return READ_ONCE(per_cpu(offline_count, cpu));
}

static void base_set_online(struct base *base, bool online)
{
	raw_spin_lock_irq(&base->lock);
	base->online = online;
	raw_spin_unlock_irq(&base->lock);
}

/* If there is no memory for the bases of a CPU, it does not come up. */
static int base_cpu_up(unsigned int cpu)
{
	unsigned int role;
	int ret = make_bases(cpu);

	if (ret)
		return ret;
	for (role = 0; role < BASE_ROLES; role++)
		if (base_get(cpu, role))
			base_set_online(base_get(cpu, role), true);
	base_open_cpu(cpu);
	return 0;
}

/* Called in a task on that CPU, which is still online. */
static int base_cpu_down(unsigned int cpu)
{
	unsigned int role;

	base_close_cpu(cpu);
	WRITE_ONCE(per_cpu(offline_count, cpu), per_cpu(offline_count, cpu) + 1);
	for (role = 0; role < BASE_ROLES; role++) {
		struct base *base = base_get(cpu, role);

		if (!base)
			continue;
		base_set_online(base, false);
		base_evacuate(base);
	}
	return 0;
}

/* --- beginning and end ------------------------------------------------------ */

static void free_bases(unsigned int role)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		struct base *base = base_get(cpu, role);

		if (!base)
			continue;
		kvfree(base->more_wheels);
		kvfree(base);
		per_cpu(twheel_bases[role], cpu) = NULL;
	}
}

/**
 * bases_init() - make the first bases and follow the CPUs
 * @ops: the functions that handle events which are due.
 * @made: called for each base after it was made, in a task that may sleep.
 *
 * Return: 0, or an errno: then the caller calls bases_ignore_changes() and bases_exit().
 */
int bases_init(const struct base_ops *ops, void (*made)(struct base *base))
{
	int ret;

	base_set_ops(ops);
	base_made = made;
	ret = base_numbers_init((size_t)nr_cpu_ids * BASE_ROLES) ?:
	      bases_use(BASE_EVENTS, BASE_MONOTONIC) ?:
	      bases_use(BASE_TIMERS, BASE_MONOTONIC);
	if (ret)
		return ret;
	ret = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "twheel:online",
				base_cpu_up, base_cpu_down);
	if (ret < 0)
		return ret;
	hotplug_state = ret;
	return 0;
}

/**
 * bases_ignore_changes() - make no more bases when CPUs come up, nor wheels for clocks
 *
 * To be called when nothing is armed, and nothing will be.
 */
void bases_ignore_changes(void)
{
	if (follows_realtime)
		clock_notice_end(&realtime_notice);
	follows_realtime = false;
	if (hotplug_state != CPUHP_INVALID)
		cpuhp_remove_state_nocalls(hotplug_state);
}

/**
 * bases_exit() - stop and free all bases, after bases_ignore_changes()
 */
void bases_exit(void)
{
	unsigned int cpu, role;

	for (role = 0; role < BASE_ROLES; role++) {
		for_each_possible_cpu(cpu) {
			if (base_get(cpu, role))
				base_stop(base_get(cpu, role));
		}
	}
	/* Another CPU may still execute the last instructions of base_kicked(). */
	synchronize_rcu();
	for (role = 0; role < BASE_ROLES; role++)
		free_bases(role);
	base_numbers_exit();
}
