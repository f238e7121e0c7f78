// SPDX-License-Identifier: GPL-2.0
/*
 * Parsing the lines of beanstalkd 1.12, and those of the commands beyond it.
 *
 * As in beanstalkd, the beginning of a line decides which command it is. If the prefix of a
 * command ends with a space, its name alone is an unknown command; if not, other bytes behind
 * it are a bad format. Spaces separate arguments. There may be several before a number and
 * before the name of pause-tube; a name at the end of a line is everything behind the prefix.
 * Spaces at the end of a line are a bad format.
 *
 * beanstalkd reads numbers with strtol(), and in kick and reserve-with-timeout ignores what
 * follows them. Here a number is digits and nothing else, except in "reserve-with-timeout -1",
 * which waits for ever there too.
 */
#include <string.h>

#include "queue/protocol/parse.h"
#include "common/text.h"
#include "common/time.h"
#include "common/util.h"
#include "queue/store/name.h"

/* Due times are also used as signed ns: the limit is in the year 2262. */
#define UNIX_MS_MAX	(INT64_MAX / NSEC_PER_MSEC)

static bool next_ttr(struct text *text, uint64_t *ns)
{
	if (!text_next_duration(text, ns))
		return false;
	if (!*ns)
		*ns = NSEC_PER_SEC;
	return true;
}

/* Copy a text to @out if it is a name, of a tube or of a key; @out has room for a NUL too. */
static bool copy_name(const struct text *text, bool (*is_name)(const char *name, size_t len),
		      char *out)
{
	size_t len = text->end - text->start;

	if (!is_name(text->start, len))
		return false;
	memcpy(out, text->start, len);
	out[len] = '\0';
	return true;
}

static bool next_name(struct text *text, char *name)
{
	struct text word;

	return text_word(text, &word) && copy_name(&word, name_is_tube, name);
}

static bool next_key(struct text *text, char *key)
{
	struct text word;

	return text_word(text, &word) && copy_name(&word, name_is_key, key);
}

/* --- arguments ----------------------------------------------------------------------- */

static bool parse_nothing(struct command *command, struct text *text)
{
	(void)command;
	return text_empty(text);
}

/* beanstalkd closes the connection whatever follows. */
static bool parse_quit(struct command *command, struct text *text)
{
	(void)command;
	text->start = text->end;
	return true;
}

static bool parse_id(struct command *command, struct text *text)
{
	return text_number(text, UINT64_MAX, &command->id);
}

static bool parse_count(struct command *command, struct text *text)
{
	return text_number(text, UINT64_MAX, &command->count);
}

/* A name that ends the line. */
static bool parse_tube(struct command *command, struct text *text)
{
	struct text name = *text;

	text->start = text->end;
	return copy_name(&name, name_is_tube, command->tube);
}

static bool parse_body_len(struct command *command, struct text *text)
{
	command->has_body = true;
	return text_number(text, UINT32_MAX, &command->body_len);
}

static bool parse_put(struct command *command, struct text *text)
{
	return text_u32(text, &command->pri) && text_next_duration(text, &command->delay_ns) &&
		next_ttr(text, &command->ttr_ns) && parse_body_len(command, text);
}

static bool next_unix_ms(struct text *text, uint64_t *ns)
{
	uint64_t unix_ms;

	if (!text_number(text, UNIX_MS_MAX, &unix_ms))
		return false;
	*ns = unix_ms * NSEC_PER_MSEC;
	return true;
}

static bool parse_put_at(struct command *command, struct text *text)
{
	return text_u32(text, &command->pri) && next_unix_ms(text, &command->due_ns) &&
		next_ttr(text, &command->ttr_ns) && parse_body_len(command, text);
}

static bool parse_every(struct command *command, struct text *text)
{
	return next_key(text, command->key) && text_u32(text, &command->pri) &&
		text_next_duration(text, &command->delay_ns) &&
		command->delay_ns >= LEAST_INTERVAL_NS &&
		next_unix_ms(text, &command->due_ns) && next_ttr(text, &command->ttr_ns) &&
		parse_body_len(command, text);
}

