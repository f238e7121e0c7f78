# SPDX-License-Identifier: GPL-2.0
"""Retries and the dead, records without a valid header, options that make no sense."""

import random
import socket
import subprocess

import daemon
from kafka_cluster import need_mock
from kafka_ledger import PATIENCE_S, now_ms, wait_for
from kafka_scene import DAY_S, Scene, TooLate
from relay_suite import in_time, suite
from tap import equal, holds

YEAR_MS = 365 * DAY_S * 1000
# Targets have a broker of their own, so that it is the relay's requests that it refuses.
APART = 3


# --- retries ------------------------------------------------------------------------------

def record_of(scene, record):
    """The one of the topic of delays that became this."""
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
def without_a_policy_the_default_of_the_queue_holds():
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
def what_always_fails_is_retried_to_the_last_attempt_and_is_dead():
    with Scene(policies={"t": (4, 100, 2, 300, 0)}) as scene:
        scene.start()
        last = [scene.send(delay=0, record_id=b"job-%d" % n, value=b"%d" % n) for n in range(20)]
        # A consumer that fails each time: it passes on what it got, and counts.
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


# --- invalid ones -------------------------------------------------------------------------

# Headers in short (a target that is missing here is given), and how the reason begins.
NO_TARGET = "there is no twheel-target"
NO_NAME = "twheel-target is no name"
NO_DELAY = "twheel-delay is no time"
NO_TIME = "twheel-deliver-at is no time"
NO_ATTEMPT = "twheel-attempt is no number"
FAR = "it is due in more"
INVALID = [
    ({}, "there is none of"),
    ({"target": None}, NO_TARGET), ({"target": b""}, NO_TARGET),
    ({"target": b"", "delay": b"1"}, NO_TARGET),
    ({"target": b"a b", "delay": b"1"}, NO_NAME), ({"target": b".", "delay": b"1"}, NO_NAME),
    ({"target": b"..", "delay": b"1"}, NO_NAME), ({"target": b"a/b", "delay": b"1"}, NO_NAME),
    ({"target": b"a\0b", "delay": b"1"}, NO_NAME), ({"target": b"\xff", "delay": b"1"}, NO_NAME),
    ({"target": b"x" * 245, "delay": b"1"}, "twheel-target is longer"),
    ({"target": b"x" * 100000, "delay": b"1"}, "twheel-target is longer"),
    ({"delay": None}, "there is none of"), ({"delay": b""}, NO_DELAY),
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
    # Not the same names.
    ({"Delay": b"1"}, "there is none of"), ({"delay ": b"1"}, "there is none of"),
]


def invalid_headers(scene, short):
    """With a target, unless it says something else of that."""
    whole = {"target": scene.target("t").encode()} | short
    return [("before", b"1")] + [(f"twheel-{name}", value) for name, value in whole.items()
                                 ] + [("behind", None)]


@suite.together
def invalid_records_go_whole_to_the_invalid_and_hold_up_nobody():
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
        scene.ledger.send_invalid(invalid_headers(scene, {"delay": b"0"}), FAR,
                                  timestamp=now_ms() + 11 * YEAR_MS)
        # Why it was invalid the last time is not kept.
        scene.ledger.send_invalid([("twheel-error", b"old")], NO_TARGET)
        scene.ledger.send_invalid([], NO_TARGET, value=None)
        return scene.finish()


@suite.together
def while_the_invalid_cannot_be_written_the_others_come():
    need_mock("a topic without a leader")
    with Scene(partitions=1) as scene:
        relay = scene.start("-X", "message.timeout.ms=1000")
        invalid = f"{scene.topic}.invalid"
        scene.cluster.tell("leader", invalid, 0, -1)
        refused = [scene.ledger.send_invalid([], NO_TARGET) for _ in range(10)]
        valid = {scene.send(delay=random.randint(0, 1000)).number for _ in range(100)}
        scene.ledger.flush()
        scene.ledger.wait_for(valid)
        relay.wait_until_it_says(f"{invalid} cannot be written")
        equal(scene.ledger.missing(), {sent.number for sent in refused})
        scene.cluster.tell("leader", invalid, 0, 1)
        # Others may have been without an answer for a second, too.
        scene.ledger.wait()
        return scene.finish(most_duplicates=relay.metrics()["write_unknown_total"])


# --- what a target does not take ----------------------------------------------------------

@suite.together
def what_is_too_large_for_its_target_goes_to_the_invalid():
    need_mock("a target with a limit of its own")
    with Scene(partitions=1, apart=APART) as scene:
        relay = scene.start()
        scene.cluster.tell("error", APART, "Produce", 2, "MSG_SIZE_TOO_LARGE")
        sent = scene.send(delay=200, key=b"k", value=b"x" * 500000)
        scene.ledger.flush()
        sent.where = f"{scene.topic}.invalid"
        sent.why = "Broker: Message size too large"
        relay.wait_until_it_says("does not take a record")
        scene.send(delay=0)
        return scene.finish()


