# SPDX-License-Identifier: LGPL-2.1-or-later
"""The client for programs under asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
from collections.abc import AsyncIterator
from typing import TypeVar

from . import _commands as commands
from ._client import ADDRESS, split
from ._commands import Command, Failure, Job, Page, Put, Time
from ._protocol import ConnectionLost, NotFound, Parser, Reply

T = TypeVar("T")


class AsyncClient:
    """A connection to twheelq, for one task at a time: a second one that uses it meanwhile gets a
    RuntimeError. Use it in an async with statement, which connects and closes.

    Arguments, methods and errors are those of Client. A task that is cancelled while it waits for
    an answer closes the connection, so that a job that was reserved for it at that moment goes
    back; where a reserve has to end early, give it a timeout.
    """

    def __init__(self, address: str = ADDRESS, timeout: float | None = None) -> None:
        self._where = split(address)
        self._timeout = timeout
        self._parser = Parser()
        self._busy = False
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def __aenter__(self) -> AsyncClient:
        async with asyncio.timeout(self._timeout):
            if isinstance(self._where, str):
                streams = await asyncio.open_unix_connection(self._where)
            else:
                streams = await asyncio.open_connection(*self._where)
        self._reader, self._writer = streams
        self._parser = Parser()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection. It may be called again, and by another task."""
        if self._writer:
            self._writer.transport.abort()
        self._writer = None

    # --- commands and replies --------------------------------------------------------------

    async def run(self, command: Command[T]) -> T:
        """Send a command, and wait for its reply."""
        if self._busy:
            raise RuntimeError("another task is using this client: each needs its own")
        self._busy = True
        try:
            reply = await self._exchange(command)
        finally:
            self._busy = False
        return command.parse(reply)

    async def _exchange(self, command: Command[T]) -> Reply:
        if not self._writer or not self._reader:
            raise ConnectionLost("the connection is closed")
        known = self._timeout is not None and command.wait is not None
        seconds = (self._timeout or 0) + (command.wait or 0) if known else None
        try:
            async with asyncio.timeout(seconds):
                self._writer.write(command.request)
                await self._writer.drain()
                reply = await self._read(self._reader)
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

    async def _read(self, reader: asyncio.StreamReader) -> Reply:
        while (reply := self._parser.take()) is None:
            data = await reader.read(1 << 16)
            if not data:
                raise ConnectionLost("the daemon has closed the connection")
            self._parser.feed(data)
        return reply

    # --- producers --------------------------------------------------------------------

    async def use(self, tube: str) -> None:
        await self.run(commands.use(tube))

    async def put(self, body: bytes, *, pri: int = 1024, delay: Time = 0, ttr: Time = 60) -> int:
        return await self.run(commands.put(body, pri, delay, ttr))

    async def put_at(self, body: bytes, when: float | datetime.datetime, *, pri: int = 1024,
                     ttr: Time = 60) -> int:
        return await self.run(commands.put_at(body, when, pri, ttr))

    async def put_unique(self, key: str, body: bytes, *, pri: int = 1024, delay: Time = 0,
                         ttr: Time = 60) -> Put:
        return await self.run(commands.keyed("put-unique", key, body, pri, delay, ttr))

    async def keep_unique(self, key: str, body: bytes, *, pri: int = 1024, delay: Time = 0,
                          ttr: Time = 60) -> Put:
        return await self.run(commands.keyed("keep-unique", key, body, pri, delay, ttr))

    async def every(self, name: str, interval: Time, body: bytes, *,
                    first: float | datetime.datetime = 0, pri: int = 1024, ttr: Time = 60) -> None:
        await self.run(commands.every(name, interval, body, first, pri, ttr))

    async def every_stop(self, name: str) -> None:
        await self.run(commands.every_stop(name))

    async def list_every(self, after: str | None = None) -> list[dict[str, str]]:
        return await self.run(commands.list_every(after))

    async def reschedule(self, job: int | Job, delay: Time) -> None:
        await self.run(commands.reschedule(job, delay))

    # --- workers ----------------------------------------------------------------------

    async def watch(self, tube: str) -> int:
        return await self.run(commands.watching("watch", tube))

    async def ignore(self, tube: str) -> int:
        return await self.run(commands.watching("ignore", tube))

    async def reserve(self, timeout: Time | None = None) -> Job | None:
        return await self.run(commands.reserve(timeout))

    async def reserve_job(self, job: int | Job) -> Job:
        return await self.run(commands.reserve_job(job))

    async def delete(self, job: int | Job) -> None:
        await self.run(commands.of_job("delete", "DELETED", job))

    async def release(self, job: int | Job, *, pri: int = 1024, delay: Time = 0) -> None:
        await self.run(commands.release(job, pri, delay))

    async def fail(self, job: int | Job, reason: str = "") -> Failure:
        return await self.run(commands.fail(job, reason))

    async def bury(self, job: int | Job, *, pri: int = 1024) -> None:
        await self.run(commands.bury(job, pri))

    async def touch(self, job: int | Job) -> None:
        await self.run(commands.of_job("touch", "TOUCHED", job))

    @contextlib.asynccontextmanager
    async def work(self, timeout: Time | None = None) -> AsyncIterator[Job | None]:
        job = await self.reserve(timeout)
        try:
            yield job
        except Exception as error:
            if job:
                with contextlib.suppress(NotFound, ConnectionLost):
                    await self.fail(job, f"{type(error).__name__}: {error}")
            raise
        if job:
            await self.delete(job)

    # --- operators --------------------------------------------------------------------

    async def peek(self, job: int | Job) -> Job | None:
        return await self.run(commands.peek(job))

    async def peek_next(self, state: str) -> Job | None:
        return await self.run(commands.peek_next(state))

    async def kick(self, most: int) -> int:
        return await self.run(commands.kick(most))

    async def kick_job(self, job: int | Job) -> None:
        await self.run(commands.of_job("kick-job", "KICKED", job))

    async def pause_tube(self, tube: str, time: Time) -> None:
        await self.run(commands.pause(tube, time))

    async def policy(self, tube: str, attempts: int = 25, *, base: Time = 1, factor: float = 2,
                     cap: Time = 3600, jitter: int = 10, dead_tube: str | None = None) -> None:
        await self.run(commands.policy(tube, attempts, base, factor, cap, jitter, dead_tube))

    async def policy_default(self, tube: str) -> None:
        await self.run(commands.policy_default(tube))

    async def purge(self, tube: str, state: str) -> int:
        return await self.run(commands.purge(tube, state))

    async def list_jobs(self, tube: str, state: str, cursor: str = "0", most: int = 1000) -> Page:
        return await self.run(commands.list_jobs(tube, state, cursor, most))

    async def list_tubes(self) -> list[str]:
        return await self.run(commands.list_tubes())

    async def stats(self) -> dict[str, str]:
        return await self.run(commands.stats("stats"))

    async def stats_job(self, job: int | Job) -> dict[str, str]:
        return await self.run(commands.stats_job(job))

    async def stats_tube(self, tube: str) -> dict[str, str]:
        return await self.run(commands.stats_tube(tube))
