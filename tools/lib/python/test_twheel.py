#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests of the package twheel on /dev/twheel; as a program, they print TAP."""

import asyncio
import contextlib
import ctypes
import errno
import gc
import io
import math
import os
import random  # for the example
import re
import runpy
import select
import signal
import sys
import threading
import time
import unittest

import twheel
from twheel import Feature, Reason, State, Wheel
from twheel import _library, _times

SOON = 0.02
FAR = 1e6
FAR_NS = 10**15


def constants_of(path):
    """The constants of a C header that begin with TWHEEL_, and their values."""
    with open(path, encoding="utf-8") as header:
        lines = re.findall(r"#define\s+TWHEEL_(\w+)\s+(0x[0-9a-f]+|\d+)\b", header.read())
    return {name: int(value, 0) for name, value in lines}


class WheelTest(unittest.TestCase):
    """A test that has a wheel."""

    config = {}

    def setUp(self):
        self.wheel = Wheel(**self.config)
        self.addCleanup(self.wheel.close)

    def counter(self, name):
        with open(f"/proc/self/fdinfo/{self.wheel.fileno()}", encoding="utf-8") as lines:
            return dict(line.split() for line in lines)[f"{name}:"]

    def raises(self, number):
        """A context in which an OSError with this number has to come."""
        return CheckError(self, number)

    def take_one(self):
        records = self.wheel.wait()
        self.assertEqual(len(records), 1)
        return records[0]


class CheckError:
    """See WheelTest.raises()."""

    def __init__(self, test, number):
        self.test = test
        self.number = number

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        self.test.assertIsInstance(error, OSError)
        self.test.assertEqual(error.errno, self.number)
        return True


class Layout(unittest.TestCase):
    """What is in Python what the C header says."""

    header = os.environ.get("TWHEEL_HEADER", "/twheel.h")

    def test_constants_are_those_of_the_header(self):
        known = constants_of(self.header)
        for name in ("OP_ADD", "OP_MODIFY", "OP_CANCEL", "OP_COMPLETE", "OP_WATCH", "OP_SIGNAL",
                     "OP_QUERY", "ABS", "CANCEL_ON_SET", "LEVEL", "QUIET", "SET_DATA",
                     "DEADLINE", "CONFIG_CPU"):
            self.assertEqual(getattr(_library, name), known[name], name)
        for kind, prefix in (Reason, ""), (State, ""), (Feature, "FEATURE_"):
            for member in kind:
                self.assertEqual(member.value, known[prefix + member.name], member)
        nr = sum(name.startswith("FEATURE_") for name in known)
        self.assertEqual(nr, len(Feature))

    def test_structures_have_the_fields_of_the_header(self):
        with open(self.header, encoding="utf-8") as header:
            text = re.sub(r"/\*.*?\*/", "", header.read(), flags=re.DOTALL)
        widths = {"__u16": 2, "__u32": 4, "__s32": 4, "__u64": 8}
        for name, structure in ("cmd", _library.Cmd), ("config", _library.Config), \
                ("info", _library.Info):
            body = re.search(r"struct twheel_%s \{(.*?)\n\};" % name, text, re.DOTALL)[1]
            body = re.sub(r"union \{\s*__u64 data;.*?\};", "__u64 data;", body, flags=re.DOTALL)
            expected = [(field.strip(), widths[kind])
                        for kind, fields in re.findall(r"(__[us]\d\d)\s+([^;]+);", body)
                        for field in fields.split(",")]
            seen = [(field, ctypes.sizeof(kind)) for field, kind in structure._fields_]
            self.assertEqual(seen, expected, name)
        for name, fields in ("record", twheel.Record), ("entry", twheel.Entry):
            body = re.search(r"struct twheel_%s \{(.*?)\n\};" % name, text, re.DOTALL)[1]
            self.assertEqual([field for field in re.findall(r"(\w+);", body)
                              if field != "reserved"], list(fields._fields))


