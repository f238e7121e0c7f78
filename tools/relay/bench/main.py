# SPDX-License-Identifier: GPL-2.0
"""The bench of twheel-relay; run has the usage."""

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[1:1] = [os.path.join(HERE, "..", "test", "blackbox")]

# pylint: disable=wrong-import-position
import brokers
import measure
import report
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from programs import BY_NAME_ONLY, LOAD, PROGRAMS, CannotRun
from tap import Skip

CASES = ("drain", "burst", "steady", "kill", "restart")
DELAY_MS = 1000
DELAY_MAX_MS = 3600000
# Brokers as they are when nobody hurries their cleaning for a test.
PROPERTIES = {
    "log.segment.bytes": 64 << 20,
    "log.index.size.max.bytes": 4 << 20,
    "log.retention.check.interval.ms": 60000,
    "log.cleaner.backoff.ms": 15000,
    "num.network.threads": 3,
    "num.io.threads": 4,
}
# What Kafka's own scripts start a broker with, instead of what tests take.
JVM = ("-XX:-UseSerialGC", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20",
       "-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent",
       "-XX:MaxInlineLevel=15", "-Xms1g", "-Xmx1g")
# No program takes longer than that to have delivered everything, or it is not waited for.
PATIENCE_S = 300
QUICK_PATIENCE_S = 60


