# SPDX-License-Identifier: GPL-2.0
"""The programs that are compared, as processes."""

import os
import shutil
import signal
import subprocess

import brokers
import measure

HERE = os.path.dirname(os.path.abspath(__file__))
LOAD = os.path.join(HERE, "load")
RELAY = os.environ.get("TWHEEL_RELAY", os.path.join(HERE, "..", "twheel-relay"))
# The least that brokers allow by default: all wait equally long for a process that is killed.
SESSION = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 2000}
END_S = 60


class CannotRun(Exception):
    """Why a program cannot be run here."""


class Program:
    """One or more processes of a group that read a topic and write to another."""

    # How many members of the group a process is.
    members = 1

    def __init__(self, bench, name, topic):
        self.bench = bench
        self.name = name
        self.topic = topic
        self.target = f"{topic}-out"
        self.directory = os.path.join(bench.out, topic)
        shutil.rmtree(self.directory, ignore_errors=True)
        os.makedirs(self.directory)
        self.processes = {}
        self.cpu_s = 0
        self.memory = 0

    @classmethod
    def check(cls, bench):
        """Raise CannotRun if it cannot be run."""

    def command(self, number):
        """The words of the command line of a process."""
        raise NotImplementedError

    # --- processes ------------------------------------------------------------

    def start(self, number=1):
        """Start a process, and do not wait."""
        with open(os.path.join(self.directory, f"log.{number}"), "ab") as log:
            self.processes[number] = brokers.launch(self.command(number), stdout=log, stderr=log,
                                                    stdin=subprocess.DEVNULL)

    def has_joined(self, processes=1):
        """Is the group stable, with all partitions assigned to so many processes?"""
        for number, process in self.processes.items():
            if process.poll() is not None:
                raise CannotRun(f"process {number} of {self.name} has ended with "
                                f"{process.returncode}; see {self.directory}")
        group = self.bench.group(self.topic)
        return group is not None and group.state == "Stable" \
            and len(group.members) == processes * self.members

    def wait_joined(self, processes=1):
        """Wait for that."""
        if not measure.wait_for(lambda: self.has_joined(processes), 120, 0.02):
            raise CannotRun(f"{self.name} did not join the group; see {self.directory}")

    def note(self, process):
        """Note what a process has taken, before it ends."""
        self.cpu_s += measure.cpu_seconds(process.pid)
        self.memory = max(self.memory, measure.most_memory(process.pid))

    def end(self, number, how):
        """Send a signal, and wait for the end. One that does not end is killed: False."""
        process = self.processes.pop(number)
        if process.poll() is not None:
            self.bench.say(f"{self.name} had ended with {process.returncode}")
            return False
        self.note(process)
        process.send_signal(how)
        try:
            process.wait(END_S)
            return True
        except subprocess.TimeoutExpired:
            self.bench.say(f"{self.name} did not end within {END_S} s")
            process.kill()
            process.wait()
            return False

    def stop(self):
        """End all of them in order."""
        for number in list(self.processes):
            self.end(number, signal.SIGTERM)

    def kill(self, number):
        """kill -9"""
        self.end(number, signal.SIGKILL)

    def used_cpu_s(self):
        """The processor time of all processes so far."""
        return self.cpu_s + sum(measure.cpu_seconds(process.pid)
                                for process in self.processes.values()
                                if process.poll() is None)


class Copy(Program):
    """The loop that delays nothing."""

    def command(self, number):
        return [LOAD, "copy", "--brokers", self.bench.kafka.address, "--topic", self.topic,
                "--target", self.target, "--group", self.topic]


