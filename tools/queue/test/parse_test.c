// SPDX-License-Identifier: GPL-2.0
/*
 * Parsing lines. The tables say where beanstalkd is known to differ; for the other lines of its
 * own a beanstalkd of the same version was asked, and agrees.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/protocol/parse.h"
#include "test/device/harness.h"
#include "common/util.h"

#define A10	"aaaaaaaaaa"
#define A100	A10 A10 A10 A10 A10 A10 A10 A10 A10 A10
#define A200	A100 A100

/* A line, which may have NULs, and what describe() must return for it. */
struct line {
	const char *text;
	size_t len;
	const char *meaning;
};

#define LINE(text, meaning)	{ text, sizeof(text) - 1, meaning }
#define UNKNOWN(text)		LINE(text, "UNKNOWN_COMMAND")
#define BAD(text)		LINE(text, "BAD_FORMAT")
#define BAD_BODY(text, len)	LINE(text, "BAD_FORMAT body " len)
#define LOST(text)		LINE(text, "BAD_FORMAT close")

static int describe_times(const struct command *command, char *out, size_t size)
{
	switch (command->op) {
	case OP_PUT:
	case OP_PUT_UNIQUE:
	case OP_KEEP_UNIQUE:
		return snprintf(out, size, " pri %" PRIu32 " delay %" PRIu64 " ttr %" PRIu64,
				command->pri, command->delay_ns, command->ttr_ns);
	case OP_PUT_AT:
		return snprintf(out, size, " pri %" PRIu32 " due %" PRIu64 " ttr %" PRIu64,
				command->pri, command->due_ns, command->ttr_ns);
	case OP_EVERY:
		return snprintf(out, size, " pri %" PRIu32 " interval %" PRIu64 " first %" PRIu64
				" ttr %" PRIu64, command->pri, command->delay_ns,
				command->due_ns, command->ttr_ns);
	case OP_PURGE:
		return snprintf(out, size, " state %d", command->state);
	case OP_RELEASE:
		return snprintf(out, size, " pri %" PRIu32 " delay %" PRIu64, command->pri,
				command->delay_ns);
	case OP_BURY:
		return snprintf(out, size, " pri %" PRIu32, command->pri);
	case OP_RESCHEDULE:
	case OP_PAUSE_TUBE:
	case OP_RESERVE_WITH_TIMEOUT:
		return snprintf(out, size, " delay %" PRIu64, command->delay_ns);
	case OP_KICK:
		return snprintf(out, size, " count %" PRIu64, command->count);
	case OP_LIST_JOBS:
		if (!command->after.id)
			return snprintf(out, size, " state %d count %" PRIu64, command->state,
					command->count);
		return snprintf(out, size, " state %d count %" PRIu64 " after %" PRIu64
				" %d %" PRIu64 " %" PRIu32, command->state, command->count,
				command->after.id, command->after.state, command->after.order,
				command->after.pri);
	case OP_POLICY:
		return snprintf(out, size, " %" PRIu32 " %" PRIu64 " %g %" PRIu64 " %" PRIu32
				" dead=%s", command->policy.max_attempts,
				command->policy.base_ns, command->policy.factor,
				command->policy.cap_ns, command->policy.jitter_percent,
				command->policy.dead);
	default:
		return 0;
	}
}

/* A command as words: all fields that are set. */
static void describe(const struct command *command, char *out, size_t size)
{
	size_t len = snprintf(out, size, "%s", command_name(command->op));

	if (*command->tube)
		len += snprintf(out + len, size - len, " tube=%s", command->tube);
	if (*command->key)
		len += snprintf(out + len, size - len, " key=%s", command->key);
	if (command->id)
		len += snprintf(out + len, size - len, " id %" PRIu64, command->id);
	len += describe_times(command, out + len, size - len);
	if (command->has_body)
		snprintf(out + len, size - len, " body %" PRIu64, command->body_len);
}

