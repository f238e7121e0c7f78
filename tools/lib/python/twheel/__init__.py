# SPDX-License-Identifier: LGPL-2.1-or-later
"""Delayed events by /dev/twheel: millions of timers on one file.

    import twheel

    with twheel.Wheel() as wheel:
        wheel.add(2.5, data=42)
        for record in wheel.wait():
            print(record.data, record.due)

Under asyncio, records are what a wheel iterates over:

    async for record in wheel:
        ...

Times are in seconds; or in nanoseconds, where a name ends in _ns.  math.inf is never.
"""

from ._deadlines import Deadline, Deadlines
from ._types import Entry, Feature, Info, Query, Reason, Record, State
from ._wheel import Wheel

__all__ = ["Deadline", "Deadlines", "Entry", "Feature", "Info", "Query", "Reason", "Record",
           "State", "Wheel"]
__version__ = "0.2.0"
