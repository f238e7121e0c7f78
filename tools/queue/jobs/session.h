/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A session: which tube a client uses, which tubes it watches, which jobs it has reserved,
 * whether it waits for a job, and its unfinished kick or purge.
 */
#ifndef QUEUE_JOBS_SESSION_H
#define QUEUE_JOBS_SESSION_H

#include <bsd/sys/queue.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "alarm/alarm.h"
#include "queue/store/record.h"

struct holder;
struct job;
struct purge;
struct queue;
struct session;
struct tube;
struct watch;

TAILQ_HEAD(watch_list, watch);

/* Why a session continues that has waited, or had an unfinished kick or purge. */
enum session_event {
	SESSION_RESERVED,	/* it got a job; session_ops.reserved() was called before */
	SESSION_TIMED_OUT,	/* the timeout of its reserve is over */
	SESSION_DEADLINE_SOON,	/* the time to run of a job that it holds ends soon */
	SESSION_KICKED,		/* its kick is complete */
	SESSION_PURGED,		/* its purge is complete, or ended with an error */
	SESSION_BACKED_UP	/* its backup is complete, or was not made */
};

/**
 * struct session_ops - what the owner of a session is told
 * @reserved: the session has reserved @job. @body is valid during this call only.
 * @resumed: the wait, the kick or the purge of the session is over: it can run its next command.
 *
 * Neither may end the session, nor call the queue.
 */
struct session_ops {
	void (*reserved)(struct session *session, const struct job *job, const void *body,
			 size_t len);
	void (*resumed)(struct session *session, enum session_event event);
};

/**
 * struct session - a client of the queue
 * @queue: its queue.
 * @ops: tells its owner what happens.
 * @used: the tube for puts.
 * @watches: the tubes that it watches, in the order of watching.
 * @nr_watches: number of watched tubes.
 * @holder: holds its reserved jobs.
 * @alarm: while it waits: for its timeout or for DEADLINE_SOON.
 * @id: its number, from 1, never used again.
 * @wait_until_ns: the end of its timeout, ALARM_BOOT.
 * @kicks_left: jobs that it still has to kick; 0: it has no unfinished kick.
 * @kicked: jobs that its last kick has kicked.
 * @kick_from: where the kick continues.
 * @backup: name of the backup that it waits for; NULL: none.
 * @backup_result: what became of its last backup: 0 or a negative errno.
 * @purge: its unfinished purge, or NULL.
 * @purged: jobs that its last purge has deleted.
 * @purge_err: 0, or the error that ended that purge.
 * @waiting: it waits in a reserve.
 * @producer: it has put a job.
 * @worker: it has asked for a job.
 * @entry: in the queue's list of sessions.
 * @kicking: in the queue's list of unfinished kicks.
 * @backups: in the queue's list of sessions that wait for a backup.
 */
struct session {
	struct queue *queue;
	const struct session_ops *ops;
	struct tube *used;
	struct watch_list watches;
	unsigned int nr_watches;
	struct holder *holder;
	struct alarm alarm;
	uint64_t id;
	uint64_t wait_until_ns;
	uint64_t kicks_left;
	uint64_t kicked;
	struct job_place kick_from;
	char *backup;
	int backup_result;
	struct purge *purge;
	uint64_t purged;
	int purge_err;
	bool waiting;
	bool producer;
	bool worker;
	LIST_ENTRY(session) entry;
	TAILQ_ENTRY(session) kicking;
	TAILQ_ENTRY(session) backups;
};

/* Returns 0 or -ENOMEM. */
int session_init(struct session *session, struct queue *queue, const struct session_ops *ops);

/*
 * The client itself has ended its connection; to be called before session_destroy(). So
 * attempts at its reserved jobs have failed: it may have crashed.
 */
void session_hung_up(struct session *session);

/* The client is gone: the next turns give its reserved jobs back. */
void session_destroy(struct session *session);

/* Give back at most @most jobs of sessions that have ended; true: more are left. */
bool sessions_give_back(struct queue *queue, size_t most);

/* --- its tubes ------------------------------------------------------------------------ */

void session_use(struct session *session, struct tube *tube);

/* The watch of a tube, or NULL. */
struct watch *session_find_watch(struct session *session, const struct tube *tube);

/* Returns 0, also if it is watched already; -ENOMEM: one tube too many. */
int session_watch(struct session *session, struct tube *tube);
void session_ignore(struct session *session, struct watch *watch);

/* --- waiting -------------------------------------------------------------------------- */

/* The most urgent job of the tubes that it watches; NULL: none is ready. */
struct job *session_best_job(struct session *session);

/*
 * Reserved jobs must be in memory: may this session reserve one more? One session gets eight
 * times the room that it leaves for all others, so none can take everything.
 */
bool session_may_reserve(const struct session *session);

/* The time to run of a job that it holds ends soon. */
bool session_deadline_is_soon(struct session *session);

/* Wait for a job; SESSION_TIMED_OUT follows after @timeout_ns. */
void session_wait(struct session *session, uint64_t timeout_ns);

/* Stop waiting: remove it from the lists of its tubes. */
void session_stop_waiting(struct session *session);

/* The jobs that it holds have changed: if it waits, arm its alarm again. */
void session_rearm(struct session *session);

/* The alarm of the session @number has fired. */
void session_alarm(struct queue *queue, uint64_t number);

/* --- kicks ---------------------------------------------------------------------------- */

/*
 * Kick up to @most jobs of the tube that the session uses: buried jobs or, if there are none,
 * delayed ones. Returns true if it is complete; else SESSION_KICKED follows.
 */
bool session_kick(struct session *session, uint64_t most);

/* Continue each unfinished kick by a piece; true: one is still unfinished. */
bool sessions_kick(struct queue *queue);

/* The first job of the used tube in an index of the disk; false: there is none. */
bool session_first_job(struct session *session, enum job_state state,
		       struct job_place *place);

#endif /* QUEUE_JOBS_SESSION_H */
