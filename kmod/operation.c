// SPDX-License-Identifier: GPL-2.0
/*
 * Delayed operations of other modules.
 *
 * The registry has a lock, which is not held while a function of the owner is called.
 * HACKING.md has the order of all locks.
 *
 * While try_complete() is being called (@asking), no other task ends the operation or asks
 * it: instead it sets @again or @verdict.  If try_complete() returns true, the operation
 * is completed, even if @verdict says that it expired or was cancelled meanwhile.
 *
 *                    +--- watches, asks <---+
 *                    |                      | not yet
 *	IDLE ------> PENDING ----------------+
 *	  ^   expired,  |  |
 *	  |   cancelled |  | complete, but the timer's function is about to run
 *	  +-------------+  v
 *	  |  complete   COMPLETING
 *	  +----------------+ the timer's function has run
 *
 * Before on_complete() or on_expiration() is called, the operation is IDLE, has no
 * watches, and the timer's function will not run: so it can be freed, or wait again.  If
 * the timer's function is about to run (@armed), it cannot be stopped here; then that
 * function makes the call.  An operation that is cancelled in that time is IDLE, but
 * cannot wait again before the timer's function has run.
 *
 * A check goes through the watches of a key in the order in which they were last
 * checked, and moves each one to the end.  It ends at the first watch that was already in
 * this check or in a later one: all watches behind it were moved after this check began,
 * and their operations have been asked since.
 */
#include <linux/err.h>
#include <linux/export.h>
#include <linux/rhashtable.h>
#include <linux/sched.h>

#include "timer_debug.h"
#include "watch.h"

/* &struct twheel_operation.state */
enum operation_state {
	OPERATION_IDLE,
	OPERATION_PENDING,
	OPERATION_COMPLETING,	/* the timer's function calls on_complete() */
};

/* &struct twheel_operation.verdict */
enum verdict {
	VERDICT_NONE,
	VERDICT_COMPLETED,
	VERDICT_EXPIRED,
	VERDICT_CANCELLED,	/* stays until the cancelling task has seen it */
};

/* The memory of a watch is allocated under a lock, maybe in an interrupt. */
#define OPERATION_GFP	(GFP_ATOMIC | __GFP_NOWARN)

/**
 * struct operation_call - a call of an owner's functions, by one caller
 * @list: its place in the list of all calls in progress.
 * @operation: the operation; only to be compared with, because the call may free it.
 */
struct operation_call {
	struct list_head list;
	struct twheel_operation *operation;
};

static void call_begin(struct twheel_registry *registry,
		       struct operation_call *call,
		       struct twheel_operation *operation)
{
	lockdep_assert_held(&registry->lock);
	call->operation = operation;
	list_add(&call->list, &registry->calls);
}

static void call_end(struct twheel_registry *registry, struct operation_call *call)
{
	lockdep_assert_held(&registry->lock);
	list_del(&call->list);
	/* With the lock held, because the task that waits may destroy the registry next. */
	if (waitqueue_active(&registry->quiet))
		wake_up_all(&registry->quiet);
}

static bool is_called(const struct twheel_registry *registry,
		      const struct twheel_operation *operation)
{
	const struct operation_call *call;

	lockdep_assert_held(&registry->lock);
	list_for_each_entry(call, &registry->calls, list)
		if (call->operation == operation)
			return true;
	return false;
}

/* Call the function of the owner, which may free the operation, without the lock. */
static void operation_tell(struct twheel_operation *operation,
			   enum verdict verdict)
	__must_hold(&operation->registry->lock)
{
	struct twheel_registry *registry = operation->registry;

	spin_unlock_bh(&registry->lock);
	if (verdict == VERDICT_COMPLETED)
		operation->ops->on_complete(operation);
	else
		operation->ops->on_expiration(operation);
	spin_lock_bh(&registry->lock);
}

/*
 * The timer's function will not run, or is running here.  Owners free operations without
 * a call, so debugobjects knows the timer only while it is armed.
 */
static void operation_disarmed(struct twheel_operation *operation)
{
	lockdep_assert_held(&operation->registry->lock);
	operation->armed = false;
	timer_debug_free(&operation->timer);
}

/*
 * End a PENDING operation that is not being asked; its owner may free it.  If it has
 * expired, its timer's function is not about to run.
 */
