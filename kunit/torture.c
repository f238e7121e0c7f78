// SPDX-License-Identifier: GPL-2.0
/*
 * Torture of the interface for modules.  Threads, softirqs and interrupts arm, modify,
 * cancel and postpone the same few timers at random, and begin, complete, check and cancel
 * operations, for so many seconds, while the module is being loaded.  It loads only if
 * in the end each of them is accounted for:
 *
 *	timers		how often it was armed = expirations + cancellations
 *	operations	begun = completed + expired + cancelled; each ended once
 *
 * and nothing was early, or called twice at the same time, or waits although its time is
 * over.  tools/test/torture loads it, and disturbs the machine meanwhile.
 *
 * Timers are postponed in NMIs, too, which need no counter of a processor here: threads send
 * them to all CPUs.  Where there are none, interrupts do that.  Some timers are postponed
 * once, in time, each time that they are armed: then they do not expire before the later
 * time.
 *
 * Other threads free the memory of a timer as soon as they have waited for its function.
 *
 * Half of the timers have witnesses: a lock of their own is held while they are armed, so
 * that for each expiration it is known which time it is for.  The other ones are armed and
 * cancelled on several CPUs at the same moment.
 */
#include <linux/completion.h>
#include <linux/cpu.h>
#include <linux/delay.h>
#include <linux/freezer.h>
#include <linux/irq_work.h>
#include <linux/kcsan-checks.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#ifdef CONFIG_X86_LOCAL_APIC
#include <asm/apic.h>
#include <asm/nmi.h>
#endif

#include "../kmod/twheel.h"

static unsigned int seconds = 10;
module_param(seconds, uint, 0444);
MODULE_PARM_DESC(seconds, "How long");

static ulong seed = 1;
module_param(seed, ulong, 0444);
MODULE_PARM_DESC(seed, "What chance begins with; threads still meet as they like");

static unsigned int nr_timers = 64;
module_param(nr_timers, uint, 0444);
MODULE_PARM_DESC(nr_timers, "How many timers; the fewer, the more often threads meet");

/* Of each kind, for each CPU. */
#define TASKS_PER_CPU	2

#define NR_KEYS		16
#define KEYS_MAX	4

/* The clock that NMIs may read differs from the other one by less. */
#define CLOCKS_DIFFER_NS	(100 * NSEC_PER_USEC)

/* Nothing ends this much later than it has to, however busy the machine is. */
#define LOST_S		120

/* One expiration that is on its way, and one time that the timer is armed for. */
#define DUES_MAX	2

/**
 * struct tortured - a timer
 * @timer: the timer.
 * @has_witness: @lock is held where it is armed, modified or cancelled.
 * @is_waited_for: it is also cancelled by those who wait for its function.
 * @lock: guards what follows up to @nr_dues.
 * @dues: for which times its function is still to be called, the oldest first.  The last
 *	one is that of the armed timer; one before it has come out of the wheel already.
 * @nr_dues: how many these are.
 * @armed: how often it was armed when it was not armed.
 * @cancelled: how often it was cancelled when it was armed.
 * @again: how often it can have been cancelled once more without being counted.
 * @expired: how often its function was called.
 * @running: its function is being called.
 */
struct tortured {
	struct twheel_timer timer;
	bool has_witness;
	bool is_waited_for;
	raw_spinlock_t lock;
	u64 dues[DUES_MAX];
	unsigned int nr_dues;
	atomic64_t armed;
	atomic64_t cancelled;
	atomic64_t again;
	atomic64_t expired;
	atomic_t running;
};

/**
 * struct torturer - a thread that does anything to any timer
 * @task: the thread.
 * @work: does the same in an interrupt.
 */
struct torturer {
	struct task_struct *task;
	struct irq_work work;
};

/**
 * struct waiter - a thread with an operation, which waits for its end again and again
 * @task: the thread.
 * @operation: the operation.
 * @due_ns: when it expires.
 * @ended: it has.
 * @nr_ends: how often it has ended since it was begun.
 */
struct waiter {
	struct task_struct *task;
	struct twheel_operation operation;
	u64 due_ns;
	struct completion ended;
	atomic_t nr_ends;
};