static bool parse_every_stop(struct command *command, struct text *text)
{
	return next_key(text, command->key);
}

static bool parse_list_every(struct command *command, struct text *text)
{
	return text_empty(text) || (*text->start == ' ' && next_key(text, command->key));
}

static bool parse_put_unique(struct command *command, struct text *text)
{
	return next_key(text, command->key) && parse_put(command, text);
}

static bool parse_reserve_with_timeout(struct command *command, struct text *text)
{
	if (text_is(text, "-1")) {
		text->start = text->end;
		command->delay_ns = TEXT_DURATION_MAX_NS;
		return true;
	}
	return text_next_duration(text, &command->delay_ns);
}

static bool parse_release(struct command *command, struct text *text)
{
	return parse_id(command, text) && text_u32(text, &command->pri) &&
		text_next_duration(text, &command->delay_ns);
}

static bool parse_bury(struct command *command, struct text *text)
{
	return parse_id(command, text) && text_u32(text, &command->pri);
}

static bool parse_reschedule(struct command *command, struct text *text)
{
	return parse_id(command, text) && text_next_duration(text, &command->delay_ns);
}

static bool parse_fail(struct command *command, struct text *text)
{
	return parse_id(command, text) &&
		(text_empty(text) || parse_body_len(command, text));
}

static bool parse_pause_tube(struct command *command, struct text *text)
{
	return next_name(text, command->tube) && text_next_duration(text, &command->delay_ns);
}

static bool parse_policy(struct command *command, struct text *text)
{
	struct retry_policy *policy = &command->policy;

	if (!next_name(text, command->tube))
		return false;
	if (text_is(text, " default")) {
		text->start = text->end;
		return true;
	}
	return retry_policy_parse(policy, text) &&
		(text_empty(text) || next_name(text, policy->dead));
}

static bool next_state(struct text *text, enum list_state *state)
{
	static const char *const names[] = {
		[LIST_READY] = "ready",
		[LIST_RESERVED] = "reserved",
		[LIST_DELAYED] = "delayed",
		[LIST_BURIED] = "buried",
	};
	struct text word;
	size_t i;

	if (!text_word(text, &word))
		return false;
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		if (text_is(&word, names[i])) {
			*state = i;
			return true;
		}
	}
	return false;
}

/* A slash, and a number up to @max. */
static bool next_part(struct text *text, uint64_t max, uint64_t *number)
{
	return !text_empty(text) && *text->start++ == '/' && text_digits(text, max, number);
}

/* "ID/STATE/ORDER", as list-jobs writes it; or only the id of a job. */
static bool next_cursor(struct command *command, struct text *text)
{
	struct job_place *after = &command->after;
	struct text word;
	uint64_t state;

	if (!text_word(text, &word) || !text_digits(&word, UINT64_MAX, &command->id))
		return false;
	if (text_empty(&word))
		return true;
	if (!next_part(&word, JOB_BURIED, &state) ||
	    !next_part(&word, state == JOB_READY ? UINT32_MAX : UINT64_MAX, &after->order) ||
	    !text_empty(&word))
		return false;
	after->id = command->id;
	after->state = state;
	if (state == JOB_READY) {
		after->pri = after->order;
		after->order = 0;
	}
	return true;
}

static bool parse_list_jobs(struct command *command, struct text *text)
{
	return next_name(text, command->tube) && next_state(text, &command->state) &&
		next_cursor(command, text) && parse_count(command, text);
}

static bool parse_purge(struct command *command, struct text *text)
{
	return next_name(text, command->tube) && next_state(text, &command->state) &&
		command->state != LIST_RESERVED;
}

/* The name is that of a directory. */
static bool parse_backup(struct command *command, struct text *text)
{
	return parse_tube(command, text) && *command->tube != '.' &&
		!strchr(command->tube, '/');
}

