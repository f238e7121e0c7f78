# SPDX-License-Identifier: GPL-2.0
"""The commands beyond beanstalkd: conversations, and tests that get a daemon."""

import re
import time

from tap import equal, holds, wait_for

TALKS = {}
TESTS = []


def test(function):
    """A decorator: a test of one daemon, in tubes of its own."""
    TESTS.append(function)
    return function


def client_of(daemon, tube):
    """A client that uses a tube, and watches only that."""
    client = daemon.client()
    for command in (f"use {tube}", f"watch {tube}", "ignore default"):
        client.ask(command)
    return client


# --- units --------------------------------------------------------------------------------

@test
def a_delay_in_any_unit_is_never_early(daemon):
    with client_of(daemon, "units") as client:
        for text, seconds in (("1ms", 0.001), ("250ms", 0.25), ("0.5s", 0.5), ("1.25s", 1.25),
                              ("1", 1)):
            start = time.monotonic()
            client.put(text.encode(), delay=text)
            equal(client.reserve("1000")[1], text.encode())
            took = time.monotonic() - start
            holds(took >= seconds, f"{text} took {took} s")


@test
def units_mean_what_they_say(daemon):
    with client_of(daemon, "unit-names") as client:
        for text, seconds in (("1500ms", 1.5), ("90s", 90), ("2h", 7200), ("0.5h", 1800),
                              ("2000000", 2000000)):
            number = client.put(b"x", delay=text, ttr=text)
            stats = client.stats(f"stats-job {number}")
            for key in "delay", "ttr":
                holds(int(seconds) <= float(stats[key]) <= seconds + 1,
                      f"{key} {text} is told as {stats[key]}")
            holds(seconds - 60 < float(stats["time-left"]) <= seconds, stats)
            client.ask(f"delete {number}")


@test
def a_short_ttr_is_kept_to_the_millisecond_and_not_early(daemon):
    with client_of(daemon, "short-ttr") as client, client_of(daemon, "short-ttr") as other:
        for ttr in (1.25 * 2 ** n for n in range(6)):
            number = client.put(b"x", ttr=f"{ttr}s")
            start = time.monotonic()
            client.reserve()
            equal(other.reserve("1000"), (number, b"x"))
            holds(time.monotonic() - start >= ttr, "before its TTR")
            reply = client.ask(f"delete {number}").line
            # The TTR of the other client may have ended too.
            if reply == "NOT_FOUND" or time.monotonic() - start < 2 * ttr:
                break
        equal(reply, "NOT_FOUND")


@test
def release_pause_and_timeouts_take_units(daemon):
    with client_of(daemon, "more-units") as client:
        number = client.put(b"x")
        client.reserve()
        start = time.monotonic()
        equal(client.ask(f"release {number} 5 150ms").line, "RELEASED")
        client.reserve("1000")
        holds(time.monotonic() - start >= 0.15, "released early")
        client.ask(f"release {number} 5 0")
        start = time.monotonic()
        equal(client.ask("pause-tube more-units 150ms").line, "PAUSED")
        client.reserve("1000")
        holds(time.monotonic() - start >= 0.15, "the pause ended early")
        start = time.monotonic()
        equal(client.reserve("150ms"), None)
        holds(time.monotonic() - start >= 0.15, "the wait ended early")


# --- put-at -------------------------------------------------------------------------------

def put_at(client, due_ms, body):
    """Put a job; returns its id."""
    reply = client.ask(f"put-at 5 {due_ms} 60 {len(body)}", body).line
    return int(re.fullmatch(r"INSERTED (\d+)", reply)[1])


@test
def put_at_is_due_at_a_time_of_the_wall_clock_and_not_before(daemon):
    with client_of(daemon, "put-at") as client:
        far_ms, due_ms = (int(time.time() * 1000) + ms for ms in (1000000, 1500))
        far, number = (put_at(client, ms, body) for ms, body in ((far_ms, b"y"), (due_ms, b"x")))
        equal(client.stats(f"stats-job {far}")["state"], "delayed")
        equal(client.reserve("1000"), (number, b"x"))
        holds(time.time() * 1000 >= due_ms, "early")
        equal(client.ask("peek-delayed").body, b"y")


@test
def put_at_a_time_that_is_past_is_ready_at_once(daemon):
    with client_of(daemon, "put-at-past") as client:
        for due_ms in (0, 1, int(time.time() * 1000) - 1):
            number = put_at(client, due_ms, b"x")
            equal(client.reserve(), (number, b"x"))


@test
def put_at_and_put_with_a_delay_are_in_one_order(daemon):
    with client_of(daemon, "put-at-order") as client:
        now_ms = int(time.time() * 1000)
        client.ask(f"put-at 5 {now_ms + 3000000} 60 1", b"c")
        client.put(b"b", delay=2000)
        client.ask(f"put-at 5 {now_ms + 1000000} 60 1", b"a")
        for body in (b"a", b"b", b"c"):
            reply = client.ask("peek-delayed")
            equal(reply.body, body)
            client.ask(f"delete {reply.line.split()[1]}")


