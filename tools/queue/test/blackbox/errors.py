# SPDX-License-Identifier: GPL-2.0
"""Wrong lines, and the reply to each, as a regular expression.

beanstalkd must reply to ERRORS likewise. It accepts STRICTER, although its protocol.txt says
otherwise ("non-numeric characters where an integer is expected, the wrong number of arguments").
"""

NAME_201 = b"n" * 201
U32 = b"4294967296"
U64 = b"18446744073709551616"
BAD = "BAD_FORMAT"
UNKNOWN = "UNKNOWN_COMMAND"
# A command without arguments: protocol.txt says BAD_FORMAT; beanstalkd replies with either.
NO_ARGUMENTS = f"{BAD}|{UNKNOWN}"
MISSING = "NOT_FOUND"
NO_JOB = b"9999999"

ERRORS = {
    "lines_that_are_no_command": [
        (b"", UNKNOWN), (b"bogus", UNKNOWN), (b"PUT 0 0 1 0", UNKNOWN), (b" stats", UNKNOWN),
        (b"\0", NO_ARGUMENTS), (b"\xff\xfe", UNKNOWN), (b"peek-foo", UNKNOWN),
        (b"put-nothing 1", UNKNOWN), (b"set a 0 0 1", UNKNOWN), (b"GET / HTTP/1.0", UNKNOWN),
    ],
    "wrong_puts": [
        (b"put", NO_ARGUMENTS), (b"put ", BAD), (b"put 1", BAD), (b"put 1 2", BAD),
        (b"put 1 2 3", BAD), (b"put 1 2 3 4 5", BAD), (b"put a 0 0 1", BAD),
        (b"put 0 a 0 1", BAD), (b"put 0 0 a 1", BAD), (b"put 0 0 0 a", BAD),
        (b"put -1 0 0 1", BAD), (b"put 0 -1 0 1", BAD), (b"put 0 0 -1 1", BAD),
        (b"put 0 0 1 -1", BAD), (b"put " + U32 + b" 0 0 1", BAD),
        (b"put 0 " + U32 + b" 0 1", BAD), (b"put 0 0 " + U32 + b" 1", BAD),
        (b"put 0 0 0 " + U32, BAD), (b"put 0 0 0 99999999999999999999999", BAD),
        (b"put 0 0 0 1 ", BAD), (b"put 0x1 0 0 1", BAD), (b"put +1 0 0 1", BAD),
    ],
    "wrong_reserves": [
        (b"reserve x", BAD), (b"reserve ", BAD), (b"reserve-with-timeout", NO_ARGUMENTS),
        (b"reserve-job", NO_ARGUMENTS), (b"reserve-job x", BAD), (b"reserve-job 1 2", BAD),
        (b"reserve-job -1", BAD), (b"reserve-job " + U64, BAD),
        (b"reserve-job " + NO_JOB, MISSING),
    ],
    "wrong_deletes": [
        (b"delete", NO_ARGUMENTS), (b"delete ", BAD), (b"delete x", BAD), (b"delete 1x", BAD),
        (b"delete 1 2", BAD), (b"delete -1", BAD), (b"delete +1", BAD),
        (b"delete " + U64, BAD), (b"delete 0", MISSING), (b"delete " + NO_JOB, MISSING),
        (b"delete 18446744073709551615", MISSING),
    ],
    "wrong_releases": [
        (b"release", NO_ARGUMENTS), (b"release 1", BAD), (b"release 1 1", BAD),
        (b"release x 1 1", BAD), (b"release 1 x 1", BAD), (b"release 1 1 x", BAD),
        (b"release 1 1 1 1", BAD), (b"release 1 " + U32 + b" 1", BAD),
        (b"release 1 1 " + U32, BAD), (b"release " + NO_JOB + b" 1 1", MISSING),
    ],
    "wrong_buries_and_touches": [
        (b"bury", NO_ARGUMENTS), (b"bury 1", BAD), (b"bury x 1", BAD), (b"bury 1 x", BAD),
        (b"bury 1 1 1", BAD), (b"bury " + NO_JOB + b" 1", MISSING), (b"touch", NO_ARGUMENTS),
        (b"touch x", BAD), (b"touch 1 1", BAD), (b"touch " + NO_JOB, MISSING),
    ],
    "wrong_names_of_tubes": [
        (command + b" " + name, BAD)
        for command in (b"use", b"watch", b"ignore", b"stats-tube")
        for name in (b"", b"-a", b"a*b", b"a b", b"a:b", b"a,b", b"a\0b", b"\xc3\xa4", b"a ",
                     b"a\tb", NAME_201)
    ] + [(command, NO_ARGUMENTS) for command in (b"use", b"watch", b"ignore", b"stats-tube")],
    "wrong_peeks": [
        (b"peek", NO_ARGUMENTS), (b"peek x", BAD), (b"peek 1 1", BAD),
        (b"peek " + NO_JOB, MISSING), (b"peek-ready x", BAD), (b"peek-delayed x", BAD),
        (b"peek-buried x", BAD),
    ],
    "wrong_kicks": [
        (b"kick", NO_ARGUMENTS), (b"kick x", BAD), (b"kick ", BAD), (b"kick 0", "KICKED 0"),
        (b"kick-job", NO_ARGUMENTS), (b"kick-job x", BAD), (b"kick-job 1 1", BAD),
        (b"kick-job " + NO_JOB, MISSING),
    ],
    "wrong_stats_and_lists": [
        (b"stats x", BAD), (b"stats ", BAD), (b"stats-job", NO_ARGUMENTS),
        (b"stats-job x", BAD), (b"stats-job 1 1", BAD), (b"stats-job " + NO_JOB, MISSING),
        (b"stats-tube no-such-tube", MISSING), (b"list-tubes x", BAD),
        (b"list-tube-used x", BAD), (b"list-tubes-watched x", BAD),
        (b"list-tube-used" + b" " * 206, BAD),
    ],
    "wrong_pauses": [
        (b"pause-tube", NO_ARGUMENTS), (b"pause-tube default", BAD),
        (b"pause-tube default x", BAD), (b"pause-tube default -1", BAD),
        (b"pause-tube default 1 1", BAD), (b"pause-tube default " + U32, BAD),
        (b"pause-tube -a 1", BAD), (b"pause-tube no-such-tube 1", MISSING),
    ],
    "ignoring_the_only_tube": [
        (b"ignore default", "NOT_IGNORED"),
    ],
}

