/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a context must have, by the results of the commands and the records that were read: each
 * event, and each counter of fdinfo.
 */
#ifndef FAULTS_LEDGER_H
#define FAULTS_LEDGER_H

#include <stdbool.h>
#include <stddef.h>

#include "test/device/device.h"

#define LEDGER_MAX	1024

struct ledger_event {
	__u64 id;
	__u64 data;
	__u32 state;
	__u32 reason;
	__u32 watches;
	bool periodic;
	__u64 keys[4];
};

struct ledger {
	struct ledger_event events[LEDGER_MAX];
	size_t nr;
	long long added;
	long long finished;
	long long cancelled;
	long long completed;
	long long records;
};

/*
 * A command had this result. An ADD of time 0 is READY at once, all others are due in a far
 * future. @last_add: the id of the ADD before it in the call, for a WATCH with id 0.
 */
void ledger_command(struct ledger *ledger, const struct twheel_cmd *cmd, __u64 *last_add);

/* A record was read. */
void ledger_record(struct ledger *ledger, const struct twheel_record *record);

/* A record of this event is the next one to be read: the READY one with the least data. */
const struct ledger_event *ledger_next(const struct ledger *ledger);

/* The context has exactly what the ledger says. */
void ledger_check(const struct ledger *ledger, int fd);

/*
 * The file still works: an event expires, all records are read, each of the events that are
 * left is cancelled, and nothing remains.
 */
void ledger_close(struct ledger *ledger, int fd);

#endif /* FAULTS_LEDGER_H */
