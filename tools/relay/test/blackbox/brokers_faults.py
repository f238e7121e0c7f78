# SPDX-License-Identifier: GPL-2.0
"""Faults of real brokers, of relays beside them, and of topics, while records flow.

Each is a Trial: no record is lost or early, and no more come twice than the relay itself said
before the fault might; with --delivery exactly-once, none.
"""

import os
import random
import signal
import time

from ledger import now_ms, wait_for
from rig import FENCED_S
from suite import in_time, many, suite
from tap import Skip, equal, holds
from trial import Trial

RATE = 100
SOON = ("-X", "topic.metadata.propagation.max.ms=1000")


def flow_on(seconds):
    """Let records flow for a time; longer with --whole."""
    time.sleep(many(seconds, 5 * seconds))


# --- brokers that are killed --------------------------------------------------------------

def kill_a_broker(fault, times, choose, **trial):
    """kill -9 of the broker that @choose selects."""
    with Trial(fault, times=times, **trial).start() as trial:
        cluster = trial.cluster
        with trial.flow(RATE):
            broker = choose(trial)
            cluster.kill(broker)
            flow_on(3)
            cluster.start(broker)
            cluster.wait_isr()
        return trial.finish()


def leader_of_delays(trial):
    """The leader of a partition of the first scene; it leads some of each."""
    return trial.cluster.leader(trial.scenes[0].topic, 0)


@suite.test
@in_time
def kill_9_of_the_leader_of_delays(times):
    return kill_a_broker("1 kill -9: leader of delays", times, leader_of_delays)


@suite.test
@in_time
def kill_9_of_the_coordinator_of_the_group(times):
    return kill_a_broker("1 kill -9: coordinator", times,
                         lambda trial: trial.cluster.coordinator(trial.scenes[-1].group))


@suite.test
@in_time
def kill_9_of_the_active_controller(times):
    return kill_a_broker("1 kill -9: controller", times,
                         lambda trial: trial.cluster.controller())


# --- standstills --------------------------------------------------------------------------

def stop_a_broker(fault, times, seconds):
    """SIGSTOP of the leader of delays, and SIGCONT after a time."""
    with Trial(fault, times=times).start() as trial:
        cluster = trial.cluster
        with trial.flow(RATE):
            broker = leader_of_delays(trial)
            cluster.pause(broker)
            time.sleep(seconds)
            cluster.resume(broker)
            cluster.wait_isr()
        return trial.finish()


@suite.test
@in_time
def a_broker_that_stands_still_for_5_s(times):
    return stop_a_broker("2 SIGSTOP of a broker, 5 s", times, 5)


@suite.test
@in_time
def a_broker_that_stands_still_until_it_is_fenced(times):
    return stop_a_broker("2 SIGSTOP of a broker, 20 s", times, 2 * FENCED_S)


@suite.test
@in_time
def a_broker_that_stands_still_for_a_minute(times):
    if not suite.options.whole:
        raise Skip("only with --whole")
    return stop_a_broker("2 SIGSTOP of a broker, 60 s", times, 60)


@suite.together
@in_time
def a_relay_that_stands_still_for_longer_than_its_session(times):
    with Trial("2 SIGSTOP of a relay beyond its session", times=times).start() as trial:
        with trial.flow(RATE):
            relays = [scene.relays[0] for scene in trial.scenes]
            both = {scene: sum(relay.metrics()["partitions"] for relay in scene.relays)
                    for scene in trial.scenes}
            begun_ms = now_ms()
            for relay in relays:
                os.kill(relay.pid(), signal.SIGSTOP)
            # The other relay has all partitions.
            for scene in trial.scenes:
                wait_for(lambda scene=scene: scene.relays[1].metrics()["partitions"] ==
                         both[scene], "all partitions for the other relay")
            for relay in relays:
                os.kill(relay.pid(), signal.SIGCONT)
        for scene in trial.scenes:
            trial.allow(scene, scene.relays[0], begun_ms)
        return trial.finish()


# --- restarts in order --------------------------------------------------------------------

@suite.test
@in_time
def a_rolling_restart_of_brokers(times):
    with Trial("3 rolling restart of brokers", times=times).start() as trial:
        with trial.flow(RATE):
            for broker in (1, 2, 3):
                trial.cluster.restart(broker)
                trial.cluster.wait_isr()
        return trial.finish()


