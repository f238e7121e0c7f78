// SPDX-License-Identifier: GPL-2.0
/*
 * The protocol's lines, as beanstalkd 1.12 understands them, and what goes beyond.
 *
 * A command is known by how its line begins, as in beanstalkd: where a prefix ends with a
 * space, the word alone is unknown; where it does not, garbage behind it is a bad format.
 * Arguments are separated by spaces, of which there may be many before a number and before
 * the name of pause-tube; a name that ends the line is all that follows its prefix. Spaces
 * at the end of a line are garbage.
 *
 * beanstalkd reads numbers with strtol(), and does not look behind them in kick and in
 * reserve-with-timeout. Here every number is digits and nothing else, but for
 * "reserve-with-timeout -1", which waits without an end there too.
 */
#include <string.h>

#include "command.h"
#include "util.h"

#define NS_PER_MS	1000000ULL
#define NS_PER_S	1000000000ULL

/* Any time is at most this long: what beanstalkd has, and sums with a clock have room. */
#define DURATION_MAX_NS	(UINT32_MAX * NS_PER_S)

/* The wall clock's ns are used as signed numbers too: this is in the year 2262. */
#define UNIX_MS_MAX	(INT64_MAX / NS_PER_MS)

#define FACTOR_MAX	1000
#define JITTER_MAX	100

/* What is left of a line. */
struct text {
	const char *start;
	const char *end;
};

static bool text_empty(const struct text *text)
{
	return text->start == text->end;
}

static bool text_is(const struct text *text, const char *word)
{
	size_t len = strlen(word);

	return (size_t)(text->end - text->start) == len && !memcmp(text->start, word, len);
}

/* The next word; false: there is none. */
static bool next_word(struct text *text, struct text *word)
{
	while (!text_empty(text) && *text->start == ' ')
		text->start++;
	word->start = text->start;
	while (!text_empty(text) && *text->start != ' ')
		text->start++;
	word->end = text->start;
	return !text_empty(word);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Take the digits that a text begins with; there has to be one. */
static bool take_digits(struct text *text, uint64_t max, uint64_t *value)
{
	uint64_t digit;

	if (text_empty(text) || !is_digit(*text->start))
		return false;
	for (*value = 0; !text_empty(text) && is_digit(*text->start); text->start++) {
		digit = *text->start - '0';
		if (*value > (max - digit) / 10)
			return false;
		*value = *value * 10 + digit;
	}
	return true;
}

static bool next_number(struct text *text, uint64_t max, uint64_t *value)
{
	struct text word;

	return next_word(text, &word) && take_digits(&word, max, value) && text_empty(&word);
}

static bool next_u32(struct text *text, uint32_t *value)
{
	uint64_t number;

	if (!next_number(text, UINT32_MAX, &number))
		return false;
	*value = number;
	return true;
}

/*
 * Take the fraction that a text may begin with, in parts of @whole. Digits that are worth
 * less than one count nothing.
 */
static bool take_fraction(struct text *text, uint64_t whole, uint64_t *value)
{
	*value = 0;
	if (text_empty(text) || *text->start != '.')
		return true;
	text->start++;
	if (text_empty(text) || !is_digit(*text->start))
		return false;
	for (; !text_empty(text) && is_digit(*text->start); text->start++) {
		whole /= 10;
		*value += whole * (*text->start - '0');
	}
	return true;
}

static uint64_t unit_ns(const struct text *unit)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
		{ "", NS_PER_S }, { "s", NS_PER_S }, { "ms", NS_PER_MS }, { "us", 1000 },
		{ "m", 60 * NS_PER_S }, { "h", 3600 * NS_PER_S }, { "d", 86400 * NS_PER_S },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(units); i++)
		if (text_is(unit, units[i].name))
			return units[i].ns;
	return 0;
}

/* "5", "250ms", "1.5h": the unit is looked at first, as the digits are in it. */
static bool take_duration(struct text *text, uint64_t *ns)
{
	struct text unit = *text;
	uint64_t whole, fraction, per_unit;

	while (!text_empty(&unit) && (is_digit(*unit.start) || *unit.start == '.'))
		unit.start++;
	per_unit = unit_ns(&unit);
	if (!per_unit || !take_digits(text, DURATION_MAX_NS / per_unit, &whole) ||
	    !take_fraction(text, per_unit, &fraction) || text->start != unit.start)
		return false;
	*ns = whole * per_unit + fraction;
	return *ns <= DURATION_MAX_NS;
}

static bool next_duration(struct text *text, uint64_t *ns)
{
	struct text word;

	return next_word(text, &word) && take_duration(&word, ns);
}

bool command_duration(const char *text, uint64_t *ns)
{
	struct text word = { text, text + strlen(text) };

	return take_duration(&word, ns);
}

static bool next_ttr(struct text *text, uint64_t *ns)
{
	if (!next_duration(text, ns))
		return false;
	if (!*ns)
		*ns = NS_PER_S;
	return true;
}

static bool is_name(const struct text *text)
{
	static const char others[] = "-+/;.$_()";
	const char *p;

	if (text_empty(text) || text->end - text->start > TUBE_NAME_MAX || *text->start == '-')
		return false;
	for (p = text->start; p < text->end; p++)
		if (!is_digit(*p) && !(*p >= 'a' && *p <= 'z') && !(*p >= 'A' && *p <= 'Z') &&
		    !memchr(others, *p, sizeof(others) - 1))
			return false;
	return true;
}

/* @name has room for TUBE_NAME_MAX, or JOB_KEY_MAX which is the same, and a NUL. */
static bool copy_name(const struct text *text, char *name)
{
	size_t len = text->end - text->start;

	if (!is_name(text))
		return false;
	memcpy(name, text->start, len);
	name[len] = '\0';
	return true;
}

