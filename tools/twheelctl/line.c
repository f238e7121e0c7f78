// SPDX-License-Identifier: GPL-2.0
/*
 * A line of twheelctl run, as text and as the commands to submit.
 *
 * The functions take words off the front of the text. They return false after a message
 * if the text is wrong.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/util.h"
#include "twheelctl/key.h"
#include "twheelctl/line.h"
#include "common/number.h"

#define BLANKS	" \t"

static PRINTF_LIKE(2, 3)
bool wrong(struct line *line, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(line->message, sizeof(line->message), format, args);
	va_end(args);
	return false;
}

static void skip_blanks(char **rest)
{
	*rest += strspn(*rest, BLANKS);
}

/* Takes the next word; empty at the end. */
static char *take_word(char **rest)
{
	char *word;

	skip_blanks(rest);
	word = *rest;
	*rest += strcspn(*rest, BLANKS);
	if (**rest)
		*(*rest)++ = '\0';
	return word;
}

static bool begins_with_word(const char *text, const char *word)
{
	size_t len = strcspn(text, BLANKS);

	return len == strlen(word) && !strncmp(text, word, len);
}

static bool take_end(struct line *line, char **rest)
{
	skip_blanks(rest);
	return !**rest || wrong(line, "there is more than expected: \"%s\"", *rest);
}

static bool take_id(struct line *line, char **rest)
{
	const char *text = take_word(rest);
	const char *reason = count_parse(text, &line->cmd.id);

	return !reason ||
	       wrong(line, "id \"%s\" %s: it is the number that add answered",
		     text, reason);
}

static bool take_duration(struct line *line, char **rest, const char *what,
			  __u64 *ns)
{
	const char *text = take_word(rest);
	const char *reason = duration_parse(text, ns);

	return !reason || wrong(line, "%s \"%s\" %s", what, text, reason);
}

static bool take_every(struct line *line, char **rest)
{
	__u64 *interval_ns = &line->cmd.interval_ns;

	if (*interval_ns)
		return wrong(line, "\"every\" is there twice");
	if (!take_duration(line, rest, "every", interval_ns))
		return false;
	return *interval_ns >= line->tick_ns ||
	       wrong(line, "every %lluns: the least period is a tick, %lluns",
		     *interval_ns, line->tick_ns);
}

static bool take_slack(struct line *line, char **rest)
{
	if (line->cmd.slack_ns)
		return wrong(line, "\"slack\" is there twice");
	return take_duration(line, rest, "slack", &line->cmd.slack_ns);
}

static bool take_cancel_on_set(struct line *line, char **rest)
{
	(void)rest;
	line->cmd.flags |= TWHEEL_CANCEL_ON_SET;
	return true;
}

/* Takes a key for a command. If it was a part of a word, the word was cut. */
static bool take_key(struct line *line, size_t i, const char *text)
{
	const char *reason = key_parse(text, &line->cmds[i].key);

	line->keys[i] = text;
	return !reason ||
	       wrong(line, "key \"%s\" %s: it is a number of 64 bits, or a name such as topic-1",
		     text, reason);
}

/* Takes KEY>=NEED for a WATCH. */
static bool take_need(struct line *line, char **rest, size_t i, const char *what)
{
	struct twheel_cmd *cmd = &line->cmds[i];
	char *text = take_word(rest);
	char *sign = strstr(text, KEY_SIGN);
	const char *need, *reason;

	if (!sign)
		return wrong(line,
			     "%s \"%s\" is not KEY>=NEED, in one word, such as topic-1>=4096",
			     what, text);
	*sign = '\0';
	need = sign + strlen(KEY_SIGN);
	if (!take_key(line, i, text))
		return false;
	reason = count_parse(need, &cmd->value);
	if (reason)
		return wrong(line, "need \"%s\" %s", need, reason);
	return cmd->value || wrong(line, "need \"%s\": the least need is 1", need);
}

/* Takes a watch for the event that the line adds. */
static bool take_another_watch(struct line *line, char **rest, const char *what,
			       __u16 flags)
{
	if (line->verb != LINE_ADD)
		return wrong(line,
			     "\"%s\" goes with add; here it is a line of its own: %s ID KEY>=NEED",
			     what, what);
	if (line->nr_cmds == LINE_MAX_CMDS)
		return wrong(line, "there are more than %d watches",
			     TWHEEL_MAX_WATCHES);
	line->cmds[line->nr_cmds] = (struct twheel_cmd){
		.op = TWHEEL_OP_WATCH,
		.flags = flags,
	};
	return take_need(line, rest, line->nr_cmds++, what);
}

static bool take_watch(struct line *line, char **rest)
{
	return take_another_watch(line, rest, "watch", 0);
}

static bool take_level(struct line *line, char **rest)
{
	return take_another_watch(line, rest, "level", TWHEEL_LEVEL);
}

