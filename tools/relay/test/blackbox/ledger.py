# SPDX-License-Identifier: GPL-2.0
"""The records that were sent to the relay, and those that arrived, by number.

Every record that is sent has a header "n" with a number of its own. A reader reads all topics:
that of delays, buckets, targets, dead letters and invalid records. So the ledger knows what was
requested (it computes itself when a record is due, by the contract), how often a record was
parked, and each time that it arrived.
"""

import collections
import ctypes
import threading
import time
import uuid

from confluent_kafka import (OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer,
                             TopicPartition)

import tap
import wire
from cluster import uses_mock
from tap import equal, holds

# A busy machine may take ten times as long as an idle one.
PATIENCE_S = 200
# How long a client may take to close.
CLOSE_S = 20
NUMBER = "n"
OURS = ("twheel-deliver-at", "twheel-delay", "twheel-target", "twheel-id", "twheel-attempt",
        "twheel-due", "twheel-parked", "twheel-error", "twheel-timestamp", "twheel-tries",
        "twheel-held-since", "twheel-cancel")
# pylint: disable=protected-access
NOT_THERE = (KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC,
             KafkaError.UNKNOWN_TOPIC_OR_PART)
# The last one is the default policy of the queue, too: max, base, factor, cap, jitter.
DEFAULT_POLICY = (25, 1000, 2, 3600000, 10)


def now_ms():
    """The time by the wall clock."""
    return time.time_ns() // 1000000


def wait_for(condition, text):
    """Like wait_for() of tap, with a longer limit."""
    return tap.wait_for(condition, text, PATIENCE_S)


def headers_of(message):
    """Those of a record. Version 1.7 of the client gives None for a null value without a
    reference to it, and the process would end for that at its exit."""
    headers = message.headers() or []
    for _, value in headers:
        if value is None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(None))
    return headers


def text(header):
    """The value of a header as text; None if there is none."""
    return None if header is None else header.decode()


class Record:
    """A record that was read."""

    __slots__ = ("topic", "partition", "offset", "key", "value", "headers", "made_ms", "seen_ms")

    def __init__(self, message, seen_ms):
        self.topic = message.topic()
        self.partition = message.partition()
        self.offset = message.offset()
        self.key = message.key()
        self.value = message.value()
        self.headers = headers_of(message)
        self.made_ms = message.timestamp()[1]
        self.seen_ms = seen_ms

    def header(self, name):
        """The last header of that name, as text."""
        values = [value for key, value in self.headers if key == name]
        return text(values[-1]) if values else None

    def number(self):
        """Its number in the ledger; None: it is not a record of the ledger."""
        value = self.header(NUMBER)
        return int(value) if value is not None and value.isdigit() else None

    def place(self):
        """Its default id."""
        return f"{self.topic}-{self.partition}-{self.offset}"

    def __repr__(self):
        return f"{self.place()} {self.headers} {self.value and self.value[:40]!r}"


