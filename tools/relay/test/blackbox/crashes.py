# SPDX-License-Identifier: GPL-2.0
"""Relays that end, in order or not, and others that take over: no record is lost or early, and the
records that come twice are within the bound: those done and not committed at that moment.
"""

import os
import random
import signal
import time

from ledger import wait_for
from scene import Scene, short_session
from suite import in_time, many, suite
from tap import equal, holds


# --- kill -9 ------------------------------------------------------------------------------

def kill_again_and_again(scene, kills):
    """While records flow, kill the relay at random; returns how many may come twice therefore."""
    relay, bound = scene.relay(), 0
    for n in range(kills):
        if n % 4 == 3:
            # The relay is killed while it starts, or joins the group.
            relay.launch()
            time.sleep(random.random() * 3)
        else:
            relay.start()
            time.sleep(random.random() * 2)
        relay.kill()
        bound += scene.may_come_again()
    relay.start()
    return bound


@suite.together
def kill_9_at_random_loses_nothing_and_repeats_what_was_not_committed():
    kills = many(4, 60)
    with Scene(partitions=3, options=short_session()) as scene:
        with scene.flow(rate=300, delay_ms=3000):
            bound = kill_again_and_again(scene, kills)
        return f"{kills} kills; {scene.finish(most_duplicates=bound)}"


@suite.together
def kill_9_at_random_loses_nothing_on_its_way_through_buckets():
    kills = many(4, 60)
    with Scene(horizon_s=3600, scale=20000, options=short_session()) as scene:
        with scene.flow(rate=150, delay_ms=200000000):
            bound = kill_again_and_again(scene, kills)
        verdict = scene.finish(most_duplicates=bound)
        return f"{kills} kills, {len(scene.ledger.parked())} were parked; {verdict}"


@suite.together
@in_time
def a_crash_repeats_nothing_that_was_committed_out_of_order(times):
    with Scene(options=short_session(times)) as scene:
        relay = scene.start()
        # Every second record is done long before the one before it.
        for n in range(400):
            scene.send(delay=(200, 15000 * times)[n % 2])
        scene.ledger.flush()
        wait_for(lambda: len(scene.ledger.missing()) <= 200, "the first half")
        scene.wait_until_committed()
        relay.kill()
        above = scene.above_committed()
        scene.count_on(missing=200)
        holds(above >= 190, f"{above} of 200 are done above the committed offset")
        relay.start()
        verdict = scene.finish(most_duplicates=0)
        return f"{verdict}, of {above} that only the text beside the offset tells of"


@suite.together
@in_time
def a_relay_that_reads_less_than_the_last_one_forgets_no_record_that_was_done(times):
    with Scene(options=short_session(times)) as scene:
        relay = scene.start()
        # Every second record is done; with the others, there is more than 1M has room for.
        for n in range(1000):
            delay = 0 if n % 2 == 0 else (15000 if n < 200 else 30000) * times
            scene.send(delay=delay, partition=0, value=b"x" * 2000)
        scene.ledger.flush()
        wait_for(lambda: len(scene.ledger.missing()) <= 500, "the first half")
        scene.wait_until_committed()
        scene.count_on(missing=500)
        relay.kill()
        second = scene.start("--memory", "1M")

        def is_short():
            scene.count_on(missing=500)
            return second.metrics()["gave_way_total"] > 0
        wait_for(is_short, "records that give way")
        # The relay commits what it does in other partitions: a record in a bucket, of no test,
        # and too wide for what gives way.
        scene.ledger.foreign.add(b"no headers")
        scene.ledger.producer.produce(scene.buckets[-1], partition=0, value=b"no headers")
        scene.ledger.flush()
        wait_for(lambda: scene.committed()[scene.buckets[-1], 0].offset == 1, "a commit")
        # It moves others to buckets meanwhile, which is not committed at once.
        known = scene.committed()[scene.topic, 0]
        again = sum(not known.is_done(offset) for offset in range(0, 1000, 2))
        scene.count_on(missing=500)
        equal(again, 0, "done by the first, and not committed any more")
        # And what it does here, below the records that it has not read.
        wait_for(lambda: len(scene.ledger.missing()) <= 400, "some more")
        scene.count_on_the_group()
        second.stop_in_order()
        again = scene.may_come_again()
        scene.count_on_the_group()
        equal(again, 0, "done, and not committed")
        relay.start()
        return scene.finish(most_duplicates=0)


