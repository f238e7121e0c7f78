# SPDX-License-Identifier: GPL-2.0
"""Conversations with a daemon, as tables.

    a put 0 0 60 5 | hello	client a sends a line, and a body
    < INSERTED $j		this must be the reply; the first time, $j is set
    b reserve
    < ...			no reply for a moment
    a release $j 0 0
    < RELEASED
    b< RESERVED $j 5 | hello	the reply to client b
    a stats-job $j
    < OK state=reserved pri=0	keys of YAML
    a list-tubes-watched
    < OK [$t]			a list, in any order
    mark			remember the time
    a reserve-with-timeout 1
    < after 1 TIMED_OUT		not before 1 second after the mark
    sleep 1.1
    < before 3 RESERVED $j 1	if another reply comes 3 seconds after the mark or later, begin
				again, with more time
    b stats-job $j
    < until OK state=ready	repeat the command until this is the reply

A client connects when it is first named. It uses $t, and watches only $t; a client with a
capital letter does neither. $t, $u and $v are tubes that no other conversation has. "*" is any
word, "A / B" either of the two. "4~" are 4 seconds at first, and more each time that it begins
again. A line that ends with "\\" continues in the next one.
"""

import itertools
import re
import time

from client import dictionary

numbers = itertools.count(1)
MOMENT = 0.15
# The seconds that "~" adds: at first, and each time that it begins again.
MORE = (0, 2, 6, 14, 30, 62)


class TooLate(AssertionError):
    """The reply may be wrong only because this machine was slow."""


def words_match(pattern, line, variables):
    """Does a line have these words? Sets the variables that are unknown."""
    expected, seen = pattern.split(), line.split()
    if len(expected) != len(seen):
        return False
    found = {}
    for one, other in zip(expected, seen):
        if one.startswith("$") and one[1:] not in variables:
            found[one[1:]] = other
        elif one != "*" and expand(one, variables) != other:
            return False
    variables.update(found)
    return True


def expand(text, variables):
    """Replace $names by their values; a name without a value stays."""
    return re.sub(r"\$([a-z]\d*)", lambda name: variables.get(name[1], name[0]), text)


class Talk:
    """A conversation."""

    def __init__(self, daemon, text, patience, more):
        self.daemon = daemon
        self.patience = patience
        self.text = re.sub(r"\b(\d+)~", lambda number: str(int(number[1]) + more),
                           text.replace("\\\n", " "))
        number = next(numbers)
        self.variables = {name: f"{name}{number}" for name in "tuv"}
        self.clients = {}
        self.last = None
        self.mark = None

    def client(self, name):
        """The client with this name; connects it."""
        if name not in self.clients:
            client = self.clients[name] = self.daemon.client(self.patience)
            if name.islower():
                tube = self.variables["t"]
                for command in (f"use {tube}", f"watch {tube}", "ignore default"):
                    client.ask(command)
        return self.clients[name]

    def expect(self, client, pattern, body):
        """The next reply must match."""
        if pattern == "...":
            if not client.silent(MOMENT):
                raise AssertionError(f"{self.last}: the reply {client.reply().line!r} came at once")
            return
        if pattern.startswith("before "):
            self.expect_before(client, pattern, body)
            return
        if pattern.startswith("until "):
            self.expect_at_last(client, pattern.removeprefix("until "))
            return
        reply = client.reply()
        if pattern.startswith("after "):
            _, seconds, pattern = pattern.split(" ", 2)
            took = time.monotonic() - self.mark
            if took < float(seconds):
                raise AssertionError(f"{self.last}: {reply.line} came early, after {took} s")
        self.check(reply, pattern, body)

    def expect_before(self, client, pattern, body):
        """The next reply must match, unless it is late."""
        _, seconds, pattern = pattern.split(" ", 2)
        try:
            self.expect(client, pattern, body)
        except AssertionError as error:
            if time.monotonic() - self.mark >= float(seconds):
                raise TooLate(str(error)) from error
            raise

    def expect_at_last(self, client, pattern):
        """Repeat the last command until the reply matches."""
        end = time.monotonic() + self.patience
        while not self.matches(reply := client.reply(), pattern):
            if time.monotonic() > end:
                self.check(reply, pattern, None)
            time.sleep(0.02)
            client.tell(self.last.partition(" ")[2])

    def check(self, reply, pattern, body):
        """Fail unless a reply matches."""
        if not any(self.matches(reply, one) for one in pattern.split(" / ")):
            seen = reply.line if reply.body is None else f"{reply.line} | {reply.body[:600]!r}"
            raise AssertionError(f"{self.last}: {seen}, expected: "
                                 f"{expand(pattern, self.variables)}")
        if body is not None and reply.body != body:
            raise AssertionError(f"{self.last}: the body is {reply.body[:200]!r}, "
                                 f"expected: {body!r}")

    def matches(self, reply, pattern):
        """Does a reply match a pattern?"""
        word, _, rest = pattern.partition(" ")
        if word == "OK" and rest.startswith("["):
            names = expand(rest.strip("[]"), self.variables).split()
            lines = (reply.body or b"").decode().splitlines()
            return lines[:1] == ["---"] and sorted(lines[1:]) == sorted(f"- {n}" for n in names)
        if word == "OK":
            if reply.body is None:
                return False
            pairs = dictionary(reply.body)
            expected = dict(pair.split("=") for pair in expand(rest, self.variables).split())
            return all(pairs.get(key) == value for key, value in expected.items())
        return words_match(pattern, reply.line, self.variables)

    def step(self, line):
        """Run a line of the table."""
        line, *body = re.split(r" \|(?: |$)", line, maxsplit=1)
        body = body[0].encode() if body else None
        who, _, what = line.partition(" ")
        if who == "sleep":
            time.sleep(float(what))
        elif who == "mark":
            self.mark = time.monotonic()
        elif who.endswith("<"):
            name = who[:-1] or self.last[0]
            self.expect(self.client(name), what, body)
        else:
            client = self.client(who)
            self.last = f"{who} {expand(what, self.variables)}"
            client.tell(expand(what, self.variables), body)

    def run(self):
        """Run all lines."""
        try:
            for line in self.text.strip().splitlines():
                if line.strip():
                    self.step(line.strip())
        finally:
            for client in self.clients.values():
                client.close()


def talk(daemon, text, patience=300.0):
    """Have a conversation. Raises AssertionError if a reply does not match, and TimeoutError if
    none comes for @patience seconds."""
    for more in MORE:
        try:
            return Talk(daemon, text, patience, more).run()
        except TooLate as error:
            late = error
    raise late
