# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a wheel tells: records, states, entries of its list."""

from __future__ import annotations

import enum
from typing import NamedTuple


class Reason(enum.IntEnum):
    """Why an event ended."""

    EXPIRED = 0
    """Its time came."""
    COMPLETED = 1
    """Its watches, or complete(), ended it."""
    CLOCK_SET = 2
    """It was to end when the clock is set, and it was."""


class State(enum.IntEnum):
    """What an event does."""

    ARMED = 1
    """It waits for its time."""
    READY = 2
    """Its record waits to be read."""


class Feature(enum.IntFlag):
    """What the kernel side can do."""

    PERIODIC = 0x001
    SLACK = 0x002
    CLOCKS = 0x004
    ENTER = 0x008
    WAKE = 0x010
    CPU = 0x020
    LIST = 0x040
    OPERATIONS = 0x080
    URING_CMD = 0x100
    DEADLINES = 0x200
    ENTRY_FLAGS = 0x400


class Record(NamedTuple):
    """One expiration.  Times are absolute, on the wheel's clock."""

    data: int
    """What add() was given."""
    id: int
    """The event."""
    due_ns: int
    """When it was due; of a periodic event, the first time that this record covers."""
    fired_ns: int
    """When the kernel made it ready."""
    count: int
    """How many expirations of a periodic event this covers; else 1."""
    value: int
    """Of the signal or complete() that completed it, else 0."""
    key: int
    """Of the signal that completed it, else 0."""
    reason: Reason
    """Why it ended."""
    flags: int
    """1: a signal completed it, on the key."""

    @property
    def due(self) -> float:
        """When it was due, in seconds."""
        return self.due_ns / 1e9

    @property
    def fired(self) -> float:
        """When the kernel made it ready, in seconds."""
        return self.fired_ns / 1e9

    @property
    def by_signal(self) -> bool:
        """Was it completed by a signal?"""
        return bool(self.flags & 1)


class Query(NamedTuple):
    """What query() tells of an event."""

    state: State
    due_ns: int
    """When it is due, absolute."""
    interval_ns: int
    slack_ns: int

    @property
    def due(self) -> float:
        """When it is due, in seconds."""
        return self.due_ns / 1e9


class Entry(NamedTuple):
    """What list() tells of an event."""

    id: int
    data: int
    due_ns: int
    """When it is due, absolute."""
    interval_ns: int
    slack_ns: int
    deadline: int | None
    """The index of the word that is its time, or None."""
    state: State
    reason: Reason
    """Of a READY one, why."""
    quorum: int
    watches: int
    flags: int
    """Those of an ADD that makes it again: 1 absolute, 2 cancel_on_set, 32 deadline."""

    @property
    def cancel_on_set(self) -> bool:
        """Does it end when the clock is set?"""
        return bool(self.flags & 2)

    @property
    def due(self) -> float:
        """When it is due, in seconds."""
        return self.due_ns / 1e9


class Info(NamedTuple):
    """What the kernel side is."""

    abi: int
    features: Feature
    tick_ns: int
    """The length of a tick: a due time is rounded up to one."""
    max_events: int
    """How many events the wheel may have at once."""
