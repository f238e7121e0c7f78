// SPDX-License-Identifier: GPL-2.0
/*
 * Accounts: how many events each user has, in all contexts that the user opened.
 *
 * The kernel's own counters of users are not exported to modules.  Events are counted in
 * blocks, the pages of a context, so that arming an event touches nothing that CPUs share.
 * An account exists as long as a context of its user.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/uidgid.h>
#include <linux/xarray.h>

#include "account.h"

#define MAX_USER_EVENTS_LIMIT	2147483648

static unsigned int max_user_events = 4194304;

static int set_max_user_events(const char *value, const struct kernel_param *param)
{
	return param_set_uint_minmax(value, param, 0, MAX_USER_EVENTS_LIMIT);
}

static const struct kernel_param_ops max_user_events_ops = {
	.set = set_max_user_events,
	.get = param_get_uint,
};

module_param_cb(max_user_events, &max_user_events_ops, &max_user_events, 0444);
MODULE_PARM_DESC(max_user_events,
		 "Most events of a user without CAP_SYS_RESOURCE (default 4194304)");

/**
 * struct account - how many events a user has
 * @uid: the user.
 * @events: how many events have room in the user's blocks.
 * @contexts: how many contexts refer to it; guarded by @accounts_mutex.
 */
struct account {
	uid_t uid;
	atomic64_t events;
	unsigned int contexts;
};

static DEFINE_XARRAY(accounts);
static DEFINE_MUTEX(accounts_mutex);

/* The account of a user, made if there is none; NULL: there is no memory. */
static struct account *account_get(uid_t uid)
{
	struct account *account = xa_load(&accounts, uid);

	if (!account) {
		account = kzalloc(sizeof(*account), GFP_KERNEL_ACCOUNT);
		if (!account)
			return NULL;
		account->uid = uid;
		if (xa_err(xa_store(&accounts, uid, account, GFP_KERNEL))) {
			kfree(account);
			return NULL;
		}
	}
	account->contexts++;
	return account;
}

/**
 * account_open() - get the account of the current task's user
 *
 * Return: the account, for account_close(); NULL, the user has CAP_SYS_RESOURCE and is not
 * limited; ERR_PTR(-ENOMEM).
 *
 * Context: a task; sleeps.
 */
struct account *account_open(void)
{
	struct account *account;

	if (ns_capable_noaudit(&init_user_ns, CAP_SYS_RESOURCE))
		return NULL;
	mutex_lock(&accounts_mutex);
	account = account_get(from_kuid(&init_user_ns, current_uid()));
	mutex_unlock(&accounts_mutex);
	return account ?: ERR_PTR(-ENOMEM);
}

/**
 * account_close() - a context does not use its account any more
 * @account: the result of account_open() for the context.
 *
 * Context: a task; sleeps.
 */
void account_close(struct account *account)
{
	if (IS_ERR_OR_NULL(account))
		return;
	mutex_lock(&accounts_mutex);
	if (!--account->contexts) {
		WARN_ON_ONCE(atomic64_read(&account->events));
		xa_erase(&accounts, account->uid);
		kfree(account);
	}
	mutex_unlock(&accounts_mutex);
}

/**
 * account_charge() - add events to an account
 * @account: the account; NULL: not limited.
 * @events: how many.
 *
 * Return: false if that exceeds the limit; then nothing is added.
 */
bool account_charge(struct account *account, unsigned int events)
{
	u64 limit = roundup(max_user_events, events);
	s64 charged;

	if (!account)
		return true;
	/* Adding too much, even for a moment, would make another task's charge fail. */
	charged = atomic64_read(&account->events);
	do {
		if (charged + events > limit)
			return false;
	} while (!atomic64_try_cmpxchg(&account->events, &charged, charged + events));
	return true;
}

/**
 * account_uncharge() - take events off an account
 * @account: the account; NULL: not limited.
 * @events: how many.
 */
void account_uncharge(struct account *account, unsigned int events)
{
	if (account)
		atomic64_sub(events, &account->events);
}