# --- put-unique ---------------------------------------------------------------------------

TALKS["put_unique_has_one_job_for_a_key"] = """
a put-unique key 5 1000 60 1 | a
< INSERTED $j
a put-unique key 6 2000 70 2 | bb
< REPLACED $j
a stats-job $j
< OK state=delayed delay=2000 pri=6 ttr=70
a peek $j
< FOUND $j 2 | bb
a stats-tube $t
< OK current-jobs-delayed=1 current-jobs-ready=0
a put-unique key2 5 1000 60 1 | a
< INSERTED $k
"""

TALKS["a_key_may_have_bytes_that_a_name_may_not"] = """
a put-unique user:1@a,b=c/d 5 1000 60 8 | delete 1
< INSERTED $j
a put-unique user:1@a,b=c/d 5 1000 60 8 | delete 1
< REPLACED $j
a put-unique user*1 5 1000 60 8 | delete 1
< BAD_FORMAT
a list-tube-used
< USING $t
"""

TALKS["put_unique_begins_the_attempts_anew"] = """
a policy $t 5 1000 1 1000 0
< POLICY
a put-unique key 5 0 60 1 | a
< INSERTED $j
a reserve
< RESERVED $j 1 | a
a fail $j 3 | why
< RETRY 1 1000000
a stats-job $j
< OK attempts=1 reason=why
a put-unique key 5 1000 60 1 | b
< REPLACED $j
a stats-job $j
< OK attempts=0
"""

TALKS["keep_unique_leaves_a_job_as_it_is"] = """
a keep-unique key 5 1000 60 1 | a
< INSERTED $j
a keep-unique key 6 0 70 2 | bb
< KEPT $j
a stats-job $j
< OK state=delayed delay=1000 pri=5 ttr=60
a peek $j
< FOUND $j 1 | a
a kick-job $j
< KICKED
a keep-unique key 6 1000 70 2 | bb
< KEPT $j
a reserve
< RESERVED $j 1 | a
a keep-unique key 6 0 70 2 | bb
< RESERVED $j
a bury $j 5
< BURIED
a keep-unique key 6 0 70 2 | bb
< KEPT $j
a put-unique key 5 1000 60 1 | c
< REPLACED $j
a delete $j
< DELETED
a keep-unique key 6 0 70 2 | bb
< INSERTED $k
"""

TALKS["put_unique_replaces_a_ready_job"] = """
a put-unique key 5 0 60 1 | a
< INSERTED $j
a put-unique key 5 0 60 1 | b
< REPLACED $j
a reserve
< RESERVED $j 1 | b
a reserve-with-timeout 0
< TIMED_OUT
"""

TALKS["put_unique_may_delay_a_ready_job_and_make_a_delayed_one_ready"] = """
a put-unique key 5 0 60 1 | a
< INSERTED $j
a put-unique key 5 1000 60 1 | b
< REPLACED $j
a stats-job $j
< OK state=delayed
a reserve-with-timeout 0
< TIMED_OUT
b reserve
< ...
a put-unique key 5 0 60 1 | c
< REPLACED $j
b< RESERVED $j 1 | c
"""

TALKS["put_unique_leaves_a_reserved_job_alone"] = """
a put-unique key 5 0 60 1 | a
< INSERTED $j
a reserve
< RESERVED $j 1 | a
b put-unique key 1 0 60 1 | b
< RESERVED $j
b list-tube-used
< USING $t
a release $j 5 0
< RELEASED
b reserve
< RESERVED $j 1 | a
"""

TALKS["a_key_is_unique_in_its_tube_only"] = """
a put-unique key 5 0 60 1 | a
< INSERTED $j
a use $u
< USING $u
a put-unique key 5 0 60 1 | b
< INSERTED $k
a put-unique key 5 0 60 1 | c
< REPLACED $k
a peek $j
< FOUND $j 1 | a
"""

TALKS["a_key_is_free_when_its_job_was_deleted"] = """
a put-unique key 5 0 60 1 | a
< INSERTED $j
a delete $j
< DELETED
a put-unique key 5 0 60 1 | b
< INSERTED $k
a reserve
< RESERVED $k 1 | b
a delete $k
< DELETED
a put-unique key 5 0 60 1 | c
< INSERTED $l
"""

TALKS["a_key_is_free_when_its_job_has_died"] = """
a policy $t 1 1 1 1 0
< POLICY
a put-unique key 5 0 60 1 | a
< INSERTED $j
a reserve
< RESERVED $j 1 | a
a fail $j
< DEAD
a put-unique key 5 0 60 1 | b
< INSERTED $k
a stats-job $j
< OK state=buried tube=$t.dead
"""

TALKS["a_dead_job_that_comes_back_does_not_share_its_key"] = """
a policy $t 1 1 1 1 0
< POLICY
a put-unique key 5 0 60 1 | a
< INSERTED $j
a reserve
< RESERVED $j 1 | a
a fail $j
< DEAD
a put-unique key 5 0 60 1 | b
< INSERTED $k
a kick-job $j
< KICKED
a put-unique key 5 0 60 1 | c
< REPLACED $k
a peek $j
< FOUND $j 1 | a
a peek $k
< FOUND $k 1 | c
"""

