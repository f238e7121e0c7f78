#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The Python client of twheelq, with the daemon and with servers that misbehave."""

import paths  # pylint: disable=unused-import,wrong-import-order
import asyncio
import concurrent.futures
import datetime
import os
import socket
import sys
import tempfile
import threading
import time

from daemon import HERE, Twheelq
from tap import Suite, equal, holds, wait_for

sys.path.insert(0, os.path.join(HERE, "..", "..", "python"))
import twheelq  # pylint: disable=wrong-import-position

suite = Suite(seconds=900)


class Waiting:
    """A Client with the methods of an AsyncClient."""

    def __init__(self, address):
        self.address = address

    async def __aenter__(self):
        self.client = twheelq.Client(self.address)
        return self

    async def __aexit__(self, *_):
        self.client.close()

    def __getattr__(self, name):
        async def method(*args, **options):
            return getattr(self.client, name)(*args, **options)
        return method


def fails(error, function, *args, **options):
    """The call raises this error; returns it."""
    try:
        function(*args, **options)
    except error as raised:
        return raised
    raise AssertionError(f"{function.__name__}{args} raised no {error.__name__}")


async def afails(error, awaitable):
    """The same for what is awaited."""
    try:
        await awaitable
    except error as raised:
        return raised
    raise AssertionError(f"no {error.__name__} was raised")


# --- all methods --------------------------------------------------------------------------

async def producer_and_worker(client):
    """Put, reserve, and what a worker says of a job."""
    await client.use("t")
    equal((await client.watch("t"), await client.ignore("default")), (2, 1))
    await afails(twheelq.NotFound, client.ignore("t"))
    first = await client.put(b"first", pri=5)
    second = await client.put(b"\r\n\r\nOK 5\r\n", pri=7, ttr=datetime.timedelta(minutes=2))
    equal(await client.peek_next("ready"), twheelq.Job(first, b"first"))
    job = await client.reserve()
    equal(job, twheelq.Job(first, b"first"))
    await client.touch(job)
    await client.release(job, pri=9, delay=3600)
    equal((await client.peek_next("delayed")).id, first)
    await client.reschedule(first, 0)
    job = await client.reserve(0)
    equal(job, twheelq.Job(second, b"\r\n\r\nOK 5\r\n"))
    await client.bury(job)
    equal((await client.peek_next("buried")).id, second)
    equal(await client.kick(10), 1)
    await client.delete(second)
    await afails(twheelq.NotFound, client.delete(second))
    equal(await client.peek(second), None)
    equal((await client.reserve_job(first)).id, first)
    await client.delete(first)
    equal(await client.reserve(0), None)
    body = os.urandom(65535)
    large = await client.put(body)
    equal((await client.reserve(1000)).body, body)
    await client.delete(large)
    await afails(twheelq.Refused, client.put(body + b"x"))


async def retries(client):
    """A policy, failures, and a dead job."""
    await client.policy("t", 2, base=0.001, factor=1.5, cap=1, jitter=0)
    job = await client.put(b"x")
    await client.reserve()
    failure = await client.fail(job, "first: ä\n" + "x" * 2000)
    equal((failure.dead, failure.attempts, failure.delay), (False, 1, 0.001))
    await client.reserve()
    equal(await client.fail(job), twheelq.Failure(True))
    await afails(twheelq.NotFound, client.fail(job))
    equal((await client.stats_job(job))["tube"], "t.dead")
    await client.kick_job(job)
    equal((await client.stats_job(job))["attempts"], "0")
    await client.delete(job)
    await client.policy_default("t")