static bool next_name(struct text *text, char *name)
{
	struct text word;

	return next_word(text, &word) && copy_name(&word, name);
}

/* --- what follows the prefixes ------------------------------------------------------- */

static bool parse_nothing(struct command *command, struct text *text)
{
	(void)command;
	return text_empty(text);
}

/* beanstalkd hangs up whatever follows. */
static bool parse_quit(struct command *command, struct text *text)
{
	(void)command;
	text->start = text->end;
	return true;
}

static bool parse_id(struct command *command, struct text *text)
{
	return next_number(text, UINT64_MAX, &command->id);
}

static bool parse_count(struct command *command, struct text *text)
{
	return next_number(text, UINT64_MAX, &command->count);
}

/* A name that ends the line. */
static bool parse_tube(struct command *command, struct text *text)
{
	struct text name = *text;

	text->start = text->end;
	return copy_name(&name, command->tube);
}

static bool parse_body_len(struct command *command, struct text *text)
{
	command->has_body = true;
	return next_number(text, UINT32_MAX, &command->body_len);
}

static bool parse_put(struct command *command, struct text *text)
{
	return next_u32(text, &command->pri) && next_duration(text, &command->delay_ns) &&
		next_ttr(text, &command->ttr_ns) && parse_body_len(command, text);
}

static bool parse_put_at(struct command *command, struct text *text)
{
	uint64_t unix_ms;

	if (!next_u32(text, &command->pri) || !next_number(text, UNIX_MS_MAX, &unix_ms))
		return false;
	command->due_ns = unix_ms * NS_PER_MS;
	return next_ttr(text, &command->ttr_ns) && parse_body_len(command, text);
}

static bool parse_put_unique(struct command *command, struct text *text)
{
	return next_name(text, command->key) && parse_put(command, text);
}

static bool parse_reserve_with_timeout(struct command *command, struct text *text)
{
	if (text_is(text, "-1")) {
		text->start = text->end;
		command->delay_ns = DURATION_MAX_NS;
		return true;
	}
	return next_duration(text, &command->delay_ns);
}

static bool parse_release(struct command *command, struct text *text)
{
	return parse_id(command, text) && next_u32(text, &command->pri) &&
		next_duration(text, &command->delay_ns);
}

static bool parse_bury(struct command *command, struct text *text)
{
	return parse_id(command, text) && next_u32(text, &command->pri);
}

static bool parse_reschedule(struct command *command, struct text *text)
{
	return parse_id(command, text) && next_duration(text, &command->delay_ns);
}

static bool parse_fail(struct command *command, struct text *text)
{
	return parse_id(command, text) &&
		(text_empty(text) || parse_body_len(command, text));
}

static bool parse_pause_tube(struct command *command, struct text *text)
{
	return next_name(text, command->tube) && next_duration(text, &command->delay_ns);
}

static bool next_factor(struct text *text, double *factor)
{
	const uint64_t parts = NS_PER_S;
	uint64_t whole, fraction;
	struct text word;

	if (!next_word(text, &word) || !take_digits(&word, FACTOR_MAX, &whole) ||
	    !take_fraction(&word, parts, &fraction) || !text_empty(&word))
		return false;
	*factor = (double)whole + (double)fraction / (double)parts;
	return *factor >= 1 && *factor <= FACTOR_MAX;
}

static bool next_jitter(struct text *text, uint32_t *percent)
{
	return next_u32(text, percent) && *percent <= JITTER_MAX;
}

static bool parse_policy(struct command *command, struct text *text)
{
	struct retry_policy *policy = &command->policy;

	return next_name(text, command->tube) && next_u32(text, &policy->max_attempts) &&
		policy->max_attempts && next_duration(text, &policy->base_ns) &&
		next_factor(text, &policy->factor) && next_duration(text, &policy->cap_ns) &&
		next_jitter(text, &policy->jitter_percent) &&
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

	if (!next_word(text, &word))
		return false;
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		if (text_is(&word, names[i])) {
			*state = i;
			return true;
		}
	}
	return false;
}

static bool parse_list_jobs(struct command *command, struct text *text)
{
	return next_name(text, command->tube) && next_state(text, &command->state) &&
		parse_id(command, text) && parse_count(command, text);
}

/* --- the commands -------------------------------------------------------------------- */

/* A prefix that another one begins with comes after it. */
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
	{ "reschedule ", OP_RESCHEDULE, parse_reschedule },
	{ "fail ", OP_FAIL, parse_fail },
	{ "policy ", OP_POLICY, parse_policy },
	{ "list-jobs ", OP_LIST_JOBS, parse_list_jobs },
};

static enum command_error parse_arguments(struct command *command, size_t which,
					  struct text text)
{
	command->op = commands[which].op;
	if (commands[which].parse(command, &text) && text_empty(&text))
		return COMMAND_OK;
	/* As in beanstalkd: what follows a put that is not understood are lines. */
	command->has_body = false;
	return COMMAND_BAD_FORMAT;
}

enum command_error command_parse(struct command *command, const char *line, size_t len)
{
	size_t i, prefix;

	memset(command, 0, sizeof(*command));
	if (memchr(line, '\0', len))
		return COMMAND_BAD_FORMAT;
	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		prefix = strlen(commands[i].prefix);
		if (len >= prefix && !memcmp(line, commands[i].prefix, prefix))
			return parse_arguments(command, i, (struct text){ line + prefix,
									  line + len });
	}
	return COMMAND_UNKNOWN;
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
		[OP_RESCHEDULE] = "reschedule",
		[OP_FAIL] = "fail",
		[OP_POLICY] = "policy",
		[OP_LIST_JOBS] = "list-jobs",
	};

	return names[op];
}
