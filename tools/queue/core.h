/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The queue's inside: what its files have in common. See queue.c for what must hold.
 */
#ifndef TWHEELQ_CORE_H
#define TWHEELQ_CORE_H

#include "clock.h"
#include "queue.h"
#include "util.h"

/* What a job in memory is. */
enum job_status {
	IS_READY,
	IS_RESERVED,
	IS_DELAYED,
	IS_BURIED,
	IS_BROKEN,	/* what the disk has of it is damaged */
	NR_STATUS
};

RB_HEAD(job_tree, job);

/**
 * struct holder - what holds reserved jobs: a session's, which may be gone
 * @reserved: by when their time to run is over.
 * @nr: how many they are.
 * @session: whose they are; NULL: it is gone, and they are given back.
 * @orphans: in the queue's list of those whose session is gone.
 */
struct holder {
	struct job_tree reserved;
	size_t nr;
	struct session *session;
	TAILQ_ENTRY(holder) orphans;
};

/**
 * struct job - a job that is in memory
 * @alarm: DELAYED: when it is due; RESERVED: when its time to run is over. Its id is the
 *	job's id.
 * @node: READY: in its tube's tree; RESERVED: in its holder's.
 * @next: in the table of jobs by id.
 * @tube: its tube.
 * @holder: RESERVED: what holds it.
 * @order: as in struct job_place.
 * @deadline_ns: RESERVED: when its time to run is over, ALARM_BOOT.
 * @seq: the number of its last change in the store.
 * @pri: its priority.
 * @status: enum job_status.
 * @stored: enum job_state: in which index the disk has it.
 * @keyed: it has a key.
 * @placed: it is in a tree, or its alarm is armed, or both, as its status says.
 */
struct job {
	struct alarm alarm;
	RB_ENTRY(job) node;
	struct job *next;
	struct tube *tube;
	struct holder *holder;
	uint64_t order;
	uint64_t deadline_ns;
	uint64_t seq;
	uint32_t pri;
	uint8_t status;
	uint8_t stored;
	bool keyed;
	bool placed;
};

/* A session that watches a tube. */
struct watch {
	struct session *session;
	struct tube *tube;
	TAILQ_ENTRY(watch) entry;
	TAILQ_ENTRY(watch) waiting;
};

TAILQ_HEAD(watch_queue, watch);

/**
 * struct tube - a named queue of jobs
 * @by_name: in the queue's tree.
 * @by_number: the same, if it has a number.
 * @hungry: in the list of tubes that may have a job for who waits.
 * @number: as on disk; 0: it has never had a job or a policy.
 * @ready: jobs that are ready and in memory.
 * @nr_resident: how many these are.
 * @cut: see window.c: all that are ready and before it are in @ready.
 * @whole: and so are those after it.
 * @waiting: sessions that wait for a job of it, the first one first.
 * @nr: jobs by status, in memory or not.
 * @nr_urgent: those that are ready with a priority below 1024.
 * @nr_using: sessions that use it.
 * @nr_watching: sessions that watch it.
 * @nr_waiting: sessions that wait for it.
 * @total_jobs: jobs put since the start.
 * @cmd_delete: deletes since the start.
 * @cmd_pause: pauses since the start.
 * @policy: as in struct tube_record. max_attempts is 0 if none was set; then @policy.dead
 *	says that jobs of it are in a tube for the dead, so that its number has to stay.
 * @pause_ns: for how long it was paused; 0: it is not.
 * @pause_until_ns: until when, ALARM_BOOT.
 * @alarm: the end of the pause.
 * @is_hungry: it is in that list.
 * @name: its name, behind this structure.
 */
struct tube {
	RB_ENTRY(tube) by_name;
	RB_ENTRY(tube) by_number;
	TAILQ_ENTRY(tube) hungry;
	uint32_t number;
	struct job_tree ready;
	size_t nr_resident;
	struct job_place cut;
	bool whole;
	struct watch_queue waiting;
	uint64_t nr[NR_STATUS];
	uint64_t nr_urgent;
	uint32_t nr_using;
	uint32_t nr_watching;
	uint32_t nr_waiting;
	uint64_t total_jobs;
	uint64_t cmd_delete;
	uint64_t cmd_pause;
	struct retry_policy policy;
	uint64_t pause_ns;
	uint64_t pause_until_ns;
	struct alarm alarm;
	bool is_hungry;
	const char *name;
};

RB_HEAD(name_tree, tube);
RB_HEAD(number_tree, tube);
TAILQ_HEAD(tube_list, tube);
LIST_HEAD(session_list, session);
TAILQ_HEAD(kick_list, session);
TAILQ_HEAD(orphan_list, holder);

