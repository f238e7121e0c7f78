# SPDX-License-Identifier: GPL-2.0
"""A ledger of what a daemon has promised, and clients that make it promise a lot.

For each job the ledger has the state that it was in when nothing was under way about it,
and the commands since then: what each makes of a state, whether it was answered, and whether
it was done. From these follow all states in which the job may be found after the daemon was
killed: those that were done are in all of them; one that was not answered is in some; and
those of several clients that were under way at the same time come in any order. A job is
known by its id, or by its body while the answer to its put is not there.

Bodies are never used twice. A client sends a few commands at a time, each about another
job, and waits for all of the answers; several clients share a tube and meet each other's
jobs there. No TTR runs out while this is at work.
"""

import collections
import itertools
import random
import selectors
import time
import zlib

from client import Client, Gone

# --- what may be found --------------------------------------------------------------------

# @place is "ready", "delayed", "buried" or "gone"; a delayed one is due between @due_ms and
# @due_to_ms of the wall clock, and may be found ready after that.
class State(collections.namedtuple(
        "State", "place tube pri body key due_ms due_to_ms attempts")):
    """Where a job is."""

    __slots__ = ()

    def __repr__(self):
        body = self.body if not self.body or len(self.body) < 40 else self.body[:40] + b"..."
        return (f"{self.place} in {self.tube} pri {self.pri} key {self.key} "
                f"due {self.due_ms:.0f}-{self.due_to_ms:.0f} attempts {self.attempts} {body}")


GONE = State("gone", None, None, None, None, 0, 0, 0)
# What @due_ms may be off: it is rounded to milliseconds on its way.
ROUNDED_MS = 2

# The tube whose policy is set, with its attempts and the shortest and longest backoff. There a
# release is a failed attempt.
POLICY_TUBE = "shared"
POLICY_ATTEMPTS = 3
POLICY = f"policy {POLICY_TUBE} {POLICY_ATTEMPTS} 20ms 2 40ms 10"
BACKOFF_MS = (18, 44)


def ready(tube, pri, body, key=None, attempts=0):
    """A job that is ready."""
    return State("ready", tube, pri, body, key, 0, 0, attempts)


def delayed(base, pri, delay_ms, sent_ms, answered_ms):
    """The job @base when it has been delayed by a command of that time."""
    return base._replace(place="delayed", pri=pri, due_ms=sent_ms + delay_ms - ROUNDED_MS,
                         due_to_ms=answered_ms + delay_ms + ROUNDED_MS)


def now_ms():
    """The wall clock's time."""
    return time.time() * 1000


# --- what commands make of a state ---------------------------------------------------------
#
# Each is a function of when it was answered, or FAR_MS if it was not, that gives one from a
# state to those that may come of it: none, if there it cannot be done.

FAR_MS = 1e14


def is_put(state):
    """Can it be reserved and then released, or rescheduled?"""
    return state.place in ("ready", "delayed")


def put_of(base, delay_ms):
    """A job that was not there is @base, or that with a delay."""
    sent_ms = now_ms()
    return lambda answered_ms: lambda state: {
        delayed(base, base.pri, delay_ms, sent_ms, answered_ms)
        if delay_ms else base} if state == GONE else set()


def replaced_by(pri, body, delay_ms):
    """A job of a key is as if it were put anew."""
    sent_ms = now_ms()

    def make(state, answered_ms):
        if not state.key:
            return set()
        base = state._replace(place="ready", pri=pri, body=body, due_ms=0, due_to_ms=0,
                              attempts=0)
        return {delayed(base, base.pri, delay_ms, sent_ms, answered_ms) if delay_ms else base}
    return lambda answered_ms: lambda state: make(state, answered_ms)


def deleted(_=None):
    """It is gone."""
    return lambda state: {GONE} - {state}