async def keys_and_schedules(client):
    """put_unique, keep_unique, put_at and every."""
    put = await client.put_unique("user:1", b"a", delay=3600)
    equal(put.what, "INSERTED")
    equal(await client.put_unique("user:1", b"b", delay=3600), twheelq.Put(put.id, "REPLACED"))
    equal(await client.keep_unique("user:1", b"c"), twheelq.Put(put.id, "KEPT"))
    await client.kick_job(put.id)
    equal((await client.reserve()).body, b"b")
    equal(await client.keep_unique("user:1", b"c"), twheelq.Put(put.id, "RESERVED"))
    await client.delete(put.id)
    when = datetime.datetime.now() + datetime.timedelta(hours=1)
    job = await client.put_at(b"x", when)
    page = await client.list_jobs("t", "delayed")
    equal([number for number, _ in page.jobs], [job])
    holds(abs(page.jobs[0][1] - when.timestamp()) < 0.002, page)
    equal((await client.list_jobs("t", "delayed", page.next)).jobs, [])
    equal(await client.purge("t", "delayed"), 1)
    await client.every("nightly", datetime.timedelta(days=1), b"x", first=1e9, ttr=5)
    await client.every("weekly:1", 604800, b"x")
    schedules = await client.list_every()
    equal([(one["name"], one["interval-ms"]) for one in schedules],
          [("nightly", "86400000"), ("weekly:1", "604800000")])
    equal([one["name"] for one in await client.list_every("nightly")], ["weekly:1"])
    await client.every_stop("nightly")
    await client.every_stop("weekly:1")
    await afails(twheelq.NotFound, client.every_stop("nightly"))


async def operators(client):
    """Stats, and lists."""
    await client.pause_tube("t", 0)
    holds("t" in await client.list_tubes(), "list-tubes")
    equal((await client.stats_tube("t"))["current-jobs-ready"], "0")
    holds(int((await client.stats())["cmd-put"]) > 0, "stats")
    await afails(twheelq.NotFound, client.stats_tube("nobody"))
    await afails(twheelq.NotFound, client.list_jobs("nobody", "ready"))


async def all_methods(client):
    """Every method with its results."""
    async with client:
        await producer_and_worker(client)
        await retries(client)
        await keys_and_schedules(client)
        await operators(client)


for kind in Waiting, twheelq.AsyncClient:
    for tcp in False, True:
        def each_method(kind=kind, tcp=tcp):
            with Twheelq(tcp=tcp) as daemon:
                asyncio.run(all_methods(kind(daemon.start().address)))
        suite.add(f"each_method_of_{'Async' * (kind is not Waiting)}Client_does_what_it_says_by_"
                  + ("tcp" if tcp else "unix"), each_method, together=True)


@suite.together
def a_delay_is_not_over_early():
    with Twheelq() as daemon, twheelq.Client(daemon.start().address) as client:
        for delay in 0.0001, 0.0305, datetime.timedelta(milliseconds=70.2):
            seconds = delay.total_seconds() if hasattr(delay, "total_seconds") else delay
            begin = time.monotonic()
            client.put(b"", delay=delay)
            with client.work():
                holds(time.monotonic() - begin >= seconds, f"{delay} was over early")


@suite.together
def work_deletes_a_job_or_fails_it():
    with Twheelq() as daemon, twheelq.Client(daemon.start().address) as client:
        client.policy("default", 2, base=0.001, jitter=0)
        job = client.put(b"x")
        for reason in "first", "last":
            def attempt(reason=reason):
                with client.work() as taken:
                    equal(taken.id, job)
                    raise KeyError(reason)
            fails(KeyError, attempt)
        equal(client.stats_job(job)["reason"], "KeyError: 'last'")
        equal(client.stats_job(job)["tube"], "default.dead")
        client.put(b"y")
        with client.work(0) as taken:
            equal(taken.body, b"y")
        equal(client.peek(taken), None)
        with client.work(0) as taken:
            equal(taken, None)


# --- bad arguments ------------------------------------------------------------------------

BAD = [
    (ValueError, "use", "two words"), (ValueError, "use", ""), (ValueError, "use", "-x"),
    (ValueError, "use", "x" * 201), (ValueError, "watch", "a\r\nquit"), (ValueError, "use", "ä"),
    (ValueError, "put_unique", "a b", b""), (ValueError, "keep_unique", "", b""),
    (ValueError, "every", "a\r\n", 1, b""), (TypeError, "put", "text"), (TypeError, "put", 7),
    (ValueError, "delete", -1), (ValueError, "delete", 1 << 64), (ValueError, "kick", -1),
    (ValueError, "reserve", -1), (ValueError, "reserve", float("nan")),
    (ValueError, "reserve", float("inf")), (ValueError, "peek_next", "reserved"),
    (ValueError, "purge", "t", "reserved"), (ValueError, "list_jobs", "t", "dead"),
    (ValueError, "list_jobs", "t", "ready", "1 2"), (ValueError, "list_jobs", "t", "ready", ""),
]


