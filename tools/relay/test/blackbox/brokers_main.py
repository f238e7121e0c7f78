#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of twheel-relay with real brokers: those that the mock has, and faults of brokers.

Three brokers are started once. Tests that disturb them run one at a time, after all others.
"""

import importlib
import os
import sys

import paths  # pylint: disable=unused-import
import brokers
import cluster
import rig
import suite
import trial
from tap import Skip

OPTIONS = {"whole": (False, "many more records, kills and faults"),
           "version": ("3.9", "of Kafka: 3.9 or 4"),
           "faults": (False, "only faults of brokers under flow, which the table has"),
           "kills": (0, "how many relays are killed in the test of exactly once"),
           "table": ("", "a file for the table of faults, in markdown")}
# More of them on two processors, and brokers do not answer before relays lose their membership.
AT_A_TIME = 2
# Seconds after which all of it is ended.
SOME_S = 2900
WHOLE_S = 10000
# Each of them adds its tests; those that take longest come first.
MODULES = ("brokers_faults", "brokers_promises", "brokers_rights", "crashes", "refusals", "faults",
           "delays", "operation", "cancels")


def main():
    """Start the brokers, and run the tests with them."""
    arguments = sys.argv[1:]
    version = "3.9"
    for number, word in enumerate(arguments):
        if word.startswith("--version"):
            version = (arguments[number:] + [""])[1] if word == "--version" else word[10:]
    try:
        brokers.need(version)
        shared = rig.Rig(version)
    except Skip as skip:
        print(f"1..0 # SKIP {skip}")
        return
    # The tests ask for it when they are added.
    cluster.share(shared)
    for module in MODULES[:1] if "--faults" in arguments else MODULES:
        importlib.import_module(module)
    suite.suite.at_a_time = AT_A_TIME
    suite.suite.seconds = SOME_S if {"--whole", "--kills"}.isdisjoint(arguments) else WHOLE_S
    path = os.path.abspath
    try:
        suite.suite.main(**OPTIONS)
    finally:
        trial.table.write(suite.suite.options.table and path(suite.suite.options.table))


if __name__ == "__main__":
    main()