STRICTER = {
    # beanstalkd does not reply after a CR without LF.
    "a_cr_alone_ends_no_line": [
        (b"use a\rb", BAD), (b"\rstats", UNKNOWN), (b"list-tube-used\r", NO_ARGUMENTS),
    ],
    "reserve_with_timeout_wants_one_number": [
        (b"reserve-with-timeout ", BAD), (b"reserve-with-timeout x", BAD),
        (b"reserve-with-timeout 0 0", BAD), (b"reserve-with-timeout 0x", BAD),
        (b"reserve-with-timeout -2", BAD),
    ],
    "kick_wants_one_number": [
        (b"kick -1", BAD), (b"kick 1 1", BAD), (b"kick 1x", BAD), (b"kick " + U64, BAD),
    ],
    "times_have_a_unit_that_is_known": [
        (b"put 0 " + time + b" 1 0\r\n", BAD)
        for time in (b"ms", b"1x", b"1.5.5s", b"-1s", b"1 s", b"s", b"1e3s", b"0x1s",
                     b".s", b"1.s1", b"1ss", b"99999999999999999999h", b"nan", b"inf", b"infs")
    ] + [
        (b"release 1 1 1x", BAD), (b"pause-tube default 1x", BAD), (b"reschedule 1 1x", BAD),
    ],
    "wrong_put_ats": [
        (b"put-at", NO_ARGUMENTS), (b"put-at 1", BAD), (b"put-at 1 1 1", BAD),
        (b"put-at 1 1 1 1 1", BAD), (b"put-at x 1 1 1", BAD), (b"put-at 1 x 1 1", BAD),
        (b"put-at 1 -1 1 1", BAD), (b"put-at 1 " + U64 + b" 1 1", BAD),
    ],
    "wrong_put_uniques": [
        (b"put-unique", NO_ARGUMENTS), (b"put-unique k", BAD), (b"put-unique k 1 1 1", BAD),
        (b"put-unique k 1 1 1 1 1", BAD), (b"put-unique k x 1 1 1", BAD),
        (b"put-unique " + NAME_201 + b" 1 1 1 1", BAD),
    ],
    "wrong_reschedules": [
        (b"reschedule", NO_ARGUMENTS), (b"reschedule 1", BAD), (b"reschedule x 1", BAD),
        (b"reschedule 1 1 1", BAD), (b"reschedule 1 -1", BAD),
        (b"reschedule " + NO_JOB + b" 1", MISSING),
    ],
    "wrong_fails": [
        (b"fail", NO_ARGUMENTS), (b"fail x", BAD), (b"fail 1 x", BAD), (b"fail 1 1 1", BAD),
        (b"fail " + NO_JOB, MISSING), (b"fail " + NO_JOB + b" 3\r\nabc", MISSING),
    ],
    "wrong_policies": [
        (b"policy", NO_ARGUMENTS), (b"policy t", BAD), (b"policy t 1 1 1 1", BAD),
        (b"policy t x 1 1 1 1", BAD), (b"policy t 1 x 1 1 1", BAD),
        (b"policy t 1 1 x 1 1", BAD), (b"policy t 1 1 1 x 1", BAD),
        (b"policy t 1 1 1 1 x", BAD), (b"policy t 1 1 1 1 101", BAD),
        (b"policy t 1 1 -1 1 1", BAD), (b"policy t 1 1 nan 1 1", BAD),
        (b"policy t 1 1 inf 1 1", BAD), (b"policy -t 1 1 1 1 1", BAD),
        (b"policy t 1 1 1 1 1 -dead", BAD), (b"policy t 1 1 1 1 1 dead x", BAD),
        (b"policy t default ", BAD), (b"policy t default 1", BAD), (b"policy -t default", BAD),
    ],
    "wrong_backups": [
        (b"backup", NO_ARGUMENTS), (b"backup ", BAD), (b"backup a b", BAD), (b"backup .", BAD),
        (b"backup ..", BAD), (b"backup .a", BAD), (b"backup a/b", BAD), (b"backup /a", BAD),
        (b"backup -a", BAD), (b"backup " + NAME_201, BAD),
    ],
    "wrong_list_jobs": [
        (b"list-jobs", NO_ARGUMENTS), (b"list-jobs t", BAD), (b"list-jobs t ready", BAD),
        (b"list-jobs t ready 0", BAD), (b"list-jobs t bogus 0 1", BAD),
        (b"list-jobs t ready x 1", BAD), (b"list-jobs t ready 0 x", BAD),
        (b"list-jobs t ready 0 1 1", BAD), (b"list-jobs -t ready 0 1", BAD),
    ],
}