static bool take_quorum(struct line *line, char **rest)
{
	const char *text = take_word(rest);
	__u64 quorum;

	if (line->verb != LINE_ADD)
		return wrong(line, "\"quorum\" goes with add only: it stays as it is");
	if (line->cmd.quorum)
		return wrong(line, "\"quorum\" is there twice");
	if (count_parse(text, &quorum) || !quorum || quorum > TWHEEL_MAX_WATCHES)
		return wrong(line, "quorum \"%s\" is not a whole number from 1 to %d",
			     text, TWHEEL_MAX_WATCHES);
	line->cmd.quorum = quorum;
	return true;
}

static const struct option {
	const char *word;
	bool (*take)(struct line *line, char **rest);
} options[] = {
	{ "every",	   take_every },
	{ "slack",	   take_slack },
	{ "cancel-on-set", take_cancel_on_set },
	{ "watch",	   take_watch },
	{ "level",	   take_level },
	{ "quorum",	   take_quorum },
};

/* Finds the option that a text begins with. Returns NULL if there is none. */
static const struct option *find_option(const char *text)
{
	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		if (begins_with_word(text, options[i].word))
			return &options[i];
	return NULL;
}

/* Takes all options that follow. */
static bool take_options(struct line *line, char **rest)
{
	const struct option *option;

	for (;;) {
		skip_blanks(rest);
		option = find_option(*rest);
		if (!option)
			return true;
		take_word(rest);
		if (!option->take(line, rest))
			return false;
	}
}

static bool take_absolute(struct line *line, char **rest)
{
	const char *text = take_word(rest) + 1;
	const char *reason = seconds_parse(text, &line->cmd.time_ns);

	line->cmd.flags |= TWHEEL_ABS;
	return !reason || wrong(line, "time \"@%s\" %s", text, reason);
}

/* Takes the index of a deadline. */
static bool take_index(struct line *line, char **rest)
{
	const char *text = take_word(rest);
	const char *reason = count_parse(text, &line->cmd.key);

	if (reason)
		return wrong(line, "deadline \"%s\" %s", text, reason);
	return line->cmd.key < line->nr_deadlines ||
	       wrong(line, "deadline %llu: there are %llu, from 0 on; --deadlines N says how many",
		     line->cmd.key, line->nr_deadlines);
}

static bool take_deadline(struct line *line, char **rest)
{
	take_word(rest);
	line->cmd.flags |= TWHEEL_DEADLINE;
	return take_index(line, rest);
}

/* Takes the time of an event, and the options that follow. */
static bool take_when(struct line *line, char **rest)
{
	bool ok = true;

	skip_blanks(rest);
	if (**rest == '@')
		ok = take_absolute(line, rest);
	else if (begins_with_word(*rest, "deadline"))
		ok = take_deadline(line, rest);
	else if (!find_option(*rest))
		ok = take_duration(line, rest, "delay", &line->cmd.time_ns);
	else if (!take_options(line, rest))
		return false;
	else if (line->cmd.interval_ns)
		line->cmd.time_ns = line->cmd.interval_ns;
	else
		return wrong(line, "when is it due? Say DELAY, @TIME or every PERIOD");
	return ok && take_options(line, rest);
}

/* Checks options that depend on other options. */
static bool check_options(struct line *line)
{
	if (line->cmd.flags & TWHEEL_CANCEL_ON_SET &&
	    (!(line->cmd.flags & TWHEEL_ABS) || line->clockid != CLOCK_REALTIME))
		return wrong(line,
			     "cancel-on-set goes with @TIME and --clock realtime only");
	if (line->cmd.interval_ns && line->cmd.flags & TWHEEL_DEADLINE)
		return wrong(line,
			     "\"every\" goes with no deadline: a word is the time of one expiration");
	if (line->cmd.interval_ns && (line->nr_cmds > 1 || line->cmd.quorum > 1))
		return wrong(line,
			     "\"every\" goes with no watch, level or quorum: a periodic event takes none");
	return true;
}

static bool take_quoted_name(struct line *line, char **rest)
{
	char *end = strchr(*rest + 1, '"');

	if (!end)
		return wrong(line, "the name %s has no closing quote", *rest);
	*end = '\0';
	line->name = *rest + 1;
	*rest = end + 1;
	return *line->name || wrong(line, "the name is empty");
}

/* Returns the end of the words before the next option. */
static char *end_of_name(char *text)
{
	char *end = text;

	while (*text && !find_option(text)) {
		end = text + strcspn(text, BLANKS);
		text = end + strspn(end, BLANKS);
	}
	return end;
}

static bool take_name(struct line *line, char **rest)
{
	char *end;

	skip_blanks(rest);
	if (!**rest)
		return wrong(line, "a name is missing: add WHEN NAME");
	if (**rest == '"')
		return take_quoted_name(line, rest);
	line->name = *rest;
	end = end_of_name(*rest);
	*rest = end + (*end != '\0');
	*end = '\0';
	return true;
}

static bool parse_add(struct line *line, char *rest)
{
	line->cmd.op = TWHEEL_OP_ADD;
	return take_when(line, &rest) && take_name(line, &rest) &&
	       take_options(line, &rest) && take_end(line, &rest) &&
	       check_options(line);
}