class Times(unittest.TestCase):
    """Seconds and nanoseconds."""

    def test_seconds_are_rounded_up(self):
        self.assertEqual(_times.seconds_to_ns(1, "x"), 10**9)
        self.assertEqual(_times.seconds_to_ns(0.25, "x"), 250_000_000)
        self.assertEqual(_times.seconds_to_ns(1e-10, "x"), 1)
        self.assertEqual(_times.seconds_to_ns(math.inf, "x"), 2**64 - 1)
        self.assertEqual(_times.seconds_to_ns(1e30, "x"), 2**64 - 1)
        self.assertEqual(_times.seconds_to_ns(10**30, "x"), 2**64 - 1)

    def test_what_is_no_time_is_refused(self):
        for seconds in -1, -0.5, math.nan, -math.inf:
            with self.assertRaises(ValueError):
                _times.seconds_to_ns(seconds, "x")
        for ns in -1, 2**64:
            with self.assertRaises(ValueError):
                _times.check_ns(ns, "x")
        with self.assertRaises(TypeError):
            _times.check_ns(1.5, "x")
        with self.assertRaises(TypeError):
            _times.one_of(1, 1, "x")
        self.assertIsNone(_times.one_of(None, None, "x"))
        self.assertEqual(_times.one_of(None, 5, "x"), 5)


class Opening(WheelTest):
    """Wheels come and go."""

    def test_wheel_is_on_the_monotonic_clock(self):
        self.assertEqual(self.counter("clockid"), str(time.CLOCK_MONOTONIC))
        before = time.monotonic_ns()
        self.assertLessEqual(before, self.wheel.now_ns)
        self.assertLessEqual(self.wheel.now, time.monotonic())
        self.assertFalse(self.wheel.closed)

    def test_wheel_is_set_up_as_asked_for(self):
        with Wheel(clock=time.CLOCK_REALTIME, max_events=7, slack=0.5, deadlines=3,
                   wake_count=2, wake_delay_ns=10**6, cpu=0) as wheel:
            self.assertEqual(wheel.info.max_events, 7)
            self.assertEqual(len(wheel.deadlines), 3)
            self.assertEqual(wheel.query(wheel.add(FAR)).slack_ns, 500_000_000)
            self.assertLess(abs(wheel.now - time.time()), 3600)
            self.wheel.close()
            self.wheel = wheel
            self.assertEqual(self.counter("clockid"), "0")
            self.assertEqual(self.counter("cpu"), "0")

    def test_what_cannot_be_opened_says_why(self):
        with self.assertRaises(FileNotFoundError) as caught:
            Wheel(path="/dev/no-such-wheel")
        self.assertEqual(caught.exception.filename, "/dev/no-such-wheel")
        with self.raises(errno.EPROTO):
            Wheel(path="/dev/null")
        with self.raises(errno.EINVAL):
            Wheel(clock=99)
        with self.raises(errno.EINVAL):
            Wheel(max_events=1, deadlines=2)
        with self.raises(errno.ENOSPC):
            Wheel(max_events=2**63)
        with self.assertRaises(ValueError):
            Wheel(slack=-1)

    def test_closed_wheel_does_nothing_more(self):
        deadline = None
        with Wheel(deadlines=1) as wheel:
            deadline = wheel.deadlines.take()
            self.assertFalse(wheel.closed)
        self.assertTrue(wheel.closed)
        wheel.close()
        for call in (wheel.fileno, wheel.read, wheel.wait, wheel.deadlines.take,
                     lambda: wheel.add(1), lambda: wheel.now, lambda: list(wheel.list()),
                     lambda: deadline.at_ns, lambda: setattr(deadline, "at", 1),
                     deadline.give, wheel.__enter__, lambda: wheel.info):
            with self.assertRaises(ValueError):
                call()

    def test_wheel_that_is_forgotten_is_closed(self):
        wheel = Wheel()
        fd = wheel.fileno()
        del wheel
        gc.collect()
        with self.raises(errno.EBADF):
            os.fstat(fd)

    def test_info_and_features(self):
        info = self.wheel.info
        self.assertEqual(info.abi, 1)
        self.assertGreater(info.tick_ns, 0)
        self.assertTrue(self.wheel.has(Feature.ENTER | Feature.LIST))
        self.assertTrue(self.wheel.has(info.features))
        self.assertFalse(self.wheel.has(1 << 63))


