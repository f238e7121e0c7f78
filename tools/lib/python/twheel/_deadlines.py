# SPDX-License-Identifier: LGPL-2.1-or-later
"""Deadlines: words that the process shares with the kernel."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

from . import _library as lib
from ._times import check_ns, seconds_to_ns

if TYPE_CHECKING:
    from ._wheel import Wheel


class Deadline:
    """A word: the time of each event that was added or modified with it.

    It is an absolute time on the wheel's clock.  To set it to a later time is enough to
    move its events; after an earlier one, wheel.modify(id, deadline=...) must follow.
    To set it is one store, without a system call.
    """

    __slots__ = ("_deadlines", "index")

    def __init__(self, deadlines: Deadlines, index: int) -> None:
        self._deadlines = deadlines
        self.index = index
        """Its place among the words of the wheel."""

    def __repr__(self) -> str:
        return f"<twheel.Deadline {self.index}>"

    @property
    def at_ns(self) -> int:
        """The time, in nanoseconds."""
        return self._deadlines._words()[self.index]

    @at_ns.setter
    def at_ns(self, time_ns: int) -> None:
        # ctypes copies these 8 bytes by one instruction, while it has the interpreter's
        # lock.
        self._deadlines._words()[self.index] = check_ns(time_ns, "at")

    @property
    def at(self) -> float:
        """The time, in seconds; infinity: never."""
        time_ns = self.at_ns
        return time_ns / 1e9 if time_ns < 2**63 else float("inf")

    @at.setter
    def at(self, seconds: float) -> None:
        self.at_ns = seconds_to_ns(seconds, "at")

    def postpone(self, delay: float) -> None:
        """Set it to so many seconds from now."""
        now_ns = self._deadlines._wheel.now_ns
        self.at_ns = min(now_ns + seconds_to_ns(delay, "delay"), lib.NEVER)

    def give(self) -> None:
        """Give it back, when no event goes by it any more.

        Raises OSError, EINVAL, if nobody took it.
        """
        lib.check(lib.twheel_deadline_put(self._deadlines._wheel._handle(), self.index))


class Deadlines:
    """The words of a wheel: a sequence of Deadline.

    take() and Deadline.give() keep account of who uses which; who does that by himself
    can use an index.
    """

    def __init__(self, wheel: Wheel, nr: int) -> None:
        address = lib.twheel_deadlines(wheel._handle())

        self._wheel = wheel
        self._nr = nr
        self._array: ctypes.Array[ctypes.c_uint64] | None = None
        if nr:
            if ctypes.sizeof(ctypes.c_void_p) < 8:
                raise NotImplementedError("deadlines take a 64-bit Python")
            self._array = (ctypes.c_uint64 * nr).from_address(address)

    def _words(self) -> ctypes.Array[ctypes.c_uint64]:
        if self._array is None:
            raise ValueError("the wheel is closed")
        return self._array

    def _forget(self) -> None:
        self._array = None

    def __len__(self) -> int:
        return self._nr

    def __getitem__(self, index: int) -> Deadline:
        if not 0 <= index < self._nr:
            raise IndexError(f"there are {self._nr} deadlines, and none {index}")
        return Deadline(self, index)

    def take(self) -> Deadline:
        """Take one that nobody uses; it says never.

        Raises OSError, ENOSPC, if there is none left.
        """
        return Deadline(self, lib.check(lib.twheel_deadline_get(self._wheel._handle())))
