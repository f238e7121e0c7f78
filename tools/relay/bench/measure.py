# SPDX-License-Identifier: GPL-2.0
"""What processes and brokers take: processor time, memory, and bytes of logs."""

import os
import threading
import time

TICKS = os.sysconf("SC_CLK_TCK")
SAMPLE_S = 0.5
# Topics of Kafka's own, to which programs write what they have done.
INTERNAL = ("__consumer_offsets-", "__transaction_state-")


def cpu_seconds(pid):
    """The processor time that a process has used."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        words = stat.read().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / TICKS


def most_memory(pid):
    """The most bytes that a process had resident."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


class Logs(threading.Thread):
    """Counts the bytes that are written to topics, of all replicas together.

    Files are looked at again and again. The size of one is the largest that it had: so what
    retention deletes and compaction rewrites later is counted once.
    """

    def __init__(self, brokers):
        super().__init__(daemon=True)
        self.brokers = brokers
        self.sizes = {}
        self.lock = threading.Lock()
        self.over = threading.Event()

    def run(self):
        while not self.over.wait(SAMPLE_S):
            self.look()

    def look(self):
        """Look at all files now."""
        with self.lock:
            for broker in self.brokers.brokers.values():
                for partition in os.scandir(broker.path()):
                    if partition.is_dir() and not partition.name.endswith("-delete"):
                        self.look_at(partition)

    def look_at(self, partition):
        """The files of a replica of a partition."""
        try:
            for file in os.scandir(partition.path):
                if file.name.endswith(".log"):
                    size = file.stat().st_size
                    key = (partition.name, file.path)
                    self.sizes[key] = max(size, self.sizes.get(key, 0))
        except FileNotFoundError:
            pass

    def written(self, begins, but=None):
        """Bytes written so far to topics whose names begin so, and to Kafka's own; without those
        of the topic @but."""
        self.look()
        with self.lock:
            return sum(size for (partition, _), size in self.sizes.items()
                       if partition.startswith((begins, *INTERNAL))
                       and partition.rsplit("-", 1)[0] != but)

    def close(self):
        """No more of it."""
        self.over.set()
        self.join()


class Series:
    """What the ledger has written of each 100 ms."""

    def __init__(self, path):
        self.buckets = []
        with open(path, encoding="ascii") as file:
            for line in file:
                begin_us, _, late, _ = map(int, line.split())
                self.buckets.append((begin_us / 1e6, late))

    def late_until(self, since):
        """How long after this time the last late record came; 0 if none did."""
        late = [begin + 0.1 - since for begin, late in self.buckets if late and begin >= since]
        return max(late, default=0)


def wait_for(condition, seconds, step=0.05):
    """Wait until the condition is true; False if it was not within this time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(step)
    return True