class Commands(WheelTest):
    """What is done to events."""

    def test_event_comes_after_a_delay(self):
        before = self.wheel.now_ns
        id = self.wheel.add(SOON, data=2**64 - 1)
        record = self.take_one()
        self.assertEqual((record.data, record.id), (2**64 - 1, id))
        self.assertEqual((record.count, record.value, record.key), (1, 0, 0))
        self.assertIs(record.reason, Reason.EXPIRED)
        self.assertFalse(record.by_signal)
        self.assertGreaterEqual(record.due_ns, before + 20_000_000)
        self.assertGreaterEqual(record.fired_ns, record.due_ns)
        self.assertGreaterEqual(record.fired, record.due)
        self.assertEqual(record.due, record.due_ns / 1e9)

    def test_event_comes_at_a_time(self):
        at_ns = self.wheel.now_ns + 1000
        self.wheel.add(at_ns=at_ns)
        self.assertEqual(self.take_one().due_ns, at_ns)
        self.wheel.add(at=1.5)
        self.assertEqual(self.take_one().due_ns, 1_500_000_000)
        self.wheel.add(delay_ns=0)
        self.take_one()

    def test_add_takes_one_time(self):
        for times in ({}, {"delay": 1, "at": 1}, {"delay": 1, "delay_ns": 1},
                      {"at_ns": 1, "deadline": 0}):
            with self.assertRaises(TypeError):
                self.wheel.add(**times)
        self.assertEqual(self.counter("added"), "0")

    def test_periodic_event_goes_on(self):
        self.wheel.add(0, interval=SOON / 4)
        due_ns = None
        for _ in range(5):
            record = self.take_one()
            if due_ns is not None:
                self.assertEqual(record.due_ns, due_ns)
            due_ns = record.due_ns + record.count * 5_000_000

    def test_never_is_infinity(self):
        id = self.wheel.add(math.inf)
        self.assertGreaterEqual(self.wheel.query(id).due_ns, 2**63)

    def test_query_tells_of_an_event(self):
        id = self.wheel.add(at_ns=FAR_NS, interval_ns=10**9, slack_ns=17)
        self.assertEqual(self.wheel.query(id), (State.ARMED, FAR_NS, 10**9, 17))
        self.assertEqual(self.wheel.query(id).due, FAR)
        self.assertIs(self.wheel.query(self.wheel.add(0)).state, State.READY)

    def test_modify_gives_another_time(self):
        id = self.wheel.add(FAR, data=1, interval=FAR, slack=1)
        self.wheel.modify(id, at_ns=FAR_NS)
        self.assertEqual(self.wheel.query(id), (State.ARMED, FAR_NS, 0, 0))
        self.wheel.modify(id, 0)
        self.assertEqual(self.take_one().data, 1)
        id = self.wheel.add(FAR, data=1)
        self.wheel.modify(id, 0, data=0)
        self.assertEqual(self.take_one().data, 0)
        with self.raises(errno.ENOENT):
            self.wheel.modify(id, 0)

    def test_cancel_ends_an_event(self):
        id = self.wheel.add(0)
        self.wheel.cancel(id)
        self.assertEqual(self.wheel.read(), [])
        with self.raises(errno.ENOENT):
            self.wheel.cancel(id)

    def test_complete_ends_an_event_with_a_value(self):
        id = self.wheel.add(FAR)
        self.wheel.complete(id, 7)
        with self.raises(errno.EALREADY):
            self.wheel.complete(id)
        record = self.take_one()
        self.assertIs(record.reason, Reason.COMPLETED)
        self.assertEqual(record.value, 7)

    def test_signals_complete_what_watches(self):
        id = self.wheel.add(FAR, quorum=2)
        self.wheel.watch(id, 1, 10)
        self.wheel.watch(id, 2, 10, level=True)
        self.assertEqual(self.wheel.signal(2, 9), 0)
        self.assertEqual(self.wheel.signal(2, 10), 0)
        self.assertEqual(self.wheel.signal(1, 9), 0)
        self.assertEqual(self.wheel.signal(1), 1)
        record = self.take_one()
        self.assertEqual((record.key, record.value, record.by_signal), (1, 1, True))
        self.wheel.watch(self.wheel.add(FAR), 1, 10)
        self.assertEqual(self.wheel.signal(1, quiet=True), 1)
        self.assertEqual(self.wheel.read(), [])

    def test_cancel_on_set_is_for_absolute_times_on_the_real_clock(self):
        with self.raises(errno.EINVAL):
            self.wheel.add(at=FAR, cancel_on_set=True)
        with Wheel(clock=time.CLOCK_REALTIME) as wheel:
            id = wheel.add(at=1e10, cancel_on_set=True)
            wheel.modify(id, at=2e10, cancel_on_set=True)
            with self.raises(errno.EINVAL):
                wheel.modify(id, FAR, cancel_on_set=True)

    def test_limits_are_errors(self):
        with Wheel(max_events=1) as wheel:
            wheel.add(FAR)
            with self.raises(errno.ENOSPC):
                wheel.add(FAR)
        for wrong in {"data": -1}, {"data": 2**64}, {"interval": -1}, {"slack_ns": -1}:
            with self.assertRaises(ValueError):
                self.wheel.add(1, **wrong)
        with self.raises(errno.EINVAL):
            self.wheel.add(1, interval_ns=1)

    def test_list_goes_through_all_events(self):
        with Wheel(deadlines=1) as wheel:
            ids = {wheel.add(FAR, data=number): number for number in range(1000)}
            ids[wheel.add(deadline=0, data=1000, slack_ns=5)] = 1000
            entries = list(wheel.list())
        self.assertEqual({entry.id: entry.data for entry in entries}, ids)
        self.assertEqual(len(entries), 1001)
        self.assertEqual({entry.deadline for entry in entries}, {None, 0})
        last, = (entry for entry in entries if entry.data == 1000)
        self.assertEqual((last.state, last.reason, last.slack_ns, last.quorum, last.watches),
                         (State.READY, Reason.EXPIRED, 5, 1, 0))
        self.assertEqual({entry.flags for entry in entries}, {1, 32})

    def test_list_tells_what_ends_when_the_clock_is_set(self):
        with Wheel(clock=time.CLOCK_REALTIME) as wheel:
            wheel.add(at=wheel.now + FAR, cancel_on_set=True, data=1)
            wheel.add(at=wheel.now + FAR, data=2)
            wheel.add(FAR, data=3)
            listed = {entry.data: (entry.cancel_on_set, entry.flags) for entry in wheel.list()}
        self.assertEqual(listed, {1: (True, 3), 2: (False, 1), 3: (False, 0)})


