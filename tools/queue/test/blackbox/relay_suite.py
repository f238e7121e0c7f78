# SPDX-License-Identifier: GPL-2.0
"""The suite that the tests of the relay are added to, and what its options make of a number."""

from tap import Suite

# They wait for something to be due: so many at a time take half of a processor.
suite = Suite(seconds=1500, at_a_time=6)


def many(few, whole):
    """How many, by default and with --whole."""
    return whole if suite.options.whole else few
