# SPDX-License-Identifier: GPL-2.0
"""A daemon whose numbers never depend on time, for the screens of twheelq top.

Usage: fake_daemon.py SOCKET SET

It listens at a socket of UNIX and answers stats, list-tubes and stats-tube, and list-every. SET is one of those
in SETS. Each answer to stats counts the same jobs as late once more, so that each refresh of top
has the same lateness. It ends when it is terminated; then the socket is gone.

With the set "slow", each answer takes 5 seconds after the third one to stats; there is a file
SOCKET.slow from then on.
"""

import os
import signal
import socketserver
import sys
import time

HOST = "queue.example"
LONG = "a-tube-whose-name-is-as-long-as-names-may-be." * 4
LONG += "x" * (200 - len(LONG) - 4) + ".end"

# Name: ready, reserved, delayed, buried, dead, waiting.
SETS = {
    "tubes": {
        "default": (0, 0, 0, 0, 0, 4),
        "mails": (12, 3, 1500, 0, 2, 0),
        "mails.dead": (0, 0, 0, 2, 0, 0),
        "reports.of-the-whole-night-for-customers": (1, 1, 40, 7, 0, 1),
        "thumbnails": (123456789, 8, 0, 0, 0, 0),
    },
    "long": {LONG: (1, 2, 3, 4, 5, 6), "short": (1, 0, 0, 0, 0, 0)},
    "busy": {"idle": (100, 0, 0, 0, 0, 0), "worked": (0, 0, 0, 0, 0, 0)},
    "slow": {f"tube{number}": (1, 0, 0, 0, 0, 0) for number in range(100)},
    "many": {f"tube{number}": (0, 0, 0, 0, 1, 0) for number in range(1001)},
    # Bytes and escapes of YAML that stand for them: commands of a terminal, letters that are
    # written from right to left, wide ones, a control character of Latin-1, and bad UTF-8.
    "hostile": {
        b"esc\x1b[2J\x1b[31mred": (1, 0, 0, 0, 0, 0),
        b'"quoted\\x1b[2J"': (2, 0, 0, 0, 0, 0),
        b'"c1\\x9b31m\\xc2\\x9b7m"': (3, 0, 0, 0, 0, 0),
        "rtl\u202eevil\u2067".encode(): (4, 0, 0, 0, 0, 0),
        b'"rtl\\xe2\\x80\\xaeevil"': (5, 0, 0, 0, 0, 0),
        "wide\u6f22\u5b57\U0001f4a9".encode(): (6, 0, 0, 0, 0, 0),
        b"bad\xff\xc0\xaf\xed\xa0\x80": (7, 0, 0, 0, 0, 0),
        b"bell\x07back\x08\x08tab\tcr\rnul\x00end": (8, 0, 0, 0, 0, 0),
    },
}
NUMBERS = ("ready", "reserved", "delayed", "buried", "dead", "waiting")


def as_bytes(name):
    return name if isinstance(name, bytes) else name.encode()


# Values of stats: control characters of Latin-1, right to left, and bad UTF-8.
HOSTILE = (r'os: "c1\xc2\x9b31m"', r'platform: "rtl\xe2\x80\xae"', r'version: "bad\xff"')
SCHEDULE = rb"""- name: "nightly"
  tube: "c1\xc2\x9b31m\xff"
  interval-us: 60000000"""


class Daemon:
    """What it has, and what it has been asked."""

    def __init__(self, path, name):
        tubes = SETS[name]
        self.name = name
        self.tubes = {as_bytes(name): numbers for name, numbers in tubes.items()}
        self.grows = b"worked" if name == "busy" else None
        self.slow = f"{path}.slow" if name == "slow" else None
        self.asked = 0

    def stats(self):
        """The sums, and 1000 jobs more in each histogram, in three buckets."""
        self.asked += 1
        lines = [f"hostname: {HOST}", "current-connections: 12", "uptime: 11520"]
        for i, name in enumerate(NUMBERS):
            total = sum(numbers[i] for numbers in self.tubes.values())
            key = "current-waiting" if name == "waiting" else f"current-jobs-{name}"
            lines.append(f"{key}: {total}")
        for what, usual in (("ready", 64), ("reserved", 1024)):
            for below, nr in ((usual, 980), (usual * 16, 19), (usual * 32, 1)):
                lines.append(f"due-to-{what}-below-{below}-us: {nr * self.asked}")
        if self.name == "hostile":
            lines += HOSTILE
        return "\n".join(lines).encode()

    def tube(self, name):
        lines = []
        for key, number in zip(NUMBERS, self.tubes[name]):
            key = "current-waiting" if key == "waiting" else f"current-jobs-{key}"
            lines.append(f"{key}: {number}")
        if self.grows == name:
            lines.append(f"total-jobs: {1000 * self.asked}")
        return "\n".join(lines).encode()

    def answer(self, line):
        if self.slow and self.asked > 2:
            with open(self.slow, "wb"):
                pass
            time.sleep(5)
        if line == b"stats":
            return self.stats()
        if line == b"list-tubes":
            return b"\n".join(b"- " + name for name in self.tubes)
        if line == b"list-every" and self.name == "hostile":
            return SCHEDULE
        name = line.removeprefix(b"stats-tube ")
        return self.tube(name) if name in self.tubes else None


class Client(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            body = self.server.daemon.answer(line.rstrip(b"\r\n"))
            if line.startswith(b"use "):
                self.wfile.write(b"USING" + line[3:])
            elif body is None:
                self.wfile.write(b"NOT_FOUND\r\n")
            else:
                body = b"---\n" + body + b"\n"
                self.wfile.write(b"OK %d\r\n" % len(body) + body + b"\r\n")


def main():
    path, name = sys.argv[1:]
    signal.signal(signal.SIGTERM, lambda *_: (os.unlink(path), os._exit(0)))
    with socketserver.UnixStreamServer(path, Client) as server:
        server.daemon = Daemon(path, name)
        server.serve_forever()


if __name__ == "__main__":
    main()