class Reading(WheelTest):
    """Records, without asyncio."""

    def test_read_takes_what_is_there(self):
        self.assertEqual(self.wheel.read(), [])
        for data in range(5):
            self.wheel.add(0, data=data)
        self.assertEqual([record.data for record in self.wheel.read(2)], [0, 1])
        self.assertEqual([record.data for record in self.wheel.read()], [2, 3, 4])
        for room in 0, -1:
            with self.assertRaises(ValueError):
                self.wheel.read(room)
            with self.assertRaises(ValueError):
                self.wheel.wait(max_records=room)

    def test_wait_ends_when_the_time_is_up(self):
        before = time.monotonic()
        self.assertEqual(self.wheel.wait(SOON), [])
        self.assertGreaterEqual(time.monotonic(), before + SOON)
        self.assertEqual(self.wheel.wait(timeout_ns=0), [])

    def test_wait_goes_on_after_signals_and_ends_with_an_exception(self):
        calls = []

        def handler(number, frame):
            calls.append(number)
            if len(calls) == 5:
                raise KeyboardInterrupt

        old = signal.signal(signal.SIGALRM, handler)
        self.addCleanup(signal.signal, signal.SIGALRM, old)
        signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
        try:
            with self.assertRaises(KeyboardInterrupt):
                self.wheel.wait(FAR)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        self.assertGreaterEqual(len(calls), 5)

    def test_wait_of_a_thread_lets_others_run(self):
        found = []
        thread = threading.Thread(target=lambda: found.extend(self.wheel.wait()))
        thread.start()
        self.wheel.add(0, data=9)
        thread.join()
        self.assertEqual(found[0].data, 9)

    def test_close_while_a_thread_waits_leaves_it_the_file(self):
        raised = []

        def wait():
            raised.append(self.wheel.wait())

        self.wheel.add(SOON * 5)
        thread = threading.Thread(target=wait)
        thread.start()
        while not self.wheel._nr_waiting and thread.is_alive():
            time.sleep(0)
        self.wheel.close()
        thread.join()
        self.assertEqual(len(raised[0]), 1)
        self.assertIsNone(self.wheel._wheel)

    def test_file_is_readable_when_there_are_records(self):
        self.assertEqual(select.select([self.wheel], [], [], 0)[0], [])
        self.wheel.add(SOON)
        self.assertEqual(select.select([self.wheel], [], [])[0], [self.wheel])