static void operation_end(struct twheel_operation *operation, enum verdict verdict)
{
	lockdep_assert_held(&operation->registry->lock);
	watcher_drop(&operation->registry->keys, &operation->watcher);
	operation->state = OPERATION_IDLE;
	operation->verdict = verdict;
	if (operation->armed && twheel_timer_cancel(&operation->timer))
		operation_disarmed(operation);
	if (verdict == VERDICT_CANCELLED)
		return;
	if (operation->armed)
		operation->state = OPERATION_COMPLETING;
	else
		operation_tell(operation, verdict);
}

/*
 * Ask a PENDING operation that is not being asked, and ask it again if its keys were
 * checked meanwhile.  The lock is dropped for that.
 */
static bool operation_ask(struct twheel_operation *operation)
	__must_hold(&operation->registry->lock)
{
	struct twheel_registry *registry = operation->registry;
	bool done;

	operation->asking = true;
	do {
		operation->again = false;
		spin_unlock_bh(&registry->lock);
		done = operation->ops->try_complete(operation);
		spin_lock_bh(&registry->lock);
	} while (!done && operation->again);
	operation->asking = false;
	return done;
}

/* End an operation that was asked, if it is complete or has a verdict.  True: complete. */
static bool operation_judge(struct twheel_operation *operation, bool done)
{
	bool forced = operation->verdict == VERDICT_COMPLETED;

	lockdep_assert_held(&operation->registry->lock);
	if (done || operation->verdict != VERDICT_NONE)
		operation_end(operation, done ? VERDICT_COMPLETED :
					 operation->verdict);
	return done && !forced;
}

/* Check one operation; true: that ended it. */
static bool operation_check(struct twheel_operation *operation)
{
	struct twheel_registry *registry = operation->registry;
	struct operation_call call;
	bool ended;

	lockdep_assert_held(&registry->lock);
	if (operation->asking) {
		/* A check after the verdict comes too late. */
		if (operation->verdict == VERDICT_NONE)
			operation->again = true;
		return false;
	}
	call_begin(registry, &call, operation);
	ended = operation_judge(operation, operation_ask(operation));
	call_end(registry, &call);
	return ended;
}

static void operation_time_came(struct twheel_timer *timer)
{
	struct twheel_operation *operation =
		container_of(timer, struct twheel_operation, timer);
	struct twheel_registry *registry = operation->registry;
	struct operation_call call;

	spin_lock_bh(&registry->lock);
	call_begin(registry, &call, operation);
	operation_disarmed(operation);
	if (operation->state == OPERATION_COMPLETING) {
		operation->state = OPERATION_IDLE;
		operation_tell(operation, VERDICT_COMPLETED);
	} else if (operation->state == OPERATION_PENDING) {
		if (!operation->asking)
			operation_end(operation, VERDICT_EXPIRED);
		else if (operation->verdict == VERDICT_NONE)
			operation->verdict = VERDICT_EXPIRED;
	}
	call_end(registry, &call);
	spin_unlock_bh(&registry->lock);
}

/**
 * twheel_registry_init() - make a registry for operations
 * @registry: the registry; not on a stack, because work is queued for it.
 *
 * Context: a task; sleeps.
 *
 * Return: 0 or -ENOMEM.
 */
int twheel_registry_init(struct twheel_registry *registry)
{
	spin_lock_init(&registry->lock);
	registry->checks = 0;
	INIT_LIST_HEAD(&registry->calls);
	init_waitqueue_head(&registry->quiet);
	return keys_init(&registry->keys);
}
EXPORT_SYMBOL_GPL(twheel_registry_init);

static bool is_quiet(struct twheel_registry *registry)
{
	bool quiet;

	spin_lock_bh(&registry->lock);
	quiet = list_empty(&registry->calls);
	spin_unlock_bh(&registry->lock);
	return quiet;
}

/**
 * twheel_registry_destroy() - end a registry
 * @registry: the registry; none of its operations waits, and no task uses it.
 *
 * Waits until the functions of the last operations have returned.  Afterwards the owner
 * may free the memory of the registry.
 *
 * Context: a task; sleeps.
 */
void twheel_registry_destroy(struct twheel_registry *registry)
{
	wait_event(registry->quiet, is_quiet(registry));
	keys_destroy(&registry->keys);
	/* A timer's function may still be dropping the lock. */
	synchronize_rcu();
}
EXPORT_SYMBOL_GPL(twheel_registry_destroy);