@suite.together
def a_batch_that_is_refused_as_one_is_sent_again_one_by_one():
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
    """A relay that is going to end by itself."""
    command = [daemon.TWHEELQ, "relay", "--topic", scene.topic, "--wheel", "process", *options]
    if brokers != "":
        command += ["--brokers", brokers or scene.cluster.address]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def outcome(scene, *options, brokers=None):
    """Its status, and what it said."""
    with launch(scene, *options, brokers=brokers) as process:
        said = process.communicate(timeout=PATIENCE_S)[1]
    return process.returncode, said


WRONG_OPTIONS = [
    (["-X", "acks=0"], "-X acks: this is the relay's own"),
    (["-X", "acks=1"], "this is the relay's own"),
    (["-X", "request.required.acks=0"], "this is the relay's own"),
    (["-X", "enable.idempotence=false"], "this is the relay's own"),
    (["-X", "enable.auto.commit=true"], "this is the relay's own"),
    (["-X", "auto.offset.reset=latest"], "this is the relay's own"),
    (["-X", "group.id=x"], "this is the relay's own"),
    (["-X", "transactional.id=x"], "this is the relay's own"),
    (["-X", "partition.assignment.strategy=cooperative-sticky"], "this is the relay's own"),
    (["-X", "no.such=1"], 'No such configuration property: "no.such"'),
    (["-X", "session.timeout.ms=soon"], "session.timeout.ms"),
    (["-X", "compression.type=best"], "compression.type"),
    (["-X", "acks"], '-X "acks" is not NAME=VALUE'),
    (["-X", "=1"], "is not NAME=VALUE"),
    (["--policy", "t"], "is not NAME=VALUE"), (["--policy", "t=1,2"], "is no policy"),
    (["--policy", "t=1,1s,2,1h,101"], "is no policy"), (["--policy", "t=x,1s,2,1h,1"], "no policy"),
    (["--horizon", "0"], '--horizon "0" is no time'), (["--horizon", "2d"], "from 1s to 1d"),
    (["--horizon", "1500ms"], "whole number"), (["--memory", "1"], "memory"),
    (["--partitions", "0"], "partitions"), (["--metrics", "nonsense:port"], "nonsense:port"),
    (["--topic", "a b"], '--topic "a b"'), (["--topic", ""], '--topic ""'),
    (["--wheel", "stone"], "stone"), (["--log-level", "loud"], "loud"), (["word"], '"word"'),
]


@suite.together
def options_that_make_no_sense_are_refused_with_a_reason():
    # While the port is ours, and we do not listen, nobody does.
    with Scene() as scene, socket.socket() as port:
        port.bind(("127.0.0.1", 0))
        scene.send(delay=0)
        scene.ledger.flush()
        nowhere = launch(scene, brokers=f"127.0.0.1:{port.getsockname()[1]}")
        for options, words in WRONG_OPTIONS:
            status, said = outcome(scene, *options)
            equal(status, 1, f"the status with {options}: {said}")
            holds(words in said, f"with {options} it says: {said}; expected: {words}")
        status, said = outcome(scene, brokers="")
        equal((status, "--brokers is missing" in said), (1, True), said)
        said = nowhere.communicate(timeout=PATIENCE_S)[1]
        equal((nowhere.returncode, "does not answer" in said), (1, True), said)
        scene.reader.catch_up()
        equal(scene.ledger.arrived(), {}, "what a relay that was refused has written")


@suite.together
def topics_that_are_missing_or_too_narrow_are_named():
    need_mock("topics that are made by hand")
    with Scene() as scene:
        topic = scene.topic + "-2"
        status, said = outcome(scene, "--topic", topic)
        equal(status, 1, said)
        holds(f"there is no topic {topic}, and --create was not told" in said, said)
        names = [line for line in said.splitlines() if "there is no topic" in line]
        equal(len(names), 15, "names of topics")
        scene.cluster.make_topics({topic: 4, f"{topic}.invalid": 1})
        widths = [600 << n for n in range(13)]
        scene.cluster.make_topics({f"{topic}-b{width}s": 3 for width in widths})
        status, said = outcome(scene, "--topic", topic)
        equal(status, 1, said)
        for width in widths:
            holds(f"{topic}-b{width}s has 3 partitions, and should have 4" in said, said)


@suite.together
def a_port_for_metrics_that_is_taken_is_an_error():
    with Scene() as scene:
        relay = scene.start()
        address = wait_for(lambda: relay.said().split("metrics on ")[1].split()[0], "its address")
        status, said = outcome(scene, "--metrics", address)
        equal((status, address in said), (1, True), said)