/* What is said of a line that is wrong. */
static void describe_wrong(const struct command *command, const char *error, char *out,
			   size_t size)
{
	size_t len = snprintf(out, size, "%s", error);

	if (command->has_body)
		len += snprintf(out + len, size - len, " body %" PRIu64, command->body_len);
	if (command->close)
		snprintf(out + len, size - len, " close");
}

static void check(const struct line *line)
{
	struct command command;
	char seen[1024];
	/* In memory of its own, so that a sanitizer sees a read beyond its end. */
	char *text = malloc(line->len + !line->len);

	memcpy(text, line->text, line->len);
	memset(&command, 0xcc, sizeof(command));
	switch (command_parse(&command, text, line->len)) {
	case COMMAND_UNKNOWN:
		describe_wrong(&command, "UNKNOWN_COMMAND", seen, sizeof(seen));
		break;
	case COMMAND_BAD_FORMAT:
		describe_wrong(&command, "BAD_FORMAT", seen, sizeof(seen));
		break;
	default:
		describe(&command, seen, sizeof(seen));
	}
	free(text);
	if (strcmp(seen, line->meaning))
		test_fail(__FILE__, __LINE__, "\"%s\": seen \"%s\", expected \"%s\"", line->text,
			  seen, line->meaning);
}

static void check_all(const struct line *lines, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		check(&lines[i]);
}

TEST(each_command_of_beanstalkd_is_parsed)
{
	static const struct line lines[] = {
		LINE("put 1 2 3 4", "put pri 1 delay 2000000000 ttr 3000000000 body 4"),
		LINE("peek 7", "peek id 7"),
		LINE("peek-ready", "peek-ready"),
		LINE("peek-delayed", "peek-delayed"),
		LINE("peek-buried", "peek-buried"),
		LINE("reserve", "reserve"),
		LINE("reserve-with-timeout 5", "reserve-with-timeout delay 5000000000"),
		LINE("reserve-job 7", "reserve-job id 7"),
		LINE("delete 7", "delete id 7"),
		LINE("release 7 1 2", "release id 7 pri 1 delay 2000000000"),
		LINE("use a", "use tube=a"),
		LINE("watch a", "watch tube=a"),
		LINE("ignore a", "ignore tube=a"),
		LINE("bury 7 1", "bury id 7 pri 1"),
		LINE("kick 5", "kick count 5"),
		LINE("kick-job 7", "kick-job id 7"),
		LINE("touch 7", "touch id 7"),
		LINE("stats", "stats"),
		LINE("stats-job 7", "stats-job id 7"),
		LINE("stats-tube a", "stats-tube tube=a"),
		LINE("list-tubes", "list-tubes"),
		LINE("list-tube-used", "list-tube-used"),
		LINE("list-tubes-watched", "list-tubes-watched"),
		LINE("pause-tube a 5", "pause-tube tube=a delay 5000000000"),
		LINE("quit", "quit"),
	};

	check_all(lines, ARRAY_SIZE(lines));
}

