// SPDX-License-Identifier: GPL-2.0
/*
 * Delayed operations: keys and watches; and operations of other modules.
 *
 * Keys and watches
 * ----------------
 * A watch ties an operation to a key.  A table finds the key, which has its watches
 * sorted by what they wait for, and the operation has a list of them:
 *
 *	table of keys
 *	      |
 *	  watched_key ---- sums:   watch  watch  watch   by what is missing
 *	                   levels: watch  watch          by level
 *	                             |
 *	   operation --------------- + ---- ...          its watches
 *
 * So a signal looks at the first of each kind, and that is all if it satisfies
 * none.  A key is in the table while it is watched and no longer.
 *
 * A watch for a sum notes the key's total at which it is satisfied.  Both count
 * modulo 2^64 and their difference, which is what is missing, is between 1 and
 * 2^64 - 1: nothing overflows, whatever was signalled before.  A signal goes to the
 * total after it has taken all watches with no more missing than its value; so the
 * order of those that are left does not change.
 *
 * There is no lock here.  Those of a context are guarded by its mutex.  When the
 * time of an event comes, nobody looks at its watches: that would need the lock of
 * all keys in an interrupt.  Its state alone tells that they are dead.  They are
 * unlinked when a signal meets them, or with the event.
 *
 * Operations of modules
 * ---------------------
 * Their registry has a lock, which nests outside that of a base:
 *
 *	registry->lock  >  base->lock
 *
 * It is not held while a function of the owner's is called.  While that is
 * try_complete() (@asking), nobody else ends the operation or asks it: who wants to
 * leaves a word in @again or @verdict.  A yes counts, whatever the verdict.
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
#include <linux/slab.h>

#include "compat.h"
#include "operation.h"

static const struct rhashtable_params key_params = {
	.key_len = sizeof_field(struct watched_key, key),
	.key_offset = offsetof(struct watched_key, key),
	.head_offset = offsetof(struct watched_key, hash),
	/* Few keys that come and go do not resize it all the time. */
	.min_size = 64,
	.automatic_shrinking = true,
};

static struct kmem_cache *key_cache;
static struct kmem_cache *watch_cache;

/* --- keys ------------------------------------------------------------------- */

/**
 * keys_init() - make an empty table of keys
 * @keys: the table.
 *
 * Context: a task; sleeps.
 *
 * Return: 0 or -ENOMEM.
 */
int keys_init(struct rhashtable *keys)
{
	return rhashtable_init(keys, &key_params);
}

/**
 * keys_destroy() - free a table without keys
 * @keys: the table.
 *
 * Context: a task; sleeps.
 */
void keys_destroy(struct rhashtable *keys)
{
	WARN_ON_ONCE(atomic_read(&keys->nelems));
	rhashtable_destroy(keys);
}

static struct watched_key *keys_add(struct rhashtable *keys, u64 number, gfp_t gfp)
{
	struct watched_key *key = kmem_cache_alloc(key_cache, gfp);

	if (!key)
		return NULL;
	*key = (struct watched_key){
		.key = number,
		.refs = 1,
		.sums = RB_ROOT_CACHED,
		.levels = RB_ROOT_CACHED,
	};
	INIT_LIST_HEAD(&key->asked);
	if (rhashtable_insert_fast(keys, &key->hash, key_params)) {
		kmem_cache_free(key_cache, key);
		return NULL;
	}
	return key;
}

/**
 * keys_get() - find a key
 * @keys: the table.
 * @number: the key.
 *
 * Return: the key, for keys_put(); NULL: it has no watches.
 */
struct watched_key *keys_get(struct rhashtable *keys, u64 number)
{
	struct watched_key *key = rhashtable_lookup_fast(keys, &number, key_params);

	if (key)
		key->refs++;
	return key;
}

/**
 * keys_put() - let go of a key
 * @keys: the table.
 * @key: the key, which is freed if nobody else refers to it.
 */
void keys_put(struct rhashtable *keys, struct watched_key *key)
{
	if (--key->refs)
		return;
	/* Who resizes the table looks at it under the locks that this takes. */
	rhashtable_remove_fast(keys, &key->hash, key_params);
	kmem_cache_free(key_cache, key);
}

static struct watch *first_of(const struct rb_root_cached *watches)
{
	return rb_entry_safe(rb_first_cached(watches), struct watch, node);
}

/* What signals have to add up to before they satisfy a watch. */
static u64 missing(const struct watch *watch)
{
	return watch->threshold - watch->key->total;
}

/**
 * key_satisfied() - a watch that a signal satisfies
 * @key: the key.
 * @value: the signal's.
 *
 * When there is none any more, @value is to be added to the key's total.
 *
 * Return: the one that waits for least; NULL: none.
 */
struct watch *key_satisfied(const struct watched_key *key, u64 value)
{
	struct watch *watch = first_of(&key->sums);

	if (watch && missing(watch) <= value)
		return watch;
	watch = first_of(&key->levels);
	return watch && watch->threshold <= value ? watch : NULL;
}

/**
 * key_any() - a watch of a key, whatever it waits for
 * @key: the key.
 *
 * Return: one; NULL: there is none.
 */
struct watch *key_any(const struct watched_key *key)
{
	return first_of(&key->sums) ?: first_of(&key->levels);
}

/* --- watches ---------------------------------------------------------------- */

/**
 * watch_create() - make a watch of a key
 * @keys: the table of keys.
 * @number: the key; new if it has no watch yet.
 * @gfp: how to get the memory.
 *
 * Return: the watch, not linked, for watch_free(); NULL for want of memory.
 */
