#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Backups of a running daemon: what is in them, who waits, and what is left of a half one."""

import paths  # pylint: disable=unused-import,wrong-import-order
import json
import os
import random
import shutil
import signal
import subprocess
import threading
import time

import store
from daemon import TWHEELQ, Twheelq
from durable import Mount, need_strace, strace
from tap import Suite, equal, holds, wait_for

suite = Suite(seconds=1500)

IDS_APART = 1 << 40


def directory(daemon, name):
    """Where a backup is."""
    return os.path.join(daemon.directory, "backups", name)


def names(daemon):
    """What is in backups/."""
    where = directory(daemon, "")
    return sorted(os.listdir(where)) if os.path.isdir(where) else []


def run(*words, stdin=None, env=None):
    """twheelq WORDS...: what it comes to."""
    return subprocess.run([TWHEELQ, *words], input=stdin, capture_output=True, check=False,
                          timeout=1000, env=env)


def put(client, body, tube="default"):
    """Put a job; its id."""
    client.ask(f"use {tube}")
    reply = client.ask(f"put 5 1h 60 {len(body)}", body).line
    holds(reply.startswith("INSERTED "), reply)
    return int(reply.split()[1])


class Churn(threading.Thread):
    """A client that puts and deletes all the time, and remembers what was sent and confirmed,
    each with its moment."""

    def __init__(self, daemon, number):
        super().__init__(daemon=True)
        self.client = daemon.client()
        self.number = number
        self.put = {}
        self.delete_sent = {}
        self.deleted = {}
        self.over = threading.Event()
        self.error = None

    def run(self):
        try:
            while not self.over.is_set():
                self.step()
        except Exception as error:  # pylint: disable=broad-except
            self.error = error
        self.client.close()

    def step(self):
        """Put one, and delete one now and then."""
        body = f"{self.number} {len(self.put)} ".encode() + os.urandom(random.randrange(2000))
        job = put(self.client, body)
        self.put[job] = (time.monotonic(), body)
        if random.random() < 0.6:
            old = random.choice(list(self.put))
            if old not in self.delete_sent:
                self.delete_sent[old] = time.monotonic()
                equal(self.client.ask(f"delete {old}").line, "DELETED", "delete")
                self.deleted[old] = time.monotonic()

    def compare(self, found, began, ended):
        """What must be in a backup that was made from @began to @ended, and what must not. The
        client may go on meanwhile: so of a copy."""
        for job, (confirmed, body) in self.put.copy().items():
            if confirmed < began and self.delete_sent.get(job, ended) >= ended:
                holds(job in found, f"job {job} is not in the backup")
            if self.deleted.get(job, began) < began:
                holds(job not in found, f"job {job} was deleted before, and is in the backup")
            if job in found:
                equal(found[job], body, f"the body of job {job}")


class Churns:
    """Some of them."""

    def __init__(self, daemon, count=4):
        self.all = [Churn(daemon, number) for number in range(count)]

    def __enter__(self):
        for one in self.all:
            one.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """End all of them."""
        for one in self.all:
            one.over.set()
        for one in self.all:
            one.join()

    def wait(self, more):
        """Until each has put so many more."""
        goals = [(one, len(one.put) + more) for one in self.all]
        wait_for(lambda: all(one.error or len(one.put) >= goal for one, goal in goals), "puts")

    def compare(self, found, began, ended):
        """The backup has what it must, and no id that nobody knows."""
        for one in self.all:
            if one.error:
                raise one.error
            one.compare(found, began, ended)
        # A client may not have noted yet what was confirmed last.
        wait_for(lambda: not set(found) - {job for one in self.all for job in one.put.copy()},
                 "each job of the backup to be one that was put")


def jobs_in(path):
    """The lines of jobs of twheelq dump."""
    result = run("dump", path)
    equal(result.returncode, 0, result.stderr)
    return [line for line in map(json.loads, result.stdout.splitlines()) if "id" in line]


