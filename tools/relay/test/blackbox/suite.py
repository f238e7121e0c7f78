# SPDX-License-Identifier: GPL-2.0
"""The suite of the tests of the relay, and numbers that depend on its options."""

import functools

from cluster import uses_mock
from scene import TooLate
from tap import Suite, note

# All of it takes a third of this; with --whole on brokers, more.
SECONDS = 1500

# The tests mostly wait for records to be due: this many at a time take half of a processor.
suite = Suite(seconds=SECONDS, at_a_time=6)


def many(few, whole):
    """A number: one by default, another with --whole."""
    return whole if suite.options.whole else few


def disturbing(test):
    """A decorator for a test that disturbs its cluster: together with others only on the mock,
    of which each test has its own."""
    return suite.together(test) if uses_mock() else suite.test(test)


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
