# SPDX-License-Identifier: GPL-2.0
"""A conversation with a daemon, by PyPI's greenstalk; or workers of a tube.

Usage: PYTHONPATH=DIR talk.py greenstalk HOST PORT [TUBE NR]

talk.js tells what a worker does; here NR of them share a process, and one that crashes closes
its connection and makes another.
"""

import sys
import threading
import time

import greenstalk


def holds(condition, what):
    """An assertion that is not left out."""
    if not condition:
        raise AssertionError(what)


def is_job(client, wanted, body):
    """The next job is this one."""
    job = client.reserve(100)
    holds(job.id == wanted, f"job {job.id}, expected: {wanted}")
    holds(job.body == body, f"the body of {job.id} is another one")
    return job


def finds_nothing(function, *args):
    """The call raises NotFoundError."""
    try:
        function(*args)
    except greenstalk.NotFoundError:
        return
    raise AssertionError(f"{function.__name__} found {args}")


def converse_order(client):
    """Order, release, bury and kick."""
    first = client.put(b"first", 10, 0, 60)
    second = client.put(b"second", 5, 0, 60)
    job = is_job(client, second, b"second")
    client.touch(job)
    client.release(job, 20, 0)
    job = is_job(client, first, b"first")
    client.bury(job, 15)
    holds(client.stats_job(first)["state"] == "buried", "not buried")
    holds(client.kick(10) == 1, "kick")
    client.release(is_job(client, first, b"first"), 15, 1000)
    holds(client.peek_delayed().id == first, "not delayed")
    client.kick_job(first)
    client.delete(is_job(client, first, b"first"))
    finds_nothing(client.delete, first)
    finds_nothing(client.stats_job, first)
    client.delete(is_job(client, second, b"second"))


def converse(client, tube):
    """The whole conversation."""
    client.use(tube)
    client.watch(tube)
    client.ignore("default")
    converse_order(client)
    try:
        holds(client.reserve(0) is None, "a job in an empty tube")
    except greenstalk.TimedOutError:
        pass
    start = time.monotonic()
    late = client.put(b"late", 5, 1, 60)
    job = is_job(client, late, b"late")
    holds(time.monotonic() - start >= 1, "a delay of 1 s came early")
    client.delete(job)
    for body in bytes(range(256)), "ä€".encode() * 12000, b"\r\n\r\nOK 5\r\n":
        number = client.put(body, 5, 0, 60)
        holds(client.peek(number).body == body, "peek has another body")
        client.delete(is_job(client, number, body))
    client.pause_tube(tube, 0)
    holds(tube in client.tubes() and client.using() == tube, "list-tubes")
    holds(client.watching() == [tube], "list-tubes-watched")
    holds(client.stats()["current-connections"] >= 1, "stats")
    holds(client.stats_tube(tube)["current-jobs-ready"] == 0, "stats-tube")


def connect(host, port, **options):
    """A client whose bodies are bytes."""
    return greenstalk.Client((host, int(port)), encoding=None, **options)


def work(client):
    """One job: (whether the worker goes on, whether its connection does)."""
    job = client.reserve(100)
    if job.body == b"release":
        client.release(job, 100, 0)
    elif job.body == b"crash":
        print(f"crashed {job.id}\n", end="", flush=True)
        return True, False
    elif job.body == b"slow":
        time.sleep(0.3)
    else:
        client.delete(job)
        print(f"deleted {job.id}\n", end="", flush=True)
    return job.body != b"stop", True


def worker(host, port, tube, errors):
    """Until it has a job "stop"."""
    goes_on = True
    try:
        while goes_on:
            connected = True
            with connect(host, port, watch=tube) as client:
                while goes_on and connected:
                    goes_on, connected = work(client)
    except Exception as error:  # pylint: disable=broad-except
        errors.append(error)


def main(_, host, port, tube=None, nr=None):
    """Workers if there is a tube, else the conversation."""
    errors = []
    if tube is None:
        with connect(host, port) as client:
            converse(client, "greenstalk-1")
        return
    workers = [threading.Thread(target=worker, args=(host, port, tube, errors))
               for _ in range(int(nr))]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    if errors:
        raise errors[0]


if __name__ == "__main__":
    main(*sys.argv[1:])
