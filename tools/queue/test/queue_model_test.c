// SPDX-License-Identifier: GPL-2.0
/*
 * The queue against a model: random commands of several sessions, with so little memory
 * that most jobs are on disk only, and with restarts in between.
 *
 * The model has of each job what the replies have promised. Time is real, so a job that is due
 * may be ready or not yet; the model predicts everything else exactly.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "queue/test/queue_lib.h"

#define NR_SESSIONS	5
#define NR_TUBES	3
#define NR_JOBS		20000

enum model_status {
	NOWHERE,
	READY,
	DELAYED,
	RESERVED,
	BURIED
};

struct model_job {
	enum model_status status;
	unsigned int tube;
	uint32_t pri;
	uint64_t due_ns;	/* DELAYED; RESERVED: the end of its time to run */
	uint64_t ttr_ns;
	unsigned int holder;
	unsigned int version;	/* of its body */
	char key;
};

static struct model_job jobs[NR_JOBS];
static uint64_t last_id;
static unsigned int used[NR_SESSIONS];	/* tubes */
static uint64_t step_ns;	/* when the command began */

static const char *const tube_names[NR_TUBES] = { "default", "b", "c" };

static unsigned int pick(unsigned int n)
{
	return rand() % n;
}

/* --- the model --------------------------------------------------------------------------- */

static uint64_t model_now_ns(void)
{
	return alarms_now_ns(ALARM_BOOT);
}

static void body_of(char *body, uint64_t id, unsigned int version)
{
	snprintf(body, 64, "body %llu.%u", (unsigned long long)id, version);
}

/* It is ready, or due by now. */
static bool may_be_ready(const struct model_job *job)
{
	if (job->status == DELAYED || job->status == RESERVED)
		return job->due_ns <= model_now_ns();
	return job->status == READY;
}

/* A job of the model; most often a recent one. */
static uint64_t any_id(void)
{
	if (!last_id)
		return 1;
	if (last_id > 300 && pick(4))
		return last_id - pick(300);
	return 1 + pick(last_id);
}

static void use(unsigned int who)
{
	struct command command = { .op = OP_USE };

	used[who] = pick(NR_TUBES);
	strcpy(command.tube, tube_names[used[who]]);
	client_run(who, &command, NULL);
}

/* The earliest due time: the command was run a little later than @step_ns. */
static void set_delay(struct model_job *job, uint64_t delay_ns)
{
	job->status = delay_ns ? DELAYED : READY;
	job->due_ns = step_ns + delay_ns;
}

static uint64_t some_delay_ns(void)
{
	static const uint64_t delays[] = {
		0, 0, 0, NSEC_PER_MSEC, 20 * NSEC_PER_MSEC, 200 * NSEC_PER_MSEC, NSEC_PER_SEC,
		3 * NSEC_PER_SEC, 3600 * NSEC_PER_SEC,
	};

	return delays[pick(ARRAY_SIZE(delays))] * (1 + pick(1000)) / 1000;
}

/* Does no other job of the tube have this key? */
static void check_unique(unsigned int tube, char key)
{
	uint64_t id;

	for (id = 1; key && id <= last_id; id++)
		ASSERT(jobs[id].status == NOWHERE || jobs[id].tube != tube ||
		       jobs[id].key != key);
}

static const char *key_name(char key)
{
	static char name[JOB_KEY_MAX + 1];

	/* Short and long delays. */
	memset(name, key, sizeof(name) - 1);
	name[key % 2 ? 1 : key == 'b' ? JOB_KEY_MAX : 7] = 0;
	return name;
}

