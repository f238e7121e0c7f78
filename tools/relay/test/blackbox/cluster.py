# SPDX-License-Identifier: GPL-2.0
"""Clusters of Kafka: mock_cluster as a process, or an existing one (KAFKA=HOST:PORT)."""

import os
import shutil
import subprocess
import tempfile

from confluent_kafka.admin import AdminClient, NewTopic

import process
from tap import Skip

HERE = os.path.dirname(os.path.abspath(__file__))
RELAY = os.environ.get("TWHEEL_RELAY", os.path.join(HERE, "..", "..", "twheel-relay"))
MOCK = os.environ.get("MOCK_CLUSTER", os.path.join(HERE, "..", "mock_cluster"))
KAFKA = os.environ.get("KAFKA")


class Cluster:
    """The common part of both kinds of clusters."""

    name = "cluster"
    is_mock = False

    def __init__(self):
        self.address = None
        with process.running_lock:
            process.running.add(self)

    def addresses(self):
        """The addresses of all brokers."""
        metadata = AdminClient({"bootstrap.servers": self.address}).list_topics(timeout=60)
        return [f"{broker.host}:{broker.port}" for broker in metadata.brokers.values()]

    def make_topics(self, topics):
        """{name: partitions}."""
        raise NotImplementedError

    def tell(self, *words):
        """Send a command, which only the mock understands."""
        raise Skip(f"only the mock can be told: {' '.join(map(str, words))}")

    def said(self):
        """The log, for the analysis of a failure."""
        return ""

    def close(self):
        """Close the cluster."""
        with process.running_lock:
            process.running.discard(self)


class Mock(Cluster):
    """mock_cluster; the head of its source lists its commands."""

    name = "mock_cluster"
    is_mock = True

    def __init__(self, brokers=3):
        super().__init__()
        self.directory = tempfile.mkdtemp(prefix="queue-kafka-")
        self.log = os.path.join(self.directory, "log")
        with open(self.log, "ab") as log:
            # pylint: disable=consider-using-with
            self.process = subprocess.Popen([MOCK, str(brokers)], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=log, text=True)
        self.address = self.process.stdout.readline().strip()
        if not self.address:
            raise process.NotUp(f"{MOCK}: {self.said()}")

    def addresses(self):
        return self.address.split(",")

    def tell(self, *words):
        line = " ".join(map(str, words))
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if answer != "ok":
            raise AssertionError(f"mock_cluster: {line}: {answer or 'it has ended'}")

    def make_topics(self, topics):
        for topic, partitions in topics.items():
            self.tell("topic", topic, partitions)

    def said(self):
        with open(self.log, encoding="utf-8", errors="replace") as log:
            return log.read()

    def close(self):
        super().close()
        self.process.stdin.close()
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        shutil.rmtree(self.directory, ignore_errors=True)


class Real(Cluster):
    """An existing cluster. Topics that tests create there stay: each has a name of its own."""

    def __init__(self):
        super().__init__()
        self.address = KAFKA

    def make_topics(self, topics):
        admin = AdminClient({"bootstrap.servers": self.address})
        new = [NewTopic(topic, partitions, -1) for topic, partitions in topics.items()]
        for made in admin.create_topics(new, operation_timeout=60).values():
            made.result(120)


def open_cluster(brokers=3):
    """The cluster of KAFKA, or a new mock."""
    return Real() if KAFKA else Mock(brokers)


def need_mock(why):
    """Skip the test if the cluster is not the mock, whose commands it needs."""
    if KAFKA:
        raise Skip(why)
