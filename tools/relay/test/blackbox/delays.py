# SPDX-License-Identifier: GPL-2.0
"""Records arrive in time and unchanged: near and far ones, odd ones, and by their key."""

import math
import os
import random

from cluster import uses_mock
from ledger import Reader, now_ms, wait_for
from scene import DAY_S, Scene, TooLate
from suite import in_time, many, suite
from tap import equal, holds

HOUR_S = 3600
# A day of scaled time takes this many ms, and a minute less than one.
SCALE = 200000


# --- near ---------------------------------------------------------------------------------

@suite.together
def near_records_come_at_their_time_and_not_before():
    with Scene() as scene:
        scene.start()
        for n in range(many(1000, 20000)):
            scene.send(delay=random.randint(0, 5000), key=b"%d" % n, value=os.urandom(n % 300))
        for _ in range(100):
            scene.send(deliver_at=now_ms() + random.randint(1, 3000))
        for delay in (0, 1, 2, 999, 1000, 1001):
            scene.send(delay=delay)
        return scene.finish()


@suite.together
def records_that_are_already_due_come_at_once():
    with Scene() as scene:
        scene.start()
        for deliver_at in (978307200000, now_ms() - 10**9, now_ms() - 1, now_ms()):
            scene.send(deliver_at=deliver_at)
        scene.send(delay=0)
        if uses_mock():
            # The timestamp of a record may be in the past; the topics that a relay creates have
            # the brokers' timestamps.
            scene.send(delay=DAY_S * 1000, timestamp=now_ms() - 2 * DAY_S * 1000)
            scene.send(delay=0, timestamp=1)
        return scene.finish()


@suite.together
def a_relay_that_starts_later_finds_earlier_records():
    with Scene() as scene:
        for _ in range(300):
            scene.send(delay=random.randint(0, 8000))
        scene.ledger.flush()
        scene.start()
        return scene.finish()


@suite.together
def far_records_of_a_partition_hold_up_nothing_behind_them():
    with Scene(partitions=1, scale=2000) as scene:
        scene.start()
        far = [scene.send(delay=10 * DAY_S * 1000) for _ in range(200)]
        near = [scene.send(delay=random.randint(0, 2000 * 1000)) for _ in range(200)]
        scene.ledger.flush()
        numbers = {sent.number for sent in near}
        scene.ledger.wait_for(numbers)
        left = scene.ledger.missing()
        equal(left, {sent.number for sent in far}, "what has not arrived")
        # These records are in buckets, and wait for ten minutes.
        scene.stop()
        return f"200 came, and 200 in {len(scene.ledger.parked())} places of buckets wait"


# --- far ----------------------------------------------------------------------------------

def some_delays():
    """Delays of hours and up to 30 days; many more short ones than long ones."""
    for seconds in (HOUR_S, 5 * HOUR_S, DAY_S, 3 * DAY_S, 7 * DAY_S, 29 * DAY_S, 30 * DAY_S):
        yield seconds * 1000
    for _ in range(many(600, 5000)):
        yield random.randrange(30 * DAY_S * 1000 >> random.randrange(14))


def check_moves(scene):
    """Check that no record was parked more often than the contract allows; returns the most."""
    scene.count_on_the_group()
    ledger, most = scene.ledger, 0
    inputs = ledger.inputs()
    for number, records in ledger.parked().items():
        places = {record.place() for record in inputs[number]}
        made_ms = inputs[number][0].made_ms
        remaining = ledger.sent[number].due(made_ms)[0] - made_ms
        bound = math.log2(max(1, remaining / scene.horizon_ms)) + 1
        holds(len(records) <= bound, f"{len(records)} moves of a record of {remaining} ms, whose "
              f"bound is {bound:.2f}: {records}")
        for record in records:
            equal(record.partition, inputs[number][0].partition, f"the partition of {record}")
            holds(record.header("twheel-id") in places, f"the id of {record} is not of {places}")
        most = max(most, len(records))
    return most