@suite.together
@in_time
def a_rolling_restart_of_relays(times):
    with Trial("3 rolling restart of relays", relays=3, times=times).start() as trial:
        with trial.flow(RATE):
            for _ in range(many(1, 5)):
                for number in range(3):
                    for scene in trial.scenes:
                        relay = scene.relays[number]
                        equal(relay.stop(), 0, "exit status")
                        relay.start()
        for scene in trial.scenes:
            scene.count_on_the_group()
            # Nothing may come twice, whatever the metric said meanwhile.
            trial.bounds[scene] = 0
        return trial.finish()


@suite.together
@in_time
def kill_9_of_a_relay(times):
    with Trial("kill -9 of a relay", relays=2, times=times).start() as trial:
        with trial.flow(RATE):
            for scene in trial.scenes:
                relay = scene.relays[0]
                at_ms = now_ms()
                relay.kill()
                trial.allow(scene, relay, at_ms)
            flow_on(2)
            for scene in trial.scenes:
                scene.relays[0].start()
        return trial.finish()


# --- too few brokers ----------------------------------------------------------------------

@suite.test
@in_time
def two_of_three_brokers_are_down(times):
    with Trial("4 two of three brokers are down", times=times).start() as trial:
        cluster = trial.cluster
        with trial.flow(RATE):
            down = random.sample((1, 2, 3), 2)
            for broker in down:
                cluster.kill(broker)
            flow_on(5)
            for broker in down:
                cluster.start(broker)
            cluster.wait_isr()
        return trial.finish()


@suite.test
@in_time
def a_target_has_too_few_replicas(times):
    with Trial("4 target with too few replicas", targets={"t": 3, "few": 3},
               times=times).start() as trial:
        cluster = trial.cluster
        for scene in trial.scenes:
            cluster.configure_topic(scene.target("few"), {"min.insync.replicas": "3"})
        with trial.flow(RATE, names=("t", "few")):
            cluster.kill(3)
            for scene in trial.scenes:
                wait_for(lambda scene=scene: any(relay.metrics()["targets_failing"]
                                                 for relay in scene.relays),
                         "a target that fails")
            flow_on(2)
            cluster.start(3)
            cluster.wait_isr()
        return trial.finish()


@suite.test
@in_time
def an_unclean_election_is_never_passed_over_in_silence(times):
    """Two replicas of delays, of which the one that is elected lacks the last records: Kafka has
    lost them. The relay must not take new records at their offsets for done."""
    with Trial("5 unclean election", relays=1, times=times, partitions=1) as trial:
        cluster = trial.cluster
        for scene in trial.scenes:
            cluster.remake(scene.topic, 1, replicas=(1, 2), config={
                "unclean.leader.election.enable": "true", "min.insync.replicas": "1"})
        trial.start()
        for scene in trial.scenes:
            for _ in range(20):
                scene.send(delay=0)
            scene.ledger.flush()
            scene.ledger.wait()
        cluster.kill(2)
        for scene in trial.scenes:
            wait_for(lambda scene=scene: cluster.in_sync(scene.topic, 0) == {1}, "one replica")
            for _ in range(200):
                scene.send(delay=0)
            scene.ledger.flush()
            scene.ledger.wait()
            wait_for(lambda scene=scene: scene.relays[0].metrics()["duplicates_possible"] == 0,
                     "a commit")
        cluster.kill(1)
        cluster.start(2)
        for scene in trial.scenes:
            wait_for(lambda scene=scene: cluster.leader(scene.topic, 0) == 2, "an election")
        cluster.start(1)
        cluster.wait_isr()
        for scene in trial.scenes:
            # These have offsets of records that were done before.
            scene.again = {scene.send(delay=0).number for _ in range(50)}
            scene.ledger.flush()
            wait_for(lambda scene=scene: scene.is_stopped(0) or
                     not scene.ledger.missing(), "a partition that is stopped")
            stopped = scene.is_stopped(0)
            left = scene.again & scene.ledger.missing()
            holds(stopped or not left, f"{len(left)} of 50 are lost, and nothing is said")
            scene.ledger.give_up(left)
        return trial.finish()


# --- disks --------------------------------------------------------------------------------

@suite.test
@in_time
def the_disk_of_a_broker_is_full(times):
    with Trial("6 disk of a broker full", times=times).start() as trial:
        cluster = trial.cluster
        with trial.flow(RATE), cluster.full_disk():
            flow_on(4)
        cluster.wait_isr()
        return trial.finish()


# --- topics that change -------------------------------------------------------------------