/* --- the commands -------------------------------------------------------------------- */

/* A prefix that begins with another one comes before it. */
static const struct {
	const char *prefix;
	enum command_op op;
	bool (*parse)(struct command *command, struct text *text);
} commands[] = {
	{ "put ", OP_PUT, parse_put },
	{ "peek ", OP_PEEK, parse_id },
	{ "peek-ready", OP_PEEK_READY, parse_nothing },
	{ "peek-delayed", OP_PEEK_DELAYED, parse_nothing },
	{ "peek-buried", OP_PEEK_BURIED, parse_nothing },
	{ "reserve-with-timeout ", OP_RESERVE_WITH_TIMEOUT, parse_reserve_with_timeout },
	{ "reserve-job ", OP_RESERVE_JOB, parse_id },
	{ "reserve", OP_RESERVE, parse_nothing },
	{ "delete ", OP_DELETE, parse_id },
	{ "release ", OP_RELEASE, parse_release },
	{ "bury ", OP_BURY, parse_bury },
	{ "kick ", OP_KICK, parse_count },
	{ "kick-job ", OP_KICK_JOB, parse_id },
	{ "touch ", OP_TOUCH, parse_id },
	{ "stats-job ", OP_STATS_JOB, parse_id },
	{ "stats-tube ", OP_STATS_TUBE, parse_tube },
	{ "stats", OP_STATS, parse_nothing },
	{ "use ", OP_USE, parse_tube },
	{ "watch ", OP_WATCH, parse_tube },
	{ "ignore ", OP_IGNORE, parse_tube },
	{ "list-tubes-watched", OP_LIST_TUBES_WATCHED, parse_nothing },
	{ "list-tube-used", OP_LIST_TUBE_USED, parse_nothing },
	{ "list-tubes", OP_LIST_TUBES, parse_nothing },
	{ "quit", OP_QUIT, parse_quit },
	{ "pause-tube", OP_PAUSE_TUBE, parse_pause_tube },
	{ "put-at ", OP_PUT_AT, parse_put_at },
	{ "put-unique ", OP_PUT_UNIQUE, parse_put_unique },
	{ "keep-unique ", OP_KEEP_UNIQUE, parse_put_unique },
	{ "reschedule ", OP_RESCHEDULE, parse_reschedule },
	{ "fail ", OP_FAIL, parse_fail },
	{ "policy ", OP_POLICY, parse_policy },
	{ "list-jobs ", OP_LIST_JOBS, parse_list_jobs },
	{ "backup ", OP_BACKUP, parse_backup },
	{ "every ", OP_EVERY, parse_every },
	{ "every-stop ", OP_EVERY_STOP, parse_every_stop },
	{ "list-every", OP_LIST_EVERY, parse_list_every },
	{ "purge ", OP_PURGE, parse_purge },
};

static bool begins_with(const char *line, size_t len, const char *prefix)
{
	return len >= strlen(prefix) && !memcmp(line, prefix, strlen(prefix));
}

/* The index in commands[] of the command that a line begins with; ARRAY_SIZE(): none. */
static size_t find_command(const char *line, size_t len)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(commands); i++)
		if (begins_with(line, len, commands[i].prefix))
			break;
	return i;
}

size_t command_line_max(const char *line, size_t len)
{
	size_t i = find_command(line, len);

	return i < ARRAY_SIZE(commands) && commands[i].op >= OP_PUT_AT ? LINE_BEYOND_MAX :
									 LINE_MAX_LEN;
}

/* --- lines that are wrong ------------------------------------------------------------- */

/* Does a line begin as a command that has a body? */
static bool may_have_body(const char *line, size_t len)
{
	static const char *const prefixes[] = {
		"put ", "put-at ", "put-unique ", "keep-unique ", "every ", "fail ",
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(prefixes); i++)
		if (begins_with(line, len, prefixes[i]))
			return true;
	return false;
}