/**
 * struct sleeper - a thread with a timer, which is armed, postponed and waited for
 * @task: the thread.
 * @timer: the timer.
 * @work: postpones it in an interrupt.
 * @armed_ns: what it is armed for.
 * @later_ns: what it is postponed to.
 * @not_before_ns: it was postponed before its time came, so it must not expire before this;
 *	0: it may.
 * @was_postponed: that has been done.
 * @expired: its function was called.
 */
struct sleeper {
	struct task_struct *task;
	struct twheel_timer timer;
	struct irq_work work;
	u64 armed_ns;
	u64 later_ns;
	u64 not_before_ns;
	bool was_postponed;
	struct completion expired;
};

/**
 * struct mayfly - a timer whose memory is freed as soon as it has been waited for
 * @timer: the timer.
 * @began: its function was called.  No bool: with UBSAN, a compiler reads it as if it were
 *	not volatile, and KCSAN complains.
 * @ended: it has returned, or is about to.
 */
struct mayfly {
	struct twheel_timer timer;
	unsigned int began;
	unsigned int ended;
};

static struct tortured *timers;
static struct torturer *torturers;
static struct waiter *waiters;
static struct sleeper *sleepers;
static struct task_struct **freers;
static struct task_struct **checkers;
static struct twheel_registry registry;
static unsigned int nr_tasks;

/* The time is over: no thread begins anything more. */
static bool over;

/* All threads have ended, and timers are being shut down. */
static bool stopping;

static atomic64_t chance;

/* What has been done, and what is wrong. */
static struct {
	atomic64_t modified;
	atomic64_t postponed;
	atomic64_t interrupts;
	atomic64_t nmis;
	atomic64_t sleeps;
	atomic64_t freed;
	atomic64_t waited;
	atomic64_t begun;
	atomic64_t completed;
	atomic64_t expired;
	atomic64_t cancelled;
	atomic64_t checks;
	atomic64_t no_memory;
	atomic64_t faults;
} seen;

#define fault(format, ...) do {							\
	if (atomic64_inc_return(&seen.faults) <= 10)				\
		pr_err("twheel_torture: " format "\n", ##__VA_ARGS__);		\
} while (0)

/* --- chance ------------------------------------------------------------------------- */

/* A number below n, in any context: splitmix64. */
static u32 draw(u32 n)
{
	u64 x = atomic64_add_return(0x9e3779b97f4a7c15ULL, &chance);

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return (x >> 32) * n >> 32;
}

/* Mostly soon, so that expirations meet those who arm and cancel. */
static u64 draw_due_ns(void)
{
	u64 now_ns = ktime_get_ns();

	switch (draw(16)) {
	case 0:
		return now_ns - draw(NSEC_PER_MSEC);
	case 1:
		return now_ns + draw(NSEC_PER_SEC);
	case 2:
		return now_ns + 1000ULL * draw(NSEC_PER_SEC);
	case 3:
		return now_ns + draw(50 * NSEC_PER_MSEC);
	default:
		return now_ns + draw(2 * NSEC_PER_MSEC);
	}
}

static u64 draw_slack_ns(void)
{
	return draw(4) ? 0 : draw(4 * NSEC_PER_MSEC);
}

/* For threads: a thread that ends before it is stopped cannot be stopped any more. */
static bool goes_on(void)
{
	while (READ_ONCE(over) && !kthread_should_stop())
		usleep_range(500, 1000);
	return !kthread_should_stop();
}

/* --- timers ------------------------------------------------------------------------- */

/* Is the result of arming one that cannot be? */
static bool is_strange(int ret)
{
	return ret && ret != 1 && !(ret == -ESHUTDOWN && READ_ONCE(stopping));
}

static int arm_for(struct tortured *timer, u64 due_ns)
{
	int ret = twheel_timer_arm(&timer->timer, due_ns, draw_slack_ns(), TWHEEL_TIMER_ABS);

	if (is_strange(ret))
		fault("arming returns %d", ret);
	if (!ret)
		atomic64_inc(&timer->armed);
	return ret;
}

static void note_armed(struct tortured *timer, u64 due_ns, bool again)
{
	if (timer->nr_dues == (again ? 0 : DUES_MAX))
		fault("arming returns %d, with %u times", again, timer->nr_dues);
	else if (again)
		timer->dues[timer->nr_dues - 1] = due_ns;
	else
		timer->dues[timer->nr_dues++] = due_ns;
}