TEST(each_command_beyond_beanstalkd_is_parsed)
{
	static const struct line lines[] = {
		LINE("put-at 1 1700000000123 3 4",
		     "put-at pri 1 due 1700000000123000000 ttr 3000000000 body 4"),
		LINE("put-unique k 1 2 3 4",
		     "put-unique key=k pri 1 delay 2000000000 ttr 3000000000 body 4"),
		LINE("reschedule 7 2", "reschedule id 7 delay 2000000000"),
		LINE("fail 7", "fail id 7"),
		LINE("fail 7 12", "fail id 7 body 12"),
		LINE("fail 7 0", "fail id 7 body 0"),
		LINE("policy a 25 1s 2 1h 10",
		     "policy tube=a 25 1000000000 2 3600000000000 10 dead="),
		LINE("policy a 4294967295 250ms 1.5 1d 100 b",
		     "policy tube=a 4294967295 250000000 1.5 86400000000000 100 dead=b"),
		LINE("policy a 1 0 1000 0 0", "policy tube=a 1 0 1000 0 0 dead="),
		LINE("list-jobs a ready 0 10", "list-jobs tube=a state 0 count 10"),
		LINE("list-jobs a ready 7/0/1024 10",
		     "list-jobs tube=a id 7 state 0 count 10 after 7 0 0 1024"),
		LINE("list-jobs a delayed 7/2/1790000000000000000 10",
		     "list-jobs tube=a id 7 state 2 count 10 after 7 2 1790000000000000000 0"),
		LINE("list-jobs a reserved 7 1", "list-jobs tube=a id 7 state 1 count 1"),
		LINE("list-jobs a delayed 7 1", "list-jobs tube=a id 7 state 2 count 1"),
		LINE("list-jobs a buried 7 1", "list-jobs tube=a id 7 state 3 count 1"),
		LINE("every n 2 1s 7 3 4",
		     "every key=n pri 2 interval 1000000000 first 7000000 ttr 3000000000 body 4"),
		LINE("every n:1 2 1 0 0 0",
		     "every key=n:1 pri 2 interval 1000000000 first 0 ttr 1000000000 body 0"),
		LINE("every-stop n:1", "every-stop key=n:1"),
		LINE("list-every", "list-every"), LINE("list-every n:1", "list-every key=n:1"),
		LINE("purge a ready", "purge tube=a state 0"),
		LINE("purge a delayed", "purge tube=a state 2"),
		LINE("purge a buried", "purge tube=a state 3"),
	};

	check_all(lines, ARRAY_SIZE(lines));
}

TEST(a_line_that_begins_like_no_command_is_unknown)
{
	static const struct line lines[] = {
		UNKNOWN(""), UNKNOWN(" "), UNKNOWN("x"), UNKNOWN(" put 1 0 1 1"),
		UNKNOWN("PUT 1 0 1 1"), UNKNOWN("putx 1 0 1 1"), UNKNOWN("put1 0 1 1"),
		UNKNOWN("put\t1 0 1 1"), UNKNOWN("put-x 1 0 1 1"), UNKNOWN("list"),
		UNKNOWN("quix"), UNKNOWN("peekx 1"), UNKNOWN("peek-x"), UNKNOWN("kickx"),
		UNKNOWN("delete999"), UNKNOWN("kick1"), UNKNOWN("touch999"), UNKNOWN("\n"),
		/* The name alone of commands with arguments; it begins no other name. */
		UNKNOWN("put"), UNKNOWN("use"), UNKNOWN("watch"), UNKNOWN("ignore"),
		UNKNOWN("delete"), UNKNOWN("peek"), UNKNOWN("release"), UNKNOWN("bury"),
		UNKNOWN("kick"), UNKNOWN("kick-job"), UNKNOWN("touch"), UNKNOWN("put-at"),
		LINE("GET / HTTP/1.1", "UNKNOWN_COMMAND close"),
		LINE("POST /put HTTP/1.0", "UNKNOWN_COMMAND close"),
		LINE("HTTP/1", "UNKNOWN_COMMAND close"),
		LINE("GET / HTTP/1.1 ", "UNKNOWN_COMMAND close"),
		UNKNOWN("every"), UNKNOWN("every-stop"), UNKNOWN("every-x n"), UNKNOWN("purge"),
		UNKNOWN("put-unique"), UNKNOWN("keep-unique"), UNKNOWN("reschedule"),
		UNKNOWN("fail"),
		UNKNOWN("policy"), UNKNOWN("list-jobs"),
	};

	check_all(lines, ARRAY_SIZE(lines));
}

TEST(bytes_behind_a_name_are_a_bad_format_as_in_beanstalkd)
{
	static const struct line lines[] = {
		BAD("peek-ready x"), BAD("peek-ready "), BAD("peek-readyx"), BAD("reservex"),
		BAD("reserve x"), BAD("reserve "), BAD("reserve-job"), BAD("reserve-job999"),
		BAD("reserve-with-timeout"), BAD("reserve-with-timeout0"), BAD("stats-job"),
		BAD("stats-job999"), BAD("stats-tube"), BAD("stats-"), BAD("stats "),
		BAD("list-tubes x"), BAD("list-tubesx"), BAD("list-tube-used "),
		BAD("list-tubes-watchedx"), BAD("pause-tube"), BAD("pause-tube default"),
		BAD("stats-tube\tdefault"),
		/* quit is quit whatever follows. */
		LINE("quitx", "quit"), LINE("quit x", "quit"),
	};

	check_all(lines, ARRAY_SIZE(lines));
}