class Server:
    """Listens on a socket; @script is called with each connection, in a thread."""

    def __init__(self, script):
        self.directory = tempfile.TemporaryDirectory()
        self.address = "unix:" + os.path.join(self.directory.name, "socket")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.address.removeprefix("unix:"))
        self.listener.listen()
        self.script = script
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        """Until the listener is closed."""
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection:
                self.script(connection)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()
        self.directory.cleanup()


@suite.together
def bad_arguments_are_refused_before_anything_is_sent():
    seen = []
    with Server(lambda connection: seen.append(connection.recv(100))) as server:
        with twheelq.Client(server.address) as client:
            for error, name, *args in BAD:
                holds(str(fails(error, getattr(client, name), *args)), f"{name}{args}: no text")
            fails(ValueError, client.put, b"", pri=1 << 32)
            fails(ValueError, client.put, b"", delay=1 << 32)
    equal(seen, [b""])
    for address in "nowhere", "host:", "host:x", "":
        fails(ValueError, twheelq.Client, address)
        fails(ValueError, twheelq.AsyncClient, address)


# --- servers that misbehave ---------------------------------------------------------------

def answers(*replies):
    """A script: take a command, send this, and so on; then wait until the client has gone."""
    def script(connection):
        for reply in replies:
            if not connection.recv(100):
                return
            connection.sendall(reply)
        while connection.recv(100):
            pass
    return script


def ends_with(reply):
    """A script that sends this and closes."""
    def script(connection):
        connection.recv(100)
        connection.sendall(reply)
    return script


HALVES = [b"", b"RES", b"RESERVED 1 5", b"RESERVED 1 5\r\n", b"RESERVED 1 5\r\nhel",
          b"RESERVED 1 5\r\nhello", b"RESERVED 1 5\r\nhello\r"]
WRONG = [b"RESERVED 1 5\r\nhello world\r\n", b"RESERVED 1 -5\r\n", b"OK x\r\n",
         b"RESERVED 1 5\r\nhello\r\nDELETED\r\n", b"x" * 5000]


async def lost_by_both(address):
    """A reserve with a client of each kind ends its connection."""
    for client in Waiting(address), twheelq.AsyncClient(address):
        async with client:
            await afails(twheelq.ConnectionLost, client.reserve())
            # It is never used again: the rest of an answer would be taken for the next one.
            await afails(twheelq.ConnectionLost, client.stats())


@suite.together
def an_answer_that_is_cut_off_ends_the_connection():
    for half in HALVES:
        with Server(ends_with(half)) as server:
            asyncio.run(lost_by_both(server.address))


@suite.together
def an_answer_of_something_else_ends_the_connection():
    for wrong in WRONG:
        with Server(answers(wrong)) as server:
            asyncio.run(lost_by_both(server.address))


@suite.together
def an_answer_that_takes_too_long_ends_the_connection():
    async def asynchronous(address):
        async with twheelq.AsyncClient(address, 0.05) as client:
            await afails(twheelq.ConnectionLost, client.delete(1))
            await afails(twheelq.ConnectionLost, client.delete(1))

    with Server(answers()) as server:
        with twheelq.Client(server.address, 0.05) as client:
            fails(twheelq.ConnectionLost, client.reserve, 0.1)
            fails(twheelq.ConnectionLost, client.delete, 1)
        asyncio.run(asynchronous(server.address))


@suite.together
def an_answer_may_come_in_pieces():
    def script(connection):
        connection.recv(100)
        for byte in b"RESERVED 1 7\r\na\r\nb\r\nc\r\n":
            connection.sendall(bytes([byte]))
        while connection.recv(100):
            pass

    async def reserve(address):
        for client in Waiting(address), twheelq.AsyncClient(address):
            async with client:
                equal(await client.reserve(), twheelq.Job(1, b"a\r\nb\r\nc"))

    with Server(script) as server:
        asyncio.run(reserve(server.address))


