#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Retries with exponential backoff and jitter, under asyncio.

One task takes the records of a wheel, "async for", and tries again whatever request
is due: so a thousand requests wait on one file, and not on a thousand timers of asyncio.

Which attempts fail is made up, from the request's number, so the output is always the
same.
"""
import asyncio
import random

import twheel

REQUESTS = 1000
ATTEMPTS = 6
BASE = 0.002
CAP = 0.020


class Request:
    """A request to a service of which six of ten attempts fail."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.attempts = 0
        self.random = random.Random(number)

    def delay(self) -> float:
        """Until the next attempt, in seconds: "full jitter"."""
        return self.random.random() * min(CAP, BASE * 2 ** self.attempts)

    def attempt(self) -> bool:
        self.attempts += 1
        return self.random.random() >= 0.6


async def main() -> None:
    requests = [Request(number) for number in range(REQUESTS)]
    succeeded = [0] * (ATTEMPTS + 1)
    left, dead, early = REQUESTS, 0, 0

    with twheel.Wheel() as wheel:
        for request in requests:
            wheel.add(request.delay(), data=request.number)
        async for record in wheel:
            request = requests[record.data]
            early += record.fired_ns < record.due_ns
            if request.attempt():
                succeeded[request.attempts] += 1
                left -= 1
            elif request.attempts == ATTEMPTS:
                dead += 1
                left -= 1
            else:
                wheel.add(request.delay(), data=request.number)
            if not left:
                break

    for attempt in range(1, ATTEMPTS + 1):
        print(f"{succeeded[attempt]} requests succeeded at attempt {attempt}")
    print(f"{dead} requests failed {ATTEMPTS} times and were given up")
    print(f"{early} attempts came early")


if __name__ == "__main__":
    asyncio.run(main())
