/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A protocol without jobs, for tests of connections: each reply tells the test which command
 * came, and the test decides what is on disk and when a wait ends.
 *
 *	use NAME		USING NAME
 *	put ...			INSERTED N, which waits for change N; its body is @body
 *	fail ID [BYTES]		FAILED, with its body in @body
 *	peek N			FOUND N N, with N bytes of body
 *	reserve			waits
 *	kick ID			the peer ID, which waits, is given RESERVED; KICKED 1
 *	others			their name
 *
 * The functions of queue/protocol/run.h and peer.h, and two of the store, are defined here. A
 * test that is linked with this needs no other part of protocol/ but parse.c.
 */
#ifndef QUEUE_TEST_FAKE_PROTOCOL_H
#define QUEUE_TEST_FAKE_PROTOCOL_H

#include "queue/protocol/run.h"

/* More peers than a test makes. */
#define FAKE_PEERS	20000
#define FAKE_BODY_MAX	(1024 * 1024)

/**
 * struct fake_protocol - what it has seen
 * @synced: returned by store_synced().
 * @behind: returned by store_writer_is_behind().
 * @seq: the number of the last put.
 * @nr_runs: number of commands.
 * @nr_lacking: number of commands without memory for their body.
 * @nr_peers: number of peers.
 * @nr_hung_up: number of those whose client ended the connection.
 * @next_id: id of the last peer.
 * @peers: by id.
 * @body: of the last command that had one.
 * @body_len: its length.
 * @body_max: limit of what peek returns.
 * @run_ns: a command takes at least so long.
 * @fail_init: peers cannot be made.
 */
struct fake_protocol {
	uint64_t synced;
	bool behind;
	uint64_t seq;
	uint64_t nr_runs;
	uint64_t nr_lacking;
	unsigned int nr_peers;
	unsigned int nr_hung_up;
	uint64_t next_id;
	struct peer *peers[FAKE_PEERS];
	char body[FAKE_BODY_MAX];
	size_t body_len;
	size_t body_max;
	uint64_t run_ns;
	bool fail_init;
};

extern struct fake_protocol fake;

/* End the wait of a peer, as if a job had come for it. */
void fake_wake(uint64_t id);

#endif /* QUEUE_TEST_FAKE_PROTOCOL_H */