def released(pri, delay_ms):
    """It has another priority, and a delay or none; or an attempt has failed."""
    sent_ms = now_ms()

    def attempted(base, answered_ms):
        if base.attempts + 1 == POLICY_ATTEMPTS:
            return dead(base)
        least_ms, most_ms = (delay_ms, delay_ms) if delay_ms else BACKOFF_MS
        return {delayed(base._replace(attempts=base.attempts + 1), pri, least_ms, sent_ms,
                        answered_ms + most_ms - least_ms)}

    def make(state, answered_ms):
        if not is_put(state):
            return set()
        base = state._replace(place="ready", pri=pri, due_ms=0, due_to_ms=0)
        if state.tube == POLICY_TUBE:
            return attempted(base, answered_ms)
        return {delayed(base, pri, delay_ms, sent_ms, answered_ms) if delay_ms else base}
    return lambda answered_ms: lambda state: make(state, answered_ms)


def buried(pri):
    """It is put aside."""
    return lambda _: lambda state: {state._replace(
        place="buried", pri=pri, due_ms=0, due_to_ms=0)} if is_put(state) else set()


def rescheduled(delay_ms):
    """It has another time."""
    sent_ms = now_ms()
    return lambda answered_ms: lambda state: {
        delayed(state, state.pri, delay_ms, sent_ms, answered_ms)} if is_put(state) else set()


def kicked(_=None):
    """It is ready; a dead one in the tube where it came from, as if it was new."""
    def make(state):
        if state.place not in ("buried", "delayed"):
            return set()
        base = state._replace(place="ready", due_ms=0, due_to_ms=0)
        if state.tube.endswith(".dead"):
            base = base._replace(tube=state.tube.removesuffix(".dead"), attempts=0)
        return {base}
    return make


def dead(state):
    """It has failed for the last time."""
    return {state._replace(place="buried", tube=f"{state.tube}.dead", key=None, due_ms=0,
                           due_to_ms=0, attempts=state.attempts + 1)} if is_put(state) else set()


def retried(sent_ms):
    """It has failed, and is delayed."""
    return lambda delay_ms, answered_ms: lambda state: {delayed(
        state._replace(attempts=state.attempts + 1), state.pri, delay_ms, sent_ms,
        answered_ms)} if is_put(state) else set()


# --- the ledger -----------------------------------------------------------------------------

def fits(state, found):
    """Is what was found, which is another State or None, what @state says?"""
    if found is None or state.place == "gone":
        return found is None and state.place == "gone"
    if (state.tube, state.pri, state.body, state.key) != \
            (found.tube, found.pri, found.body, found.key):
        return False
    if found.attempts != state.attempts:
        return False
    if state.place == "delayed":
        if found.place == "ready":
            return now_ms() >= state.due_ms
        # One that was reserved when it was due is still delayed on disk.
        return found.place == "delayed" and state.due_ms <= found.due_ms <= state.due_to_ms
    if state.place == "ready" and found.place == "delayed":
        return found.due_ms <= now_ms()
    return state.place == found.place


class Broken(Exception):
    """A promise was broken; which."""


class Op:
    """A command about a job. @make(state) are the states that it may make of one, none if it
    cannot be done there. @sent and @answered number what happened; @done, what the answer
    was. @loose: another client has seen the job since then, maybe after this was done."""

    # pylint: disable=too-few-public-methods
    def __init__(self, command, make, sent):
        self.command = command
        self.make = make
        self.sent = sent
        self.answered = None
        self.done = None
        self.loose = False

    def before(self, other):
        """Was it over before the other one began?"""
        return self.answered is not None and self.answered < other.sent

    def must(self):
        """Is it in every order?"""
        return self.done and not self.loose