static void put(unsigned int who, char key)
{
	struct command command = {
		.op = !key ? OP_PUT : pick(4) ? OP_PUT_UNIQUE : OP_KEEP_UNIQUE,
		.pri = pick(4) ? pick(5) : pick(3000),
		.ttr_ns = (1 + pick(300)) * NSEC_PER_MSEC,
		.delay_ns = some_delay_ns(),
		.has_body = true,
	};
	unsigned long long id;
	struct model_job *job;
	char body[64];

	if (key)
		strcpy(command.key, key_name(key));
	body_of(body, last_id + 1, 0);
	command.body_len = strlen(body);
	if (sscanf(client_run(who, &command, body), "INSERTED %llu", &id) == 1) {
		ASSERT_EQ(id, last_id + 1);
		check_unique(used[who], key);
		last_id = id;
		job = &jobs[id];
		*job = (struct model_job){ .tube = used[who], .pri = command.pri,
					   .ttr_ns = command.ttr_ns, .key = key };
		set_delay(job, command.delay_ns);
		return;
	}
	ASSERT(key);
	if (sscanf(clients[who].line, "RESERVED %llu", &id) == 1) {
		ASSERT_EQ(jobs[id].status, RESERVED);
	} else if (sscanf(clients[who].line, "KEPT %llu", &id) == 1) {
		ASSERT_EQ(command.op, OP_KEEP_UNIQUE);
		ASSERT(jobs[id].status != NOWHERE);
		ASSERT(jobs[id].status != RESERVED || may_be_ready(&jobs[id]));
	} else if (sscanf(clients[who].line, "REPLACED %llu", &id) != 1) {
		test_fail(__FILE__, __LINE__, "put-unique: %s", clients[who].line);
	} else {
		job = &jobs[id];
		ASSERT_EQ(command.op, OP_PUT_UNIQUE);
		ASSERT(job->status == READY || job->status == DELAYED ||
		       job->status == BURIED || may_be_ready(job));
		/* The body was made for the next id, which was not given. */
		job->version = last_id + 1;
		job->pri = command.pri;
		job->ttr_ns = command.ttr_ns;
		set_delay(job, command.delay_ns);
	}
	ASSERT_EQ(jobs[id].key, key);
	ASSERT_EQ(jobs[id].tube, used[who]);
}

static void check_body(const struct client *client, uint64_t id)
{
	char body[64];

	if (jobs[id].version)
		body_of(body, jobs[id].version, 0);
	else
		body_of(body, id, 0);
	if (strcmp(client->body, body))
		test_fail(__FILE__, __LINE__, "job %llu has \"%s\", not \"%s\"",
			  (unsigned long long)id, client->body, body);
}

/* All sessions watch the default tube only. */
static void check_best(uint64_t id)
{
	uint64_t other;

	for (other = 1; other <= last_id; other++) {
		struct model_job *job = &jobs[other];

		if (job->status != READY || job->tube != 0 || other == id)
			continue;
		if (job->pri < jobs[id].pri || (job->pri == jobs[id].pri && other < id))
			test_fail(__FILE__, __LINE__, "got %llu; %llu is more urgent",
				  (unsigned long long)id, (unsigned long long)other);
	}
}

static void check_none_ready(void)
{
	uint64_t id;

	for (id = 1; id <= last_id; id++)
		if (jobs[id].status == READY && jobs[id].tube == 0)
			test_fail(__FILE__, __LINE__, "none was given, and %llu was ready",
				  (unsigned long long)id);
}

static void reserved(unsigned int who, uint64_t id)
{
	struct model_job *job = &jobs[id];

	check_body(&clients[who], id);
	job->status = RESERVED;
	job->holder = who;
	job->due_ns = step_ns + job->ttr_ns;
}

static void reserve(unsigned int who)
{
	struct command command = { .op = OP_RESERVE_WITH_TIMEOUT };
	unsigned long long id;

	if (sscanf(client_run(who, &command, NULL), "RESERVED %llu", &id) == 1) {
		ASSERT(may_be_ready(&jobs[id]));
		ASSERT_EQ(jobs[id].tube, 0);
		check_best(id);
		reserved(who, id);
	} else if (strcmp(clients[who].line, "OUT_OF_MEMORY")) {
		ASSERT(!strcmp(clients[who].line, "TIMED_OUT") ||
		       !strcmp(clients[who].line, "DEADLINE_SOON"));
		check_none_ready();
	}
}

static void reserve_job(unsigned int who)
{
	uint64_t id = any_id();
	const char *line = client_run_id(who, OP_RESERVE_JOB, id);

	if (!strncmp(line, "RESERVED", 8)) {
		ASSERT(jobs[id].status != NOWHERE);
		ASSERT(jobs[id].status != RESERVED || may_be_ready(&jobs[id]));
		reserved(who, id);
	} else if (strcmp(line, "OUT_OF_MEMORY")) {
		ASSERT(jobs[id].status == NOWHERE || jobs[id].status == RESERVED);
	}
}

