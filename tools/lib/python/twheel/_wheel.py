# SPDX-License-Identifier: LGPL-2.1-or-later
"""Wheels: an open file of the device, with events of its own."""

from __future__ import annotations

import builtins
import ctypes
import errno
import os
import struct
import threading
import time
from types import TracebackType
from typing import AsyncIterator, Iterator

from . import _library as lib
from ._consumers import Consumers
from ._deadlines import Deadline, Deadlines
from ._times import check_u64, one_of
from ._types import Entry, Feature, Info, Query, Reason, Record, State

# How many records are read at a time, and how many entries of a list.
_ROOM = 256


def _word(deadline: Deadline | int) -> int:
    return deadline.index if isinstance(deadline, Deadline) else deadline


class Wheel:
    """An open /dev/twheel.

    It is a context manager.  Times are in seconds, as numbers; or, in a parameter whose
    name ends in _ns, integers in nanoseconds.  An absolute time in seconds is as exact
    as a float is, which is some hundred nanoseconds on CLOCK_REALTIME.

    What the kernel refuses is an OSError: ENOENT, there is no such event any more; ENOSPC,
    a limit; EALREADY, it has ended; EINVAL, it cannot be.

    Methods may be called by several threads, but not from those of asyncio, which belong
    to the thread of the event loop, and so does then close().
    """

    def __init__(self, *, clock: int = time.CLOCK_MONOTONIC, max_events: int = 0,
                 slack: float | None = None, slack_ns: int | None = None,
                 cpu: int | None = None, wake_count: int = 0,
                 wake_delay: float | None = None, wake_delay_ns: int | None = None,
                 deadlines: int = 0, path: str | os.PathLike[str] = "/dev/twheel") -> None:
        """Open the device.

        clock is CLOCK_MONOTONIC, CLOCK_BOOTTIME or CLOCK_REALTIME of the module time.
        max_events is the maximum number of events (0: the limit of the module); slack,
        the minimum slack of every event; cpu, the CPU whose wheel holds them;
        deadlines, the number of words shared with the kernel.  With wake_count records,
        or when the oldest one is wake_delay old, the file is readable.

        The attribute deadlines is these words, a sequence.
        """
        self._wheel: int | None = None
        self._lock = threading.Lock()
        self._nr_waiting = 0
        self._closing = False
        config = lib.Config(
            size=ctypes.sizeof(lib.Config),
            clockid=clock,
            max_events=check_u64(max_events, "max_events"),
            slack_ns=one_of(slack, slack_ns, "slack") or 0,
            wake_count=wake_count,
            nr_deadlines=deadlines,
            wake_delay_ns=one_of(wake_delay, wake_delay_ns, "wake_delay") or 0,
        )
        if cpu is not None:
            config.flags = lib.CONFIG_CPU
            config.cpu = cpu
        self._open(os.fsencode(path), config, deadlines)

    def _open(self, path: bytes, config: lib.Config, deadlines: int) -> None:
        wheel = ctypes.c_void_p()
        ret = lib.twheel_open_path(ctypes.byref(wheel), path, ctypes.byref(config))
        if ret < 0:
            raise OSError(-ret, os.strerror(-ret), os.fsdecode(path))
        self._wheel = wheel.value
        self._consumers = Consumers(self)
        try:
            self.deadlines = Deadlines(self, deadlines)
        except BaseException:
            lib.twheel_close(self._wheel)
            self._wheel = None
            raise

    # --- the file -------------------------------------------------------------------

    def close(self) -> None:
        """End the wheel and all its events.  It may be called again.

        A thread that waits in wait() keeps the file until it returns.
        """
        with self._lock:
            if self.closed:
                return
            self._closing = True
        self._consumers.end()
        self.deadlines._forget()
        self._wait_begins_or_ends(0)

    # Of several threads the last one closes the file.
    def _wait_begins_or_ends(self, nr: int) -> None:
        with self._lock:
            self._nr_waiting += nr
            wheel = self._wheel
            if not self._closing or self._nr_waiting or wheel is None:
                return
            self._wheel = None
        lib.twheel_close(wheel)

    @property
    def closed(self) -> bool:
        """Whether the wheel is closed."""
        return self._wheel is None or self._closing

    def _handle(self) -> int:
        if self._wheel is None or self._closing:
            raise ValueError("the wheel is closed")
        return self._wheel

    def __enter__(self) -> Wheel:
        self._handle()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        # Without what a failed __init__ has not made.
        if getattr(self, "_wheel", None) is not None and hasattr(self, "deadlines"):
            self.close()

    def __repr__(self) -> str:
        return f"<twheel.Wheel {'closed' if self.closed else self.fileno()}>"

    def fileno(self) -> int:
        """The file, which is readable when there are records."""
        return lib.twheel_fd(self._handle())

    @property
    def info(self) -> Info:
        """The version, the features and the limits of the device."""
        info = lib.twheel_info(self._handle()).contents
        return Info(info.abi, Feature(info.features), info.tick_ns, info.max_events)

    def has(self, features: Feature | int) -> bool:
        """Whether the device has all of these features."""
        return lib.twheel_has(self._handle(), features)

    @property
    def now_ns(self) -> int:
        """The time on the wheel's clock, in nanoseconds."""
        return lib.twheel_now_ns(self._handle())

    @property
    def now(self) -> float:
        """The time on the wheel's clock, in seconds."""
        return self.now_ns / 1e9

    # --- commands -------------------------------------------------------------------

    def _run(self, cmd: lib.Cmd) -> int:
        return lib.check(lib.twheel_run(self._handle(), ctypes.byref(cmd)))

    @staticmethod
    def _set_time(cmd: lib.Cmd, delay_ns: int | None, at_ns: int | None,
                  deadline: Deadline | int | None) -> None:
        if [delay_ns, at_ns, deadline].count(None) != 2:
            raise TypeError("need one of delay, delay_ns, at, at_ns and deadline")
        if deadline is not None:
            cmd.flags |= lib.DEADLINE
            cmd.key = check_u64(_word(deadline), "deadline")
        elif at_ns is not None:
            cmd.flags |= lib.ABS
            cmd.time_ns = at_ns
        else:
            cmd.time_ns = delay_ns

    def add(self, delay: float | None = None, *, delay_ns: int | None = None,
            at: float | None = None, at_ns: int | None = None,
            deadline: Deadline | int | None = None, data: int = 0,
            interval: float | None = None, interval_ns: int | None = None,
            slack: float | None = None, slack_ns: int | None = None,
            quorum: int = 0, cancel_on_set: bool = False) -> int:
        """Arm a new event, and return its id.

        It is due after delay, at an absolute time on the wheel's clock, or when a
        deadline says; then every interval.  data comes back in its records.  It may be
        slack later.  quorum is how many of its watches have to be satisfied to complete
        it.  With cancel_on_set (and at, on CLOCK_REALTIME) it ends when the clock is set.
        """
        cmd = lib.Cmd(
            op=lib.OP_ADD,
            flags=lib.CANCEL_ON_SET if cancel_on_set else 0,
            data=check_u64(data, "data"),
            interval_ns=one_of(interval, interval_ns, "interval") or 0,
            slack_ns=one_of(slack, slack_ns, "slack") or 0,
            quorum=quorum,
        )
        self._set_time(cmd, one_of(delay, delay_ns, "delay"), one_of(at, at_ns, "at"),
                       deadline)
        self._run(cmd)
        return cmd.id

    def modify(self, id: int, delay: float | None = None, *, delay_ns: int | None = None,
               at: float | None = None, at_ns: int | None = None,
               deadline: Deadline | int | None = None, data: int | None = None,
               interval: float | None = None, interval_ns: int | None = None,
               slack: float | None = None, slack_ns: int | None = None,
               cancel_on_set: bool = False) -> None:
        """Give an event another time, interval and slack, and other data unless None.

        An interval or slack that is not given is 0 afterwards.
        """
        cmd = lib.Cmd(
            op=lib.OP_MODIFY,
            flags=lib.CANCEL_ON_SET if cancel_on_set else 0,
            id=check_u64(id, "id"),
            interval_ns=one_of(interval, interval_ns, "interval") or 0,
            slack_ns=one_of(slack, slack_ns, "slack") or 0,
        )
        if data is not None:
            cmd.flags |= lib.SET_DATA
            cmd.data = check_u64(data, "data")
        self._set_time(cmd, one_of(delay, delay_ns, "delay"), one_of(at, at_ns, "at"),
                       deadline)
        self._run(cmd)

    def cancel(self, id: int) -> None:
        """End an event without a record.

        Raises OSError, ENOENT, if there is none any more.  Of a record that asyncio's
        part of this wheel has read already, nobody is told either.
        """
        cmd = lib.Cmd(op=lib.OP_CANCEL, id=check_u64(id, "id"))
        try:
            self._run(cmd)
        except OSError as error:
            if error.errno != errno.ENOENT or not self._forget_record(id):
                raise
        else:
            self._forget_record(id)

    # A record in the queue is, for who looks at the wheel, not yet read.
    def _forget_record(self, id: int) -> bool:
        queue = self._consumers.queue
        kept = [record for record in queue if record.id != id]
        if len(kept) == len(queue):
            return False
        queue.clear()
        queue.extend(kept)
        return True

    def complete(self, id: int, value: int = 0) -> None:
        """End an armed event now, with a record of this value."""
        self._run(lib.Cmd(op=lib.OP_COMPLETE, id=check_u64(id, "id"),
                          data=check_u64(value, "value")))

    def watch(self, id: int, key: int, need: int, *, level: bool = False) -> None:
        """Let signals on a key complete an event.

        The watch is satisfied when the signals' values have added up to need, or, with
        level, by one signal of at least that value.
        """
        self._run(lib.Cmd(op=lib.OP_WATCH, flags=lib.LEVEL if level else 0,
                          id=check_u64(id, "id"), key=check_u64(key, "key"),
                          data=check_u64(need, "need")))

    def signal(self, key: int, value: int = 1, *, quiet: bool = False) -> int:
        """Signal a value to the watches of a key, and return the number of events ended.

        With quiet, it ends all events that watch the key, without records.
        """
        return self._run(lib.Cmd(op=lib.OP_SIGNAL, flags=lib.QUIET if quiet else 0,
                                 key=check_u64(key, "key"),
                                 data=check_u64(value, "value")))

    def query(self, id: int) -> Query:
        """Look at an event."""
        cmd = lib.Cmd(op=lib.OP_QUERY, id=check_u64(id, "id"))
        state = self._run(cmd)
        return Query(State(state), cmd.time_ns, cmd.interval_ns, cmd.slack_ns)

    def list(self) -> Iterator[Entry]:
        """Go through the events, armed and ready.

        One that exists throughout comes once.
        """
        buffer = ctypes.create_string_buffer(_ROOM * lib.ENTRY_SIZE)
        cursor = ctypes.c_uint64()
        while nr := lib.check(lib.twheel_list_sized(self._handle(), buffer, lib.ENTRY_SIZE,
                                                    _ROOM, ctypes.byref(cursor))):
            entries = memoryview(buffer)[:nr * lib.ENTRY_SIZE]
            for entry in builtins.list(struct.iter_unpack(lib.ENTRY_FORMAT, entries)):
                id, data, due, interval, slack, word, state, reason, *rest = entry
                quorum, watches, flags, _ = rest
                yield Entry(id, data, due, interval, slack, word - 1 if word else None,
                            State(state), Reason(reason), quorum, watches, flags)

    # --- records --------------------------------------------------------------------

    @staticmethod
    def _take_out(buffer: ctypes.Array[ctypes.c_char], nr: int) -> builtins.list[Record]:
        unpacked = struct.iter_unpack(lib.RECORD_FORMAT,
                                      memoryview(buffer)[:nr * lib.RECORD_SIZE])
        return [Record(*fields[:7], Reason(fields[7]), fields[8]) for fields in unpacked]

    def _read_kernel(self, room: int = _ROOM) -> builtins.list[Record]:
        buffer = ctypes.create_string_buffer(room * lib.RECORD_SIZE)
        records = lib.Records(ctypes.addressof(buffer), 0, room)
        nr = lib.check(lib.twheel_read(self._handle(), ctypes.byref(records)))
        return self._take_out(buffer, nr)

    def _read_queue(self, room: int) -> builtins.list[Record]:
        queue = self._consumers.queue
        return [queue.popleft() for _ in range(min(room, len(queue)))]

    def read(self, max_records: int = _ROOM) -> builtins.list[Record]:
        """The records that are there, oldest first, without waiting."""
        if max_records < 1:
            raise ValueError(f"max_records is {max_records}, need 1 or more")
        self._handle()
        return self._read_queue(max_records) or self._read_kernel(max_records)

    def wait(self, timeout: float | None = None, *, timeout_ns: int | None = None,
             max_records: int = _ROOM) -> builtins.list[Record]:
        """Wait until there are records, or the time is up, and return them.

        Signals' handlers are called meanwhile, and it goes on unless one raises.
        """
        if max_records < 1:
            raise ValueError(f"max_records is {max_records}, need 1 or more")
        wait_ns = one_of(timeout, timeout_ns, "timeout")
        if wait_ns is None:
            wait_ns = lib.NEVER
        until_ns = time.monotonic_ns() + wait_ns
        self._handle()
        found: builtins.list[Record] | None = self._read_queue(max_records)
        if found:
            return found
        while (found := self._wait_kernel(wait_ns, max_records)) is None:
            if wait_ns != lib.NEVER:
                wait_ns = max(until_ns - time.monotonic_ns(), 0)
        return found

    def _wait_kernel(self, wait_ns: int, room: int) -> builtins.list[Record] | None:
        """The records that were waited for; None: a signal came."""
        buffer = ctypes.create_string_buffer(room * lib.RECORD_SIZE)
        records = lib.Records(ctypes.addressof(buffer), 0, room)
        self._wait_begins_or_ends(1)
        try:
            nr = lib.twheel_wait(self._handle(), ctypes.byref(records), wait_ns)
        finally:
            self._wait_begins_or_ends(-1)
        if nr == -errno.EINTR:
            return None
        return self._take_out(buffer, lib.check(nr))

    def __aiter__(self) -> AsyncIterator[Record]:
        return self

    async def __anext__(self) -> Record:
        """The next record.

        Of several who wait, each record goes to one; one that is cancelled takes none.
        It ends when the wheel is closed.
        """
        record = await self._consumers.take()
        if record is None:
            raise StopAsyncIteration
        return record