static void arm(struct tortured *timer)
{
	u64 due_ns = draw_due_ns();
	unsigned long flags;
	int ret;

	if (!timer->has_witness) {
		arm_for(timer, due_ns);
		return;
	}
	raw_spin_lock_irqsave(&timer->lock, flags);
	ret = arm_for(timer, due_ns);
	if (ret >= 0)
		note_armed(timer, due_ns, ret);
	raw_spin_unlock_irqrestore(&timer->lock, flags);
}

static int modify_to(struct tortured *timer, u64 due_ns)
{
	int ret = twheel_timer_modify(&timer->timer, due_ns, draw_slack_ns(), TWHEEL_TIMER_ABS);

	if (is_strange(ret))
		fault("modifying returns %d", ret);
	if (ret == 1)
		atomic64_inc(&seen.modified);
	return ret;
}

static void modify(struct tortured *timer)
{
	u64 due_ns = draw_due_ns();
	unsigned long flags;

	if (!timer->has_witness) {
		modify_to(timer, due_ns);
		return;
	}
	raw_spin_lock_irqsave(&timer->lock, flags);
	if (modify_to(timer, due_ns) == 1)
		note_armed(timer, due_ns, true);
	raw_spin_unlock_irqrestore(&timer->lock, flags);
}

static void note_cancelled(struct tortured *timer)
{
	if (timer->nr_dues)
		timer->nr_dues--;
	else
		fault("a timer was cancelled that was not armed");
}

static void cancel(struct tortured *timer)
{
	unsigned long flags;

	if (!timer->has_witness) {
		atomic64_add(twheel_timer_cancel(&timer->timer), &timer->cancelled);
		return;
	}
	raw_spin_lock_irqsave(&timer->lock, flags);
	if (twheel_timer_cancel(&timer->timer)) {
		atomic64_inc(&timer->cancelled);
		note_cancelled(timer);
	}
	raw_spin_unlock_irqrestore(&timer->lock, flags);
}

/* It can only make the timer later, so nothing has to be noted. */
static void postpone(struct tortured *timer)
{
	twheel_timer_postpone(&timer->timer, ktime_get_ns() + draw(4 * NSEC_PER_MSEC));
	atomic64_inc(&seen.postponed);
}

/*
 * Only threads do this: it waits for a function that runs.  If another one arms the timer
 * meanwhile, that is cancelled, too, and both count as one.
 */
static void cancel_and_wait(struct tortured *timer)
{
	if (!timer->is_waited_for)
		return;
	atomic64_add(twheel_timer_cancel_sync(&timer->timer), &timer->cancelled);
	atomic64_inc(&timer->again);
}

static void do_anything(void)
{
	struct tortured *timer = &timers[draw(nr_timers)];

	switch (draw(8)) {
	case 0:
	case 1:
		cancel(timer);
		break;
	case 2:
		modify(timer);
		break;
	case 3:
		postpone(timer);
		break;
	case 4:
		twheel_timer_pending(&timer->timer);
		break;
	default:
		arm(timer);
	}
}

static void check_due(struct tortured *timer, u64 now_ns)
{
	unsigned long flags;
	unsigned int i;

	raw_spin_lock_irqsave(&timer->lock, flags);
	if (!timer->nr_dues)
		fault("a timer expired that was not armed");
	else if (now_ns < timer->dues[0])
		fault("a timer expired %llu ns early", timer->dues[0] - now_ns);
	for (i = 1; i < timer->nr_dues; i++)
		timer->dues[i - 1] = timer->dues[i];
	timer->nr_dues -= !!timer->nr_dues;
	raw_spin_unlock_irqrestore(&timer->lock, flags);
}

static void expire(struct twheel_timer *twheel_timer)
{
	struct tortured *timer = container_of(twheel_timer, struct tortured, timer);
	u64 now_ns = ktime_get_ns();

	if (atomic_inc_return(&timer->running) != 1)
		fault("a timer's function is called twice at the same time");
	atomic64_inc(&timer->expired);
	if (timer->has_witness)
		check_due(timer, now_ns);
	if (!READ_ONCE(stopping)) {
		if (!draw(4))
			arm(timer);
		if (!draw(4))
			do_anything();
	}
	atomic_dec(&timer->running);
}