/**
 * twheel_operation_setup() - prepare an operation for its first use
 * @operation: the operation, in memory that stays while it waits.
 * @registry: the registry of its keys.
 * @ops: the functions to call.
 *
 * Context: any.
 */
void twheel_operation_setup(struct twheel_operation *operation,
			    struct twheel_registry *registry,
			    const struct twheel_operation_ops *ops)
{
	*operation = (struct twheel_operation){
		.registry = registry,
		.ops = ops,
		.state = OPERATION_IDLE,
	};
	twheel_timer_setup(&operation->timer, operation_time_came);
	timer_debug_free(&operation->timer);
	watcher_init(&operation->watcher);
}
EXPORT_SYMBOL_GPL(twheel_operation_setup);

/* Make the watches of an operation; if that fails, it has none. */
static int operation_watch(struct twheel_operation *operation, const u64 *keys,
			   unsigned int nr_keys)
{
	struct twheel_registry *registry = operation->registry;
	unsigned int i;

	lockdep_assert_held(&registry->lock);
	for (i = 0; i < nr_keys; i++) {
		struct watch *watch = watch_create(&registry->keys, keys[i],
						   OPERATION_GFP);

		if (!watch) {
			watcher_drop(&registry->keys, &operation->watcher);
			return -ENOMEM;
		}
		watch_link(watch, &operation->watcher, WATCH_ASKED,
			   registry->checks);
	}
	return 0;
}

/*
 * Watch and arm an operation that was asked and is not complete, and ask it once more: it
 * may have become complete before it watched.
 */
static int operation_wait(struct twheel_operation *operation, const u64 *keys,
			  unsigned int nr_keys, u64 time_ns, u64 slack_ns,
			  unsigned int flags)
{
	int ret = operation_watch(operation, keys, nr_keys);

	if (ret) {
		operation->state = OPERATION_IDLE;
		return ret;
	}
	operation->armed = true;
	timer_debug_init(&operation->timer);
	twheel_timer_arm(&operation->timer, time_ns, slack_ns, flags);
	return operation_judge(operation, operation_ask(operation));
}

/**
 * twheel_try_complete_else_watch() - complete an operation, or let it wait
 * @operation: an operation that does not wait.
 * @keys: the keys to watch; not used after the call.
 * @nr_keys: how many; at most TWHEEL_OPERATION_KEYS, 0 to wait for its time only.
 * @time_ns: when it expires, as for twheel_timer_arm().
 * @slack_ns: how much later it may expire.
 * @flags: TWHEEL_TIMER_REL or TWHEEL_TIMER_ABS.
 *
 * Calls try_complete(), before and after the operation watches the keys.  If it returns
 * true, on_complete() is called, usually before this returns; if the time came at the
 * same moment, by the timer in softirq context.  Unless this returns an errno, the
 * operation may have ended, and been freed, when it returns.
 *
 * Context: a task or softirq, with interrupts enabled, and with no lock held that the
 * owner's functions take.  Does not sleep; allocates memory with GFP_ATOMIC.
 *
 * Return: 1, this call completed it; 0, it waits, or another caller ended it meanwhile;
 * -EINVAL, too many keys or unknown flags; -EBUSY, it waits already or is just being
 * ended; -ENOMEM.  With an errno, it does not wait by this call, and nothing is called.
 */
int twheel_try_complete_else_watch(struct twheel_operation *operation,
				   const u64 *keys, unsigned int nr_keys,
				   u64 time_ns, u64 slack_ns, unsigned int flags)
{
	struct twheel_registry *registry = operation->registry;
	struct operation_call call;
	int ret = 0;
	bool done;

	if (nr_keys > TWHEEL_OPERATION_KEYS || flags & ~TWHEEL_TIMER_ABS)
		return -EINVAL;

	spin_lock_bh(&registry->lock);
	if (operation->state != OPERATION_IDLE || operation->armed ||
	    operation->verdict == VERDICT_CANCELLED) {
		spin_unlock_bh(&registry->lock);
		return -EBUSY;
	}
	operation->state = OPERATION_PENDING;
	operation->verdict = VERDICT_NONE;
	call_begin(registry, &call, operation);
	done = operation_ask(operation);
	if (done || operation->verdict != VERDICT_NONE)
		ret = operation_judge(operation, done);
	else
		ret = operation_wait(operation, keys, nr_keys, time_ns, slack_ns,
				     flags);
	call_end(registry, &call);
	spin_unlock_bh(&registry->lock);
	return ret;
}
EXPORT_SYMBOL_GPL(twheel_try_complete_else_watch);