# --- orderly ends -------------------------------------------------------------------------

@suite.together
def after_an_orderly_end_no_record_comes_twice():
    ends, open_before = many(3, 30), 0
    with Scene(horizon_s=3600, scale=20000) as scene:
        relay = scene.relay()
        with scene.flow(rate=300, delay_ms=100000000):
            for n in range(ends):
                relay.start()
                time.sleep(random.random() * 2)
                equal(relay.end((signal.SIGTERM, signal.SIGINT)[n % 2]), 0, "exit status")
                # What a relay has left that was put out of the group may still be open.
                still_open = scene.may_come_again()
                holds(still_open <= open_before or relay.was_put_out(),
                      f"done, and not committed: {still_open}, and {open_before} before")
                open_before = still_open
            relay.start()
        return f"{ends} ends; {scene.finish(most_duplicates=0)}"


# --- several relays -----------------------------------------------------------------------

def all_share(relays):
    """Has each relay partitions at this moment?"""
    return all(relay.metrics()["partitions"] for relay in relays)


@suite.together
@in_time
def relays_that_join_and_leave_take_over_near_records_and_repeat_nothing(times):
    with Scene(partitions=4, options=short_session(times)) as scene:
        first = scene.start()
        # Half is done and committed before, and half is due after all of it: the mock accepts no
        # commits in the middle of a rebalance, as brokers do.
        for n in range(600):
            scene.send(delay=(100, 20000 * times)[n % 2])
        scene.ledger.flush()
        wait_for(lambda: len(scene.ledger.missing()) <= 300, "the first half")
        scene.wait_until_committed()
        scene.count_on(missing=300)
        second = scene.start()
        wait_for(lambda: all_share((first, second)), "partitions for both")
        third = scene.start()
        wait_for(lambda: all_share((first, second, third)), "partitions for all three")
        first.stop_in_order()
        wait_for(lambda: second.metrics()["partitions"] + third.metrics()["partitions"]
                 == len(scene.source_partitions()), "all partitions for two")
        scene.count_on(missing=300)
        return f"3 rebalances; {scene.finish(most_duplicates=0)}"


@suite.together
@in_time
def under_load_one_relay_joins_one_leaves_and_one_is_killed(times):
    with Scene(partitions=4, options=short_session(times)) as scene:
        first = scene.start()
        with scene.flow(rate=300 // times, delay_ms=4000 * times):
            second = scene.start()
            third = scene.start()
            wait_for(lambda: all_share((first, second, third)), "partitions for all three")
            first.stop_in_order()
            third.kill()
            wait_for(lambda: second.metrics()["partitions"] == len(scene.source_partitions()),
                     "all partitions for the one that is left")
        return f"4 rebalances; {scene.finish(by_contract=True)}"


@suite.together
@in_time
def a_relay_that_stood_still_while_another_took_over_is_not_early_and_loses_nothing(times):
    with Scene(options=short_session(times)) as scene:
        first = scene.start()
        near = {scene.send(delay=random.randint(20000, 22000) * times).number
                for _ in range(600)}
        scene.ledger.flush()

        def has_all():
            scene.count_on(missing=600)
            return first.metrics()["records"] == 600
        wait_for(has_all, "600 near records")
        os.kill(first.pid(), signal.SIGSTOP)
        scene.reader.catch_up()
        scene.count_on(missing=600)
        second = scene.relay().launch()
        scene.ledger.wait_for(near)
        scene.wait_until_committed()
        os.kill(first.pid(), signal.SIGCONT)
        wait_for(lambda: first.metrics()["standstills_total"] >= 1, "doubts of the first")
        # The relay got partitions, lost them, and got others.
        wait_for(lambda: first.metrics()["rebalances_total"] >= 3 and all_share((first, second)),
                 "partitions for both")
        for _ in range(100):
            scene.send(delay=random.randint(0, 1000))
        # No record that was due meanwhile comes twice; a few, if the mock refuses a commit.
        return scene.finish(most_duplicates=100)
