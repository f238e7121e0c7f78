# SPDX-License-Identifier: LGPL-2.1-or-later
"""The client for programs that wait."""

from __future__ import annotations

import contextlib
import datetime
import socket
import threading
import time as clock
from collections.abc import Iterator
from typing import TypeVar

from . import _commands as commands
from ._commands import Command, Failure, Job, Page, Put, Time
from ._protocol import ConnectionLost, NotFound, Parser, Reply

T = TypeVar("T")
ADDRESS = "127.0.0.1:11300"


def split(address: str) -> tuple[str, int] | str:
    """ "HOST:PORT" as a pair, or the path of "unix:PATH"."""
    if address.startswith("unix:"):
        return address.removeprefix("unix:")
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit():
        raise ValueError(f"{address!r} is not HOST:PORT or unix:PATH")
    return host.strip("[]"), int(port)


class Client:
    """A connection to twheelq, for one thread at a time: a second one that uses it meanwhile gets
    a RuntimeError. Close it, or use it in a with statement; the jobs that it has reserved are
    then given back, in a tube with a policy as failed attempts.

    @address is "HOST:PORT" or "unix:PATH". @timeout is how many seconds an answer may take, beside
    what the command itself waits; None: any time.

    Methods raise NotFound; Refused, with the daemon's reply; ValueError or TypeError before
    anything is sent; OSError when connecting. If an answer was not read to its end, because it
    took too long or by an exception such as KeyboardInterrupt, the connection is closed, and
    ConnectionLost is raised from then on: it is never used out of step.
    """

    def __init__(self, address: str = ADDRESS, timeout: float | None = None) -> None:
        where = split(address)
        self._timeout = timeout
        self._parser = Parser()
        self._busy = threading.Lock()
        if isinstance(where, str):
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                self._socket.settimeout(timeout)
                self._socket.connect(where)
            except BaseException:
                self._socket.close()
                raise
        else:
            self._socket = socket.create_connection(where, timeout)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection. It may be called again, and by another thread."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    # --- commands and replies ----------------------------------------------------------

    def run(self, command: Command[T]) -> T:
        """Send a command, and wait for its reply."""
        if not self._busy.acquire(blocking=False):
            raise RuntimeError("another thread is using this client: each needs its own")
        try:
            if self._socket.fileno() < 0:
                raise ConnectionLost("the connection is closed")
            reply = self._exchange(command)
        finally:
            self._busy.release()
        return command.parse(reply)

    def _exchange(self, command: Command[T]) -> Reply:
        try:
            self._socket.settimeout(self._timeout)
            self._socket.sendall(command.request)
            reply = self._read(command.wait)
            if not self._parser.empty:
                raise ConnectionLost("more came than the answer")
            return reply
        except OSError as error:
            self.close()
            if isinstance(error, ConnectionLost):
                raise
            raise ConnectionLost(f"the connection is lost: {error}") from error
        except BaseException:
            self.close()
            raise

    def _read(self, wait: float | None) -> Reply:
        end = None
        if self._timeout is not None and wait is not None:
            end = clock.monotonic() + self._timeout + wait
        while (reply := self._parser.take()) is None:
            left = None if end is None else end - clock.monotonic()
            if left is not None and left <= 0:
                raise TimeoutError("the answer took too long")
            self._socket.settimeout(left)
            data = self._socket.recv(1 << 16)
            if not data:
                raise ConnectionLost("the daemon has closed the connection")
            self._parser.feed(data)
        return reply

    # --- producers -----------------------------------------------------------------------

    def use(self, tube: str) -> None:
        """Jobs are put into this tube from now on; at first it is "default"."""
        self.run(commands.use(tube))

    def put(self, body: bytes, *, pri: int = 1024, delay: Time = 0, ttr: Time = 60) -> int:
        """Put a job that is ready after @delay. Returns its id when it is on disk."""
        return self.run(commands.put(body, pri, delay, ttr))

    def put_at(self, body: bytes, when: float | datetime.datetime, *, pri: int = 1024,
               ttr: Time = 60) -> int:
        """Put a job that is due when the wall clock shows @when, in unix seconds."""
        return self.run(commands.put_at(body, when, pri, ttr))

    def put_unique(self, key: str, body: bytes, *, pri: int = 1024, delay: Time = 0,
                   ttr: Time = 60) -> Put:
        """Put the only job of the tube with this key; one that waits is replaced."""
        return self.run(commands.keyed("put-unique", key, body, pri, delay, ttr))

    def keep_unique(self, key: str, body: bytes, *, pri: int = 1024, delay: Time = 0,
                    ttr: Time = 60) -> Put:
        """The same, but one that is there stays as it is."""
        return self.run(commands.keyed("keep-unique", key, body, pri, delay, ttr))

    def every(self, name: str, interval: Time, body: bytes, *,
              first: float | datetime.datetime = 0, pri: int = 1024, ttr: Time = 60) -> None:
        """Put such a job at the unix time @first and after each @interval, of 1 s or more, by the
        wall clock; times that are over do not count. It replaces one of this name."""
        self.run(commands.every(name, interval, body, first, pri, ttr))

    def every_stop(self, name: str) -> None:
        """End a schedule of the used tube."""
        self.run(commands.every_stop(name))

    def list_every(self, after: str | None = None) -> list[dict[str, str]]:
        """Up to 1000 schedules of the used tube, by name; those behind the name @after."""
        return self.run(commands.list_every(after))

    def reschedule(self, job: int | Job, delay: Time) -> None:
        """A delayed or ready job is now due after @delay."""
        self.run(commands.reschedule(job, delay))

    # --- workers -------------------------------------------------------------------------

    def watch(self, tube: str) -> int:
        """Reserve from this tube, too. Returns how many are watched."""
        return self.run(commands.watching("watch", tube))

    def ignore(self, tube: str) -> int:
        """No longer reserve from it. Raises NotFound if it is the last one."""
        return self.run(commands.watching("ignore", tube))

    def reserve(self, timeout: Time | None = None) -> Job | None:
        """The next job, or None after @timeout; with None it waits. Raises DeadlineSoon."""
        return self.run(commands.reserve(timeout))

    def reserve_job(self, job: int | Job) -> Job:
        """Reserve this job, in whatever state."""
        return self.run(commands.reserve_job(job))

    def delete(self, job: int | Job) -> None:
        """The job is done."""
        self.run(commands.of_job("delete", "DELETED", job))

    def release(self, job: int | Job, *, pri: int = 1024, delay: Time = 0) -> None:
        """Give a job back; in a tube with a policy this is a failed attempt."""
        self.run(commands.release(job, pri, delay))

    def fail(self, job: int | Job, reason: str = "") -> Failure:
        """The attempt has failed; 1024 bytes of the reason are kept."""
        return self.run(commands.fail(job, reason))

    def bury(self, job: int | Job, *, pri: int = 1024) -> None:
        """Set a job aside until it is kicked."""
        self.run(commands.bury(job, pri))

    def touch(self, job: int | Job) -> None:
        """Begin the TTR of a reserved job anew."""
        self.run(commands.of_job("touch", "TOUCHED", job))

    @contextlib.contextmanager
    def work(self, timeout: Time | None = None) -> Iterator[Job | None]:
        """Reserve a job for a with statement: at its end the job is deleted, or, if there was an
        Exception, the attempt has failed with its text as reason; the exception goes on."""
        job = self.reserve(timeout)
        try:
            yield job
        except Exception as error:
            if job:
                with contextlib.suppress(NotFound, ConnectionLost):
                    self.fail(job, f"{type(error).__name__}: {error}")
            raise
        if job:
            self.delete(job)

    # --- operators -----------------------------------------------------------------------

    def peek(self, job: int | Job) -> Job | None:
        """A job, or None if there is none."""
        return self.run(commands.peek(job))

    def peek_next(self, state: str) -> Job | None:
        """The first "ready", "delayed" or "buried" job of the used tube, or None."""
        return self.run(commands.peek_next(state))

    def kick(self, most: int) -> int:
        """Make up to @most buried, else delayed jobs of the used tube ready: their number."""
        return self.run(commands.kick(most))

    def kick_job(self, job: int | Job) -> None:
        """Make a buried or delayed job ready."""
        self.run(commands.of_job("kick-job", "KICKED", job))

    def pause_tube(self, tube: str, time: Time) -> None:
        """No job of the tube is reserved for so long; 0 ends a pause."""
        self.run(commands.pause(tube, time))

    def policy(self, tube: str, attempts: int = 25, *, base: Time = 1, factor: float = 2,
               cap: Time = 3600, jitter: int = 10, dead_tube: str | None = None) -> None:
        """Retry k waits min(@cap, @base * @factor^(k-1)), plus or minus @jitter percent; after
        @attempts a job is dead, and buried in @dead_tube, by default TUBE.dead."""
        self.run(commands.policy(tube, attempts, base, factor, cap, jitter, dead_tube))

    def policy_default(self, tube: str) -> None:
        """Take the policy of a tube away."""
        self.run(commands.policy_default(tube))

    def purge(self, tube: str, state: str) -> int:
        """Delete the tube's jobs of this state: their number."""
        return self.run(commands.purge(tube, state))

    def list_jobs(self, tube: str, state: str, cursor: str = "0", most: int = 1000) -> Page:
        """A page of jobs, at most 10000. Raises NotFound if there is no such tube."""
        return self.run(commands.list_jobs(tube, state, cursor, most))

    def list_tubes(self) -> list[str]:
        """The names of all tubes."""
        return self.run(commands.list_tubes())

    def stats(self) -> dict[str, str]:
        """Statistics of the daemon; twheelq(7) has the keys of all three."""
        return self.run(commands.stats("stats"))

    def stats_job(self, job: int | Job) -> dict[str, str]:
        """Those of a job."""
        return self.run(commands.stats_job(job))

    def stats_tube(self, tube: str) -> dict[str, str]:
        """Those of a tube."""
        return self.run(commands.stats_tube(tube))
