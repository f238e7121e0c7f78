/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The structures of the queue: jobs, tubes, windows, and the queue itself. job.c says what
 * must hold between them.
 */
#ifndef QUEUE_JOBS_STATE_H
#define QUEUE_JOBS_STATE_H

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>
#include "alarm/alarm.h"
#include "alarm/clock.h"
#include "queue/jobs/queue.h"
#include "queue/jobs/session.h"
#include "queue/store/record.h"

/* The status of a job in memory. */
enum job_status {
	IS_READY,
	IS_RESERVED,
	IS_DELAYED,
	IS_BURIED,
	IS_BROKEN,	/* its record or body on disk is damaged */
	NR_STATUS
};

RB_HEAD(job_tree, job);

/* Times since the start in seconds, modulo 2^24: ages of up to 194 days. */
#define READY_S_BITS	24
#define READY_S_MASK	((1U << READY_S_BITS) - 1)

/**
 * struct holder - the jobs that a session has reserved; it may outlive the session
 * @reserved: the jobs, ordered by the end of their time to run.
 * @nr: number of jobs.
 * @session: the session; NULL: it has ended, and the jobs are being given back.
 * @hung_up: its client ended the session, not the daemon.
 * @orphans: in the queue's list of holders whose session has ended.
 */
struct holder {
	struct job_tree reserved;
	size_t nr;
	struct session *session;
	bool hung_up;
	TAILQ_ENTRY(holder) orphans;
};

/**
 * struct job - a job that is in memory
 * @alarm: DELAYED: when it is due; RESERVED: the end of its time to run. Its id is the
 *	job's id.
 * @node: READY: in its tube's tree; RESERVED: in its holder's.
 * @next: in the table of jobs by id.
 * @tube: its tube.
 * @holder: RESERVED: the holder of its session.
 * @deadline_ns: RESERVED: the end of its time to run, ALARM_BOOT.
 * @by_age: READY: in its tube's list, the longest ready first.
 * @order: as in struct job_place.
 * @seq: the number of its last change in the store.
 * @pri: its priority.
 * @status: enum job_status.
 * @stored: enum job_state: the index that has it on disk.
 * @keyed: it has a key.
 * @linked: its record has a schedule or, if it is dead, the tube that it came from.
 * @placed: it is in a tree, or its alarm is armed, or both, as its status says.
 * @ready_s: READY: since when, see age.c.
 */
struct job {
	struct alarm alarm;
	RB_ENTRY(job) node;
	struct job *next;
	struct tube *tube;
	union {
		struct {
			struct holder *holder;
			uint64_t deadline_ns;
		};
		TAILQ_ENTRY(job) by_age;
	};
	uint64_t order;
	uint64_t seq;
	uint32_t pri;
	uint32_t ready_s : READY_S_BITS;
	uint32_t status : 3;
	uint32_t stored : 2;
	uint32_t keyed : 1;
	uint32_t linked : 1;
	uint32_t placed : 1;
};

TAILQ_HEAD(job_list, job);

/**
 * struct watch - a session watches a tube
 * @session: the session.
 * @tube: the tube.
 * @entry: in the session's list.
 * @waiting: while the session waits: in the tube's list of waiting sessions.
 */
struct watch {
	struct session *session;
	struct tube *tube;
	TAILQ_ENTRY(watch) entry;
	TAILQ_ENTRY(watch) waiting;
};

TAILQ_HEAD(watch_queue, watch);