class DeadlineTest(WheelTest):
    """Words that are shared with the kernel."""

    config = {"deadlines": 3}

    def test_deadlines_are_taken_and_given(self):
        taken = [self.wheel.deadlines.take() for _ in range(3)]
        self.assertEqual({deadline.index for deadline in taken}, {0, 1, 2})
        with self.raises(errno.ENOSPC):
            self.wheel.deadlines.take()
        taken[1].give()
        with self.raises(errno.EINVAL):
            taken[1].give()
        self.assertEqual(self.wheel.deadlines.take().index, taken[1].index)

    def test_deadlines_are_a_sequence(self):
        self.assertEqual(len(self.wheel.deadlines), 3)
        self.assertEqual([deadline.index for deadline in self.wheel.deadlines], [0, 1, 2])
        for index in 3, -1:
            with self.assertRaises(IndexError):
                self.wheel.deadlines[index]
        with Wheel() as wheel:
            self.assertEqual(len(wheel.deadlines), 0)

    def test_deadline_is_in_seconds_or_nanoseconds(self):
        deadline = self.wheel.deadlines.take()
        self.assertEqual(deadline.at, math.inf)
        deadline.at = 1.5
        self.assertEqual((deadline.at_ns, deadline.at), (1_500_000_000, 1.5))
        deadline.at_ns = 2**63 - 1
        self.assertEqual(self.wheel.deadlines[deadline.index].at_ns, 2**63 - 1)
        before = self.wheel.now_ns
        deadline.postpone(1)
        self.assertGreaterEqual(deadline.at_ns, before + 10**9)
        deadline.postpone(math.inf)
        self.assertEqual(deadline.at, math.inf)
        for wrong in -1, 2**64:
            with self.assertRaises(ValueError):
                deadline.at_ns = wrong

    def test_store_moves_an_event(self):
        deadline = self.wheel.deadlines[2]
        deadline.at_ns = FAR_NS
        id = self.wheel.add(deadline=deadline)
        self.assertEqual(self.wheel.query(id).due_ns, FAR_NS)
        deadline.at_ns = 2 * FAR_NS
        self.assertEqual(self.wheel.query(id).due_ns, 2 * FAR_NS)
        deadline.at_ns = 5
        self.wheel.modify(id, deadline=2)
        self.assertEqual(self.take_one().due_ns, 5)
        with self.raises(errno.EINVAL):
            self.wheel.add(deadline=3)


