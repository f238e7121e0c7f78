# SPDX-License-Identifier: LGPL-2.1-or-later
"""Times: seconds, or nanoseconds where a name ends in _ns."""

from __future__ import annotations

import math
import operator

from ._library import NEVER

NSEC_PER_SEC = 1_000_000_000


def seconds_to_ns(seconds: float, name: str) -> int:
    """Nanoseconds, rounded up so that nothing is early; infinity is never."""
    if math.isnan(seconds) or seconds < 0:
        raise ValueError(f"{name} is {seconds}, need 0 or more seconds")
    if math.isinf(seconds):
        return NEVER
    if isinstance(seconds, int):
        return min(seconds * NSEC_PER_SEC, NEVER)
    return min(math.ceil(seconds * NSEC_PER_SEC), NEVER)


def check_ns(time_ns: int, name: str) -> int:
    """The same number, if it is one that goes into 64 bits."""
    return check_u64(time_ns, f"{name}_ns")


def check_u64(value: int, name: str) -> int:
    """The same number, if it is an integer that goes into 64 bits."""
    value = operator.index(value)
    if not 0 <= value <= NEVER:
        raise ValueError(f"{name} is {value}, need 0 to 2**64 - 1")
    return value


def one_of(seconds: float | None, time_ns: int | None, name: str) -> int | None:
    """A time that may be given in seconds or in nanoseconds; None: in neither."""
    if seconds is not None and time_ns is not None:
        raise TypeError(f"{name} and {name}_ns are the same: give one of them")
    if seconds is not None:
        return seconds_to_ns(seconds, name)
    return None if time_ns is None else check_ns(time_ns, name)