def bodies_in(path):
    """Serve a backup: bodies by id, as clients see them. Its new ids are far away."""
    jobs = [line["id"] for line in jobs_in(path)]
    with Twheelq(directory=path) as daemon:
        daemon.start()
        with daemon.client() as client:
            known = {job: client.ask(f"peek {job}").body for job in jobs}
            new = put(client, b"new")
            holds(new >= max(jobs, default=0) + IDS_APART, f"the next id is {new}")
        equal(daemon.restart().said().count("this is a backup"), 1, "times that ids are skipped")
        equal(daemon.stop(), 0, "the end of the daemon of the backup")
        store.check(daemon)
    return known


# --- the command backup -------------------------------------------------------------------

@suite.test
def a_backup_is_a_store_with_all_that_was_confirmed_before():
    with Twheelq() as daemon:
        daemon.start()
        with Churns(daemon) as churns, daemon.client() as client:
            for number in range(4):
                churns.wait(100)
                began = time.monotonic()
                equal(client.ask(f"backup b{number}").line, "BACKUP")
                ended = time.monotonic()
                churns.compare(bodies_in(directory(daemon, f"b{number}")), began, ended)
            churns.stop()
        equal(daemon.stop(), 0)
        store.check(daemon)


@suite.test
def a_backup_has_policies_keys_and_all_states():
    with Twheelq() as daemon:
        daemon.start()
        with daemon.client() as client:
            for line, body in (("policy t 3 1s 2 1h 0 dead", None), ("use t", None),
                               ("watch t", None), ("put 1 0 60 1", b"r"), ("put 2 1h 60 1", b"d"),
                               ("put-unique key 0 2h 60 1", b"u"), ("put-at 0 9000000000000 60 1",
                                                                     b"w"), ("reserve", None)):
                client.ask(line, body)
            equal(client.ask("bury 1 7").line, "BURIED")
            equal(client.ask("backup all").line, "BACKUP")
        daemon.stop()
        own, copy = run("dump", daemon.directory), run("dump", directory(daemon, "all"))
        equal(copy.stdout, own.stdout, "the dump of the backup")
        holds(len(own.stdout.splitlines()) >= 5, own.stdout)


@suite.test
def a_name_is_taken_once_and_is_no_path():
    with Twheelq() as daemon:
        daemon.start()
        with daemon.client() as client:
            equal(client.ask("backup one").line, "BACKUP")
            equal(client.ask("backup one").line, "EXISTS")
            for wrong in ("..", ".", ".new", "a/b", "/tmp/x", "a b", "-a", "a" * 201, "x\x01"):
                equal(client.ask(f"backup {wrong}").line, "BAD_FORMAT", wrong)
            equal(client.ask("backup").line, "UNKNOWN_COMMAND")
            equal(client.ask("backup " + "a" * 200).line, "BACKUP")
            with open(directory(daemon, "file"), "w", encoding="ascii"):
                equal(client.ask("backup file").line, "EXISTS")
        equal(names(daemon), ["a" * 200, "file", "one"])


@suite.test
def several_at_once_are_made_one_after_the_other():
    with Twheelq() as daemon:
        daemon.start()
        clients = [daemon.client() for _ in range(6)]
        for number, client in enumerate(clients):
            client.tell(f"backup {'same' if number < 2 else f'b{number}'}")
        # One hangs up: whether its backup is made is open, but nothing waits for it.
        clients.pop().close()
        seen = [client.reply().line for client in clients]
        equal(seen, ["BACKUP", "EXISTS", "BACKUP", "BACKUP", "BACKUP"])
        for client in clients:
            equal(client.ask("list-tube-used").line, "USING default")
            client.close()
        for name in ("same", "b2", "b3", "b4"):
            equal(run("check", directory(daemon, name)).returncode, 0, name)


