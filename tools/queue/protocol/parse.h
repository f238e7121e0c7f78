/* SPDX-License-Identifier: GPL-2.0 */
/* Parsing: a line becomes a command. Pure, so that it can be fuzzed. */
#ifndef QUEUE_PROTOCOL_PARSE_H
#define QUEUE_PROTOCOL_PARSE_H

#include "common/time.h"
#include "queue/store/record.h"

/* The limits of a line with its \r\n: of beanstalkd's commands, and of those beyond it. */
#define LINE_MAX_LEN	224
#define LINE_BEYOND_MAX	600

/* The least interval of every: it bounds the work of a schedule. */
#define LEAST_INTERVAL_NS	NSEC_PER_SEC

/* A body behind a wrong line is thrown away if it is not longer. */
#define WRONG_BODY_MAX	1000000000

enum command_op {
	OP_UNKNOWN,
	OP_PUT,
	OP_PEEK,
	OP_PEEK_READY,
	OP_PEEK_DELAYED,
	OP_PEEK_BURIED,
	OP_RESERVE,
	OP_RESERVE_WITH_TIMEOUT,
	OP_RESERVE_JOB,
	OP_DELETE,
	OP_RELEASE,
	OP_USE,
	OP_WATCH,
	OP_IGNORE,
	OP_BURY,
	OP_KICK,
	OP_KICK_JOB,
	OP_TOUCH,
	OP_STATS,
	OP_STATS_JOB,
	OP_STATS_TUBE,
	OP_LIST_TUBES,
	OP_LIST_TUBE_USED,
	OP_LIST_TUBES_WATCHED,
	OP_PAUSE_TUBE,
	OP_QUIT,
	/* Beyond beanstalkd; see command_line_max(). */
	OP_PUT_AT,
	OP_PUT_UNIQUE,
	OP_KEEP_UNIQUE,
	OP_RESCHEDULE,
	OP_FAIL,
	OP_POLICY,
	OP_LIST_JOBS,
	OP_BACKUP,
	OP_EVERY,
	OP_EVERY_STOP,
	OP_LIST_EVERY,
	OP_PURGE,
	NR_OPS
};

/* For list-jobs: the states of the disk, and reserved; for purge, the states of the disk. */
enum list_state {
	LIST_READY,
	LIST_RESERVED,
	LIST_DELAYED,
	LIST_BURIED
};

/**
 * struct command - a parsed line
 * @op: which command; a field below is set by the commands that have it.
 * @id: a job; list-jobs: begin behind this job.
 * @pri: priority.
 * @delay_ns: delay, pause, the timeout of reserve-with-timeout, or the interval of every.
 * @ttr_ns: time to run; 0 becomes a second.
 * @due_ns: put-at: the due time, every: the first one, ns since 1970.
 * @count: kick, list-jobs: the most jobs.
 * @body_len: bytes of the body that follows the line, without its \r\n.
 * @has_body: a body follows.
 * @close: of a line that is wrong: where the next command begins cannot be known.
 * @state: list-jobs, purge: the state of the jobs.
 * @after: list-jobs: the place of job @id, if the cursor has it; else its id is 0.
 * @tube: NUL-terminated: use, watch, ignore, stats-tube, pause-tube, policy, list-jobs,
 *	purge, and the name of backup.
 * @key: put-unique and keep-unique: the key; every and every-stop: the name; list-every:
 *	begin behind this name, or "". NUL-terminated.
 * @policy: policy: the retry policy; @max_attempts is 0 for "default".
 */
struct command {
	enum command_op op;
	uint64_t id;
	uint32_t pri;
	uint64_t delay_ns;
	uint64_t ttr_ns;
	uint64_t due_ns;
	uint64_t count;
	uint64_t body_len;
	bool has_body;
	bool close;
	enum list_state state;
	struct job_place after;
	char tube[TUBE_NAME_MAX + 1];
	char key[JOB_KEY_MAX + 1];
	struct retry_policy policy;
};

enum command_error {
	COMMAND_OK,
	COMMAND_UNKNOWN,	/* UNKNOWN_COMMAND */
	COMMAND_BAD_FORMAT,	/* BAD_FORMAT */
};

/*
 * Parse a line of @len bytes, without its \r\n.
 *
 * Of a line that is wrong, @command says what follows it: with @has_body @body_len bytes and
 * \r\n, which are no commands; with @close nobody knows; else a line. beanstalkd takes each
 * line of such a body for a command.
 */
enum command_error command_parse(struct command *command, const char *line, size_t len);

/* The limit of a line that begins with @line, with its \r\n. */
size_t command_line_max(const char *line, size_t len);

/* The name of a command, for stats ("put", "reserve-with-timeout"). */
const char *command_name(enum command_op op);

#endif /* QUEUE_PROTOCOL_PARSE_H */