TALKS["a_key_stays_through_release_bury_and_kick"] = """
a put-unique key 5 0 60 1 | a
< INSERTED $j
a reserve
< RESERVED $j 1 | a
a release $j 5 1000
< RELEASED
a put-unique key 5 0 60 1 | b
< REPLACED $j
a reserve
< RESERVED $j 1 | b
a bury $j 5
< BURIED
a kick 1
< KICKED 1
a put-unique key 5 0 60 1 | c
< REPLACED $j
a peek $j
< FOUND $j 1 | c
"""

TALKS["put_unique_replaces_a_buried_job"] = """
a put-unique key 5 0 60 1 | a
< INSERTED $j
a reserve
< RESERVED $j 1 | a
a bury $j 5
< BURIED
a put-unique key 5 1000 60 1 | b
< REPLACED $j
a peek $j
< FOUND $j 1 | b
a stats-job $j
< OK state=delayed
a stats-tube $t
< OK current-jobs-buried=0 current-jobs-delayed=1
"""


@test
def put_unique_and_put_at_obey_the_rules_of_put(daemon):
    with client_of(daemon, "rules") as client:
        for command in ("put-unique key 5 0 60", "put-at 5 0 60"):
            equal(client.ask(f"{command} 65536", b"b" * 65536).line, "JOB_TOO_BIG")
            client.send(f"{command} 1\r\nabc".encode())
            equal(client.reply().line, "EXPECTED_CRLF")
        equal(client.stats("stats-tube rules")["current-jobs-ready"], "0")


# --- reschedule ---------------------------------------------------------------------------

TALKS["reschedule_moves_delayed_and_ready_jobs"] = """
a put 5 1000 60 1 | a
< INSERTED $j
a reschedule $j 2000
< RESCHEDULED
a stats-job $j
< OK state=delayed
b reserve
< ...
a reschedule $j 0
< RESCHEDULED
b< RESERVED $j 1 | a
b release $j 5 0
< RELEASED
a stats-job $j
< OK state=ready
a reschedule $j 1000
< RESCHEDULED
a stats-job $j
< OK state=delayed
a reserve-with-timeout 0
< TIMED_OUT
"""

TALKS["reschedule_finds_no_reserved_buried_or_missing_job"] = """
a put 5 0 60 1 | a
< INSERTED $j
a reserve
< RESERVED $j 1 | a
a reschedule $j 10
< NOT_FOUND
b reschedule $j 10
< NOT_FOUND
a bury $j 5
< BURIED
a reschedule $j 10
< NOT_FOUND
a stats-job $j
< OK state=buried
a delete $j
< DELETED
a reschedule $j 10
< NOT_FOUND
"""


@test
def reschedule_earlier_and_later_is_kept_and_never_early(daemon):
    with client_of(daemon, "reschedule") as client:
        number = client.put(b"x", delay="100ms")
        start = time.monotonic()
        equal(client.ask(f"reschedule {number} 400ms").line, "RESCHEDULED")
        client.reserve("1000")
        holds(time.monotonic() - start >= 0.4, "early")
        client.ask(f"release {number} 5 1000")
        start = time.monotonic()
        equal(client.ask(f"reschedule {number} 100ms").line, "RESCHEDULED")
        equal(client.reserve("1000"), (number, b"x"))
        holds(time.monotonic() - start >= 0.1, "early")


@test
def reschedule_of_a_put_at_job_goes_by_the_delay(daemon):
    with client_of(daemon, "reschedule-at") as client:
        due_ms = int(time.time() * 1000) + 1000000
        number = int(client.ask(f"put-at 5 {due_ms} 60 1", b"x").line.split()[1])
        start = time.monotonic()
        equal(client.ask(f"reschedule {number} 100ms").line, "RESCHEDULED")
        equal(client.reserve("1000"), (number, b"x"))
        holds(time.monotonic() - start >= 0.1, "early")


# --- fail and policy ----------------------------------------------------------------------

def fail(client, number, reason=None):
    """Fail a job; returns ("RETRY", k, delay_ms) or ("DEAD",)."""
    if reason is None:
        reply = client.ask(f"fail {number}").line
    else:
        reply = client.ask(f"fail {number} {len(reason)}", reason).line
    word, *rest = reply.split()
    return word, *map(int, rest)


def fail_often(client, number, times):
    """Fail a job again and again without waiting for its retries; returns the replies."""
    answers = []
    for _ in range(times):
        equal(client.reserve()[0], number)
        answers.append(fail(client, number))
        if answers[-1][0] != "DEAD":
            # A short delay may be over by now.
            equal(client.stats(f"stats-job {number}")["state"] in
                  ("delayed", "ready" if answers[-1][2] < 60000 else "delayed"), True)
            equal(client.ask(f"reschedule {number} 0").line, "RESCHEDULED")
    return answers


