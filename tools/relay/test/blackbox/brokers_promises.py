# SPDX-License-Identifier: GPL-2.0
"""Promises of the relay that version 1 did not keep, on real brokers: what is hopeless holds up
nobody, many near records are not repeated, what is due soon is not behind what is due later.
"""

import os
import random
import signal
import time

from confluent_kafka import Consumer, TopicPartition

from ledger import now_ms, wait_for
from scene import Scene, TooLate, short_session
from suite import in_time, many, suite
from tap import Skip, equal, holds
from cluster import alone_cluster, offers
from trial import AT_LEAST_ONCE, EXACTLY_ONCE, Watch, delivery, modes

# When a target that does not exist is known to be missing.
SOON = ("-X", "topic.metadata.propagation.max.ms=1000")
# By then what was held up for good has shown.
PATIENCE_S = 90
# A record of a missing target waits so long at its third try.
SHORT_S = 90


def each_mode(test):
    """A decorator: the test for each --delivery; it gets the options for it."""
    for mode in modes():
        def run(mode=mode):
            return in_time(named(test, lambda times: test(times, delivery(mode))))()
        name = test.__name__ + ("" if mode == AT_LEAST_ONCE else "_exactly_once")
        suite.add(name, run, True)
    return test


def named(test, run):
    """@run with the name of the test."""
    run.__name__ = test.__name__
    return run


# --- what is hopeless ---------------------------------------------------------------------

@each_mode
def records_of_a_missing_target_that_fill_memory_hold_up_no_others(_, options):
    with Scene(partitions=2, targets={"t": 3, "gone": 1}, horizon_s=SHORT_S,
               options=[*options, *short_session()]) as scene:
        scene.cluster.hide(scene.target("gone"))
        scene.start("--memory", "2M", *SOON)
        for _ in range(4000):
            scene.send("gone", delay=0, value=os.urandom(600))
        scene.ledger.flush()
        good = {scene.send(delay=0).number for _ in range(100)}
        scene.ledger.flush()
        scene.ledger.wait_for(good, PATIENCE_S)
        parked = [len(records) for records in scene.ledger.parked().values()]
        scene.cluster.show(scene.target("gone"), 1)
        verdict = scene.finish()
        return (f"{verdict}; {len(parked)} of 4000 were parked, {max(parked, default=0)} times "
                "at most, before the last of the others came")


@each_mode
def a_mistyped_target_does_not_stop_its_partition_when_retention_passes_it(_, options):
    with Scene(partitions=1, targets={"t": 3, "gone": 1}, horizon_s=SHORT_S,
               options=[*options, *short_session()]) as scene:
        scene.cluster.hide(scene.target("gone"))
        relay = scene.start(*SOON)
        hopeless = scene.send("gone", delay=0)
        for _ in range(50):
            scene.send(delay=0)
        scene.ledger.flush()
        wait_for(lambda: scene.ledger.missing() == {hopeless.number}, "all others")
        end = time.monotonic() + PATIENCE_S / 2
        while not scene.committed()[scene.topic, 0].offset > 0 and time.monotonic() < end:
            time.sleep(0.1)
        scene.cluster.drop(scene.topic, 0, 51)
        equal(relay.stop(), 0, "exit status")
        relay.start()
        equal(scene.is_stopped(0), False, "the partition is stopped")
        later = {scene.send(delay=0).number for _ in range(50)}
        scene.ledger.flush()
        scene.ledger.wait_for(later, PATIENCE_S)
        scene.cluster.show(scene.target("gone"), 1)
        return scene.finish()


def partitions_are_shared(scene):
    """Start another relay; how long it took until both have partitions, in s."""
    begun = time.monotonic()
    relay = scene.relay().launch()
    wait_for(lambda: relay.answers() and
             all(one.metrics()["partitions"] for one in scene.relays), "partitions for both")
    return time.monotonic() - begun