class Asyncio(unittest.IsolatedAsyncioTestCase):
    """Records under asyncio."""

    def setUp(self):
        self.wheel = Wheel()
        self.addCleanup(self.wheel.close)

    async def asyncSetUp(self):
        # No remarks on a machine that is slow.
        asyncio.get_running_loop().slow_callback_duration = math.inf

    def add_many(self, nr, first=0):
        for data in range(first, first + nr):
            self.wheel.add(delay_ns=(data % 7) * 10**6, data=data)

    async def next(self):
        return await self.wheel.__anext__()

    async def until_waiting(self, nr):
        while len(self.wheel._consumers._waiting) < nr:
            await asyncio.sleep(0)

    async def test_records_come_in_order(self):
        for data in range(1000):
            self.wheel.add(0, data=data)
        expected = 0
        async for record in self.wheel:
            self.assertEqual(record.data, expected)
            expected += 1
            if expected == 1000:
                break

    async def test_consumer_waits_for_what_is_added_later(self):
        consumer = asyncio.create_task(self.next())
        await self.until_waiting(1)
        self.wheel.add(SOON, data=5)
        self.assertEqual((await consumer).data, 5)

    async def test_records_that_are_read_at_once_wake_all_who_wait(self):
        consumers = [asyncio.create_task(self.next()) for _ in range(3)]
        await self.until_waiting(3)
        for data in range(3):
            self.wheel.add(0, data=data)
        records = await asyncio.gather(*consumers)
        self.assertEqual([record.data for record in records], [0, 1, 2])

    async def test_each_record_goes_to_one_of_several_consumers(self):
        seen = []

        async def consume():
            async for record in self.wheel:
                seen.append(record.data)
                if record.data % 3:
                    await asyncio.sleep(0)

        consumers = [asyncio.create_task(consume()) for _ in range(5)]
        self.add_many(2000)
        while len(seen) < 2000:
            await asyncio.sleep(0.001)
        self.wheel.close()
        await asyncio.gather(*consumers)
        self.assertEqual(sorted(seen), list(range(2000)))

    async def test_cancelled_consumers_lose_nothing(self):
        seen = []

        async def consume():
            seen.append((await self.next()).data)

        # Cancelled at each point that there is: before, when woken, and after.
        nr = 0
        while nr < 500 or len(seen) < nr:
            consumers = [asyncio.create_task(consume()) for _ in range(3)]
            if nr < 500:
                self.add_many(3, nr)
                nr += 3
            for _ in range(nr % 5):
                await asyncio.sleep(0)
            consumers[nr % 3].cancel()
            await asyncio.sleep(0.001)
            for consumer in consumers:
                consumer.cancel()
            await asyncio.gather(*consumers, return_exceptions=True)
        self.assertEqual(sorted(seen), list(range(nr)))
        self.assertEqual(self.wheel.read(), [])

    async def test_consumer_that_is_cancelled_when_woken_wakes_the_next(self):
        first, second = (asyncio.create_task(self.next()) for _ in range(2))
        await self.until_waiting(2)
        self.wheel.add(0, data=1)
        while not self.wheel._consumers.queue:
            await asyncio.sleep(0)
        self.assertTrue(first.cancel())
        self.assertEqual((await second).data, 1)
        self.assertTrue(first.cancelled())

    async def test_timeout_of_a_consumer_loses_nothing(self):
        with self.assertRaises(TimeoutError):
            async with asyncio.timeout(SOON):
                await self.next()
        self.wheel.add(0, data=3)
        self.assertEqual((await self.next()).data, 3)

    async def test_file_is_watched_while_somebody_waits_only(self):
        consumers = self.wheel._consumers
        task = asyncio.create_task(self.next())
        await self.until_waiting(1)
        self.assertIsNotNone(consumers._loop)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        self.assertIsNone(consumers._loop)
        self.wheel.add(0)
        await self.next()
        self.assertIsNone(consumers._loop)

    async def test_close_ends_who_waits(self):
        async def consume():
            return [record async for record in self.wheel]

        consumers = [asyncio.create_task(consume()) for _ in range(3)]
        await self.until_waiting(3)
        self.wheel.close()
        self.assertEqual(await asyncio.gather(*consumers), [[], [], []])
        self.assertEqual(await consume(), [])

    async def test_cancel_reaches_records_that_wait_for_a_consumer(self):
        ids = [self.wheel.add(0, data=data) for data in range(3)]
        self.assertEqual((await self.next()).data, 0)
        self.assertEqual(len(self.wheel._consumers.queue), 2)
        self.wheel.cancel(ids[1])
        with self.assertRaises(OSError):
            self.wheel.cancel(ids[1])
        self.assertEqual((await self.next()).data, 2)

    async def test_read_and_wait_take_what_consumers_left(self):
        for data in range(4):
            self.wheel.add(0, data=data)
        self.assertEqual((await self.next()).data, 0)
        self.assertEqual([record.data for record in self.wheel.read(1)], [1])
        self.assertEqual([record.data for record in self.wheel.wait()], [2, 3])

    def test_wheel_goes_from_one_event_loop_to_another(self):
        for data in range(3):
            self.wheel.add(0, data=data)
            self.assertEqual(asyncio.run(self.next()).data, data)

    async def test_two_event_loops_do_not_wait_at_a_time(self):
        task = asyncio.create_task(self.next())
        await self.until_waiting(1)
        with self.assertRaises(RuntimeError):
            await asyncio.to_thread(asyncio.run, self.next())
        self.wheel.add(0)
        await task


class ExampleTest(unittest.TestCase):
    """The example, beside this file in the machine, or where the repository has it."""

    def test_asyncio_retries_prints_what_is_expected(self):
        here = os.path.dirname(os.path.abspath(__file__))
        if os.path.exists(f"{here}/examples"):
            examples = f"{here}/examples"
        else:
            examples = f"{here}/../../examples"
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            runpy.run_path(f"{examples}/asyncio-retries.py", run_name="__main__")
        with open(f"{examples}/expected/asyncio-retries", encoding="utf-8") as expected:
            self.assertEqual(printed.getvalue(), expected.read())


class Tap(unittest.TestResult):
    """Prints a line of TAP for each test."""

    def say(self, test, words, ending=""):
        name = test.id().split(".")[-1].removeprefix("test_")
        print(f"{words} {self.testsRun} - {name}{ending}", flush=True)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.say(test, "ok")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.say(test, "ok", f" # SKIP {reason}")

    def say_failed(self, test, error):
        text = self._exc_info_to_string(error, test)
        print(re.sub("^", "# ", text.rstrip(), flags=re.MULTILINE))
        self.say(test, "not ok")

    def addError(self, test, error):
        super().addError(test, error)
        self.say_failed(test, error)

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.say_failed(test, error)


def main():
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
    result = Tap()
    print(f"1..{suite.countTestCases()}")
    suite.run(result)
    return 0 if result.wasSuccessful() and result.testsRun else 1


if __name__ == "__main__":
    sys.exit(main())
