#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Load: a million jobs, a herd, idle owners, slow and hostile clients.

Durations are printed, not judged. Jobs must not be early, lost, given twice or out of order, and
memory must be bounded.
"""

import paths  # pylint: disable=unused-import,wrong-import-order
import contextlib
import os
import resource
import selectors
import signal
import subprocess
import tempfile
import threading
import time

from client import Buffer, Gone, connect
from daemon import TWHEELQ, Twheelq
from process import free_port
from tap import Suite, equal, holds, note, wait_for

suite = Suite(seconds=1500)

MIB = 1 << 20
# The limit of a daemon's RssAnon with --memory 32M, the minimum: merges of the store take some
# more at times, where others use the processors (33.6 MiB were seen, 25 to 29 are usual).
MEMORY = 36 * MIB


# --- a client for many commands -----------------------------------------------------------

def pipeline(client, commands, count, each=None, ahead=20000):
    """Send @count commands of an iterator and read their replies, with at most @ahead commands
    unanswered; each(reply) is called for each."""
    sock = client.sock
    sock.setblocking(False)
    left, sent, seen, out = iter(commands), 0, 0, b""
    with selectors.DefaultSelector() as selector:
        selector.register(sock, selectors.EVENT_READ)
        while seen < count:
            if not out and sent < count and sent - seen < ahead:
                some = [data for _, data in zip(range(min(2000, count - sent)), left)]
                sent += len(some)
                out = b"".join(some)
            selector.modify(sock, selectors.EVENT_READ | (selectors.EVENT_WRITE if out else 0))
            if not (events := selector.select(300)):
                raise TimeoutError(f"{seen} of {count} replies, and no more")
            for _, event in events:
                if event & selectors.EVENT_WRITE:
                    out = out[sock.send(out):]
                if event & selectors.EVENT_READ:
                    seen += take(client, each)
    sock.setblocking(True)


def take(client, each):
    """Read the replies that have come; returns their number."""
    data = client.sock.recv(1 << 20)
    if not data:
        raise Gone("the end")
    client.buffer.add(data)
    count = 0
    # Most replies are single lines: take all of them at once.
    while (reply := client.buffer.take()) is not None:
        count += 1
        if each:
            each(reply)
    return count


def memory_note(daemon, what):
    """Print the memory of a daemon; returns its RssAnon."""
    own = daemon.memory("RssAnon")
    note(f"{what}: RssAnon {own / MIB:.1f} MiB, RSS {daemon.memory('VmRSS') / MIB:.1f} MiB, "
         f"at most {daemon.memory('VmHWM') / MIB:.1f} MiB")
    return own


class Fast(Buffer):
    """A buffer for replies without bodies."""

    def take_all(self):
        """All complete lines."""
        end = self.data.rfind(b"\r\n")
        if end < 0:
            return []
        lines = bytes(self.data[:end]).split(b"\r\n")
        del self.data[:end + 2]
        return lines


def put_many(daemon, count, line, check=b"INSERTED "):
    """Put @count jobs; line(n) is a whole command. Returns the replies."""
    sock = connect(daemon.address, None)
    fast, seen = Fast(), 0

    def write():
        for first in range(0, count, 2000):
            sock.sendall(b"".join(line(n) for n in range(first, min(first + 2000, count))))
    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    while seen < count:
        data = sock.recv(1 << 20)
        if not data:
            raise Gone(f"after {seen} of {count} puts")
        fast.add(data)
        lines = fast.take_all()
        for one in lines:
            holds(one.startswith(check), f"a put was answered with {one!r}")
        seen += len(lines)
    writer.join()
    sock.close()


# --- a million ----------------------------------------------------------------------------

@suite.test
def a_million_delayed_jobs_fit_into_64_mb():
    count = 1000000
    with Twheelq(options=["--memory", "64M"]) as daemon:
        daemon.start()
        with daemon.client() as client:
            start = time.monotonic()
            put_many(daemon, count, lambda n: b"put 5 %d 60 8\r\n%08d\r\n"
                     % (600 + n * 7919 % 100000, n))
            note(f"{count} puts in {time.monotonic() - start:.1f} s")
            equal(client.stats()["current-jobs-delayed"], str(count))
            own = memory_note(daemon, f"{count} delayed jobs")
            holds(own <= 64 * MIB, f"RssAnon is {own / MIB:.1f} MiB with --memory 64M")
            start = time.monotonic()
            daemon.stop()
            note(f"stopped in {time.monotonic() - start:.2f} s")
        start = time.monotonic()
        daemon.start()
        with daemon.client() as client:
            client.ask("peek-delayed")
            note(f"restarted in {time.monotonic() - start:.2f} s")
            equal(client.stats()["current-jobs-delayed"], str(count))
            number = client.ask("peek-delayed").body
            equal(number, b"%08d" % 0)
            own = memory_note(daemon, "after a restart")
            holds(own <= 64 * MIB, f"RssAnon is {own / MIB:.1f} MiB with --memory 64M")


@suite.test
def ready_jobs_that_do_not_fit_into_memory_come_in_order():
    count = 200000
    with Twheelq(options=["--memory", "32M"], sync="50ms") as daemon:
        daemon.start()
        put_many(daemon, count, lambda n: b"put %d 0 600 8\r\n%08d\r\n" % (n * 7919 % 10, n))
        memory_note(daemon, f"{count} ready jobs with --memory 32M")
        seen = []
        with daemon.client() as client:
            def reserved(reply):
                word, number, _ = reply.line.split()
                holds(word == "RESERVED", reply)
                seen.append((int(reply.body) * 7919 % 10, int(reply.body)))
                ids.append(int(number))
            for _ in range(count // 4000):
                ids = []
                pipeline(client, [b"reserve\r\n"] * 4000, 4000, reserved)
                pipeline(client, [b"delete %d\r\n" % number for number in ids], 4000)
            equal(len(seen), count)
            holds(seen == sorted(seen), "not by priority and then by put")
            own = memory_note(daemon, "when they were reserved and deleted")
            equal(client.stats()["current-jobs-ready"], "0")
            holds(own <= MEMORY, f"RssAnon is {own / MIB:.1f} MiB with --memory 32M")


# --- a herd -------------------------------------------------------------------------------

@suite.test
def a_herd_of_100000_at_one_instant_comes_once_each_none_early_and_in_order():
    count = 100000
    with Twheelq(sync="50ms") as daemon:
        daemon.start()
        due_ms = int(time.time() * 1000) + 8000
        put_many(daemon, count, lambda n: b"put-at %d %d 600 6\r\n%06d\r\n"
                 % (n * 31 % 7, due_ms, n))
        if time.time() * 1000 > due_ms:
            note("this machine is so slow that they were due before they were put")
        seen = []
        with daemon.client() as client:
            client.tell("reserve")
            first = client.reply()
            now_ms = time.time() * 1000
            holds(now_ms >= due_ms, f"{due_ms - now_ms} ms early")
            seen.append(first)
            pipeline(client, [b"reserve\r\n"] * (count - 1), count - 1, seen.append)
            note(f"the last of {count} came {time.time() * 1000 - due_ms:.0f} ms after it was due")
            equal(client.reserve(), None)
            stats = client.stats()
            note({key: value for key, value in stats.items() if key.startswith("due-to-") and
                  "below" not in key})
        numbers = [int(reply.body) for reply in seen]
        equal(len(set(numbers)), count)
        # All jobs are due at one instant, so they are ordered by priority, then by put.
        keys = [(n * 31 % 7, n) for n in numbers]
        holds(keys == sorted(keys), first_disorder(keys))


def first_disorder(keys):
    """The first place where the order is wrong."""
    for n, (one, other) in enumerate(zip(keys, keys[1:])):
        if one > other:
            return f"{other} came after {one} (number {n})"
    return ""


# --- owners -------------------------------------------------------------------------------

@suite.together
def the_jobs_of_36_idle_owners_come_back_all_and_none_before_its_ttr():
    with Twheelq() as daemon:
        daemon.start()
        with contextlib.ExitStack() as stack:
            owners, ends = [], {}
            for n in range(36):
                owner = stack.enter_context(daemon.client())
                ttr_ms = 300 + 100 * (n * 7 % 36)
                number = owner.put(b"%d" % n, ttr=f"{ttr_ms}ms")
                start = time.monotonic()
                holds(owner.ask(f"reserve-job {number}").body == b"%d" % n, "another job")
                ends[number] = start + ttr_ms / 1000
                owners.append(owner)
            look = stack.enter_context(daemon.client())
            late = []
            for _ in range(36):
                number = look.reserve("1000")[0]
                late.append(time.monotonic() - ends.pop(number))
                holds(late[-1] >= 0, f"job {number} came {-late[-1]} s before its TTR")
                look.ask(f"delete {number}")
            note(f"TTRs of idle owners: at most {max(late) * 1000:.1f} ms late")
            # On a slow machine the TTR of a job may have ended a second time, before its delete.
            holds(int(look.stats()["job-timeouts"]) >= 36, look.stats()["job-timeouts"])


@suite.together
def the_ttrs_of_20000_jobs_end_at_once_and_none_early():
    count = 20000
    with Twheelq(sync="50ms") as daemon:
        daemon.start()
        put_many(daemon, count, lambda n: b"put 5 0 30 5\r\n%05d\r\n" % n)
        with daemon.client() as owner, daemon.client() as other:
            start = time.monotonic()
            reserve_all(owner, count)
            again = reserve_all(other, count)
            holds(min(again.values()) >= start + 30, "before its TTR")
            holds(int(other.stats()["job-timeouts"]) >= count, other.stats()["job-timeouts"])


def reserve_all(client, count):
    """Reserve until @count different bodies have come; returns when each first came. On a slow
    machine some jobs come again before the last one comes."""
    times = {}

    def reserved(reply):
        if reply.line != "DEADLINE_SOON":
            times.setdefault(reply.body, time.monotonic())
    while left := count - len(times):
        pipeline(client, [b"reserve\r\n"] * left, left, reserved)
    return times


@suite.test
def puts_go_on_while_the_ttrs_of_100000_jobs_end():
    count, ttr_s, puts = 100000, 20, 0
    with Twheelq() as daemon:
        daemon.start()
        put_many(daemon, count, lambda _: b"put 5 0 %d 1\r\nx\r\n" % ttr_s)
        with daemon.client() as owner, daemon.client() as other, daemon.client() as look:
            other.ask("use other")
            pipeline(owner, [b"reserve-with-timeout 0\r\n"] * count, count)
            # So that all end at once.
            daemon.process.send_signal(signal.SIGSTOP)
            time.sleep(ttr_s)
            daemon.process.send_signal(signal.SIGCONT)
            other.put(b"x", pri=0, delay=600)
            while look.stats("stats-tube default")["current-jobs-reserved"] != "0":
                puts += 1
                other.put(b"x", pri=0, delay=600)
    note(f"{puts} puts while they ended")
    holds(puts >= 5, puts)


@suite.together
def a_job_is_with_one_client_at_a_time():
    with Twheelq() as daemon:
        daemon.start()
        had = []
        ttr = 0.1

        def worker(seed, client):
            for step in range(60):
                before = time.monotonic()
                job = client.reserve("2")
                now = time.monotonic()
                if not job:
                    # It holds jobs whose time to run ends soon: the reply was DEADLINE_SOON.
                    time.sleep(ttr / 4)
                    continue
                # It was reserved between @before and @now.
                end = before + ttr
                if release := (seed + step) % 3 == 0:
                    end = min(end, time.monotonic())
                had.append((job[0], now, end))
                if release:
                    client.ask(f"release {job[0]} 5 0")
        with contextlib.ExitStack() as stack:
            # Clients stay connected: the jobs of a client that disconnects are ready at once.
            clients = [stack.enter_context(daemon.client()) for _ in range(12)]
            for _ in range(5):
                clients[0].put(b"x", ttr="100ms")
            workers = [threading.Thread(target=worker, args=args)
                       for args in enumerate(clients)]
            for one in workers:
                one.start()
            for one in workers:
                one.join()
        sure = sorted(one for one in had if one[1] < one[2])
        note(f"{len(had)} reservations, {len(sure)} of them for a known time")
        holds(had, "no client got a job")
        for (job, start, end), (other, again, _) in zip(sure, sure[1:]):
            holds(job != other or again >= end,
                  f"job {job}, which one had from {start} to {end}, another one had at {again}")


@suite.together
def waiting_clients_get_jobs_in_turn():
    with Twheelq() as daemon:
        daemon.start()
        with contextlib.ExitStack() as stack:
            waiting = [stack.enter_context(daemon.client()) for _ in range(20)]
            for n, client in enumerate(waiting):
                client.tell("reserve")
                wait_for(lambda n=n: int(stat_of(daemon, "current-waiting")) == n + 1, "a wait")
            producer = stack.enter_context(daemon.client())
            got = []
            for turn in range(3):
                for n in range(20):
                    producer.put(b"%d %d" % (turn, n), ttr=600)
                for n, client in enumerate(waiting):
                    reply = client.reply()
                    equal(reply.body, b"%d %d" % (turn, n), f"client {n}, turn {turn}")
                    got.append(reply)
                for n, client in enumerate(waiting):
                    client.tell("reserve")
                    wait_for(lambda n=n: int(stat_of(daemon, "current-waiting")) == n + 1,
                             "a wait")
            equal(len(got), 60)


def stat_of(daemon, key):
    """A value of stats."""
    with daemon.client() as client:
        return client.stats()[key]


# --- slow and hostile clients -------------------------------------------------------------

class Good:
    """A well-behaved client: it puts, reserves and deletes, and measures the time of that."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.client = daemon.client()
        for command in ("use good", "watch good", "ignore default"):
            self.client.ask(command)
        self.times = []

    def round(self):
        """Put, reserve and delete a job."""
        start = time.monotonic()
        number = self.client.put(b"good")
        equal(self.client.reserve(), (number, b"good"))
        equal(self.client.ask(f"delete {number}").line, "DELETED")
        self.times.append(time.monotonic() - start)

    def rounds(self, count, what):
        """Run @count rounds, and print their times; @what goes on meanwhile."""
        self.times = []
        for _ in range(count):
            self.round()
        times = sorted(self.times)
        note(f"{what}: {count} rounds of put, reserve and delete, each "
             f"{times[count // 2] * 1000:.1f} ms (median), {times[-1] * 1000:.1f} ms (longest)")