struct watch *watch_create(struct rhashtable *keys, u64 number, gfp_t gfp)
{
	struct watch *watch = kmem_cache_alloc(watch_cache, gfp);

	if (!watch)
		return NULL;
	watch->kind = WATCH_UNLINKED;
	watch->key = keys_get(keys, number);
	if (watch->key)
		return watch;

	watch->key = keys_add(keys, number, gfp);
	if (!watch->key) {
		kmem_cache_free(watch_cache, watch);
		return NULL;
	}
	return watch;
}

#define watch_of(rb)	rb_entry(rb, struct watch, node)

static bool misses_less(struct rb_node *a, const struct rb_node *b)
{
	return missing(watch_of(a)) < missing(watch_of(b));
}

static bool is_lower(struct rb_node *a, const struct rb_node *b)
{
	return watch_of(a)->threshold < watch_of(b)->threshold;
}

/**
 * watch_link() - let a watch wait
 * @watch: the watch, not linked.
 * @watcher: whose it becomes.
 * @kind: what for.
 * @need: how much, not 0; of an ASKED one, the last check, of which it is no part.
 */
void watch_link(struct watch *watch, struct twheel_watcher *watcher,
		enum watch_kind kind, u64 need)
{
	struct watched_key *key = watch->key;

	watch->kind = kind;
	watch->threshold = need;
	watch->watcher = watcher;
	list_add_tail(&watch->siblings, &watcher->watches);
	watcher->nr_watches++;
	switch (kind) {
	case WATCH_SUM:
		watch->threshold += key->total;
		rb_add_cached(&watch->node, &key->sums, misses_less);
		break;
	case WATCH_LEVEL:
		rb_add_cached(&watch->node, &key->levels, is_lower);
		break;
	default:
		list_add_tail(&watch->asked, &key->asked);
		break;
	}
}

/**
 * watch_unlink() - let a watch wait no longer
 * @watch: a watch that is linked; its key and watcher stay known.
 */
void watch_unlink(struct watch *watch)
{
	struct watched_key *key = watch->key;

	switch (watch->kind) {
	case WATCH_SUM:
		rb_erase_cached(&watch->node, &key->sums);
		break;
	case WATCH_LEVEL:
		rb_erase_cached(&watch->node, &key->levels);
		break;
	default:
		list_del(&watch->asked);
		break;
	}
	watch->kind = WATCH_UNLINKED;
	list_del(&watch->siblings);
	watch->watcher->nr_watches--;
}

/**
 * watch_free() - free a watch, and its key if that was the last one
 * @keys: the table of keys.
 * @watch: the watch, linked or not.
 */
void watch_free(struct rhashtable *keys, struct watch *watch)
{
	if (watch->kind != WATCH_UNLINKED)
		watch_unlink(watch);
	keys_put(keys, watch->key);
	kmem_cache_free(watch_cache, watch);
}

void watcher_init(struct twheel_watcher *watcher)
{
	INIT_LIST_HEAD(&watcher->watches);
	watcher->nr_watches = 0;
}

/**
 * watcher_drop() - free all watches of an operation
 * @keys: the table of keys.
 * @watcher: the operation's.
 */
void watcher_drop(struct rhashtable *keys, struct twheel_watcher *watcher)
{
	struct watch *watch, *next;

	list_for_each_entry_safe(watch, next, &watcher->watches, siblings)
		watch_free(keys, watch);
}

/* --- operations of modules -------------------------------------------------- */

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
	call->operation = operation;
	list_add(&call->list, &registry->calls);
}

static void call_end(struct twheel_registry *registry, struct operation_call *call)
{
	list_del(&call->list);
	/* With the lock held, as whoever waits may end the registry next. */
	if (waitqueue_active(&registry->quiet))
		wake_up_all(&registry->quiet);
}

static bool is_called(const struct twheel_registry *registry,
		      const struct twheel_operation *operation)
{
	const struct operation_call *call;

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
 * End a PENDING operation that nobody is asking; its owner may free it.  If it had
 * expired, its timer's function is not on its way.
 */
static void operation_end(struct twheel_operation *operation, enum verdict verdict)
{
	watcher_drop(&operation->registry->keys, &operation->watcher);
	operation->state = OPERATION_IDLE;
	operation->verdict = verdict;
	if (operation->armed && twheel_timer_cancel(&operation->timer))
		operation->armed = false;
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
	operation->armed = false;
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
	watcher_init(&operation->watcher);
}
EXPORT_SYMBOL_GPL(twheel_operation_setup);

/* Let it watch its keys.  On failure it watches none. */
static int operation_watch(struct twheel_operation *operation, const u64 *keys,
			   unsigned int nr_keys)
{
	struct twheel_registry *registry = operation->registry;
	unsigned int i;

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
 * else is asked once more by him.
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

/**
 * operation_init() - before the first watch
 *
 * Return: 0 or -ENOMEM; then operation_exit() undoes what was done.
 */
int operation_init(void)
{
	key_cache = kmem_cache_create("twheel_keys", sizeof(struct watched_key), 0,
				      0, NULL);
	watch_cache = kmem_cache_create("twheel_watches", sizeof(struct watch), 0,
					0, NULL);
	return key_cache && watch_cache ? 0 : -ENOMEM;
}

/**
 * operation_exit() - after the last one
 */
void operation_exit(void)
{
	kmem_cache_destroy(watch_cache);
	kmem_cache_destroy(key_cache);
}