/* A job that the client has reserved, or another. */
static uint64_t held_id(unsigned int who)
{
	uint64_t id;

	for (id = last_id; id && pick(3); id--)
		if (jobs[id].status == RESERVED && jobs[id].holder == who)
			return id;
	return any_id();
}

/* Did the client hold the job? If not, its time to run may be over, or it never held it. */
static bool held(unsigned int who, uint64_t id, const char *line)
{
	struct model_job *job = &jobs[id];

	if (strcmp(line, "NOT_FOUND")) {
		ASSERT_EQ(job->status, RESERVED);
		ASSERT_EQ(job->holder, who);
		return true;
	}
	ASSERT(job->status != RESERVED || job->holder != who || job->due_ns <= model_now_ns());
	return false;
}

static void release(unsigned int who)
{
	struct command command = { .op = OP_RELEASE, .id = held_id(who), .pri = pick(10),
				   .delay_ns = some_delay_ns() };

	if (!held(who, command.id, client_run(who, &command, NULL)))
		return;
	jobs[command.id].pri = command.pri;
	set_delay(&jobs[command.id], command.delay_ns);
}

static void bury(unsigned int who)
{
	struct command command = { .op = OP_BURY, .id = held_id(who), .pri = pick(10) };

	if (!held(who, command.id, client_run(who, &command, NULL)))
		return;
	jobs[command.id].pri = command.pri;
	jobs[command.id].status = BURIED;
}

static void touch(unsigned int who)
{
	uint64_t id = held_id(who);

	if (held(who, id, client_run_id(who, OP_TOUCH, id)))
		jobs[id].due_ns = step_ns + jobs[id].ttr_ns;
}

static void delete(unsigned int who)
{
	uint64_t id = held_id(who);
	struct model_job *job = &jobs[id];

	if (!strcmp(client_run_id(who, OP_DELETE, id), "DELETED")) {
		ASSERT(job->status != NOWHERE);
		ASSERT(job->status != RESERVED || job->holder == who || may_be_ready(job));
		job->status = NOWHERE;
	} else {
		ASSERT(job->status == NOWHERE ||
		       (job->status == RESERVED && job->holder != who));
	}
}

static void reschedule(unsigned int who)
{
	struct command command = { .op = OP_RESCHEDULE, .id = any_id(),
				   .delay_ns = some_delay_ns() };
	struct model_job *job = &jobs[command.id];

	if (!strcmp(client_run(who, &command, NULL), "RESCHEDULED")) {
		ASSERT(job->status == READY || job->status == DELAYED || may_be_ready(job));
		set_delay(job, command.delay_ns);
	} else {
		ASSERT(job->status != READY && job->status != DELAYED);
	}
}

static void kick_job(unsigned int who)
{
	uint64_t id = any_id();
	struct model_job *job = &jobs[id];

	if (!strcmp(client_run_id(who, OP_KICK_JOB, id), "KICKED")) {
		ASSERT(job->status == BURIED || job->status == DELAYED);
		job->status = READY;
	} else {
		ASSERT(job->status != BURIED);
		ASSERT(job->status != DELAYED || may_be_ready(job));
	}
}

/* A job of the tube after a purge of the jobs that were ready, delayed or buried; is it gone? */
static bool check_purged(unsigned int who, struct model_job *job, uint64_t id,
			 enum model_status status)
{
	bool gone = !strcmp(client_run_id(who, OP_STATS_JOB, id), "NOT_FOUND");

	if (!gone)
		ASSERT(job->status != status || (status == DELAYED && may_be_ready(job)));
	else if (status == READY)
		ASSERT(may_be_ready(job));
	else
		ASSERT_EQ(job->status, status);
	if (gone)
		job->status = NOWHERE;
	return gone;
}

static void purge(unsigned int who)
{
	static const enum model_status statuses[] = {
		[LIST_READY] = READY, [LIST_DELAYED] = DELAYED, [LIST_BURIED] = BURIED,
	};
	static const enum list_state states[] = { LIST_READY, LIST_DELAYED, LIST_BURIED };
	struct command command = { .op = OP_PURGE, .state = states[pick(3)] };
	unsigned int tube = pick(NR_TUBES);
	unsigned long long nr;
	uint64_t id, gone = 0;

	strcpy(command.tube, tube_names[tube]);
	client_begin(who, &command, NULL);
	while (!clients[who].replies)
		turn();
	if (sscanf(clients[who].line, "PURGED %llu", &nr) != 1)
		test_fail(__FILE__, __LINE__, "%s", clients[who].line);
	for (id = 1; id <= last_id; id++)
		if (jobs[id].status != NOWHERE && jobs[id].tube == tube)
			gone += check_purged(who, &jobs[id], id, statuses[command.state]);
	ASSERT_EQ(gone, nr);
}