@test
def without_a_policy_fail_goes_by_the_default_one(daemon):
    with client_of(daemon, "default-policy") as client:
        number = client.put(b"x")
        answers = fail_often(client, number, 25)
        for k, (word, count, delay_ms) in enumerate(answers[:-1], 1):
            middle = min(3600000, 1000 * 2 ** (k - 1))
            equal((word, count), ("RETRY", k))
            holds(0.9 * middle - 1 <= delay_ms <= 1.1 * middle + 1,
                  f"retry {k} waits {delay_ms} ms, not some {middle}")
        equal(answers[-1], ("DEAD",))
        equal(client.stats(f"stats-job {number}")["tube"], "default-policy.dead")


@test
def retries_wait_base_times_factor_up_to_the_cap(daemon):
    with client_of(daemon, "exact-policy") as client:
        equal(client.ask("policy exact-policy 8 100ms 3 2s 0").line, "POLICY")
        answers = fail_often(client, client.put(b"x"), 8)
        equal(answers, [("RETRY", k, delay) for k, delay in
                        enumerate([100, 300, 900, 2000, 2000, 2000, 2000], 1)] + [("DEAD",)])


@test
def a_factor_may_be_a_fraction_and_1(daemon):
    with client_of(daemon, "fraction-policy") as client:
        client.ask("policy fraction-policy 4 100ms 1.5 1h 0")
        equal([answer[2] for answer in fail_often(client, client.put(b"x"), 3)], [100, 150, 225])
        client.ask("policy fraction-policy 4 100ms 1 1h 0")
        equal([answer[2] for answer in fail_often(client, client.put(b"y", 0), 3)],
              [100, 100, 100])


@test
def jitter_is_within_its_bounds_and_is_not_nothing(daemon):
    with client_of(daemon, "jitter") as client:
        client.ask("policy jitter 1000 10s 1 1h 50")
        delays = [answer[2] for answer in fail_often(client, client.put(b"x"), 60)]
        holds(5000 <= min(delays) and max(delays) <= 15000, (min(delays), max(delays)))
        holds(min(delays) < 8000 and max(delays) > 12000 and len(set(delays)) > 15,
              f"it is hardly random: {sorted(delays)}")


@test
def a_retry_comes_after_its_delay_and_not_before(daemon):
    with client_of(daemon, "retry-wait") as client:
        client.ask("policy retry-wait 5 200ms 2 1h 0")
        number = client.put(b"x")
        client.reserve()
        for k, delay in ((1, 0.2), (2, 0.4)):
            start = time.monotonic()
            equal(fail(client, number), ("RETRY", k, int(delay * 1000)))
            equal(client.reserve("1000"), (number, b"x"))
            holds(time.monotonic() - start >= delay, "early")
        equal(client.stats(f"stats-job {number}")["attempts"], "2")


TALKS["fail_is_for_the_owner_only"] = """
a put 5 0 60 1 | x
< INSERTED $j
a fail $j
< NOT_FOUND
a reserve
< RESERVED $j 1 | x
b fail $j
< NOT_FOUND
b fail $j 3 | why
< NOT_FOUND
a stats-job $j
< OK state=reserved attempts=0
a bury $j 5
< BURIED
a fail $j
< NOT_FOUND
"""


@test
def a_dead_job_keeps_its_body_and_tells_where_it_came_from_and_why(daemon):
    with client_of(daemon, "mortal") as client:
        client.ask("policy mortal 2 1ms 1 1ms 0")
        number = client.put(b"body", 7)
        client.reserve()
        before_ms = int(time.time() * 1000)
        equal(fail(client, number, b"first reason")[:2], ("RETRY", 1))
        stats = client.stats(f"stats-job {number}")
        equal((stats["attempts"], stats["reason"]), ("1", "first reason"))
        client.reserve("1000")
        equal(fail(client, number, b"second: \"reason\""), ("DEAD",))
        reply = client.ask(f"stats-job {number}").body.decode()
        stats = client.stats(f"stats-job {number}")
        for key, value in (("tube", "mortal.dead"), ("state", "buried"),
                           ("origin-tube", "mortal"), ("attempts", "2"), ("pri", "7")):
            equal(stats[key], value, key)
        holds("second" in stats["reason"], reply)
        holds("died" in stats and stats["died"] not in ("", "0"), reply)
        note_died(stats["died"], before_ms)
        equal(client.ask(f"peek {number}").body, b"body")
        equal(client.reserve(), None)
        client.ask("use mortal.dead")
        equal(client.ask("peek-buried").body, b"body")


def note_died(died, before_ms):
    """Check the time of death: seconds or ms of the wall clock."""
    if re.fullmatch(r"[0-9.]+", died):
        value = float(died)
        value_ms = value if value > 1e11 else value * 1000
        holds(before_ms - 1000 <= value_ms <= time.time() * 1000 + 1000, f"died: {died}")