@suite.together
@in_time
def delays_up_to_30_days_go_through_buckets_within_the_bound_of_moves(times):
    with Scene(horizon_s=600, scale=SCALE // times) as scene:
        scene.start()
        for delay in some_delays():
            scene.send(delay=delay, key=os.urandom(2), partition=random.randrange(2))
        verdict = scene.finish()
        most = check_moves(scene)
        if most <= 4:
            raise TooLate(f"{most} moves are few: are there buckets?")
        return f"{verdict}; {most} moves at most"


@suite.together
def a_relay_with_another_horizon_takes_over_the_buckets():
    with Scene(horizon_s=HOUR_S, scale=100000) as scene:
        relay = scene.start()
        for _ in range(400):
            scene.send(delay=random.randrange(12 * DAY_S * 1000))
        scene.ledger.flush()
        scene.reader.catch_up()
        scene.stop()
        place = relay.options.index("--horizon") + 1
        equal(relay.options[place], f"{HOUR_S}s")
        relay.options[place] = f"{4 * HOUR_S}s"
        relay.start()
        return scene.finish()


@suite.together
@in_time
def records_of_others_in_a_bucket_block_nothing(_):
    with Scene(partitions=1, horizon_s=HOUR_S, scale=10000) as scene:
        scene.start()
        year_ms = 365 * DAY_S * 1000
        lies = [[("twheel-parked", b"%d" % (now_ms() + year_ms))], [("twheel-parked", b"soon")], []]
        for bucket in scene.buckets:
            for lie in lies:
                headers = lie + [("twheel-target", scene.target("t").encode()),
                                 ("twheel-due", b"%d" % (now_ms() + year_ms))]
                scene.ledger.producer.produce(bucket, value=b"lie", headers=headers)
            scene.ledger.producer.produce(bucket, value=b"no headers")
        scene.ledger.foreign.add(b"no headers")
        scene.ledger.flush()
        for _ in range(100):
            scene.send(delay=random.randrange(DAY_S * 1000))
        scene.ledger.flush()
        scene.ledger.wait()
        refused = scene.reader.records[f"{scene.topic}.invalid"]
        wait_for(lambda: len(refused) >= len(scene.buckets), "those without headers")
        verdict = scene.finish()
        scene.count_on_the_group()
        equal([record.value for record in refused], [b"no headers"] * len(scene.buckets))
        return verdict


# --- odd ----------------------------------------------------------------------------------

def odd_records():
    """Odd records to send: arguments of Ledger.send()."""
    binary = bytes(range(256))
    yield {"value": None}
    yield {"value": None, "key": None}
    yield {"value": b"", "key": b""}
    yield {"value": b"", "key": None}
    yield {"value": binary, "key": binary}
    yield {"value": b"x", "key": b"k" * 5000}
    yield {"headers": [("a", b"1"), ("a", b"2"), ("b", b"3"), ("a", b"1")]}
    yield {"headers": [("empty", b""), ("null", None), ("binary", binary), ("", b"no name")]}
    yield {"headers": [(f"h{n}", b"v" * n) for n in range(200)]}
    yield {"headers": [("\u00e4\u20ac", "\u00f6".encode())]}
    yield {"headers": [("Twheel-Target", b"x"), ("twheel", b"y"), ("twheel-", b"z")]}
    # Headers that only the relay writes: none of them is passed on.
    yield {"headers": [("twheel-due", b"x"), ("twheel-parked", b"7"), ("twheel-error", b"no")]}
    yield {"headers": [("twheel-target", b"the last one holds")]}
    yield {"record_id": b"an id of the sender's, \xc3\xa4"}
    yield {"record_id": b""}
    yield {"value": os.urandom(900000)}


@suite.together
@in_time
def odd_records_come_unchanged_near_and_through_buckets(times):
    with Scene(horizon_s=HOUR_S, scale=40000 // times) as scene:
        scene.start()
        for record in odd_records():
            for delay in (0, 20000000, 100000000):
                scene.send(delay=delay, **record)
        # With a delay, the number of attempts is passed on.
        for attempt in (0, 1, 24, 25, 4294967295):
            sent = scene.send(delay=100, headers=[("twheel-attempt", b"%d" % attempt)])
            sent.attempt = attempt
        verdict = scene.finish()
        if len(scene.ledger.parked()) <= 10:
            raise TooLate("no records were parked")
        return verdict


@suite.together
def records_come_unchanged_with_every_compression():
    with Scene(horizon_s=HOUR_S, scale=40000) as scene:
        scene.start("-X", "compression.type=lz4")
        for codec in ("gzip", "lz4", "snappy", "zstd", "none"):
            scene.ledger.use({"compression.type": codec, "linger.ms": 50})
            for n in range(200):
                scene.send(delay=random.randrange(200000000), value=b"again and again " * (n % 50))
            scene.ledger.flush()
        return scene.finish()


# --- keys ---------------------------------------------------------------------------------

def by_key(records):
    """{key: partitions}."""
    found = {}
    for record in records:
        found.setdefault(record.key, set()).add(record.partition)
    return found


@suite.together
def a_key_stays_in_the_partition_that_a_producer_would_choose():
    keys = [b"%d" % n for n in range(60)] + [b"", os.urandom(100)]
    targets = {"three": 3, "seven": 7}
    with Scene(targets=targets, horizon_s=HOUR_S, scale=40000) as scene:
        scene.start()
        # The same keys, by a client that chooses partitions as clients in Java do.
        expected = {name: f"{scene.topic}.direct.{count}" for name, count in targets.items()}
        direct = {topic: targets[name] for name, topic in expected.items()}
        scene.cluster.make_topics(direct)
        reader = Reader(scene.cluster.address, direct)
        for topic in direct:
            for key in keys:
                scene.ledger.producer.produce(topic, key=key, value=b"")
        for name in targets:
            for key in keys * 4:
                scene.send(name, delay=random.choice((0, 2000, 30000000, 90000000)), key=key)
        verdict = scene.finish()
        reader.catch_up()
        reader.close()
        for name, topic in expected.items():
            seen = by_key(scene.reader.records[scene.target(name)])
            equal(seen, by_key(reader.records[topic]), f"partitions of {name}")
            holds(all(len(partitions) == 1 for partitions in seen.values()), seen)
        return verdict
