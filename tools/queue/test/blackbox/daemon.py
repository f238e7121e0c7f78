# SPDX-License-Identifier: GPL-2.0
"""Daemons to be tested: twheelq, and beanstalkd as its witness."""

import os
import shutil
import subprocess

from client import Client, Gone
from process import NotUp, Process, kill_all, running  # pylint: disable=unused-import

HERE = os.path.dirname(os.path.abspath(__file__))
TWHEELQ = os.environ.get("TWHEELQ", os.path.join(HERE, "..", "..", "twheelq"))
BEANSTALKD = os.environ.get("BEANSTALKD", "beanstalkd")


class Daemon(Process):
    """What twheelq and beanstalkd have in common."""

    def answers(self):
        """Does it?"""
        try:
            with Client(self.address) as client:
                return client.ask("list-tube-used").line == "USING default"
        except (OSError, Gone):
            return False

    def client(self, timeout=300.0):
        """A new connection."""
        return Client(self.address, timeout)


class Twheelq(Daemon):
    """twheelq serve; @sync as --sync, @options what else is to be on the line."""

    name = "twheelq"

    def __init__(self, sync="always", **rest):
        super().__init__(**rest)
        self.sync = sync

    def reserve(self):
        """Many stores of tests are on a large disk at a time; on a small one, the default."""
        disk = os.statvfs(os.path.dirname(self.directory))
        return ["--reserve", "128M"] if disk.f_blocks * disk.f_frsize > 4 << 30 else []

    def command(self):
        return [TWHEELQ, "serve", "--dir", self.directory, "--listen", self.address,
                "--sync", self.sync, "--wheel", "process", *self.reserve(), *self.options]

    def tool(self, word, *options, stdin=None):
        """twheelq WORD DIR: what it comes to, with output as text."""
        return subprocess.run([TWHEELQ, word, *options, self.directory], input=stdin,
                              capture_output=True, text=True, check=False, timeout=1000)


class Beanstalkd(Daemon):
    """beanstalkd; with @options ["-b"], its log is in the directory, synced each time."""

    name = "beanstalkd"

    def command(self):
        if self.address.startswith("unix:"):
            where = ["-l", self.address]
        else:
            host, port = self.address.rsplit(":", 1)
            where = ["-l", host, "-p", port]
        durable = []
        if "-b" in self.options:
            os.makedirs(self.directory, exist_ok=True)
            durable = ["-b", self.directory, "-f0"]
        return [BEANSTALKD, *where, *durable]


def beanstalkd_is_here():
    """Is there a witness?"""
    return shutil.which(BEANSTALKD) is not None
