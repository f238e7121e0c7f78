# SPDX-License-Identifier: LGPL-2.1-or-later
"""The protocol without a connection: errors, and replies taken from the bytes that have come."""

from __future__ import annotations

import re
from dataclasses import dataclass

# The replies with a body, and the index of the word that has its length.
_WITH_BODY = {"RESERVED": 2, "FOUND": 2, "OK": 1}
_LINE_MOST = 1024
_NAME = re.compile(r"[A-Za-z0-9+/;.$_()][A-Za-z0-9+/;.$_()-]{0,199}")
_KEY = re.compile(r"[A-Za-z0-9+/;.$_():@,=-]{1,200}")


class TwheelqError(Exception):
    """Any error that this package raises, except those of arguments."""


class NotFound(TwheelqError):
    """There is no such job, tube or schedule, or the job is not in the state that it needs."""


class Refused(TwheelqError):
    """The daemon has refused a command; the text is its reply, such as OUT_OF_MEMORY."""


class DeadlineSoon(TwheelqError):
    """The TTR of a job that this client has reserved ends within a second."""


class ConnectionLost(TwheelqError, ConnectionError):
    """The connection has ended, or is no longer in step. Whether a command that was sent took
    effect is not known."""


@dataclass(frozen=True)
class Reply:
    """The words of a line, and the body that follows it, if any."""

    words: tuple[str, ...]
    body: bytes = b""


class Parser:
    """Takes replies from bytes, in whatever pieces they come."""

    def __init__(self) -> None:
        self._data = bytearray()

    @property
    def empty(self) -> bool:
        """Whether there are no bytes that belong to no reply yet."""
        return not self._data

    def feed(self, data: bytes) -> None:
        """Bytes have come."""
        self._data += data

    def take(self) -> Reply | None:
        """The next reply; None if it is incomplete. Raises ConnectionLost if it is none."""
        end = self._data.find(b"\r\n")
        if end < 0:
            if len(self._data) > _LINE_MOST:
                raise ConnectionLost("the answer is not one of twheelq")
            return None
        words = tuple(self._data[:end].decode("latin-1").split())
        at = _WITH_BODY.get(words[0] if words else "", len(words))
        if at >= len(words):
            del self._data[:end + 2]
            return Reply(words)
        if not words[at].isdigit():
            raise ConnectionLost("the answer is not one of twheelq")
        body, whole = end + 2, end + 2 + int(words[at])
        if len(self._data) < whole + 2:
            return None
        if self._data[whole:whole + 2] != b"\r\n":
            raise ConnectionLost("a body has another length than was said")
        reply = Reply(words, bytes(self._data[body:whole]))
        del self._data[:whole + 2]
        return reply


def tube_name(name: str) -> str:
    """Raises ValueError if it is not the name of a tube."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not the name of a tube: 1 to 200 letters, digits and "
                         "bytes of -+/;.$_(), without a - in front")
    return name


def key_name(key: str) -> str:
    """Raises ValueError if it is not a key, or the name of a schedule."""
    if not _KEY.fullmatch(key):
        raise ValueError(f"{key!r} is not a key: 1 to 200 letters, digits and bytes of "
                         "-+/;.$_():@,=")
    return key
