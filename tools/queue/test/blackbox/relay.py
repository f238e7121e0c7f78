#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""twheelq relay, against Kafka as mock_cluster plays it, or against that at KAFKA=HOST:PORT.

Each test has topics and a group of its own, and a ledger by number: nothing is lost, nothing is
early, nothing is changed, and what comes twice is counted and held against a bound.
"""

# Each of them adds its tests: those first that take longest. pylint: disable=unused-import
import relay_crashes
import relay_refusals
import relay_faults
import relay_delays
import relay_operation
from relay_suite import suite

if __name__ == "__main__":
    suite.main(whole=(False, "many more records, kills and faults"))
