# SPDX-License-Identifier: GPL-2.0
"""What "replay" repeats after it was killed, or could not write all: about a thousand records."""

import collections
import subprocess

from confluent_kafka import Producer

from cluster import RELAY, need_mock
from ledger import wait_for
from scene import Scene
from suite import suite
from tap import equal, holds

# Between two commits of "replay".
MOST_AGAIN = 1000


class Letters:
    """Dead letters, and those of them that are in the topic of delays again."""

    def __init__(self, scene, count):
        self.scene, self.count = scene, count
        self.dead = f"{scene.target('t')}.dead"
        producer = Producer({"bootstrap.servers": scene.cluster.address, "linger.ms": 5})
        for n in range(count):
            producer.produce(self.dead, b"v", b"k%d" % n, headers=[("twheel-id", f"n{n}")])
            producer.poll(0)
        equal(producer.flush(60), 0, "dead letters that are not written")

    def start(self):
        """A command that replays them."""
        return subprocess.Popen(  # pylint: disable=consider-using-with
            [RELAY, "replay", "-b", self.scene.cluster.address, "--topic", self.scene.topic,
             "--group", self.scene.group, self.dead], stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)

    def replay(self, status):
        """Replay them to the end: what was said."""
        process = self.start()
        said = process.communicate(timeout=300)[0]
        equal(process.returncode, status, said)
        return said

    def times(self):
        """{key: how many times it was replayed}."""
        return collections.Counter(record.key for record in
                                   list(self.scene.reader.records[self.scene.topic]))

    def finish(self):
        """All were replayed, and few of them twice."""
        wait_for(lambda: len(self.times()) == self.count, "all of them")
        again = sum(self.times().values()) - self.count
        holds(again <= MOST_AGAIN, f"{again} of {self.count} were replayed again")
        return f"{again} of {self.count} were replayed again"


@suite.together
def replay_remembers_what_it_wrote_where_a_partition_could_not_be_written():
    need_mock("partitions without a leader")
    with Scene(partitions=6) as scene:
        letters = Letters(scene, 10000)
        scene.cluster.tell("leader", scene.topic, 3, -1)
        said = letters.replay(1)
        holds(f"{scene.topic} cannot be written" in said, said)
        scene.cluster.tell("leader", scene.topic, 3, 1)
        letters.replay(0)
        return letters.finish()


@suite.together
def replay_that_is_killed_remembers_all_but_the_last_thousand():
    need_mock("answers that are delayed")
    # It has to be killed before its end.
    for rtt_ms in (50, 200, 800):
        with Scene() as scene:
            letters = Letters(scene, 20000)
            scene.cluster.tell("rtt", "all", rtt_ms)
            process = letters.start()
            wait_for(lambda: sum(letters.times().values()) >= 5000, "some of them")
            process.kill()
            process.communicate()
            scene.cluster.tell("rtt", "all", 0)
            if process.returncode < 0:
                letters.replay(0)
                return letters.finish()
    raise AssertionError("it ended before it was killed")
