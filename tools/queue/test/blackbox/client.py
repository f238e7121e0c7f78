# SPDX-License-Identifier: GPL-2.0
"""A client of beanstalkd's protocol, raw enough to be a bad one.

It sends what it is told, also half a line, and reads replies one by one. A reply is its
line, and the body where the line announces one.
"""

import collections
import socket
import time

# The replies that a body follows, and which word of theirs is its length.
WITH_BODY = {b"RESERVED": 2, b"FOUND": 2, b"OK": 1}

Reply = collections.namedtuple("Reply", "line body")


class Gone(Exception):
    """The server has closed the connection."""


def body_length(line):
    """How many bytes follow a reply's line; None if it is all."""
    words = line.split()
    at = WITH_BODY.get(words[0]) if words else None
    # Of put-unique, RESERVED has no length, as no body follows.
    if at is None or at >= len(words):
        return None
    return int(words[at])


class Buffer:
    """Bytes that have come, out of which replies are taken."""

    def __init__(self):
        self.data = bytearray()

    def add(self, data):
        self.data += data

    def take(self):
        """The next reply, or None if it is not whole yet."""
        end = self.data.find(b"\r\n")
        if end < 0:
            return None
        line = bytes(self.data[:end])
        length = body_length(line)
        if length is None:
            del self.data[:end + 2]
            return Reply(line.decode(), None)
        whole = end + 2 + length + 2
        if len(self.data) < whole:
            return None
        body = bytes(self.data[end + 2:whole - 2])
        if self.data[whole - 2:whole] != b"\r\n":
            raise ValueError(f"no CRLF after the body of {line!r}")
        del self.data[:whole]
        return Reply(line.decode(), body)


def reach(sock, where, seconds):
    """Connect. A socket of a path that has a time-out does not wait for room among those that
    are to be accepted: so it is tried again."""
    end = time.monotonic() + seconds
    while True:
        try:
            return sock.connect(where)
        except BlockingIOError:
            if time.monotonic() > end:
                raise
        time.sleep(0.01)


def connect(address, timeout=300.0):
    """A socket to "unix:PATH" or "HOST:PORT"."""
    if address.startswith("unix:"):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        where = address.removeprefix("unix:")
    else:
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        host, port = address.rsplit(":", 1)
        where = host, int(port)
    try:
        sock.settimeout(timeout)
        reach(sock, where, timeout or 0)
    except BaseException:
        sock.close()
        raise
    return sock


class Client:
    """A connection. A wait for a reply ends after @timeout seconds with TimeoutError."""

    def __init__(self, address, timeout=300.0):
        self.sock = connect(address, timeout)
        self.buffer = Buffer()
        self.timeout = timeout

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.sock.close()

    def send(self, data):
        """Send bytes as they are."""
        self.sock.sendall(data)

    def reply(self, timeout=None):
        """The next reply."""
        self.sock.settimeout(self.timeout if timeout is None else timeout)
        while (reply := self.buffer.take()) is None:
            try:
                data = self.sock.recv(1 << 16)
            except ConnectionError as error:
                raise Gone(str(error)) from error
            if not data:
                raise Gone("the server has closed the connection")
            self.buffer.add(data)
        return reply

    def silent(self, seconds):
        """Does nothing come for so long?"""
        if self.buffer.data:
            return False
        self.sock.settimeout(seconds)
        try:
            data = self.sock.recv(1 << 16)
        except TimeoutError:
            return True
        self.buffer.add(data)
        return False

    def tell(self, command, body=None):
        """Send a command, and do not wait for its reply."""
        data = command.encode() + b"\r\n"
        if body is not None:
            data += body + b"\r\n"
        self.send(data)

    def ask(self, command, body=None, timeout=None):
        """Send a command, with a body if it has one, and return its reply."""
        self.tell(command, body)
        return self.reply(timeout)

    # --- what most tests want, as numbers and dictionaries ---------------------------

    def put(self, body, pri=1024, delay=0, ttr=60):
        """Put a job; its id."""
        reply = self.ask(f"put {pri} {delay} {ttr} {len(body)}", body)
        word, *rest = reply.line.split()
        if word != "INSERTED":
            raise AssertionError(f"put was answered with {reply.line!r}")
        return int(rest[0])

    def reserve(self, timeout="0"):
        """Reserve a job: (id, body), or None if there is none."""
        reply = self.ask(f"reserve-with-timeout {timeout}")
        word, *rest = reply.line.split()
        if word in ("TIMED_OUT", "DEADLINE_SOON"):
            return None
        if word != "RESERVED":
            raise AssertionError(f"reserve was answered with {reply.line!r}")
        return int(rest[0]), reply.body

    def stats(self, command="stats"):
        """A reply in YAML as a dictionary of strings; None if it is not OK."""
        reply = self.ask(command)
        return None if reply.body is None else dictionary(reply.body)

    def names(self, command):
        """A reply in YAML as a list."""
        lines = self.ask(command).body.decode().splitlines()
        return [line.removeprefix("- ") for line in lines if line != "---"]


def dictionary(body):
    """YAML of the plain kind that beanstalkd writes: a line for each key."""
    pairs = {}
    for line in body.decode().splitlines():
        if line == "---":
            continue
        key, colon, value = line.partition(":")
        if not colon or key in pairs:
            raise ValueError(f"not a line of a dictionary: {line!r}")
        pairs[key] = value.strip().strip('"')
    return pairs