static void interrupt(struct irq_work *work)
{
	do_anything();
	atomic64_inc(&seen.interrupts);
}

/*
 * The clock, in any context.  KCSAN would see a race of the kernel's own here, and takes a
 * lock to report it, which lockdep does not allow in an NMI.
 */
static u64 fast_ns(void)
{
	u64 ns;

	kcsan_disable_current();
	ns = ktime_get_mono_fast_ns();
	kcsan_enable_current();
	return ns;
}

/* In any context. */
static void postpone_sleeper(struct sleeper *sleeper)
{
	twheel_timer_postpone(&sleeper->timer, sleeper->later_ns);
	/* All CPUs see the time before the clock is read. */
	smp_mb();
	if (fast_ns() + CLOCKS_DIFFER_NS < sleeper->armed_ns)
		WRITE_ONCE(sleeper->not_before_ns, sleeper->later_ns);
	/* Pairs with sleep_once(): nothing here uses the sleeper after that. */
	smp_store_release(&sleeper->was_postponed, true);
}

/* A CPU that is online.  Called with cpus_read_lock(). */
static unsigned int draw_cpu(void)
{
	unsigned int cpu = cpumask_first(cpu_online_mask), i;

	for (i = draw(num_online_cpus()); i; i--)
		cpu = cpumask_next(cpu, cpu_online_mask);
	return cpu;
}

/* --- NMIs --------------------------------------------------------------------------- */

#ifdef CONFIG_X86_LOCAL_APIC

/* How many were sent to this CPU and have not come.  Two that meet come as one. */
static DEFINE_PER_CPU(atomic_t, nmis_sent);
/* Whose timer the next one postpones. */
static DEFINE_PER_CPU(struct sleeper *, nmi_sleeper);

static int nmi(unsigned int type, struct pt_regs *regs)
{
	struct tortured *timer = &timers[draw(nr_timers)];
	struct sleeper *sleeper;

	if (!atomic_add_unless(this_cpu_ptr(&nmis_sent), -1, 0))
		return NMI_DONE;
	twheel_timer_postpone(&timer->timer,
			      fast_ns() + draw(4 * NSEC_PER_MSEC));
	sleeper = xchg(this_cpu_ptr(&nmi_sleeper), NULL);
	if (sleeper)
		postpone_sleeper(sleeper);
	atomic64_inc(&seen.nmis);
	return NMI_HANDLED;
}

/* If there is a @sleeper, its timer is postponed.  Returns false if it is not. */
static bool send_nmi(struct sleeper *sleeper)
{
	unsigned int cpu;
	bool sent;

	cpus_read_lock();
	cpu = draw_cpu();
	sent = !sleeper || !cmpxchg(per_cpu_ptr(&nmi_sleeper, cpu), NULL, sleeper);
	if (sent) {
		atomic_inc(per_cpu_ptr(&nmis_sent, cpu));
		apic->send_IPI(cpu, NMI_VECTOR);
	}
	cpus_read_unlock();
	return sent;
}

static int begin_nmis(void)
{
	return register_nmi_handler(NMI_LOCAL, nmi, 0, "twheel_torture");
}

static void do_nothing(void *unused)
{
}

/* An interrupt that is sent after an NMI comes after it. */
static void end_nmis(void)
{
	on_each_cpu(do_nothing, NULL, 1);
	unregister_nmi_handler(NMI_LOCAL, "twheel_torture");
}

#else

static bool send_nmi(struct sleeper *sleeper)
{
	return false;
}

static int begin_nmis(void)
{
	return 0;
}

static void end_nmis(void)
{
}

#endif

/* --- threads ------------------------------------------------------------------------ */

static int torture(void *context)
{
	struct torturer *torturer = context;

	while (goes_on()) {
		do_anything();
		if (!draw(32))
			cancel_and_wait(&timers[draw(nr_timers)]);
		if (!draw(64))
			send_nmi(NULL);
		if (!draw(8))
			irq_work_queue(&torturer->work);
		if (!draw(256))
			usleep_range(50, 3000);
		cond_resched();
	}
	irq_work_sync(&torturer->work);
	return 0;
}

