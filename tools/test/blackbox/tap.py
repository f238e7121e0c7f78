# SPDX-License-Identifier: GPL-2.0
"""Tests that print TAP: a plan, and a line for each, with what went wrong before it.

A suite has an end of its own: when its time is over, whatever hangs is said, all daemons
are killed, and it has failed.
"""

import argparse
import concurrent.futures
import os
import signal
import sys
import threading
import time
import traceback

import process


class Skip(Exception):
    """This test cannot be run here; the reason."""


def note(text):
    """Print lines of a comment."""
    for line in str(text).splitlines():
        print(f"# {line}")
    sys.stdout.flush()


def reason_of(error):
    """What to say of a test that failed: the error, and where in our files it was."""
    lines = [f"{type(error).__name__}: {error}"]
    for frame in traceback.extract_tb(error.__traceback__):
        lines.append(f"  {os.path.basename(frame.filename)}:{frame.lineno}: {frame.line}")
    return "\n".join(lines)


class Suite:
    """Tests in the order in which they were added. @seconds is the end of all of it, and
    @at_a_time is how many of those that may be together are."""

    def __init__(self, seconds, at_a_time=32):
        self.seconds = seconds
        self.at_a_time = at_a_time
        self.tests = []
        self.running = {}

    def add(self, name, function, together=False):
        """A test; those with @together run at the same time, before all others."""
        self.tests.append((name, function, together))

    def test(self, function):
        """A decorator: the function's name is the test's."""
        self.add(function.__name__, function)
        return function

    def together(self, function):
        """The same for tests that have nothing in common, and sleep a lot."""
        self.add(function.__name__, function, True)
        return function

    def run_one(self, name, function):
        """Run a test: (what to append to "ok", what to say before), or ("not ok", ...)."""
        self.running[name] = time.monotonic()
        try:
            return "ok", name, function()
        except Skip as skip:
            return "ok", f"{name} # SKIP {skip}", None
        except Exception as error:  # pylint: disable=broad-except
            return "not ok", name, reason_of(error)
        finally:
            del self.running[name]

    def results(self, tests):
        """Results of tests in their order, those that may be together from a pool."""
        with concurrent.futures.ThreadPoolExecutor(self.at_a_time) as pool:
            futures = [pool.submit(self.run_one, name, function)
                       for name, function, together in tests if together]
            for future in futures:
                yield future.result()
        for name, function, together in tests:
            if not together:
                yield self.run_one(name, function)

    def out_of_time(self):
        """The end of a suite that hangs."""
        note(f"the suite's {self.seconds} s are over; running: {', '.join(self.running)}")
        print("Bail out!", flush=True)
        process.kill_all()
        os._exit(1)

    def run(self, names=()):
        """Run the tests whose names hold one of @names, or all; the exit status."""
        tests = [test for test in self.tests
                 if not names or any(name in test[0] for name in names)]
        end = threading.Timer(self.seconds, self.out_of_time)
        end.daemon = True
        end.start()
        failed = 0
        print(f"1..{len(tests)}", flush=True)
        try:
            for number, (verdict, name, text) in enumerate(self.results(tests), 1):
                if text:
                    note(text)
                words = name.split(" ", 1)
                print(f"{verdict} {number} - {' '.join(words)}", flush=True)
                failed += verdict != "ok"
            if failed:
                note(process.all_said())
        finally:
            process.kill_all()
            end.cancel()
        return 1 if failed or not tests else 0

    def main(self, **options):
        """Run as a program: names of tests as arguments, and options with a default."""
        parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
        parser.add_argument("names", nargs="*", help="run tests whose names hold this")
        for option, (default, text) in options.items():
            how = ({"action": "store_true", "help": text} if default is False else
                   {"type": type(default), "help": f"{text} (default: {default})"})
            parser.add_argument(f"--{option.replace('_', '-')}", default=default, **how)
        arguments = parser.parse_args()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: (process.kill_all(), os._exit(1)))
        self.options = arguments
        sys.exit(self.run(arguments.names))


def equal(seen, expected, what=""):
    """Both are the same."""
    if seen != expected:
        raise AssertionError(f"{what or 'seen'}: {seen!r}, expected: {expected!r}")


def holds(condition, text):
    """The condition is true; else the text says what was seen."""
    if not condition:
        raise AssertionError(text)


def wait_for(condition, text, seconds=300):
    """Look again and again until the condition is true; its value."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"it did not come: {text}")
        time.sleep(0.01)
    return value
