# SPDX-License-Identifier: GPL-2.0
"""Retries and dead letters, records without valid headers, wrong options."""

import os
import random
import re
import socket
import subprocess

import process
from cluster import RELAY, need_mock, need_own, uses_mock
from ledger import PATIENCE_S, now_ms, wait_for
from scene import DAY_S, Scene, TooLate
from suite import in_time, suite
from tap import equal, holds

YEAR_MS = 365 * DAY_S * 1000
# Targets have a broker of their own, so that it refuses only requests of the relay.
APART = 3


# --- retries ------------------------------------------------------------------------------

def record_of(scene, record):
    """The record of the topic of delays from which this one was written."""
    return scene.ledger.inputs()[record.number()][0]


@suite.together
def a_retry_waits_as_the_policy_of_its_target_says():
    policies = {"five": (5, 200, 3, 1500, 0), "wild": (3, 500, 1, 500, 100),
                "once": (1, 1000, 2, 1000, 10), "never": (4, 0, 2, 0, 0),
                "spread": (5, 2000, 1, 2000, 50)}
    with Scene(targets=dict.fromkeys(policies, 2), policies=policies) as scene:
        scene.start()
        for name in policies:
            for attempt in (1, 2, 3, 4, 5, 6, 1000, 4294967295):
                scene.send(name, attempt=attempt, key=b"k", headers=[("why", b"it failed")])
        for _ in range(300):
            scene.send("spread", attempt=1)
        verdict = scene.finish()
        waits = [int(record.header("twheel-due")) - record_of(scene, record).made_ms
                 for record in scene.reader.records[scene.target("spread")]]
        holds(min(waits) < 1500 and max(waits) > 2500, f"from {min(waits)} to {max(waits)} ms")
        return f"{verdict}; with jitter from {min(waits)} to {max(waits)} of 1000 to 3000 ms"


@suite.together
def without_a_policy_the_default_of_the_queue_counts():
    with Scene(scale=100) as scene:
        scene.start()
        for attempt in (*range(1, 10), 25, 26, 100):
            for _ in range(5):
                scene.send(attempt=attempt)
        return scene.finish()


