#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Published clients of beanstalkd, with twheelq.

Each has the same conversation with beanstalkd first, which shows that the test is right. The
libraries of npm are installed into a directory of their own, with the versions of
clients/package-lock.json; the one of php is Debian's.
"""

import paths  # pylint: disable=unused-import,wrong-import-order
import os
import shutil
import subprocess

from daemon import Beanstalkd, HERE, Twheelq, beanstalkd_is_here
from tap import Skip, Suite, holds

suite = Suite(seconds=1500)

CLIENTS = os.path.join(HERE, "clients")
INSTALLED = os.path.join(HERE, "..", "..", "..", "..", ".build", "queue-clients")
PHEANSTALK = "/usr/share/php/Pheanstalk/autoload.php"
# Errors of npm when its registry cannot be reached.
UNREACHABLE = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ETIMEDOUT", "ENETUNREACH",
               "ECONNRESET", "ERR_SOCKET_TIMEOUT", "E403", "E502", "E503", "EHOSTUNREACH")

why_not = None


def install():
    """Install the libraries of npm if they are missing. Returns None, or why it cannot."""
    if not shutil.which("node") or not shutil.which("npm"):
        return "there is no node or no npm"
    os.makedirs(INSTALLED, exist_ok=True)
    changed = False
    for name in ("package.json", "package-lock.json"):
        changed |= copied(os.path.join(CLIENTS, name), os.path.join(INSTALLED, name))
    if not changed and os.path.exists(os.path.join(INSTALLED, "done")):
        return None
    result = subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts",
                             "--fetch-retries=1", "--fetch-timeout=20000"], cwd=INSTALLED,
                            capture_output=True, text=True, check=False, timeout=120)
    if result.returncode:
        os.unlink(os.path.join(INSTALLED, "package.json"))
        if any(word in result.stderr for word in UNREACHABLE):
            return "npm's registry cannot be reached"
        raise AssertionError(f"npm ci: {result.stdout}{result.stderr}")
    with open(os.path.join(INSTALLED, "done"), "w", encoding="ascii"):
        return None


def copied(source, target):
    """Copy a file if its content differs; returns whether it did."""
    with open(source, "rb") as file:
        wanted = file.read()
    if os.path.exists(target):
        with open(target, "rb") as file:
            if file.read() == wanted:
                return False
    with open(target, "wb") as file:
        file.write(wanted)
    return True


def converse(daemon, command):
    """A client has its conversation with a daemon."""
    host, port = daemon.address.rsplit(":", 1)
    environment = dict(os.environ, NODE_PATH=os.path.join(INSTALLED, "node_modules"))
    result = subprocess.run([*command, host, port], env=environment, capture_output=True,
                            text=True, check=False, timeout=600)
    holds(result.returncode == 0,
          f"{daemon.name}: {result.stdout}{result.stderr}{daemon.said()}")


def with_both(command):
    """First beanstalkd, then twheelq."""
    for kind in [Beanstalkd] * beanstalkd_is_here() + [Twheelq]:
        with kind(tcp=True) as daemon:
            converse(daemon.start(), command)


def add(library):
    """Add a test of a library of npm."""
    def run():
        if isinstance(why_not, Exception):
            raise why_not
        if why_not:
            raise Skip(why_not)
        with_both(["node", os.path.join(CLIENTS, "talk.js"), library])
    suite.add(f"npms_{library.replace('-', '_')}_works_with_twheelq", run, together=True)


for name in ("beanstalkd", "fivebeans", "node-beanstalk", "jackd"):
    add(name)


@suite.together
def debians_pheanstalk_works_with_twheelq():
    if not shutil.which("php") or not os.path.exists(PHEANSTALK):
        raise Skip("there is no php or no php-pda-pheanstalk")
    with_both(["php", os.path.join(CLIENTS, "talk.php"), "pheanstalk"])


if __name__ == "__main__":
    try:
        why_not = install()
    except (AssertionError, subprocess.TimeoutExpired) as error:
        why_not = error
    suite.main()