@test
def a_reason_of_any_bytes_makes_no_wrong_yaml(daemon):
    with client_of(daemon, "reasons") as client:
        client.ask("policy reasons 100 0 1 1ms 0")
        number = client.put(b"x")
        for reason in (b"", b"a\nb: c\n- d", b"\r\n", b'"', b"\\", b"\\\"", b"#", b"'", b"\0",
                       b"\xff\xfe", "ä€𝄞".encode(), b"---", b"z" * 5000, bytes(range(256))):
            wait_for(lambda: client.reserve("1"), "the retry")
            equal(fail(client, number, reason)[0], "RETRY", repr(reason[:30]))
            body = client.ask(f"stats-job {number}").body
            lines = body.decode("ascii", "backslashreplace").splitlines()
            keys = [line.partition(":")[0] for line in lines]
            equal(keys.count("reason") <= 1 and keys.count("id"), 1, repr(body))
            holds(all(re.match(r"---$|[a-z-]+: ?", line) for line in lines),
                  f"reason {reason[:30]!r}: {body!r}")
            holds(all(byte >= 32 or byte == 10 for byte in body), repr(body))


@test
def a_reason_that_is_too_big_is_refused_or_cut_and_the_job_is_where_it_was(daemon):
    with client_of(daemon, "big-reason") as client:
        number = client.put(b"x")
        client.reserve()
        reply = client.ask(f"fail {number} 65536", b"r" * 65536).line
        equal(reply, "JOB_TOO_BIG")
        equal(client.stats(f"stats-job {number}")["state"], "reserved")
        client.send(f"fail {number} 1\r\nabc".encode())
        equal(client.reply().line, "EXPECTED_CRLF")
        equal(client.stats(f"stats-job {number}")["state"], "reserved")


@test
def kick_brings_dead_jobs_back_to_where_they_came_from(daemon):
    with client_of(daemon, "lazarus") as client:
        client.ask("policy lazarus 1 1 1 1 0 graveyard")
        jobs = [client.put(b"x") for _ in range(3)]
        for _ in jobs:
            equal(fail(client, client.reserve()[0], b"why"), ("DEAD",))
        equal(client.stats("stats-tube graveyard")["current-jobs-buried"], "3")
        equal(client.stats("stats-tube graveyard")["current-jobs-dead"], "0")
        equal(client.stats("stats-tube lazarus")["current-jobs-dead"], "3")
        with client_of(daemon, "graveyard") as sexton:
            equal(sexton.ask("peek-buried").line, f"FOUND {jobs[0]} 1")
            equal(sexton.ask("kick 2").line, "KICKED 2")
            equal(sexton.reserve(), None)
            equal(sexton.ask(f"kick-job {jobs[2]}").line, "KICKED")
        equal(client.stats("stats-tube lazarus")["current-jobs-dead"], "0")
        for number in jobs:
            stats = client.stats(f"stats-job {number}")
            equal((stats["tube"], stats["state"], stats["attempts"]), ("lazarus", "ready", "0"))
            equal(client.reserve()[0], number)


@test
def kick_of_dead_jobs_wakes_who_waits_where_they_came_from(daemon):
    with client_of(daemon, "woken") as client, client_of(daemon, "woken.dead") as sexton:
        client.ask("policy woken 1 1 1 1 0")
        number = client.put(b"x")
        client.reserve()
        fail(client, number)
        client.tell("reserve")
        holds(client.silent(0.1), "a dead job was given out")
        equal(sexton.ask("kick 10").line, "KICKED 1")
        equal(client.reply().line, f"RESERVED {number} 1")


@test
def the_dead_tube_has_jobs_of_many_tubes_and_each_goes_home(daemon):
    jobs = {}
    for tube in ("home-1", "home-2", "home-3"):
        with client_of(daemon, tube) as client:
            client.ask(f"policy {tube} 1 1 1 1 0 home.dead")
            jobs[client.put(b"x")] = tube
            fail(client, client.reserve()[0])
    with client_of(daemon, "home.dead") as client:
        equal(client.ask("kick 3").line, "KICKED 3")
        for number, tube in jobs.items():
            equal(client.stats(f"stats-job {number}")["tube"], tube)


TALKS["a_ttr_that_ends_is_not_a_failed_attempt_without_a_policy"] = """
a put 5 0 1~ 1 | x
< INSERTED $j
mark
a reserve
< RESERVED $j 1 | x
b reserve-with-timeout 1000
< after 1~ RESERVED $j 1 | x
b stats-job $j
< before 2~ OK attempts=0 timeouts=1 state=reserved
"""

TALKS["a_ttr_that_ends_is_a_failed_attempt_with_a_policy"] = """
a policy $t 2 1000 1 1000 0
< POLICY
a put 5 0 100ms 1 | x
< INSERTED $j
a reserve
< RESERVED $j 1 | x
b stats-job $j
< until OK attempts=1 timeouts=1 state=delayed tube=$t
b reschedule $j 0
< RESCHEDULED
b reserve
< RESERVED $j 1 | x
a stats-job $j
< until OK attempts=2 timeouts=2 state=buried tube=$t.dead origin-tube=$t
a delete $j
< DELETED
"""

