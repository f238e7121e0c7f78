#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What twheelq promises to keep: over restarts, kills, a full disk, and damage.

kills.py has the kills at random moments; --kills says how many of them.
"""

import contextlib
import paths  # pylint: disable=unused-import,wrong-import-order
import json
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import zlib

import beyond
import kills
import ledger
import store
from client import Gone
from daemon import TWHEELQ, NotUp, Twheelq, kill_all
from tap import Skip, Suite, equal, holds, note, wait_for

suite = Suite(seconds=1500)

# sysexits.h
EX_IOERR = 74


# --- restarts -----------------------------------------------------------------------------

def restart_by(how, daemon):
    """Stop or kill it, see that check agrees, and start it again."""
    status = how(daemon)
    if how is Twheelq.stop:
        equal(status, 0, "status of a graceful stop")
    store.check(daemon)
    daemon.start()


def on_each_restart(function):
    """A decorator: a test for a graceful stop, and one for a kill; each gets a daemon, a
    client, and a function that restarts and gives a new client."""
    for how, name in ((Twheelq.stop, "stop"), (Twheelq.kill, "kill")):
        def run(how=how):
            with Twheelq() as daemon:
                daemon.start()
                clients = [daemon.client()]

                def again():
                    restart_by(how, daemon)
                    clients.append(daemon.client())
                    return clients[-1]
                again.killed = how is Twheelq.kill
                function(clients[0], again)
                for client in clients:
                    client.close()
        suite.add(f"{function.__name__}_after_a_{name}", run, together=True)
    return function


@on_each_restart
def jobs_of_every_state_are_what_they_were(client, again):
    client.ask("use t")
    client.ask("watch t")
    made = {"ready": client.put(b"ready", 5), "far": client.put(b"far", 6, 100000, 77),
            "buried": client.put(b"buried", 0), "gone": client.put(b"gone", 0),
            "released": client.put(b"released", 0)}
    for _ in range(3):
        number = client.reserve()[0]
        if number == made["buried"]:
            client.ask(f"bury {number} 9")
        elif number == made["gone"]:
            client.ask(f"delete {number}")
        else:
            client.ask(f"release {number} 8 5000")
    client = again()
    equal(client.stats()["current-jobs-ready"], "1")
    equal(client.stats()["current-jobs-delayed"], "2")
    equal(client.stats()["current-jobs-buried"], "1")
    for name, expected in {"ready": ("ready", "5", "60"), "far": ("delayed", "6", "77"),
                           "buried": ("buried", "9", "60"),
                           "released": ("delayed", "8", "60")}.items():
        stats = client.stats(f"stats-job {made[name]}")
        equal((stats["state"], stats["pri"], stats["ttr"]), expected, name)
        equal(stats["tube"], "t")
        equal(client.ask(f"peek {made[name]}").body, name.encode())
    equal(client.ask(f"peek {made['gone']}").line, "NOT_FOUND")
    left = float(client.stats(f"stats-job {made['far']}")["time-left"])
    holds(99000 < left <= 100000, f"{left} s are left of 100000")


@on_each_restart
def a_delay_is_neither_longer_nor_shorter(client, again):
    start = time.monotonic()
    number = client.put(b"x", delay="1500ms")
    client = again()
    equal(client.reserve("1000"), (number, b"x"))
    holds(time.monotonic() - start >= 1.5, "early")


@on_each_restart
def schedules_are_kept_and_go_on(client, again):
    client.ask("use s")
    equal(client.ask("every far 7 1000s 9000000000000 60 3", b"far").line, "EVERY")
    equal(client.ask("every tick 7 1s 0 60 4", b"tick").line, "EVERY")
    wait_for(lambda: client.stats("stats-tube s")["current-jobs-ready"] == "1", "the first job")
    far, tick = beyond.listed(client)
    client = again()
    client.ask("use s")
    client.ask("watch s")
    after = beyond.listed(client)
    equal(after[0], far)
    equal(after[1]["last-job"], tick["last-job"])
    # The job that was there is still the only one.
    number, body = client.reserve()
    equal((str(number), body), (tick["last-job"], b"tick"))
    equal(client.reserve(), None)
    client.ask(f"delete {number}")
    holds(client.reserve("1000")[0] > number, "no job came")
    client = again()
    client.ask("use s")
    equal(client.ask("every-stop tick").line, "STOPPED")
    equal(client.ask("every-stop far").line, "STOPPED")
    client = again()
    client.ask("use s")
    equal(beyond.listed(client), [])


def while_down(how, seconds, work, look):
    """Work with a client, stop, wait, start and look with another one."""
    with Twheelq() as daemon:
        daemon.start()
        with daemon.client() as client:
            kept = work(client)
        how(daemon)
        time.sleep(seconds)
        daemon.start()
        with daemon.client() as client:
            look(client, kept)


@suite.together
def what_became_due_while_it_was_down_is_ready_at_once_by_priority():
    def work(client):
        due_ms = int(time.time() * 1000) + 300
        client.put(b"c", 9, "200ms")
        client.put(b"b", 5, "300ms")
        client.ask(f"put-at 1 {due_ms} 60 1", b"a")
        client.put(b"far", 0, 1000)

    def look(client, _):
        equal([client.reserve()[1] for _ in range(3)], [b"a", b"b", b"c"])
        equal(client.reserve(), None)
        equal(client.stats()["current-jobs-delayed"], "1")
    while_down(Twheelq.stop, 0.5, work, look)
    while_down(Twheelq.kill, 0.5, work, look)


@on_each_restart
def a_reserved_job_is_ready_again_with_its_attempts(client, again):
    client.ask("policy default 5 1ms 1 1ms 0")
    number = client.put(b"x", 3)
    equal(client.reserve(), (number, b"x"))
    other = client.put(b"y", 4)
    client = again()
    stats = client.stats(f"stats-job {number}")
    equal((stats["state"], stats["pri"]), ("ready", "3"))
    equal(stats["attempts"], "0")
    equal(client.stats(f"stats-job {other}")["attempts"], "0")
    equal(client.reserve(), (number, b"x"))
    equal(client.ask(f"release {number} 3 0").line, "RELEASED")
    client = again()
    equal(client.stats(f"stats-job {number}")["attempts"], "1")


@on_each_restart
def order_is_the_same(client, again):
    for pri, body in ((3, b"d"), (1, b"a"), (2, b"b"), (2, b"c")):
        client.put(body, pri)
    client = again()
    client.put(b"e", 3)
    equal([client.reserve()[1] for _ in range(5)], [b"a", b"b", b"c", b"d", b"e"])


@on_each_restart
def buried_jobs_are_in_the_order_of_bury(client, again):
    jobs = [client.put(b"x", pri) for pri in (1, 2, 3)]
    for _ in jobs:
        client.reserve()
    for number in (jobs[1], jobs[2], jobs[0]):
        client.ask(f"bury {number} 5")
    client = again()
    equal(client.ask("peek-buried").line, f"FOUND {jobs[1]} 1")
    equal(client.ask("kick 2").line, "KICKED 2")
    equal(client.ask("peek-buried").line, f"FOUND {jobs[0]} 1")


@on_each_restart
def ids_are_not_used_again(client, again):
    number = client.put(b"x")
    client.ask(f"delete {number}")
    client = again()
    holds(client.put(b"y") > number, "an id came twice")


@on_each_restart
def keys_still_have_their_jobs_and_free_ones_are_free(client, again):
    number = int(client.ask("put-unique k 5 1000 60 1", b"a").line.split()[1])
    freed = int(client.ask("put-unique f 5 1000 60 1", b"a").line.split()[1])
    client.ask(f"delete {freed}")
    client = again()
    equal(client.ask("put-unique k 5 2000 60 1", b"b").line, f"REPLACED {number}")
    equal(client.ask(f"peek {number}").body, b"b")
    holds(client.ask("put-unique f 5 2000 60 1", b"b").line.startswith("INSERTED "), "f")
    client = again()
    equal(client.ask(f"peek {number}").body, b"b")


@on_each_restart
def policies_attempts_and_the_dead_are_kept(client, again):
    equal(client.ask("policy default 2 700s 3 1h 0 the-dead").line, "POLICY")
    jobs = [client.put(b"x", 1), client.put(b"y", 2)]
    equal(client.reserve()[0], jobs[0])
    equal(client.ask(f"fail {jobs[0]} 3", b"why").line, "RETRY 1 700000")
    client = again()
    stats = client.stats(f"stats-job {jobs[0]}")
    equal((stats["attempts"], stats["reason"], stats["state"]), ("1", "why", "delayed"))
    client.ask(f"reschedule {jobs[0]} 0")
    equal(client.reserve()[0], jobs[0])
    equal(client.ask(f"fail {jobs[0]} 3", b"end").line, "DEAD")
    dead = client.stats(f"stats-job {jobs[0]}")
    client = again()
    stats = client.stats(f"stats-job {jobs[0]}")
    for key in ("tube", "origin-tube", "attempts", "died", "reason", "state"):
        equal(stats[key], dead[key], key)
    equal((stats["tube"], stats["origin-tube"]), ("the-dead", "default"))
    equal(client.reserve()[0], jobs[1])
    equal(client.ask(f"fail {jobs[1]}").line, "RETRY 1 700000")
    client.ask("use the-dead")
    equal(client.ask("kick 1").line, "KICKED 1")
    client = again()
    stats = client.stats(f"stats-job {jobs[0]}")
    equal((stats["tube"], stats["state"], stats["attempts"]), ("default", "ready", "0"))


@on_each_restart
def bodies_of_any_bytes_and_sizes_are_the_same(client, again):
    bodies = [b"", bytes(range(256)), b"\r\n" * 100, b"x" * 65535, os.urandom(40000)]
    jobs = [client.put(body, delay=1000) for body in bodies]
    client = again()
    for number, body in zip(jobs, bodies):
        equal(client.ask(f"peek {number}").body, body)


@suite.together
def a_graceful_stop_ends_clients_and_itself_with_0():
    with Twheelq() as daemon:
        daemon.start()
        with daemon.client() as client:
            number = client.put(b"x")
            client.tell("reserve-with-timeout 1000")
            client.reply()
            equal(daemon.stop(), 0)
            try:
                client.ask("list-tube-used")
            except (Gone, OSError):
                pass
            else:
                raise AssertionError("somebody still answers")
        equal(list(store.jobs_of(daemon)), [number])


@suite.together
def other_policies_of_sync_outlive_the_process():
    for sync in ("50ms", "never"):
        with Twheelq(sync=sync) as daemon:
            daemon.start()
            with daemon.client() as client:
                holds(sync in client.stats()["sync"], client.stats()["sync"])
                jobs = [client.put(b"x") for _ in range(100)]
            daemon.kill()
            equal(sorted(store.jobs_of(daemon)), jobs, sync)


@suite.together
def dump_and_load_make_the_same_store():
    with Twheelq() as daemon, Twheelq() as other:
        fill(daemon)
        result = daemon.tool("dump")
        equal(result.returncode, 0, result.stderr)
        loaded = other.tool("load", stdin=result.stdout)
        equal(loaded.returncode, 0, loaded.stderr)
        store.check(other)
        equal(sorted(map(sorted_line, other.tool("dump").stdout.splitlines())),
              sorted(map(sorted_line, result.stdout.splitlines())))
        other.start()
        with other.client() as client:
            holds(client.put(b"x") > max(store_ids(result.stdout)), "an id came twice")


def sorted_line(line):
    """A line of JSON, with its keys in order."""
    return json.dumps(json.loads(line), sort_keys=True)


def store_ids(text):
    """Ids of a dump."""
    return [job["id"] for job in map(json.loads, text.splitlines()) if "id" in job]


# --- kills at random ----------------------------------------------------------------------

@suite.test
def kills_at_random_lose_nothing_promised_and_invent_nothing():
    start = time.monotonic()
    arguments = kills.options(kills=suite.options.kills)
    done, promises, broken = kills.run(arguments)
    note(f"{done} kills, {promises} promises, {time.monotonic() - start:.1f} s, "
         f"seed {arguments.seed}")
    holds(not broken, "\n".join(broken))


SCHEDULES = 40
INTERVAL_NS = 10**9


def make_schedules(client):
    """Schedules that put a job each second, one after the other: the first time of each."""
    first_ms = int(time.time() * 1000) + 1000
    first = {f"s{n}": first_ms + n * 25 for n in range(SCHEDULES)}
    for name, unix_ms in first.items():
        equal(client.ask(f"every {name} 5 1s {unix_ms} 60 1", b"x").line, "EVERY")
    return first


def work_until_gone(client, seen):
    """Do the jobs of schedules until the daemon is killed: @seen has the times that each job
    was put for."""
    with contextlib.suppress(Gone, OSError):
        while True:
            number, _ = client.reserve("1000")
            stats = client.stats(f"stats-job {number}")
            seen[number] = stats["every"], max(1, int(stats["missed"]))
            client.ask(f"delete {number}")


def account(daemon, first, seen):
    """Each time of each schedule before its next one was put once, or is counted."""
    schedules = store.schedules(daemon)
    names = {one["id"]: one["every"] for one in schedules}
    there = [(job["id"], names[job["schedule"]], max(1, job["missed"]))
             for job in store.lines(daemon)]
    equal(len({name for _, name, _ in there}), len(there), "two jobs of a schedule")
    equal(len(schedules), SCHEDULES)
    for one in schedules:
        name = one["every"]
        put = {number: times for number, (who, times) in seen.items() if who == name}
        put |= {number: times for number, who, times in there if who == name}
        passed = (one["next_ns"] - first[name] * 10**6) / INTERVAL_NS
        equal(sum(put.values()) + one["missed"], passed, f"times of {name}")
    return sum(times for _, times in seen.values()), len(seen)


@suite.test
def kills_while_schedules_put_jobs_leave_each_time_put_once_or_counted():
    first, seen = None, {}
    with Twheelq(options=["--memory", "32M"]) as daemon:
        for kill in range(suite.options.kills):
            # Once in a while it is down for more than an interval.
            time.sleep(2.1 * (kill % 10 == 9))
            daemon.start()
            with daemon.client() as client:
                first = first or make_schedules(client)
                killer = threading.Timer(random.random() * 0.4, daemon.kill)
                killer.start()
                work_until_gone(client, seen)
                killer.join()
            store.check(daemon)
            times, jobs = account(daemon, first, seen)
        note(f"{times} times, {jobs} jobs")


# --- kills at each system call ------------------------------------------------------------

# What a commit, a start, a flush and a compaction are made of.
CALLS = ("write", "pwrite64", "writev", "pwritev", "fdatasync", "fsync", "sync_file_range",
         "rename", "renameat", "renameat2", "ftruncate", "fallocate", "unlink", "unlinkat",
         "openat", "mkdir", "close", "link")


def strace(*inject):
    """The words that run a command below strace, with what is injected."""
    if not shutil.which("strace"):
        raise Skip("there is no strace")
    calls = sorted({text.split(":")[0] for text in inject})
    words = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=" + ",".join(calls)]
    for text in inject:
        words += ["-e", f"inject={text}"]
    return words


def need_strace():
    """Skip where nothing may be traced."""
    words = strace("getppid:retval=1")
    if subprocess.run(words + ["true"], capture_output=True, check=False).returncode:
        raise Skip("strace may not trace here")


def small_work(client, ledger_of):
    """Some of every command, one after the other; what was promised goes to the ledger."""
    promised = {}
    ledger_of.append(promised)
    client.ask("watch t")
    client.ask("use t")
    for step in range(3):
        names = ["ready", "late", "bury", "delete", "release", "fail"]
        jobs = {}
        for name in names:
            body = f"{name}-{step}".encode()
            promised[body] = {None, "ready", "delayed"}
            jobs[name] = client.put(body, 5 + (name in ("ready", "late")),
                                    1000 if name == "late" else 0)
            promised[body] = {"delayed" if name == "late" else "ready"}
        for _ in range(4):
            number, body = client.reserve()
            work_on(client, number, body, promised)
        purge_and_schedule(client, f"purge-{step}".encode(), promised)
    client.ask("put-unique k 5 1000 60 6", b"unique")
    promised[b"unique"] = {"delayed"}


def purge_and_schedule(client, body, promised):
    """A job that is purged, and a schedule that puts one at once."""
    client.ask("use p")
    promised[body] = {None, "delayed"}
    client.put(body, 5, 1000)
    equal(client.ask("purge p delayed").line, "PURGED 1")
    promised[body] = {None}
    equal(client.ask(f"every n 5 1000s {time.time_ns() // 10**6 + 1} 60 9", b"scheduled").line,
          "EVERY")
    client.ask("every-stop m")
    equal(client.ask(f"every m 5 1000s {time.time_ns() // 10**6 + 1} 60 9", b"scheduled").line,
          "EVERY")
    client.ask("use t")


# What a job is named for: the command, its reply, and where it is then.
ENDS = {"bury": ("bury {} 5", "BURIED", "buried"), "delete": ("delete {}", "DELETED", None),
        "release": ("release {} 5 1000", "RELEASED", "delayed"),
        "fail": ("fail {}", "RETRY", "delayed")}


def work_on(client, number, body, promised):
    """A job that is reserved comes to its end."""
    command, word, state = ENDS[body.decode().split("-")[0]]
    promised[body] = {"ready", "delayed", state}
    reply = client.ask(command.format(number)).line
    equal(reply.split()[0], word)
    # Its retry may be due by now.
    promised[body] = {state, "ready"} if word == "RETRY" else {state}


def holds_promises(daemon, promised):
    """The store has what was promised."""
    store.check(daemon)
    found = {state.body: state.place for state in store.jobs_of(daemon).values()}
    for body, places in promised.items():
        holds(found.get(body) in places, f"{body} is {found.get(body)}; it may be {places}")
    unknown = set(found) - set(promised) - {b"unique", b"scheduled"}
    holds(not unknown, f"nobody has put {unknown}")


def killed_at(call, number):
    """Work until the daemon is killed at this call of a thread; was it?"""
    with Twheelq(before=strace(f"{call}:signal=KILL:when={number}"),
                 options=["--memory", "32M"]) as daemon:
        promised = []
        try:
            daemon.start()
            with daemon.client() as client:
                small_work(client, promised)
            os.kill(daemon.pid(), signal.SIGTERM)
            daemon.process.wait()
            survived = daemon.process.returncode == 0
        except (Gone, NotUp, OSError, IndexError):
            survived = False
        if daemon.process:
            daemon.process.wait()
            daemon.process = None
        if os.path.isdir(daemon.directory) and os.listdir(daemon.directory):
            after_a_kill(daemon, promised[0] if promised else {}, f"{call} {number}")
        return not survived


def after_a_kill(daemon, promised, where):
    """It can be started again, and nothing is lost."""
    daemon.before = []
    try:
        if promised:
            holds_promises(daemon, promised)
        daemon.start()
        daemon.stop()
        holds_promises(daemon, promised)
    except (AssertionError, NotUp) as error:
        raise AssertionError(f"killed at {where}: {error}") from error


def kill_at_each(call, step):
    """Kill at the first call, the second... with steps, until none is left to be killed at:
    how many kills there were."""
    count = 0
    for number in range(random.randrange(step) + 1, 100000, step):
        if not killed_at(call, number):
            return count
        count += 1
    return count


@suite.test
def a_kill_at_any_system_call_of_a_commit_loses_nothing():
    need_strace()
    counts = {}

    def lane(calls):
        for call in calls:
            try:
                counts[call] = kill_at_each(call, suite.options.step)
            except AssertionError as error:
                counts[call] = error
    # One of the two lanes has what is called most.
    lanes = [threading.Thread(target=lane, args=(calls,)) for calls in
             (("write", "openat"), [call for call in CALLS if call not in ("write", "openat")])]
    for one in lanes:
        one.start()
    for one in lanes:
        one.join()
    broken = [str(what) for what in counts.values() if isinstance(what, Exception)]
    note("kills by system call: " + ", ".join(
        f"{call} {count}" for call, count in counts.items() if count))
    holds(not broken, "\n".join(broken))
    holds(sum(counts.values()) > 10, "hardly any kill")


# --- errors of the disk -------------------------------------------------------------------

def puts_until_it_ends(daemon):
    """Bodies whose puts were promised, one after the other, until the daemon ends; None if it
    ends before it serves."""
    promised = []
    try:
        daemon.start()
        with daemon.client() as client:
            while len(promised) < 100:
                body = b"%08d" % len(promised)
                reply = client.ask("put 5 0 60 8", body).line
                holds(reply.startswith("INSERTED"), reply)
                promised.append(body)
    except (Gone, OSError):
        pass
    except NotUp as error:
        # strace ends as the daemon did.
        holds(f" with {EX_IOERR}" in str(error), error)
        return None
    return promised


def an_error_after(number):
    """Every sync from the so-manieth of a thread on fails: has it served before?"""
    with Twheelq() as daemon:
        daemon.start()
        daemon.stop()
        daemon.before = strace(f"fdatasync:error=EIO:when={number}+",
                               f"fsync:error=EIO:when={number}+")
        promised = puts_until_it_ends(daemon)
        if promised is None:
            return False
        holds(len(promised) < 100, "a hundred promises, while no sync works")
        equal(daemon.process.wait(30), EX_IOERR, f"status after error {number}")
        daemon.process = None
        daemon.before = []
        holds(re.search("(?i)i/o error|input/output", daemon.said()), daemon.said())
        store.check(daemon)
        found = {state.body for state in store.jobs_of(daemon).values()}
        holds(set(promised) <= found, "a promise was lost")
        holds(len(found) <= len(promised) + 1, f"{len(found)} of {len(promised)}")
        return True


@suite.together
def an_error_of_a_sync_ends_it_with_74_and_promises_nothing():
    need_strace()
    # The first syncs are those of its start.
    served = 0
    for number in range(1, 60):
        served += an_error_after(number)
        if served == 3:
            return
    raise AssertionError("it never got so far as to serve")


class Mount:
    """A small file system of its own."""

    def __init__(self, megabytes):
        self.path = tempfile.mkdtemp(prefix="queue-mount-")
        result = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "queue",
                                 self.path], capture_output=True, text=True, check=False)
        if result.returncode:
            os.rmdir(self.path)
            raise Skip(f"nothing can be mounted here: {result.stderr.strip()}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "--lazy", self.path], check=False)
        os.rmdir(self.path)

    def option(self, text):
        """Mount it with another option."""
        subprocess.run(["mount", "-o", f"remount,{text}", self.path], check=True)

    def fill(self, leave=0):
        """Another program takes all of the space, but for some bytes."""
        with open(os.path.join(self.path, "filler"), "ab", buffering=0) as filler:
            try:
                while True:
                    free = os.statvfs(self.path)
                    left = free.f_bavail * free.f_bsize - leave
                    if left <= 0 or not filler.write(bytes(min(left, 1 << 20))):
                        break
            except OSError:
                pass

    def take(self):
        """Another program takes what is free just now, and not what is given back later."""
        with open(os.path.join(self.path, "filler"), "ab") as filler:
            free = os.statvfs(self.path)
            with contextlib.suppress(OSError):
                os.posix_fallocate(filler.fileno(), os.fstat(filler.fileno()).st_size,
                                   free.f_bavail * free.f_bsize)

    def free(self):
        """It gives it back."""
        os.unlink(os.path.join(self.path, "filler"))


def put_until_full(client, size, most):
    """Put until it is refused: ids of those that were not."""
    jobs = []
    while len(jobs) < most:
        reply = client.ask(f"put 5 0 60 {size}", os.urandom(size)).line
        if reply == "OUT_OF_MEMORY":
            return jobs
        holds(reply.startswith("INSERTED "), reply)
        jobs.append(int(reply.split()[1]))
    raise AssertionError(f"{most} jobs of {size} bytes were taken")


def all_but_puts_goes_on(client, jobs):
    """Delete, reserve, release, bury, kick and fail: those that are gone."""
    equal(client.ask(f"delete {jobs.pop()}").line, "DELETED")
    for command, word in (("release {} 5 0", "RELEASED"), ("release {} 5 1000", "RELEASED"),
                          ("bury {} 5", "BURIED"), ("fail {}", "RETRY"),
                          ("touch {}", "TOUCHED")):
        number, _ = client.reserve()
        equal(client.ask(command.format(number)).line.split()[0], word)
    equal(client.ask("kick 1").line, "KICKED 1")
    while len(jobs) > 100:
        equal(client.ask(f"delete {jobs.pop()}").line, "DELETED")


@suite.test
def a_dump_that_cannot_be_written_says_so():
    with Twheelq() as daemon:
        daemon.start()
        with daemon.client() as client:
            client.put(b"x")
        daemon.stop()
        result = subprocess.run([TWHEELQ, "dump", daemon.directory, "/dev/full"],
                                capture_output=True, text=True, check=False, timeout=1000)
        equal(result.returncode, 74)
        holds("cannot write the jobs: No space left" in result.stderr, result.stderr)


@suite.together
def a_dump_of_what_cannot_be_read_leaves_the_file_as_it_was():
    with Twheelq() as daemon:
        before = os.path.join(daemon.temporary, "before")
        overwrite(before, b"an older dump")
        os.makedirs(daemon.directory)
        result = subprocess.run([TWHEELQ, "dump", daemon.directory, before],
                                capture_output=True, text=True, check=False, timeout=1000)
        holds(result.returncode, "an empty directory was dumped")
        with open(before, "rb") as file:
            equal(file.read(), b"an older dump")


@suite.together
def a_disk_that_the_daemon_fills_refuses_puts_and_nothing_else():
    with Mount(96) as mount, Twheelq(directory=os.path.join(mount.path, "store")) as daemon:
        daemon.start()
        with daemon.client() as client:
            jobs = put_until_full(client, 60000, 4000)
            note(f"{len(jobs)} bodies of 60,000 bytes on 96 MiB")
            holds(int(client.stats()["current-jobs-ready"]) == len(jobs), "they are not there")
        daemon.kill()
        store.check(daemon)
        daemon.start()
        with daemon.client() as client:
            equal(int(client.stats()["current-jobs-ready"]), len(jobs))
            all_but_puts_goes_on(client, jobs)
            wait_for(lambda: client.ask("put 5 0 60 1000", b"y" * 1000).line
                     .startswith("INSERTED"), "space for puts, as all was deleted")
        equal(daemon.restart().answers(), True)


@suite.together
def a_disk_that_many_clients_fill_in_a_hurry_keeps_what_was_promised():
    with Mount(96) as mount, Twheelq(directory=os.path.join(mount.path, "store")) as daemon:
        daemon.start()
        promised, lock = {}, threading.Lock()

        def hurry(number):
            body = os.urandom(60000)
            with daemon.client() as client:
                refused = 0
                for turn in range(40):
                    bodies = [b"%d-%d-%d" % (number, turn, n) + body for n in range(20)]
                    client.send(b"".join(b"put 5 0 600 %d\r\n%s\r\n" % (len(body), body)
                                         for body in bodies))
                    for body in bodies:
                        word, *rest = client.reply().line.split()
                        if word == "INSERTED":
                            with lock:
                                promised[int(rest[0])] = zlib.crc32(body)
                        else:
                            equal(word, "OUT_OF_MEMORY")
                            refused += 1
                holds(refused, "nothing was refused")
        threads = [threading.Thread(target=hurry, args=(number,)) for number in range(4)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        daemon.kill()
        store.check(daemon)
        daemon.start()
        with daemon.client() as client:
            equal(int(client.stats()["current-jobs-ready"]), len(promised))
            while job := client.reserve():
                equal(zlib.crc32(job[1]), promised.pop(job[0]))
                equal(client.ask(f"delete {job[0]}").line, "DELETED")
        equal(promised, {})


@suite.together
def a_disk_that_another_program_fills_refuses_puts_and_nothing_else():
    with Mount(96) as mount, Twheelq(directory=os.path.join(mount.path, "store")) as daemon:
        daemon.start()
        with daemon.client() as client:
            jobs = [client.put(b"z" * 1000) for _ in range(300)]
            mount.fill()
            wait_for(lambda: client.ask("put 5 0 60 1", b"x").line == "OUT_OF_MEMORY",
                     "a refusal of a put")
            equal(client.ask("put-unique k 5 0 60 1", b"x").line, "OUT_OF_MEMORY")
            holds("puts are refused: the disk has no room" in daemon.said(), daemon.said())
            more = int(client.stats()["current-jobs-ready"]) - len(jobs)
            holds(more >= 0, f"{-more} jobs are lost")
            all_but_puts_goes_on(client, jobs)
            there = len(client.names("list-tubes"))
        daemon.kill()
        store.check(daemon)
        daemon.start()
        with daemon.client() as client:
            equal(len(client.names("list-tubes")) <= there, True)
            total = sum(int(client.stats()[f"current-jobs-{state}"])
                        for state in ("ready", "delayed", "buried"))
            equal(total, len(jobs) + more)
            equal(client.ask("put 5 0 60 1", b"x").line, "OUT_OF_MEMORY")
            mount.free()
            wait_for(lambda: client.ask("put 5 0 60 1", b"x").line.startswith("INSERTED"),
                     "space for puts")


def holds_its_reserve(daemon):
    """Is the space of the reserve taken?"""
    path = os.path.join(daemon.directory, "reserve")
    return os.path.exists(path) and os.stat(path).st_blocks * 512 >= 8 << 20


def put_and_delete_while_it_fills(daemon, mount, jobs):
    """Another program takes the last byte at any moment. Deletes are answered all the same."""
    filler = threading.Thread(target=mount.take)
    begin = random.randrange(100)
    with daemon.client() as client:
        for n in range(200):
            if n == begin:
                filler.start()
            size = random.choice((10, 1000, 20000))
            reply = client.ask(f"put 5 0 60 {size}", os.urandom(size)).line
            if reply.startswith("INSERTED"):
                jobs.add(int(reply.split()[1]))
            else:
                equal(reply, "OUT_OF_MEMORY")
            if jobs and random.random() < 0.6:
                equal(client.ask(f"delete {jobs.pop()}").line, "DELETED")
        filler.join()
        # The store may free what is deleted meanwhile: take that, too.
        wait_for(lambda: mount.take() or
                 client.ask("put 5 0 60 1", b"x").line == "OUT_OF_MEMORY",
                 "a refusal of a put")


def restarts_on_a_full_disk(daemon, mount, jobs):
    """Without its reserve it may have to end, by itself; with some space it serves again."""
    if random.random() < 0.5:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(daemon.directory, "reserve"))
        mount.fill()
    try:
        daemon.start(60)
    except NotUp as error:
        holds(f"ended with {EX_IOERR}" in str(error), error)
        mount.free()
        daemon.start(60)
    else:
        mount.free()
    with daemon.client() as client:
        # The last puts before the refusal were of one byte.
        there = int(client.stats()["current-jobs-ready"])
        holds(there >= len(jobs), f"{len(jobs) - there} jobs are lost")
        for number in jobs:
            equal(client.ask(f"peek {number}").line.split()[0], "FOUND")
        wait_for(lambda: client.ask("put 5 0 60 1", b"x").line.startswith("INSERTED"),
                 "space for puts")
    wait_for(lambda: holds_its_reserve(daemon), "the reserve is taken back")


@suite.together
def a_disk_that_another_program_fills_again_and_again_never_ends_it_by_a_signal():
    with Mount(64) as mount, Twheelq(directory=os.path.join(mount.path, "store")) as daemon:
        daemon.start()
        jobs = set()
        for _ in range(suite.options.fills):
            put_and_delete_while_it_fills(daemon, mount, jobs)
            equal(daemon.process.poll(), None)
            daemon.kill()
            restarts_on_a_full_disk(daemon, mount, jobs)
        note(f"{suite.options.fills} fills, {len(jobs)} jobs left")


@suite.together
def a_directory_that_cannot_be_written_is_refused_and_can_be_looked_at():
    with Mount(96) as mount, Twheelq(directory=os.path.join(mount.path, "store")) as daemon:
        daemon.start()
        with daemon.client() as client:
            number = client.put(b"x")
        daemon.stop()
        mount.option("ro")
        before = len(daemon.said())
        try:
            daemon.start(20)
        except NotUp as error:
            holds("ended with 0" not in str(error), error)
            holds(len(daemon.said()) > before, "it says nothing")
        else:
            raise AssertionError("it serves what it cannot write")
        store.check(daemon)
        equal(list(store.jobs_of(daemon)), [number])
        mount.option("rw")
        daemon.start()


@suite.together
def a_directory_of_something_else_is_refused_and_left_alone():
    with Twheelq() as daemon:
        os.mkdir(daemon.directory)
        path = os.path.join(daemon.directory, "precious")
        with open(path, "w", encoding="ascii") as precious:
            precious.write("mine")
        try:
            daemon.start(20)
        except NotUp as error:
            holds("ended with 0" not in str(error), error)
        else:
            # It may live beside it.
            holds(daemon.stop() == 0, "it did not end")
        with open(path, encoding="ascii") as precious:
            equal(precious.read(), "mine")


# --- damage -------------------------------------------------------------------------------

def fill(daemon, jobs=40):
    """A store with some of everything; the daemon is stopped. Bodies by id."""
    bodies = {}
    daemon.start()
    with daemon.client() as client:
        client.ask("use t")
        client.ask("watch t")
        for n in range(jobs):
            body = b"body-%d-" % n + b"0123456789" * (n % 7 * 10)
            bodies[client.put(body, n % 5, (0, 1000000)[n % 2])] = body
        for command in ("bury {} 5", "fail {} 3\r\nwhy", "release {} 5 5000"):
            client.ask(command.format(client.reserve()[0]))
        body = b"with a key"
        bodies[int(client.ask(f"put-unique k 5 100000 60 {len(body)}", body).line.split()[1])] \
            = body
        client.ask("every nightly 5 24h 9000000000000 60 7", b"nightly")
    daemon.stop()
    return bodies


def serves_right_things_only(daemon, bodies, promised, where):
    """It refuses to start, or each job that it has is one that was put, whole: which?"""
    try:
        daemon.start(30)
    except NotUp as error:
        holds("ended with 0" not in str(error), f"{where}: {error}")
        return "refused", 0
    missing = 0
    try:
        with daemon.client() as client:
            for number, body in bodies.items():
                reply = client.ask(f"peek {number}")
                if reply.body is None:
                    missing += number in promised
                else:
                    equal(reply.body, body, f"{where}: the body of {number}")
            client.ask("watch t")
            while job := client.reserve():
                equal(job[1], bodies.get(job[0]), f"{where}: reserved {job[0]}")
    except Gone:
        status = daemon.process.wait(30)
        daemon.process = None
        holds(status > 0, f"{where}: it ended with {status}: {daemon.said()[-1000:]}")
        return "ended", missing
    daemon.stop()
    return "served", missing


def store_files(directory):
    """What a store has on disk, but for what is only for people to read."""
    names = []
    for path, _, files in os.walk(directory):
        names += [os.path.join(path, name) for name in files
                  if not re.fullmatch(r"LOG(\.old.*)?|LOCK|lock|IDENTITY", name)
                  and os.path.getsize(os.path.join(path, name))]
    return sorted(names)


def damaged(origin, bodies, change, where, promised=None):
    """A copy of a store with a change: what check and serve make of it. All @bodies may be
    there; those of @promised, by default all, are missed if they are not."""
    with Twheelq() as daemon:
        shutil.copytree(origin, daemon.directory)
        change(daemon.directory)
        result = daemon.tool("check")
        holds(result.returncode >= 0, f"{where}: check ended with {result.returncode}")
        reported = result.returncode != 0
        verdict, missing = serves_right_things_only(
            daemon, bodies, bodies if promised is None else promised, where)
        told = reported or verdict != "served"
        holds(not missing or told, f"{where}: {missing} jobs are missing, and nobody says so")
        return reported, verdict, missing


def flip(path, offset, bit):
    """Change one bit of a file."""
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 1 << bit]))


def several_damages(changes, verdicts=("refused", "ended", "served")):
    """Try them all, a few at a time, and count what came of it. All jobs are there, or what
    was done to the store is reported; and it comes to one of @verdicts."""
    counts = {}
    lock = threading.Lock()
    errors = []
    left = list(changes)

    def lane():
        while True:
            with lock:
                if not left or errors:
                    return
                change = left.pop()
            try:
                reported, verdict, missing = damaged(*change)
                holds(verdict in verdicts, f"{change[3]}: {verdict}")
            except Exception as error:  # pylint: disable=broad-except
                errors.append(error)
                return
            with lock:
                key = f"{'reported' if reported else 'not noticed'} and {verdict}" + \
                    (", jobs missing" if missing else "")
                counts.setdefault(key, []).append(change[3])
    lanes = [threading.Thread(target=lane) for _ in range(2)]
    for one in lanes:
        one.start()
    for one in lanes:
        one.join()
    for key, places in sorted(counts.items()):
        files = {place.split(" of ")[-1].split(" cut ")[0] for place in places}
        note(f"{len(places)} {key}: {', '.join(sorted(files))}")
    if errors:
        raise errors[0]


@suite.test
def a_flipped_bit_is_reported_and_never_served():
    with Twheelq() as origin:
        bodies = fill(origin)
        # What a restart makes of its log is in files then.
        origin.start()
        origin.stop()
        changes = []
        for path in store_files(origin.directory):
            name, size = os.path.relpath(path, origin.directory), os.path.getsize(path)
            for offset in random.sample(range(size), min(suite.options.flips or size, size)):
                bit = random.randrange(8)
                changes.append((origin.directory, bodies,
                                lambda directory, name=name, offset=offset, bit=bit:
                                flip(os.path.join(directory, name), offset, bit),
                                f"bit {bit} of byte {offset} of {name}"))
        several_damages(changes)


def with_a_log(origin):
    """A store whose jobs are in its log: (bodies, the log's name, its size)."""
    bodies = {}
    origin.start()
    with origin.client() as client:
        client.ask("use t")
        for n in range(30):
            body = b"tail-%d" % n
            bodies[client.put(body)] = body
    origin.kill()
    logs = [path for path in store_files(origin.directory) if path.endswith(".log")]
    holds(logs, f"no log in {store_files(origin.directory)}")
    path = max(logs, key=os.path.getsize)
    return bodies, os.path.relpath(path, origin.directory), os.path.getsize(path)


def with_a_tail(origin, copy):
    """A store as it is on disk after 30 jobs, in the directory @copy, and its log as it was
    after ten more: (all bodies, those of the 30, the log's name, what it was)."""
    origin.start()
    with origin.client() as client:
        client.ask("use t")
        bodies = {client.put(b"before-%d" % n): b"before-%d" % n for n in range(30)}
        os.kill(origin.pid(), signal.SIGSTOP)
        shutil.copytree(origin.directory, copy)
        os.kill(origin.pid(), signal.SIGCONT)
        more = {client.put(b"after-%d" % n): b"after-%d" % n for n in range(10)}
    origin.kill()
    logs = [path for path in store_files(copy) if path.endswith(".log")]
    name = os.path.relpath(max(logs, key=os.path.getsize), copy)
    with open(os.path.join(origin.directory, name), "rb") as log:
        return bodies | more, bodies, name, log.read()


def overwrite(path, data):
    """Put this into a file."""
    with open(path, "wb") as file:
        file.write(data)


@suite.test
def a_torn_tail_is_cut_and_all_that_was_promised_is_served():
    with Twheelq() as origin:
        copy = os.path.join(origin.temporary, "copy")
        bodies, promised, name, log = with_a_tail(origin, copy)
        first = os.path.getsize(os.path.join(copy, name))
        holds(first < len(log), f"{name} has not grown")
        lengths = range(first, len(log))
        tails = [log[:length] for length in
                 random.sample(lengths, min(suite.options.cuts or len(lengths), len(lengths)))]
        # What a file system may have there instead, after it lost its power.
        tails += [log[:first] + rest for rest in
                  (bytes(7), bytes(5000), os.urandom(3), os.urandom(300))]
        several_damages([(copy, bodies, lambda directory, tail=tail:
                          overwrite(os.path.join(directory, name), tail),
                          f"{len(tail) - first} bytes behind what was promised of {name}",
                          promised) for tail in tails], {"served"})


@suite.together
def check_and_serve_say_that_a_tail_was_torn():
    with Twheelq() as origin:
        copy = os.path.join(origin.temporary, "copy")
        _, _, name, log = with_a_tail(origin, copy)
        first = os.path.getsize(os.path.join(copy, name))
        for length, torn in ((first, False), (first + 1, True), (len(log) - 1, True)):
            with Twheelq() as daemon:
                shutil.copytree(copy, daemon.directory)
                overwrite(os.path.join(daemon.directory, name), log[:length])
                result = daemon.tool("check")
                equal(result.returncode, 0, result.stderr)
                equal("torn" in result.stdout + result.stderr, torn, result.stderr)
                daemon.start()
                daemon.stop()
                equal("torn" in daemon.said(), torn, daemon.said())


@suite.test
def a_log_that_was_cut_is_never_passed_over():
    with Twheelq() as origin:
        bodies, name, size = with_a_log(origin)
        changes = [(origin.directory, bodies, lambda directory, length=length:
                    os.truncate(os.path.join(directory, name), length),
                    f"{name} cut to {length} of {size} bytes")
                   for length in random.sample(range(size), min(suite.options.cuts or size, size))]
        several_damages(changes)


@suite.together
def a_file_that_is_missing_is_reported_and_not_passed_over():
    with Twheelq() as origin:
        bodies = fill(origin)
        for path in store_files(origin.directory):
            name = os.path.relpath(path, origin.directory)
            damaged(origin.directory, bodies,
                    lambda directory, name=name: os.unlink(os.path.join(directory, name)),
                    f"without {name}")


@suite.together
def without_its_list_of_files_a_repair_keeps_the_jobs():
    with Twheelq() as origin:
        bodies = fill(origin)
        for path in store_files(origin.directory):
            name = os.path.relpath(path, origin.directory)
            if not name.startswith(("db/CURRENT", "db/MANIFEST")):
                continue
            with Twheelq() as daemon:
                shutil.copytree(origin.directory, daemon.directory)
                os.unlink(os.path.join(daemon.directory, name))
                holds("--repair" in daemon.tool("check").stdout, f"{name}: what to do?")
                daemon.options = ["--repair"]
                daemon.start()
                with daemon.client() as client:
                    for number, body in bodies.items():
                        equal(client.ask(f"peek {number}").body, body)


def with_a_long_log(daemon):
    """A log of several blocks: its path, and the ids of its jobs."""
    daemon.start()
    with daemon.client() as client:
        jobs = [client.put(os.urandom(2000)) for _ in range(60)]
    daemon.kill()
    logs = [path for path in store_files(daemon.directory) if path.endswith(".log")]
    return max(logs, key=os.path.getsize), jobs


@suite.together
def a_repair_says_what_is_lost_and_no_id_is_given_twice():
    for cut in (False, True):
        with Twheelq() as daemon:
            log, jobs = with_a_long_log(daemon)
            if cut:
                os.truncate(log, 40000)
            else:
                # The header at the begin of its second block.
                flip(log, 32768 + 6, 2)
            daemon.options = ["--repair"]
            daemon.start()
            said = daemon.said()
            holds("more jobs may be lost" in said, said)
            equal("the changes after number" in said, cut, said)
            with daemon.client() as client:
                holds(client.put(b"new") > jobs[-1] + (1 << 40) - 100, "an id is given twice")


@suite.together
def check_says_that_it_did_not_see_what_is_behind_a_damaged_block():
    with Twheelq() as daemon:
        with_a_long_log(daemon)
        daemon.start()
        daemon.stop()
        daemon.start()
        daemon.stop()
        tables = [path for path in store_files(daemon.directory) if path.endswith(".sst")]
        table = max(tables, key=os.path.getsize)
        flip(table, os.path.getsize(table) // 2, 0)
        result = daemon.tool("check")
        holds(result.returncode, "it is not noticed")
        holds("was not checked" in result.stdout, result.stdout)
        holds("the indexes have" not in result.stdout, result.stdout)
        holds("bodies for" not in result.stdout, result.stdout)


@suite.together
def a_damaged_marker_says_what_it_has_to_be():
    with Twheelq() as daemon:
        daemon.start()
        daemon.stop()
        marker = os.path.join(daemon.directory, "twheelq")
        flip(marker, 3, 1)
        result = daemon.tool("check")
        holds(result.returncode, "it was read")
        line = re.search('"(twheelq store [0-9]+)"', result.stderr)
        holds(line, result.stderr)
        overwrite(marker, line.group(1).encode() + b"\n")
        store.check(daemon)


def is_running(number):
    """Is there such a process, and not only its status?"""
    try:
        with open(f"/proc/{number}/stat", encoding="ascii") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@suite.together
def a_repair_ends_by_a_signal_and_can_be_done_again():
    need_strace()
    with Twheelq() as daemon:
        log, _ = with_a_long_log(daemon)
        # The header at the begin of the second block of the log.
        flip(log, 32768 + 6, 2)
        daemon.options = ["--repair"]
        daemon.before = strace("renameat:delay_enter=1000000000")
        daemon.launch()
        wait_for(lambda: "repairing" in daemon.said(), "the begin of the repair")
        number = daemon.pid()
        os.kill(number, signal.SIGTERM)
        wait_for(lambda: "stopped during the repair" in daemon.said(), "the end of the repair")
        # strace does not let go of a call that it delays.
        daemon.kill()
        wait_for(lambda: not is_running(number), "the end of the daemon")
        daemon.before = []
        daemon.start()
        daemon.stop()
        holds(" jobs are kept" in daemon.said(), daemon.said())


if __name__ == "__main__":
    suite.main(kills=(50, "kills at random moments"),
               step=(7, "of the system calls, kill at each so-manieth"),
               flips=(6, "flipped bits in each file, 0: one in each byte"),
               cuts=(12, "lengths to cut a tail to, 0: each"),
               fills=(3, "times that another program fills the disk"))
