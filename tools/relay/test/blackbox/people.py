#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of the commands status, list, replay and skip of twheel-relay, with real brokers.

All tests share a cluster; each has topics and a group of its own. Only few start a relay: what
the commands tell depends on topics and offsets alone, and these are made as they are wanted. The
mock of librdkafka does not answer what the commands ask.
"""

import json
import os
import struct
import subprocess
import threading
import time
import urllib.error
import urllib.request
import uuid

import paths  # pylint: disable=unused-import
from confluent_kafka import Consumer, Producer, TopicPartition

import brokers
import process
from cluster import RELAY
from scene import Relay
from tap import Suite, equal, holds, note, wait_for

suite = Suite(seconds=600, at_a_time=4)

PATIENCE_S = 120
SPAN = 4096
SECOND, HOUR = 1000, 3600 * 1000
# Their clients wait for each other only shortly.
QUICK = ("-X", "reconnect.backoff.max.ms=500")
# Commands that change nothing are run again if brokers on a busy machine did not answer in time.
LOOKS = "status", "list"
TOO_BUSY = "time is over"


class Shared:
    """The cluster, which the first test starts."""

    def __init__(self):
        self.lock = threading.Lock()
        self.kafka = None

    def get(self):
        """Start it, if that was not done."""
        with self.lock:
            if not self.kafka:
                brokers.need()
                self.kafka = brokers.Brokers()
            return self.kafka


shared = Shared()


def now_ms():
    """The time of the wall clock."""
    return int(time.time() * 1000)


class Result:
    """What a command has printed, and its exit status."""

    def __init__(self, done):
        self.status = done.returncode
        self.out = done.stdout
        self.err = done.stderr

    def json(self):
        """The output as one text of JSON."""
        return json.loads(self.out)

    def lines(self):
        """The output as lines of JSON."""
        return [json.loads(line) for line in self.out.splitlines()]

    def __repr__(self):
        return f"status {self.status}\n{self.out}{self.err}"


class Stage:
    """Topics of one test. @buckets are widths in seconds."""

    def __init__(self, partitions=1, buckets=(), targets=(), own=("done", "cancelled")):
        self.kafka = shared.get()
        self.topic = f"delays-{uuid.uuid4().hex[:8]}"
        self.group = f"twheelq-{self.topic}"
        topics = {self.topic: partitions, f"{self.topic}.invalid": 1}
        topics |= {self.bucket(width): partitions for width in buckets}
        topics |= {self.name(target): partitions for target in targets}
        self.kafka.make_topics(topics)
        self.kafka.make_topics({f"{self.topic}-{name}": partitions for name in own},
                               config={"cleanup.policy": "compact"})
        self.producer = Producer(self.kafka.client({"linger.ms": 0}))
        self.relays = []

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        for relay in self.relays:
            if kind:
                note(f"the relay said:\n{relay.said()[-3000:]}")
            relay.close()

    def bucket(self, width):
        """The name of a bucket."""
        return f"{self.topic}-b{width}s"

    def name(self, target):
        """The name of a target, or of its dead letters: those of other tests differ."""
        return f"{self.topic}.to.{target}"

    # --- what is in Kafka -----------------------------------------------------

    def put(self, topic, partition=0, timestamp_ms=None, key=b"k", value=b"v", **headers):
        """Produce a record; twheel_id is for the header twheel-id, and so on."""
        headers = [(name.replace("_", "-"), str(text)) for name, text in headers.items()]
        more = {} if timestamp_ms is None else {"timestamp": timestamp_ms}
        self.producer.produce(topic, value, key, partition, headers=headers, **more)
        equal(self.producer.flush(PATIENCE_S), 0, "records without a report")

    def put_waiting(self, **headers):
        """A record to the topic of delays."""
        self.put(self.topic, **headers)

    def put_piece(self, topic, partition, done, generation=1, newest_ms=None):
        """A piece of the map of what is done."""
        begin = min(done) // SPAN * SPAN
        bits = bytearray(SPAN // 8)
        for offset in done:
            bits[(offset - begin) // 8] |= 1 << (offset - begin) % 8
        head = struct.pack(">bqi", 1, newest_ms or now_ms() + HOUR, -1)
        self.producer.produce(f"{self.topic}-done", head + bytes(bits),
                              f"{topic}:{partition}:{begin}:{generation}", partition)
        equal(self.producer.flush(PATIENCE_S), 0, "pieces without a report")

    def commit(self, topic, partition, offset, group=None):
        """Commit an offset, of the group of the relays."""
        consumer = Consumer(self.kafka.client({"group.id": group or self.group,
                                               "enable.auto.commit": False}))
        consumer.commit(offsets=[TopicPartition(topic, partition, offset)], asynchronous=False)
        consumer.close()

    def committed(self, topic, partition=0, group=None):
        """What the group has committed."""
        consumer = Consumer(self.kafka.client({"group.id": group or self.group}))
        offset = consumer.committed([TopicPartition(topic, partition)], PATIENCE_S)[0].offset
        consumer.close()
        return offset

    def records(self, topic):
        """All records of a topic with one partition."""
        consumer = Consumer(self.kafka.client({"group.id": "reader", "enable.auto.commit": False,
                                               "enable.partition.eof": True}))
        _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), PATIENCE_S)
        consumer.assign([TopicPartition(topic, 0, 0)])
        found = []
        while end and (not found or found[-1].offset() < end - 1):
            message = consumer.poll(PATIENCE_S)
            holds(message is not None, f"{topic} cannot be read")
            if not message.error():
                found.append(message)
        consumer.close()
        return found

    # --- commands ---------------------------------------------------------------

    def tried(self, command, words):
        """What a command came to."""
        return Result(subprocess.run([RELAY, command, "--brokers", self.kafka.address, "--topic",
                                      self.topic, *QUICK, *words], capture_output=True,
                                     text=True, timeout=PATIENCE_S, check=False))

    def run(self, command, *words, status=0):
        """Run a command, which ends with this status."""
        for _ in range(6):
            result = self.tried(command, words)
            if status or command not in LOOKS or TOO_BUSY not in result.err:
                break
        equal(result.status, status, f"{command} {words}: {result}")
        return result

    def refused(self, words, command, *options):
        """A command fails, and says why."""
        result = self.run(command, *options, status=1)
        holds(words in result.err, f"no \"{words}\": {result}")
        return result

    def status(self, *words):
        """The answer of status: all, and {topic: numbers}."""
        answer = self.run("status", "--json", *words).json()
        return answer, {topic["topic"]: topic for topic in answer["topics"]}

    def list(self, *words):
        """The records that list prints."""
        return self.run("list", "--json", *words).lines()

    def relay(self, *options):
        """Start a relay."""
        relay = Relay(self.kafka.address, self.topic,
                      ["--create", "--partitions", "1", "-X", "session.timeout.ms=6000", *options])
        self.relays.append(relay)
        return relay.start()


def test(function):
    """A decorator for a test that needs brokers."""
    return suite.together(function)


# --- status -------------------------------------------------------------------------------

@test
def status_tells_which_topics_are_missing_or_too_small():
    with Stage(partitions=2, buckets=(600, 1200), own=("cancelled",)) as stage:
        stage.kafka.add_partitions(stage.topic, 3)
        answer, topics = stage.status()
        equal(topics[stage.topic]["partitions"], 3)
        problems = "\n".join(answer["problems"])
        for words in (f"there is no topic {stage.bucket(2400)}: start a relay with --create",
                      f"{stage.bucket(600)} has 2 partitions, and needs 3",
                      f"there is no topic {stage.topic}-done",
                      f"{stage.topic}-cancelled has 2 partitions, and needs 3",
                      f"no relay is in group {stage.group}"):
            holds(words in problems, f"no \"{words}\" in {problems}")
        equal(answer["map"], False)
        holds("There is no map of what is done" in stage.run("status").out, "the text")


@test
def status_counts_what_waits_without_what_the_map_calls_done():
    with Stage(buckets=(600,)) as stage:
        for _ in range(10):
            stage.put_waiting(twheel_target="t", twheel_delay=HOUR)
        equal(stage.status()[1][stage.topic]["waiting"], 10)
        stage.commit(stage.topic, 0, 2)
        stage.put_piece(stage.topic, 0, [1, 4, 5, 6])
        stage.put_piece(stage.topic, 0, [6, 9], generation=2)
        topic = stage.status()[1][stage.topic]
        equal((topic["waiting"], topic["done_above"], topic["stopped"]), (4, 4, 0))
        equal(stage.status()[0]["group"]["generation_of_map"], 2)


@test
def status_tells_records_that_wait_for_their_width_from_those_that_are_ready():
    with Stage(buckets=(600, 1200)) as stage:
        bucket, now = stage.bucket(600), now_ms()
        for age_s in (2000, 1500, 700, 500, 30):
            stage.put(bucket, timestamp_ms=now - age_s * SECOND, twheel_target="t",
                      twheel_due=now + HOUR, twheel_parked=now - age_s * SECOND)
        stage.put(stage.bucket(1200), timestamp_ms=now - 700 * SECOND, twheel_target="t",
                  twheel_due=now + HOUR, twheel_parked=now - 700 * SECOND)
        topics = stage.status()[1]
        equal((topics[bucket]["waiting"], topics[bucket]["not_ready"]), (5, 2))
        topic = topics[stage.bucket(1200)]
        equal((topic["waiting"], topic["not_ready"], topic["late_ms"]), (1, 1, 0))
        holds(1990 * SECOND < topics[bucket]["oldest_ms"] < 2500 * SECOND, topics[bucket])
        stage.commit(bucket, 0, 1)
        stage.put_piece(bucket, 0, [1, 4])
        topic = stage.status()[1][bucket]
        equal((topic["waiting"], topic["not_ready"], topic["done_above"]), (2, 1, 2))


@test
def status_tells_how_late_the_first_record_is_unless_its_target_holds_it():
    with Stage(buckets=(600,)) as stage:
        now = now_ms()
        stage.put_waiting(twheel_target="t", twheel_deliver_at=now - 100 * SECOND)
        stage.put(stage.bucket(600), twheel_target="t", twheel_due=now - HOUR, twheel_tries=3,
                  twheel_parked=now, twheel_held_since=now - HOUR)
        topics = stage.status()[1]
        topic = topics[stage.topic]
        holds(99 * SECOND < topic["late_ms"] < 400 * SECOND, topic)
        equal(topic["late_partitions"], 1)
        equal(topics[stage.bucket(600)]["late_ms"], 0)


@test
def status_tells_which_partitions_are_stopped_and_why():
    with Stage(partitions=3) as stage:
        for partition in range(3):
            for _ in range(5):
                stage.put(stage.topic, partition, twheel_target="t", twheel_delay=HOUR)
        stage.commit(stage.topic, 0, 1)
        stage.commit(stage.topic, 1, 9)
        stage.kafka.delete_records(stage.topic, {0: 3, 2: 2})
        answer, topics = stage.status()
        equal(topics[stage.topic]["stopped"], 3)
        problems = "\n".join(answer["problems"])
        for words in ("[0] is stopped: records 1 to 2 are deleted",
                      "[1] is stopped: the committed offset 9 is beyond the end, 5",
                      "[2] is stopped: nothing is committed, and the records before 2"):
            holds(words in problems, f"no \"{words}\" in {problems}")


@test
def status_names_the_relays_of_the_group():
    with Stage() as stage:
        stage.relay("--horizon", "1h")
        answer = stage.status("--horizon", "1h")[0]
        group = answer["group"]
        equal((group["state"], len(group["members"])), ("Stable", 1))
        equal(group["members"][0]["client"], "twheel-relay")
        holds(group["members"][0]["partitions"] > 5, group)
        equal(answer["problems"], [])
        text = stage.run("status", "--horizon", "1h").out
        holds("Nothing is wrong." in text and "1 members" in text, text)


# --- list ---------------------------------------------------------------------------------

@test
def list_prints_what_is_due_first_and_nothing_that_is_done():
    with Stage(partitions=2, buckets=(600,)) as stage:
        now = now_ms()
        for n in range(6):
            stage.put(stage.topic, n % 2, twheel_target="t", twheel_id=f"n{n}",
                      twheel_deliver_at=now + HOUR - n * SECOND)
        stage.put(stage.bucket(600), 1, twheel_target="u", twheel_id="parked", twheel_parked=now,
                  twheel_due=now + 2 * HOUR)
        stage.put(stage.topic, 0, twheel_target="t")
        stage.put(stage.topic, 0, twheel_target="t", twheel_attempt=1)
        stage.commit(stage.topic, 0, 1)
        stage.put_piece(stage.topic, 1, [1])
        rows = stage.list()
        equal([row["id"] for row in rows],
              ["n5", "n4", "n2", "n1", "parked", f"{stage.topic}-0-3", f"{stage.topic}-0-4"])
        equal(rows[0], {"id": "n5", "due_ms": now + HOUR - 5 * SECOND, "target": "t",
                        "topic": stage.topic, "partition": 1, "offset": 2, "attempt": 0,
                        "tries": 0, "held_since_ms": None, "takes_back": False,
                        "taken_back": False, "error": None})
        holds("there is no twheel-deliver-at" in rows[5]["error"], rows[5])
        equal((rows[6]["due_ms"], rows[6]["attempt"], rows[6]["error"]), (None, 1, None))
        text = stage.run("list", "--limit", "2").out.splitlines()
        equal((len(text), text[3]), (4, "and 5 more; --limit tells how many are printed"))
        holds(text[1].startswith("n5 ") and text[2].startswith("n4 "), text)


@test
def a_younger_record_is_listed_although_a_piece_has_its_offset():
    with Stage() as stage:
        now = now_ms()
        for n, timestamp_ms in enumerate((now - HOUR, now)):
            stage.put(stage.topic, timestamp_ms=timestamp_ms, twheel_target="t",
                      twheel_id=f"n{n}", twheel_deliver_at=now + HOUR)
        stage.put_piece(stage.topic, 0, [0, 1], newest_ms=now - HOUR)
        equal([row["id"] for row in stage.list()], ["n1"])


@test
def list_takes_only_a_target_or_what_is_due_before_a_time():
    with Stage() as stage:
        now = now_ms()
        for n, target in enumerate("tutt"):
            stage.put_waiting(twheel_target=target, twheel_id=f"n{n}",
                              twheel_deliver_at=now + n * HOUR + SECOND)
        equal([row["id"] for row in stage.list("--target", "t")], ["n0", "n2", "n3"])
        equal([row["id"] for row in stage.list("--due-before", "now+90m")], ["n0", "n1"])
        equal([row["id"] for row in stage.list("--target", "t", "--limit", "1")], ["n0"])
        equal(stage.list("--target", "nobody"), [])


@test
def list_keeps_the_first_of_many_records():
    with Stage() as stage:
        now = now_ms()
        for n in range(3000):
            stage.producer.produce(stage.topic, b"", b"k", headers=[
                ("twheel-target", "t"), ("twheel-id", f"n{n}"),
                ("twheel-deliver-at", str(now + HOUR + n * 7919 % 3000))])
            stage.producer.poll(0)
        stage.producer.flush(PATIENCE_S)
        rows = stage.list("--limit", "500")
        equal([row["due_ms"] - now - HOUR for row in rows], list(range(500)))


@test
def list_sums_up_by_target():
    with Stage(buckets=(600,)) as stage:
        now = now_ms()
        for n, target in enumerate("tut"):
            stage.put_waiting(twheel_target=target, twheel_id=f"n{n}",
                              twheel_deliver_at=now + n * HOUR + SECOND)
        stage.put(stage.bucket(600), twheel_target="t", twheel_id="held", twheel_parked=now,
                  twheel_due=now - HOUR, twheel_tries=2, twheel_held_since=now - HOUR)
        equal(stage.list("--summary"), [
            {"target": "t", "records": 3, "held": 1, "taken_back": 0, "first_due_ms": now - HOUR,
             "last_due_ms": now + 2 * HOUR + SECOND},
            {"target": "u", "records": 1, "held": 0, "taken_back": 0,
             "first_due_ms": now + HOUR + SECOND, "last_due_ms": now + HOUR + SECOND}])
        row = stage.list("--limit", "1")[0]
        equal((row["id"], row["tries"], row["held_since_ms"]), ("held", 2, now - HOUR))
        holds("held" in stage.run("list", "--summary").out, "the text")


@test
def list_tells_what_was_taken_back():
    with Stage() as stage:
        due = now_ms() + HOUR
        for name in ("one", "two"):
            stage.put_waiting(twheel_target="t", twheel_id=name, twheel_deliver_at=due)
        stage.put_waiting(twheel_cancel="two", twheel_due=due)
        cancelled = f"{stage.topic}-cancelled"
        for name in ("one", "two"):
            stage.put(cancelled, key=name, value=str(due))
        stage.put(cancelled, key="one", value=None)
        rows = stage.list()
        equal([(row["id"], row["taken_back"], row["takes_back"]) for row in rows],
              [("one", False, False), ("two", True, False), ("two", False, True)])


@test
def list_needs_a_topic_of_delays():
    stage = Stage()
    stage.topic = "nobodys"
    stage.refused("there is no topic nobodys", "list")


# --- replay -------------------------------------------------------------------------------

def headers_of(message):
    """{name: text}; a header that comes twice is an error."""
    headers = message.headers() or []
    equal(len(dict(headers)), len(headers), headers)
    return {name: value.decode() for name, value in headers}


def put_dead(stage, count, first=0):
    """Dead letters as a relay writes them."""
    for n in range(first, first + count):
        stage.put(stage.name("t.dead"), key=b"k%d" % n, value=b"v%d" % n, twheel_id=f"n{n}",
                  twheel_due=5, twheel_attempt=25, twheel_timestamp=7, mine="x")


def replayed(stage):
    """The ids that were written to the topic of delays."""
    return [headers_of(message)["twheel-id"] for message in stage.records(stage.topic)]


@test
def dead_letters_are_replayed_once_with_their_ids():
    with Stage(targets=("t", "t.dead")) as stage:
        put_dead(stage, 3)
        result = stage.run("replay", stage.name("t.dead"), "--delay", "2s")
        holds("3 records" in result.out, result)
        message = stage.records(stage.topic)[1]
        equal((message.key(), message.value()), (b"k1", b"v1"))
        equal(headers_of(message), {"twheel-id": "n1", "mine": "x", "twheel-timestamp": "7",
                                    "twheel-delay": "2000", "twheel-target": stage.name("t")})
        result = stage.run("replay", stage.name("t.dead"))
        holds("0 records" in result.out and "3 were replayed before" in result.out, result)
        put_dead(stage, 2, 3)
        stage.run("replay", stage.name("t.dead"))
        equal(replayed(stage), [f"n{n}" for n in range(5)])
        equal(stage.committed(stage.name("t.dead"), group=f"{stage.group}-replay"), 5)


@test
def chosen_dead_letters_are_not_replayed_again_with_the_others():
    with Stage(targets=("t", "t.dead")) as stage:
        dead = stage.name("t.dead")
        put_dead(stage, 6)
        stage.run("replay", dead, "--id", "n4", "--id", "n2")
        stage.run("replay", dead, "--limit", "1")
        equal(replayed(stage), ["n2", "n4", "n0"])
        result = stage.run("replay", dead, "--id", "n4", "--id", "n5", status=1)
        holds('no record with the id "n4"' in result.err, result)
        equal(replayed(stage)[3:], ["n5"])
        stage.run("replay", dead)
        equal(replayed(stage)[4:], ["n1", "n3"])


@test
def dead_letters_are_chosen_by_time():
    # Not so long ago that retention deletes them.
    since = int(time.time()) - 3600
    with Stage(targets=("t", "t.dead")) as stage:
        for n in range(5):
            stage.put(stage.name("t.dead"), timestamp_ms=(since + n) * SECOND,
                      twheel_id=f"n{n}")
        stage.run("replay", stage.name("t.dead"), "--since", f"@{since + 1}", "--until",
                  f"@{since + 3}")
        equal(replayed(stage), ["n1", "n2"])


@test
def a_dry_run_prints_and_changes_nothing():
    with Stage(targets=("t", "t.dead")) as stage:
        put_dead(stage, 3)
        result = stage.run("replay", stage.name("t.dead"), "--dry-run", "--id", "n1")
        equal(len(result.out.splitlines()), 2, result)
        holds("/0/1  " in result.out and "n1" in result.out, result)
        equal(stage.records(stage.topic), [])
        holds(stage.committed(stage.name("t.dead"), group=f"{stage.group}-replay") < 0, "a commit")


@test
def invalid_records_are_replayed_to_a_target_that_is_named():
    with Stage(targets=("t",)) as stage:
        invalid = f"{stage.topic}.invalid"
        stage.put(invalid, twheel_target="no such/topic", twheel_id="x", twheel_error="why",
                  twheel_deliver_at="soon")
        result = stage.run("replay", invalid, status=2)
        holds("--to is missing" in result.err, result)
        stage.run("replay", invalid, "--to", stage.name("t"))
        equal(headers_of(stage.records(stage.topic)[0]),
              {"twheel-id": "x", "twheel-delay": "0", "twheel-target": stage.name("t")})


@test
def replay_stops_before_it_could_forget_what_was_replayed():
    with Stage(targets=("t", "t.dead")) as stage:
        dead = stage.name("t.dead")
        for n in range(1500):
            stage.producer.produce(dead, b"", b"k", headers=[("twheel-id", f"n{n}")])
        stage.producer.flush(PATIENCE_S)
        words = [word for n in range(1, 1500, 2) for word in ("--id", f"n{n}")]
        result = stage.run("replay", dead, *words, status=1)
        holds("has no room to remember more single records" in result.err, result)
        first = replayed(stage)
        equal(first, [f"n{n}" for n in range(1, 2 * len(first), 2)])
        holds(300 < len(first) < 750, len(first))
        stage.run("replay", dead)
        equal(sorted(replayed(stage)), sorted(f"n{n}" for n in range(1500)))


@test
def offsets_that_a_transaction_takes_do_not_fill_the_memory_of_replay():
    with Stage(targets=("t", "t.dead")) as stage:
        dead = stage.name("t.dead")
        producer = Producer(stage.kafka.client({"transactional.id": stage.topic}))
        producer.init_transactions(PATIENCE_S)
        for n in range(20):
            producer.begin_transaction()
            producer.produce(dead, b"", b"k", headers=[("twheel-id", f"n{n}")])
            producer.flush(PATIENCE_S)
            (producer.commit_transaction if n % 4 else producer.abort_transaction)(PATIENCE_S)
        stage.run("replay", dead, "--id", "n5")
        stage.run("replay", dead)
        expected = [f"n{n}" for n in range(20) if n % 4]
        equal(sorted(replayed(stage)), sorted(expected))
        stage.run("replay", dead)
        equal(len(replayed(stage)), len(expected))


@test
def a_replayed_record_reaches_its_target_as_a_first_attempt():
    with Stage(targets=("t", "t.dead")) as stage:
        stage.relay("--horizon", "1h")
        put_dead(stage, 1)
        stage.run("replay", stage.name("t.dead"))
        wait_for(lambda: stage.records(stage.name("t")), "the record", PATIENCE_S)
        message = stage.records(stage.name("t"))[0]
        headers = headers_of(message)
        equal((message.value(), headers["twheel-id"], headers["twheel-attempt"]),
              (b"v0", "n0", "0"))


@test
def replay_says_what_is_wrong():
    with Stage(targets=("t", "t.dead")) as stage:
        stage.refused(f"there is no topic {stage.name('u.dead')}", "replay", stage.name("u.dead"))
        result = stage.run("replay", stage.name("t"), status=2)
        holds("is no topic of dead letters" in result.err, result)
        result = stage.run("replay", status=2)
        holds("which topic of dead letters" in result.err, result)
        stage.topic = "nobodys"
        dead = [topic for topic in stage.kafka.metadata().topics if topic.endswith(".to.t.dead")]
        stage.refused("there is no topic nobodys, which is that of delays", "replay", dead[0])


# --- skip ---------------------------------------------------------------------------------

@test
def skip_goes_on_at_the_first_record_that_is_left():
    with Stage() as stage:
        for _ in range(6):
            stage.put_waiting(twheel_target="t", twheel_delay=HOUR)
        stage.commit(stage.topic, 0, 1)
        stage.kafka.delete_records(stage.topic, {0: 3})
        result = stage.refused("nothing is changed without --yes", "skip", stage.topic, "0")
        for words in ("records 1 to 2 are deleted", "at most 2 records", "go on at 3"):
            holds(words in result.out, f"no \"{words}\": {result}")
        equal(stage.committed(stage.topic), 1)
        stage.run("skip", stage.topic, "0", "--yes")
        equal(stage.committed(stage.topic), 3)
        stage.refused("is not stopped: 3 is committed, of 3 to 6", "skip", stage.topic, "0", "--yes")
        equal(stage.status()[1][stage.topic]["stopped"], 0)


@test
def skip_keeps_the_map_of_what_is_done():
    with Stage() as stage:
        for n in range(6):
            stage.put_waiting(twheel_target="t", twheel_delay=HOUR, twheel_id=f"n{n}")
        stage.commit(stage.topic, 0, 1)
        stage.put_piece(stage.topic, 0, [2, 4])
        stage.kafka.delete_records(stage.topic, {0: 3})
        stage.run("skip", stage.topic, "0", "--yes")
        equal([row["id"] for row in stage.list()], ["n3", "n5"])


@test
def skip_of_an_offset_beyond_the_end_reads_again_what_there_is():
    with Stage() as stage:
        for _ in range(4):
            stage.put_waiting(twheel_target="t", twheel_delay=HOUR)
        stage.commit(stage.topic, 0, 100)
        result = stage.run("skip", stage.topic, "0", "--yes")
        holds("read again: up to 4 records" in result.out, result)
        equal(stage.committed(stage.topic), 0)


@test
def skip_goes_to_an_offset_that_is_named_and_says_what_it_skips():
    with Stage() as stage:
        for _ in range(6):
            stage.put_waiting(twheel_target="t", twheel_delay=HOUR)
        stage.put_piece(stage.topic, 0, [1, 4])
        result = stage.run("skip", stage.topic, "0", "--to", "4", "--yes")
        holds("skipped: 3 records that are not done, and 1 that are" in result.out, result)
        equal(stage.committed(stage.topic), 4)
        stage.refused("has no offset 7: it has 0 to 6", "skip", stage.topic, "0", "--to", "7")
        stage.run("skip", stage.topic, "0", "--to-begin", "--yes")
        equal(stage.committed(stage.topic), 0)


@test
def skip_refuses_topics_of_others():
    with Stage(targets=("t",)) as stage:
        stage.refused("has no partition 0 that group", "skip", stage.name("t"), "0", "--to", "0")
        stage.refused(f"{stage.topic} has no partition 5", "skip", stage.topic, "5", "--to", "0")
        stage.refused("there is no topic nobodys", "skip", "nobodys", "0", "--to", "0")
        for words in ((), (stage.topic,), (stage.topic, "x"),
                      (stage.topic, "0", "--to", "1", "--to-begin")):
            stage.run("skip", *words, status=2)


def health(relay):
    """The status and text of /healthz."""
    address = relay.said_now().split("metrics on ")[1].split()[0]
    try:
        with urllib.request.urlopen(f"http://{address}/healthz", timeout=PATIENCE_S) as page:
            return page.status, page.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@test
def a_stopped_partition_goes_on_after_skip():
    with Stage(targets=("t",)) as stage:
        relay = stage.relay("--horizon", "1h")
        relay.stop()
        for n in range(5):
            stage.put_waiting(twheel_target=stage.name("t"), twheel_delay=0, twheel_id=f"n{n}")
        stage.commit(stage.topic, 0, 1)
        stage.kafka.delete_records(stage.topic, {0: 3})
        relay.start()
        wait_for(lambda: health(relay)[0] == 503, "a partition that is stopped", PATIENCE_S)
        holds("is stopped" in health(relay)[1], health(relay))
        stage.refused("has 1 members: stop all relays first", "skip", stage.topic, "0", "--yes")
        equal(stage.committed(stage.topic), 1)
        relay.stop()
        stage.run("skip", stage.topic, "0", "--yes")
        relay.start()
        wait_for(lambda: len(stage.records(stage.name("t"))) == 2, "both records", PATIENCE_S)
        equal(health(relay), (200, "ok\n"))


# --- all of them --------------------------------------------------------------------------

@test
def brokers_that_do_not_answer_are_named():
    brokers.need()
    port = process.free_port()
    for command in (["status"], ["list"], ["replay", "t.dead"], ["skip", "delays", "0"]):
        done = subprocess.run([RELAY, *command, "--brokers", f"127.0.0.1:{port}",
                               "-X", "socket.connection.setup.timeout.ms=1000"],
                              capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        equal(done.returncode, 1, done.stderr)
        holds(f"127.0.0.1:{port} does not answer" in done.stderr, done.stderr)


@test
def a_secret_of_a_file_of_settings_is_not_printed():
    with Stage() as stage:
        path = os.path.join(stage.kafka.directory, f"{stage.topic}.conf")
        brokers.write(path, "sasl.password=secret\nno.such.setting=secret\n")
        os.chmod(path, 0o600)
        result = stage.run("status", "--config", path, status=2)
        holds(":2: no.such.setting: " in result.err, result)
        holds("secret" not in result.err, result)


if __name__ == "__main__":
    suite.main()
