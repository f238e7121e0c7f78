#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""kill -9 at random moments under load, again and again, with a ledger of what was promised.

Usage: kills.py [--kills N] [--lanes N] [--clients N] [--milliseconds N] [--seed N]

A lane is a process with a store of its own. Each time it starts the daemon on it, lets
clients work for a random time, kills it, and then "twheelq check" has to agree, and
"twheelq dump" has to show what the ledger says. Once in ten times the daemon is killed while
it starts, once in twenty it is told to end instead. A store is used for many kills, and then
given up for a new one.
"""

import paths  # pylint: disable=unused-import,wrong-import-order
import argparse
import multiprocessing
import os
import random
import shutil
import sys
import time
import traceback

import daemon
import ledger
import store
from client import Gone

# After so many kills, a lane begins with an empty store; and after so many it says so.
KILLS_OF_A_STORE = 25
KILLS_OF_A_NOTE = 500


class Lane:
    """A store, its daemon and its ledger."""

    def __init__(self, name, clients, milliseconds):
        self.name = name
        self.clients = clients
        self.milliseconds = milliseconds
        self.promises = 0
        self.kills = 0
        self.daemon = None
        self.ledger = None

    def begin(self):
        """An empty store."""
        self.daemon = daemon.Twheelq(options=["--memory", "32M"])
        self.ledger = ledger.Ledger(self.name)
        self.kills = 0

    def go(self):
        """One kill, and what it left."""
        if not self.daemon:
            self.begin()
        what = random.random()
        if what < 0.1 and self.kills:
            self.daemon.launch()
            time.sleep(random.random() * 0.05)
            self.daemon.kill()
        else:
            self.daemon.start()
            self.agrees_with_stats()
            end = self.daemon.stop if what < 0.15 else self.daemon.kill
            ledger.load(self.ledger, self.daemon.address, self.clients,
                        random.random() * self.milliseconds / 1000, end)
        store.check(self.daemon)
        self.ledger.settle(store.jobs_of(self.daemon))
        self.kills += 1
        self.promises += self.ledger.promises
        self.ledger.promises = 0
        if self.kills == KILLS_OF_A_STORE:
            self.daemon.close()
            self.daemon = None

    def agrees_with_stats(self):
        """After the restart, the daemon has as many jobs as the dump."""
        with self.daemon.client() as client:
            stats = client.stats()
        there = sum(int(stats[f"current-jobs-{state}"])
                    for state in ("ready", "reserved", "delayed", "buried"))
        if there != len(self.ledger.jobs):
            raise ledger.Broken(f"after the restart there are {there} jobs, in the store there "
                                f"were {len(self.ledger.jobs)}")


def run_lane(name, seed, kills, arguments, results):
    """A process: (name, kills, promises, what was broken)."""
    # What the parent has started is its own.
    daemon.running.clear()
    random.seed(seed)
    lane = Lane(name, arguments.clients, arguments.milliseconds)
    done, broken = 0, None
    try:
        for done in range(1, kills + 1):
            lane.go()
            if done % KILLS_OF_A_NOTE == 0:
                print(f"# {name}: {done} kills, {lane.promises} promises", flush=True)
    except (ledger.Broken, AssertionError, Gone, OSError, daemon.NotUp, KeyError,
            ValueError) as error:
        where = traceback.format_exc() if not isinstance(error, ledger.Broken) else ""
        broken = f"kill {done} of seed {seed}: {type(error).__name__}: {error}\n{where}"
        if lane.daemon:
            broken += keep(lane.daemon)
    finally:
        results.put((name, done, lane.promises, broken))
        daemon.kill_all()


def keep(one):
    """Keep the directory of a broken store, for who looks into it: where it is."""
    kept = os.environ.get("QUEUE_KEEP")
    if not kept:
        return f"the daemon said: {one.said()[-2000:]}"
    if one.process:
        one.kill()
    path = os.path.join(kept, f"kill-{os.getpid()}")
    shutil.move(one.temporary, path)
    return f"it is kept in {path}"


def run(arguments):
    """All lanes: (kills, promises, texts of what was broken)."""
    results = multiprocessing.Queue()
    lanes = []
    for number in range(arguments.lanes):
        kills = len(range(number, arguments.kills, arguments.lanes))
        lanes.append(multiprocessing.Process(
            target=run_lane, args=(f"lane{number}", f"{arguments.seed}-{number}", kills,
                                   arguments, results)))
    for lane in lanes:
        lane.start()
    ends = [results.get() for _ in lanes]
    for lane in lanes:
        lane.join()
    return (sum(end[1] for end in ends), sum(end[2] for end in ends),
            [end[3] for end in ends if end[3]])


def options(**changes):
    """The defaults, for who calls run()."""
    values = {"kills": 50, "lanes": min(2, os.cpu_count() or 1), "clients": 4,
              "milliseconds": 100, "seed": random.SystemRandom().randrange(1 << 32)}
    return argparse.Namespace(**(values | changes))


def main():
    """As a program: TAP with one test."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in vars(options()).items():
        parser.add_argument(f"--{name}", type=int, default=value)
    arguments = parser.parse_args()
    print("1..1", flush=True)
    start = time.monotonic()
    kills, promises, broken = run(arguments)
    for text in broken:
        print("# " + text.replace("\n", "\n# "))
    print(f"# {kills} kills, {promises} promises, {time.monotonic() - start:.1f} s, "
          f"seed {arguments.seed}")
    print("not ok 1" if broken else "ok 1", "- nothing_promised_is_lost_and_nothing_invented")
    sys.exit(bool(broken))


if __name__ == "__main__":
    main()