static struct text last_word(const char *line, size_t len)
{
	const char *space = memrchr(line, ' ', len);

	return (struct text){ space ? space + 1 : line, line + len };
}

/* A browser or a proxy: "GET / HTTP/1.1". */
static bool is_http(const char *line, size_t len)
{
	struct text last;

	while (len && line[len - 1] == ' ')
		len--;
	last = last_word(line, len);
	return begins_with(last.start, last.end - last.start, "HTTP/");
}

/* Find out what follows a line that is wrong. */
static void look_behind(struct command *command, const char *line, size_t len)
{
	struct text last = last_word(line, len);
	uint64_t body_len;

	command->has_body = false;
	command->body_len = 0;
	if (!may_have_body(line, len)) {
		command->close = is_http(line, len);
	} else if (text_digits(&last, WRONG_BODY_MAX, &body_len) && text_empty(&last)) {
		command->has_body = true;
		command->body_len = body_len;
	} else {
		command->close = true;
	}
}

/* --- parsing -------------------------------------------------------------------------- */

static enum command_error parse_line(struct command *command, const char *line, size_t len)
{
	size_t which = find_command(line, len);
	struct text text;

	if (memchr(line, '\0', len))
		return COMMAND_BAD_FORMAT;
	if (which == ARRAY_SIZE(commands))
		return COMMAND_UNKNOWN;
	command->op = commands[which].op;
	text = (struct text){ line + strlen(commands[which].prefix), line + len };
	return commands[which].parse(command, &text) && text_empty(&text) ? COMMAND_OK :
									    COMMAND_BAD_FORMAT;
}

enum command_error command_parse(struct command *command, const char *line, size_t len)
{
	enum command_error error;

	memset(command, 0, sizeof(*command));
	error = parse_line(command, line, len);
	if (error != COMMAND_OK)
		look_behind(command, line, len);
	return error;
}

const char *command_name(enum command_op op)
{
	static const char *const names[NR_OPS] = {
		[OP_UNKNOWN] = "unknown",
		[OP_PUT] = "put",
		[OP_PEEK] = "peek",
		[OP_PEEK_READY] = "peek-ready",
		[OP_PEEK_DELAYED] = "peek-delayed",
		[OP_PEEK_BURIED] = "peek-buried",
		[OP_RESERVE] = "reserve",
		[OP_RESERVE_WITH_TIMEOUT] = "reserve-with-timeout",
		[OP_RESERVE_JOB] = "reserve-job",
		[OP_DELETE] = "delete",
		[OP_RELEASE] = "release",
		[OP_USE] = "use",
		[OP_WATCH] = "watch",
		[OP_IGNORE] = "ignore",
		[OP_BURY] = "bury",
		[OP_KICK] = "kick",
		[OP_KICK_JOB] = "kick-job",
		[OP_TOUCH] = "touch",
		[OP_STATS] = "stats",
		[OP_STATS_JOB] = "stats-job",
		[OP_STATS_TUBE] = "stats-tube",
		[OP_LIST_TUBES] = "list-tubes",
		[OP_LIST_TUBE_USED] = "list-tube-used",
		[OP_LIST_TUBES_WATCHED] = "list-tubes-watched",
		[OP_PAUSE_TUBE] = "pause-tube",
		[OP_QUIT] = "quit",
		[OP_PUT_AT] = "put-at",
		[OP_PUT_UNIQUE] = "put-unique",
		[OP_KEEP_UNIQUE] = "keep-unique",
		[OP_RESCHEDULE] = "reschedule",
		[OP_FAIL] = "fail",
		[OP_POLICY] = "policy",
		[OP_LIST_JOBS] = "list-jobs",
		[OP_BACKUP] = "backup",
		[OP_EVERY] = "every",
		[OP_EVERY_STOP] = "every-stop",
		[OP_LIST_EVERY] = "list-every",
		[OP_PURGE] = "purge",
	};

	return names[op];
}
