// SPDX-License-Identifier: GPL-2.0
/*
 * Delayed operations of other modules.
 *
 * Their registry has a lock, which nests outside that of a base:
 *
 *	registry->lock  >  base->lock
 *
 * It is not held while a function of the owner's is called.  While that is
 * try_complete() (@asking), nobody else ends the operation or asks it: who wants to
 * leaves a word in @again or @verdict.  When it returns true, the operation is
 * completed, even if @verdict says that it expired or was cancelled meanwhile.
 *
 *                    +--- watches, asks <---+
 *                    |                      | not yet
 *	IDLE ------> PENDING ----------------+
 *	  ^   expired,  |  |
 *	  |   cancelled |  | complete, and the timer's function is about to come
 *	  +-------------+  v
 *	  |  complete   COMPLETING
 *	  +----------------+ it came
 *
 * Before on_complete() or on_expiration() is called, it is IDLE, has no watches,
 * and the timer's function will not come: so it can be freed, or wait again.  A
 * timer whose function is on its way (@armed) cannot be stopped from here; then that
 * function makes the call.  One that is cancelled meanwhile is IDLE, but cannot wait
 * again before that function came.
 *
 * A check goes through the watches of a key in the order in which they were last
 * checked, and moves each one to the end.  It ends at the first one that was in
 * this check or a later one: any behind that was moved after this check began, and
 * has been asked since.
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
	VERDICT_CANCELLED,	/* stays until who cancels has seen it */
};

/* The memory of a watch is got under a lock, maybe in an interrupt. */
#define OPERATION_GFP	(GFP_ATOMIC | __GFP_NOWARN)

/**
 * struct operation_call - a call of an owner's functions, by one caller
 * @list: its place among all that are under way.
 * @operation: which one's; only to compare with, as the call may free it.
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
	/* With the lock held, as whoever waits may end the registry next. */
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

/* Tell the owner, who may free it.  The lock is dropped meanwhile. */
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
 * The timer's function will not come, or is here.  Owners free operations without
 * saying so, hence debugobjects knows the timer only while it is armed.
 */
static void operation_disarmed(struct twheel_operation *operation)
{
	lockdep_assert_held(&operation->registry->lock);
	operation->armed = false;
	timer_debug_free(&operation->timer);
}

/*
 * End a PENDING operation that nobody is asking; its owner may free it.  If it had
 * expired, its timer's function is not on its way.
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
 * Ask a PENDING operation, that nobody is asking, and ask it again if keys of it were
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

/* End an operation that was asked, if it is to end.  True: since it said so. */
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
		/* What comes after the verdict is too late. */
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
 * @registry: the registry, not on a stack, as work is queued for it.
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
 * twheel_registry_destroy() - free what a registry has
 * @registry: a registry none of whose operations waits, and that nobody uses.
 *
 * Waits for functions of the last operations to return.  The registry's own memory
 * stays its owner's, who may free it then.
 *
 * Context: a task; sleeps.
 */
void twheel_registry_destroy(struct twheel_registry *registry)
{
	wait_event(registry->quiet, is_quiet(registry));
	keys_destroy(&registry->keys);
	/* A timer's function may just be letting go of the lock. */
	synchronize_rcu();
}
EXPORT_SYMBOL_GPL(twheel_registry_destroy);

/**
 * twheel_operation_setup() - prepare an operation for its first use
 * @operation: the operation, in memory that stays while it waits.
 * @registry: where its keys are.
 * @ops: what to call.
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

/* Let it watch its keys.  On failure it watches none. */
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
 * Watch and arm an operation that was asked and is not complete, and ask it once
 * more: what it waits for may have come before it watched.
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
 * @keys: the keys to watch; not needed after the call.
 * @nr_keys: how many; at most TWHEEL_OPERATION_KEYS, 0 to wait for its time.
 * @time_ns: until when it waits, as for twheel_timer_arm().
 * @slack_ns: how much longer it may.
 * @flags: TWHEEL_TIMER_REL or TWHEEL_TIMER_ABS.
 *
 * Asks try_complete(), before the operation watches the keys and after.  If it says
 * yes, on_complete() is called, as a rule before this returns; where the time came
 * at the same moment, by the timer in softirq context.  Unless it returns an errno,
 * the operation may have ended, and be gone, when it returns.
 *
 * Context: a task or softirq, interrupts on, with no lock held that the owner's
 * functions take.  Does not sleep; memory is got with GFP_ATOMIC.
 *
 * Return: 1, it was completed by this call; 0, it waits, or was ended meanwhile by
 * somebody else; -EINVAL, too many keys or unknown flags; -EBUSY, it waits already or
 * is just being ended; -ENOMEM: it does not wait, and nothing is called.
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
 * twheel_check_and_complete() - a key's operations may be complete
 * @registry: the registry.
 * @key: the key.
 *
 * Asks try_complete() of each operation that watched the key when this was called
 * and still does, and ends those that say yes.  One that is being asked by somebody
 * else is asked once more by that one.
 *
 * Context: as twheel_try_complete_else_watch().  What that calls may check keys in
 * turn; the owner sees to it that this does not nest deeply, as the stack is small.
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
 * twheel_operation_complete() - complete an operation, whatever it waits for
 * @operation: the operation.
 *
 * on_complete() is called, as a rule before this returns; where try_complete() or
 * the timer's function is under way, after that.
 *
 * Context: as twheel_try_complete_else_watch().
 *
 * Return: true, it waited and this ends it; false, it did not wait, or somebody else
 * was faster.
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

/* Cancel the operation if it waits; true: nobody will touch it any more. */
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
 * twheel_operation_cancel_sync() - end an operation without telling its owner
 * @operation: the operation, which is not freed by its owner's functions meanwhile.
 *
 * When it returns, none of the owner's functions is running for the operation, and
 * its memory can be freed; unless somebody else lets it wait again: then the answer
 * is about that.
 *
 * Context: a task; sleeps.  Not from one of these functions, and not with a lock
 * held that they take.
 *
 * Return: true, it waited, and neither on_complete() nor on_expiration() is called;
 * false, it did not wait, or the one that was faster has returned.
 */
bool twheel_operation_cancel_sync(struct twheel_operation *operation)
{
	bool waited = false;

	wait_event(operation->registry->quiet, operation_settle(operation, &waited));
	return waited;
}
EXPORT_SYMBOL_GPL(twheel_operation_cancel_sync);