/**
 * struct window - the delayed jobs of a clock that are in memory
 * @state: JOB_DELAYED or JOB_WALL.
 * @cut: all jobs of it that are due before this place are in memory and armed.
 * @end_ns: none that is due later is in memory; not before @cut.
 * @alarm: when to look for more.
 */
struct window {
	enum job_state state;
	struct job_place cut;
	uint64_t end_ns;
	struct alarm alarm;
};

#define SESSION_BUCKETS	1024

struct job_chunk;

struct queue {
	struct queue_config config;
	struct store *store;
	struct alarms *alarms;
	struct clock clock;
	uint64_t start_ns;

	/* Jobs in memory. */
	struct job **table;
	size_t table_mask;
	struct job *free_jobs;
	struct job_chunk *chunks;
	size_t nr_resident;
	size_t nr_armed;	/* delayed ones with an alarm */
	size_t max_armed;	/* the device had room for so many; 0: for all so far */
	size_t max_resident;

	struct name_tree tubes;
	struct number_tree tubes_by_number;
	struct tube_list hungry;
	size_t nr_tubes;
	size_t max_tubes;
	struct tube *default_tube;
	struct window windows[2];
	struct session_list sessions[SESSION_BUCKETS];	/* by id */
	struct kick_list kicking;
	struct orphan_list orphans;
	size_t nr_sessions;
	size_t nr_watches;
	size_t max_watches;

	bool draining;
	bool stopping;
	bool has_unarmed;	/* something reserved, or a session, has no alarm yet */
	uint64_t next_id;
	uint32_t next_tube;
	uint64_t next_session;
	uint64_t last_buried;
	uint64_t nr[NR_STATUS];
	struct queue_stats stats;
	char instance[17];
};

/* Alarms' ids tell whose they are by their upper bits. */
#define ID_KIND_SHIFT	62
#define ID_KIND(id)	((id) >> ID_KIND_SHIFT)
#define ID_NUMBER(id)	((id) & ((1ULL << ID_KIND_SHIFT) - 1))
#define ID_OF(kind, n)	((uint64_t)(kind) << ID_KIND_SHIFT | (n))

enum id_kind {
	ID_JOB,
	ID_SESSION,
	ID_TUBE,
	ID_WINDOW
};

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

/* --- job.c: jobs in memory, whatever they are ----------------------------------------- */

RB_PROTOTYPE(job_tree, job, node, job_compare)
int job_compare(const struct job *a, const struct job *b);

int jobs_init(struct queue *queue);
void jobs_destroy(struct queue *queue);

/* A job that is in memory, or NULL. */
struct job *job_resident(struct queue *queue, uint64_t id);

/* Take a job into memory, not placed; NULL for want of memory. */
struct job *job_new(struct queue *queue, const struct job_place *place);

/* Out of memory; the disk still has it. It is not placed. */
void job_forget(struct queue *queue, struct job *job);

/* Where the disk has it. */
struct job_place job_place(const struct job *job);

/* --- tube.c --------------------------------------------------------------------------- */

void tubes_init(struct queue *queue);
void tubes_destroy(struct queue *queue);
struct tube *tube_find(struct queue *queue, const char *name);
struct tube *tube_by_number(struct queue *queue, uint32_t number);

/* The tube of a name, made if there is none; NULL: there are too many. */
struct tube *tube_get(struct queue *queue, const char *name);

/* Tubes as the disk has them. Returns 0 or an errno. */
int tubes_load(struct queue *queue);

/* The tube gets a number, if it has none: a job or a policy comes. */
void tube_keep(struct queue *queue, struct tube *tube);
void tube_save(struct queue *queue, struct tube *tube);

/* Nobody uses a tube any more, perhaps: then it is gone. */
void tube_put(struct queue *queue, struct tube *tube);

void tube_pause(struct queue *queue, struct tube *tube, uint64_t pause_ns);
void tube_resume(struct queue *queue, struct tube *tube);

struct tube *tube_first(struct queue *queue);
struct tube *tube_next(struct tube *tube);

/* --- queue.c: what becomes of jobs ---------------------------------------------------- */

/*
 * A job for a command that names it: in memory, if need be for this command only, which
 * ends with job_settle(), job_become() or job_gone(). Returns 0; -ENOENT; -EBADMSG.
 */
int job_find(struct queue *queue, uint64_t id, struct job **job);

/* A ready job is one of those that its tube has in memory; and is not any more. */
void job_enter_tube(struct job *job);
void job_leave_tube(struct job *job);

/*
 * A ready job that the disk has as delayed has to be written before it is forgotten; false:
 * its record is damaged.
 */
