# SPDX-License-Identifier: GPL-2.0
"""What a test of the relay needs: a cluster, topics of its own, relays and a ledger."""

import contextlib
import random
import re
import threading
import time
import urllib.request
import uuid

import process
import wire
from cluster import RELAY, open_cluster, uses_mock
from ledger import PATIENCE_S, Ledger, Reader, now_ms, wait_for
from tap import equal, holds, note

DAY_S = 24 * 3600
# Buckets below the horizon, in seconds.
SMALL_WIDTHS = (10, 60)
# The mock answers a fetch only after this time, even if there are records meanwhile.
FETCH_OF_MOCK = ("-X", "fetch.wait.max.ms=20")
# Assignments reads lines of this level.
DEBUG = ("--log-level", "debug")
# What a relay logs when it has lost its membership, or ends without an answer to a commit: then
# the records done since the last commit come twice, by the contract.
PUT_OUT = re.compile("[1-9][0-9]* partitions are lost|, and may come twice|"
                     "a commit was not answered")
# The exit status of a relay that ended without answers, and what it logs of that.
UNANSWERED = 69
NO_ANSWER = re.compile("no delivery report yet|was not answered for|no broker answers")


def session(session_ms, heartbeat_ms):
    """Options of relays. If the mock stands still while a member joins, it does not answer, and
    the client asks again some seconds after max.poll.interval.ms."""
    return ("-X", f"session.timeout.ms={session_ms}",
            "-X", f"heartbeat.interval.ms={heartbeat_ms}",
            "-X", f"max.poll.interval.ms={2 * session_ms}")


# With this, no relay loses its membership if the machine stands still for some seconds.
SESSION = session(30000, 500)


def short_session(times=1):
    """For relays of which one is killed: the group waits for it for this time. By default, brokers
    allow no less than 6 s; the mock lets members wait for each other for 3 s."""
    return session((4000 if uses_mock() else 6000) * times, 200)


class TooLate(Exception):
    """The machine stood still for so long that the premise of a test did not hold: the test has
    proved nothing, and has to begin again."""


class Relay(process.Process):
    """A twheel-relay; its log is kept over any number of starts."""

    name = "relay"

    def __init__(self, brokers, topic, options):
        super().__init__(options=options)
        # Of two threads that start or end it, one at a time.
        self.changing = threading.RLock()
        self.address = topic
        self.brokers = brokers
        self.begun = 0
        with open(self.log, "xb"):
            pass

    def command(self):
        return [RELAY, "--brokers", self.brokers, "--topic", self.address,
                "--wheel", "process", "--metrics", "127.0.0.1:0", *self.options]

    def launch(self):
        with self.changing:
            self.begun = len(self.said())
            return super().launch()

    def end(self, number):
        with self.changing:
            return super().end(number)

    def start(self, seconds=PATIENCE_S):
        return super().start(seconds)

    def said_now(self):
        """Its log since the last start."""
        return self.said()[self.begun:]

    def answers(self):
        """Has the relay partitions?"""
        return re.search(r"[1-9][0-9]* partitions are assigned", self.said_now())

    def was_put_out(self):
        """Has it lost its membership since the last start?"""
        return PUT_OUT.search(self.said_now())

    def wait_until_it_says(self, words):
        """Wait for a line of its log since the last start."""
        def has_said():
            ended = not self.process or self.process.poll() is not None
            said = re.search(words, self.said_now())
            holds(said or not ended, f'it has ended without "{words}": {self.said_now()[-2000:]}')
            return said
        wait_for(has_said, f'"{words}" of {self.said_now()[-2000:]}')

    def page(self, seconds=PATIENCE_S):
        """The page of metrics."""
        address = re.findall(r"metrics on (\S+)", self.said_now())[-1]
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=seconds) as page:
            return page.read().decode()

    def metrics(self, seconds=PATIENCE_S):
        """{name and labels: value}; @seconds is how long to wait for them."""
        lines = (line.rsplit(" ", 1) for line in self.page(seconds).splitlines()
                 if line[0] != "#")
        return {name.removeprefix("twheel_relay_"): float(value) for name, value in lines}

    def cpu_seconds(self):
        """The processor time that it has used."""
        with open(f"/proc/{self.pid()}/stat", encoding="ascii") as stat:
            words = stat.read().rsplit(")", 1)[1].split()
        return (int(words[11]) + int(words[12])) / 100

    def stop_in_order(self):
        """SIGTERM, which has to end it with 0; TooLate if brokers took too long for that."""
        before = len(self.said())
        status = self.stop()
        if status == UNANSWERED and NO_ANSWER.search(self.said()[before:]):
            raise TooLate("brokers did not answer while a relay ended")
        equal(status, 0, "exit status")

    def kill_if_it_runs(self):
        """Kill it by SIGKILL, if it has not ended."""
        if self.process:
            self.kill()


