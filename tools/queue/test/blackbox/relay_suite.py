# SPDX-License-Identifier: GPL-2.0
"""The suite that the tests of the relay are added to, and what its options make of a number."""

import functools

from kafka_scene import TooLate
from tap import Suite, note

# They wait for something to be due: so many at a time take half of a processor.
suite = Suite(seconds=1500, at_a_time=6)


def many(few, whole):
    """How many, by default and with --whole."""
    return whole if suite.options.whole else few


def in_time(test):
    """A decorator, for a test that takes how many times as long it has to take: it begins again,
    with twice the time, when it was TooLate."""
    @functools.wraps(test)
    def run():
        for times in (1, 2, 4):
            try:
                return test(times)
            except TooLate as error:
                note(f"{test.__name__} begins again: {error}")
        return test(8)
    return run
