# SPDX-License-Identifier: LGPL-2.1-or-later
"""Records for those who wait under asyncio: each record goes to exactly one of them.

A record that was read from the kernel is in the queue until a consumer takes it, which it
does in the step in which it returns it.  So a consumer that is cancelled has either
returned its record or left it to the next one.
"""

from __future__ import annotations

import asyncio
import collections
from typing import TYPE_CHECKING

from ._types import Record

if TYPE_CHECKING:
    from ._wheel import Wheel


class Consumers:
    """Who waits for records of a wheel, and records that nobody has taken yet."""

    def __init__(self, wheel: Wheel) -> None:
        self._wheel = wheel
        self._waiting: collections.deque[asyncio.Future[None]] = collections.deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._fd = -1
        self.queue: collections.deque[Record] = collections.deque()

    def _begin_to_watch(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is loop:
            return
        if self._loop is not None and not self._loop.is_closed():
            raise RuntimeError("the wheel is read by another event loop")
        if self._loop is not None:
            self._waiting.clear()
        self._fd = self._wheel.fileno()
        loop.add_reader(self._fd, self._readable)
        self._loop = loop

    # The file stays readable while nobody reads: so it is watched while somebody waits.
    def _end_to_watch(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._fd)
        self._loop = None

    def _readable(self) -> None:
        # No more is read while some wait to be taken.
        if not self.queue:
            try:
                self.queue.extend(self._wheel._read_kernel())
            except OSError as error:
                self._fail(error)
                return
        if self.queue:
            self._wake_next()

    def _fail(self, error: OSError) -> None:
        self._end_to_watch()
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_exception(error)

    def _wake_next(self) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                break
        if not self._waiting:
            self._end_to_watch()

    def _forget(self, waiter: asyncio.Future[None]) -> None:
        was_woken = waiter.done() and not waiter.cancelled()
        waiter.cancel()
        if waiter in self._waiting:
            self._waiting.remove(waiter)
        if was_woken and self.queue:
            self._wake_next()
        elif not self._waiting:
            self._end_to_watch()

    async def take(self) -> Record | None:
        """The next record; None: the wheel is closed."""
        while not self.queue:
            if self._wheel.closed:
                return None
            self._begin_to_watch()
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            try:
                await waiter
            except BaseException:
                self._forget(waiter)
                raise
        record = self.queue.popleft()
        if self.queue:
            self._wake_next()
        return record

    def end(self) -> None:
        """The wheel is being closed: who waits hears of it."""
        self.queue.clear()
        self._end_to_watch()
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done() and not waiter.get_loop().is_closed():
                waiter.set_result(None)