@contextlib.contextmanager
def under_attack(what):
    """A daemon and a good client. The block begins an attack; then the rounds of the good client
    must succeed, memory must be bounded, and the daemon must not have restarted."""
    with Twheelq(options=["--memory", "32M"]) as daemon:
        daemon.start()
        good = Good(daemon)
        good.rounds(20, f"before {what}")
        pid = daemon.pid()
        with contextlib.ExitStack() as stack:
            yield daemon, stack
            good.rounds(50, what)
            own = memory_note(daemon, what)
            holds(own <= MEMORY, f"{what}: RssAnon is {own / MIB:.1f} MiB")
        good.rounds(20, f"after {what}")
        equal(daemon.process.poll(), None, "the daemon's status")
        equal(daemon.pid(), pid)
        good.client.close()


@suite.test
def half_lines_cost_little():
    with under_attack("1000 clients with half a line") as (daemon, stack):
        for n in range(1000):
            client = stack.enter_context(daemon.client())
            client.send((b"put 5 0 60 10\r\nhalf", b"reserve-with-t", b"x" * 200)[n % 3])


@suite.test
def bodies_that_are_announced_and_do_not_come_cost_little():
    with under_attack("bodies of 1 GB announced") as (daemon, stack):
        for n in range(300):
            client = stack.enter_context(daemon.client())
            size = (1 << 30, 65535, 4294967295)[n % 3]
            client.send(b"put 5 0 60 %d\r\nbegin" % size)


