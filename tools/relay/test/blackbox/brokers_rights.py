# SPDX-License-Identifier: GPL-2.0
"""The rights that a relay needs on a cluster with SASL_SSL and Kafka's own authorizer: with all of
them it works, and where one is missing it says which resource that is, and loses nothing.
"""

import functools
import os
import re
import threading

from cluster import alone_cluster, offers, open_cluster
from brokers_promises import take_back
from ledger import wait_for
from scene import Scene, short_session
from suite import suite
from tap import equal, holds
from trial import AT_LEAST_ONCE, EXACTLY_ONCE, delivery, modes

# What is due later than twice the horizon, and is read in time, goes to the first bucket.
HORIZON_S = 10
FAR_MS = 27000
# How a message says that it is a right that is missing.
NOT_ALLOWED = re.compile("not allowed|may not|authoriz|denied|right", re.I)
lock = threading.Lock()


@functools.cache
def secure_cluster():
    """One broker, with an authorizer; all tests of this file share it."""
    return alone_cluster(brokers=1, secure=True)


# --- rights -------------------------------------------------------------------------------

def rights_of(scene, mode):
    """{name: (operation, kind, resource)} of all rights that this relay needs. (IdempotentWrite
    is not one: since Kafka 2.8, Write of any topic includes it.)"""
    topic, first = scene.topic, scene.buckets[0]
    rights = {
        "read_of_delays": ("READ", "TOPIC", topic),
        "read_of_a_bucket": ("READ", "TOPIC", first),
        "write_to_a_bucket": ("WRITE", "TOPIC", first),
        "write_to_a_target": ("WRITE", "TOPIC", scene.target("t")),
        "write_to_dead_letters": ("WRITE", "TOPIC", scene.target("t") + ".dead"),
        "write_to_invalid_ones": ("WRITE", "TOPIC", f"{topic}.invalid"),
        "read_of_the_group": ("READ", "GROUP", scene.group),
    }
    if offers("--delivery"):
        for name in ("done", "cancelled"):
            for operation in ("READ", "WRITE"):
                rights[f"{operation.lower()}_of_{name}"] = (operation, "TOPIC", f"{topic}-{name}")
    if mode == EXACTLY_ONCE:
        rights["write_of_the_transactional_id"] = ("WRITE", "TRANSACTIONAL_ID", scene.group)
    return rights


def others_of(scene):
    """Rights that are never missing here: another target, other buckets, and the settings of
    topics."""
    yield ("WRITE", "TOPIC", scene.target("u"))
    # So the relay knows of this one, and does not know that it may not write it.
    yield ("DESCRIBE", "TOPIC", scene.target("t"))
    for bucket in scene.buckets[1:]:
        yield ("READ", "TOPIC", bucket)
        yield ("WRITE", "TOPIC", bucket)
    for topic in (scene.topic, *scene.buckets, f"{scene.topic}-done", f"{scene.topic}-cancelled"):
        yield ("DESCRIBE_CONFIGS", "TOPIC", topic)
        yield ("DESCRIBE", "TOPIC", topic)


def allow(cluster, user, right):
    """Give a right. Names of transactional ids begin with that of the group."""
    operation, kind, name = right
    cluster.allow(user, [operation], kind, name, prefixed=kind == "TRANSACTIONAL_ID")


# --- a relay ------------------------------------------------------------------------------

def secured(scene, user, *options):
    """A relay that comes with TLS, as a user."""
    relay = scene.relay("--config", "", *options)
    relay.brokers = scene.cluster.secure_address
    path = os.path.join(relay.temporary, "config")
    with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="utf-8") as config:
        config.write(f"security.protocol=sasl_ssl\nssl.ca.location={scene.cluster.certificate}\n"
                     f"sasl.mechanisms=SCRAM-SHA-512\nsasl.username={user}\n"
                     f"sasl.password={user}-secret\n")
    relay.options[relay.options.index("--config") + 1] = path
    return relay


def told(relay, resource):
    """The message of the relay that this resource is not allowed."""
    for line in relay.said().splitlines():
        words = line.partition(": ")[2]
        if resource in words and NOT_ALLOWED.search(words) and not words.startswith("kafka: "):
            return words
    return None