bool job_write_ready(struct queue *queue, struct job *job);

/* Put a job where its status belongs, or out of memory. */
void job_settle(struct queue *queue, struct job *job);

/*
 * The disk has @record now, whose place may be another: make it so, and give the job
 * that status and tube. @job may be out of memory afterwards.
 */
void job_become(struct queue *queue, struct job *job, const struct job_record *record);

/* A job is deleted. */
void job_gone(struct queue *queue, struct job *job, const char *key, size_t key_len);

/*
 * A new job is on disk: count it, and take it into memory if it belongs there.
 */
void job_arrived(struct queue *queue, struct tube *tube, const struct job_record *record);

/* Give a job to a session: reply and all. Returns 0; -EBADMSG, and the job is set aside. */
int job_reserve(struct queue *queue, struct session *session, struct job *job);

/* What the disk has of it is damaged: nobody gets it. */
void job_break(struct queue *queue, struct job *job);

/* Its holder is gone. */
void job_abandoned(struct queue *queue, struct job *job);

/* What a place for "ready" and "due in this time" is. */
void place_ready(struct job_place *place);
void place_delayed(struct queue *queue, struct job_place *place, uint64_t delay_ns);
void place_buried(struct queue *queue, struct job_place *place);

/* Give jobs to sessions that wait. */
void queue_hungry(struct queue *queue, struct tube *tube);
void queue_serve(struct queue *queue);

/* --- retry.c -------------------------------------------------------------------------- */

/* What a tube goes by: its own policy, or the default. */
struct retry_policy retry_policy_of(const struct tube *tube);

/* How long the @k-th retry waits. */
uint64_t retry_delay_ns(const struct retry_policy *policy, uint32_t k);

/*
 * An attempt at a reserved job failed; @record is what the disk has of it, with what the
 * caller has changed. Returns true if it is dead, else *@delay_ns is how long it waits.
 */
bool retry_or_bury(struct queue *queue, struct job *job, struct job_record *record,
		   uint64_t *delay_ns);

/* A dead job goes back to the tube that it came from. */
void retry_revive(struct queue *queue, struct job_record *record);

/* --- window.c ------------------------------------------------------------------------- */

void windows_init(struct queue *queue);
struct window *window_of(struct queue *queue, enum job_state state);

/* Is a delayed job at this place to be in memory? And a ready one? */
bool window_has(struct queue *queue, const struct job_place *place);
bool tube_has(const struct tube *tube, const struct job_place *place);

/* Is a job that becomes ready now to be in memory? More of its tube may come there first. */
bool tube_takes(struct queue *queue, struct tube *tube, const struct job_place *place);

/* The tube's next job, which may have to come from the disk; NULL: it has none. */
struct job *tube_next_job(struct queue *queue, struct tube *tube);

/* There is no room for the job of this place: it is beyond what is in memory. */
void window_cut(struct queue *queue, const struct job_place *place);

/* Arm a delayed job; false: there is no room for its alarm, and the window is shorter. */
bool window_arm(struct queue *queue, struct job *job);

/* The alarm of a delayed job is not wanted any more. */
void window_disarm(struct queue *queue, struct job *job);

/* The alarm of a delayed job was refused: the window ends before it. */
void window_refused(struct queue *queue, struct job *job);

/*
 * Have @nr delayed jobs leave memory, of those that are due last, and later than in
 * @beyond_ns. Returns false if there are none.
 */
bool window_shrink(struct queue *queue, size_t nr, uint64_t beyond_ns);

/* A piece of work; returns true if there is more. */
bool window_turn(struct queue *queue);
void window_alarm(struct queue *queue, uint64_t number);

/* --- session.c, stats.c --------------------------------------------------------------- */

void session_alarm(struct queue *queue, uint64_t number);

/* The most urgent job of all tubes that it watches; NULL: none is ready. */
struct job *session_best_job(struct session *session);

/* Go on with a piece of each kick; and of what nobody holds any more. True: there is more. */
bool sessions_kick(struct queue *queue);
bool sessions_give_back(struct queue *queue, size_t most);

/* End a session's wait: it is in no tube's list any more. */
void session_stop_waiting(struct session *session);

/* When a session that waits is to be woken has changed. */
void session_rearm(struct session *session);

/* Say something with the number of the store's next commit, or with @seq. */
void session_say(struct session *session, uint64_t seq, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

bool stats_of_queue(struct session *session);
bool stats_of_tube(struct session *session, const char *name);
bool stats_of_job(struct session *session, uint64_t id);
bool list_tubes(struct session *session);
bool list_watched(struct session *session);
bool list_jobs(struct session *session, const struct command *command);

#endif /* TWHEELQ_CORE_H */
