# SPDX-License-Identifier: GPL-2.0
"""Asks brokers what the client libraries at hand hide: what a consumer group has committed (offsets,
and the metadata of each, the text in which the relay notes what is done above it), and where
partitions end, with what is not committed.
"""

import socket
import struct

LIST_OFFSETS = 2
OFFSET_FETCH = 9
NOT_COORDINATOR = 16

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


class NotAnswered(Exception):
    """No broker answers what the group has committed."""


# --- the protocol: OffsetFetch, version 1 -------------------------------------------------

def string(text):
    """A string with its length."""
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def offset_fetch(group, partitions):
    """The body of a request for these (topic, partition)."""
    topics = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    body = string(group) + struct.pack(">i", len(topics))
    for topic, numbers in topics.items():
        body += string(topic) + struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)
    return body


class Answer:
    """An answer, whose fields are read from the front."""

    def __init__(self, data):
        self.data = data
        self.at = 0

    def take(self, layout):
        """Read numbers, by a layout of struct."""
        numbers = struct.unpack_from(layout, self.data, self.at)
        self.at += struct.calcsize(layout)
        return numbers if len(numbers) > 1 else numbers[0]

    def text(self):
        """A string; "" for null."""
        length = max(0, self.take(">h"))
        self.at += length
        return self.data[self.at - length:self.at].decode()


def receive(sock, length):
    """Receive a number of bytes."""
    data = b""
    while len(data) < length:
        some = sock.recv(length - len(data))
        if not some:
            raise OSError("the broker has closed the connection")
        data += some
    return data


def ask(address, api, version, body):
    """Send a request over a connection of its own."""
    host, port = address.rsplit(":", 1)
    head = struct.pack(">hhi", api, version, 1) + string("ledger")
    with socket.create_connection((host, int(port)), 60) as sock:
        sock.sendall(struct.pack(">i", len(head) + len(body)) + head + body)
        length = struct.unpack(">i", receive(sock, 4))[0]
        return Answer(receive(sock, length)[4:])


def offsets_of(answer):
    """{(topic, partition): (offset, text)}, or None if another broker has the group."""
    found = {}
    for _ in range(answer.take(">i")):
        topic = answer.text()
        for _ in range(answer.take(">i")):
            partition, offset = answer.take(">iq")
            text = answer.text()
            if answer.take(">h") == NOT_COORDINATOR:
                return None
            found[topic, partition] = Committed(offset, text)
    return found


def committed(addresses, group, partitions):
    """The commits of the group for (topic, partition)s: {(topic, partition): Committed}."""
    why = "none is its coordinator"
    for address in addresses:
        try:
            answer = ask(address, OFFSET_FETCH, 1, offset_fetch(group, partitions))
        except OSError as error:
            why = error
            continue
        found = offsets_of(answer)
        if found is not None:
            return found
    raise NotAnswered(f"of {', '.join(addresses)}: {why}")


def ends(leader, partitions):
    """The high watermarks of these (topic, partition), which have this leader: {(topic, partition):
    offset}; an offset is None if it does not say."""
    if leader is None:
        return dict.fromkeys(partitions)
    body = struct.pack(">ii", -1, len(partitions))
    for topic, number in partitions:
        body += string(topic) + struct.pack(">iiq", 1, number, -1)
    answer, found = ask(leader, LIST_OFFSETS, 1, body), {}
    for _ in range(answer.take(">i")):
        topic = answer.text()
        for _ in range(answer.take(">i")):
            number, error, _, offset = answer.take(">ihqq")
            found[topic, number] = None if error else offset
    return found


# --- the text -----------------------------------------------------------------------------

def lengths_of(text):
    """The numbers in a text: digits of 5 bits, the lowest first."""
    number, shift = 0, 0
    for letter in text:
        digit = LETTERS.index(letter)
        number |= (digit & 31) << shift
        shift += 5
        if digit < 32:
            yield number
            number, shift = 0, 0


class Committed:
    """A committed offset, below which all is done, and the offsets that are done above it."""

    def __init__(self, offset, text):
        self.offset = offset
        self.runs = []
        head = f"2:{offset}:"
        if not text.startswith(head):
            return
        # Between the two is the time of the text.
        end, lengths = offset, lengths_of(text.split(":", 3)[3])
        for pending, done in zip(lengths, lengths):
            self.runs.append((end + pending, end + pending + done))
            end += pending + done

    def add_pieces(self, pieces):
        """Add the pieces of the map: (first offset, bits)."""
        for begin, bits in pieces:
            self.runs += [(begin + 8 * i + bit, begin + 8 * i + bit + 1)
                          for i, byte in enumerate(bits) for bit in range(8) if byte >> bit & 1]

    def is_done(self, offset):
        """Was the offset done when this was committed?"""
        return offset < self.offset or any(begin <= offset < end for begin, end in self.runs)