TEST(too_few_and_too_many_arguments_are_a_bad_format)
{
	static const struct line lines[] = {
		LOST("put "), BAD_BODY("put 1", "1"), BAD_BODY("put 1 0", "0"),
		BAD_BODY("put 1 0 1", "1"), LOST("put 1 0 1 1 "),
		LOST("put 1 0 1 1 x"), BAD_BODY("put 1\t0 1 1", "1"),
		BAD("delete "), BAD("delete 1 x"), BAD("delete 1 "), BAD("peek 1 "),
		BAD("release 1"), BAD("release 1 1"), BAD("release 1 1 1 1"),
		BAD("release 1 1 1 "), BAD("bury 1"), BAD("bury 1 1 1"), BAD("touch 1 1"),
		BAD("kick-job 1 1"), BAD("stats-job 1 1"), BAD("reserve-job 1 1"),
		BAD("pause-tube a"), BAD("pause-tube a 0 1"), BAD("pause-tube a 0 "),
		BAD_BODY("put-at 1 0 1", "1"), BAD_BODY("put-at 1 0 1 1 1", "1"),
		BAD_BODY("put-unique k 1 0 1", "1"),
		BAD_BODY("put-unique k 1 0 1 1 1", "1"), BAD("reschedule 1"),
		BAD("reschedule 1 1 1"),
		LOST("fail "), LOST("fail 1 "), BAD_BODY("fail 1 1 1", "1"), BAD("policy a"),
		BAD("policy a 1 1 1 1"), BAD("policy a 1 1 1 1 1 "), BAD("policy a 1 1 1 1 1 b c"),
		BAD("list-jobs a ready 7/ 1"), BAD("list-jobs a ready 7/0 1"),
		BAD("list-jobs a ready 7/0/ 1"), BAD("list-jobs a ready 7/0/1/ 1"),
		BAD("list-jobs a ready 7/4/1 1"), BAD("list-jobs a ready /0/1 1"),
		BAD("list-jobs a ready 7/0/4294967296 1"), BAD("list-jobs a ready 7/0/-1 1"),
		BAD("list-jobs a ready 0"), BAD("list-jobs a ready 0 1 1"),
		BAD_BODY("every n 1 2 3 4", "4"), BAD_BODY("every n 1 2 3 4 5 6", "6"),
		LOST("every n"), LOST("every "), BAD("every-stop "), BAD("every-stop n m"),
		BAD("every-stop n "), BAD("list-everyx"), BAD("list-every "),
		BAD("list-every n m"), BAD("purge a"), BAD("purge a reserved"),
		BAD("purge a ready 1"), BAD("purge a READY"), BAD("purge -a ready"),
		/* The least interval is a second. */
		BAD_BODY("every n 1 999ms 0 1 5", "5"), BAD_BODY("every n 1 0 0 1 5", "5"),
		BAD_BODY("every n* 1 1s 0 1 5", "5"),
		BAD_BODY("every n 1 1s 9223372036855 1 5", "5"),
		/* beanstalkd ignores what follows the number of these. */
		BAD("kick 1 1"), BAD("kick 1x"), BAD("kick 1 "),
		BAD("reserve-with-timeout "), BAD("reserve-with-timeout 0 0"),
		BAD("reserve-with-timeout 0 "),
	};

	check_all(lines, ARRAY_SIZE(lines));
}

