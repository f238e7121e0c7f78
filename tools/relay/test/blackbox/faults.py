# SPDX-License-Identifier: GPL-2.0
"""Brokers that are down, slow or answer with errors; missing targets; missing records."""

import random
import time

from cluster import need_mock, need_own
from ledger import now_ms, wait_for
from scene import Scene, short_session
from suite import disturbing, in_time, many, suite
from tap import equal, holds, note

RATE = 200

# Brokers refuse all batches behind one that they have refused, the mock does not: then the
# client infers that both were written, and does not try the first again by itself.
ONE_AT_A_TIME = ("-X", "max.in.flight=1")
# How long it takes until a target is known to be missing.
SOON = ("-X", "topic.metadata.propagation.max.ms=500")
# Targets have a broker of their own, so that it refuses only requests of the relay.
APART = 3


# --- brokers ------------------------------------------------------------------------------

@disturbing
def brokers_go_down_and_come_back():
    need_own("brokers that go down")
    with Scene() as scene:
        scene.start()
        cuts = []
        with scene.flow(RATE, 3000):
            for broker in (1, 2, 3, "all"):
                time.sleep(1)
                committed = scene.committed()
                scene.cluster.down(broker)
                cuts.append((committed, now_ms()))
                time.sleep(many(1, 10))
                scene.cluster.up(broker)
        scene.ledger.flush()
        scene.ledger.wait()
        # The mock accepts again what it had accepted before a connection was cut, brokers do not:
        # so what was written since the commit before that may come twice, too.
        bound = sum(scene.above_committed(*cut) for cut in cuts) + scene.contract_bound()
        return scene.finish(most_duplicates=bound)


@disturbing
def a_relay_ends_while_no_broker_answers_and_the_next_goes_on():
    need_own("brokers that go down")
    with Scene(options=short_session()) as scene:
        relay = scene.start()
        for _ in range(200):
            scene.send(delay=random.randint(0, 4000))
        scene.ledger.flush()
        wait_for(lambda: len(scene.ledger.missing()) < 100, "half of them")
        scene.cluster.down("all")
        begun = time.monotonic()
        status = relay.stop()
        took = time.monotonic() - begun
        # librdkafka sometimes does not come to an end without brokers: then the relay does.
        holds(status in (0, 69), f"exit status {status}")
        scene.cluster.up("all")
        relay.start()
        scene.ledger.wait()
        verdict = scene.finish(by_contract=True)
        return f"{verdict}; the relay ended within {took:.1f} s"


@suite.together
def leaders_that_move_while_another_relay_has_the_partitions_are_found():
    need_mock("leaders that move")
    with Scene(partitions=4, options=short_session()) as scene:
        first, second = scene.start(), scene.relay()
        # The first has known the leaders of all of them.
        second.launch().wait_until_it_says("[1-9][0-9]* partitions are assigned")
        first.wait_until_it_says("partitions are revoked")
        for topic, partitions in (scene.topics | scene.tables).items():
            for number in range(partitions):
                scene.cluster.tell("leader", topic, number, number % 3 + 1)
        second.stop()
        for number in range(4):
            scene.send(delay=0, partition=number)
        return scene.finish()