/* --- sleepers ----------------------------------------------------------------------- */

static void interrupt_sleeper(struct irq_work *work)
{
	postpone_sleeper(container_of(work, struct sleeper, work));
}

static void wake_sleeper(struct twheel_timer *timer)
{
	struct sleeper *sleeper = container_of(timer, struct sleeper, timer);
	u64 now_ns = ktime_get_ns(), not_before_ns = READ_ONCE(sleeper->not_before_ns);

	if (now_ns < sleeper->armed_ns)
		fault("a timer expired %llu ns early", sleeper->armed_ns - now_ns);
	if (now_ns < not_before_ns)
		fault("a timer that was postponed expired %llu ns early",
		      not_before_ns - now_ns);
	complete(&sleeper->expired);
}

/* In an NMI, an interrupt, or here. */
static void postpone_somewhere(struct sleeper *sleeper)
{
	unsigned int where = draw(3);

	if (where == 0 && send_nmi(sleeper))
		return;
	if (where != 1)
		irq_work_queue(&sleeper->work);
	else
		postpone_sleeper(sleeper);
}

static void sleep_once(struct sleeper *sleeper)
{
	unsigned long lost = jiffies + LOST_S * HZ;
	int ret;

	sleeper->armed_ns = ktime_get_ns() + NSEC_PER_MSEC + draw(4 * NSEC_PER_MSEC);
	sleeper->later_ns = sleeper->armed_ns + draw(8 * NSEC_PER_MSEC);
	sleeper->not_before_ns = 0;
	sleeper->was_postponed = false;
	reinit_completion(&sleeper->expired);
	ret = twheel_timer_arm(&sleeper->timer, sleeper->armed_ns, 0, TWHEEL_TIMER_ABS);
	if (ret)
		fault("arming a timer that waits for nothing returns %d", ret);
	postpone_somewhere(sleeper);
	if (!wait_for_completion_timeout(&sleeper->expired, LOST_S * HZ))
		fault("a timer that was postponed did not expire");
	/* Pairs with postpone_sleeper(). */
	while (!smp_load_acquire(&sleeper->was_postponed) && time_before(jiffies, lost))
		usleep_range(50, 500);
	if (!sleeper->was_postponed)
		fault("an interrupt did not come");
	atomic64_add(!!sleeper->not_before_ns, &seen.sleeps);
}

static int sleep_again_and_again(void *context)
{
	struct sleeper *sleeper = context;

	while (goes_on())
		sleep_once(sleeper);
	irq_work_sync(&sleeper->work);
	twheel_timer_shutdown(&sleeper->timer);
	return 0;
}

/* --- timers that are freed ---------------------------------------------------------- */

static void live(struct twheel_timer *timer)
{
	struct mayfly *mayfly = container_of(timer, struct mayfly, timer);

	WRITE_ONCE(mayfly->began, 1);
	udelay(draw(50));
	WRITE_ONCE(mayfly->ended, 1);
}

static void arm_mayfly(void *context)
{
	struct mayfly *mayfly = context;
	u64 due_ns = ktime_get_ns() + draw(200 * NSEC_PER_USEC);
	int ret = twheel_timer_arm(&mayfly->timer, due_ns, 0, TWHEEL_TIMER_ABS);

	if (ret)
		fault("arming a new timer returns %d", ret);
}

/* Mostly until its function runs, which it does on the CPU where it was armed. */
static void wait_for_a_moment(const struct mayfly *mayfly)
{
	u64 end_ns = ktime_get_ns() + (draw(4) ? 2 * NSEC_PER_MSEC : draw(200 * NSEC_PER_USEC));

	while (!READ_ONCE(mayfly->began) && ktime_get_ns() < end_ns)
		cpu_relax();
}

static bool is_running(const struct mayfly *mayfly)
{
	return READ_ONCE(mayfly->began) && !READ_ONCE(mayfly->ended);
}

static void end_mayfly(struct mayfly *mayfly)
{
	bool was_armed;

	wait_for_a_moment(mayfly);
	atomic64_add(is_running(mayfly), &seen.waited);
	was_armed = draw(2) ? twheel_timer_cancel_sync(&mayfly->timer) :
			      twheel_timer_shutdown(&mayfly->timer);
	if (is_running(mayfly))
		fault("a timer's function runs although it was waited for");
	if (was_armed == READ_ONCE(mayfly->began))
		fault("a timer was %s", was_armed ? "cancelled and called" :
		      "neither cancelled nor called");
	atomic64_inc(&seen.freed);
}

