#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of brokers.py itself: what it does to brokers has the effect that its users rely on.

With TWHEEL_KAFKA=4, with that version of Kafka.
"""

import functools
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import paths  # pylint: disable=unused-import
import brokers
import confluent_kafka
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from tap import Suite, equal, holds, wait_for

suite = Suite(seconds=900)
VERSION = os.environ.get("TWHEEL_KAFKA", "3.9")
HERE = os.path.dirname(os.path.abspath(__file__))
COMMAND = os.path.join(HERE, "..", "brokers")


@functools.cache
def shared():
    """A cluster for tests that leave it as it was."""
    return brokers.Brokers(version=VERSION)


def write(kafka, topic, *values, partition=0, **options):
    """Produce records; the error of the last delivery."""
    errors = []
    producer = Producer(kafka.client({"message.timeout.ms": 120000} | options))
    for value in values:
        producer.produce(topic, value, partition=partition,
                         on_delivery=lambda error, _: errors.append(error))
    holds(producer.flush(130) == 0, "not all records were delivered")
    return errors[-1]


def consumer_of(kafka, topic, partition=0, **options):
    """A consumer that has been assigned a partition from its first record."""
    consumer = Consumer(kafka.client({"group.id": f"group-of-{topic}"} | options))
    consumer.assign([TopicPartition(topic, partition, 0)])
    return consumer


def records(kafka, topic, number, **options):
    """The values of so many records."""
    consumer = consumer_of(kafka, topic, **options)
    values = []

    def more():
        record = consumer.poll(0.1)
        if record is not None and not record.error():
            values.append(record.value().decode())
        return len(values) >= number
    try:
        wait_for(more, f"{number} records of {topic}; there are {values}", 120)
    finally:
        consumer.close()
    return values


@suite.test
def records_survive_kill_9_of_their_leader():
    """And the one that was killed comes back into the ISR."""
    kafka = shared()
    kafka.make_topics({"kills": 1})
    equal(len(kafka.partitions("kills")[0].replicas), 3, "replicas")
    equal(write(kafka, "kills", "before"), None, "error")
    victim = kafka.leader("kills")
    kafka.kill(victim)
    equal(write(kafka, "kills", "while"), None, "error")
    holds(kafka.leader("kills") != victim, "the leader is still the one that was killed")
    kafka.start(victim)
    kafka.wait_isr()
    equal(sorted(kafka.partitions("kills")[0].isrs), [1, 2, 3], "ISR")
    equal(records(kafka, "kills", 2), ["before", "while"])


@suite.test
def a_stopped_broker_is_fenced_and_comes_back():
    """SIGSTOP, SIGCONT."""
    kafka = shared()
    kafka.make_topics({"pauses": 1})
    victim = kafka.leader("pauses")
    kafka.pause(victim)
    leader = kafka.leader("pauses")
    holds(leader != victim, "the leader is still the one that is stopped")
    equal(write(kafka, "pauses", "one"), None, "error")
    kafka.resume(victim)
    kafka.wait_isr("pauses")


@suite.test
def a_rolling_restart_keeps_records():
    """SIGTERM, one after the other."""
    kafka = shared()
    kafka.make_topics({"rolling": 1})
    for number in (1, 2, 3):
        write(kafka, "rolling", str(number))
        kafka.restart(number)
        kafka.wait_isr()
    equal(records(kafka, "rolling", 3), ["1", "2", "3"])


@suite.test
def another_controller_follows_one_that_was_killed():
    """By the files of those that vote."""
    kafka = shared()
    victim = kafka.controller()
    kafka.kill(victim)
    holds(kafka.controller() != victim, "the active controller is still the one that was killed")
    kafka.make_topics({"controllers": 1})
    kafka.start(victim)
    kafka.wait_isr()


@suite.test
def transactions_commit_and_abort_and_their_coordinator_may_be_killed():
    """With the producer of librdkafka."""
    kafka = shared()
    kafka.make_topics({"transactions": 1})
    producer = Producer(kafka.client({"transactional.id": "tests", "socket.timeout.ms": 60000}))
    producer.init_transactions(120)
    for value, commit in (("one", True), ("two", False), ("three", True)):
        producer.begin_transaction()
        producer.produce("transactions", value)
        producer.flush(120)
        equal(kafka.transactions()["tests"], "Ongoing", "state")
        (producer.commit_transaction if commit else producer.abort_transaction)(120)
    equal(records(kafka, "transactions", 2, **{"isolation.level": "read_committed"}),
          ["one", "three"])
    producer.begin_transaction()
    producer.produce("transactions", "four")
    producer.flush(120)
    victim = kafka.transaction_coordinator("tests")
    kafka.kill(victim)
    producer.commit_transaction(120)
    kafka.start(victim)
    kafka.wait_isr()
    equal(records(kafka, "transactions", 3, **{"isolation.level": "read_committed"})[2:], ["four"])


@suite.test
def the_coordinator_of_a_group_is_the_one_that_librdkafka_finds():
    """Its log of debugging has it."""
    kafka = shared()
    kafka.make_topics({"groups": 1})
    for group in ("one", "another", "größe"):
        with tempfile.TemporaryFile("w+") as log:
            subprocess.run(
                [sys.executable, "-c", f"""