class Job:
    """What is known of a job: @states in which it may have been before @ops."""

    events = itertools.count()

    def __init__(self, states):
        self.id = None
        self.states = set(states)
        self.ops = []
        self.holder = None
        self.history = collections.deque(maxlen=30)

    def note(self, text):
        """What happened to it, for who has to find out what went wrong."""
        self.history.append(f"{now_ms():.0f} {text}")

    def send(self, command, make):
        """A command about it goes out."""
        self.note(f"sent: {command.line}")
        self.ops.append(Op(command, make, next(self.events)))

    def answered(self, command, done, make=None):
        """It has been answered: it was done, or not; and now more may be known of what it
        has made."""
        self.note(f"answered, {'done' if done else 'not done'}: {command.line}")
        op = next(op for op in self.ops if op.command is command)
        op.answered, op.done, op.make = next(self.events), done, make or op.make
        if all(op.done is not None for op in self.ops):
            self.states, self.ops = self.may_be(), []

    def orders(self, states, left, found):
        """All that may come of @states by the ops that are left, in any order in which they
        may have been done; those without which it cannot be are all in it."""
        if not any(op.must() for op in left):
            found |= states
        for op in left:
            if any(other.before(op) and other.must() for other in left):
                continue
            if new := set().union(*map(op.make, states)):
                self.orders(new, [other for other in left if other is not op], found)

    def may_be(self):
        """All states in which it may be found now."""
        found = set()
        self.orders(self.states, [op for op in self.ops if op.done is not False], found)
        return found

    def reserved(self, body):
        """A client has got it, with this body: so it was ready, and was not deleted."""
        self.note("reserved")
        states = {state for state in self.may_be()
                  if state.body == body and state.place in ("ready", "delayed")}
        if not states:
            raise Broken(f"job {self.id} was given out, with the body {body[:80]}; it may be "
                         f"{self.may_be()}\n" + "\n".join(self.history))
        self.states = states
        self.ops = [op for op in self.ops if op.done is None]
        for op in self.ops:
            op.loose = True

    def state(self):
        """Its state, if that is known; else None."""
        return next(iter(self.states)) if len(self.states) == 1 and not self.ops else None


class Ledger:
    """All jobs of a store."""

    def __init__(self, name):
        self.name = name
        self.jobs = {}
        self.new = {}
        self.keys = {}
        self.count = 0
        self.largest = 0
        self.promises = 0

    def body(self):
        """A body that there never was; its end shows that it is whole."""
        self.count += 1
        text = f"{self.name}-{self.count}-".encode()
        text += bytes(random.choices(b"abcdefghijklmnop", k=random.choice((0, 5, 100, 2000))))
        return text + b"%08x" % zlib.crc32(text)

    def inserted(self, job, number):
        """The id of a new job is known."""
        if number in self.jobs or number <= self.largest:
            raise Broken(f"the id {number} was given out before; {self.largest} was the largest")
        job.id = number
        self.jobs[number] = job

    def reserved(self, number, body):
        """A client got this job: it is one that may be there. The job."""
        job = self.jobs.get(number)
        if job is None:
            job = next((job for job in self.new.values()
                        if any(state.body == body for state in job.may_be())), None)
            if job is None:
                raise Broken(f"job {number} was given out, which nobody has put: {body[:80]}")
            self.inserted(job, number)
        job.reserved(body)
        return job

    def settle(self, found):
        """The daemon is dead, and this is what its store has: State by id. Broken, or all is
        as it may be; then what was found is what the ledger goes on with."""
        left = dict(found)
        for number, job in self.jobs.items():
            self.check(number, job, left.pop(number, None))
        by_body = {state.body: number for number, state in left.items()}
        for job in self.new.values():
            if job.id is None:
                bodies = {state.body for state in job.may_be()} - {None}
                numbers = [by_body[body] for body in bodies if body in by_body]
                if numbers:
                    self.inserted(job, numbers[0])
                    self.check(numbers[0], job, left.pop(numbers[0]))
        if left:
            number, state = next(iter(left.items()))
            raise Broken(f"{len(left)} jobs that nobody has put, such as {number}: {state}")
        self.go_on_with(found)

    def check(self, number, job, found):
        """A job is as it may be."""
        if not any(fits(state, found) for state in job.may_be()):
            lost = "is lost" if found is None else f"is {found}"
            raise Broken(f"job {number} {lost}; it may be {job.may_be()}\n" +
                         "\n".join(job.history))

    def go_on_with(self, found):
        """From here on, this is all there is."""
        self.largest = max([self.largest, *self.jobs])
        self.jobs = {}
        self.new = {}
        self.keys = {}
        for number, state in found.items():
            job = self.jobs[number] = Job([state])
            job.id = number
            if state.key:
                self.keys[state.tube, state.key] = job


# --- clients that work --------------------------------------------------------------------

class Command:
    """A command that was sent. @done gets its reply."""

    def __init__(self, line, body, done):
        self.data = line.encode() + b"\r\n" + (b"" if body is None else body + b"\r\n")
        self.line = line
        self.done = done


