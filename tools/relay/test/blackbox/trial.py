# SPDX-License-Identifier: GPL-2.0
"""A fault under flow: what the relay may do by its contract, and what it did.

A trial has a scene for each --delivery that the relay offers. All of them flow while the fault
happens, since most faults take long and concern all of the cluster. Each scene is judged by its
own ledger, and is a row of the table.
"""

import collections
import contextlib
import re
import threading
import time

from cluster import offers
from ledger import now_ms
from scene import Scene, TooLate, session
from tap import holds, note

AT_LEAST_ONCE = "at-least-once"
EXACTLY_ONCE = "exactly-once"
# The relay ends with it when Kafka does not allow it to go on; systemd starts it again.
UNAVAILABLE = 69
# How old a page of metrics may be.
PAGE_MS = 100
# With samples this far apart, nobody knows what the relay said before the fault.
SAMPLES_MS = 3000
# After this, what has not arrived is lost. It is far more than any fault here takes.
PATIENCE_S = 120
# Messages of the relay that say what happened to it.
TELLS = re.compile(r"lost|stopped|cannot|fail|refuse|not answer|missing|retention|not allowed|"
                   r"not exist|parked|may come twice|is gone|slow|ahead|behind", re.I)
# But these are librdkafka's own, or tell of no fault.
NOISE = re.compile("kafka: |librdkafka |.* is ours|.* should have|cannot read the settings")


def modes():
    """Values of --delivery; a relay without that option delivers at least once."""
    return [AT_LEAST_ONCE, EXACTLY_ONCE] if offers("--delivery") else [AT_LEAST_ONCE]


def delivery(mode):
    """The option for it."""
    return ["--delivery", mode] if offers("--delivery") else []


# --- the table ----------------------------------------------------------------------------

class Table:
    """What came of each fault."""

    HEAD = ("fault", "delivery", "sent", "lost", "early", "duplicated", "allowed",
            "late at most", "what the relay said")

    def __init__(self):
        self.rows = []
        self.lock = threading.Lock()

    def add(self, *row):
        """Add a row; it replaces one of a trial that had to begin again."""
        with self.lock:
            self.rows = [one for one in self.rows if one[:2] != row[:2]] + [row]

    def markdown(self):
        """The table as lines of markdown."""
        rows = [self.HEAD, ["---"] * len(self.HEAD), *sorted(self.rows)]
        return "".join(f"| {' | '.join(map(str, row))} |\n" for row in rows)

    def write(self, path):
        """Print it, and write it to a file, if there is a path."""
        if not self.rows:
            return
        note(self.markdown())
        if path:
            with open(path, "w", encoding="utf-8") as file:
                file.write(self.markdown())


table = Table()


# --- what the relay says ------------------------------------------------------------------

def notable(scene):
    """The messages of the relays that tell of a fault, without what differs each time."""
    found = collections.Counter()
    for relay in scene.relays:
        for line in relay.said().splitlines():
            words = line.partition(": ")[2].replace(scene.topic, "delays")
            if TELLS.search(words) and not re.match(NOISE, words):
                found[re.sub(r"\d+", "N", words)] += 1
    return found


def summary(scene):
    """The three most frequent of them, short; first those of partitions that were stopped."""
    most = notable(scene).most_common()
    most.sort(key=lambda one: "is stopped" not in one[0])
    return "; ".join(words[:90].replace("|", "/") for words, _ in most[:3]) or "nothing"


class Watch(threading.Thread):
    """Reads the metrics of a scene's relays all the time, and does what systemd does with a
    relay that ends because Kafka refused something: it starts it again."""

    def __init__(self, scene):
        super().__init__(daemon=True)
        self.scene = scene
        self.samples = collections.defaultdict(list)
        # How many batches may have been written although Kafka refused them.
        self.unknown = collections.Counter()
        self.ends = 0
        self.over = False
        self.start()

    def run(self):
        while not self.over:
            for relay in list(self.scene.relays):
                self.look(relay)
            time.sleep(0.02)

    def look(self, relay):
        """One sample, or a new start."""
        process, at_ms = relay.process, now_ms()
        if not process:
            return
        if process.poll() == UNAVAILABLE and relay.process is process:
            self.ends += 1
            relay.launch()
            return
        with contextlib.suppress(OSError, IndexError, ValueError, KeyError):
            metrics = relay.metrics(1)
            self.samples[relay].append(
                (at_ms, metrics["duplicates_possible"] + metrics["in_flight"]))
            self.unknown[relay] = metrics["write_unknown_total"]

    def said_before(self, relay, at_ms):
        """(when, how many records might come twice) by the relay itself before that time."""
        before = [sample for sample in self.samples[relay] if sample[0] <= at_ms]
        if not before or at_ms - before[-1][0] > SAMPLES_MS:
            raise TooLate("there are no metrics of the time right before the fault")
        return before[-1]

    def most(self, since_ms, until_ms):
        """The most that all of them said in a time."""
        return sum(max((said for at_ms, said in samples if since_ms <= at_ms <= until_ms),
                       default=0) for samples in self.samples.values())

    def close(self):
        """Stop it."""
        self.over = True
        self.join()