def wait_with_starts(scene, relay):
    """Wait for all records; as systemd does, start the relay again when it has ended."""
    def goes_on():
        if relay.process.poll() is not None:
            relay.launch()
        return not scene.ledger.missing()
    wait_for(goes_on, "all records")


def write_to_map(scene):
    """There is something to read of what is done: else a relay needs no right for that."""
    for number in range(scene.partitions):
        scene.ledger.producer.produce(f"{scene.topic}-done", key=b"x", value=b"x",
                                      partition=number)
    scene.ledger.flush()


def send_some(scene):
    """Near ones, far ones, dead letters and invalid ones, and one that is taken back; returns
    those of another target."""
    others = set()
    for _ in range(20):
        scene.send(delay=0)
        others.add(scene.send("u", delay=0).number)
        scene.send(delay=FAR_MS)
        scene.send(attempt=25)
        scene.ledger.send_invalid([], "there is no twheel-target")
    gone = scene.send(delay=FAR_MS, key=b"k", record_id=b"gone").number
    scene.ledger.flush()
    scene.reader.catch_up()
    take_back(scene, [gone])
    scene.ledger.never.add(gone)
    return others


def try_without(mode, lacking):
    """A relay that lacks a right, which it is given once it has said so."""
    open_cluster().need_scram()
    with lock:
        cluster = secure_cluster()
    with Scene(partitions=2, targets={"t": 1, "u": 1}, horizon_s=HORIZON_S, cluster=cluster,
               options=[*short_session(), *delivery(mode)]) as scene:
        user = f"user-{scene.topic}"
        # Topics are there.
        scene.options.remove("--create")
        cluster.add_user(user, f"{user}-secret")
        rights = rights_of(scene, mode)
        for name, right in rights.items():
            if name != lacking:
                allow(cluster, user, right)
        for right in others_of(scene):
            allow(cluster, user, right)
        write_to_map(scene)
        relay = secured(scene, user).launch()
        others = send_some(scene)
        words = None
        if lacking:
            resource = rights[lacking][2]
            wait_for(lambda: told(relay, resource) or not scene.ledger.missing(),
                     f"a message about {resource} of {relay.said()[-3000:]}")
            words = told(relay, resource)
            holds(words, f"all came without {rights[lacking]}")
            if lacking == "write_to_a_target":
                wait_for(lambda: not scene.ledger.missing() & others, "those of another target")
            allow(cluster, user, rights[lacking])
        wait_with_starts(scene, relay)
        verdict = scene.finish(by_contract=True)
        return f"{words.replace(scene.topic, 'delays')}\n{verdict}" if words else verdict


def add_tests():
    """A test for each right and --delivery."""
    class Names:
        """As much of a Scene as names of rights need."""
        topic, group, buckets = "delays", "group", ["b"]

        @staticmethod
        def target(name):
            """A name."""
            return name
    for mode in modes():
        end = "" if mode == AT_LEAST_ONCE else "_exactly_once"
        suite.add(f"with_all_rights_and_sasl_ssl_all_records_come{end}",
                  functools.partial(try_without, mode, None), True)
        for name in rights_of(Names, mode):
            suite.add(f"without_the_right_{name}_the_relay_says_so_and_loses_nothing{end}",
                      functools.partial(try_without, mode, name), True)


add_tests()


@suite.together
def without_the_right_to_create_topics_the_relay_names_them():
    open_cluster().need_scram()
    with lock:
        cluster = secure_cluster()
    with Scene(partitions=1, cluster=cluster, options=short_session()) as scene:
        user = f"user-{scene.topic}"
        cluster.add_user(user, f"{user}-secret")
        allow(cluster, user, ("READ", "GROUP", scene.group))
        relay = secured(scene, user)
        relay.address = missing = f"{scene.topic}-2"
        relay.launch()
        wait_for(lambda: relay.process.poll() is not None, "its end")
        equal(relay.process.poll(), 1, "exit status")
        relay.process = None
        holds(told(relay, missing), f"it said: {relay.said()}")
        return told(relay, missing)