static bool parse_modify(struct line *line, char *rest)
{
	line->cmd.op = TWHEEL_OP_MODIFY;
	return take_id(line, &rest) && take_when(line, &rest) &&
	       take_end(line, &rest) && check_options(line);
}

static bool parse_cancel(struct line *line, char *rest)
{
	line->cmd.op = TWHEEL_OP_CANCEL;
	return take_id(line, &rest) && take_end(line, &rest);
}

static bool parse_watch(struct line *line, char *rest)
{
	line->cmd.op = TWHEEL_OP_WATCH;
	return take_id(line, &rest) && take_need(line, &rest, 0, "watch") &&
	       take_end(line, &rest);
}

static bool parse_level(struct line *line, char *rest)
{
	line->cmd.op = TWHEEL_OP_WATCH;
	line->cmd.flags = TWHEEL_LEVEL;
	return take_id(line, &rest) && take_need(line, &rest, 0, "level") &&
	       take_end(line, &rest);
}

/* Takes VALUE, or quiet. */
static bool take_value(struct line *line, char **rest)
{
	const char *text = take_word(rest);
	const char *reason;

	if (!strcmp(text, "quiet")) {
		line->cmd.flags = TWHEEL_QUIET;
		return true;
	}
	reason = count_parse(text, &line->cmd.value);
	return !reason || wrong(line, "value \"%s\" %s: say a number, or quiet",
				text, reason);
}

static bool parse_signal(struct line *line, char *rest)
{
	line->cmd.op = TWHEEL_OP_SIGNAL;
	return take_key(line, 0, take_word(&rest)) && take_value(line, &rest) &&
	       take_end(line, &rest);
}

static bool parse_complete(struct line *line, char *rest)
{
	const char *text, *reason;

	line->cmd.op = TWHEEL_OP_COMPLETE;
	if (!take_id(line, &rest))
		return false;
	text = take_word(&rest);
	reason = *text ? count_parse(text, &line->cmd.value) : NULL;
	if (reason)
		return wrong(line, "value \"%s\" %s", text, reason);
	return take_end(line, &rest);
}

static bool parse_store(struct line *line, char *rest)
{
	bool ok;

	if (!take_index(line, &rest))
		return false;
	skip_blanks(&rest);
	if (*rest == '@') {
		ok = take_absolute(line, &rest);
	} else if (begins_with_word(rest, "never")) {
		take_word(&rest);
		line->cmd.flags |= TWHEEL_ABS;
		line->cmd.time_ns = ~0ULL;
		ok = true;
	} else {
		ok = take_duration(line, &rest, "delay", &line->cmd.time_ns);
	}
	return ok && take_end(line, &rest);
}

static bool parse_query(struct line *line, char *rest)
{
	line->cmd.op = TWHEEL_OP_QUERY;
	return take_id(line, &rest) && take_end(line, &rest);
}

static bool parse_list(struct line *line, char *rest)
{
	return take_end(line, &rest);
}

/*
 * Cut the end of a line off: the newline, and a carriage return before it.
 *
 * @length: the bytes before the '\0' that ends @text.
 *
 * Return: NULL, or why it is not a line of text.
 */
const char *line_cut(char *text, size_t length)
{
	if (strlen(text) != length)
		return "a zero byte: this is not text";
	if (length && text[length - 1] == '\n')
		text[--length] = '\0';
	if (length && text[length - 1] == '\r')
		text[--length] = '\0';
	return strchr(text, '\r') ? "a carriage return within the line: lines end with a newline" :
	       NULL;
}

/*
 * Parse a line.
 *
 * @text: the line, which is modified.
 *
 * Return: true, or false if it is wrong: then @message says why.
 */
bool line_parse(struct line *line, char *text)
{
	static const struct {
		const char *name;
		enum verb verb;
		bool (*parse)(struct line *line, char *rest);
	} verbs[] = {
		{ "add",      LINE_ADD,	     parse_add },
		{ "modify",   LINE_MODIFY,   parse_modify },
		{ "cancel",   LINE_CANCEL,   parse_cancel },
		{ "watch",    LINE_WATCH,    parse_watch },
		{ "level",    LINE_WATCH,    parse_level },
		{ "signal",   LINE_SIGNAL,   parse_signal },
		{ "complete", LINE_COMPLETE, parse_complete },
		{ "store",    LINE_STORE,    parse_store },
		{ "query",    LINE_QUERY,    parse_query },
		{ "list",     LINE_LIST,     parse_list },
	};
	const char *word;

	word = take_word(&text);
	line->verb = LINE_BLANK;
	line->cmd = (struct twheel_cmd){ 0 };
	line->nr_cmds = 1;
	line->keys[0] = NULL;
	if (!*word || *word == '#')
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		if (strcmp(word, verbs[i].name))
			continue;
		line->verb = verbs[i].verb;
		return verbs[i].parse(line, text);
	}
	return wrong(line,
		     "unknown command \"%s\": it is add, modify, cancel, watch, level, signal, complete, store, query or list",
		     word);
}
