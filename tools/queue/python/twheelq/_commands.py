# SPDX-License-Identifier: LGPL-2.1-or-later
"""The commands: what is sent, and what the reply becomes."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from ._protocol import DeadlineSoon, NotFound, Refused, Reply, key_name, tube_name

T = TypeVar("T")
Time = float | datetime.timedelta
STATES = ("ready", "reserved", "delayed", "buried")
REASON_MOST = 1024


@dataclass(frozen=True)
class Job:
    """A job that was reserved or peeked at."""

    id: int
    body: bytes


@dataclass(frozen=True)
class Put:
    """What a put with a key came to: @what is INSERTED, REPLACED, KEPT or RESERVED. If it is
    RESERVED, the job is with a worker, and nothing was changed."""

    id: int
    what: str


@dataclass(frozen=True)
class Failure:
    """What a failed attempt came to: so many have failed, and the seconds until the next one;
    or the job is dead."""

    dead: bool
    attempts: int = 0
    delay: float = 0.0


@dataclass(frozen=True)
class Page:
    """Ids of jobs with the unix time at which each is due (0: none), and the cursor of the next
    page; None: there is none."""

    jobs: list[tuple[int, float]]
    next: str | None


@dataclass(frozen=True)
class Command(Generic[T]):
    """What is sent, and what becomes of the reply. @wait: the daemon may wait so many seconds
    before it answers; None: without end."""

    request: bytes
    parse: Callable[[Reply], T]
    wait: float | None = 0.0


# --- arguments ------------------------------------------------------------------------------

def _seconds(time: Time) -> float:
    seconds = time.total_seconds() if isinstance(time, datetime.timedelta) else float(time)
    if not 0 <= seconds < 2 ** 32:
        raise ValueError(f"{time!r} is not a time from 0 to 4294967295 seconds")
    return seconds


def _time(time: Time) -> str:
    # The product may be a little above the number that was meant.
    return f"{math.ceil(round(_seconds(time) * 1000, 6))}ms"


def _number(value: int, most: int = 2 ** 32 - 1) -> int:
    if not 0 <= int(value) <= most:
        raise ValueError(f"{value!r} is not a number from 0 to {most}")
    return int(value)


def _id(job: int | Job) -> int:
    return _number(job.id if isinstance(job, Job) else job, 2 ** 64 - 1)


def _unix_ms(when: float | datetime.datetime) -> int:
    if isinstance(when, datetime.datetime):
        when = when.timestamp()
    return _number(math.ceil(round(when * 1000, 3)), 2 ** 53)


def _line(*words: object, body: bytes | None = None) -> bytes:
    line = " ".join(map(str, words)).encode()
    if body is None:
        return line + b"\r\n"
    if not isinstance(body, (bytes, bytearray, memoryview)):
        raise TypeError(f"a body is bytes, not {type(body).__name__}")
    return b"%s %d\r\n%s\r\n" % (line, len(body), bytes(body))


# --- replies --------------------------------------------------------------------------------

def _error(reply: Reply) -> Exception:
    word = reply.words[0] if reply.words else ""
    if word in ("NOT_FOUND", "NOT_IGNORED"):
        return NotFound(word)
    if word == "DEADLINE_SOON":
        return DeadlineSoon(word)
    return Refused(" ".join(reply.words))


def _expect(reply: Reply, *words: str) -> tuple[str, ...]:
    if not reply.words or reply.words[0] not in words:
        raise _error(reply)
    return reply.words


def _none(word: str) -> Callable[[Reply], None]:
    def parse(reply: Reply) -> None:
        _expect(reply, word)
    return parse


def _count(word: str) -> Callable[[Reply], int]:
    return lambda reply: int(_expect(reply, word)[1])


def _parse_job(reply: Reply) -> Job:
    return Job(int(_expect(reply, "RESERVED", "FOUND")[1]), reply.body)


def _parse_reserved(reply: Reply) -> Job | None:
    return None if reply.words[:1] == ("TIMED_OUT",) else _parse_job(reply)


def _parse_peeked(reply: Reply) -> Job | None:
    return None if reply.words[:1] == ("NOT_FOUND",) else _parse_job(reply)


def _parse_buried(reply: Reply) -> int:
    if reply.words[:1] == ("BURIED",):
        raise Refused(f"out of memory: job {reply.words[1]} is buried")
    return int(_expect(reply, "INSERTED")[1])


def _parse_unique(reply: Reply) -> Put:
    what, number = _expect(reply, "INSERTED", "REPLACED", "KEPT", "RESERVED")[:2]
    return Put(int(number), what)


def _parse_failure(reply: Reply) -> Failure:
    words = _expect(reply, "RETRY", "DEAD")
    if words[0] == "DEAD":
        return Failure(True)
    return Failure(False, int(words[1]), int(words[2]) / 1000)


def _pairs(lines: list[str]) -> dict[str, str]:
    pairs = (line.partition(":") for line in lines if ":" in line)
    return {key.strip("- "): value.strip().strip('"') for key, _, value in pairs}


def _parse_stats(reply: Reply) -> dict[str, str]:
    _expect(reply, "OK")
    return _pairs(reply.body.decode().splitlines())


def _parse_list(reply: Reply) -> list[str]:
    _expect(reply, "OK")
    return [line[2:].strip('"') for line in reply.body.decode().splitlines()[1:]]


def _parse_schedules(reply: Reply) -> list[dict[str, str]]:
    _expect(reply, "OK")
    entries: list[list[str]] = []
    for line in reply.body.decode().splitlines()[1:]:
        if line.startswith("- "):
            entries.append([])
        entries[-1].append(line)
    return [_pairs(entry) for entry in entries]


def _parse_page(reply: Reply) -> Page:
    _expect(reply, "OK")
    pairs = dict(line.split(": ") for line in reply.body.decode().splitlines() if ": " in line)
    following = pairs.pop("next", None)
    return Page([(int(job), int(ms) / 1000) for job, ms in pairs.items()], following)


# --- the commands ---------------------------------------------------------------------------

def put(body: bytes, pri: int, delay: Time, ttr: Time) -> Command[int]:
    return Command(_line("put", _number(pri), _time(delay), _time(ttr), body=body), _parse_buried)


def put_at(body: bytes, when: float | datetime.datetime, pri: int, ttr: Time) -> Command[int]:
    return Command(_line("put-at", _number(pri), _unix_ms(when), _time(ttr), body=body),
                   _parse_buried)


def keyed(word: str, key: str, body: bytes, pri: int, delay: Time, ttr: Time) -> Command[Put]:
    return Command(_line(word, key_name(key), _number(pri), _time(delay), _time(ttr), body=body),
                   _parse_unique)


def every(name: str, interval: Time, body: bytes, first: float | datetime.datetime, pri: int,
          ttr: Time) -> Command[None]:
    return Command(_line("every", key_name(name), _number(pri), _time(interval), _unix_ms(first),
                         _time(ttr), body=body), _none("EVERY"))


def every_stop(name: str) -> Command[None]:
    return Command(_line("every-stop", key_name(name)), _none("STOPPED"))


def list_every(after: str | None) -> Command[list[dict[str, str]]]:
    return Command(_line("list-every", *([key_name(after)] if after else [])), _parse_schedules)


def reserve(timeout: Time | None) -> Command[Job | None]:
    if timeout is None:
        return Command(_line("reserve"), _parse_reserved, None)
    return Command(_line("reserve-with-timeout", _time(timeout)), _parse_reserved,
                   _seconds(timeout))


def reserve_job(job: int | Job) -> Command[Job]:
    return Command(_line("reserve-job", _id(job)), _parse_job)


def of_job(word: str, answer: str, job: int | Job, *words: object) -> Command[None]:
    return Command(_line(word, _id(job), *words), _none(answer))


def release(job: int | Job, pri: int, delay: Time) -> Command[None]:
    return of_job("release", "RELEASED", job, _number(pri), _time(delay))


def bury(job: int | Job, pri: int) -> Command[None]:
    return of_job("bury", "BURIED", job, _number(pri))


def reschedule(job: int | Job, delay: Time) -> Command[None]:
    return of_job("reschedule", "RESCHEDULED", job, _time(delay))


def fail(job: int | Job, reason: str) -> Command[Failure]:
    return Command(_line("fail", _id(job), body=reason.encode("utf-8", "replace")[:REASON_MOST]),
                   _parse_failure)


def use(tube: str) -> Command[None]:
    return Command(_line("use", tube_name(tube)), _none("USING"))


def watching(word: str, tube: str) -> Command[int]:
    return Command(_line(word, tube_name(tube)), _count("WATCHING"))


def peek(job: int | Job) -> Command[Job | None]:
    return Command(_line("peek", _id(job)), _parse_peeked)


def peek_next(state: str) -> Command[Job | None]:
    if state not in ("ready", "delayed", "buried"):
        raise ValueError(f"{state!r} is not ready, delayed or buried")
    return Command(_line(f"peek-{state}"), _parse_peeked)


def kick(most: int) -> Command[int]:
    return Command(_line("kick", _number(most)), _count("KICKED"))


def pause(tube: str, time: Time) -> Command[None]:
    return Command(_line("pause-tube", tube_name(tube), _time(time)), _none("PAUSED"))


def policy(tube: str, attempts: int, base: Time, factor: float, cap: Time, jitter: int,
           dead_tube: str | None) -> Command[None]:
    return Command(_line("policy", tube_name(tube), _number(attempts), _time(base),
                         f"{factor:g}", _time(cap), _number(jitter, 100),
                         *([tube_name(dead_tube)] if dead_tube else [])), _none("POLICY"))


def policy_default(tube: str) -> Command[None]:
    return Command(_line("policy", tube_name(tube), "default"), _none("POLICY"))


def purge(tube: str, state: str) -> Command[int]:
    if state not in ("ready", "delayed", "buried"):
        raise ValueError(f"{state!r} is not ready, delayed or buried")
    return Command(_line("purge", tube_name(tube), state), _count("PURGED"), None)


def list_jobs(tube: str, state: str, cursor: str, most: int) -> Command[Page]:
    if state not in STATES:
        raise ValueError(f"{state!r} is not one of {', '.join(STATES)}")
    if not cursor.isascii() or not cursor.isprintable() or " " in cursor or not cursor:
        raise ValueError(f"{cursor!r} is not a cursor")
    return Command(_line("list-jobs", tube_name(tube), state, cursor, _number(most)), _parse_page)


def stats(*words: object) -> Command[dict[str, str]]:
    return Command(_line(*words), _parse_stats)


def stats_job(job: int | Job) -> Command[dict[str, str]]:
    return stats("stats-job", _id(job))


def stats_tube(tube: str) -> Command[dict[str, str]]:
    return stats("stats-tube", tube_name(tube))


def list_tubes() -> Command[list[str]]:
    return Command(_line("list-tubes"), _parse_list)