@suite.together
@in_time
def retention_passes_a_record_that_cannot_be_delivered(times):
    with Trial("7 retention of 10 s, a missing target", times=times, partitions=2, horizon_s=5,
               targets={"t": 3, "gone": 1}) as trial:
        cluster = trial.cluster
        for scene in trial.scenes:
            cluster.hide(scene.target("gone"))
            cluster.configure_topic(scene.topic, {"retention.ms": "10000", "segment.ms": "1000"})
        trial.start(*SOON)
        for scene in trial.scenes:
            scene.send("gone", delay=0, partition=0)
            scene.ledger.flush()
        with trial.flow(RATE, delay_ms=1000):
            for scene in trial.scenes:
                wait_for(lambda scene=scene: scene.reader.ends(scene.topic, 0)[0] > 1,
                         "retention")
            for scene in trial.scenes:
                for relay in scene.relays:
                    equal(relay.stop(), 0, "exit status")
                scene.relays[0].start()
        for scene in trial.scenes:
            scene.relays[1].launch()
            equal(scene.is_stopped(0), False, "the partition is stopped")
            cluster.show(scene.target("gone"), 1)
        return trial.finish()


@suite.together
@in_time
def records_that_were_deleted_stop_their_partition(times):
    with Trial("7 delete-records", relays=1, times=times, partitions=2) as trial:
        trial.start()
        for scene in trial.scenes:
            equal(scene.relays[0].stop(), 0, "exit status")
            gone = {scene.send(delay=0, partition=0).number for _ in range(20)}
            scene.ledger.flush()
            trial.cluster.drop(scene.topic, 0, 10)
            scene.relays[0].start()
            others = {scene.send(delay=0, partition=1).number for _ in range(20)}
            scene.ledger.flush()
            scene.ledger.wait_for(others)
            wait_for(lambda scene=scene: scene.is_stopped(0), "a partition that is stopped")
            scene.ledger.give_up(gone)
        return trial.finish()


@suite.together
@in_time
def compaction_that_is_set_at_run_time_is_refused(times):
    with Trial("7 compaction of delays", relays=1, times=times) as trial:
        trial.start()
        for scene in trial.scenes:
            for _ in range(20):
                scene.send(delay=random.randint(3000, 5000), key=b"the same")
            trial.cluster.configure_topic(scene.topic, {"cleanup.policy": "compact"})
            start_until_it_says(scene.relays[0], "cleanup.policy")
            trial.cluster.configure_topic(scene.topic, {"cleanup.policy": "delete"})
            start_until_all_came(scene)
        return trial.finish()


def start_until_it_says(relay, words):
    """Start the relay again and again: it looks at the settings when it starts, and the broker
    that it asks may not know of a change yet."""
    def has_said():
        if relay.process.poll() is None:
            equal(relay.stop(), 0, "exit status")
        relay.launch()
        end = time.monotonic() + 5
        while words not in relay.said_now() and time.monotonic() < end:
            time.sleep(0.1)
        return words in relay.said_now()
    wait_for(has_said, f"{words} of the relay")


def start_until_all_came(scene):
    """Start the relay again whenever it has ended; the settings that it is told of may be old."""
    def goes_on():
        if scene.relays[0].process.poll() is not None:
            scene.relays[0].launch()
        return not scene.ledger.missing()
    scene.ledger.flush()
    wait_for(goes_on, "all records")


@suite.together
@in_time
def a_topic_that_was_made_again_is_read_or_stopped_loudly(times):
    with Trial("7 delays deleted and made again", relays=1, times=times, partitions=1) as trial:
        trial.start()
        for scene in trial.scenes:
            for _ in range(100):
                scene.send(delay=0)
            scene.ledger.flush()
            scene.ledger.wait()
            wait_for(lambda scene=scene: scene.relays[0].metrics()["duplicates_possible"] == 0,
                     "a commit")
            equal(scene.relays[0].stop(), 0, "exit status")
            trial.cluster.remake(scene.topic, 1)
            scene.again = {scene.send(delay=0).number for _ in range(60)}
            scene.ledger.flush()
            scene.relays[0].start()
            wait_for(lambda scene=scene: scene.is_stopped(0) or
                     not scene.ledger.missing(), "a partition that is stopped, or all of them")
            scene.ledger.give_up(scene.again & scene.ledger.missing())
        return trial.finish()