@each_mode
def a_revoke_does_not_wait_for_records_of_a_missing_target(times, options):
    # Less than the ten seconds that a flush would wait.
    limit_s = 7
    with Scene(partitions=4, targets={"t": 3, "gone": 1}, horizon_s=SHORT_S,
               options=[*options, *short_session(times)]) as scene:
        scene.cluster.hide(scene.target("gone"))
        first = scene.start()
        all_of_them = first.metrics()["partitions"]
        quick = partitions_are_shared(scene)
        if quick > limit_s / 2:
            raise TooLate(f"without such records it takes {quick:.1f} s")
        equal(scene.relays.pop().stop(), 0, "exit status")
        wait_for(lambda: first.metrics()["partitions"] == all_of_them, "all partitions")
        for n in range(20):
            scene.send("gone", delay=0, partition=n % 4)
        scene.ledger.flush()
        wait_for(lambda: first.metrics()["records"] == 20 or first.metrics()["targets_failing"],
                 "records that wait")
        slow = partitions_are_shared(scene)
        holds(slow < limit_s, f"{slow:.1f} s, and {quick:.1f} s without such records")
        scene.cluster.show(scene.target("gone"), 1)
        return f"{slow:.1f} s, and {quick:.1f} s without; {scene.finish()}"


# --- many near records --------------------------------------------------------------------

@each_mode
def an_orderly_end_amid_many_near_records_repeats_nothing(times, options):
    count = many(20000, 200000)
    with Scene(partitions=1, targets={"t": 3}, options=[*options, *short_session(times)]) as scene:
        relay = scene.start()
        for _ in range(count):
            scene.send(delay=random.randint(5000, 25000) * times, partition=0)
        scene.ledger.flush()
        wait_for(lambda: len(scene.ledger.missing()) < count / 2, "half of them")
        left = len(scene.ledger.missing())
        if left < count / 10:
            raise TooLate(f"only {left} are left")
        equal(relay.stop(), 0, "exit status")
        scene.count_on_the_group()
        relay.start()
        return f"{left} of {count} were near; {scene.finish(most_duplicates=0, strict=True)}"


@each_mode
def kill_9_amid_near_records_repeats_what_the_metric_said_a_second_of_work(times, options):
    count, seconds = 5000, 20
    with Scene(partitions=1, targets={"t": 3}, options=[*options, *short_session(times)]) as scene:
        relay = scene.start()
        watch = Watch(scene)
        for _ in range(count):
            scene.send(delay=random.randint(2000, seconds * 1000) * times, partition=0)
        scene.ledger.flush()
        wait_for(lambda: len(scene.ledger.missing()) < count / 2, "half of them")
        at_ms = now_ms()
        relay.kill()
        since_ms, said = watch.said_before(relay, at_ms)
        watch.close()
        scene.reader.catch_up()
        records = list(scene.reader.records[scene.target("t")])
        times_ms = [record.made_ms for record in records]
        bound = said + sum(since_ms - 100 <= made_ms for made_ms in times_ms)
        # A second of work, and one more until its commit is acknowledged.
        work = sum(at_ms - 2500 <= made_ms for made_ms in times_ms)
        relay.start()
        verdict = scene.finish(most_duplicates=0 if EXACTLY_ONCE in options else bound,
                               strict=True)
        slow_ms = max([record.seen_ms - record.made_ms for record in records
                       if at_ms - 5000 <= record.made_ms < at_ms] or [at_ms])
        if said > work and slow_ms > 1000:
            raise TooLate(f"brokers took {slow_ms} ms for a commit")
        holds(said <= work, f"the metric said {said:.0f}; {work} were done in 2.5 s")
        return f"the metric said {said:.0f}, {work} were done in 2.5 s; {verdict}"


@each_mode
def more_records_at_once_than_the_clients_queue_takes_hold_up_nobody(_, options):
    with Scene(options=[*options, *short_session()]) as scene:
        scene.start("-X", "queue.buffering.max.messages=50")
        due_ms = now_ms() + 3000
        for _ in range(many(1500, 15000)):
            scene.send(deliver_at=due_ms)
        return scene.finish(most_duplicates=0)


# --- memory -------------------------------------------------------------------------------

