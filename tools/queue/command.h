/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The protocol: a line of text becomes a command. Pure, so that it can be fuzzed.
 */
#ifndef TWHEELQ_COMMAND_H
#define TWHEELQ_COMMAND_H

#include "record.h"

/* With the end of the line, as beanstalkd has it. */
#define LINE_MAX_LEN	224

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
	/* Beyond beanstalkd. */
	OP_PUT_AT,
	OP_PUT_UNIQUE,
	OP_RESCHEDULE,
	OP_FAIL,
	OP_POLICY,
	OP_LIST_JOBS,
	NR_OPS
};

/* For list-jobs, which knows one state more than the disk. */
enum list_state {
	LIST_READY,
	LIST_RESERVED,
	LIST_DELAYED,
	LIST_BURIED
};

/**
 * struct command - a line, understood
 * @op: which; the fields that follow are of those that have them.
 * @id: a job; list-jobs: after it.
 * @pri: priority.
 * @delay_ns: delay, pause, or the timeout of reserve-with-timeout.
 * @ttr_ns: time to run; less than a second counts as given, 0 as a second.
 * @due_ns: put-at: since 1970.
 * @count: kick, list-jobs: how many.
 * @body_len: bytes that follow the line, without their \r\n.
 * @has_body: bytes follow.
 * @state: list-jobs.
 * @tube: NUL-terminated: use, watch, ignore, stats-tube, pause-tube, policy, list-jobs.
 * @key: put-unique, NUL-terminated.
 * @policy: policy.
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
	enum list_state state;
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
 * Understand a line of @len bytes, without its \r\n. Where @command->has_body is set, so
 * many bytes follow; after COMMAND_BAD_FORMAT it is not: lines do, as in beanstalkd.
 */
enum command_error command_parse(struct command *command, const char *line, size_t len);

/*
 * A time as commands have it ("250ms", "1.5s", "2h", "5" seconds), of a string that is all
 * of it: for options. Returns false if it is none, or is 2^32 seconds or longer.
 */
bool command_duration(const char *text, uint64_t *ns);

/* The words of a command, for stats ("put", "reserve-with-timeout"). */
const char *command_name(enum command_op op);

#endif /* TWHEELQ_COMMAND_H */