import confluent_kafka
consumer = confluent_kafka.Consumer({{"bootstrap.servers": {kafka.address!r},
    "group.id": {group!r}, "debug": "cgrp"}})
consumer.committed([confluent_kafka.TopicPartition("groups", 0)], 120)
consumer.close()"""], stderr=log, check=True)
            log.seek(0)
            found = re.findall(r"changing coordinator -1 -> (\d+)", log.read())
        equal(kafka.coordinator(group), int(found[-1]), f"coordinator of {group}")


@suite.test
def topics_are_changed_while_they_are_used():
    """Partitions, settings, first offsets."""
    kafka = shared()
    kafka.make_topics({"changes": 1}, config={"retention.ms": 100000})
    write(kafka, "changes", "one", "two", "three")
    kafka.add_partitions("changes", 4)
    equal(write(kafka, "changes", "four", partition=3), None, "error")
    equal(kafka.delete_records("changes", {0: 2, 3: -1}), {0: 2, 3: 1}, "first offsets")
    kafka.configure_topic("changes", {"retention.ms": None, "max.message.bytes": 1000})
    # All brokers learn it in their own time.
    wait_for(lambda: write(kafka, "changes", "x" * 2000) is not None, "a record that is too large")
    kafka.delete_topics("changes")
    kafka.make_topics({"changes": 1})
    kafka.wait_isr("changes")


@suite.test
def a_quota_slows_down_a_client():
    """In bytes a second."""
    kafka = shared()
    kafka.make_topics({"quotas": 1})
    kafka.set_quota({"producer_byte_rate": 20000}, client_id="slow")
    slow = Producer(kafka.client({"client.id": "slow", "message.timeout.ms": 120000}))

    def seconds():
        start = time.monotonic()
        for _ in range(3):
            slow.produce("quotas", "x" * 200000)
            slow.flush(120)
        return time.monotonic() - start
    wait_for(lambda: seconds() > 5, "a client that has to wait", 120)
    kafka.set_quota({"producer_byte_rate": None}, client_id="slow")


@suite.test
def a_full_disk_is_that_of_one_broker():
    """A small file system, which is only visible to it."""
    with brokers.Brokers(version=VERSION, disks={2: 6 << 20}) as kafka:
        kafka.make_topics({"full": 1}, config={"segment.bytes": 1048576})
        victim = kafka.broker(2)
        for _ in range(20):
            equal(write(kafka, "full", *["x" * 500000] * 2), None, "error")
            if not victim.runs():
                break
        wait_for(lambda: not victim.runs(), f"the end of a broker: {victim.said()}", 120)
        holds("No space left on device" in victim.said(), victim.said())
        victim.end(signal.SIGKILL)
        kafka.resize_disk(2, 200 << 20)
        kafka.start(2)
        kafka.wait_isr()


@suite.test
def users_may_do_only_what_is_allowed():
    """SASL_SSL, SCRAM, and Kafka's authorizer."""
    with brokers.Brokers(version=VERSION, secure=True) as kafka:
        kafka.make_topics({"secret": 1})
        kafka.add_user("alice", "wonderland")
        alice = Producer(kafka.client({"message.timeout.ms": 60000}, "alice", "wonderland"))

        def error():
            errors = []
            try:
                alice.produce("secret", "x", on_delivery=lambda error, _: errors.append(error))
            except KafkaException as refused:
                return refused.args[0]
            alice.flush(100)
            return errors[0]
        equal(error().code(), confluent_kafka.KafkaError.TOPIC_AUTHORIZATION_FAILED, "code")
        kafka.allow("alice", ["WRITE", "DESCRIBE"], "TOPIC", "secret")
        wait_for(lambda: error() is None, "a record that is written")
        kafka.disallow("alice", ["WRITE", "DESCRIBE"], "TOPIC", "secret")
        wait_for(lambda: error() is not None, "a record that is refused")
        wrong = Producer(kafka.client({"message.timeout.ms": 3000}, "alice", "wrong"))
        try:
            wrong.list_topics(timeout=3)
            holds(False, "a wrong password was taken")
        except KafkaException:
            pass