TALKS["a_policy_can_be_set_again"] = """
a policy $t 3 1000 2 10000 0
< POLICY
a put 5 0 60 1 | x
< INSERTED $j
a reserve
< RESERVED $j 1 | x
a fail $j
< RETRY 1 1000000
a policy $t 3 2000 2 10000 0
< POLICY
a reschedule $j 0
< RESCHEDULED
a reserve
< RESERVED $j 1 | x
a fail $j
< RETRY 2 4000000
a policy $t 1 2000 2 10000 0
< POLICY
a reschedule $j 0
< RESCHEDULED
a reserve
< RESERVED $j 1 | x
a fail $j
< DEAD
"""

TALKS["a_policy_makes_no_job_and_leaves_the_used_tube"] = """
a policy $u 3 10 2 100 0
< POLICY
a list-tube-used
< USING $t
a list-tubes-watched
< OK [$t]
"""

TALKS["a_policy_that_is_taken_away_leaves_no_tube"] = """
a policy $u 3 10 2 100 0
< POLICY
a stats-tube $u
< OK policy=set policy-max-attempts=3
a policy $u default
< POLICY
a stats-tube $u
< NOT_FOUND
a policy $u default
< POLICY
a stats-tube $u
< NOT_FOUND
"""

TALKS["without_the_policy_that_was_taken_away_release_is_no_failed_attempt"] = """
a policy $t 2 1000 2 2000 0
< POLICY
a policy $t default
< POLICY
a stats-tube $t
< OK policy=default policy-max-attempts=25
a put 5 0 60 1 | x
< INSERTED $j
a reserve
< RESERVED $j 1 | x
a release $j 5 0
< RELEASED
a stats-job $j
< OK state=ready attempts=0
"""

TALKS["fail_without_a_reason_removes_the_old_one"] = """
a policy $t 5 1000 2 10000 0
< POLICY
a put 5 0 60 1 | x
< INSERTED $j
a reserve
< RESERVED $j 1 | x
a fail $j 3 | old
< RETRY 1 1000000
a stats-job $j
< OK attempts=1 reason=old
"""

TALKS["release_is_a_failed_attempt_with_a_policy_and_bury_is_none"] = """
a policy $t 2 1000 2 2000 0
< POLICY
a put 5 0 60 1 | x
< INSERTED $j
a reserve
< RESERVED $j 1 | x
a bury $j 5
< BURIED
a kick 1
< KICKED 1
a reserve
< RESERVED $j 1 | x
a release $j 5 0
< RELEASED
a stats-job $j
< OK attempts=1 state=delayed delay=1000 reason=released
a kick-job $j
< KICKED
a reserve
< RESERVED $j 1 | x
a release $j 5 10
< RELEASED
a stats-job $j
< OK attempts=2 state=buried tube=$t.dead origin-tube=$t
"""

TALKS["release_with_a_delay_has_that_delay_with_a_policy"] = """
a policy $t 9 1000 2 2000 0
< POLICY
a put 5 0 60 1 | x
< INSERTED $j
a reserve
< RESERVED $j 1 | x
a release $j 5 77
< RELEASED
a stats-job $j
< OK attempts=1 state=delayed delay=77
"""

TALKS["release_and_bury_are_not_failed_attempts_without_a_policy"] = """
a put 5 0 60 1 | x
< INSERTED $j
a reserve
< RESERVED $j 1 | x
a release $j 5 0
< RELEASED
a reserve
< RESERVED $j 1 | x
a bury $j 5
< BURIED
a kick 1
< KICKED 1
a stats-job $j
< OK attempts=0
"""

TALKS["a_job_that_was_put_is_at_its_first_attempt"] = """
a put 5 0 60 1 | x
< INSERTED $j
a stats-job $j
< OK attempts=0
"""


@test
def a_client_that_goes_is_no_failed_attempt_without_a_policy(daemon):
    with client_of(daemon, "gone") as client:
        number = client.put(b"x")
        with client_of(daemon, "gone") as worker:
            equal(worker.reserve()[0], number)
        equal(client.reserve("1000"), (number, b"x"))
        equal(client.stats(f"stats-job {number}")["attempts"], "0")


@test
def a_client_that_goes_is_a_failed_attempt_with_a_policy(daemon):
    with client_of(daemon, "goes") as client:
        equal(client.ask("policy goes 3 1000 1 1000 0").line, "POLICY")
        number = client.put(b"x")
        for attempts, quits in (("1", False), ("2", True), ("3", False)):
            with client_of(daemon, "goes") as worker:
                equal(worker.reserve("1000")[0], number)
                if quits:
                    worker.send(b"quit\r\n")
            while (stats := client.stats(f"stats-job {number}"))["attempts"] != attempts:
                equal(stats["state"], "reserved")
                time.sleep(0.01)
            equal(stats["reason"], "connection closed")
            if attempts != "3":
                equal((stats["state"], stats["delay"]), ("delayed", "1000"))
                equal(client.ask(f"kick-job {number}").line, "KICKED")
        equal((stats["state"], stats["tube"]), ("buried", "goes.dead"))


