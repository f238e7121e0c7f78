# SPDX-License-Identifier: GPL-2.0
"""The brokers that all tests of a program share, with what the tests of the relay do to them, by
the names that the mock has for it too."""

import contextlib
import os

from confluent_kafka.admin import NewTopic

from brokers import PATIENCE_S, Brokers
from tap import Skip, wait_for

# A broker that was killed comes back only after its session, which is 9 s by default. Groups are
# forgotten soon, so that a test can wait for it.
PROPERTIES = {"broker.session.timeout.ms": 5000, "broker.heartbeat.interval.ms": 500,
              "offsets.retention.minutes": 1, "offsets.retention.check.interval.ms": 5000,
              "group.min.session.timeout.ms": 1000}
# Longer than the session of a broker, and shorter.
FENCED_S = 10
# The data of a broker whose disk a test fills up.
DISK = 3
DISK_BYTES = 512 << 20


class Rig(Brokers):
    """Three brokers, of which the last has a small disk, if this user may mount one."""

    def __init__(self, version="3.9", brokers=3, properties=(), disks=None, **how):
        self.count = brokers
        if disks is None:
            disks = {DISK: DISK_BYTES} if brokers >= DISK else {}
        try:
            super().__init__(brokers, version=version, disks=disks,
                             properties=PROPERTIES | dict(properties), **how)
        except Skip:
            if not disks:
                raise
            super().__init__(brokers, version=version,
                             properties=PROPERTIES | dict(properties), **how)

    def another(self, **how):
        """Brokers of the same version."""
        return Rig(self.version, disks={}, **how)

    # --- what the mock can do, too ------------------------------------------------------------

    def numbers(self, broker):
        """[@broker], or all for "all"."""
        return list(self.brokers) if broker == "all" else [broker]

    def down(self, broker):
        for number in self.numbers(broker):
            self.kill(number)

    def up(self, broker):
        self.start(*self.numbers(broker))
        self.wait_isr()

    def hide(self, topic):
        self.delete_topics(topic)

    def show(self, topic, partitions):
        self.make_topics({topic: partitions})

    def drop(self, topic, partition, before):
        self.delete_records(topic, {partition: before})

    def wait_topics(self, topics):
        known = self.topics()
        self.wait_isr(*(topic for topic in topics if topic in known))

    # --- more ---------------------------------------------------------------------------------

    def topics(self):
        """The names of all topics."""
        return set(self.metadata().topics)

    def in_sync(self, topic, partition):
        """The brokers that are in sync, by one of them."""
        return set(self.partitions(topic)[partition].isrs)

    def remake(self, topic, partitions, replicas=None, config=()):
        """Delete a topic and make it again; @replicas are the brokers that have it."""
        self.delete_topics(topic)
        how = ({"replica_assignment": [list(replicas)] * partitions} if replicas else
               {"replication_factor": -1})
        self.metadata()
        new = NewTopic(topic, partitions, config=dict(config), **how)
        self.clients[None].create_topics([new], operation_timeout=60)[topic].result(PATIENCE_S)
        self.wait_partitions(topic, partitions)

    @contextlib.contextmanager
    def full_disk(self):
        """While this is open, the disk of broker DISK is full. A broker without a directory that
        it can write ends."""
        broker = self.brokers[DISK]
        if not broker.disk:
            raise Skip("this user may not mount a small disk")
        path = broker.path("fill")
        with contextlib.suppress(OSError), open(path, "wb") as file:
            while True:
                file.write(b"\0" * (1 << 20))
                file.flush()
        try:
            yield broker
        finally:
            os.unlink(path)
            if not broker.runs():
                broker.process = None
                self.start(DISK)

    def leave(self, topics):
        """Delete the topics of a scene: brokers take memory for each, and become slow. Nobody waits
        for it, but with a timeout of 0 brokers would not even begin."""
        with contextlib.suppress(Exception):
            there = self.topics() & set(topics)
            if there:
                self.clients[None].delete_topics(sorted(there), operation_timeout=PATIENCE_S)

    def wait_ended(self, number):
        """Wait until a broker has ended by itself."""
        wait_for(lambda: not self.brokers[number].runs(), f"the end of broker {number}",
                 PATIENCE_S)