class Reader:
    """Reads every committed record of some topics, in a thread. No group of the relays is
    touched."""

    def __init__(self, address, topics):
        self.partitions = [(topic, number) for topic, count in topics.items()
                           for number in range(count)]
        self.consumer = Consumer({
            "bootstrap.servers": address, "group.id": f"ledger-{uuid.uuid4().hex}",
            "enable.auto.commit": False, "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 50 if uses_mock() else 500,
            "fetch.error.backoff.ms": 50, "log_level": 0,
            "fetch.message.max.bytes": 8 << 20, "receive.message.max.bytes": 100 << 20,
            "isolation.level": "read_committed", "enable.partition.eof": True,
        })
        self.records = collections.defaultdict(list)
        # Partitions that have no leader at the moment, because a test took it away.
        self.dark = set()
        self.next = {}
        self.over = False
        self.consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING)
                              for topic, number in self.partitions])
        self.assigned = set(self.partitions)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def add(self, topics):
        """Read these, too, or more partitions: {name: partitions}."""
        self.partitions += [(topic, number) for topic, count in topics.items()
                            for number in range(count) if (topic, number) not in self.partitions]
        self.consumer.incremental_assign([
            TopicPartition(topic, number, OFFSET_BEGINNING) for topic, number in self.partitions
            if (topic, number) not in self.assigned])
        self.assigned = set(self.partitions)

    def run(self):
        """The code of the thread."""
        while not self.over:
            messages = self.consumer.consume(1000, 0.05)
            seen_ms = now_ms()
            for message in messages:
                if not message.error():
                    self.take(Record(message, seen_ms))
                elif message.error().code() == KafkaError._PARTITION_EOF:
                    # The end may be behind the last record: control records have offsets, too.
                    self.go_on(message)

    def take(self, record):
        """Add a record that was read."""
        self.records[record.topic].append(record)
        self.next[record.topic, record.partition] = record.offset + 1

    def go_on(self, end):
        """Note that all below an end was read."""
        where = end.topic(), end.partition()
        self.next[where] = max(self.next.get(where, 0), end.offset())

    def ends(self, topic, number):
        """The lowest and the next offset of a partition, of what is committed; equal if it does not
        exist."""
        try:
            return self.consumer.get_watermark_offsets(TopicPartition(topic, number), 60)
        except KafkaException as error:
            if error.args[0].code() not in NOT_THERE:
                raise
            return 0, 0

    def high_watermarks(self):
        """{(topic, partition): the next offset} of those that exist, also of what is not committed
        yet; None if a broker does not say."""
        metadata = self.consumer.list_topics(timeout=60)
        brokers = {number: f"{broker.host}:{broker.port}"
                   for number, broker in metadata.brokers.items()}
        led = collections.defaultdict(list)
        for topic, number in self.partitions:
            if (topic in metadata.topics and number in metadata.topics[topic].partitions
                    and (topic, number) not in self.dark):
                leader = metadata.topics[topic].partitions[number].leader
                led[brokers.get(leader)].append((topic, number))
        ends = {}
        for leader, partitions in led.items():
            ends |= wire.ends(leader, partitions)
        return None if None in ends.values() else ends

    def catch_up(self):
        """Wait until all records that exist now were read."""
        def ask():
            try:
                ends.append(self.high_watermarks())
            except (OSError, KafkaException):
                return False
            return ends[-1] is not None
        ends = []
        wait_for(ask, "the ends of partitions")
        for where, end in ends[-1].items():
            wait_for(lambda where=where, end=end: end == 0 or self.next.get(where, -1) >= end,
                     f"{where[0]} [{where[1]}] up to {end}")

    def close(self):
        """Stop the thread."""
        self.over = True
        self.thread.join()
        # In librdkafka 2.0.2 this may last for ever (its #4187).
        end = threading.Thread(target=self.consumer.close, daemon=True)
        end.start()
        end.join(CLOSE_S)


class Sent:
    """A record that was sent, and what was asked for."""

    __slots__ = ("number", "target", "key", "value", "headers", "due", "attempt", "where", "why")

    def __init__(self, number, target, key, value, headers):
        self.number = number
        self.target = target
        self.key = key
        self.value = value
        self.headers = headers
        # The earliest and the latest time when it may be due, by when the record was made.
        self.due = None
        self.attempt = 0
        # The topic in which it has to arrive, and the reason, if that is the topic of invalid ones.
        self.where = target
        self.why = None

    def header(self, name):
        """The last header of that name."""
        values = [value for key, value in self.headers if key == name]
        return values[-1] if values else None


