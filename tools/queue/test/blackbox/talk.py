# SPDX-License-Identifier: GPL-2.0
"""Conversations with a daemon, as tables.

    a put 0 0 60 5 | hello	client a sends a line, and a body
    < INSERTED $j		and has to get this; $j is what stands there the first time
    b reserve
    < ...			nothing comes, for a moment
    a release $j 0 0
    < RELEASED
    b< RESERVED $j 5 | hello	now it comes
    a stats-job $j
    < OK state=reserved pri=0	keys of YAML
    a list-tubes-watched
    < OK [$t]			a list, in any order
    mark			before what comes next
    a reserve-with-timeout 1
    < after 1 TIMED_OUT		not sooner after the mark than so many seconds
    sleep 1.1
    < before 3 RESERVED $j 1	if there came something else and it is later than that after
				the mark, all begins again, with more time
    b stats-job $j
    < until OK state=ready	asked again until it is so

A client is connected when it is first named. It uses $t, watches it and nothing else; with
a capital letter, it does none of these. $t, $u and $v are tubes that no other conversation
has. "*" is any word, "A / B" either of the two. "4~" are 4 seconds at first, and more each
time that it begins again. What follows "\\" at the end of a line goes on in the next one.
"""

import itertools
import re
import time

from client import dictionary

numbers = itertools.count(1)
MOMENT = 0.15
# What "~" adds, the first time and whenever it begins again.
MORE = (0, 2, 6, 14, 30, 62)


class TooLate(AssertionError):
    """What came may be wrong only because this machine took so long."""


def words_match(pattern, line, variables):
    """Does a line have these words? What it has for unknown variables is noted."""
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
    """Put values for $names; a name that has none stays."""
    return re.sub(r"\$([a-z]\d*)", lambda name: variables.get(name[1], name[0]), text)


class Talk:
    """A conversation that goes on."""

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
        """The client with a name, connected."""
        if name not in self.clients:
            client = self.clients[name] = self.daemon.client(self.patience)
            if name.islower():
                tube = self.variables["t"]
                for command in (f"use {tube}", f"watch {tube}", "ignore default"):
                    client.ask(command)
        return self.clients[name]

    def expect(self, client, pattern, body):
        """The next reply has to be this."""
        if pattern == "...":
            if not client.silent(MOMENT):
                raise AssertionError(f"{self.last}: there came {client.reply().line!r} at once")
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
        """The next reply has to be this, unless it is too late for that."""
        _, seconds, pattern = pattern.split(" ", 2)
        try:
            self.expect(client, pattern, body)
        except AssertionError as error:
            if time.monotonic() - self.mark >= float(seconds):
                raise TooLate(str(error)) from error
            raise

    def expect_at_last(self, client, pattern):
        """A reply to the last command has to be this, however often it is asked."""
        end = time.monotonic() + self.patience
        while not self.matches(reply := client.reply(), pattern):
            if time.monotonic() > end:
                self.check(reply, pattern, None)
            time.sleep(0.02)
            client.tell(self.last.partition(" ")[2])

    def check(self, reply, pattern, body):
        """A reply is this."""
        if not any(self.matches(reply, one) for one in pattern.split(" / ")):
            seen = reply.line if reply.body is None else f"{reply.line} | {reply.body[:600]!r}"
            raise AssertionError(f"{self.last}: {seen}, expected: "
                                 f"{expand(pattern, self.variables)}")
        if body is not None and reply.body != body:
            raise AssertionError(f"{self.last}: the body is {reply.body[:200]!r}, "
                                 f"expected: {body!r}")

    def matches(self, reply, pattern):
        """Is a reply what a pattern says?"""
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
        """A line of the table."""
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
        """All of it."""
        try:
            for line in self.text.strip().splitlines():
                if line.strip():
                    self.step(line.strip())
        finally:
            for client in self.clients.values():
                client.close()


def talk(daemon, text, patience=300.0):
    """Have a conversation; AssertionError where it goes otherwise, TimeoutError where a reply
    does not come for @patience seconds."""
    for more in MORE:
        try:
            return Talk(daemon, text, patience, more).run()
        except TooLate as error:
            late = error
    raise late