static int free_again_and_again(void *unused)
{
	struct mayfly *mayfly;

	while (goes_on()) {
		mayfly = kzalloc(sizeof(*mayfly), GFP_KERNEL);
		if (mayfly) {
			twheel_timer_setup(&mayfly->timer, live);
			cpus_read_lock();
			smp_call_function_single(draw_cpu(), arm_mayfly, mayfly, true);
			cpus_read_unlock();
			end_mayfly(mayfly);
			kfree(mayfly);
		}
		if (!draw(16))
			usleep_range(50, 3000);
		cond_resched();
	}
	return 0;
}

/* --- operations --------------------------------------------------------------------- */

static bool try_complete(struct twheel_operation *operation)
{
	return !draw(16);
}

static void end(struct twheel_operation *operation)
{
	struct waiter *waiter = container_of(operation, struct waiter, operation);

	if (atomic_inc_return(&waiter->nr_ends) != 1)
		fault("an operation ended twice");
	complete(&waiter->ended);
}

static void on_complete(struct twheel_operation *operation)
{
	atomic64_inc(&seen.completed);
	end(operation);
}

static void on_expiration(struct twheel_operation *operation)
{
	struct waiter *waiter = container_of(operation, struct waiter, operation);
	u64 now_ns = ktime_get_ns();

	if (now_ns < waiter->due_ns)
		fault("an operation expired %llu ns early", waiter->due_ns - now_ns);
	atomic64_inc(&seen.expired);
	end(operation);
}

static const struct twheel_operation_ops ops = {
	.try_complete = try_complete,
	.on_complete = on_complete,
	.on_expiration = on_expiration,
};

static int begin(struct waiter *waiter)
{
	unsigned int nr_keys = draw(KEYS_MAX + 1), i;
	u64 keys[KEYS_MAX];

	for (i = 0; i < nr_keys; i++)
		keys[i] = draw(NR_KEYS);
	atomic_set(&waiter->nr_ends, 0);
	reinit_completion(&waiter->ended);
	waiter->due_ns = ktime_get_ns() + draw(5 * NSEC_PER_MSEC);
	return twheel_try_complete_else_watch(&waiter->operation, keys, nr_keys, waiter->due_ns,
					      draw_slack_ns(), TWHEEL_TIMER_ABS);
}

static void begin_and_end(struct waiter *waiter)
{
	unsigned int how = draw(8);
	int ret = begin(waiter);

	if (ret == -ENOMEM) {
		atomic64_inc(&seen.no_memory);
		return;
	}
	if (ret < 0) {
		fault("beginning to wait returns %d", ret);
		return;
	}
	atomic64_inc(&seen.begun);
	if (!how && twheel_operation_cancel_sync(&waiter->operation)) {
		atomic64_inc(&seen.cancelled);
		if (atomic_read(&waiter->nr_ends))
			fault("an operation was cancelled that had ended");
		return;
	}
	if (how == 1)
		twheel_operation_complete(&waiter->operation);
	if (!wait_for_completion_timeout(&waiter->ended, LOST_S * HZ))
		fault("an operation did not end");
	/* After that, nobody uses it any more. */
	twheel_operation_cancel_sync(&waiter->operation);
	if (atomic_read(&waiter->nr_ends) != 1)
		fault("an operation ended %d times", atomic_read(&waiter->nr_ends));
}

static int wait_again_and_again(void *context)
{
	while (goes_on()) {
		begin_and_end(context);
		cond_resched();
	}
	return 0;
}

static int check_again_and_again(void *context)
{
	while (goes_on()) {
		if (draw(8)) {
			twheel_check_and_complete(&registry, draw(NR_KEYS));
			atomic64_inc(&seen.checks);
		} else {
			usleep_range(50, 1000);
		}
		cond_resched();
	}
	return 0;
}

/* --- all of it ---------------------------------------------------------------------- */