/**
 * twheel_check_and_complete() - complete the operations of a key whose condition is true
 * @registry: the registry.
 * @key: the key.
 *
 * Calls try_complete() of each operation that watched the key when this was called and
 * still does, and completes those for which it returns true.  If another task is asking an
 * operation, that task asks it once more.
 *
 * Context: as twheel_try_complete_else_watch().  The owner's functions may check keys in
 * turn; the owner must not let this nest deeply, because the stack is small.
 *
 * Return: how many it ended.
 */
unsigned int twheel_check_and_complete(struct twheel_registry *registry, u64 key)
{
	struct watched_key *watched;
	unsigned int ended = 0;
	struct watch *watch;
	u64 check;

	spin_lock_bh(&registry->lock);
	watched = keys_get(&registry->keys, key);
	if (!watched)
		goto unlock;
	check = ++registry->checks;
	while ((watch = list_first_entry_or_null(&watched->asked, struct watch,
						 asked)) &&
	       watch->threshold < check) {
		watch->threshold = check;
		list_move_tail(&watch->asked, &watched->asked);
		ended += operation_check(container_of(watch->watcher,
						      struct twheel_operation,
						      watcher));
	}
	keys_put(&registry->keys, watched);
unlock:
	spin_unlock_bh(&registry->lock);
	return ended;
}
EXPORT_SYMBOL_GPL(twheel_check_and_complete);

/**
 * twheel_operation_complete() - complete an operation without asking it
 * @operation: the operation.
 *
 * on_complete() is called, usually before this returns; if try_complete() or the timer's
 * function is running, after that.
 *
 * Context: as twheel_try_complete_else_watch().
 *
 * Return: true, it waited and this ends it; false, it did not wait, or another caller
 * ended it first.
 */
bool twheel_operation_complete(struct twheel_operation *operation)
{
	struct twheel_registry *registry = operation->registry;
	struct operation_call call;
	bool ends = false;

	spin_lock_bh(&registry->lock);
	if (operation->state == OPERATION_PENDING &&
	    !(operation->asking && operation->verdict != VERDICT_NONE)) {
		ends = true;
		call_begin(registry, &call, operation);
		if (operation->asking)
			operation->verdict = VERDICT_COMPLETED;
		else
			operation_end(operation, VERDICT_COMPLETED);
		call_end(registry, &call);
	}
	spin_unlock_bh(&registry->lock);
	return ends;
}
EXPORT_SYMBOL_GPL(twheel_operation_complete);

/* Cancel the operation if it waits; true: no other task will access it. */
static bool operation_settle(struct twheel_operation *operation, bool *waited)
{
	struct twheel_registry *registry = operation->registry;
	bool settled;

	spin_lock_bh(&registry->lock);
	if (operation->state == OPERATION_PENDING && !operation->asking)
		operation_end(operation, VERDICT_CANCELLED);
	else if (operation->asking && operation->verdict == VERDICT_NONE)
		operation->verdict = VERDICT_CANCELLED;
	if (operation->state == OPERATION_IDLE &&
	    operation->verdict == VERDICT_CANCELLED) {
		operation->verdict = VERDICT_NONE;
		*waited = true;
	}
	settled = operation->state == OPERATION_IDLE && !operation->armed &&
		  !is_called(registry, operation);
	spin_unlock_bh(&registry->lock);
	return settled;
}

/**
 * twheel_operation_cancel_sync() - end an operation without calling its owner
 * @operation: the operation; the owner's functions do not free it meanwhile.
 *
 * When it returns, none of the owner's functions is running for the operation, and its
 * memory can be freed.  If another caller lets it wait again at the same time, the result
 * is about that wait.
 *
 * Context: a task; sleeps.  Not from one of these functions, and not with a lock
 * held that they take.
 *
 * Return: true, it waited, and neither on_complete() nor on_expiration() is called;
 * false, it did not wait, or the function that was called first has returned.
 */
bool twheel_operation_cancel_sync(struct twheel_operation *operation)
{
	bool waited = false;

	wait_event(operation->registry->quiet, operation_settle(operation, &waited));
	return waited;
}
EXPORT_SYMBOL_GPL(twheel_operation_cancel_sync);