@each_mode
def with_memory_full_a_record_due_soon_is_not_behind_those_due_later(times, options):
    later_ms = 45000 * times
    with Scene(partitions=1, options=[*options, *short_session()]) as scene:
        scene.start("--memory", "2M")
        due_ms = now_ms() + later_ms
        for _ in range(4000):
            scene.send(deliver_at=due_ms, value=os.urandom(1000))
        scene.ledger.flush()
        soon = scene.send(delay=1000)
        scene.ledger.flush()
        scene.reader.catch_up()
        made_ms = scene.ledger.inputs()[soon.number][0].made_ms
        if made_ms > due_ms - 30000:
            raise TooLate("those due later are due already")
        scene.ledger.wait_for({soon.number})
        came_ms = scene.ledger.arrived()[soon.number][0].made_ms
        holds(came_ms < due_ms, f"it came {came_ms - made_ms} ms after it was sent, behind those "
              f"due {due_ms - made_ms} ms after that")
        return f"it came after {came_ms - made_ms} ms; {scene.finish()}"


# --- timestamps ---------------------------------------------------------------------------

def own_stamps(scene):
    """Let the topic of delays keep the producers' timestamps."""
    scene.cluster.configure_topic(scene.topic, {"message.timestamp.type": "CreateTime"})


@each_mode
def records_stamped_in_the_future_are_not_repeated_after_an_orderly_end(times, options):
    with Scene(partitions=1, options=[*options, *short_session(times)]) as scene:
        own_stamps(scene)
        relay = scene.start()
        # It keeps the committed offset below all others.
        scene.send(delay=25000 * times)
        ahead = {scene.send(deliver_at=now_ms() + 500, timestamp=now_ms() + 60000).number
                 for _ in range(200)}
        scene.ledger.flush()
        scene.ledger.wait_for(ahead)
        equal(relay.stop(), 0, "exit status")
        scene.count_on_the_group()
        scene.count_on(missing=1)
        relay.start()
        return scene.finish(most_duplicates=0, strict=True)


@suite.together
def timestamps_that_producers_make_are_warned_of():
    with Scene(partitions=1, options=short_session()) as scene:
        own_stamps(scene)
        relay = scene.start()
        # Not older than retention: it would be deleted, at any moment.
        scene.send(delay=0, timestamp=now_ms() - 3600 * 1000)
        scene.ledger.flush()
        scene.ledger.wait()
        relay.wait_until_it_says("CreateTime|LogAppendTime|message.timestamp.type")
        return scene.finish()


@suite.together
def the_timestamp_of_a_record_comes_with_it():
    with Scene(horizon_s=3600, scale=20000, options=short_session()) as scene:
        scene.start()
        for delay in (0, 500, 20000000):
            scene.send(delay=delay)
        verdict = scene.finish()
        for records in scene.ledger.arrived().values():
            made_ms = scene.ledger.inputs()[records[0].number()][0].made_ms
            equal(records[0].header("twheel-timestamp"), str(made_ms), "twheel-timestamp")
        return verdict