@suite.together
def leaders_and_the_coordinator_move():
    need_mock("leaders that move")
    with Scene(horizon_s=3600, scale=20000) as scene:
        scene.start()
        with scene.flow(RATE, 150000000):
            for n in range(many(20, 200)):
                time.sleep(0.2)
                for topic, partitions in scene.topics.items():
                    scene.cluster.tell("leader", topic, random.randrange(partitions), n % 3 + 1)
                scene.cluster.tell("coordinator", scene.group, n // 4 % 3 + 1)
        return scene.finish(most_duplicates=0)


@suite.together
def a_batch_that_is_refused_while_the_next_is_accepted_is_sent_again():
    need_mock("errors that are asked for")
    with Scene(targets={"t": 1}, apart=APART) as scene:
        relay = scene.start()
        # The relay's client knows the leader of the target.
        scene.send(delay=0)
        scene.ledger.flush()
        scene.ledger.wait()
        # The broker gets the next batches before its answer to the first arrives, and accepts
        # them: the mock looks at no sequences, and others have no state of a new producer.
        scene.cluster.tell("rtt", APART, 1000)
        inferred = 0
        # If the relay stands still meanwhile, there is only one batch.
        for _ in range(10):
            scene.cluster.tell("error", APART, "Produce", 1, "NOT_LEADER_FOR_PARTITION")
            for delay in range(2000, 3000, 100):
                scene.send(delay=delay)
            scene.ledger.flush()
            scene.ledger.wait()
            inferred = relay.metrics()["write_unknown_total"]
            if inferred > 0:
                break
        scene.cluster.tell("rtt", APART, 0)
        holds(inferred > 0, "the client has inferred nothing")
        return f"{inferred:.0f} were inferred to be written; {scene.finish(most_duplicates=0)}"


@suite.together
def round_trips_of_300_ms_lose_nothing():
    need_mock("answers that take their time")
    # The mock returns one batch at a time.
    with Scene(producer={"linger.ms": 500}) as scene:
        scene.start("-X", "linger.ms=500")
        scene.cluster.tell("rtt", "all", 300)
        with scene.flow(RATE, 3000):
            time.sleep(many(5, 30))
        scene.ledger.wait()
        scene.cluster.tell("rtt", "all", 0)
        return scene.finish(most_duplicates=0)


@suite.together
@in_time
def records_sent_without_an_answer_are_not_done(times):
    need_mock("a partition without a leader")
    with Scene(targets={"mute": 1, "t": 1}, options=short_session(times)) as scene:
        relay = scene.start()
        scene.cluster.tell("leader", scene.target("mute"), 0, -1)
        scene.reader.dark.add((scene.target("mute"), 0))
        for _ in range(100):
            scene.send("mute", delay=0, partition=0)
        scene.ledger.flush()

        def all_are_sent():
            # Records that a relay sent after it lost its membership are sent again.
            scene.count_on_the_group()
            return relay.metrics()["in_flight"] == 100
        wait_for(all_are_sent, "100 in flight")
        # The records behind them are done, and committed.
        later = {scene.send(delay=0, partition=0).number for _ in range(100)}
        scene.ledger.flush()
        scene.ledger.wait_for(later)
        scene.wait_until_committed()
        known = scene.committed()[scene.topic, 0]
        equal([offset for offset in range(200) if known.is_done(offset)], list(range(100, 200)))
        relay.kill()
        scene.cluster.tell("leader", scene.target("mute"), 0, 1)
        scene.reader.dark.clear()
        relay.start()
        return scene.finish(most_duplicates=0)


# --- errors -------------------------------------------------------------------------------

# The client tries again by itself.
RETRIABLE_ERRORS = ("REQUEST_TIMED_OUT", "NOT_LEADER_FOR_PARTITION", "LEADER_NOT_AVAILABLE",
                    "NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
                    "NETWORK_EXCEPTION", "KAFKA_STORAGE_ERROR", "INVALID_MSG")
# Here the relay tries again.
PERMANENT_ERRORS = ("UNKNOWN_TOPIC_OR_PART", "TOPIC_AUTHORIZATION_FAILED", "UNKNOWN",
                    "CLUSTER_AUTHORIZATION_FAILED", "INVALID_REQUIRED_ACKS", "INVALID_RECORD")


@suite.together
def records_that_a_broker_refuses_are_sent_again_until_it_accepts_them():
    need_mock("errors that are asked for")
    with Scene(targets={"t": 2}, apart=APART) as scene:
        relay = scene.start(*ONE_AT_A_TIME, *SOON)
        for error in RETRIABLE_ERRORS + PERMANENT_ERRORS:
            scene.cluster.tell("error", APART, "Produce", 2 if error in RETRIABLE_ERRORS else 1,
                               error)
            for _ in range(50):
                scene.send(delay=300)
            scene.ledger.flush()
            scene.ledger.wait()
        holds(relay.metrics()["write_errors_total"] >= len(PERMANENT_ERRORS), "few errors")
        return scene.finish(most_duplicates=0)


def wait_with_restarts(scene):
    """Wait until all have arrived, and start the relay again when it has ended with an error."""
    relay = scene.relays[0]

    def goes_on():
        if (status := relay.process.poll()) is not None:
            equal(status, 69, "exit status")
            relay.start()
        return not scene.ledger.missing()
    wait_for(goes_on, "all records")


@suite.together
def errors_that_end_an_idempotent_producer_lose_nothing():
    need_mock("errors that are asked for")
    # A relay that ends because of these errors does not leave the group.
    with Scene(targets={"t": 1}, apart=APART, options=short_session()) as scene:
        scene.start(*ONE_AT_A_TIME)
        for error in ("UNKNOWN_PRODUCER_ID", "INVALID_PRODUCER_EPOCH",
                      "OUT_OF_ORDER_SEQUENCE_NUMBER"):
            scene.cluster.tell("error", APART, "Produce", 1, error)
            for _ in range(100):
                scene.send(delay=random.randint(200, 1000))
            scene.ledger.flush()
            wait_with_restarts(scene)
        return scene.finish(most_duplicates=300)


COMMIT_ERRORS = ("COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR", "REQUEST_TIMED_OUT",
                 "GROUP_AUTHORIZATION_FAILED", "TOPIC_AUTHORIZATION_FAILED", "UNKNOWN")


@suite.together
def commits_that_fail_are_made_again():
    need_mock("errors that are asked for")
    with Scene() as scene:
        relay = scene.start()
        with scene.flow(RATE, 2000):
            for error in COMMIT_ERRORS:
                scene.cluster.tell("error", "all", "OffsetCommit", 2, error)
                time.sleep(1)
        scene.ledger.flush()
        scene.ledger.wait()
        scene.wait_until_committed()
        errors = relay.metrics()["commit_errors_total"]
        holds(errors > 0, "no commit failed")
        equal(relay.stop(), 0, "exit status")
        relay.start()
        return f"{errors:.0f} commits failed; {scene.finish(most_duplicates=0)}"


@suite.together
def errors_in_reading_the_committed_offset_repeat_nothing():
    need_mock("errors that are asked for")
    with Scene() as scene:
        relay = scene.relay()
        for error in ("NO_ERROR", "COORDINATOR_LOAD_IN_PROGRESS", "REQUEST_TIMED_OUT",
                      "TOPIC_AUTHORIZATION_FAILED"):
            if error != "NO_ERROR":
                scene.cluster.tell("error", "all", "OffsetFetch", 1, error)
            relay.start()
            for _ in range(100):
                scene.send(delay=0)
            scene.ledger.flush()
            scene.ledger.wait()
            equal(relay.stop(), 0, "exit status")
        relay.start()
        return scene.finish(most_duplicates=0)


@suite.together
def errors_of_the_group_and_of_fetches_lose_nothing():
    need_mock("errors that are asked for")
    # The mock does not know that a member which takes another name is the same one.
    with Scene(options=short_session()) as scene:
        scene.start()
        with scene.flow(RATE, 2000):
            for api, error in (("Fetch", "NOT_LEADER_FOR_PARTITION"), ("Fetch", "UNKNOWN"),
                               ("Heartbeat", "COORDINATOR_NOT_AVAILABLE"),
                               ("Heartbeat", "UNKNOWN_MEMBER_ID"),
                               ("Heartbeat", "ILLEGAL_GENERATION"),
                               ("Metadata", "LEADER_NOT_AVAILABLE")):
                scene.cluster.tell("error", "all", api, 2, error)
                time.sleep(1)
        return scene.finish(by_contract=True)


# --- a target that cannot be written ------------------------------------------------------

# Records for a missing target are parked after so long; before that, they are in memory.
HOLD_S = 5


@suite.together
def a_missing_target_keeps_its_records_and_others_go_on():
    need_own("a target that is missing, and comes")
    with Scene(targets={"gone": 2, "t": 2}) as scene:
        gone = scene.target("gone")
        scene.cluster.hide(gone)
        relay = scene.start(*SOON)
        begun = time.monotonic()
        lost = [scene.send("gone", delay=0, partition=0) for _ in range(50)]
        scene.ledger.flush()
        relay.wait_until_it_says(f"{gone} cannot be written")
        others = {scene.send(delay=random.randint(0, 1000)).number for _ in range(200)}
        scene.ledger.flush()
        scene.ledger.wait_for(others)
        scene.wait_until_committed()
        equal(scene.ledger.missing(), {sent.number for sent in lost}, "what waits")
        committed = scene.committed()[scene.topic, 0].offset
        metrics = relay.metrics()
        equal(metrics["targets_failing"], 1, metrics)
        if time.monotonic() - begun < HOLD_S:
            equal((committed, metrics["records_held"] >= 49), (0, True), metrics)
        else:
            note("its records may be parked already")
        scene.cluster.show(gone, 2)
        scene.ledger.wait()
        relay.wait_until_it_says(f"{gone} can be written again")
        scene.wait_until_committed()
        equal(relay.metrics()["targets_failing"], 0)
        equal(scene.committed()[scene.topic, 0].offset, scene.reader.next[scene.topic, 0])
        return scene.finish(most_duplicates=0)


@suite.together
def a_relay_that_ends_while_a_target_is_missing_leaves_its_records_to_the_next():
    need_own("a target that is missing, and comes")
    with Scene(targets={"gone": 2, "t": 2}) as scene:
        scene.cluster.hide(scene.target("gone"))
        relay = scene.start(*SOON)
        for n in range(200):
            scene.send(("t", "gone")[n % 2], delay=n)
        scene.ledger.flush()
        relay.wait_until_it_says("gone cannot be written")
        wait_for(lambda: len(scene.ledger.missing()) <= 100, "those of the other target")
        equal(relay.stop(), 0, "exit status")
        scene.cluster.show(scene.target("gone"), 2)
        relay.start()
        return scene.finish(most_duplicates=0)


# --- missing records ----------------------------------------------------------------------

@suite.together
def records_deleted_by_retention_stop_their_partition_loudly_and_no_other():
    need_own("records that are deleted")
    with Scene() as scene:
        relay = scene.start()
        scene.send(delay=0, partition=0)
        scene.send(delay=0, partition=1)
        scene.finish()
        # Nobody will see those between.
        for _ in range(10):
            scene.ledger.producer.produce(scene.topic, value=b"x", partition=0)
        scene.ledger.flush()
        scene.cluster.drop(scene.topic, 0, 10)
        relay.start()
        relay.wait_until_it_says(rf"{scene.topic} \[0\] is stopped at offset 1: "
                                 "offset 1 is committed, but the log begins at")
        label = f'partition_stopped{{topic="{scene.topic}",partition="%d"}}'
        equal([relay.metrics()[label % n] for n in (0, 1)], [1, 0], "stopped")
        for _ in range(100):
            scene.send(delay=random.randint(0, 1000), partition=1)
        verdict = scene.finish()
        equal(scene.reader.records[f"{scene.topic}.invalid"], [], "the invalid")
        equal(scene.committed()[scene.topic, 0].offset, 1, "the committed offset")
        return verdict