class Ledger:
    """Compares the records that @send sends with those that @reader reads."""

    def __init__(self, address, topic, scale, policies, settings):
        self.topic = topic
        self.scale = scale
        self.policies = policies
        self.begun_ms = now_ms()
        self.sent = {}
        self.reader = None
        self.errors = []
        # Values of records without a number, which were not sent by the ledger.
        self.foreign = set()
        # Numbers of records that have to arrive nowhere: taken back, or of a transaction that
        # was aborted.
        self.never = set()
        self.lock = threading.Lock()
        self.address = address
        self.producers = []
        self.use(settings)

    def use(self, settings):
        """Send with a new client, which has these settings. Earlier ones may have records that
        they have not written yet."""
        self.producer = Producer({
            "bootstrap.servers": self.address, "linger.ms": 5, "log_level": 0,
            "message.max.bytes": 8 << 20, "partitioner": "murmur2_random", **settings,
        })
        self.producers.append(self.producer)

    # --- sending --------------------------------------------------------------------------

    def policy_due(self, target, attempt):
        """When a retry is due: (earliest, latest) after it was made."""
        _, base, factor, cap, jitter = self.policies.get(target, DEFAULT_POLICY)
        delay = min(cap, base * factor ** (attempt - 1))
        low, high = delay * (100 - jitter) / 100, delay * (100 + jitter) / 100
        return int(low / self.scale), int(high / self.scale) + 1

    def ask(self, sent, delay, deliver_at, attempt):
        """Note when the record is due, and where it has to arrive."""
        if deliver_at is not None:
            sent.due = lambda made_ms: (deliver_at, deliver_at)
        elif delay is not None:
            sent.due = lambda made_ms: (made_ms + delay // self.scale,) * 2
        elif attempt >= self.policies.get(sent.target, DEFAULT_POLICY)[0]:
            sent.where = f"{sent.target}.dead"
            sent.due = lambda made_ms: (made_ms, made_ms)
        else:
            low, high = self.policy_due(sent.target, attempt)
            sent.due = lambda made_ms: (made_ms + low, made_ms + high)
        sent.attempt = attempt or 0

    def new(self, target, key, value, headers):
        """A number, and a record with it."""
        with self.lock:
            number = len(self.sent) + 1
            sent = Sent(number, target, key, value, headers + [(NUMBER, b"%d" % number)])
            self.sent[number] = sent
        return sent

    def send(self, target, delay=None, deliver_at=None, attempt=None, key=None, value=b"v",
             headers=(), record_id=None, **rest):
        """Send a valid record; returns what is expected of it."""
        asked = [("twheel-target", target.encode())]
        for name, number in (("delay", delay), ("deliver-at", deliver_at),
                             ("attempt", attempt)):
            if number is not None:
                asked.append((f"twheel-{name}", b"%d" % number))
        if record_id is not None:
            asked.append(("twheel-id", record_id))
        sent = self.new(target, key, value, list(headers) + asked)
        self.ask(sent, delay, deliver_at, attempt)
        self.produce(sent, **rest)
        return sent

    def send_invalid(self, headers, why, key=None, value=b"v", **rest):
        """Send a record that has to be refused; the reason has to begin with @why."""
        sent = self.new(None, key, value, list(headers))
        sent.where, sent.why = f"{self.topic}.invalid", why
        self.produce(sent, **rest)
        return sent

    def reported(self, error, _):
        """A delivery report."""
        if error:
            self.errors.append(error)

    def produce(self, sent, **rest):
        """Hand the record to the client, as soon as that has room."""
        while True:
            try:
                self.producer.produce(self.topic, value=sent.value, key=sent.key,
                                      headers=sent.headers, on_delivery=self.reported, **rest)
                self.producer.poll(0)
                return
            except BufferError:
                self.producer.poll(0.1)

    def flush(self):
        """Wait until all sent records are acknowledged."""
        for producer in list(self.producers):
            equal(producer.flush(PATIENCE_S), 0, "records that Kafka has not taken")
        equal(self.errors, [], "records that were not sent")

    def give_up(self, numbers):
        """These records are gone by no fault of the relay's: forget them."""
        for number in numbers:
            del self.sent[number]

    # --- records that were read -----------------------------------------------------------

    def is_bucket(self, topic):
        """Is the topic a bucket of this topic of delays?"""
        return topic.startswith(f"{self.topic}-b")

    def by_number(self, which):
        """{number: records} of all topics for which which(topic)."""
        found = collections.defaultdict(list)
        for topic in list(self.reader.records):
            if which(topic):
                for record in list(self.reader.records[topic]):
                    found[record.number()].append(record)
        return found

    def inputs(self):
        """The records in the topic of delays."""
        return self.by_number(lambda topic: topic == self.topic)

    def parked(self):
        """The records in buckets."""
        return self.by_number(self.is_bucket)

    def arrived(self):
        """The records in the topics where they have to arrive."""
        return self.by_number(lambda topic: topic != self.topic and not self.is_bucket(topic))

    def missing(self):
        """Numbers that have not arrived, and should."""
        return self.sent.keys() - self.never - self.arrived().keys()

    def wait(self, seconds=PATIENCE_S):
        """Wait until all have arrived."""
        self.wait_for(self.sent.keys(), seconds)

    def wait_for(self, numbers, seconds=PATIENCE_S):
        """Wait until these have arrived."""
        end = time.monotonic() + seconds
        while missing := numbers & self.missing():
            if time.monotonic() > end:
                some = [(self.sent[n].headers, self.inputs()[n]) for n in list(missing)[:3]]
                raise AssertionError(f"{len(missing)} of {len(self.sent)} have not arrived, "
                                     f"such as {some}")
            time.sleep(0.05)

    # --- judging --------------------------------------------------------------------------

    def check(self):
        """Compare all records with what was requested; returns a Verdict."""
        inputs, arrived = self.inputs(), self.arrived()
        if {record.value for record in arrived[None]} <= self.foreign:
            del arrived[None]
        verdict = Verdict(len(self.sent))
        for number, sent in self.sent.items():
            if number in self.never:
                equal(arrived[number], [], f"{sent.headers} should not arrive; it has")
                continue
            holds(arrived[number], f"{sent.headers} is lost; sent: {inputs[number]}")
            # Kafka may have written it twice, if the client's connection was cut.
            verdict.duplicates += max(0, len(arrived[number]) - max(1, len(inputs[number])))
            for record in arrived[number]:
                self.check_one(sent, inputs[number], record, verdict)
        equal(sorted(set(arrived) - self.sent.keys(), key=str), [], "records of nobody")
        return verdict

    def count(self):
        """What is lost, early, doubled and late, as numbers; nothing fails."""
        inputs, arrived, count = self.inputs(), self.arrived(), Count(len(self.sent))
        for number, sent in self.sent.items():
            records = arrived[number]
            if number in self.never:
                count.unwanted += bool(records)
                continue
            count.lost += not records
            count.duplicates += max(0, len(records) - max(1, len(inputs[number])))
            for record in records:
                due_ms = sent.where == sent.target and int(record.header("twheel-due") or 0)
                count.early += record.made_ms < due_ms
                if due_ms:
                    begun_ms = max([due_ms, self.begun_ms] +
                                   [each.made_ms for each in inputs[number]])
                    count.late_ms = max(count.late_ms, record.made_ms - begun_ms)
        return count

    def check_one(self, sent, inputs, record, verdict):
        """Check one arrival."""
        equal(record.topic, sent.where, f"the topic of {record}")
        equal((record.key, record.value), (sent.key, sent.value), f"key and value of {record}")
        if sent.why is not None:
            check_refused(sent, inputs, record)
            return
        equal([header for header in record.headers if header[0] not in OURS],
              [header for header in sent.headers if header[0] not in OURS], "headers")
        ours = collections.Counter(name for name, _ in record.headers if name in OURS)
        if ours.pop("twheel-timestamp", 0):
            stamp = record.header("twheel-timestamp")
            holds(stamp in [str(each.made_ms) for each in inputs],
                  f"the twheel-timestamp of {record} is not of {inputs}")
        equal(ours, {"twheel-id": 1, "twheel-due": 1, "twheel-attempt": 1}, "our headers")
        equal(record.header("twheel-attempt"), str(sent.attempt), "attempt")
        own = text(sent.header("twheel-id")) or None
        holds(record.header("twheel-id") in ([own] if own else [r.place() for r in inputs]),
              f"the id of {record} is not {own or inputs}")
        self.check_time(sent, inputs, record, verdict)

    def check_time(self, sent, inputs, record, verdict):
        """Check that it is due at the requested time, and was neither written nor read earlier."""
        due_ms = int(record.header("twheel-due"))
        asked = [sent.due(each.made_ms) for each in inputs]
        holds(any(low <= due_ms <= high for low, high in asked),
              f"{record} is due at {due_ms}, and asked for were {asked}")
        holds(record.made_ms >= due_ms, f"{record} is {due_ms - record.made_ms} ms early")
        holds(record.seen_ms >= due_ms, f"{record} was seen {due_ms - record.seen_ms} ms early")
        # Timestamps may be in the past.
        begun_ms = max([due_ms, self.begun_ms] + [each.made_ms for each in inputs])
        verdict.late_ms.append(record.made_ms - begun_ms)


def check_refused(sent, inputs, record):
    """It has all its headers, and behind them an id, if it had none, and the reason."""
    kept = [h for h in sent.headers if h[0] != "twheel-error"]
    if not text(sent.header("twheel-id")):
        holds(record.header("twheel-id") in [r.place() for r in inputs], f"the id of {record}")
        kept.append(("twheel-id", record.headers[-2][1]))
    equal(record.headers[:-1], kept, "headers")
    name, why = record.headers[-1]
    equal(name, "twheel-error")
    holds(text(why).startswith(sent.why), f"{sent.headers}: {why}, expected: {sent.why}")


class Count:
    """What came of the records of a ledger."""

    def __init__(self, sent):
        self.sent = sent
        self.lost = 0
        self.early = 0
        self.duplicates = 0
        # Those that had to arrive nowhere.
        self.unwanted = 0
        self.late_ms = 0


class Verdict:
    """The result of a ledger without errors."""

    def __init__(self, count):
        self.count = count
        self.duplicates = 0
        # The most duplicates that are allowed.
        self.most = 0
        self.late_ms = []

    def late(self, share):
        """The lateness that this share of the records does not exceed."""
        order = sorted(self.late_ms)
        return order[min(len(order) - 1, int(len(order) * share))] if order else 0

    def __str__(self):
        return (f"{self.count} records, lost 0, early 0, "
                f"duplicates {self.duplicates} of at most {self.most}; "
                f"lateness p50 {self.late(.5)}, p99 {self.late(.99)}, max {self.late(1)} ms")
