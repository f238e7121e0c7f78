#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The protocol: that of beanstalkd, and the commands beyond it.

Tests of beanstalkd's commands run against twheelq and beanstalkd. The expected replies are
written here; beanstalkd confirms them.
"""

import contextlib
import glob
import os
import paths  # pylint: disable=unused-import,wrong-import-order
import re
import shutil
import signal
import socket
import subprocess
import threading
import time

from client import Client, Gone, dictionary
from conversations import SAME, TIMED
from daemon import Beanstalkd, NotUp, Twheelq, beanstalkd_is_here
from errors import ERRORS, MISSING, STRICTER
from tap import Skip, Suite, equal, holds, note, wait_for
from talk import talk
import beyond

suite = Suite(seconds=1500)
daemons = {}


def own():
    """The twheelq that most tests share."""
    return daemons["twheelq"]


def both():
    """twheelq, and beanstalkd if it is installed."""
    return list(daemons.values())


# --- conversations ------------------------------------------------------------------------

def add_same(name, text):
    """Add a conversation that both daemons must have."""
    def run():
        for daemon in both():
            try:
                talk(daemon, text)
            except (AssertionError, TimeoutError, Gone) as error:
                raise AssertionError(f"{daemon.name}: {error!r}") from error
    suite.add(name, run, together=True)


def add_timed(name, text):
    """Add one that depends on time: if beanstalkd does otherwise, that is only noted."""
    def run():
        talk(own(), text)
        if "beanstalkd" not in daemons:
            return None
        try:
            talk(daemons["beanstalkd"], text, 5.0)
        except (AssertionError, TimeoutError, Gone) as error:
            return f"beanstalkd does otherwise: {error!r}"
        return None
    suite.add(name, run, together=True)


def add_errors(name, rows, which):
    """Add wrong lines and their replies; what follows must be taken for what it is."""
    def run():
        for daemon in which():
            for sent, expected in rows:
                with daemon.client() as client:
                    check_error(daemon, client, sent, expected)
    suite.add(name, run, together=True)


def behind(line):
    """What follows a wrong line, as ours has it: the length of a body, or "the end"; None."""
    last = line.split(b" ")[-1]
    if not re.match(rb"(put|put-at|put-unique|keep-unique|every|fail) ", line):
        return "the end" if last.startswith(b"HTTP/") else None
    return int(last) if re.fullmatch(rb"\d{1,9}", last) else "the end"


def check_error(daemon, client, sent, expected):
    """Send a line, and its body. beanstalkd reads a body behind a wrong line as lines."""
    line, *body = sent.split(b"\r\n", 1)
    then = behind(line) if daemon is own() and expected != MISSING else None
    if isinstance(then, int) and not body:
        sent += b"\r\n" + b"d" * then
    client.send(sent + b"\r\n")
    reply = client.reply().line
    holds(re.fullmatch(expected, reply),
          f"{daemon.name}: {sent[:60]!r} was answered with {reply!r}, expected: {expected}")
    if then == "the end":
        equal(rest_of(client), [], repr(sent[:60]))
        return
    client.send(b"list-tube-used\r\n")
    while (reply := client.reply().line) != "USING default":
        holds(daemon is not own() and reply in ("UNKNOWN_COMMAND", "BAD_FORMAT"),
              f"{daemon.name}: after {sent[:60]!r} the reply is {reply!r}")


for title, conversation in SAME.items():
    add_same(title, conversation)
for title, conversation in TIMED.items():
    add_timed(title, conversation)
for title, table in ERRORS.items():
    add_errors(title, table, both)
for title, table in STRICTER.items():
    add_errors(title, table, lambda: [own()])
for title, conversation in beyond.TALKS.items():
    suite.add(title, lambda text=conversation: talk(own(), text), together=True)
for function in beyond.TESTS:
    suite.add(function.__name__, lambda test=function: test(own()), together=True)


# --- bytes --------------------------------------------------------------------------------

def on_both(function):
    """A decorator: a test that runs with each daemon."""
    def run():
        for daemon in both():
            try:
                function(daemon)
            except (AssertionError, TimeoutError, Gone) as error:
                raise AssertionError(f"{daemon.name}: {error!r}") from error
    suite.add(function.__name__, run, together=True)
    return function


@on_both
def any_byte_may_be_in_a_body(daemon):
    body = bytes(range(256)) * 4 + b"\r\nput 0 0 1 1\r\nx\r\n"
    with daemon.client() as client:
        client.ask("use any-byte")
        number = client.put(body)
        equal(client.ask(f"peek {number}").body, body)
        client.ask(f"delete {number}")


@on_both
def the_largest_body_is_taken_and_one_byte_more_is_not(daemon):
    with daemon.client() as client:
        client.ask("use largest")
        limit = int(client.stats()["max-job-size"])
        equal(limit, 65535)
        body = b"b" * limit
        number = client.put(body)
        equal(client.ask(f"peek {number}").body, body)
        client.ask(f"delete {number}")
        equal(client.ask(f"put 0 0 1 {limit + 1}", body + b"b").line, "JOB_TOO_BIG")
        equal(client.ask("list-tube-used").line, "USING largest")
        equal(client.stats("stats-tube largest")["current-jobs-ready"], "0")


@on_both
def a_body_without_its_crlf_is_refused(daemon):
    with daemon.client() as client:
        client.ask("use no-crlf")
        client.send(b"put 0 0 60 1\r\nabc")
        equal(client.reply().line, "EXPECTED_CRLF")
        client.send(b"list-tube-used\r\n")
        equal(client.reply().line, "USING no-crlf")
        equal(client.stats("stats-tube no-crlf")["current-jobs-ready"], "0")


@on_both
def a_kick_and_what_is_behind_it_go_on_after_a_half_close(daemon):
    with daemon.client() as client:
        client.ask("use half-close")
        numbers = [client.put(b"a") for _ in range(200)]
        client.ask("watch half-close")
        for number in numbers:
            client.ask(f"reserve-job {number}")
            client.ask(f"bury {number} 0")
    with daemon.client() as client:
        client.send(b"use half-close\r\nkick 1000\r\nkick 10\r\nlist-tube-used\r\n")
        client.sock.shutdown(socket.SHUT_WR)
        lines = [client.reply().line for _ in range(4)]
        equal(lines, ["USING half-close", "KICKED 200", "KICKED 0", "USING half-close"])
    with daemon.client() as client:
        for number in numbers:
            client.ask(f"delete {number}")


@on_both
def a_line_that_comes_byte_by_byte_is_a_line(daemon):
    with daemon.client() as client:
        for byte in b"put 5 0 60 3\r\na\r\n\r\nlist-tube-used\r\n":
            client.send(bytes([byte]))
            time.sleep(0.001)
        word, number = client.reply().line.split()
        equal(word, "INSERTED")
        equal(client.reply().line, "USING default")
        equal(client.ask(f"peek {number}").body, b"a\r\n")
        client.ask(f"delete {number}")


@on_both
def a_line_of_222_bytes_is_read_and_a_longer_one_is_not(daemon):
    with contextlib.ExitStack() as again:
        client = again.enter_context(daemon.client())
        equal(client.ask("x" * 222).line, "UNKNOWN_COMMAND")
        for length in (224, 225, 1000):
            equal(client.ask("x" * length).line, "BAD_FORMAT", f"a line of {length} bytes")
            if daemon is not own():
                equal(client.ask("list-tube-used").line, "USING default")
                continue
            # Nobody knows where the next line begins.
            equal(rest_of(client), [])
            client = again.enter_context(daemon.client())


@on_both
def a_half_line_is_no_command(daemon):
    with daemon.client() as client:
        client.send(b"list-tube-used\r")
        holds(client.silent(0.1), "half a line was answered")
        client.send(b"\n")
        equal(client.reply().line, "USING default")


def rest_of(client):
    """The lines of all replies until the server closes the connection."""
    lines = []
    while True:
        try:
            lines.append(client.reply().line)
        except Gone:
            return lines


@suite.together
def a_line_that_ends_in_lf_alone_is_refused_and_the_connection_closes():
    # nc ends its lines so. beanstalkd does not reply.
    for sent, expected in (
            (b"list-tube-used\n", []),
            (b"\n", []),
            (b"put 0 0 60 5\nhello\n", []),
            (b"list-tube-used\nlist-tube-used\r\n", []),
            (b"use lf\r\nlist-tube-used\nput 0 0 60 1\r\nx\r\n", ["USING lf"])):
        with own().client() as client:
            client.send(sent)
            equal(rest_of(client), expected + ["EXPECTED_CRLF"], repr(sent[:40]))
    with own().client() as client:
        equal(client.ask("stats-tube lf").line, "NOT_FOUND")


@suite.together
def a_job_whose_holder_sends_lf_alone_is_ready_again():
    with own().client() as client, own().client() as other:
        client.ask("use lf-holder")
        number = client.put(b"x")
        for command in ("watch lf-holder", "ignore default"):
            client.ask(command)
            other.ask(command)
        equal(client.reserve()[0], number)
        client.send(b"delete %d\n" % number)
        equal(rest_of(client), ["EXPECTED_CRLF"])
        equal(other.reserve("600")[0], number)
        equal(other.ask(f"delete {number}").line, "DELETED")


@on_both
def lf_in_a_body_does_not_end_it(daemon):
    with daemon.client() as client:
        client.ask("use lf-body")
        number = client.put(b"a\nb\n\n")
        equal(client.ask(f"peek {number}").body, b"a\nb\n\n")
        client.ask(f"delete {number}")
        client.send(b"put 0 0 60 1\r\nx\n\n")
        equal(client.reply().line, "EXPECTED_CRLF")
        client.send(b"list-tube-used\r\n")
        equal(client.reply().line, "USING lf-body")


@on_both
def pipelined_commands_are_answered_in_order(daemon):
    with daemon.client() as client:
        count = 500
        client.ask("use pipelined")
        client.send(b"".join(b"put 5 0 60 4\r\n%04d\r\n" % n for n in range(count)))
        ids = [int(client.reply().line.removeprefix("INSERTED ")) for _ in range(count)]
        equal(ids, sorted(set(ids)))
        client.send(b"".join(b"peek %d\r\n" % number for number in ids))
        for n in range(count):
            equal(client.reply().body, b"%04d" % n)
        client.send(b"".join(b"delete %d\r\n" % number for number in ids))
        for _ in range(count):
            equal(client.reply().line, "DELETED")


@on_both
def quit_closes_the_connection(daemon):
    with daemon.client() as client:
        client.send(b"quit\r\nlist-tube-used\r\n")
        try:
            reply = client.reply()
        except Gone:
            return
        raise AssertionError(f"quit was answered with {reply.line!r}")


@on_both
def commands_before_a_half_close_are_answered(daemon):
    with daemon.client() as client:
        client.ask("use half-closed")
        client.send(b"put 5 0 60 1\r\nx\r\n")
        client.sock.shutdown(1)
        word, number = client.reply().line.split()
        equal(word, "INSERTED")
    with daemon.client() as client:
        equal(client.ask(f"delete {number}").line, "DELETED")


# --- stats --------------------------------------------------------------------------------

def keys_of(daemon):
    """All keys of the three kinds of stats."""
    with daemon.client() as client:
        client.ask("use keys")
        number = client.put(b"x")
        found = {command: set(client.stats(command))
                 for command in ("stats", "stats-tube keys", f"stats-job {number}")}
        client.ask(f"delete {number}")
    return {command.split()[0]: keys for command, keys in found.items()}


STATS = """current-jobs-urgent current-jobs-ready current-jobs-reserved current-jobs-delayed
    current-jobs-buried cmd-put cmd-peek cmd-peek-ready cmd-peek-delayed cmd-peek-buried
    cmd-reserve cmd-reserve-with-timeout cmd-delete cmd-release cmd-use cmd-watch cmd-ignore
    cmd-bury cmd-kick cmd-touch cmd-stats cmd-stats-job cmd-stats-tube cmd-list-tubes
    cmd-list-tube-used cmd-list-tubes-watched cmd-pause-tube job-timeouts total-jobs
    max-job-size current-tubes current-connections current-producers current-workers
    current-waiting total-connections pid version rusage-utime rusage-stime uptime
    binlog-oldest-index binlog-current-index binlog-records-migrated binlog-records-written
    binlog-max-size draining id hostname os platform"""
STATS_TUBE = """name current-jobs-urgent current-jobs-ready current-jobs-reserved
    current-jobs-delayed current-jobs-buried total-jobs current-using current-watching
    current-waiting cmd-delete cmd-pause-tube pause pause-time-left"""
STATS_JOB = """id tube state pri age delay ttr time-left file reserves timeouts releases buries
    kicks"""


@suite.test
def all_keys_of_beanstalkds_stats_are_there():
    expected = {"stats": set(STATS.split()), "stats-tube": set(STATS_TUBE.split()),
                "stats-job": set(STATS_JOB.split())}
    for daemon in both():
        for command, keys in keys_of(daemon).items():
            missing = expected[command] - keys
            holds(not missing, f"{daemon.name}: {command} lacks {sorted(missing)}")


# Commands, each with the counter that it increments; $j is the id of a job.
COUNTED = [
    ("put 5 0 60 1", "cmd-put"), ("peek $j", "cmd-peek"), ("peek-ready", "cmd-peek-ready"),
    ("peek-delayed", "cmd-peek-delayed"), ("peek-buried", "cmd-peek-buried"),
    ("reserve", "cmd-reserve"), ("release $j 5 0", "cmd-release"),
    ("reserve-with-timeout 0", "cmd-reserve-with-timeout"), ("touch $j", "cmd-touch"),
    ("bury $j 5", "cmd-bury"), ("kick 1", "cmd-kick"), ("use counted", "cmd-use"),
    ("watch counted", "cmd-watch"), ("ignore nothing", "cmd-ignore"),
    ("stats-job $j", "cmd-stats-job"), ("stats-tube counted", "cmd-stats-tube"),
    ("list-tubes", "cmd-list-tubes"), ("list-tube-used", "cmd-list-tube-used"),
    ("list-tubes-watched", "cmd-list-tubes-watched"),
    ("pause-tube counted 0", "cmd-pause-tube"), ("delete $j", "cmd-delete"),
]


@suite.test
def each_command_is_counted_once():
    for daemon in both():
        with daemon.client() as client:
            for command in ("use counted", "watch counted", "ignore default"):
                client.ask(command)
            number = 0
            for command, key in COUNTED:
                before = int(client.stats()[key])
                reply = client.ask(command.replace("$j", str(number)),
                                   b"x" if command.startswith("put") else None)
                if command.startswith("put"):
                    number = int(reply.line.split()[1])
                equal(int(client.stats()[key]), before + 1,
                      f"{daemon.name}: {key} after {command!r} ({reply.line})")


@suite.test
def the_counts_of_all_tubes_add_up_to_those_of_stats():
    with own().client() as client, own().client() as other:
        for tube in ("sum-1", "sum-2"):
            client.ask(f"use {tube}")
            client.ask(f"watch {tube}")
            for pri, delay in ((0, 0), (5000, 0), (5000, 0), (0, 1000), (0, 0)):
                client.put(b"x", pri, delay)
        client.ask("ignore default")
        job = client.reserve()[0]
        client.ask(f"bury {job} 5")
        client.reserve()
        total = other.stats()
        for state in ("urgent", "ready", "reserved", "delayed", "buried"):
            key = f"current-jobs-{state}"
            parts = [int(other.stats(f"stats-tube {tube}")[key])
                     for tube in other.names("list-tubes")]
            equal(sum(parts), int(total[key]), key)
        equal(int(total["current-tubes"]), len(other.names("list-tubes")))


@suite.test
def stats_count_connections_producers_workers_and_waiting_clients():
    for daemon in both():
        with daemon.client() as look:
            before = look.stats()
            with daemon.client() as producer, daemon.client() as worker:
                producer.ask("use roles")
                number = producer.put(b"x")
                worker.ask("watch nothing-here")
                worker.ask("ignore default")
                worker.tell("reserve")
                wait_for(lambda: look.stats()["current-waiting"] == "1", "a client that waits")
                after = look.stats()
                for key, more in (("current-connections", 2), ("total-connections", 2),
                                  ("current-producers", 1), ("current-workers", 1),
                                  ("total-jobs", 1)):
                    equal(int(after[key]), int(before[key]) + more, f"{daemon.name}: {key}")
                producer.ask(f"delete {number}")
            wait_for(lambda: look.stats()["current-connections"] ==
                     before["current-connections"], f"{daemon.name}: the end of connections")
            equal(look.stats()["current-waiting"], "0")


@suite.test
def stats_describe_the_daemon():
    with own().client() as client:
        stats = client.stats()
        equal(int(stats["pid"]), own().pid())
        holds(float(stats["rusage-utime"]) >= 0 and float(stats["rusage-stime"]) >= 0, stats)
        holds(int(stats["uptime"]) >= 0, stats)
        equal(stats["draining"], "false")
        holds(stats["version"] and stats["hostname"] and stats["os"] and stats["platform"],
              stats)
        holds(re.fullmatch("[0-9a-f]{16}", stats["id"]), stats["id"])


@suite.test
def stats_have_the_limit_of_tubes():
    with own().client() as client:
        stats = client.stats()
        holds(int(stats["tubes-max"]) > int(stats["current-tubes"]), stats)


@suite.test
def the_yaml_of_stats_is_what_a_plain_reader_takes():
    for daemon in both():
        with daemon.client() as client:
            for command in ("stats", "stats-tube default"):
                body = client.ask(command).body
                holds(body.startswith(b"---\n") and body.endswith(b"\n"), body[:40])
                dictionary(body)


@suite.test
def beanstalkd_refuses_the_commands_beyond_it():
    if "beanstalkd" not in daemons:
        raise Skip("there is no beanstalkd")
    with daemons["beanstalkd"].client() as client:
        for command in ("put-at 1 1 1 0", "put-unique k 1 1 1 0", "reschedule 1 1", "fail 1",
                        "policy t 1 1 1 1 1", "list-jobs t ready 0 1"):
            equal(client.ask(command).line, "UNKNOWN_COMMAND", command)


# --- a daemon of its own ------------------------------------------------------------------

@suite.test
def sigusr1_refuses_puts_and_nothing_else():
    for kind in [Twheelq] + [Beanstalkd] * beanstalkd_is_here():
        with kind() as daemon:
            daemon.start()
            with daemon.client() as client:
                number = client.put(b"x")
                daemon.process.send_signal(10)
                wait_for(lambda: client.stats()["draining"] == "true", "draining")
                equal(client.ask("put 5 0 60 1", b"y").line, "DRAINING", daemon.name)
                equal(client.reserve(), (number, b"x"))
                equal(client.ask(f"release {number} 5 0").line, "RELEASED")
                equal(client.ask(f"delete {number}").line, "DELETED")
                equal(client.ask("list-tube-used").line, "USING default")


@suite.test
def it_serves_tcp_on_the_loopback():
    for kind in [Twheelq] + [Beanstalkd] * beanstalkd_is_here():
        with kind(tcp=True) as daemon:
            daemon.start()
            talk(daemon, SAME["put_replies_with_an_id_and_reserve_with_the_body"])


@suite.test
def a_second_daemon_on_the_same_directory_is_refused():
    with Twheelq() as first:
        first.start()
        with Twheelq(directory=first.directory) as second:
            try:
                second.start()
            except NotUp as error:
                holds("with 0" not in str(error), error)
            else:
                raise AssertionError("two daemons serve the same directory")
        holds(first.answers(), "the first one does not answer any more")


@suite.test
def max_jobs_is_a_limit_with_an_answer():
    with Twheelq(options=["--max-jobs", "10"]) as daemon:
        daemon.start()
        with daemon.client() as client:
            jobs = [client.put(b"x", delay=delay) for delay in (0, 1000) * 5]
            reply = client.ask("put 5 0 60 1", b"x").line
            equal(reply, "OUT_OF_MEMORY")
            equal(client.ask("put-unique k 5 0 60 1", b"x").line, "OUT_OF_MEMORY")
            equal(daemon.said().count("puts are refused: there are 10 jobs (--max-jobs)"), 1)
            equal(client.ask(f"delete {jobs[1]}").line, "DELETED")
            client.put(b"x")


def remove_logs(directory):
    """As somebody does who takes them for logs."""
    for name in glob.glob(os.path.join(directory, "db", "*.log")):
        os.unlink(name)


def remove_what_a_copy_has(directory):
    """With links to all of it elsewhere, as programs for backups make them."""
    subprocess.run(["cp", "-al", directory, directory + ".copy"], check=True)
    for kept in glob.glob(os.path.join(directory, "db", "*")):
        os.unlink(kept)


def put_another_in_its_place(directory):
    """As somebody does who restores a backup and forgets to stop the daemon."""
    os.rename(directory, directory + ".old")
    shutil.copytree(directory + ".old", directory)


def replace_database(directory):
    """With a copy."""
    database = os.path.join(directory, "db")
    os.rename(database, database + ".old")
    shutil.copytree(database + ".old", database)


def remove_database(directory):
    """All but the daemon's own files."""
    shutil.rmtree(os.path.join(directory, "db"))


