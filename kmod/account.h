/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Accounts: how many events each user has, in all contexts that the user opened.
 */
#ifndef TWHEEL_ACCOUNT_H
#define TWHEEL_ACCOUNT_H

#include <linux/types.h>

struct account;

struct account *account_open(void);
void account_close(struct account *account);
bool account_charge(struct account *account, unsigned int events);
void account_uncharge(struct account *account, unsigned int events);

#endif /* TWHEEL_ACCOUNT_H */