@suite.test
def a_client_that_waits_for_a_backup_holds_up_nobody():
    need_strace()
    # Each link of a table takes 300 ms: others are answered in between.
    with Twheelq(before=strace("link,linkat:delay_enter=300000")) as daemon:
        daemon.start()
        with daemon.client() as one, daemon.client() as other:
            put(other, b"1")
            one.tell("backup slow")
            one.tell("list-tube-used")
            answered = 0
            while one.silent(0.01):
                put(other, b"x")
                answered += 1
            equal([one.reply().line, one.reply().line], ["BACKUP", "USING default"])
            holds(answered > 3, f"{answered} puts were answered meanwhile")


@suite.test
def the_daemon_ends_in_the_middle_of_a_backup():
    with Twheelq() as daemon:
        for number in range(8):
            with daemon.start().client() as client:
                job = put(client, os.urandom(60000))
                client.tell(f"backup e{number}")
                equal(daemon.stop(), 0)
            for name in names(daemon):
                equal(run("check", directory(daemon, name)).returncode, 0, name)
            if f"e{number}" in names(daemon):
                holds(job in [line["id"] for line in jobs_in(directory(daemon, f"e{number}"))],
                      f"job {job} is not in the backup")
        store.check(daemon)


# --- twheelq backup -----------------------------------------------------------------------

@suite.test
def twheelq_backup_copies_what_was_confirmed_while_clients_go_on():
    with Twheelq() as daemon:
        daemon.start()
        target = os.path.join(daemon.temporary, "copy")
        with Churns(daemon) as churns:
            churns.wait(200)
            began = time.monotonic()
            result = run("backup", "--connect", daemon.address, "--json", target)
            ended = time.monotonic()
            equal(result.returncode, 0, result.stderr)
            churns.wait(50)
            churns.stop()
            said = json.loads(result.stdout)
            equal(said["directory"], target)
            holds(said["bytes"] > 1000, said)
            equal(names(daemon), [])
            jobs = jobs_in(target)
            equal(said["jobs"], len(jobs), "jobs")
            # What another copy of it says later is the same.
            churns.compare(bodies_in(target), began, ended)
        daemon.stop()
        store.check(daemon)


@suite.test
def twheelq_backup_says_jobs_and_bytes_and_refuses_what_is_not_empty():
    with Twheelq() as daemon:
        with daemon.start().client() as client:
            put(client, b"1")
        target = os.path.join(daemon.temporary, "copy")
        os.mkdir(target)
        result = run("backup", "-a", daemon.address, target)
        holds(result.stdout.startswith(f"{target} has a backup: 1 job, ".encode()), result.stdout)
        before = sorted(os.listdir(target))
        result = run("backup", "-a", daemon.address, target)
        equal((result.returncode, result.stdout), (1, b""))
        equal(result.stderr.decode(), f"twheelq: {target} is not empty\n")
        equal(sorted(os.listdir(target)), before)
        result = run("backup", "-a", daemon.address, os.path.join(target, "no", "dir"))
        equal(result.returncode, 1, result.stderr)
        for words in ([], [""], ["a", "b"], ["--nonsense", "a"]):
            equal(run("backup", "-a", daemon.address, *words).returncode, 2, words)
        equal(names(daemon), [])


@suite.test
def a_stopped_copy_leaves_nothing_and_is_no_store():
    need_strace()
    with Twheelq() as daemon:
        with daemon.start().client() as client:
            put(client, b"1")
        target = os.path.join(daemon.temporary, "copy")
        for inject, status in (("fsync:signal=TERM:when=1", 1), ("fsync:error=ENOSPC:when=2", 74),
                               ("mkdirat:error=ENOSPC", 74)):
            result = subprocess.run([*strace(inject), TWHEELQ, "backup", "-a", daemon.address,
                                     target], capture_output=True, check=False, timeout=1000)
            equal(result.returncode, status, f"{inject}: {result.stderr}")
            holds(b"no backup in" in result.stderr, result.stderr)
            equal(os.listdir(target), [], inject)
            equal(names(daemon), [], inject)
        # Killed before the last file: what is there is no store.
        result = subprocess.run([*strace("fsync:signal=KILL:when=3"), TWHEELQ, "backup", "-a",
                                 daemon.address, target], capture_output=True, check=False,
                                timeout=1000)
        holds(os.listdir(target) and "twheelq" not in os.listdir(target), os.listdir(target))
        equal(run("serve", "--dir", target, "--listen", "127.0.0.1:0").returncode, 1)


