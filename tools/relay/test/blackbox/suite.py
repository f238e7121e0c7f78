# SPDX-License-Identifier: GPL-2.0
"""The suite of the tests of the relay, and numbers that depend on its options."""

import functools

from scene import TooLate
from tap import Suite, note

# The tests mostly wait for records to be due: this many at a time take half of a processor.
suite = Suite(seconds=1500, at_a_time=6)


def many(few, whole):
    """A number: one by default, another with --whole."""
    return whole if suite.options.whole else few


def in_time(test):
    """A decorator for a test, which gets a factor for its times: after TooLate the test begins
    again, with twice the factor."""
    @functools.wraps(test)
    def run():
        for times in (1, 2, 4):
            try:
                return test(times)
            except TooLate as error:
                note(f"{test.__name__} begins again: {error}")
        return test(8)
    return run