@suite.test
def a_body_of_64_mb_that_is_sent_is_thrown_away():
    with under_attack("a body of 64 MB") as (daemon, stack):
        client = stack.enter_context(daemon.client())
        size = 64 * MIB

        def attack():
            client.send(b"put 5 0 60 %d\r\n" % size)
            for _ in range(64):
                client.send(bytes(MIB))
            client.send(b"\r\n")
        thread = threading.Thread(target=attack)
        thread.start()
        stack.callback(thread.join)
        equal(client.reply().line, "JOB_TOO_BIG")
        thread.join()
        equal(client.ask("list-tube-used").line, "USING default")


@suite.test
def ten_thousand_connections_are_served():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = 10000
    if hard != resource.RLIM_INFINITY and hard < count + 200:
        count = hard - 200
        note(f"only {count}, as no more files may be open here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, count + 500)
                                                    if hard != resource.RLIM_INFINITY
                                                    else count + 500), hard))
    with under_attack(f"{count} connections") as (daemon, stack):
        socks = []
        for n in range(count):
            sock = stack.enter_context(connect(daemon.address))
            if n % 2:
                sock.sendall(b"reserve\r\n")
            socks.append(sock)
        wait_for(lambda: int(stat_of(daemon, "current-waiting")) == count // 2, "the waits")
        for sock in socks[:100:2]:
            sock.sendall(b"list-tube-used\r\n")
        for sock in socks[:100:2]:
            equal(sock.recv(100), b"USING default\r\n")
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@suite.test
def a_client_that_never_reads_is_not_read_on():
    with under_attack("100,000 commands whose replies nobody reads") as (daemon, stack):
        good = daemon.client()
        number = good.put(b"b" * 60000, delay=1000)
        good.close()
        for command in (b"peek %d\r\n" % number, b"stats\r\n", b"list-tube-used\r\n",
                        b"put 5 1000 60 1\r\nx\r\n"):
            sock = stack.enter_context(connect(daemon.address))
            sock.setblocking(False)
            data = command * 100000
            end = time.monotonic() + 3
            while data and time.monotonic() < end:
                try:
                    data = data[sock.send(data[:1 << 16]):]
                except BlockingIOError:
                    time.sleep(0.01)


@suite.test
def replies_that_are_read_late_are_whole():
    count = 20000
    with Twheelq(options=["--memory", "32M"]) as daemon:
        daemon.start()
        with daemon.client() as client:
            number = client.put(b"b" * 1000, delay=1000)
            data = b"peek %d\r\n" % number * count
            writer = threading.Thread(target=client.send, args=(data,))
            writer.start()
            time.sleep(0.5)
            for _ in range(count):
                equal(client.reply().body, b"b" * 1000)
            writer.join()
            own = memory_note(daemon, "20 MB of replies, read late")
            holds(own <= MEMORY, f"RssAnon is {own / MIB:.1f} MiB")


@suite.test
def a_client_that_watches_100000_tubes_costs_a_bounded_amount():
    with under_attack("100,000 tubes watched") as (daemon, stack):
        client = stack.enter_context(daemon.client())
        words = {}

        def watched(reply):
            word = reply.line.split()[0]
            words[word] = words.get(word, 0) + 1
        pipeline(client, (b"watch tube-%d\r\n" % n for n in range(100000)), 100000, watched)
        note(f"it was answered with {words}")
        holds(set(words) <= {"WATCHING", "OUT_OF_MEMORY"}, words)
        client.tell("reserve")


@suite.test
def clients_that_watch_all_that_can_be_watched_lock_out_nobody():
    with under_attack("all is watched") as (daemon, stack):
        words = set()
        while "OUT_OF_MEMORY" not in words:
            client, words = stack.enter_context(daemon.client()), set()
            pipeline(client, (b"watch tube-%d\r\n" % n for n in range(999)), 999,
                     lambda reply, words=words: words.add(reply.line.split()[0]))
        with daemon.client() as client:
            equal(client.ask("use mine").line, "USING mine")
            client.put(b"x")
            equal(client.ask("watch mine").line, "WATCHING 2")
            equal(client.ask("ignore default").line, "WATCHING 1")
            equal(client.reserve()[1], b"x")
            equal(client.ask("watch default").line, "WATCHING 2")
            equal(client.ask("watch tube-1").line, "OUT_OF_MEMORY")


@suite.test
def a_client_that_uses_many_tubes_leaves_none_behind():
    with under_attack("100,000 tubes used") as (daemon, stack):
        client = stack.enter_context(daemon.client())
        pipeline(client, (b"use tube-%d\r\n" % n for n in range(100000)), 100000)
        holds(int(client.stats()["current-tubes"]) < 10, client.stats()["current-tubes"])


@suite.test
def a_client_that_reserves_all_there_is_leaves_memory_bounded():
    count = 300000
    with under_attack(f"{count} jobs reserved by one") as (daemon, stack):
        put_many(daemon, count, lambda n: b"put 5 0 600 1\r\nx\r\n")
        client = stack.enter_context(daemon.client())
        words = {}

        def reserved(reply):
            word = reply.line.split()[0]
            words[word] = words.get(word, 0) + 1
        pipeline(client, [b"reserve-with-timeout 0\r\n"] * count, count, reserved)
        note(f"it was answered with {words}")
        equal(int(client.stats()["current-jobs-reserved"]), words["RESERVED"])
        holds(set(words) <= {"RESERVED", "OUT_OF_MEMORY"}, words)
        # It cannot take everything: other clients get some.
        other = stack.enter_context(daemon.client())
        equal(other.ask("reserve-with-timeout 0").line.split()[0], "RESERVED")
        other.close()
        client.close()
        wait_for(lambda: stat_of(daemon, "current-jobs-ready") == str(count), "all of them")


@suite.test
def a_kick_of_all_there_is_delays_nobody_for_long_and_kicks_all():
    count = 200000
    with under_attack(f"{count} jobs kicked") as (daemon, stack):
        put_many(daemon, count, lambda n: b"put 5 %d 600 1\r\nx\r\n" % (100000 + n))
        client = stack.enter_context(daemon.client())
        thread = threading.Thread(target=client.tell, args=(f"kick {count}",))
        thread.start()
        good = Good(daemon)
        good.rounds(20, "while they are kicked")
        good.client.close()
        kicked = int(client.reply().line.removeprefix("KICKED "))
        thread.join()
        note(f"the first kick, of at most {count}, kicked {kicked}")
        while more := int(client.ask(f"kick {count}").line.removeprefix("KICKED ")):
            kicked += more
        equal(kicked, count)
        equal(client.stats("stats-tube default")["current-jobs-ready"], str(count))


@suite.test
def connections_that_come_and_go_leave_nothing_behind():
    with Twheelq(options=["--memory", "32M"]) as daemon:
        daemon.start()
        files = f"/proc/{daemon.pid()}/fd"

        def storm(count):
            for n in range(count):
                with daemon.client() as client:
                    if n % 3 == 0:
                        client.put(b"x", ttr="1ms")
                    elif n % 3 == 1:
                        client.tell("reserve")
                    else:
                        client.send(b"put 5 0 60 100\r\nhalf")
        storm(500)
        with daemon.client() as client:
            wait_for(lambda: client.stats()["current-connections"] == "1", "their end")
            before = daemon.memory(), len(os.listdir(files))
            storm(5000)
            wait_for(lambda: client.stats()["current-connections"] == "1", "their end")
            note(f"RssAnon {before[0] / MIB:.1f} MiB after 500, {daemon.memory() / MIB:.1f} MiB "
                 "after 5,500 connections")
            equal(len(os.listdir(files)) <= before[1] + 3, True, "open files")
            equal(client.stats()["current-waiting"], "0")
            equal(client.stats()["current-jobs-reserved"], "0")


@suite.test
def when_no_more_files_can_be_opened_those_who_are_there_are_served():
    count, body, port = 20000, b"x" * 1000, free_port()
    with Twheelq(before=["prlimit", "--nofile=256:256"],
                 options=["--memory", "32M", "--http", f"127.0.0.1:{port}"]) as daemon:
        daemon.before, words = [], daemon.before
        daemon.command = lambda: words + Twheelq.command(daemon)
        daemon.start()
        with daemon.client() as client, contextlib.ExitStack() as stack:
            for first in range(0, count, 1000):
                client.send(b"".join(b"put 5 0 60 1000\r\n" + body + b"\r\n"
                                     for _ in range(1000)))
                for n in range(1000):
                    equal(client.reply().line, f"INSERTED {first + n + 1}")
            for address in [daemon.address] * 300 + [f"127.0.0.1:{port}"] * 200:
                with contextlib.suppress(OSError):
                    stack.enter_context(connect(address, 1))
            for _ in range(count):
                equal(client.reserve()[1], body)
            start = os.times()
            begun = cpu_seconds(daemon)
            time.sleep(1)
            used = cpu_seconds(daemon) - begun
            note(f"it took {used:.2f} s of CPU in {os.times().elapsed - start.elapsed:.2f} s; "
                 f"{len(os.listdir(f'/proc/{daemon.process.pid}/fd'))} files, "
                 f"{client.stats()['current-connections']} clients")
        wait_for(daemon.answers, "an answer to a new client")


@suite.test
def with_too_few_files_there_is_no_start():
    with tempfile.TemporaryDirectory() as directory:
        result = subprocess.run(["prlimit", "--nofile=255:255", TWHEELQ, "serve", "--dir",
                                 f"{directory}/d", "--listen", f"unix:{directory}/s"],
                                capture_output=True, text=True, check=False, timeout=300)
        equal(result.returncode, 1)
        equal(result.stderr, "twheelq: the process may open only 255 files: it needs 256\n")
        equal(os.listdir(directory), [])


def cpu_seconds(daemon):
    """The CPU time of a daemon."""
    with open(f"/proc/{daemon.process.pid}/stat", encoding="ascii") as stat:
        words = stat.read().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    suite.main()