static int make_timers(void)
{
	unsigned int i;

	timers = kcalloc(nr_timers, sizeof(*timers), GFP_KERNEL);
	if (!timers)
		return -ENOMEM;
	for (i = 0; i < nr_timers; i++) {
		timers[i].has_witness = i % 2;
		timers[i].is_waited_for = i % 4 == 2;
		raw_spin_lock_init(&timers[i].lock);
		twheel_timer_setup(&timers[i].timer, expire);
	}
	return 0;
}

static int make_tasks(void)
{
	unsigned int i;

	nr_tasks = TASKS_PER_CPU * num_online_cpus();
	torturers = kcalloc(nr_tasks, sizeof(*torturers), GFP_KERNEL);
	waiters = kcalloc(nr_tasks, sizeof(*waiters), GFP_KERNEL);
	sleepers = kcalloc(nr_tasks, sizeof(*sleepers), GFP_KERNEL);
	freers = kcalloc(nr_tasks, sizeof(*freers), GFP_KERNEL);
	checkers = kcalloc(nr_tasks, sizeof(*checkers), GFP_KERNEL);
	if (!torturers || !waiters || !sleepers || !freers || !checkers)
		return -ENOMEM;
	for (i = 0; i < nr_tasks; i++) {
		torturers[i].work = IRQ_WORK_INIT_HARD(interrupt);
		sleepers[i].work = IRQ_WORK_INIT_HARD(interrupt_sleeper);
		init_completion(&sleepers[i].expired);
		twheel_timer_setup(&sleepers[i].timer, wake_sleeper);
		init_completion(&waiters[i].ended);
		twheel_operation_setup(&waiters[i].operation, &registry, &ops);
	}
	return 0;
}

static struct task_struct *start(int (*function)(void *context), void *context)
{
	struct task_struct *task = kthread_run(function, context, "twheel_torture");

	if (!IS_ERR(task)) {
		/* They are always busy, and others have a share. */
		set_user_nice(task, 10);
		return task;
	}
	fault("no thread: %ld", PTR_ERR(task));
	return NULL;
}

static void stop(struct task_struct *task)
{
	if (task)
		kthread_stop(task);
}

/* Has each of the things been done that a slow machine may not get to? */
static bool all_was_done(void)
{
	return atomic64_read(&seen.sleeps) && atomic64_read(&seen.freed) &&
	       atomic64_read(&seen.modified) && atomic64_read(&seen.postponed) &&
	       atomic64_read(&seen.interrupts) &&
	       (!IS_ENABLED(CONFIG_X86_LOCAL_APIC) || atomic64_read(&seen.nmis));
}

/* A machine that is too slow for all of it gets this much more time, in units of @seconds. */
#define EXTENSIONS	20

static void run(void)
{
	DECLARE_WAIT_QUEUE_HEAD_ONSTACK(never);
	unsigned int i, extension = 0;

	for (i = 0; i < nr_tasks; i++) {
		torturers[i].task = start(torture, &torturers[i]);
		waiters[i].task = start(wait_again_and_again, &waiters[i]);
		sleepers[i].task = start(sleep_again_and_again, &sleepers[i]);
		freers[i] = start(free_again_and_again, NULL);
		checkers[i] = start(check_again_and_again, NULL);
	}
	/* Also while the machine falls asleep, which ends other waits as a signal does. */
	do {
		if (wait_event_freezable_timeout(never, false, (unsigned long)seconds * HZ))
			fault("a signal has ended it before its time");
	} while (!all_was_done() && extension++ < EXTENSIONS);
	WRITE_ONCE(over, true);
	for (i = 0; i < nr_tasks; i++) {
		stop(torturers[i].task);
		stop(waiters[i].task);
		stop(sleepers[i].task);
		stop(freers[i]);
		stop(checkers[i]);
	}
}

static bool is_due_before(struct tortured *timer, u64 time_ns)
{
	bool is_due;

	raw_spin_lock_irq(&timer->lock);
	is_due = timer->nr_dues && timer->dues[0] < time_ns;
	raw_spin_unlock_irq(&timer->lock);
	return is_due;
}

/*
 * Shutting a timer down cancels it, also one that its wheel has forgotten.  So timers whose
 * time is over expire first; those without a witness have no known time.  Only functions of
 * timers still arm, and hardly for a time before this began.
 */