static void peek(unsigned int who)
{
	uint64_t id = any_id();

	if (!strncmp(client_run_id(who, OP_PEEK, id), "FOUND", 5)) {
		ASSERT(jobs[id].status != NOWHERE);
		check_body(&clients[who], id);
	} else {
		ASSERT_EQ(jobs[id].status, NOWHERE);
	}
}

/* Compare the number of jobs by status, if time cannot have changed it. */
static void check_counts(void)
{
	uint64_t nr[5] = { 0 }, maybe = 0, id;

	for (id = 1; id <= last_id; id++) {
		if (jobs[id].status != READY && may_be_ready(&jobs[id]))
			maybe++;
		nr[jobs[id].status]++;
	}
	ASSERT_EQ(queue->nr[IS_BURIED], nr[BURIED]);
	ASSERT_EQ(queue->nr[IS_READY] + queue->nr[IS_DELAYED] + queue->nr[IS_RESERVED],
		  nr[READY] + nr[DELAYED] + nr[RESERVED]);
	ASSERT_GE(queue->nr[IS_READY], nr[READY]);
	ASSERT_LE(queue->nr[IS_READY], nr[READY] + maybe);
	ASSERT_EQ(queue->nr[IS_BROKEN], 0);
}

/* Room for some 45 jobs in memory. */
static struct queue_config model_config(void)
{
	struct queue_config config = queue_test_config(45);

	config.window_ns = 2 * NSEC_PER_SEC;
	return config;
}

static void restart(void)
{
	struct queue_config config = model_config();
	uint64_t id;

	queue_reopen(&config, pick(2));
	for (id = 1; id <= last_id; id++)
		if (jobs[id].status == RESERVED)
			jobs[id].status = READY;
	for (id = 0; id < NR_SESSIONS; id++)
		used[id] = 0;
}

static void step(void)
{
	unsigned int who = pick(NR_SESSIONS);

	step_ns = model_now_ns();
	switch (pick(24)) {
	case 0 ... 8:
		put(who, 0);
		break;
	case 9:
		put(who, 'a' + pick(8));
		break;
	case 10 ... 12:
		reserve(who);
		break;
	case 13:
		reserve_job(who);
		break;
	case 14:
		release(who);
		break;
	case 15:
		bury(who);
		break;
	case 16:
		touch(who);
		break;
	case 17 ... 19:
		delete(who);
		break;
	case 20:
		reschedule(who);
		break;
	case 21:
		kick_job(who);
		break;
	case 22:
		peek(who);
		break;
	case 23:
		use(who);
		break;
	}
}

/* Every job that is left comes once. */
static void drain(void)
{
	uint64_t id, left = 0;

	restart();
	for (id = 1; id <= last_id; id++) {
		bool there = !strcmp(client_run_id(0, OP_DELETE, id), "DELETED");

		ASSERT_EQ(there, jobs[id].status != NOWHERE);
		left += there;
		turn();
	}
	ASSERT_EQ(queue->nr[IS_READY] + queue->nr[IS_DELAYED] + queue->nr[IS_BURIED], 0);
	printf("# %llu of %llu jobs were left at the end, %zu were in memory at most\n",
	       (unsigned long long)left, (unsigned long long)last_id, max_seen_resident);
}

TEST(queue_agrees_with_a_model_under_random_commands_and_restarts)
{
	unsigned long steps = test_count(20000), i;
	struct queue_config config = model_config();

	log_set_level(LOG_WARNING);
	srand(getpid());
	test_about("seed %d", getpid());
	queue_open(&config);
	for (i = 0; i < steps && last_id < NR_JOBS - 1; i++) {
		step();
		if (!pick(10))
			turn();
		if (!pick(200))
			turn_for(20 * NSEC_PER_MSEC);
		if (!pick(400))
			purge(pick(NR_SESSIONS));
		if (!pick(100))
			check_counts();
		if (!pick(steps / 8))
			restart();
	}
	drain();
	queue_remove();
}