TEST(a_number_has_digits_only_and_is_within_its_limit)
{
	static const struct line lines[] = {
		LINE("put 4294967295 0 1 1", "put pri 4294967295 delay 0 ttr 1000000000 body 1"),
		LINE("put 00000000000000000000001 0 1 1",
		     "put pri 1 delay 0 ttr 1000000000 body 1"),
		LINE("put 1 0 1 4294967295", "put pri 1 delay 0 ttr 1000000000 body 4294967295"),
		LINE("delete 18446744073709551615", "delete id 18446744073709551615"),
		LINE("put  1  0  1  1", "put pri 1 delay 0 ttr 1000000000 body 1"),
		LINE("delete  9", "delete id 9"), LINE("delete 0", "delete"),
		BAD_BODY("put 4294967296 0 1 1", "1"), BAD_BODY("put -1 0 1 1", "1"),
		BAD_BODY("put +1 0 1 1", "1"),
		BAD_BODY("put 0x1 0 1 1", "1"), BAD_BODY("put 1a 0 1 1", "1"),
		BAD_BODY("put 1.0 0 1 1", "1"),
		LOST("put 1 0 1 -1"), LOST("put 1 0 1 +1"), LOST("put 1 0 1 1a"),
		BAD_BODY("put x 0 1 1000000000", "1000000000"), LOST("put x 0 1 1000000001"),
		LOST("put 1 0 1 4294967296"), LOST("put 1 0 1 18446744073709551616"),
		BAD("delete x"), BAD("delete 1x"), BAD("delete -1"), BAD("delete +1"),
		BAD("delete 18446744073709551616"), BAD("delete 99999999999999999999999999"),
		BAD("bury 1 4294967296"), BAD("kick x"), BAD("kick 18446744073709551616"),
		/* beanstalkd reads this as a large number. */
		BAD("kick -1"),
		LINE("list-jobs a ready 18446744073709551615 18446744073709551615",
		     "list-jobs tube=a id 18446744073709551615 state 0 count 18446744073709551615"),
	};

	check_all(lines, ARRAY_SIZE(lines));
}

#define DELAY(text, ns)	LINE("reschedule 1 " text, "reschedule id 1 delay " ns)
#define NO_DELAY(text)	BAD("reschedule 1 " text)

TEST(a_duration_has_a_unit_or_is_in_seconds)
{
	static const struct line lines[] = {
		DELAY("0", "0"), DELAY("0ms", "0"), DELAY("1s", "1000000000"),
		DELAY("250ms", "250000000"), DELAY("1us", "1000"), DELAY("2m", "120000000000"),
		DELAY("2h", "7200000000000"), DELAY("1d", "86400000000000"),
		DELAY("1.5s", "1500000000"), DELAY("1.5", "1500000000"),
		DELAY("0.001us", "1"), DELAY("0.0001us", "0"), DELAY("1.000000001s", "1000000001"),
		DELAY("0.5d", "43200000000000"),
		DELAY("0.99999999999999999999999999999999999999999s", "999999999"),
		DELAY("4294967295", "4294967295000000000"),
		DELAY("4294967295000ms", "4294967295000000000"),
		DELAY("49710d", "4294944000000000000"),
		NO_DELAY("4294967296"), NO_DELAY("4294967295.5"), NO_DELAY("4294967295001ms"),
		NO_DELAY("49710.9d"), NO_DELAY("49711d"), NO_DELAY("99999999999999999999"),
		NO_DELAY("-1"), NO_DELAY("+1"), NO_DELAY("1ns"), NO_DELAY("1S"), NO_DELAY("1 s"),
		NO_DELAY("s"), NO_DELAY("ms"), NO_DELAY(".5"), NO_DELAY("1."), NO_DELAY("1.s"),
		NO_DELAY("1..5"), NO_DELAY("1.5.5"), NO_DELAY("1e3"), NO_DELAY("1m30s"),
		NO_DELAY("inf"), NO_DELAY("nan"), NO_DELAY("1,5"), NO_DELAY("1ss"),
		LINE("put 1 250ms 1.5h 1", "put pri 1 delay 250000000 ttr 5400000000000 body 1"),
		LINE("pause-tube a 1.5s", "pause-tube tube=a delay 1500000000"),
		LINE("release 1 0 10ms", "release id 1 pri 0 delay 10000000"),
		LINE("reserve-with-timeout 10ms", "reserve-with-timeout delay 10000000"),
	};

	check_all(lines, ARRAY_SIZE(lines));
}