@test
def a_client_that_the_daemon_disconnects_is_no_failed_attempt(daemon):
    with client_of(daemon, "thrown") as client:
        equal(client.ask("policy thrown 1 1000 1 1000 0").line, "POLICY")
        number = client.put(b"x")
        with client_of(daemon, "thrown") as worker:
            equal(worker.reserve("1000")[0], number)
            worker.send(b"put x\r\n")
            equal(worker.reply().line, "BAD_FORMAT")
            equal(client.reserve("1000")[0], number)
            equal(client.stats(f"stats-job {number}")["attempts"], "0")
        client.ask(f"delete {number}")


# --- list-jobs ----------------------------------------------------------------------------

def page(client, tube, state, after, count):
    """The ids of a page of list-jobs."""
    reply = client.ask(f"list-jobs {tube} {state} {after} {count}")
    holds(reply.line.startswith("OK "), reply)
    ids = []
    for line in reply.body.decode().splitlines():
        if number := re.match(r"(?:- )?(?:\{?id: ?)?(\d+)\b", line):
            ids.append(int(number[1]))
    return ids


@test
def list_jobs_gives_every_job_of_a_state_once_page_by_page(daemon):
    with client_of(daemon, "listed") as client:
        made = {"ready": [client.put(b"x") for _ in range(25)],
                "delayed": [client.put(b"x", delay=1000 - n) for n in range(25)]}
        made["buried"] = made["ready"][:3]
        for _ in made["buried"]:
            client.ask(f"bury {client.reserve()[0]} 5")
        made["ready"] = made["ready"][3:]
        made["reserved"] = [client.reserve()[0] for _ in range(2)]
        made["ready"] = made["ready"][2:]
        for state, jobs in made.items():
            for size in (1, 7, 1000):
                seen = []
                while new := page(client, "listed", state, seen[-1] if seen else 0, size):
                    holds(len(new) <= size, new)
                    seen += new
                    holds(len(seen) <= len(jobs), f"{state}: {seen}")
                equal(sorted(seen), sorted(jobs), f"{state}, by {size}")