@suite.together
@in_time
def a_group_that_was_forgotten_repeats_nothing(times):
    """offsets.retention.minutes of this cluster is 1; brokers look each 5 s."""
    with Trial("8 offsets forgotten", relays=1, times=times, partitions=1) as trial:
        trial.start()
        for scene in trial.scenes:
            for n in range(200):
                scene.send(delay=(0, 1000)[n % 2])
            scene.ledger.flush()
            scene.ledger.wait()
            equal(scene.relays[0].stop(), 0, "exit status")
        for scene in trial.scenes:
            wait_for(lambda scene=scene: scene.committed()[scene.topic, 0].offset < 0,
                     "a group that is forgotten")
            scene.relays[0].start()
            for _ in range(20):
                scene.send(delay=0)
            trial.bounds[scene] = 0
        return trial.finish()


@suite.together
@in_time
def a_record_that_is_too_large_for_its_target_is_invalid(times):
    with Trial("9 max.message.bytes of the target", times=times, partitions=2,
               targets={"t": 3, "small": 1}).start() as trial:
        for scene in trial.scenes:
            trial.cluster.configure_topic(scene.target("small"), {"max.message.bytes": "2000"})
            sent = scene.send("small", delay=1000, key=b"k", value=os.urandom(5000))
            sent.where = f"{scene.topic}.invalid"
            sent.why = "Broker: Message size too large"
            scene.send("small", delay=1000, value=b"short")
        with trial.flow(RATE):
            pass
        return trial.finish()


@suite.together
@in_time
def partitions_that_are_added_to_delays_are_read(times):
    with Trial("10 partitions added to delays", times=times, partitions=2).start(
            "-X", "topic.metadata.refresh.interval.ms=1000") as trial:
        with trial.flow(RATE):
            for scene in trial.scenes:
                trial.cluster.add_partitions(scene.topic, 4)
                scene.read_more({scene.topic: 4})
            for scene in trial.scenes:
                # A new client, which knows of them.
                scene.ledger.use({})
                scene.added = {scene.send(delay=0, partition=number).number for number in (2, 3)}
        for scene in trial.scenes:
            scene.ledger.flush()
            scene.ledger.wait_for(scene.added)
        return trial.finish()


@suite.together
@in_time
def a_quota_slows_the_relay_down_and_nothing_else(times):
    with Trial("11 quota of 100 kB/s", relays=1, times=times) as trial:
        for scene in trial.scenes:
            scene.options += ["-X", f"client.id={scene.group}"]
            trial.cluster.set_quota({"producer_byte_rate": 100000}, client_id=scene.group)
        trial.start()
        for scene in trial.scenes:
            for _ in range(many(500, 5000)):
                scene.send(delay=random.randint(0, 2000), value=os.urandom(2000))
        return trial.finish()


@suite.together
@in_time
def transactions_that_are_aborted_or_hang_hold_up_no_more_than_kafka_does(times):
    with Trial("12 aborted and hung transactions", times=times).start() as trial:
        for scene in trial.scenes:
            ledger, plain = scene.ledger, scene.ledger.producer
            for kind in ("aborted", "committed", "hung"):
                ledger.use({"transactional.id": f"{scene.topic}-{kind}",
                            "transaction.timeout.ms": 10000})
                ledger.producer.init_transactions(60)
                ledger.producer.begin_transaction()
                numbers = {scene.send(delay=0).number for _ in range(50)}
                ledger.producer.flush(60)
                if kind == "aborted":
                    ledger.producer.abort_transaction(60)
                elif kind == "committed":
                    ledger.producer.commit_transaction(60)
                if kind != "committed":
                    ledger.never |= numbers
                scene.hung = ledger.producer
            ledger.producer = plain
        with trial.flow(RATE):
            pass
        return trial.finish()


# --- targets that are missing -------------------------------------------------------------

@suite.together
@in_time
def a_missing_target_and_a_missing_dead_topic_hold_up_nobody(times):
    with Trial("14 missing target and .dead", times=times, targets={"t": 3, "gone": 1},
               horizon_s=90) as trial:
        for scene in trial.scenes:
            trial.cluster.hide(scene.target("gone"))
            trial.cluster.hide(scene.target("t") + ".dead")
        trial.start(*SOON)
        with trial.flow(RATE):
            for scene in trial.scenes:
                for n in range(20):
                    scene.send("gone", delay=n * 100)
                    scene.send("t", attempt=25)
        for scene in trial.scenes:
            ledger = scene.ledger
            ledger.flush()
            ledger.wait_for({sent.number for sent in ledger.sent.values()
                             if sent.where == scene.target("t")})
            equal(len(ledger.missing()), 40, "what waits")
            trial.cluster.show(scene.target("gone"), 1)
            trial.cluster.show(scene.target("t") + ".dead", 1)
        # If a relay is too slow to notice, they wait for another horizon.
        trial.patience_s *= 2
        return trial.finish()