/**
 * struct tube - a named queue of jobs
 * @by_name: in the queue's tree of names.
 * @by_number: in the queue's tree of numbers, if it has a number.
 * @serve_entry: in the queue's list of tubes to serve.
 * @number: its number on disk; 0: it has never had a job or a policy.
 * @ready: its ready jobs that are in memory.
 * @nr_resident: number of jobs in @ready.
 * @cut: @ready has every ready job before this place; see window.c.
 * @whole: @ready has every ready job.
 * @by_age: the jobs in @ready, the longest ready first.
 * @cut_s: unless @whole: the other ready jobs count as ready since then, see age.c.
 * @waiting: watches of sessions that wait for a job of it, the longest wait first.
 * @nr: number of jobs by status, in memory or not.
 * @nr_urgent: ready jobs with a priority below 1024.
 * @nr_using: sessions that use it.
 * @nr_watching: sessions that watch it.
 * @nr_waiting: sessions that wait for it.
 * @nr_purging: unfinished purges of it.
 * @total_jobs: jobs put since the start.
 * @reserves: reserves of its jobs since the start.
 * @retries: failed attempts since the start that are retried.
 * @dead: jobs of it that died since the start.
 * @cmd_delete: deletes since the start.
 * @cmd_pause: pauses since the start.
 * @policy: as in struct tube_record. max_attempts is 0 if no policy was set; if @policy.dead
 *	is set then, an earlier version says that the tube must stay.
 * @pause_ns: length of its pause; 0: it is not paused.
 * @pause_until_ns: end of the pause, ALARM_BOOT.
 * @alarm: wakes at the end of the pause.
 * @to_serve: it is in the list of tubes to serve.
 * @name: its name, behind this structure.
 */
struct tube {
	RB_ENTRY(tube) by_name;
	RB_ENTRY(tube) by_number;
	TAILQ_ENTRY(tube) serve_entry;
	uint32_t number;
	struct job_tree ready;
	size_t nr_resident;
	struct job_place cut;
	bool whole;
	struct job_list by_age;
	uint32_t cut_s;
	struct watch_queue waiting;
	uint64_t nr[NR_STATUS];
	uint64_t nr_urgent;
	uint32_t nr_using;
	uint32_t nr_watching;
	uint32_t nr_waiting;
	uint32_t nr_purging;
	uint64_t total_jobs;
	uint64_t reserves;
	uint64_t retries;
	uint64_t dead;
	uint64_t cmd_delete;
	uint64_t cmd_pause;
	struct retry_policy policy;
	uint64_t pause_ns;
	uint64_t pause_until_ns;
	struct alarm alarm;
	bool to_serve;
	const char *name;
};

RB_HEAD(name_tree, tube);
RB_HEAD(number_tree, tube);
TAILQ_HEAD(tube_list, tube);
LIST_HEAD(session_list, session);
TAILQ_HEAD(kick_list, session);
TAILQ_HEAD(backup_list, session);
TAILQ_HEAD(purge_list, purge);
TAILQ_HEAD(orphan_list, holder);

/**
 * struct window - the delayed jobs of a clock that are in memory
 * @state: JOB_DELAYED or JOB_WALL.
 * @cut: every job that is due before this place is in memory and armed.
 * @end_ns: no job that is due later is in memory; not before @cut.
 * @alarm: wakes to load more jobs.
 */
struct window {
	enum job_state state;
	struct job_place cut;
	uint64_t end_ns;
	struct alarm alarm;
};

/**
 * struct schedules - schedules, which are on disk; see schedule.c
 * @nr: their number.
 * @alarm: wakes to look at the next one.
 * @look: the next turn looks at them.
 * @bytes: bytes of bodies that were put in this turn.
 * @passed_ns: while the times up to this one passed, the daemon could not put a job.
 */
struct schedules {
	uint64_t nr;
	struct alarm alarm;
	bool look;
	size_t bytes;
	uint64_t passed_ns;
};

/**
 * struct begun - the jobs whose delays began while the clock is in doubt; see anchor.c
 * @ids: some are there twice.
 * @nr: their number.
 * @room: as many fit.
 * @bytes: what moving them takes of a batch.
 * @overflow: there are more.
 */
struct begun {
	uint64_t *ids;
	size_t nr;
	size_t room;
	size_t bytes;
	bool overflow;
};

#define SESSION_BUCKETS	1024

/* Why a put is refused: the disk, the memory for bodies, or a limit. */
enum refusal { REFUSAL_DISK, REFUSAL_MEMORY, REFUSAL_JOBS, REFUSAL_TUBE_JOBS, NR_REFUSALS };

struct job_chunk;