class Worker:
    """A client that puts, reserves and all the rest, at random."""

    def __init__(self, ledger, address, number):
        self.ledger = ledger
        self.number = number
        self.client = Client(address)
        self.client.sock.settimeout(None)
        self.tube = f"own-{number}"
        self.kick_tube = f"kick-{number}"
        self.used = None
        self.held = {}
        self.waiting = collections.deque()
        self.busy = set()
        for line in (f"watch {self.tube}", "watch shared", "ignore default",
                     POLICY):
            self.client.ask(line)
        self.client.sock.setblocking(False)

    # --- one batch --------------------------------------------------------------------

    def work(self):
        """Send the next few commands."""
        self.busy = set()
        commands = []
        for _ in range(random.choice((1, 1, 2, 5, 20))):
            make = random.choices(*zip(*self.kinds()))[0]
            commands += make() or []
        if not commands:
            commands = self.put()
        self.waiting.extend(commands)
        self.client.sock.setblocking(True)
        self.client.sock.settimeout(300)
        self.client.send(b"".join(command.data for command in commands))
        self.client.sock.setblocking(False)

    def kinds(self):
        """What to do next, and how often; the store is to stay small."""
        many = len(self.ledger.jobs) > 300
        return [(self.put, 2 if many else 8), (self.put_unique, 4), (self.reserve, 8),
                (self.delete_held, 8), (self.release, 4), (self.bury, 3), (self.fail, 4),
                (self.delete_any, 6 if many else 1), (self.reschedule, 2),
                (self.kick_job, 3), (self.kick, 2), (self.use, 1), (self.peek, 1)]

    def read(self):
        """Take the replies that have come. Gone at the end."""
        try:
            while data := self.client.sock.recv(1 << 18):
                self.client.buffer.add(data)
        except BlockingIOError:
            data = None
        except ConnectionError as error:
            raise Gone(str(error)) from error
        while self.waiting and (reply := self.client.buffer.take()) is not None:
            self.waiting.popleft().done(reply)
        if data == b"":
            raise Gone("the end")

    def refused(self, reply, command):
        """A reply was an error that is none of those that may come."""
        raise Broken(f"{command}: {reply.line}")

    # --- the commands; each returns a list of what is to be sent ----------------------

    def use(self):
        self.used = None
        return []

    def in_tube(self):
        """Use a tube for what follows: (tube, commands that see to it)."""
        tube = random.choice((self.tube, "shared"))
        if tube == self.used:
            return tube, []
        self.used = tube
        return tube, [Command(f"use {tube}", None, lambda reply: None)]

    def put(self):
        tube, commands = self.in_tube()
        return commands + self.put_into(tube, random.choice((0, 0, 5, 1000000)))

    def put_into(self, tube, delay_ms):
        """Put a job into the tube that is used."""
        body, pri = self.ledger.body(), random.randrange(3)
        job = Job([GONE])
        make = put_of(ready(tube, pri, body), delay_ms)
        line = f"put {pri} {delay_ms}ms 1000 {len(body)}"
        command = Command(line, body, None)
        self.ledger.new[body] = job
        job.send(command, make(FAR_MS))

        def done(reply):
            word, *rest = reply.line.split()
            if word != "INSERTED":
                self.refused(reply, line)
            self.inserted(job, int(rest[0]), command, body, make(now_ms()))
        command.done = done
        return [command]

    def inserted(self, job, number, command, body, make):
        """A put was answered; another client may have met its job before."""
        self.ledger.promises += 1
        self.ledger.new.pop(body, None)
        if job.id is None:
            self.ledger.inserted(job, number)
        elif job.id != number:
            raise Broken(f"{command.line} made {number}, and was reserved as {job.id}")
        job.answered(command, True, make)

    def put_unique(self):
        """Keys are of the client; its jobs may be taken by others."""
        tube, commands = self.in_tube()
        key = f"key-{self.number}-{random.randrange(5)}"
        if (tube, key) in self.busy:
            return commands
        self.busy.add((tube, key))
        old = self.ledger.keys.get((tube, key))
        body, pri = self.ledger.body(), random.randrange(3)
        delay_ms = random.choice((0, 1000000))
        make = put_of(ready(tube, pri, body, key), delay_ms)
        replace = replaced_by(pri, body, delay_ms)
        line = f"put-unique {key} {pri} {delay_ms}ms 1000 {len(body)}"
        command = Command(line, body, None)
        new = self.ledger.new[body] = Job([GONE])
        new.send(command, make(FAR_MS))
        if old:
            old.send(command, replace(FAR_MS))

        def done(reply):
            word, number = reply.line.split()
            number = int(number)
            if word not in ("INSERTED", "REPLACED", "RESERVED"):
                self.refused(reply, line)
            if word != "INSERTED" and (not old or old.id != number):
                raise Broken(f"{line} is {reply.line}, which had not this key")
            if old:
                old.answered(command, word == "REPLACED", replace(now_ms()))
            if word == "INSERTED":
                if old and all((state.tube, state.key) == (tube, key)
                               for state in old.may_be()):
                    raise Broken(f"{line} is {reply.line}, and {old.id} has the key")
                self.inserted(new, number, command, body, make(now_ms()))
                self.ledger.keys[tube, key] = new
            else:
                self.ledger.promises += word == "REPLACED"
                self.ledger.new.pop(body, None)
        command.done = done
        return commands + [command]

    def reserve(self):
        line = "reserve-with-timeout 0"

        def done(reply):
            word, *rest = reply.line.split()
            if word in ("TIMED_OUT", "DEADLINE_SOON"):
                return
            if word != "RESERVED":
                self.refused(reply, line)
            job = self.ledger.reserved(int(rest[0]), reply.body)
            if job.holder is not None and job.holder != self.number and \
                    job.id in self.others_held(job.holder):
                raise Broken(f"job {job.id} is with two clients")
            job.holder = self.number
            self.held[job.id] = job
        return [Command(line, None, done)]

    def others_held(self, number):
        """What another client holds, and has not sent a command about."""
        other = self.ledger.workers[number]
        return {job for job in other.held if job not in other.busy}

    def take_held(self):
        """One of the jobs that it has reserved, to end its reservation."""
        free = [number for number in self.held if number not in self.busy]
        if not free:
            return None
        number = random.choice(free)
        self.busy.add(number)
        return self.held[number]

    def about_held(self, line, job, make, done_word):
        """A command that ends a reservation; who has reserved a job may do it. @make(ms), when
        it has been answered at that time, is what makes a state of another one."""
        command = Command(line, None, None)
        job.send(command, make(FAR_MS))

        def done(reply):
            if reply.line != done_word:
                self.refused(reply, line)
            self.ledger.promises += 1
            job.answered(command, True, make(now_ms()))
            self.held.pop(job.id, None)
            if done_word == "DELETED":
                self.forget(job)
        command.done = done
        return [command]

    def forget(self, job):
        """A job was deleted: it must not come back. Its key is free."""
        for place, other in list(self.ledger.keys.items()):
            if other is job:
                del self.ledger.keys[place]

    def delete_held(self):
        job = self.take_held()
        return job and self.about_held(f"delete {job.id}", job, deleted, "DELETED")

    def release(self):
        job = self.take_held()
        if not job:
            return None
        pri, delay_ms = random.randrange(3), random.choice((0, 5, 1000000))
        return self.about_held(f"release {job.id} {pri} {delay_ms}ms", job,
                               released(pri, delay_ms), "RELEASED")

    def bury(self):
        job = self.take_held()
        if not job:
            return None
        pri = random.randrange(3)
        return self.about_held(f"bury {job.id} {pri}", job, buried(pri), "BURIED")

    def fail(self):
        """RETRY or DEAD, where the number of attempts decides."""
        job = self.take_held()
        if not job:
            return None
        retry = retried(now_ms())
        reason = b"because" if random.random() < 0.5 else None
        line = f"fail {job.id}" + (f" {len(reason)}" if reason else "")
        command = Command(line, reason, None)
        job.send(command, lambda state: dead(state) | retry(0, FAR_MS)(state))

        def done(reply):
            word, *rest = reply.line.split()
            if word not in ("RETRY", "DEAD"):
                self.refused(reply, line)
            self.ledger.promises += 1
            job.answered(command, True,
                         dead if word == "DEAD" else retry(int(rest[1]), now_ms()))
            self.held.pop(job.id, None)
            if word == "DEAD":
                self.forget(job)
        command.done = done
        return [command]

    def about_any(self, line, job, make, done_word):
        """A command about a job of anybody: it may be not found."""
        command = Command(line, None, None)
        job.send(command, make(FAR_MS))

        def done(reply):
            if reply.line not in (done_word, "NOT_FOUND"):
                self.refused(reply, line)
            job.answered(command, reply.line == done_word, make(now_ms()))
            self.ledger.promises += reply.line == done_word
            if reply.line == "DELETED":
                # A reserve of the same batch may have got it before.
                self.held.pop(job.id, None)
                self.forget(job)
        command.done = done
        return [command]

    def any_job(self, place):
        """A job that is there as far as is known, in a place."""
        if not self.ledger.jobs:
            return None
        for number in random.sample(sorted(self.ledger.jobs), min(5, len(self.ledger.jobs))):
            job = self.ledger.jobs[number]
            if number not in self.busy and number not in self.held and \
                    (state := job.state()) and (place is None or state.place == place) and \
                    state.place != "gone" and not state.tube.startswith("kick-"):
                self.busy.add(number)
                return job
        return None

    def delete_any(self):
        job = self.any_job(None)
        return job and self.about_any(f"delete {job.id}", job, deleted, "DELETED")

    def reschedule(self):
        job = self.any_job("delayed")
        if not job:
            return None
        delay_ms = random.choice((3, 2000000))
        return self.about_any(f"reschedule {job.id} {delay_ms}ms", job,
                              rescheduled(delay_ms), "RESCHEDULED")

    def kick_job(self):
        job = self.any_job("buried") or self.any_job("delayed")
        return job and self.about_any(f"kick-job {job.id}", job, kicked, "KICKED")

    def kick(self):
        """Put, bury and kick in a tube that no other client knows: so it is known what is
        kicked, which is all that was buried."""
        if self.kick_tube in self.busy:
            return None
        self.busy.add(self.kick_tube)
        self.used = self.kick_tube
        use = [Command(f"use {self.kick_tube}", None, lambda reply: None)]
        jobs = {place: [job for job in self.ledger.jobs.values() if (state := job.state()) and
                        (state.tube, state.place) == (self.kick_tube, place)]
                for place in ("ready", "buried")}
        if len(jobs["buried"]) > 2:
            return use + self.kick_all(jobs["buried"])
        if jobs["ready"]:
            return self.bury_one(jobs["ready"][0])
        return use + self.put_into(self.kick_tube, 0)

    def kick_all(self, jobs):
        """Kick all that are buried in the used tube."""
        command = Command("kick 1000", None, None)
        for job in jobs:
            job.send(command, kicked())

        def done(reply):
            if reply.line != f"KICKED {len(jobs)}":
                self.refused(reply, f"kick 1000 of {len(jobs)} jobs")
            self.ledger.promises += 1
            for job in jobs:
                job.answered(command, True)
        command.done = done
        return [command]

    def bury_one(self, job):
        """Reserve a job by its id, and bury it."""
        def reserved(reply):
            if not reply.line.startswith(f"RESERVED {job.id} "):
                self.refused(reply, f"reserve-job {job.id}")
            self.ledger.reserved(job.id, reply.body)
        return [Command(f"reserve-job {job.id}", None, reserved)] + self.about_held(
            f"bury {job.id} 5", job, buried(5), "BURIED")

    def peek(self):
        return [Command("peek-ready", None, lambda reply: None)]


def load(ledger, address, clients, seconds, kill):
    """Let clients work for some time, and then @kill(). Replies that have come by then are
    promises, also those that nobody has read yet."""
    ledger.workers = {}
    try:
        for number in range(clients):
            ledger.workers[number] = Worker(ledger, address, number)
        end = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            for worker in ledger.workers.values():
                selector.register(worker.client.sock, selectors.EVENT_READ, worker)
            while (left := end - time.monotonic()) > 0:
                for worker in ledger.workers.values():
                    if not worker.waiting:
                        worker.work()
                for key, _ in selector.select(left):
                    key.data.read()
        kill()
        for worker in ledger.workers.values():
            try:
                worker.read()
            except Gone:
                pass
    finally:
        for worker in ledger.workers.values():
            worker.client.close()