class Ledger:
    """The consumer of a target."""

    def __init__(self, bench, topic, count, skip):
        self.path = os.path.join(bench.out, f"{topic}.ledger")
        self.series = f"{self.path}.series"
        self.limit_s = bench.patience_s
        with open(self.path, "wb") as out:
            self.process = brokers.launch(
                [LOAD, "ledger", "--brokers", bench.kafka.address, "--topic", topic,
                 "--count", str(count), "--skip", str(skip), "--series", self.series],
                stdout=out)

    def has_all(self):
        """Has each record come once?"""
        if self.process.poll() is not None:
            raise CannotRun(f"the ledger has ended with {self.process.returncode}")
        return brokers.read(self.path).startswith("all")

    def wait_all(self):
        """Wait for that, but not for ever."""
        return measure.wait_for(self.has_all, self.limit_s)

    def close(self):
        """Let it read what is left; {name: (value, unit)}."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        lines = brokers.read(self.path).splitlines()
        words = [line.split() for line in lines if line.startswith("result ")]
        return {word[1]: (float(word[2]), word[3]) for word in words}


class Run:
    """A case with a program: it measures from begin() on."""

    def __init__(self, bench, case, name, count):
        self.bench = bench
        self.name = f"{case}.{name}"
        self.count = count
        self.measured = count
        self.program = PROGRAMS[name](bench, name, f"{case}-{name}")
        self.topic = self.program.topic
        self.begun = {}
        self.ended = {}
        self.ledger = None
        bench.make_topics(self.topic, self.program.target)

    def start(self, processes=1, skip=0):
        """Start the program and the ledger, and wait until the program works. The lateness of
        the first @skip records is not judged."""
        self.ledger = Ledger(self.bench, self.program.target, self.count, skip)
        for number in range(1, processes + 1):
            self.program.start(number)
        self.program.wait_joined(processes)
        self.begun = self.marks()

    def marks(self):
        """What is measured at the beginning and at the end."""
        return {
            "time": time.time(),
            "cpu": self.program.used_cpu_s(),
            "brokers_cpu": sum(measure.cpu_seconds(self.bench.kafka.pid(number))
                               for number in self.bench.kafka.running()),
            "written": self.bench.logs.written(self.topic, but=self.topic),
        }

    def produce(self, **options):
        """Start the producer."""
        words = [LOAD, "produce", "--brokers", self.bench.kafka.address, "--topic", self.topic,
                 "--target", self.program.target, "--count", str(self.count)]
        for name, value in options.items():
            words += [f"--{name.replace('_', '-')}", str(value)]
        return brokers.launch(words, stdout=subprocess.DEVNULL)

    def produce_steadily(self):
        """The same with a rate, and the delays of all cases but one."""
        scale = self.bench.options.scale
        return self.produce(rate=self.bench.options.rate, delay=DELAY_MS // scale,
                            delay_max=DELAY_MAX_MS // scale)

    def wait_produced(self, producer):
        """Wait until all is written."""
        if producer.wait():
            raise CannotRun(f"the producer has ended with {producer.returncode}")

    def finish(self, producer=None, event=None, since=None):
        """Wait until all has come, end everything, and write the results. Records are counted
        from the time @since on."""
        if producer:
            self.wait_produced(producer)
        if not self.ledger.wait_all():
            self.bench.say(f"{self.name}: not all has come within {self.ledger.limit_s} s\n"
                           + self.program.said())
        ended = self.ended or self.marks()
        self.program.stop()
        figures = self.ledger.close()
        if not self.ended:
            ended["written"] = self.bench.logs.written(self.topic, but=self.topic)
        self.result("memory", self.program.memory, "bytes")
        for name in ("cpu", "brokers_cpu"):
            self.result(name, (ended[name] - self.begun[name]) * 1e6 / self.measured, "us")
        self.result("written", (ended["written"] - self.begun["written"])
                    / self.measured / self.bench.replicas, "bytes")
        if event is not None:
            series = measure.Series(self.ledger.series)
            self.result("late_until", series.late_until(event), "s")
        last, _ = figures.pop("last", (0, ""))
        for name, (value, unit) in figures.items():
            self.result(name, value, unit)
        if since and last > since:
            self.result("per_s", (self.count - figures["lost"][0]) / (last - since), "per_s")
        for name in ("early", "strange"):
            if figures[name][0]:
                raise CannotRun(f"{figures[name][0]:.0f} records were {name}")

    def result(self, name, value, unit):
        """A result of this case and program."""
        self.bench.result(f"{self.name}.{name}", value, unit)

    def close(self):
        """Whatever still runs, and the topics."""
        for process in self.program.processes.values():
            process.kill()
            process.wait()
        if self.ledger and self.ledger.process.poll() is None:
            self.ledger.process.kill()
            self.ledger.process.wait()
        self.bench.delete_topics(self.topic)


class Bench:
    """The brokers, and the cases."""

    def __init__(self, options):
        self.options = options
        self.out = options.out
        self.replicas = 3
        self.patience_s = QUICK_PATIENCE_S if options.quick else PATIENCE_S
        self.kafka = brokers.Brokers(
            self.replicas, version=options.version, directory=os.path.join(self.out, "brokers"),
            properties=PROPERTIES, jvm=brokers.QUICK_START if options.quick else JVM)
        self.admin = AdminClient({"bootstrap.servers": self.kafka.address, "log_level": 0})
        self.logs = measure.Logs(self.kafka)
        self.logs.start()

    @staticmethod
    def say(text):
        """Tell what goes on."""
        print(text, flush=True)

    def record(self, line):
        """Keep a line."""
        with open(os.path.join(self.out, "all"), "a", encoding="utf-8") as file:
            file.write(f"{line}\n")

    def result(self, name, value, unit):
        """Keep and print a result."""
        line = f"result {name} {value:.6g} {unit}"
        self.record(line)
        self.say(line)

    def group(self, name):
        """What brokers know of a group, or None."""
        with contextlib.suppress(KafkaException):
            return next(iter(self.admin.list_groups(name, timeout=10)), None)
        return None

    def make_topics(self, *topics):
        """New topics."""
        self.kafka.make_topics({topic: self.options.partitions for topic in topics})

    def delete_topics(self, begins):
        """All topics whose names begin so."""
        names = [name for name in self.admin.list_topics(timeout=30).topics
                 if name.startswith(begins)]
        if names:
            self.kafka.delete_topics(*names)

    # --- cases ------------------------------------------------------------------

    def drain(self, run):
        """All are overdue."""
        if run.produce(due=int(time.time() * 1000)).wait():
            raise CannotRun("the producer has failed")
        run.start()
        run.finish(since=run.begun["time"])

    def burst(self, run):
        """All become due at the same time, after they were read."""
        run.start()
        due = time.time() + self.options.burst_s
        run.finish(run.produce(due=int(due * 1000)), since=due)

    def steady(self, run):
        """Lateness. The first records are not judged, and their processor time is not counted:
        until as many wait as ever will, and Java has compiled what it uses."""
        run.measured = self.options.rate * self.options.steady_s
        run.start(skip=run.count - run.measured)
        producer = run.produce_steadily()
        time.sleep(self.options.before_s)
        run.begun = run.marks()
        run.wait_produced(producer)
        run.ended = run.marks()
        run.finish()

    def begin_with_two(self, run):
        """Two processes, and records until the end of the fault and after it."""
        run.start(2)
        producer = run.produce_steadily()
        time.sleep(self.options.before_s)
        return producer, time.time()

    def kill(self, run):
        """kill -9."""
        producer, event = self.begin_with_two(run)
        run.program.kill(1)
        run.result("done_per_s", self.options.rate / 2, "per_s")
        time.sleep(1)
        run.program.start(1)
        run.finish(producer, event)

    def restart(self, run):
        """A rolling restart."""
        producer, event = self.begin_with_two(run)
        for number in (1, 2):
            run.program.end(number, signal.SIGTERM)
            run.program.start(number)
            run.program.wait_joined(2)
        run.result("took", time.time() - event, "s")
        run.finish(producer, event)

    def count_of(self, case):
        """How many records a case has."""
        if case in ("drain", "burst"):
            return self.options.count
        if case == "steady":
            return self.options.rate * (self.options.before_s + self.options.steady_s)
        return self.options.rate * (self.options.before_s + self.options.after_s)

    def run(self, case, name):
        """Run a case with a program; False if that failed."""
        self.say(f"--- {case}, {name}")
        one = Run(self, case, name, self.count_of(case))
        try:
            getattr(self, case)(one)
        except CannotRun as why:
            self.say(f"{case}.{name} failed: {why}")
            return False
        finally:
            one.close()
        return True

    def run_all(self):
        """All that is asked for; False if one of them failed."""
        good = True
        for name in self.options.only:
            try:
                PROGRAMS[name].check(self)
            except CannotRun as why:
                self.say(f"{name} is left out: {why}")
                self.options.only = [other for other in self.options.only if other != name]
        for case in self.options.cases:
            for name in self.options.only:
                if name != "copy" or case == "drain":
                    good = self.run(case, name) and good
        return good

    def close(self):
        """End the brokers."""
        self.logs.close()
        self.kafka.close()


def parse_options():
    """The options; run tells what they are."""
    parser = argparse.ArgumentParser(prog="run", add_help=False)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--only", action="append", choices=PROGRAMS, metavar="PROGRAM")
    parser.add_argument("--count", type=int)
    parser.add_argument("--rate", type=int)
    parser.add_argument("--scale", type=int)
    parser.add_argument("--partitions", type=int, default=6)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--version", default="3.9", choices=brokers.VERSIONS)
    parser.add_argument("--out", type=os.path.abspath, default=".build/bench-relay")
    parser.add_argument("cases", nargs="*", metavar="CASE")
    options = parser.parse_args()
    for case in options.cases:
        if case not in CASES:
            parser.error(f"unknown: '{case}' (known: {' '.join(CASES)})")
    options.complete = not (options.cases or options.only or options.quick)
    options.cases = options.cases or list(CASES)
    options.only = options.only or [name for name in PROGRAMS if name not in BY_NAME_ONLY]
    defaults = ({"count": 3000, "rate": 600, "scale": 1200} if options.quick else
                {"count": 1000000, "rate": 1000, "scale": 60})
    for name, value in defaults.items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    for name in ("count", "rate", "scale", "partitions", "threads"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} wants at least 1")
    # Before the fault, as many records wait as ever will.
    options.before_s = DELAY_MAX_MS // options.scale // 1000
    options.steady_s = 5 if options.quick else 120
    options.burst_s = 5 if options.quick else 60
    options.after_s = 5 if options.quick else 40
    return options


def prepare(out):
    """Build what is run, and forget the last run."""
    for folder in ("tools/relay", "tools/relay/bench"):
        target = ["twheel-relay"] if folder == "tools/relay" else []
        if subprocess.run(["make", "-s", "-C", folder, *target], check=False).returncode:
            sys.exit(2)
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)


def measure_all(options):
    """Run the cases; False if one failed."""
    brokers.need(options.version)
    prepare(options.out)
    bench = Bench(options)
    try:
        for line in report.where():
            bench.record(line)
        bench.record(f"where kafka {bench.kafka.installation.release}")
        return bench.run_all()
    finally:
        bench.close()


def main():
    """The status is that of run."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options = parse_options()
    good = True
    if not options.again:
        try:
            good = measure_all(options)
        except Skip as why:
            print(why)
            return 77
    elif not os.path.exists(os.path.join(options.out, "all")):
        print("run: there was no run", file=sys.stderr)
        return 2
    status = report.show(options.out, options.complete)
    print(f"All results: {options.out}/results, relay.json, table.md")
    return status if good else 2


if __name__ == "__main__":
    sys.exit(main())