@suite.together
def an_interrupted_wait_ends_the_connection():
    class Interrupted(BaseException):
        """As KeyboardInterrupt."""

    class Parser(twheelq._protocol.Parser):  # pylint: disable=protected-access
        """Interrupted when half of the answer is there."""
        def take(self):
            if not self.empty:
                raise Interrupted
            return super().take()

    with Server(answers(b"RESERVED 1 5\r\nhel")) as server:
        with twheelq.Client(server.address) as client:
            client._parser = Parser()  # pylint: disable=protected-access
            fails(Interrupted, client.reserve)
            fails((twheelq.ConnectionLost, Interrupted), client.reserve)
            fails(twheelq.ConnectionLost, client.run, twheelq.Command(b"", None))


# --- others that use the same client ------------------------------------------------------

def until_reserving(daemon):
    """Wait until a client waits in a reserve."""
    with daemon.client() as client:
        wait_for(lambda: client.stats()["current-waiting"] == "1", "nobody waits")


@suite.together
def a_second_thread_or_task_is_refused_and_the_first_goes_on():
    async def asynchronous(daemon):
        async with twheelq.AsyncClient(daemon.address) as client:
            waiting = asyncio.create_task(client.reserve())
            await asyncio.to_thread(until_reserving, daemon)
            await afails(RuntimeError, client.stats())
            with twheelq.Client(daemon.address) as other:
                job = other.put(b"x")
            equal((await waiting).id, job)
            await client.delete(job)

    with Twheelq() as daemon, twheelq.Client(daemon.start().address) as client:
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(client.reserve)
            until_reserving(daemon)
            fails(RuntimeError, client.stats)
            with twheelq.Client(daemon.address) as other:
                job = other.put(b"x")
            equal(waiting.result().id, job)
        client.delete(job)
        asyncio.run(asynchronous(daemon))


@suite.together
def a_close_by_another_thread_ends_a_wait():
    with Twheelq() as daemon, twheelq.Client(daemon.start().address) as client:
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(client.reserve)
            until_reserving(daemon)
            client.close()
            holds(isinstance(waiting.exception(), twheelq.ConnectionLost), waiting.exception())


@suite.together
def a_cancelled_reserve_takes_no_job_with_it():
    async def run(daemon):
        async with twheelq.AsyncClient(daemon.address) as client, \
                twheelq.AsyncClient(daemon.address) as other:
            waiting = asyncio.create_task(client.reserve())
            await asyncio.to_thread(until_reserving, daemon)
            # The answer is on its way when the task is cancelled.
            job = await other.put(b"x")
            waiting.cancel()
            await afails(asyncio.CancelledError, waiting)
            await afails(twheelq.ConnectionLost, client.reserve())
            equal((await other.reserve()).id, job)

    with Twheelq() as daemon:
        asyncio.run(run(daemon.start()))


@suite.together
def a_daemon_that_dies_is_told():
    with Twheelq() as daemon, twheelq.Client(daemon.start().address) as client:
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(client.reserve)
            until_reserving(daemon)
            daemon.kill()
            holds(isinstance(waiting.exception(), twheelq.ConnectionLost), waiting.exception())
    fails(OSError, twheelq.Client, daemon.address)


JOBS, WORKERS = 1000, 50


@suite.test
def fifty_workers_under_asyncio_end_each_of_1000_jobs_once():
    ended, failures = [], []

    async def worker(address):
        async with twheelq.AsyncClient(address) as client:
            while len(ended) < JOBS:
                try:
                    async with client.work(timeout=0.1) as job:
                        if job and job.id % 5 == 0 and job.id not in failures:
                            failures.append(job.id)
                            raise ValueError("once")
                    if job:
                        ended.append(job.id)
                except ValueError:
                    pass

    async def run(address):
        async with twheelq.AsyncClient(address) as client:
            await client.policy("default", 3, base=0.01, jitter=0)
            jobs = [await client.put(b"%d" % n, delay=n % 10 / 100) for n in range(JOBS)]
            await asyncio.gather(*(worker(address) for _ in range(WORKERS)))
            stats = await client.stats()
            return jobs, stats

    with Twheelq(sync="50ms") as daemon:
        jobs, stats = asyncio.run(run(daemon.start().address))
    equal(sorted(ended), sorted(jobs))
    equal((stats["retries"], stats["dead"]), (str(len(failures)), "0"))


if __name__ == "__main__":
    suite.main()
