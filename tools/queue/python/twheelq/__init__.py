# SPDX-License-Identifier: LGPL-2.1-or-later
"""Jobs of twheelq: delayed, retried, unique, periodic; from programs and under asyncio.

Client is for programs that wait, AsyncClient for those that run under asyncio. Both have the
same methods. Times are seconds, as a number or a timedelta; they are sent in milliseconds,
rounded up. Bodies are bytes.
"""

from ._asyncio import AsyncClient
from ._client import Client
from ._commands import Command, Failure, Job, Page, Put, Time
from ._protocol import ConnectionLost, DeadlineSoon, NotFound, Refused, TwheelqError

__version__ = "0.2.0"
__all__ = [
    "AsyncClient", "Client", "Command", "ConnectionLost", "DeadlineSoon", "Failure", "Job",
    "NotFound", "Page", "Put", "Refused", "Time", "TwheelqError",
]