@suite.together
def a_time_in_seconds_is_invalid():
    with Scene(partitions=1, options=short_session()) as scene:
        scene.start()
        scene.ledger.send_invalid(
            [("twheel-target", scene.target("t").encode()),
             ("twheel-deliver-at", b"%d" % (now_ms() // 1000 + 60))], "twheel-deliver-at")
        return scene.finish()


# --- targets ------------------------------------------------------------------------------

def topics_of(scene):
    """Names of the topics that the cluster has, and that begin as those of the scene."""
    return {name for name in scene.cluster.topics() if name.startswith(scene.topic)}


@suite.test
def a_mistyped_target_makes_no_topic_where_brokers_make_them():
    with alone_cluster(brokers=1, properties={"auto.create.topics.enable": "true"}) as cluster, \
            Scene(partitions=1, horizon_s=SHORT_S, cluster=cluster,
                  options=short_session()) as scene:
        before = topics_of(scene)
        scene.start(*SOON)
        mistyped = scene.target("mistyped")
        scene.send("mistyped", delay=0)
        scene.send(delay=500)
        scene.ledger.flush()
        wait_for(lambda: len(scene.ledger.missing()) < 2, "the other record")
        # The relay tries it at once, and again within 16 s.
        end = time.monotonic() + 18
        while mistyped not in topics_of(scene) and time.monotonic() < end:
            time.sleep(0.2)
        equal(topics_of(scene) - before, set(), "new topics")
        cluster.show(mistyped, 1)
        scene.read_more({mistyped: 1})
        return scene.finish()


@suite.together
def a_target_that_is_not_allowed_is_refused():
    with Scene(partitions=1, targets={"t": 1, "other": 1}, options=short_session()) as scene:
        if not offers("--targets"):
            raise AssertionError("the relay has no --targets")
        scene.start("--targets", f"{scene.topic}[.]to[.]t([.]dead)?")
        for name in (scene.target("other"), "__consumer_offsets"):
            scene.ledger.send_invalid([("twheel-target", name.encode()),
                                       ("twheel-delay", b"0")], "twheel-target")
        scene.send(delay=0)
        return scene.finish()


# --- ends ---------------------------------------------------------------------------------

@suite.test
def an_end_without_brokers_is_reported_by_the_exit_status():
    with alone_cluster(brokers=1) as cluster, \
            Scene(partitions=1, cluster=cluster, options=short_session()) as scene:
        relay = scene.start()
        for _ in range(50):
            scene.send(delay=500)
        scene.ledger.flush()
        scene.ledger.wait()
        # What is due now is done by nobody, and what was done is not committed.
        for _ in range(50):
            scene.send(delay=3000)
        scene.ledger.flush()
        wait_for(lambda: relay.metrics()["records"] == 50, "near records")
        cluster.kill(1)
        time.sleep(4)
        equal(relay.stop(), 69, "exit status")
        cluster.start(1)
        relay.start()
        return scene.finish(by_contract=True)


# --- several relays -----------------------------------------------------------------------

@each_mode
def a_rolling_restart_of_relays_doubles_nothing(times, options):
    with Scene(partitions=6, targets={"t": 3}, options=[*options, *short_session(times)]) as scene:
        relays = [scene.relay().launch() for _ in range(3)]
        wait_for(lambda: all(relay.answers() for relay in relays), "all three")
        with scene.flow(rate=200, delay_ms=20000):
            time.sleep(2)
            for _ in range(many(1, 10)):
                for n, relay in enumerate(relays):
                    equal(relay.end((signal.SIGTERM, signal.SIGINT)[n % 2]), 0, "exit status")
                    relay.start()
        scene.count_on_the_group()
        return f"{3 * many(1, 10)} restarts; {scene.finish(most_duplicates=0, strict=True)}"


@suite.together
def a_relay_that_creates_its_topics_reads_them_at_once():
    with Scene(partitions=12) as scene:
        relay = scene.relay()
        relay.address = topic = f"{scene.topic}-2"
        relay.launch()
        wait_for(lambda: relay.answers() or "0 partitions are assigned" in relay.said(),
                 "partitions")
        try:
            holds(relay.answers(), "it has no partitions")
            equal(relay.stop(), 0, "exit status")
        finally:
            scene.topics |= {name: 0 for name in scene.cluster.topics() if name.startswith(topic)}


# --- take back ----------------------------------------------------------------------------

# A record that is taken back this long before it is due is not delivered.
TAKE_BACK_MS = 5000


def take_back(scene, numbers):
    """Send what takes back the records of these numbers."""
    inputs = scene.ledger.inputs()
    for number in numbers:
        sent, made = scene.ledger.sent[number], inputs[number][0]
        scene.ledger.producer.produce(scene.topic, key=sent.key, value=b"", headers=[
            ("twheel-cancel", sent.header("twheel-id")),
            ("twheel-due", b"%d" % sent.due(made.made_ms)[0])])
    scene.ledger.flush()


def wait_until_taken_back(scene, count):
    """Wait until so many ids are in the topic of those: from then on the promise counts."""
    topic = f"{scene.topic}-cancelled"
    consumer = Consumer({"bootstrap.servers": scene.cluster.address, "group.id": "ends"})

    def ends():
        return sum(consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=30)[1]
                   for number in range(scene.partitions))

    wait_for(lambda: ends() >= count, f"{count} ids in {topic}")
    consumer.close()


@each_mode
def records_that_are_taken_back_5_s_before_they_are_due_do_not_come(times, options):
    with Scene(partitions=6, horizon_s=4 * times, options=[*options, *short_session(times)]
               ) as scene:
        relays = [scene.relay().launch() for _ in range(3)]
        wait_for(lambda: all(relay.answers() for relay in relays), "all three")
        # Near ones, and those in buckets.
        numbers = [scene.send(delay=random.randint(8000, 20000) * times, key=b"%d" % n,
                              record_id=b"id-%d" % n).number for n in range(400)]
        scene.ledger.flush()
        scene.reader.catch_up()
        back = set(random.sample(numbers, 200))
        take_back(scene, back)
        wait_until_taken_back(scene, len(back))
        done_ms = now_ms()
        inputs = scene.ledger.inputs()
        soonest = min(scene.ledger.sent[number].due(inputs[number][0].made_ms)[0]
                      for number in back)
        if soonest < done_ms + TAKE_BACK_MS:
            raise TooLate("they were taken back too late")
        # What brings the others brings those, too.
        relays[0].kill()
        relays[0].start()
        scene.ledger.never |= back
        scene.ledger.flush()
        scene.ledger.wait()
        last_ms = max(scene.ledger.sent[number].due(inputs[number][0].made_ms)[0]
                      for number in numbers)
        wait_for(lambda: now_ms() > last_ms + 2000, "the last one's time")
        return scene.finish(by_contract=True)


# --- exactly once -------------------------------------------------------------------------

@suite.test
def relays_of_one_instance_are_told_and_repeat_nothing():
    if EXACTLY_ONCE not in modes():
        raise Skip("this relay has no --delivery exactly-once")
    with Scene(partitions=2, horizon_s=3600, scale=20000,
               options=[*delivery(EXACTLY_ONCE), *short_session()]) as scene:
        relays = [scene.relay("--instance", "same").launch() for _ in range(2)]
        wait_for(lambda: all(relay.answers() for relay in relays), "both")
        with scene.flow(rate=50, delay_ms=40000000):
            wait_for(lambda: any("its own --instance" in relay.said_now()
                                 for relay in relays), "a log that tells of it")
            relays[1].stop()
        return scene.finish(most_duplicates=0, strict=True)


def kill_relays_and_brokers(scene, relays, kills):
    """A broker is killed for each ten kills of relays, and is away during three of them."""
    broker = None
    for n in range(kills):
        if n % 10 == 2:
            broker = random.choice((1, 2, 3))
            scene.cluster.kill(broker)
        elif n % 10 == 5:
            scene.cluster.start(broker)
        elif n % 10 == 8:
            scene.cluster.wait_isr()
        time.sleep(random.random() * 2)
        relay = random.choice(relays)
        relay.kill_if_it_runs()
        time.sleep(random.random())
        relay.launch()


@suite.test
def kills_of_relays_and_brokers_repeat_nothing_exactly_once():
    kills = suite.options.kills or many(10, 100)
    if EXACTLY_ONCE not in modes():
        raise Skip("this relay has no --delivery exactly-once")
    with Scene(partitions=4, horizon_s=3600, scale=20000,
               options=[*delivery(EXACTLY_ONCE), *short_session()]) as scene:
        relays = [scene.relay("--instance", f"relay-{n}").launch() for n in range(3)]
        wait_for(lambda: all(relay.answers() for relay in relays), "all three")
        watch = Watch(scene)
        with scene.flow(rate=150, delay_ms=80000000):
            kill_relays_and_brokers(scene, relays, kills)
        scene.ledger.flush()
        scene.ledger.wait()
        watch.close()
        return f"{kills} kills; {scene.finish(most_duplicates=0, strict=True)}"