@suite.test
def two_brokers_that_are_down_are_too_many():
    """NOT_ENOUGH_REPLICAS, until they are back."""
    with brokers.Brokers(version=VERSION, properties={"broker.session.timeout.ms": 3000,
                                                      "replica.lag.time.max.ms": 3000},
                         each={1: {"num.io.threads": 3}}) as kafka:
        holds("num.io.threads=3" in brokers.read(kafka.broker(1).properties), "no property")
        kafka.make_topics({"held": 1})
        leader = kafka.leader("held")
        others = [number for number in kafka.brokers if number != leader]
        for number in others:
            kafka.kill(number)
        error = write(kafka, "held", "x", **{"message.timeout.ms": 8000})
        holds(error is not None, "a record is acknowledged by a leader alone")
        kafka.start(*others)
        kafka.wait_isr()
        equal(write(kafka, "held", "x"), None, "error")


@suite.test
def nothing_is_left_when_the_process_is_killed():
    """kill -9 of it while the brokers run."""
    code = f"""
import sys
sys.path.insert(0, {HERE!r})
import brokers, time
kafka = brokers.Brokers(1, version={VERSION!r}, disks={{1: 50 << 20}})
kafka.features()
print(kafka.pid(1), kafka.admin.process.pid, kafka.brokers[1].disk.pid, kafka.temporary, flush=True)
time.sleep(1000)
"""
    with subprocess.Popen([sys.executable, "-B", "-c", code], stdout=subprocess.PIPE,
                          text=True) as owner:
        *pids, temporary = owner.stdout.readline().split()
        equal(len(pids), 3, "processes")
        owner.kill()
    brokers.shutil.rmtree(temporary)
    wait_for(lambda: not any(is_alive(pid) for pid in pids), "the end of its processes", 60)


def is_alive(pid):
    """Is it more than a zombie?"""
    return "State:\tZ" not in (brokers.read(f"/proc/{pid}/status") or "State:\tZ")


@suite.test
def shell_scripts_have_clusters_that_end_with_them():
    """By --for."""
    with tempfile.TemporaryDirectory() as directory:
        kafka = os.path.join(directory, "kafka")
        script = f"""set -eu
{COMMAND} start {kafka} --for $$ --version {VERSION} --brokers 1
{COMMAND} topic {kafka} one 3
{COMMAND} leader {kafka} one 2
{COMMAND} pid {kafka} 1
read -r _
"""
        with subprocess.Popen(["bash", "-c", script], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as shell:
            address, leader, pid = (shell.stdout.readline().strip() for _ in range(3))
            holds(address.startswith("127.0.0.1:"), address)
            equal(leader, "1", "leader")
            shell.kill()
        wait_for(lambda: not is_alive(pid), "the end of the broker", 60)
        done = subprocess.run([COMMAND, "stop", kafka], capture_output=True, text=True,
                              check=False)
        equal(done.returncode, 1, "status")
        holds("no cluster runs in" in done.stderr, done.stderr)


if __name__ == "__main__":
    suite.main()