# --- a trial ------------------------------------------------------------------------------

class Trial:
    """@fault is its name in the table. @relays is how many relays each scene has; @options
    are theirs, and @scene the arguments of each Scene."""

    def __init__(self, fault, relays=2, times=1, options=(), only=None, **scene):
        self.fault = fault
        self.options = list(options) or session(6000 * times, 200 * times)
        self.relays = relays
        self.scenes = []
        self.watches = {}
        self.allowed = collections.Counter()
        # Bounds that do not depend on the metric.
        self.bounds = {}
        self.begun_ms = self.over_ms = 0
        self.patience_s = PATIENCE_S
        self.errors = []
        with contextlib.ExitStack() as stack:
            for mode in only or modes():
                opened = Scene(options=[*self.options, *delivery(mode)],
                               **{"partitions": 4, **scene})
                opened.mode = mode
                self.scenes.append(stack.enter_context(opened))
            self.stack = stack.pop_all()

    @property
    def cluster(self):
        """The cluster, which all scenes share."""
        return self.scenes[0].cluster

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for watch in self.watches.values():
            watch.close()
        self.stack.__exit__(*error)

    def each(self, do):
        """Call @do with each scene at the same time; errors come after all have ended."""
        results, errors = {}, []

        def run(scene):
            try:
                results[scene] = do(scene)
            except Exception as error:  # pylint: disable=broad-except
                errors.append(error)
        threads = [threading.Thread(target=run, args=(scene,)) for scene in self.scenes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for error in errors:
            raise error
        return results

    def start(self, *options):
        """Start all relays, and wait until each has partitions."""
        def start(scene):
            relays = [scene.relay(*options).launch() for _ in range(self.relays)]
            for relay in relays:
                relay.wait_until_it_says("[1-9][0-9]* partitions are assigned")
        self.each(start)
        self.watches = {scene: Watch(scene) for scene in self.scenes}
        return self

    @contextlib.contextmanager
    def flow(self, rate=100, delay_ms=4000, names=("t",)):
        """Records flow in all scenes, first for a second, and a second more at the end."""
        with contextlib.ExitStack() as stack:
            for scene in self.scenes:
                stack.enter_context(scene.flow(rate, delay_ms, names))
            time.sleep(1)
            self.begun_ms = now_ms()
            yield self
            self.over_ms = now_ms()
            time.sleep(1)

    def allow(self, scene, relay, at_ms):
        """The relay was killed at that time: what it said before may come twice."""
        since_ms, said = self.watches[scene].said_before(relay, at_ms)
        scene.reader.catch_up()
        done = sum(since_ms - PAGE_MS <= record.made_ms <= at_ms
                   for topic, records in list(scene.reader.records.items())
                   if topic != scene.topic for record in list(records))
        self.allowed[scene] += int(said) + done

    def bound(self, scene):
        """How many records may come twice."""
        if scene.mode == EXACTLY_ONCE:
            return 0
        if scene in self.bounds:
            return self.bounds[scene]
        if self.allowed[scene]:
            return self.allowed[scene]
        # A fault of Kafka: none, if all relays were in the group all the time; else what they
        # said from a second before it until all was over.
        unknown = sum(unknown for _, unknown in self.watches[scene].unknown.items())
        if not scene.was_put_out() and not self.watches[scene].ends:
            return int(unknown)
        until_ms = (self.over_ms or now_ms()) + PATIENCE_S * 1000
        return int(unknown + self.watches[scene].most(self.begun_ms - 1000, until_ms))

    def judge(self, scene):
        """Wait for all records of a scene, and compare: what was wrong, or None."""
        wrong = None
        try:
            scene.ledger.flush()
            scene.ledger.wait(self.patience_s)
        except AssertionError as error:
            wrong = error
        self.watches[scene].close()
        try:
            scene.stop()
            scene.reader.catch_up()
        except AssertionError as error:
            wrong = wrong or error
        bound, count = self.bound(scene), scene.ledger.count()
        said = summary(scene)
        if self.watches[scene].ends:
            said = f"ended {self.watches[scene].ends} times with {UNAVAILABLE}; {said}"
        table.add(self.fault, scene.mode, count.sent, count.lost, count.early,
                  count.duplicates, bound, f"{count.late_ms} ms", said)
        try:
            holds(not wrong, wrong)
            scene.ledger.check()
            holds(count.duplicates <= bound,
                  f"{count.duplicates} records came twice, and {bound} may")
        except AssertionError as error:
            return f"{scene.mode}: {error}"
        return None

    def finish(self):
        """Judge all scenes; returns a text about them."""
        wrong = [error for error in self.each(self.judge).values() if error]
        holds(not wrong, "\n".join(wrong))
        return "\n".join(" ".join(map(str, row[1:8])) for row in table.rows
                         if row[0] == self.fault)