class Assignments(threading.Thread):
    """Notes when relays got a partition, and from which offset."""

    LINE = re.compile(r"(\S+) \[(\d+)\] is ours from offset (-?\d+)\n")

    def __init__(self, relays):
        super().__init__(daemon=True)
        self.relays = relays
        self.seen = {}
        self.list = []
        self.over = False
        self.lock = threading.Lock()
        self.start()

    def run(self):
        while not self.over:
            self.catch_up()
            time.sleep(0.02)

    def catch_up(self):
        """Read the logs of all relays up to now."""
        with self.lock:
            for relay in list(self.relays):
                with contextlib.suppress(FileNotFoundError):
                    self.look(relay)

    def look(self, relay):
        """Read the log of a relay since the last time."""
        with open(relay.log, encoding="utf-8", errors="replace") as log:
            log.seek(self.seen.get(relay, 0))
            said = log.read()
        end = said.rfind("\n") + 1
        self.seen[relay] = self.seen.get(relay, 0) + len(said[:end].encode())
        for topic, partition, offset in self.LINE.findall(said[:end]):
            self.list.append(((topic, int(partition)), int(offset), now_ms()))

    def close(self):
        """Stop it."""
        self.over = True
        self.join()


class Scene:
    """A topic of delays with all that belongs to it.

    @targets are {name: partitions}; a target has its topic and one for the dead. @horizon_s and
    @scale are the relays' --horizon and --time-scale; @policies {target: numbers of --policy}.
    @apart: the targets have a broker of the mock of their own, whose number it is. @cluster is
    one of this test's own.
    """

    def __init__(self, partitions=2, targets=None, horizon_s=DAY_S, scale=1, policies=None,
                 options=SESSION, producer=None, apart=None, cluster=None):
        self.cluster = cluster or open_cluster()
        self.topic = f"delays-{uuid.uuid4().hex[:8]}"
        self.group = f"group-{self.topic}"
        self.partitions = partitions
        self.relays = []
        targets = targets or {"t": 3}
        self.targets = {name: self.target(name) for name in targets}
        policies = {self.target(name): policy for name, policy in (policies or {}).items()}
        self.options = ["--group", self.group, "--horizon", f"{horizon_s}s", *DEBUG,
                        *(FETCH_OF_MOCK if uses_mock() else ()), *options]
        self.options += self.more_options(scale, policies)
        self.horizon_ms = horizon_s * 1000 // scale
        widths = [width for width in SMALL_WIDTHS if width < horizon_s]
        widths += [horizon_s << n for n in range(22) if horizon_s << n <= 30 * DAY_S]
        self.buckets = [f"{self.topic}-b{width}s" for width in widths]
        self.topics = self.name_topics(targets)
        # These have no records that are to be delivered: the ledger does not read them.
        self.tables = {f"{self.topic}-done": partitions, f"{self.topic}-cancelled": partitions}
        self.assignments = Assignments(self.relays)
        self.make_topics()
        if apart:
            self.move_apart(apart)
        self.addresses = self.cluster.addresses()
        self.ledger = Ledger(self.cluster.address, self.topic, scale, policies, producer or {})
        self.ledger.reader = self.reader = Reader(self.cluster.address, self.topics)
        self.map = Reader(self.cluster.address, {f"{self.topic}-done": partitions})

    def __enter__(self):
        return self

    def __exit__(self, kind, error, where):
        if error and not isinstance(error, (process.NotUp, TooLate)):
            for relay in self.relays:
                note(f"{relay.address} said:\n{relay.said()[-3000:]}")
        self.close()

    def close(self):
        """Stop all that was started here."""
        self.reader.close()
        self.map.close()
        self.assignments.close()
        for relay in self.relays:
            relay.close()
        self.cluster.leave(self.topics | self.tables)

    # --- topics ---------------------------------------------------------------------------

    def target(self, name):
        """The name of the topic of a target."""
        return f"{self.topic}.to.{name}"

    def more_options(self, scale, policies):
        """Options that not every test has."""
        options = ["--time-scale", str(scale)] if scale > 1 else []
        for target, numbers in policies.items():
            most, base, factor, cap, jitter = numbers
            options += ["--policy", f"{target}={most},{base}ms,{factor},{cap}ms,{jitter}"]
        if not self.cluster.is_mock:
            options += ["--create", "--partitions", str(self.partitions)]
        return options

    def name_topics(self, targets):
        """All topics with records: {name: partitions}."""
        invalid = 1 if self.cluster.is_mock else self.partitions
        topics = {self.topic: self.partitions, f"{self.topic}.invalid": invalid}
        topics |= {bucket: self.partitions for bucket in self.buckets}
        for name, partitions in targets.items():
            topics |= {self.target(name): partitions, f"{self.target(name)}.dead": 1}
        return topics

    def make_topics(self):
        """Create the topics; if the cluster supports CreateTopics, the relay creates its own."""
        topics = self.topics | self.tables
        if not self.cluster.is_mock:
            for topic in list(topics):
                if not topic.startswith(self.topic + ".to."):
                    del topics[topic]
        self.cluster.make_topics(topics)
        if not self.cluster.is_mock:
            # Version 1 begins without partitions if a broker does not know the topics yet; a
            # test of its own shows that.
            with self.relay() as relay:
                relay.launch().wait_until_it_says("partitions are assigned")
                relay.stop()
            self.relays.clear()
            self.cluster.wait_topics(self.topics)

    def move_apart(self, broker):
        """Make @apart the leader of the targets; the broker before it has all other topics."""
        for topic, partitions in (self.topics | self.tables).items():
            for number in range(partitions):
                self.cluster.tell("leader", topic, number,
                                  broker - (not topic.startswith(self.topic + ".to.")))

    # --- relays ---------------------------------------------------------------------------

    def relay(self, *options):
        """A relay that is not started yet; after a kill it may be started again."""
        relay = Relay(self.cluster.address, self.topic, [*self.options, *options])
        self.relays.append(relay)
        return relay

    def start(self, *options):
        """Start a relay, and wait until it has partitions."""
        return self.relay(*options).start()

    def stop(self):
        """Stop all running relays, and check that each ends in order."""
        for relay in self.relays:
            if relay.process:
                relay.stop_in_order()

    # --- sending --------------------------------------------------------------------------

    def send(self, name="t", **what):
        """Send a record to a target."""
        return self.ledger.send(self.target(name), **what)

    @contextlib.contextmanager
    def flow(self, rate, delay_ms, names=("t",)):
        """While this is open, send records at a rate per second, with random delays up to a
        limit, more short ones than long ones."""
        flow = Flow(self, rate, delay_ms, names)
        flow.start()
        try:
            yield flow
        finally:
            flow.over = True
            flow.join()

    # --- judging --------------------------------------------------------------------------

    def source_partitions(self):
        """The (topic, partition)s that the group reads."""
        return [(topic, number) for topic in [self.topic, *self.buckets]
                for number in range(self.partitions)]

    def read_more(self, topics):
        """Read these, too, or more partitions: {name: partitions}."""
        self.topics |= topics
        self.reader.add(topics)

    def is_stopped(self, number):
        """Does a relay say that this partition of the topic of delays has stopped?"""
        words = f"{self.topic} [{number}] is stopped"
        return any(words in relay.said_now() for relay in self.relays)

    def committed(self):
        """{(topic, partition): Committed}, with what the map says is done."""
        found = wire.committed(self.addresses, self.group, self.source_partitions())
        for where, pieces in self.pieces().items():
            found[where].add_pieces(pieces)
        return found

    def pieces(self):
        """{(topic, partition): (first offset, bits) of each piece of the map}."""
        self.map.catch_up()
        values = {record.key: record.value
                  for record in list(self.map.records[f"{self.topic}-done"])}
        pieces = {}
        for key, value in values.items():
            topic, partition, begin, _ = key.decode().split(":")
            if value and begin != "low":
                # Before the bits there are a version, a time and an epoch.
                pieces.setdefault((topic, int(partition)), []).append((int(begin), value[13:]))
        return pieces

    def went_on(self, record, ways):
        """Was the record written to its next topic, by one of the @ways of its number?"""
        level = self.level(record.topic)
        return any(self.level(way.topic) > level for way in ways)

    def level(self, topic):
        """The level of a topic: records move to topics of a higher level."""
        if topic == self.topic:
            return 0
        if topic in self.buckets:
            return len(self.buckets) - self.buckets.index(topic)
        return len(self.buckets) + 1

    def may_come_again(self):
        """How many records are done and not committed as done: if all relays end now without
        another commit, these are written once more, and no others."""
        self.reader.catch_up()
        committed = self.committed()
        ways = self.ledger.by_number(lambda topic: True)
        count = 0
        for (topic, partition), known in committed.items():
            for record in list(self.reader.records[topic]):
                count += (record.partition == partition and not known.is_done(record.offset)
                          and self.went_on(record, ways[record.number()]))
        return count

    def above_committed(self, committed=None, until_ms=None):
        """The same without the text of commits; or for an earlier commit and the records done
        until a time."""
        self.reader.catch_up()
        committed, until_ms = committed or self.committed(), until_ms or now_ms()
        ways = self.ledger.by_number(lambda topic: True)
        return sum(self.done_above(where, known.offset, until_ms, ways)
                   for where, known in committed.items())

    def done_above(self, where, offset, until_ms, ways):
        """How many records of a partition from an offset on were done by a time."""
        topic, partition = where
        return sum(record.partition == partition and record.offset >= offset
                   and self.went_on(record, [way for way in ways[record.number()]
                                             if way.made_ms <= until_ms])
                   for record in list(self.reader.records[topic]))

    def contract_bound(self):
        """How many records may have come twice by the contract: each time that a partition
        got another owner, those done above the committed offset."""
        self.assignments.catch_up()
        seen, bound = set(), 0
        ways = self.ledger.by_number(lambda topic: True)
        for where, offset, at_ms in self.assignments.list:
            if where in seen:
                bound += self.done_above(where, offset, at_ms, ways)
            seen.add(where)
        return bound

    def wait_until_committed(self):
        """Wait until all records that have arrived are committed as done."""
        wait_for(lambda: not self.may_come_again(), "a commit of all that was done")

    def count_on(self, missing):
        """Raise TooLate, unless this many records have not arrived yet."""
        left = len(self.ledger.missing())
        if left != missing:
            raise TooLate(f"{left} have not arrived, and should be {missing}")

    def was_put_out(self):
        """Has a relay lost its membership in the group?"""
        return any(PUT_OUT.search(relay.said()) for relay in self.relays)

    def count_on_the_group(self):
        """Raise TooLate if a relay has lost its membership."""
        if self.was_put_out():
            raise TooLate("a relay was put out of the group")

    def finish(self, most_duplicates=0, by_contract=False, strict=False):
        """Wait until all records have arrived, stop the relays, and return the verdict. More
        records may come twice only @by_contract, or if a relay has lost its membership, unless
        the bound is @strict."""
        self.ledger.flush()
        self.ledger.wait()
        self.stop()
        self.reader.catch_up()
        verdict = self.ledger.check()
        verdict.most = most_duplicates
        if not strict and (by_contract or self.was_put_out()):
            verdict.most = max(verdict.most, self.contract_bound())
        holds(verdict.duplicates <= verdict.most, str(verdict))
        return verdict


class Flow(threading.Thread):
    """Sends records until it is stopped."""

    def __init__(self, scene, rate, delay_ms, names):
        super().__init__(daemon=True)
        self.scene = scene
        self.rate = rate
        self.delay_ms = delay_ms
        self.names = names
        self.over = False
        self.count = 0

    def run(self):
        begun = time.monotonic()
        while not self.over:
            while self.count < (time.monotonic() - begun) * self.rate:
                self.count += 1
                delay = random.randint(0, self.delay_ms >> random.randrange(6))
                self.scene.send(random.choice(self.names), delay=delay, value=b"x" * 40,
                                key=b"%d" % random.randrange(50))
            self.scene.ledger.producer.poll(0.02)