# --- what goes wrong ----------------------------------------------------------------------

@suite.test
def a_backup_of_a_full_disk_is_refused():
    with Mount(64) as mount, Twheelq(directory=os.path.join(mount.path, "store")) as daemon:
        daemon.start()
        with daemon.client() as client:
            job = put(client, b"1")
            mount.fill()
            equal(client.ask("backup full").line, "OUT_OF_MEMORY")
            equal(names(daemon), [])
            equal(client.ask(f"delete {job}").line, "DELETED")
            mount.free()
            wait_for(lambda: client.ask("backup free").line == "BACKUP", "there is room again")
        equal(names(daemon), ["free"])
        daemon.stop()


@suite.test
def a_backup_that_finds_no_space_leaves_nothing():
    need_strace()
    for call in ("link", "mkdirat", "renameat"):
        with Twheelq() as daemon:
            with daemon.start().client() as client:
                job = put(client, b"1")
            daemon.stop()
            daemon.before = strace(f"{call}:error=ENOSPC")
            with daemon.start().client() as client:
                equal(client.ask("backup none").line, "OUT_OF_MEMORY", call)
                equal(names(daemon), [], call)
                equal(client.ask(f"peek {job}").body, b"1", call)
                put(client, b"2")
            os.kill(daemon.pid(), signal.SIGTERM)
            equal(daemon.process.wait(), 0)
            daemon.process = None
            store.check(daemon)


@suite.test
def a_half_backup_of_a_crash_is_removed_at_the_next_start():
    with Twheelq() as daemon:
        daemon.start()
        for number in range(12):
            with daemon.client() as client:
                job = put(client, os.urandom(60000))
                client.tell(f"backup k{number}")
                time.sleep(random.random() * 0.1)
                daemon.kill()
            left = directory(daemon, ".new")
            os.makedirs(os.path.join(left, "db"), exist_ok=True)
            with open(os.path.join(left, "db", "half"), "w", encoding="ascii"):
                daemon.start()
            holds(all(not name.startswith(".") for name in names(daemon)), names(daemon))
            if f"k{number}" in names(daemon):
                equal(run("check", directory(daemon, f"k{number}")).returncode, 0)
                holds(job in [json.loads(line).get("id") for line in
                              run("dump", directory(daemon, f"k{number}")).stdout.splitlines()],
                      f"job {job} is not in the backup")
        daemon.stop()
        store.check(daemon)


@suite.test
def backups_disturb_neither_check_nor_repair_nor_the_notice_of_removal():
    with Twheelq(options=["--repair"]) as daemon:
        daemon.start()
        with daemon.client() as client:
            job = put(client, b"kept")
            equal(client.ask("backup b").line, "BACKUP")
        daemon.stop()
        store.check(daemon)
        # Damage that makes it repair.
        with open(os.path.join(daemon.directory, "db", "CURRENT"), "w", encoding="ascii") as file:
            file.write("nonsense\n")
        daemon.start()
        holds("repair" in daemon.said(), daemon.said())
        equal(names(daemon), ["b"])
        equal(bodies_in(directory(daemon, "b"))[job], b"kept")
        with daemon.client() as client:
            shutil.rmtree(daemon.directory)
            client.tell("put 0 0 60 1", b"x")
            wait_for(lambda: daemon.process.poll() is not None, "it notices the removal")
            daemon.process = None


if __name__ == "__main__":
    suite.main()