@test
def list_jobs_goes_on_when_the_last_one_listed_is_gone(daemon):
    with client_of(daemon, "going") as client:
        jobs = {"ready": [client.put(b"x", pri=n // 3) for n in range(10)],
                "delayed": [client.put(b"x", delay=1000 + n // 3) for n in range(10)]}
        for state, made in jobs.items():
            cursor, seen = 0, []
            while True:
                body = client.ask(f"list-jobs going {state} {cursor} 3").body.decode()
                lines = body.splitlines()[1:]
                if not lines:
                    break
                new = [int(line.split(":")[0]) for line in lines[:-1]]
                word, cursor = lines[-1].split(": ")
                equal(word, "next")
                seen += new
                equal(client.ask(f"delete {new[-1]}").line, "DELETED")
            equal(seen, made, state)


@test
def list_jobs_of_a_tube_that_is_not_there_is_empty_or_not_found(daemon):
    with daemon.client() as client:
        reply = client.ask("list-jobs no-such-tube-at-all ready 0 10")
        holds(reply.line == "NOT_FOUND" or reply.line.startswith("OK "), reply)


# --- every --------------------------------------------------------------------------------

TALKS["every_puts_a_job_and_no_second_one_while_that_is_there"] = """
a every tick:1 7 1s 0 60 3 | abc
< EVERY
mark
a reserve
< RESERVED $j 3 | abc
a stats-job $j
< OK pri=7 ttr=60 every=tick:1 missed=0
sleep 2.2
a stats-tube $t
< OK total-jobs=1 current-schedules=1
a delete $j
< DELETED
a reserve
< RESERVED $k 3 | abc
b reserve-with-timeout 0
< TIMED_OUT
a every-stop tick:1
< STOPPED
a every-stop tick:1
< NOT_FOUND
a stats-job $k
< OK state=reserved
"""

TALKS["every_replaces_the_one_of_its_name_in_its_tube"] = """
a every n 7 1000s 9000000000000 60 1 | a
< EVERY
a every n 8 2000s 9000000000000 70 2 | bb
< EVERY
a use $u
< USING $u
a every n 8 2000s 9000000000000 70 2 | bb
< EVERY
a every-stop n
< STOPPED
a use $t
< USING $t
a stats-tube $t
< OK current-schedules=1
a every-stop n
< STOPPED
a stats-tube $t
< OK current-schedules=0
"""

TALKS["a_wrong_every_swallows_its_body"] = """
a every n 7 999ms 0 60 8 | delete 1
< BAD_FORMAT
a every n* 7 1s 0 60 8 | delete 1
< BAD_FORMAT
a every-stop n
< NOT_FOUND
a list-tube-used
< USING $t
"""


def listed(client, after=""):
    """The entries of list-every, as dictionaries."""
    body = client.ask(f"list-every {after}".strip()).body.decode()
    entries = []
    for line in body.splitlines()[1:]:
        if line.startswith("- "):
            entries.append({})
        key, value = line[2:].split(": ")
        entries[-1][key] = value.strip('"')
    return entries


@test
def list_every_tells_all_of_the_used_tube(daemon):
    with client_of(daemon, "list-every") as client:
        equal(listed(client), [])
        equal(client.ask("every a:b 7 1.5s 9000000000123 60 3", b"abc").line, "EVERY")
        equal(client.ask("every a 1 1h 9000000000000 250ms 0", b"").line, "EVERY")
        equal(listed(client), [
            {"name": "a", "tube": "list-every", "pri": "1", "interval-ms": "3600000",
             "next": "9000000000000", "ttr-ms": "250", "bytes": "0", "missed": "0",
             "last-job": "0"},
            {"name": "a:b", "tube": "list-every", "pri": "7", "interval-ms": "1500",
             "next": "9000000000123", "ttr-ms": "60000", "bytes": "3", "missed": "0",
             "last-job": "0"}])
        equal([one["name"] for one in listed(client, "a")], ["a:b"])
        equal(listed(client, "a:b"), [])
        client.ask("use another")
        equal(listed(client), [])


@test
def a_tube_with_a_schedule_stays_and_its_jobs_come_without_a_client(daemon):
    with daemon.client() as client:
        client.ask("use lonely-every")
        client.ask("every n 7 1s 0 60 1", b"x")
        client.ask("use default")
        wait_for(lambda: client.stats("stats-tube lonely-every")["current-jobs-ready"] == "1",
                 "the job")
        client.ask("use lonely-every")
        equal(client.ask("every-stop n").line, "STOPPED")


@test
def every_obeys_the_rules_of_put(daemon):
    with client_of(daemon, "every-rules") as client:
        equal(client.ask("every n 5 1s 0 60 65536", b"b" * 65536).line, "JOB_TOO_BIG")
        client.send(b"every n 5 1s 0 60 1\r\nabc")
        equal(client.reply().line, "EXPECTED_CRLF")
        equal(listed(client), [])
        name = "n" * 200
        equal(client.ask(f"every {name} 5 1000s 9000000000000 60 1", b"x").line, "EVERY")
        equal(listed(client)[0]["name"], name)
        equal(listed(client, name), [])
        equal(client.ask(f"every {name}n 5 1000s 9000000000000 60 1", b"x").line, "BAD_FORMAT")
        equal(client.ask(f"every-stop {name}").line, "STOPPED")


# --- purge --------------------------------------------------------------------------------

TALKS["purge_deletes_the_jobs_of_one_state"] = """
a put 5 0 60 1 | a
< INSERTED $j
a put 5 1000 60 1 | b
< INSERTED $k
a put-unique key 5 2000 60 1 | c
< INSERTED $l
a purge $t ready
< PURGED 1
a peek $j
< NOT_FOUND
a purge $t buried
< PURGED 0
b purge $t delayed
< PURGED 2
a peek $k
< NOT_FOUND
a put-unique key 5 0 60 1 | d
< INSERTED $m
a reserve
< RESERVED $m 1 | d
a purge $t ready
< PURGED 0
a bury $m 5
< BURIED
a purge $t buried
< PURGED 1
a purge $t reserved
< BAD_FORMAT
a purge $u ready
< PURGED 0
"""


def put_many(client, count, delay):
    """Put jobs in a pipeline."""
    for start in range(0, count, 1000):
        nr = min(1000, count - start)
        client.send(b"".join(b"put 5 %d 60 1\r\nx\r\n" % delay for _ in range(nr)))
        for _ in range(nr):
            holds(client.reply().line.startswith("INSERTED"), "put")


@test
def a_purge_of_many_jobs_lets_others_go_on(daemon):
    with client_of(daemon, "purge-many") as client, client_of(daemon, "purge-other") as other:
        put_many(client, 30000, 1000)
        client.tell("purge purge-many delayed")
        # Pipelined behind it: it waits, as behind a reserve.
        client.tell("list-tube-used")
        turns = 0
        while client.silent(0.001):
            number = other.put(b"y")
            equal(other.reserve(), (number, b"y"))
            equal(other.ask(f"delete {number}").line, "DELETED")
            turns += 1
        holds(turns > 0, "nobody else was served")
        equal(client.reply().line, "PURGED 30000")
        equal(client.reply().line, "USING purge-many")
        equal(client.stats("stats-tube purge-many")["current-jobs-delayed"], "0")


@test
def a_purge_whose_client_is_gone_leaves_the_rest_to_another_one(daemon):
    with client_of(daemon, "purge-gone") as client:
        put_many(client, 20000, 1000)
        with daemon.client() as other:
            other.tell("purge purge-gone delayed")
        holds(re.fullmatch(r"PURGED \d+", client.ask("purge purge-gone delayed").line), "purge")
        equal(client.stats("stats-tube purge-gone")["current-jobs-delayed"], "0")


@test
def two_purges_of_the_same_jobs_work_at_the_same_time(daemon):
    with client_of(daemon, "purge-two") as one, client_of(daemon, "purge-two") as two:
        put_many(one, 20000, 0)
        one.tell("purge purge-two ready")
        two.tell("purge purge-two ready")
        equal(sum(int(client.reply().line.split()[1]) for client in (one, two)), 20000)