TEST(a_time_to_run_of_0_becomes_a_second)
{
	static const struct line lines[] = {
		LINE("put 0 0 0 0", "put pri 0 delay 0 ttr 1000000000 body 0"),
		LINE("put 0 0 0ms 0", "put pri 0 delay 0 ttr 1000000000 body 0"),
		LINE("put 0 0 1ms 0", "put pri 0 delay 0 ttr 1000000 body 0"),
		LINE("put-at 0 0 0 0", "put-at pri 0 due 0 ttr 1000000000 body 0"),
	};

	check_all(lines, ARRAY_SIZE(lines));
}

TEST(reserve_with_minus_one_has_the_longest_timeout)
{
	static const struct line lines[] = {
		LINE("reserve-with-timeout -1", "reserve-with-timeout delay 4294967295000000000"),
		/* beanstalkd reads some of these as 0, others as -1. */
		BAD("reserve-with-timeout -2"), BAD("reserve-with-timeout x"),
		BAD("reserve-with-timeout 1x"), BAD("reserve-with-timeout +0"),
		BAD("reserve-with-timeout 4294967296"), BAD("reserve-with-timeout -1 "),
	};

	check_all(lines, ARRAY_SIZE(lines));
}

TEST(a_wall_clock_time_ends_in_2262)
{
	static const struct line lines[] = {
		LINE("put-at 0 9223372036854 1 0",
		     "put-at pri 0 due 9223372036854000000 ttr 1000000000 body 0"),
		BAD_BODY("put-at 0 9223372036855 1 0", "0"),
		BAD_BODY("put-at 0 18446744073709551615 1 0", "0"),
		BAD_BODY("put-at 0 -1 1 0", "0"), BAD_BODY("put-at 0 1.5 1 0", "0"),
		BAD_BODY("put-at 0 1s 1 0", "0"),
	};

	check_all(lines, ARRAY_SIZE(lines));
}

TEST(names_have_the_bytes_of_beanstalkds)
{
	static const struct line lines[] = {
		LINE("use a-", "use tube=a-"),
		LINE("use +/;.$_()", "use tube=+/;.$_()"),
		LINE("use 09azAZ", "use tube=09azAZ"),
		LINE("use " A200, "use tube=" A200), BAD("use " A200 "a"),
		BAD("use "), BAD("use  a"), BAD("use a "), BAD("use a b"), BAD("use -a"),
		BAD("use a!"), BAD("use a:b"), BAD("use a,b"), BAD("use a\\b"), BAD("use a\tb"),
		BAD("use \xc3\xa9"), BAD("use \x7f"), BAD("use a\r"), BAD("use a\nb"),
		BAD("watch -a"), BAD("watch a b"), BAD("watch " A200 "a"), BAD("ignore -x"),
		BAD("ignore a b"), BAD("ignore " A200 "a"), BAD("stats-tube -x"),
		BAD("stats-tube a x"), BAD("stats-tube " A200 "a"), BAD("stats-tube  a"),
		LINE("pause-tube " A200 " 0", "pause-tube tube=" A200 " delay 0"),
		LINE("pause-tube  a  0", "pause-tube tube=a delay 0"),
		LINE("pause-tubea 0", "pause-tube tube=a delay 0"),
		BAD("pause-tube " A200 "a 0"), BAD("pause-tube -x 1"), BAD("pause-tube a x"),
		LINE("put-unique " A200 " 0 0 1 0",
		     "put-unique key=" A200 " pri 0 delay 0 ttr 1000000000 body 0"),
		BAD_BODY("put-unique " A200 "a 0 0 1 0", "0"),
		LINE("put-unique user:1@a,b=c/d 0 0 1 0",
		     "put-unique key=user:1@a,b=c/d pri 0 delay 0 ttr 1000000000 body 0"),
		LINE("put-unique -k 0 0 1 0",
		     "put-unique key=-k pri 0 delay 0 ttr 1000000000 body 0"),
		LINE("keep-unique : 1 2s 3 4",
		     "keep-unique key=: pri 1 delay 2000000000 ttr 3000000000 body 4"),
		BAD_BODY("put-unique k\x7f 0 0 1 0", "0"), BAD_BODY("put-unique k! 0 0 1 0", "0"),
		BAD("policy -a 1 1 1 1 1"), BAD("policy a 1 1 1 1 1 -b"),
		BAD("policy a 1 1 1 1 1 " A200 "a"), BAD("list-jobs -a ready 0 1"),
	};

	check_all(lines, ARRAY_SIZE(lines));
}

