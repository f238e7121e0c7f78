# SPDX-License-Identifier: GPL-2.0
"""Daemons to be tested, as processes.

Each has a temporary directory of its own, which lives as long as it, over any number of
starts. What it writes to stderr is in the file "log" there.
"""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

running = set()
running_lock = threading.Lock()


def kill_all():
    """Kill every daemon that was started here and has not ended, and forget its directory."""
    with running_lock:
        left = list(running)
    for one in left:
        one.close()


def all_said():
    """What those that still run have written to stderr."""
    with running_lock:
        left = list(running)
    return "".join(f"{one.name} {one.address} said:\n{one.said()[-4000:]}" for one in left)


class NotUp(Exception):
    """The daemon has ended, or does not answer; what it said."""


def free_port():
    """A TCP port of the loopback that nobody has at the moment."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


class Process:
    """What daemons have in common; @directory is made if it is None.

    @before are words before the command: strace, or a limit.
    """

    name = None

    def __init__(self, tcp=False, directory=None, before=(), options=()):
        self.temporary = tempfile.mkdtemp(prefix="twheel-")
        self.directory = directory or os.path.join(self.temporary, "store")
        self.log = os.path.join(self.temporary, "log")
        self.address = (f"127.0.0.1:{free_port()}" if tcp
                        else f"unix:{os.path.join(self.temporary, 'socket')}")
        self.before = list(before)
        self.options = list(options)
        self.process = None
        with running_lock:
            running.add(self)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def command(self):
        """The words of its command line."""
        raise NotImplementedError

    def launch(self):
        """Start it, and do not wait until it answers."""
        if self.address.startswith("unix:"):
            path = self.address.removeprefix("unix:")
            if os.path.exists(path):
                os.unlink(path)
        with open(self.log, "ab") as log:
            # pylint: disable=consider-using-with
            self.process = subprocess.Popen(self.before + self.command(),
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        return self

    def answers(self):
        """Is it ready for clients?"""
        raise NotImplementedError

    def start(self, seconds=300):
        """Start it, and wait until it answers. NotUp, if it ends instead."""
        self.launch()
        end = time.monotonic() + seconds
        while not self.answers():
            if (status := self.process.poll()) is not None:
                self.process = None
                raise NotUp(f"{self.name} has ended with {status}: {self.said()}")
            if time.monotonic() > end:
                raise NotUp(f"{self.name} does not answer: {self.said()}")
            time.sleep(0.002)
        return self

    def said(self):
        """What it wrote to stderr, since the first start."""
        with open(self.log, encoding="utf-8", errors="replace") as log:
            return log.read()

    def end(self, number):
        """Send it a signal, and wait for its end; its status."""
        self.process.send_signal(number)
        status = self.process.wait()
        self.process = None
        return status

    def stop(self):
        """Tell it to end; its status."""
        return self.end(signal.SIGTERM)

    def kill(self):
        """kill -9; its status."""
        return self.end(signal.SIGKILL)

    def restart(self):
        """Tell it to end, and start it again."""
        self.stop()
        return self.start()

    def pid(self):
        """The daemon's own process, also below strace."""
        pid = self.process.pid
        if self.before:
            with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
                pid = int(children.read().split()[0])
        return pid

    def memory(self, field="RssAnon"):
        """Bytes that /proc/PID/status has in a field."""
        with open(f"/proc/{self.pid()}/status", encoding="ascii") as status:
            for line in status:
                if line.startswith(f"{field}:"):
                    return int(line.split()[1]) * 1024
        raise KeyError(field)

    def close(self):
        """The end of it and of its directory."""
        with running_lock:
            running.discard(self)
        if self.process:
            if self.process.poll() is None and self.before:
                try:
                    os.kill(self.pid(), signal.SIGKILL)
                except (OSError, IndexError):
                    pass
            self.process.kill()
            self.process.wait()
            self.process = None
        shutil.rmtree(self.temporary, ignore_errors=True)
