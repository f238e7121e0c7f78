/* SPDX-License-Identifier: GPL-2.0 */
/* Loading: what a relay has to know of a partition before it reads it. */
#ifndef RELAY_LOAD_H
#define RELAY_LOAD_H

#include "relay/state.h"

/* Why a partition is stopped when it was loaded: records may be missing. */
#define RELAY_LOAD_WHY	160

/**
 * struct relay_loaded - what was found out about a partition
 * @topic: its topic.
 * @serial: its serial number.
 * @committed: the committed offset; RD_KAFKA_OFFSET_INVALID: there is none.
 * @begin: the offset to read first.
 * @text: the text of the commit, of a relay of version 1; NULL: there is none.
 * @map: its part of the map.
 * @is_known: what follows and @begin are known; otherwise its leader has not answered.
 * @why: why it cannot be read; empty if it can.
 */
struct relay_loaded {
	char topic[RELAY_TOPIC_MAX + 1];
	uint64_t serial;
	int64_t committed;
	int64_t begin;
	char *text;
	struct done_map map;
	bool is_known;
	char why[RELAY_LOAD_WHY];
};

/*
 * Start to load all partitions of a number that are in state PARTITION_LOADING. When that is
 * done, relay_partition_loaded() is called for each, and relay_cancels_expect().
 */
void relay_load_start(struct relay *relay, int32_t number);

/* Nobody waits any more for what is being loaded. */
void relay_load_abandon(struct relay *relay);

#endif /* RELAY_LOAD_H */
