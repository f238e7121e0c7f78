#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of twheel-relay with mock_cluster, or with the cluster at KAFKA=HOST:PORT.

Each test has topics and a group of its own, and a ledger by number: no record is lost, early or
changed, and the number of those that come twice is within a bound.
"""

# Each of them adds its tests; those that take longest come first. pylint: disable=unused-import
import paths
import crashes
import refusals
import faults
import delays
import topics
import operation
import cancels
import replays
from suite import suite

if __name__ == "__main__":
    suite.main(whole=(False, "many more records, kills and faults"))
