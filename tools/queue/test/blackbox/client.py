# SPDX-License-Identifier: GPL-2.0
"""A client of the protocol that can also misbehave.

It sends any bytes, also half a line, and reads replies one by one. A reply is a line, and a
body if the line announces one.
"""

import collections
import socket
import time

# The replies with a body, and the index of the word that has its length.
WITH_BODY = {b"RESERVED": 2, b"FOUND": 2, b"OK": 1}

Reply = collections.namedtuple("Reply", "line body")


class Gone(Exception):
    """The server has closed the connection."""


def body_length(line):
    """The length of the body behind the line of a reply; None: it has no body."""
    words = line.split()
    at = WITH_BODY.get(words[0]) if words else None
    # The RESERVED of put-unique has no length and no body.
    if at is None or at >= len(words):
        return None
    return int(words[at])


class Buffer:
    """Bytes that have come, from which replies are taken."""

    def __init__(self):
        self.data = bytearray()

    def add(self, data):
        self.data += data

    def take(self):
        """The next reply, or None if it is incomplete."""
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
    """Connect. A unix socket with a timeout does not wait for room in the backlog, so try
    again."""
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
    """A connection. Waiting for a reply raises TimeoutError after @timeout seconds."""

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
        """Send bytes."""
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
        """Does nothing come for @seconds?"""
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
        """Send a command without waiting for its reply."""
        data = command.encode() + b"\r\n"
        if body is not None:
            data += body + b"\r\n"
        self.send(data)

    def ask(self, command, body=None, timeout=None):
        """Send a command, with a body if it has one, and return its reply."""
        self.tell(command, body)
        return self.reply(timeout)

    # --- replies as numbers and dictionaries ----------------------------------------

    def put(self, body, pri=1024, delay=0, ttr=60):
        """Put a job; returns its id."""
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
    """Parse the plain YAML that beanstalkd writes: a line for each key."""
    pairs = {}
    for line in body.decode().splitlines():
        if line == "---":
            continue
        key, colon, value = line.partition(":")
        if not colon or key in pairs:
            raise ValueError(f"not a line of a dictionary: {line!r}")
        pairs[key] = value.strip().strip('"')
    return pairs