class Relay(Program):
    """twheel-relay. It had no --delivery once: then it delivers at least once."""

    delivery = "at-least-once"
    has_option = {}

    @classmethod
    def check(cls, bench):
        text = subprocess.run([RELAY, "--help"], capture_output=True, text=True,
                              check=False).stdout
        cls.has_option = {name: f"--{name}" in text for name in ("delivery", "instance")}
        if cls.delivery != "at-least-once" and not cls.has_option["delivery"]:
            raise CannotRun("this twheel-relay has no --delivery")

    def command(self, number):
        words = [RELAY, "--brokers", self.bench.kafka.address, "--topic", self.topic,
                 "--group", self.topic, "--create", "--partitions",
                 str(self.bench.options.partitions), "--wheel", "process",
                 "--memory", "1G", "--log-level", "notice",
                 "--time-scale", str(self.bench.options.scale)]
        for name, value in SESSION.items():
            words += ["-X", f"{name}={value}"]
        if self.has_option["delivery"]:
            words += ["--delivery", self.delivery]
        if self.has_option["instance"]:
            words += ["--instance", f"bench-{number}"]
        return words


class RelayExactlyOnce(Relay):
    """The same, exactly once."""

    delivery = "exactly-once"


class Streams(Program):
    """StreamsDelay.java. Where its settings differ from Kafka's defaults, that is in its favour:
    records are written after 5 ms and not 100, it polls for 10 ms and not 100, and at least once,
    it commits each second and not each half minute, as the relay does."""

    store = "persistent"
    guarantee = "at_least_once"

    def __init__(self, bench, name, topic):
        super().__init__(bench, name, topic)
        self.members = bench.options.threads

    @classmethod
    def check(cls, bench):
        done = subprocess.run(["make", "-s", "-C", HERE, "streams",
                               f"KAFKA={bench.kafka.installation.directory}"],
                              capture_output=True, text=True, check=False)
        if done.returncode:
            raise CannotRun(f"StreamsDelay.java does not build: {done.stdout}{done.stderr}")

    def settings(self, number):
        """The settings of Kafka Streams."""
        settings = {
            "application.id": self.topic,
            "bootstrap.servers": self.bench.kafka.address,
            "state.dir": os.path.join(self.directory, f"state.{number}"),
            "processing.guarantee": self.guarantee,
            "num.stream.threads": self.bench.options.threads,
            "poll.ms": 10,
            "producer.linger.ms": 5,
            "producer.compression.type": "lz4",
        }
        for name, value in SESSION.items():
            settings[f"main.consumer.{name}"] = value
        if self.guarantee == "at_least_once":
            settings["commit.interval.ms"] = 1000
        return settings

    def command(self, number):
        installation = self.bench.kafka.installation
        version = installation.version
        config = os.path.join(self.directory, f"log.properties.{number}")
        brokers.write(config, brokers.LOG[version].format(
            level="WARN", file=os.path.join(self.directory, f"streams.log.{number}")))
        classes = os.path.join(HERE, ".obj", f"java-{os.path.basename(installation.directory)}")
        return ["java", "-Xmx1g", brokers.LOG_OPTION[version] + config,
                "-cp", f"{classes}:{installation.class_path()}", "StreamsDelay",
                self.topic, self.store,
                *(f"{name}={value}" for name, value in self.settings(number).items())]


class StreamsExactlyOnce(Streams):
    """The same, exactly once."""

    guarantee = "exactly_once_v2"


class StreamsMemory(Streams):
    """With a store in memory."""

    store = "memory"


class StreamsMemoryExactlyOnce(StreamsExactlyOnce):
    """Both."""

    store = "memory"


PROGRAMS = {
    "copy": Copy,
    "relay_alo": Relay,
    "relay_eos": RelayExactlyOnce,
    "streams_alo": Streams,
    "streams_eos": StreamsExactlyOnce,
    "streams_mem_alo": StreamsMemory,
    "streams_mem_eos": StreamsMemoryExactlyOnce,
}
TITLES = {
    "copy": "a loop that delays nothing",
    "relay_alo": "twheel-relay, at least once",
    "relay_eos": "twheel-relay, exactly once",
    "streams_alo": "Kafka Streams, at least once",
    "streams_eos": "Kafka Streams, exactly once",
    "streams_mem_alo": "the same in memory, at least once",
    "streams_mem_eos": "the same in memory, exactly once",
}
BY_NAME_ONLY = ("streams_mem_alo", "streams_mem_eos")