TEST(a_nul_anywhere_is_a_bad_format)
{
	static const struct line lines[] = {
		BAD("\0"), BAD("use a\0b"), BAD("use a\0"), BAD("kick 1\0"), BAD("quit\0x"),
		BAD("list-tubes\0"), LOST("put 1 0 1 1\0"), BAD("x\0"),
	};

	check_all(lines, ARRAY_SIZE(lines));
}

TEST(a_policy_is_within_its_limits)
{
	static const struct line lines[] = {
		BAD("policy a 0 1 1 1 1"), BAD("policy a 4294967296 1 1 1 1"),
		BAD("policy a -1 1 1 1 1"), BAD("policy a x 1 1 1 1"),
		BAD("policy a 1 x 1 1 1"), BAD("policy a 1 1 1 x 1"),
		BAD("policy a 1 4294967296 1 1 1"),
		BAD("policy a 1 1 0.999999999 1 1"), BAD("policy a 1 1 0 1 1"),
		BAD("policy a 1 1 1000.1 1 1"), BAD("policy a 1 1 1001 1 1"),
		BAD("policy a 1 1 -2 1 1"), BAD("policy a 1 1 2x 1 1"), BAD("policy a 1 1 2s 1 1"),
		BAD("policy a 1 1 inf 1 1"), BAD("policy a 1 1 nan 1 1"),
		BAD("policy a 1 1 1e2 1 1"),
		BAD("policy a 1 1 1 1 101"), BAD("policy a 1 1 1 1 -1"),
		BAD("policy a 1 1 1 1 1.5"), BAD("policy a 1 1 1 1 x"),
		LINE("policy a 1 1 1.25 1 1",
		     "policy tube=a 1 1000000000 1.25 1000000000 1 dead="),
	};

	check_all(lines, ARRAY_SIZE(lines));
}

TEST(list_jobs_knows_four_states)
{
	static const struct line lines[] = {
		BAD("list-jobs a wall 0 1"), BAD("list-jobs a Ready 0 1"),
		BAD("list-jobs a read 0 1"), BAD("list-jobs a readyy 0 1"),
		BAD("list-jobs a 0 0 1"), BAD("list-jobs a ready x 1"),
		BAD("list-jobs a ready 0 x"), BAD("list-jobs a ready 0 -1"),
	};

	check_all(lines, ARRAY_SIZE(lines));
}

TEST(every_operation_has_a_name)
{
	int op;

	for (op = 0; op < NR_OPS; op++) {
		test_about("operation %d", op);
		ASSERT(command_name(op) && *command_name(op));
	}
}

TEST(options_have_the_same_durations)
{
	uint64_t ns;

	ASSERT(text_duration("10m", &ns));
	ASSERT_EQ(ns, 600000000000);
	ASSERT(text_duration("50ms", &ns));
	ASSERT_EQ(ns, 50000000);
	ASSERT(!text_duration("", &ns));
	ASSERT(!text_duration("10m ", &ns));
	ASSERT(!text_duration(" 10m", &ns));
	ASSERT(!text_duration("ten", &ns));
}
