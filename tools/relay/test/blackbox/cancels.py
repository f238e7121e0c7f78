# SPDX-License-Identifier: GPL-2.0
"""Records that are due while the topic of cancelled ids cannot be read, or gets ids all the time."""

import contextlib
import threading
import time

from cluster import need_mock
from ledger import now_ms, wait_for
from scene import Scene, TooLate
from suite import in_time, suite

# A record that is taken back this long before it is due is not delivered.
TAKE_BACK_MS = 5000
# The leader of what cannot be read, and how many requests it refuses: some ten in a second.
AWAY = 3
REFUSED = 300


@suite.together
@in_time
def what_was_taken_back_in_time_does_not_come_while_its_leader_answers_with_errors(times):
    need_mock("errors that are asked for")
    with Scene(partitions=2, options=("-X", "fetch.error.backoff.ms=100")) as scene:
        for topic, count in (scene.topics | scene.tables).items():
            for number in range(count):
                scene.cluster.tell("leader", topic, number, 1)
        cancelled = f"{scene.topic}-cancelled"
        scene.cluster.tell("leader", cancelled, 0, AWAY)
        relay = scene.start()
        back = scene.send(delay=8000 * times, partition=0, record_id=b"back", key=b"k")
        scene.send(delay=8000 * times, partition=1)
        scene.ledger.flush()
        wait_for(lambda: relay.metrics()["near"] == 2, "both")
        scene.cluster.tell("error", AWAY, "Fetch", REFUSED, "UNKNOWN")
        scene.reader.catch_up()
        due_ms = back.due(scene.ledger.inputs()[back.number][0].made_ms)[0]
        scene.ledger.producer.produce(cancelled, b"%d" % due_ms, b"back", partition=0)
        scene.ledger.flush()
        if now_ms() > due_ms - TAKE_BACK_MS:
            raise TooLate("it was taken back too late")
        scene.ledger.never.add(back.number)
        # That of the other number comes.
        scene.ledger.wait()
        relay.wait_until_it_says(rf"{cancelled} \[0\] was not read to its end for")
        relay.wait_until_it_says(rf"{cancelled} \[0\] is known to its end again")
        wait_for(lambda: relay.metrics()["cancelled_total"] == 1, "its end")
        return scene.finish()


def send_ids(scene, is_over):
    """Some twenty a second, of records that there are not."""
    number = 0
    while not is_over.is_set():
        scene.ledger.producer.produce(f"{scene.topic}-cancelled", b"%d" % (now_ms() + 3600000),
                                      b"none-%d" % number, partition=0)
        number += 1
        time.sleep(0.05)


@contextlib.contextmanager
def ids_keep_coming(scene):
    """While this is open."""
    is_over = threading.Event()
    thread = threading.Thread(target=send_ids, args=(scene, is_over))
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


@suite.together
def ids_that_keep_coming_hold_up_nothing():
    with Scene(partitions=1) as scene:
        relay = scene.start()
        with ids_keep_coming(scene):
            wait_for(lambda: relay.metrics()["cancels"] > 100, "ids")
            for delay in range(0, 10000, 500):
                scene.send(delay=delay)
            scene.ledger.flush()
            scene.ledger.wait()
        return scene.finish()