static void wait_for_due_timers(void)
{
	unsigned long lost = jiffies + LOST_S * HZ;
	u64 now_ns = ktime_get_ns();
	unsigned int i;

	for (i = 0; i < nr_timers; i++) {
		while (is_due_before(&timers[i], now_ns) && time_before(jiffies, lost))
			usleep_range(500, 1000);
		if (is_due_before(&timers[i], now_ns))
			fault("timer %u waits although its time is over", i);
	}
}

/* A function that has begun before may still arm other timers. */
static void shut_down(struct tortured *timer)
{
	if (!twheel_timer_shutdown(&timer->timer))
		return;
	atomic64_inc(&timer->cancelled);
	if (!timer->has_witness)
		return;
	raw_spin_lock_irq(&timer->lock);
	note_cancelled(timer);
	raw_spin_unlock_irq(&timer->lock);
}

static void judge(void)
{
	u64 armed = 0, cancelled = 0, expired = 0, ends;
	unsigned int i;

	wait_for_due_timers();
	WRITE_ONCE(stopping, true);
	for (i = 0; i < nr_timers; i++)
		shut_down(&timers[i]);
	for (i = 0; i < nr_timers; i++) {
		const struct tortured *timer = &timers[i];
		u64 all = atomic64_read(&timer->armed), ended;

		ended = atomic64_read(&timer->cancelled) + atomic64_read(&timer->expired);
		armed += all;
		cancelled += atomic64_read(&timer->cancelled);
		expired += atomic64_read(&timer->expired);
		if (ended > all || all > ended + atomic64_read(&timer->again) || timer->nr_dues)
			fault("timer %u: armed %llu, cancelled %llu, expired %llu times", i, all,
			      (u64)atomic64_read(&timer->cancelled),
			      (u64)atomic64_read(&timer->expired));
	}
	ends = atomic64_read(&seen.completed) + atomic64_read(&seen.expired) +
		atomic64_read(&seen.cancelled);
	if (ends != atomic64_read(&seen.begun))
		fault("%llu operations begun, %llu ended", (u64)atomic64_read(&seen.begun), ends);
	if (!armed || !expired || !cancelled || !ends || !all_was_done())
		fault("nothing was done");
	pr_info("twheel_torture: %u timers: armed %llu, cancelled %llu, expired %llu, modified %llu, postponed %llu, in time %llu; %llu interrupts, %llu NMIs\n",
		nr_timers, armed, cancelled, expired, (u64)atomic64_read(&seen.modified),
		(u64)atomic64_read(&seen.postponed), (u64)atomic64_read(&seen.sleeps),
		(u64)atomic64_read(&seen.interrupts),
		(u64)atomic64_read(&seen.nmis));
	pr_info("twheel_torture: %llu timers in memory that was freed, of which %llu ran when they were waited for\n",
		(u64)atomic64_read(&seen.freed), (u64)atomic64_read(&seen.waited));
	pr_info("twheel_torture: operations: begun %llu, completed %llu, expired %llu, cancelled %llu; %llu checks, %llu without memory; %llu faults\n",
		(u64)atomic64_read(&seen.begun), (u64)atomic64_read(&seen.completed),
		(u64)atomic64_read(&seen.expired), (u64)atomic64_read(&seen.cancelled),
		(u64)atomic64_read(&seen.checks), (u64)atomic64_read(&seen.no_memory),
		(u64)atomic64_read(&seen.faults));
}

static int __init torture_init(void)
{
	int ret;

	if (!nr_timers || nr_timers > 1000000)
		return -EINVAL;
	atomic64_set(&chance, seed);
	ret = twheel_registry_init(&registry);
	if (ret)
		return ret;
	ret = make_timers() ?: make_tasks() ?: begin_nmis();
	if (!ret) {
		run();
		end_nmis();
		judge();
		ret = atomic64_read(&seen.faults) ? -EIO : 0;
	}
	twheel_registry_destroy(&registry);
	kfree(checkers);
	kfree(freers);
	kfree(sleepers);
	kfree(waiters);
	kfree(torturers);
	kfree(timers);
	return ret;
}
module_init(torture_init);

static void __exit torture_exit(void)
{
}
module_exit(torture_exit);

MODULE_DESCRIPTION("Torture of twheel's interface for modules");
MODULE_LICENSE("GPL");
