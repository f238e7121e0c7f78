# SPDX-License-Identifier: GPL-2.0
"""Clusters of Kafka: mock_cluster as a process, brokers that all tests of a program share, or an
existing cluster (KAFKA=HOST:PORT).
"""

import functools
import os
import shutil
import subprocess
import tempfile

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, ConfigResource, ConfigSource, NewTopic

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

    def wait_topics(self, topics):
        """Wait until all brokers know these topics."""

    def tell(self, *words):
        """Send a command, which only the mock understands."""
        raise Skip(f"only the mock can be told: {' '.join(map(str, words))}")

    def down(self, broker):
        """Let a broker, or "all", be gone."""
        raise Skip("brokers of an existing cluster are left alone")

    def up(self, broker):
        """Let it be there again."""
        raise NotImplementedError

    def hide(self, topic):
        """Let a topic be missing."""
        raise NotImplementedError

    def show(self, topic, partitions):
        """Let it be there again."""
        raise NotImplementedError

    def configure_topic(self, topic, config):
        """Change settings of a topic."""
        raise Skip("the mock's topics have no settings")

    def limit(self, topic, size, broker):
        """Let a topic refuse a record of more bytes than this; the mock needs to know its only
        broker."""
        self.configure_topic(topic, {"max.message.bytes": str(size)})

    def drop(self, topic, partition, before):
        """Delete the records of a partition below an offset."""
        raise NotImplementedError

    def leave(self, topics):
        """A scene, whose topics these are, has ended."""
        self.close()

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

    def down(self, broker):
        self.tell("broker", broker, "down")

    def up(self, broker):
        self.tell("broker", broker, "up")

    def hide(self, topic):
        self.tell("topic-error", topic, "UNKNOWN_TOPIC_OR_PART")

    def show(self, topic, partitions):
        self.tell("topic-error", topic, "NO_ERROR")

    def limit(self, topic, size, broker):
        # In a batch, and alone.
        self.tell("error", broker, "Produce", 2, "MSG_SIZE_TOO_LARGE")

    def drop(self, topic, partition, before):
        # The mock keeps 5 MB of a partition: more records than that, which nobody will see.
        producer = Producer({"bootstrap.servers": self.address, "log_level": 0})
        for n in range(8000):
            producer.produce(topic, value=b"x" * 1000, partition=partition)
            if not n % 100:
                producer.flush()
        producer.flush()

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


class Existing(Cluster):
    """An existing cluster. Topics that tests create there stay: each has a name of its own."""

    def __init__(self):
        super().__init__()
        self.address = KAFKA

    def admin_client(self):
        """A client for the administration."""
        return AdminClient({"bootstrap.servers": self.address, "log_level": 0})

    def make_topics(self, topics):
        done(self.admin_client().create_topics([NewTopic(topic, partitions, -1)
                                                for topic, partitions in topics.items()],
                                               operation_timeout=60))

    def hide(self, topic):
        done(self.admin_client().delete_topics([topic], operation_timeout=60))

    def show(self, topic, partitions):
        self.make_topics({topic: partitions})

    def configure_topic(self, topic, config):
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        before = done(self.admin_client().describe_configs([resource]))[0].values()
        # Kafka forgets what is not named.
        own = {entry.name: entry.value for entry in before
               if entry.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value}
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, {**own, **config})
        done(self.admin_client().alter_configs([resource]))

    def drop(self, topic, partition, before):
        raise Skip("records that are deleted")


def done(futures):
    """Wait for what a client for the administration was told; the results."""
    return [future.result(120) for future in futures.values()]


# --- the cluster of a program -------------------------------------------------------------

class Shared:
    """The brokers that all tests of a program share, if there are any."""

    brokers = None


def share(cluster):
    """Let all scenes from now on use these brokers."""
    Shared.brokers = cluster


def uses_mock():
    """Is the cluster that tests get by default a mock?"""
    return not KAFKA and not Shared.brokers


def open_cluster(brokers=3):
    """The brokers that are shared, the cluster of KAFKA, or a new mock."""
    return Shared.brokers or (Existing() if KAFKA else Mock(brokers))


def alone_cluster(**how):
    """Brokers for one test, of the kind of the shared ones."""
    if not Shared.brokers:
        raise Skip("this needs brokers of its own")
    return Shared.brokers.another(**how)


def need_mock(why):
    """Skip the test if the cluster is not the mock, whose commands it needs."""
    if not uses_mock():
        raise Skip(f"only the mock has {why}")


def need_own(why):
    """Skip the test if the cluster is an existing one, which nobody may disturb."""
    if KAFKA and not Shared.brokers:
        raise Skip(why)


@functools.cache
def offers(option):
    """Has the relay this option?"""
    return option in subprocess.run([RELAY, "--help"], capture_output=True, text=True,
                                    check=True).stdout