@suite.together
@in_time
def retries_through_buckets_wait_as_long(times):
    policies = {"t": (9, 3600000, 2, 3 * DAY_S * 1000, 10)}
    with Scene(horizon_s=3600, scale=40000 // times, policies=policies) as scene:
        scene.start()
        for attempt in range(1, 10):
            for _ in range(10):
                scene.send(attempt=attempt)
        verdict = scene.finish()
        if not scene.ledger.parked():
            raise TooLate("no record was parked")
        return verdict


@suite.together
def a_record_that_always_fails_becomes_a_dead_letter_after_the_last_attempt():
    with Scene(policies={"t": (4, 100, 2, 300, 0)}) as scene:
        scene.start()
        last = [scene.send(delay=0, record_id=b"job-%d" % n, value=b"%d" % n) for n in range(20)]
        # A consumer that fails each time: it produces the record again, and counts the attempts.
        for attempt in range(1, 5):
            scene.ledger.flush()
            scene.ledger.wait()
            arrived = scene.ledger.arrived()
            last = [scene.send(attempt=attempt, value=record.value,
                               record_id=record.header("twheel-id").encode())
                    for record in (arrived[sent.number][0] for sent in last)]
        verdict = scene.finish()
        dead = scene.reader.records[f"{scene.target('t')}.dead"]
        equal(sorted(record.header("twheel-id") for record in dead),
              sorted(f"job-{n}" for n in range(20)))
        equal({record.header("twheel-attempt") for record in dead}, {"4"})
        equal(len(scene.reader.records[scene.target("t")]), 80, "attempts")
        return verdict


# --- invalid records ----------------------------------------------------------------------

# Headers in short (a target is added unless it is given here), and how the reason begins.
NO_TARGET = "there is no twheel-target"
NO_NAME = "twheel-target is not a name"
NO_DELAY = "twheel-delay is not a time"
NO_TIME = "twheel-deliver-at is not a time"
NO_ATTEMPT = "twheel-attempt is not a number"
NO_WHEN = "there is no twheel-deliver-at, twheel-delay or twheel-attempt"
FAR = "it is due in more"
INVALID = [
    ({}, NO_WHEN),
    ({"target": None}, NO_TARGET), ({"target": b""}, NO_TARGET),
    ({"target": b"", "delay": b"1"}, NO_TARGET),
    ({"target": b"a b", "delay": b"1"}, NO_NAME), ({"target": b".", "delay": b"1"}, NO_NAME),
    ({"target": b"..", "delay": b"1"}, NO_NAME), ({"target": b"a/b", "delay": b"1"}, NO_NAME),
    ({"target": b"a\0b", "delay": b"1"}, NO_NAME), ({"target": b"\xff", "delay": b"1"}, NO_NAME),
    ({"target": b"x" * 245, "delay": b"1"}, "twheel-target is longer"),
    ({"target": b"x" * 100000, "delay": b"1"}, "twheel-target is longer"),
    ({"delay": None}, NO_WHEN), ({"delay": b""}, NO_DELAY),
    ({"delay": b"-1"}, NO_DELAY), ({"delay": b"+1"}, NO_DELAY), ({"delay": b" 1"}, NO_DELAY),
    ({"delay": b"1 "}, NO_DELAY), ({"delay": b"1.0"}, NO_DELAY), ({"delay": b"1e3"}, NO_DELAY),
    ({"delay": b"0x1"}, NO_DELAY), ({"delay": b"1\0"}, NO_DELAY), ({"delay": b"1s"}, NO_DELAY),
    ({"delay": b"9" * 30}, NO_DELAY), ({"delay": b"%d" % (11 * YEAR_MS)}, NO_DELAY),
    ({"delay": b"\x00\x00\x00\x00\x00\x00\x00\x01"}, NO_DELAY),
    ({"deliver-at": b"tomorrow"}, NO_TIME), ({"deliver-at": b""}, NO_TIME),
    ({"deliver-at": b"-5"}, NO_TIME), ({"deliver-at": b"9223372036854775808"}, NO_TIME),
    ({"deliver-at": b"9223372036854775807"}, FAR),
    ({"deliver-at": b"%d" % (now_ms() * 1000)}, FAR),
    ({"deliver-at": b"1", "delay": b"1"}, "there are both"),
    ({"attempt": b"0"}, "twheel-attempt of a retry is 0"), ({"attempt": b"one"}, NO_ATTEMPT),
    ({"attempt": b"-1"}, NO_ATTEMPT), ({"attempt": b""}, NO_ATTEMPT),
    ({"attempt": b"4294967296"}, NO_ATTEMPT), ({"attempt": b"x", "delay": b"1"}, NO_ATTEMPT),
    # Similar names, which are not those of headers.
    ({"Delay": b"1"}, NO_WHEN), ({"delay ": b"1"}, NO_WHEN),
]


def invalid_headers(scene, short):
    """The headers of an invalid record; with a target, unless @short has its own."""
    whole = {"target": scene.target("t").encode()} | short
    return [("before", b"1")] + [(f"twheel-{name}", value) for name, value in whole.items()
                                 ] + [("behind", None)]


@suite.together
def invalid_records_keep_all_they_have_and_hold_up_nothing():
    with Scene(partitions=1) as scene:
        scene.start()
        for short, why in INVALID:
            scene.ledger.send_invalid(invalid_headers(scene, short), why, key=b"\xff\0",
                                      value=random.choice((None, b"", b"value")))
            scene.send(delay=random.randint(0, 1000))
        own = [scene.topic, *scene.buckets, f"{scene.topic}-b77s"]
        for topic in own:
            scene.ledger.send_invalid([("twheel-target", topic.encode()), ("twheel-delay", b"1")],
                                      "twheel-target is a topic of the relay's own")
        if uses_mock():
            # The topics that a relay creates have the brokers' timestamps.
            scene.ledger.send_invalid(invalid_headers(scene, {"delay": b"0"}), FAR,
                                      timestamp=now_ms() + 11 * YEAR_MS)
        # An older reason is not kept.
        scene.ledger.send_invalid([("twheel-error", b"old")], NO_TARGET)
        scene.ledger.send_invalid([], NO_TARGET, value=None)
        return scene.finish()


@suite.together
def other_records_come_while_the_topic_of_invalid_ones_cannot_be_written():
    need_mock("a topic without a leader")
    with Scene(partitions=1) as scene:
        relay = scene.start("-X", "message.timeout.ms=1000")
        holds("message.timeout.ms has no effect" in relay.said(), relay.said())
        invalid = f"{scene.topic}.invalid"
        scene.cluster.tell("leader", invalid, 0, -1)
        refused = [scene.ledger.send_invalid([], NO_TARGET) for _ in range(10)]
        valid = {scene.send(delay=random.randint(0, 1000)).number for _ in range(100)}
        scene.ledger.flush()
        scene.ledger.wait_for(valid)
        relay.wait_until_it_says(f"{invalid} cannot be written")
        equal(scene.ledger.missing(), {sent.number for sent in refused})
        scene.cluster.tell("leader", invalid, 0, 1)
        # Other topics may have been without an answer for a second, too.
        scene.ledger.wait()
        return scene.finish(most_duplicates=relay.metrics()["write_unknown_total"])


# --- records that a target refuses --------------------------------------------------------

@suite.together
def a_record_too_large_for_its_target_goes_to_the_topic_of_invalid_ones():
    need_own("a target with a limit of its own")
    with Scene(partitions=1, apart=APART if uses_mock() else None) as scene:
        relay = scene.start()
        scene.cluster.limit(scene.target("t"), 400000, APART)
        # The relay compresses.
        sent = scene.send(delay=200, key=b"k", value=os.urandom(500000))
        scene.ledger.flush()
        sent.where = f"{scene.topic}.invalid"
        sent.why = "Broker: Message size too large"
        relay.wait_until_it_says("refuses a record")
        scene.send(delay=0)
        return scene.finish()


@suite.together
def the_records_of_a_refused_batch_are_sent_again_one_by_one():
    need_mock("a request that fails once")
    with Scene(partitions=1, targets={"t": 1}, apart=APART) as scene:
        scene.start("-X", "linger.ms=20", "-X", "max.in.flight=1")
        for error in ("MSG_SIZE_TOO_LARGE", "INVALID_RECORD"):
            scene.cluster.tell("error", APART, "Produce", 1, error)
            due_ms = now_ms() + 1000
            for _ in range(50):
                scene.send(deliver_at=due_ms)
            scene.ledger.flush()
            scene.ledger.wait()
        return scene.finish()


# --- options ------------------------------------------------------------------------------

def launch(scene, *options, brokers=None):
    """Start a relay that is going to end by itself."""
    command = [RELAY, "--topic", scene.topic, "--wheel", "process", *options]
    if brokers != "":
        command += ["--brokers", brokers or scene.cluster.address]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def outcome(scene, *options, brokers=None):
    """Its exit status and its log."""
    with launch(scene, *options, brokers=brokers) as process:
        said = process.communicate(timeout=PATIENCE_S)[1]
    return process.returncode, said


# The parser of options refuses these.
WRONG_OPTIONS = [
    (["-X", "acks"], '-X "acks" is not NAME=VALUE'),
    (["-X", "=1"], "is not NAME=VALUE"),
    (["--policy", "t"], "is not NAME=VALUE"), (["--policy", "t=1,2"], "is not ATTEMPTS,BASE,FACTOR,CAP,JITTER"),
    (["--policy", "t=1,1s,2,1h,101"], "is not ATTEMPTS,BASE,FACTOR,CAP,JITTER"),
    (["--policy", "t=x,1s,2,1h,1"], "is not ATTEMPTS,BASE,FACTOR,CAP,JITTER"),
    (["--policy", "t=5,,1s,2,1h,10"], "is not ATTEMPTS,BASE,FACTOR,CAP,JITTER"),
    (["--policy", "t=,5,1s,2,1h,10"], "is not ATTEMPTS,BASE,FACTOR,CAP,JITTER"),
    (["--policy", "t=5,1s,2,1h,10,"], "is not ATTEMPTS,BASE,FACTOR,CAP,JITTER"),
    (["--horizon", "x"], '--horizon "x" is not a time'), (["--horizon", "0"], "from 1s to 1d"),
    (["--horizon", "2d"], "from 1s to 1d"),
    (["--horizon", "1500ms"], "whole seconds"), (["--memory", "1"], "memory"),
    (["--partitions", "0"], "partitions"),
    (["--topic", "a b"], '--topic "a b"'), (["--topic", ""], '--topic ""'),
    (["--wheel", "stone"], "stone"), (["--log-level", "loud"], "loud"), (["word"], '"word"'),
    (["--http", "nonsense:port"], '--http "nonsense:port" is not HOST:PORT'),
]

# The relay or librdkafka refuses these settings.
WRONG_SETTINGS = [
    (["-X", "acks=0"], "-X acks: this is the relay's own"),
    (["-X", "acks=1"], "this is the relay's own"),
    (["-X", "request.required.acks=0"], "this is the relay's own"),
    (["-X", "enable.idempotence=false"], "this is the relay's own"),
    (["-X", "enable.auto.commit=true"], "this is the relay's own"),
    (["-X", "auto.offset.reset=latest"], "this is the relay's own"),
    (["-X", "group.id=x"], "this is the relay's own"),
    (["-X", "transactional.id=x"], "this is the relay's own"),
    (["-X", "partition.assignment.strategy=cooperative-sticky"], "this is the relay's own"),
    (["--http-host", "a/b"], '"a/b" is not a name'),
    (["-X", "no.such=1"], 'No such configuration property: "no.such"'),
    (["-X", "session.timeout.ms=soon"], "session.timeout.ms"),
    (["-X", "compression.type=best"], "compression.type"),
]

# The network refuses these, when the relay starts.
WRONG_PLACES = [
    # For documentation (RFC 5737), so no machine has it.
    (["--http", "192.0.2.1:9"], 'cannot listen on "192.0.2.1:9"'),
]


def check_outcome(scene, options, expected, words):
    status, said = outcome(scene, *options)
    equal(status, expected, f"the status with {options}: {said}")
    holds(words in said, f"with {options} it says: {said}; expected: {words}")


@suite.together
def wrong_options_are_refused_with_a_reason():
    # While the port is ours, and we do not listen, nobody does.
    with Scene() as scene, socket.socket() as port:
        port.bind(("127.0.0.1", 0))
        scene.send(delay=0)
        scene.ledger.flush()
        nowhere = launch(scene, brokers=f"127.0.0.1:{port.getsockname()[1]}")
        for options, words in WRONG_OPTIONS + WRONG_SETTINGS:
            check_outcome(scene, options, 2, words)
        for options, words in WRONG_PLACES:
            check_outcome(scene, options, 1, words)
        status, said = outcome(scene, brokers="")
        equal((status, "--brokers is missing" in said), (2, True), said)
        said = nowhere.communicate(timeout=PATIENCE_S)[1]
        equal((nowhere.returncode, "does not answer" in said), (1, True), said)
        scene.reader.catch_up()
        equal(scene.ledger.arrived(), {}, "what a relay that was refused has written")


# The names of all topics of a relay behind its --topic.
OWN = ["", "-done", "-cancelled", ".invalid", "-b10s", "-b60s",
       *(f"-b{600 << n}s" for n in range(13))]


@suite.together
def topics_that_are_missing_are_named():
    need_own("topics that are made by hand")
    with Scene() as scene:
        topic = scene.topic + "-2"
        status, said = outcome(scene, "--topic", topic)
        equal(status, 1, said)
        names = re.findall("there is no topic ([^,]*), and --create was not given", said)
        equal(sorted(names), sorted(topic + suffix for suffix in OWN), "names of topics")


@suite.together
def a_relay_runs_without_some_partitions_and_names_these():
    need_mock("topics that are made by hand")
    with Scene(partitions=4, horizon_s=600) as scene:
        topic = scene.topic + "-2"
        scene.cluster.make_topics({topic + suffix: 4 if not suffix else 3 for suffix in OWN})
        relay = scene.start("--topic", topic)
        for suffix in set(OWN) - {"", ".invalid"}:
            relay.wait_until_it_says(f"{topic}{suffix} has 3 partitions, and should have 4")
        equal(relay.stop(), 0, "exit status")


@suite.together
def a_port_for_metrics_that_is_in_use_is_an_error():
    with Scene() as scene:
        relay = scene.start()
        address = wait_for(lambda: relay.said().split("metrics on ")[1].split()[0], "its address")
        status, said = outcome(scene, "--metrics", address)
        equal((status, address in said), (1, True), said)