def says_nothing_of_puts_without_its_files(sync, remove):
    with Twheelq(options=["--sync", sync]) as daemon:
        daemon.start()
        with daemon.client() as client:
            client.put(b"x")
            remove(daemon.directory)
            try:
                said = client.ask("put 5 0 60 1", b"x").line
            except (OSError, Gone):
                said = None
            equal(said, None, f"what was said of a put with --sync {sync}, {remove.__name__}")
        holds(daemon.process.wait(60) > 0, "it ended well")
        holds("its files were removed, moved or replaced" in daemon.said(), daemon.said())


@suite.test
def nothing_is_promised_after_files_are_removed():
    for sync in "always", "10s", "never":
        for remove in (shutil.rmtree, remove_database, remove_logs, remove_what_a_copy_has,
                       put_another_in_its_place, replace_database):
            says_nothing_of_puts_without_its_files(sync, remove)


@suite.test
def a_store_in_the_place_of_another_is_left_alone():
    """Tables are made and removed meanwhile, of which the other has some with the same names."""
    with Twheelq(options=["--sync", "never", "--memory", "32M"]) as daemon:
        daemon.start()
        with daemon.client() as client:
            jobs = [client.put(b"x" * 60000) for _ in range(300)]
            daemon.process.send_signal(signal.SIGSTOP)
            put_another_in_its_place(daemon.directory)
            daemon.process.send_signal(signal.SIGCONT)
            with contextlib.suppress(OSError):
                for job in jobs:
                    client.send(f"delete {job}\r\n".encode())
                    client.send(b"put 0 0 60 60000\r\n" + b"x" * 60000 + b"\r\n")
        daemon.process.wait(60)
        for directory in daemon.directory, daemon.directory + ".old":
            daemon.directory = directory
            checked = daemon.tool("check")
            equal(checked.returncode, 0, checked.stderr + checked.stdout)


@suite.test
def reserve_job_makes_a_worker():
    with own().client() as look, own().client() as worker:
        before = int(look.stats()["current-workers"])
        equal(worker.ask("reserve-job 9999999").line, "NOT_FOUND")
        equal(int(look.stats()["current-workers"]), before + 1)


def start_all():
    """Start the daemons that tests share."""
    kinds = [Twheelq] + [Beanstalkd] * beanstalkd_is_here()
    for kind in kinds:
        daemons[kind.name] = kind().start()
    if len(kinds) == 1:
        note("there is no beanstalkd to compare with")


if __name__ == "__main__":
    start_all()
    suite.main()