/**
 * struct queue - all jobs, tubes and sessions
 * @config: its limits.
 * @store: its jobs on disk.
 * @alarms: wake it for what is due.
 * @clock: the clock of delays.
 * @noted_ns: the last of its times that was written.
 * @in_doubt: it was started when the wall clock was behind, and that was not set since.
 * @begun: the jobs whose delays began since then.
 * @start_ns: when it was opened, ALARM_BOOT.
 * @table: the jobs in memory, by id.
 * @table_mask: number of buckets of @table, less 1.
 * @free_jobs: unused memory for jobs.
 * @chunks: all memory for jobs.
 * @nr_resident: jobs in memory.
 * @nr_armed: delayed jobs with an alarm.
 * @max_resident: limit of @nr_resident.
 * @tubes: the tubes, by name.
 * @tubes_by_number: those with a number.
 * @to_serve: those that may have a job for a session that waits.
 * @nr_tubes: number of tubes.
 * @max_tubes: limit of @nr_tubes.
 * @tubes_warned: it was logged that they are almost as many as the limit.
 * @refused_ms: when it was last logged that puts are refused, by reason; CLOCK_MONOTONIC.
 * @default_tube: the tube "default", which is never freed.
 * @windows: delayed jobs in memory: of JOB_DELAYED and of JOB_WALL.
 * @schedules: jobs that are put again and again.
 * @sessions: the sessions, by id.
 * @kicking: sessions with an unfinished kick.
 * @backups: sessions that wait for a backup; the first one's may be running.
 * @backup_of: the session of the backup that runs; NULL: it has ended.
 * @backup_runs: the store makes a backup.
 * @purges: unfinished purges; the first one is next.
 * @purge_alarm: purges wait for it.
 * @purge_pauses: how often they have waited without going on.
 * @orphans: holders of sessions that have ended.
 * @nr_sessions: number of sessions.
 * @nr_watches: tubes that they watch, in all, without the first ones of each session.
 * @max_watches: limit of @nr_watches.
 * @draining: puts are refused.
 * @stopping: sessions that end do not give their jobs back.
 * @next_id: id of the next job.
 * @next_tube: number of the next tube.
 * @next_session: id of the next session.
 * @last_buried: order of the last job that was buried.
 * @nr: jobs by status, in memory or not.
 * @stats: what has been counted since the start.
 * @instance: a random name of this start.
 */
struct queue {
	struct queue_config config;
	struct store *store;
	struct alarms *alarms;
	struct clock clock;
	uint64_t noted_ns;
	bool in_doubt;
	struct begun begun;
	uint64_t start_ns;

	struct job **table;
	size_t table_mask;
	struct job *free_jobs;
	struct job_chunk *chunks;
	size_t nr_resident;
	size_t nr_armed;
	size_t max_resident;

	struct name_tree tubes;
	struct number_tree tubes_by_number;
	struct tube_list to_serve;
	size_t nr_tubes;
	size_t max_tubes;
	bool tubes_warned;
	uint64_t refused_ms[NR_REFUSALS];
	struct tube *default_tube;
	struct window windows[2];
	struct schedules schedules;
	struct session_list sessions[SESSION_BUCKETS];
	struct kick_list kicking;
	struct backup_list backups;
	struct session *backup_of;
	bool backup_runs;
	struct purge_list purges;
	struct alarm purge_alarm;
	unsigned int purge_pauses;
	struct orphan_list orphans;
	size_t nr_sessions;
	size_t nr_watches;
	size_t max_watches;

	bool draining;
	bool stopping;
	uint64_t next_id;
	uint32_t next_tube;
	uint64_t next_session;
	uint64_t last_buried;
	uint64_t nr[NR_STATUS];
	struct queue_stats stats;
	char instance[17];
};

/* The upper bits of an alarm's id say what it wakes. */
#define ID_KIND_SHIFT	62
#define ID_KIND(id)	((id) >> ID_KIND_SHIFT)
#define ID_NUMBER(id)	((id) & ((1ULL << ID_KIND_SHIFT) - 1))
#define ID_OF(kind, n)	((uint64_t)(kind) << ID_KIND_SHIFT | (n))

enum id_kind {
	ID_JOB,
	ID_SESSION,
	ID_TUBE,
	ID_WINDOW	/* the number of a window, ID_SCHEDULES or ID_PURGES */
};

#define ID_SCHEDULES	2
#define ID_PURGES	3

static inline uint64_t job_id(const struct job *job)
{
	return job->alarm.id;
}

/* Jobs of all statuses. */
static inline uint64_t nr_of_all(const uint64_t nr[NR_STATUS])
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < NR_STATUS; i++)
		sum += nr[i];
	return sum;
}

#endif /* QUEUE_JOBS_STATE_H */
