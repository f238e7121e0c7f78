#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The page for people over HTTP: it says what the protocol says, each action does what the
protocol would, and nobody who is slow, hostile or without the token gets anything else."""

import paths  # pylint: disable=unused-import,wrong-import-order
import http.client
import json
import os
import re
import socket
import subprocess
import tempfile
import threading
import time
import urllib.parse

from daemon import TWHEELQ, Twheelq
from process import free_port
from tap import Suite, equal, holds

suite = Suite(seconds=1200)

TOKEN = "a-token-of-some-length"
HOSTILE = ["<script>alert(1)</script>", "\u202egnp.exe\u202c", "line\nline\0NUL", "\"'`&amp;",
           "\u2028\u2029\ufeff", "x" * 1000]


def token_file(text, mode=0o600):
    """The path of a file with this text."""
    handle, path = tempfile.mkstemp(prefix="twheel-token-")
    os.write(handle, text if isinstance(text, bytes) else text.encode())
    os.close(handle)
    os.chmod(path, mode)
    return path


class Paged(Twheelq):
    """A daemon with a page; with @token, it has actions."""

    def __init__(self, token=TOKEN, options=(), host="127.0.0.1"):
        self.http = (host, free_port())
        self.token = token
        words = ["--http", f"{host}:{self.http[1]}", *options]
        if token:
            self.path = token_file(token + "\n")
            words += ["--http-token-file", self.path]
        super().__init__(options=words)

    def close(self):
        super().close()
        if self.token and os.path.exists(self.path):
            os.unlink(self.path)

    def request(self, method, path, headers=None, body=None, **arguments):
        """Status, headers and body of the answer to a request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.http[1], timeout=300)
        query = urllib.parse.urlencode(arguments)
        connection.request(method, path + (f"?{query}" if query else ""), body, headers or {})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, answer.headers, text

    def get(self, path, **arguments):
        """The object of JSON that a question is answered with."""
        status, _, text = self.request("GET", f"/api/{path}", **arguments)
        equal(status, 200, f"{path} {arguments}: {text!r}")
        return json.loads(text)

    def act(self, path, token=TOKEN, **arguments):
        """Status and object of an action."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        status, _, text = self.request("POST", f"/api/{path}", headers, **arguments)
        return status, json.loads(text)

    def now(self, **arguments):
        """A frame."""
        return self.get("now", **arguments)

    def row(self, tube):
        """The row of a tube as a dictionary, or None."""
        board = self.now(**{"tubes.filter": tube, "tubes.count": 200})["boards"][0]
        for row in board["rows"]:
            if row["name"] == tube:
                return dict(zip((column["key"] for column in board["columns"]), row["values"]))
        return None

    def jobs(self, tube, state, count=50):
        """All jobs of a tube in a state, read page by page."""
        found, cursor = [], ""
        while cursor is not None:
            answer = self.get("jobs", tube=tube, state=state, count=count, cursor=cursor)
            found += answer["jobs"]
            cursor = answer["next"]
        return found


def until(condition, what):
    """Wait until @condition() is true, and return what it is."""
    end = time.monotonic() + 300
    while not (result := condition()):
        holds(time.monotonic() < end, f"it does not come: {what}")
        time.sleep(0.02)
    return result


def listed(client, tube, state):
    """Ids and due times of list-jobs."""
    lines = client.ask(f"list-jobs {tube} {state} 0 10000").body.decode().splitlines()
    return [tuple(line.split(": ")) for line in lines if re.match(r"\d", line)]


def bury_one(client, tube, body=b"b", reason=None):
    """Put a job and let it fail for good (with a reason) or bury it; its id."""
    client.ask(f"use {tube}")
    client.ask(f"watch {tube}")
    number = client.put(body)
    holds(client.ask(f"reserve-job {number}").line.startswith("RESERVED"), "reserve-job")
    if reason is None:
        equal(client.ask(f"bury {number} 7").line, "BURIED")
    else:
        equal(client.ask(f"fail {number} {len(reason)}", reason).line, "DEAD")
    return number


# --- what it shows ----------------------------------------------------------------------


@suite.together
def tubes_have_the_numbers_of_stats_tube():
    """Each column against stats-tube."""
    with Paged() as daemon, daemon.start().client() as client:
        client.ask("policy mails 1 1s 2 1h 0")
        client.ask("use mails")
        for i in range(7):
            client.put(b"x", delay=0 if i < 4 else 1000)
        client.ask("watch mails")
        first = client.reserve()[0]
        client.reserve()
        equal(client.ask(f"delete {first}").line, "DELETED")
        bury_one(client, "mails")
        bury_one(client, "mails", reason=b"no")
        stats = client.stats("stats-tube mails")
        want = {"ready": "current-jobs-ready", "delayed": "current-jobs-delayed",
                "reserved": "current-jobs-reserved", "buried": "current-jobs-buried",
                "put": "total-jobs", "deleted": "cmd-delete", "waiting": "current-waiting"}
        want = {key: int(stats[name]) for key, name in want.items()}
        want["dead"] = 1
        until(lambda: (row := daemon.row("mails")) and want.items() <= row.items(),
              f"{want}, but {daemon.row('mails')}")
        equal(want, {"ready": 2, "delayed": 3, "reserved": 1, "buried": 1, "put": 9,
                     "deleted": 1, "waiting": 0, "dead": 1})
        equal(daemon.row("mails.dead")["buried"], 1)
        tube = daemon.now(tube="mails")["tube"]
        equal({key: tube[key] for key in ("ready", "delayed", "reserved", "buried", "dead")},
              {key: want[key] for key in ("ready", "delayed", "reserved", "buried", "dead")})
        equal(tube["policy"], {"set": True, "max_attempts": 1, "base_ms": 1000, "factor": 2,
                               "cap_ms": 3600000, "jitter_percent": 0,
                               "dead_tube": "mails.dead"})
        equal(sum(value or 0 for value in tube["history"]["put"]) <= 9, True)


@suite.together
def numbers_and_lateness_are_those_of_stats():
    """Tiles and histograms against stats."""
    with Paged() as daemon, daemon.start().client() as client:
        for _ in range(20):
            client.put(b"x", delay="50ms")
        client.put(b"x", delay=500)
        holds(client.reserve("60"), "reserve")
        until(lambda: client.stats()["current-jobs-delayed"] == "1", "all are ready")
        stats = client.stats()

        def same():
            frame = daemon.now()
            tiles = {tile["key"]: tile["value"] for tile in frame["tiles"]}
            late = {one["name"]: one for one in frame["lateness"]}
            return (tiles["ready"] == int(stats["current-jobs-ready"]) == 19 and
                    tiles["delayed"] == 1 and tiles["reserved"] == 1 and tiles["put"] == 21 and
                    tiles["connections"] == int(stats["current-connections"]) and
                    late["ready"]["count"] == int(stats["due-to-ready-count"]) == 20 and
                    late["ready"]["max_us"] == int(stats["due-to-ready-max-us"]) and
                    sum(late["ready"]["counts"]) == 20 and
                    late["reserved"]["count"] == int(stats["due-to-reserved-count"]) == 1)
        until(same, f"{stats}, but {daemon.now()}")


def equal_lists(daemon, client, tube, count):
    """Each list of the page is list-jobs, and each job stats-job and peek."""
    total = 0
    for state in ("ready", "delayed", "reserved", "buried"):
        want = listed(client, tube, state)
        until(lambda s=state, w=want: [job["id"] for job in daemon.jobs(tube, s, count)] ==
              [number for number, _ in w], f"{state}: {want}")
        for job, (number, due) in zip(daemon.jobs(tube, state, count), want):
            stats = client.stats(f"stats-job {number}")
            equal((job["tube"], job["state"]), (stats["tube"], stats["state"]))
            for key, name in (("pri", "pri"), ("attempts", "attempts"), ("kicks", "kicks"),
                              ("reserves", "reserves"), ("timeouts", "timeouts"),
                              ("releases", "releases"), ("buries", "buries")):
                equal(job[key], int(stats[name]), f"{number}: {key}")
            holds(abs(job["due_ms"] - int(due)) <= 2, f"{job} is due at {due}")
            holds(job["age_s"] <= int(stats["age"]), f"{job}: {stats['age']}")
            one = daemon.get("job", id=number)
            equal({key: one[key] for key in ("id", "state", "pri", "reason", "key")},
                  {key: job[key] for key in ("id", "state", "pri", "reason", "key")})
            equal(bytes.fromhex(one["body"]), client.ask(f"peek {number}").body)
            total += 1
    return total


def of_all_states(client):
    """Jobs of tube t in each state and by both clocks, some of them due and loaded."""
    client.ask("use t")
    client.ask("watch t")
    for i in range(60):
        client.put(b"body %d" % i, pri=i * 7 % 11)
    for i in range(25):
        client.put(b"later", delay=1000 + i * 13 % 7)
    for i in range(9):
        client.ask(f"put-at 5 {int((time.time() + 5000 + i) * 1000)} 60 4", b"wall")
    for _ in range(12):
        client.put(b"was delayed", pri=3, delay="10ms")
    client.ask("put-unique a-key:of@all,kinds=1 1 0 60 1", b"k")
    until(lambda: client.stats("stats-tube t")["current-jobs-delayed"] == "34", "due ones")
    for _ in range(15):
        client.reserve()
    for i in range(8):
        bury_one(client, "t", b"buried %d" % i)


@suite.together
def lists_are_those_of_the_protocol_on_pages_of_any_size():
    """Order, due times, counters and bodies, in pages of 100 and of 7."""
    with Paged() as daemon, daemon.start().client() as client:
        of_all_states(client)
        for count in (100, 7):
            equal(equal_lists(daemon, client, "t", count), 60 + 25 + 9 + 12 + 1 + 8)
        daemon.restart()
        with daemon.client() as again:
            equal(equal_lists(daemon, again, "t", 10), 60 + 25 + 9 + 12 + 1 + 8)


@suite.together
def a_list_goes_on_although_its_jobs_are_deleted():
    """A cursor is a place, not a job."""
    with Paged() as daemon, daemon.start().client() as client:
        client.ask("use t")
        ids = [client.put(b"x", pri=5) for _ in range(30)]
        first = daemon.get("jobs", tube="t", state="ready", count=10)
        for number in ids[:15]:
            client.ask(f"delete {number}")
        until(lambda: [int(job["id"]) for job in
                       daemon.get("jobs", tube="t", state="ready", count=50,
                                  cursor=first["next"])["jobs"]] == ids[15:], "the rest")


@suite.together
def reasons_are_counted_page_by_page():
    """More dead jobs than one answer counts, and one that somebody has buried."""
    with Paged() as daemon, daemon.start().client() as client:
        client.ask("policy t 1 1s 2 1h 0")
        for i in range(60):
            bury_one(client, "t", reason=b"disk full" if i % 3 else b"no route")
        bury_one(client, "t.dead")
        found = {one["reason"]: one["count"]
                 for one in daemon.get("reasons", tube="t.dead")["reasons"]}
        equal(found, {"disk full": 40, "no route": 20})
        equal(daemon.get("reasons", tube="t.dead")["not_dead"], 1)


@suite.together
def a_frame_is_sent_for_each_change_that_is_seen():
    """The stream has frames, and a change appears in one."""
    with Paged() as daemon, daemon.start().client() as client:
        connection = http.client.HTTPConnection("127.0.0.1", daemon.http[1], timeout=300)
        connection.request("GET", "/api/events?tube=news")
        answer = connection.getresponse()
        equal(answer.headers["Content-Type"], "text/event-stream; charset=utf-8")
        read_frame(answer)
        client.ask("use news")
        client.put(b"x")
        while not (frame := read_frame(answer))["tube"].get("ready"):
            pass
        equal(frame["tube"]["ready"], 1)
        connection.close()


def read_frame(answer):
    """The next frame of a stream."""
    while True:
        line = answer.readline()
        holds(line, "the stream has ended")
        if line.startswith(b"data: "):
            return json.loads(line.removeprefix(b"data: "))


# --- what it does -----------------------------------------------------------------------


@suite.together
def each_action_does_what_its_command_does():
    """Actions, their replies, and what the protocol says afterwards."""
    with Paged() as daemon, daemon.start().client() as client:
        equal(daemon.act("token"), (200, {"reply": "OK"}))
        client.ask("use t")
        number = client.put(b"x", delay=1000)
        equal(daemon.act("kick", id=number), (200, {"reply": "KICKED"}))
        equal(client.stats(f"stats-job {number}")["state"], "ready")
        equal(daemon.act("delete", id=number), (200, {"reply": "DELETED"}))
        equal(client.ask(f"peek {number}").line, "NOT_FOUND")
        for _ in range(5):
            client.put(b"x", delay=1000)
        equal(daemon.act("kick", tube="t", count=3), (200, {"reply": "KICKED 3"}))
        equal(client.stats("stats-tube t")["current-jobs-ready"], "3")
        equal(daemon.act("purge", tube="t", state="delayed"), (200, {"reply": "PURGED 2"}))
        equal(client.stats("stats-tube t")["current-jobs-delayed"], "0")
        equal(daemon.act("pause", tube="t", duration="2h"), (200, {"reply": "PAUSED"}))
        equal(client.stats("stats-tube t")["pause"], "7200")
        equal(daemon.act("pause", tube="t", duration="0"), (200, {"reply": "PAUSED"}))
        equal(daemon.act("policy", tube="t", attempts=4, base="2s", factor=3, cap="1m", jitter=5,
                         dead="graves"), (200, {"reply": "POLICY"}))
        stats = client.stats("stats-tube t")
        equal([stats[f"policy-{key}"] for key in
               ("max-attempts", "base-ms", "factor", "cap-ms", "jitter-percent", "dead-tube")],
              ["4", "2000", "3", "60000", "5", "graves"])
        equal(daemon.act("policy", tube="t", default=1), (200, {"reply": "POLICY"}))
        equal(client.stats("stats-tube t")["policy"], "default")


@suite.together
def all_dead_of_a_reason_are_retried_and_no_others():
    """Those of other reasons, and those that somebody has buried, stay."""
    with Paged() as daemon, daemon.start().client() as client:
        client.ask("policy t 1 1s 2 1h 0")
        ids = [bury_one(client, "t", reason=b"this" if i % 2 else b"that") for i in range(150)]
        bury_one(client, "t.dead")
        reasons = {one["reason"]: one for one in daemon.get("reasons", tube="t.dead")["reasons"]}
        equal((reasons["this"]["count"], reasons["that"]["count"]), (75, 75))
        status, answer = daemon.act("retry", tube="t.dead", reason=reasons["this"]["number"])
        equal((status, answer["reply"], answer["next"]), (200, "KICKED 75", None))
        equal([number for number, _ in listed(client, "t", "ready")],
              [str(number) for number in ids[1::2]])
        equal(len(listed(client, "t.dead", "buried")), 76)
        equal(client.stats(f"stats-job {ids[1]}")["attempts"], "0")


@suite.together
def wrong_actions_are_answered_as_the_protocol_answers_them():
    """What is no job, no tube, or no word."""
    with Paged() as daemon, daemon.start().client() as client:
        client.ask("use t")
        held = client.put(b"x")
        client.ask("watch t")
        client.reserve()
        for path, arguments, status in (
                ("delete", {"id": 999}, 404), ("delete", {"id": held}, 404),
                ("kick", {"id": held}, 404), ("kick", {"id": "x"}, 400),
                ("kick", {"tube": "none", "count": 1}, 404), ("delete", {}, 400),
                ("kick", {"tube": "t", "count": "many"}, 400), ("kick", {}, 400),
                ("purge", {"tube": "t", "state": "reserved"}, 400),
                ("purge", {"tube": "t"}, 400), ("pause", {"tube": "none", "duration": 1}, 404),
                ("pause", {"tube": "t", "duration": "soon"}, 400),
                ("policy", {"tube": "t", "attempts": 0, "base": 1, "factor": 1, "cap": 1,
                            "jitter": 1}, 400),
                ("policy", {"tube": "t", "attempts": 1}, 400), ("policy", {}, 400),
                ("policy", {"tube": "t", "attempts": 1, "base": 1, "factor": 1, "cap": 1,
                            "jitter": 1, "dead": "a b"}, 400),
                ("retry", {"tube": "t"}, 400), ("retry", {"tube": "t", "reason": "zz"}, 400),
                ("retry", {"tube": "none", "reason": "1"}, 404),
                ("delete", {"id": "1\r\ndelete 2"}, 400),
                ("pause", {"tube": "a b", "duration": 1}, 400),
                ("pause", {"tube": "t", "duration": "1\r\nput 0 0 0 0\r\n"}, 400),
                ("purge", {"tube": "t\nuse x", "state": "ready"}, 400)):
            got = daemon.act(path, **arguments)
            equal(got[0], status, f"{path} {arguments}: {got[1]}")
        equal(client.names("list-tubes"), ["default", "t"])
        equal(client.stats("stats-tube t")["current-jobs-reserved"], "1")


@suite.together
def a_purge_of_many_jobs_keeps_no_page_waiting():
    """Questions and frames go on while an action takes its time."""
    with Paged() as daemon, daemon.start().client() as client:
        client.ask("use t")
        for _ in range(100):
            client.send(b"put 0 0 60 1\r\nx\r\n" * 300)
            for _ in range(300):
                client.reply()
        result = []
        thread = threading.Thread(target=lambda: result.append(
            daemon.act("purge", tube="t", state="ready")))
        thread.start()
        asked = 0
        while thread.is_alive():
            daemon.get("jobs", tube="t", state="ready", count=5)
            daemon.now()
            asked += 1
        thread.join()
        equal(result, [(200, {"reply": "PURGED 30000"})])
        holds(asked, "no question was answered")


# --- who may ----------------------------------------------------------------------------


@suite.together
def actions_take_the_token():
    """Without it, with a wrong one, and where there is none."""
    with Paged() as daemon, daemon.start().client() as client:
        client.ask("use t")
        number = client.put(b"x")
        for wrong in ("", "x", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "x" * 300):
            equal(daemon.act("delete", token=wrong, id=number)[0], 401, wrong)
        equal(daemon.request("POST", f"/api/delete?id={number}&token={TOKEN}")[0], 401)
        for scheme in ("Basic ", "bearer", ""):
            equal(daemon.request("POST", "/api/delete", {"Authorization": scheme + TOKEN},
                                 id=number)[0], 401)
        holds(daemon.now()["actions"] is True, "it has actions")
        equal(client.ask(f"peek {number}").line.split()[0], "FOUND")
    with Paged(token=None) as daemon, daemon.start().client() as client:
        number = client.put(b"x")
        for token in (None, TOKEN):
            equal(daemon.act("delete", token=token, id=number)[0], 403)
        holds(daemon.now()["actions"] is False, "it has no actions")
        equal(client.ask(f"peek {number}").line.split()[0], "FOUND")


@suite.together
def other_hosts_origins_and_methods_are_refused():
    """What a page of somebody else could make a browser send."""
    with Paged() as daemon, daemon.start().client() as client:
        number = client.put(b"x")
        port, bearer = daemon.http[1], {"Authorization": f"Bearer {TOKEN}"}
        for host, status in ((f"127.0.0.1:{port}", 404), (f"localhost:{port}", 404),
                             (f"[::1]:{port}", 404), (socket.gethostname(), 404),
                             ("evil.example", 403), (f"evil.example:{port}", 403),
                             ("127.0.0.1.evil.example", 403), ("[::1", 403), ("", 403)):
            for method, path in (("POST", "/api/delete"), ("GET", "/api/job")):
                got = daemon.request(method, path, {**bearer, "Host": host}, id=999)
                equal(got[0], status, f"{host}: {method} {path}")
        for origin in ("http://evil.example", "null", f"http://127.0.0.1:{port + 1}",
                       f"http://127.0.0.1:{port}.evil.example", "http://127.0.0.1", ""):
            got = daemon.request("POST", "/api/delete", {**bearer, "Origin": origin}, id=number)
            equal(got[0], 403, origin)
        for site in ("cross-site", "same-site"):
            for path in ("/api/events", "/api/jobs"):
                equal(daemon.request("GET", path, {"Sec-Fetch-Site": site})[0], 403, site)
        for method, path, status in (
                ("GET", "/api/delete", 405), ("POST", "/api/jobs", 405), ("POST", "/", 405),
                ("PUT", "/api/delete", 405), ("DELETE", "/api/job", 405),
                ("OPTIONS", "/api/delete", 405), ("GET", "/api/none", 404),
                ("GET", "/api/", 404), ("GET", "/page.js/../page.css", 404)):
            got = daemon.request(method, path, bearer, id=number)
            equal(got[0], status, f"{method} {path}")
        equal(client.ask(f"peek {number}").line.split()[0], "FOUND")
        mine = {**bearer, "Origin": f"http://127.0.0.1:{port}", "Sec-Fetch-Site": "same-origin"}
        equal(daemon.request("POST", "/api/delete", mine, id=number)[0], 200)


@suite.together
def a_proxy_s_name_is_allowed_when_it_is_told():
    """--http-host."""
    with Paged(options=["--http-host", "queue.example.org"]) as daemon:
        daemon.start()
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        for host, origin in (("queue.example.org", "https://queue.example.org"),
                             (f"127.0.0.1:{daemon.http[1]}", "https://queue.example.org:8443")):
            got = daemon.request("POST", "/api/token", {**bearer, "Host": host, "Origin": origin})
            equal(got[0], 200, f"{host} {origin}: {got[2]}")
        got = daemon.request("POST", "/api/token", {**bearer, "Origin": "https://example.org"})
        equal(got[0], 403)


@suite.together
def other_machines_see_contents_with_the_token_only():
    """--http 0.0.0.0, as it may have been for Prometheus: bodies are not in the open."""
    with Paged(host="0.0.0.0") as daemon, daemon.start().client() as client:
        client.put(b"private")
        equal(daemon.request("GET", "/api/now")[0], 200)
        for path in ("jobs", "job", "reasons"):
            equal(daemon.request("GET", f"/api/{path}", tube="default", state="ready", id=1)[0],
                  401, path)
            equal(daemon.request("GET", f"/api/{path}", {"Authorization": f"Bearer {TOKEN}"},
                                 tube="default", state="ready", id=1)[0], 200, path)
    with Paged(token=None, host="0.0.0.0") as daemon:
        daemon.start()
        equal(daemon.request("GET", "/api/job", id=1)[0], 401)


@suite.together
def the_files_let_a_browser_do_nothing_else():
    """Types and headers of the three files; other paths say what there is."""
    with Paged() as daemon:
        daemon.start()
        for path, kind in (("/", "text/html"), ("/page.css", "text/css"),
                           ("/page.js", "text/javascript"), ("/api/now", "application/json")):
            status, headers, text = daemon.request("GET", path)
            equal((status, headers["Content-Type"]), (200, f"{kind}; charset=utf-8"), path)
            policy = headers["Content-Security-Policy"]
            holds(policy.startswith("default-src 'none'; script-src 'self';"), policy)
            holds("unsafe" not in policy and "*" not in policy, policy)
            for name, value in (("X-Content-Type-Options", "nosniff"), ("X-Frame-Options", "DENY"),
                                ("Referrer-Policy", "no-referrer"), ("Cache-Control", "no-store")):
                equal(headers[name], value)
            if path != "/api/now":
                here = os.path.join(os.path.dirname(TWHEELQ), "../metrics/page",
                                    path[1:] or "page.html")
                with open(here, "rb") as file:
                    equal(text, file.read(), path)
                holds(not re.search(rb"(src|href)=[\"']?(https?:)?//", text), path)
        equal(daemon.request("GET", "/none")[2],
              b"Not found; see /, /metrics and /healthz.\n")
        equal(daemon.request("GET", "/healthz")[2], b"ok\n")
        holds(b"\ntwheelq_uptime_seconds " in daemon.request("GET", "/metrics")[2], "/metrics")
        equal(daemon.request("HEAD", "/")[2], b"")


@suite.together
def wrong_options_and_token_files_end_the_start():
    """A clear message, and status 2."""
    folder = tempfile.mkdtemp(prefix="twheel-")
    for text, words in ((None, "No such file or directory"), ("", "it is empty"),
                        ("\n", "it is empty"), ("short", "it has less than 16 characters"),
                        ("x" * 300, "it has more than 256 characters"),
                        ("two words of text", "it has a character that a token cannot have"),
                        ("one-line-of-text\nanother-line", "it has a character"),
                        (b"bytes\xff\xfe\0 of no text", "it has a character"),
                        (b"\0" * 20, "it has a character")):
        path = token_file(text) if text is not None else os.path.join(folder, "none")
        refused(["--http", "127.0.0.1:0", "--http-token-file", path],
                f'--http-token-file "{path}": {words}')
        if text is not None:
            os.unlink(path)
    refused(["--http", "127.0.0.1:0", "--http-token-file", folder], "Is a directory")
    path = token_file(TOKEN)
    refused(["--http-token-file", path], "is for the page of --http, which is missing")
    refused(["--http-host", "a.example"], "is for the page of --http, which is missing")
    refused(["--http", "0", "--http-host", "a/b"], '"a/b" is not a name')
    refused(["--http", "0", "--http-host", ""], "--http-host is empty")
    os.unlink(path)
    os.rmdir(folder)


def refused(options, words):
    """twheelq serve ends at once, and says this."""
    with tempfile.TemporaryDirectory(prefix="twheel-") as folder:
        result = subprocess.run([TWHEELQ, "serve", "--dir", os.path.join(folder, "jobs"),
                                 "--listen", f"unix:{folder}/socket", *options], check=False,
                                capture_output=True, text=True, timeout=300)
        equal(result.returncode, 2, result.stderr)
        holds(words in result.stderr, f"{options}: {result.stderr!r}, not {words!r}")


@suite.together
def a_token_that_all_may_read_is_warned_of():
    """And one that only the owner may read is not."""
    with Paged() as daemon:
        daemon.start()
        holds("can read the token" not in daemon.said(), daemon.said())
        os.chmod(daemon.path, 0o644)
        daemon.restart()
        holds(f"all users can read the token in {daemon.path}" in daemon.said(), daemon.said())
        holds(TOKEN not in daemon.said(), "the token is in the log")


# --- hostile contents -------------------------------------------------------------------


def safe(text):
    """Bytes of JSON that could stand in a page."""
    holds(not re.search(rb"[<>&\x00-\x1f\x7f]", text.strip()), f"{text[:2000]!r}")
    text.decode("utf-8")
    return json.loads(text)


@suite.together
def hostile_reasons_and_bodies_arrive_as_data():
    """Scripts, marks, NUL, lines of a megabyte, and bytes that are no UTF-8."""
    with Paged(options=["--max-job-size", "2M"]) as daemon, daemon.start().client() as client:
        client.ask("policy t 1 1s 2 1h 0")
        bodies = [text.encode() for text in HOSTILE] + \
            [b"", b"\xff\xfe\x80<script>", b"\0" * 50, b"y" * 1048576,
             b"\xed\xa0\x80\xc0\xaf\xf5\x80\x80\x80", bytes(range(256)) * 20]
        for body in bodies:
            number = bury_one(client, "t", body, reason=body[:1024])
            _, _, text = daemon.request("GET", "/api/job", id=number)
            job = safe(text)
            equal(bytes.fromhex(job["body"]), body[:4096])
            equal((job["bytes"], job["cut"]), (len(body), len(body) > 4096))
            equal(job["reason"], replaced(body[:1024]))
        _, _, text = daemon.request("GET", "/api/jobs", tube="t.dead", state="buried")
        jobs = safe(text)["jobs"]
        equal([job["reason"] for job in jobs], [replaced(body[:1024]) for body in bodies])
        _, _, text = daemon.request("GET", "/api/reasons", tube="t.dead")
        equal({one["reason"] for one in safe(text)["reasons"]},
              {replaced(body[:1024]) for body in bodies})


def replaced(data):
    """Text as the page has it: each byte that is no UTF-8 is a U+FFFD."""
    text = ""
    while data:
        for size in (1, 2, 3, 4):
            try:
                text += data[:size].decode("utf-8")
                data = data[size:]
                break
            except UnicodeDecodeError:
                continue
        else:
            text += "\ufffd"
            data = data[1:]
    return text


@suite.together
def hostile_names_and_keys_are_refused_or_shown_whole():
    """The protocol refuses what a name cannot have; what it can have arrives."""
    with Paged() as daemon, daemon.start().client() as client:
        for name in ("<script>", "a\u202eb", "\x00"):
            equal(client.ask(f"use {name}").line, "BAD_FORMAT")
            equal(client.ask(f"put-unique {name} 0 0 1 1", b"x").line, "BAD_FORMAT")
        name = "a/b;c.d$e_f()+" + "-" * 186
        equal(client.ask(f"use {name}").line, f"USING {name}")
        key = "k:@,=/;.$_()+-" * 14
        number = client.ask(f"put-unique {key} 0 0 60 1", b"x").line.split()[1]
        until(lambda: daemon.row(name), "its row")
        equal([job["key"] for job in daemon.jobs(name, "ready")], [key])
        equal(daemon.get("job", id=number)["tube"], name)


@suite.together
def hostile_requests_are_answered_and_do_nothing():
    """Arguments of every kind, to each question."""
    with Paged() as daemon, daemon.start().client() as client:
        client.ask("use t")
        client.put(b"x")
        values = HOSTILE + ["-1", "1e9", "99999999999999999999999", "../../etc/passwd", "%00", "",
                            "0.0.0.0.0", "6.1.1.1", "0.1.1", "1.18446744073709551615.0.1"]
        for path in ("jobs", "job", "reasons", "now"):
            for value in values:
                for name in ("tube", "state", "cursor", "count", "id", "tubes.sort", "tubes.from",
                             "tubes.count", "tubes.filter"):
                    arguments = {"tube": "t", "state": "ready", "id": 1, name: value}
                    status, _, text = daemon.request("GET", f"/api/{path}", **arguments)
                    holds(status in (200, 400, 404), f"{path} {arguments}: {status} {text!r}")
                    if path != "now" or name != "tube":
                        safe(text)
        equal(daemon.request("GET", "/api/now", **{f"a{i}": "b" for i in range(40)})[0], 400)
        equal(daemon.request("GET", "/api/now", tube="x" * 5000)[0], 400)
        holds(daemon.request("GET", "/api/now", tube="x" * 20000)[0] in (400, 414, 431, 413),
              "a long address")
        for count in ("0", "-1", "1e9", "five"):
            status, _, text = daemon.request("GET", "/api/jobs", tube="t", state="ready",
                                             count=count)
            equal((status, text), (400, b'{"error":"count: 1 to 100."}'), count)
        # The headers alone are sent, as by a client that first asks whether it may send so much.
        status, _, text = daemon.request("POST", "/api/kick", {"Content-Length": "65537"})
        equal((status, json.loads(text)["error"]),
              (413, "Arguments are in the address; the body is too long."))
        equal(client.names("list-tubes"), ["default", "t"])


# --- limits -----------------------------------------------------------------------------


@suite.together
def more_streams_than_the_limit_are_told_so():
    """64 streams; the 65th is refused, all else goes on, and one that ends makes room."""
    with Paged() as daemon:
        daemon.start()
        streams = []
        for _ in range(64):
            connection = http.client.HTTPConnection("127.0.0.1", daemon.http[1], timeout=300)
            connection.request("GET", "/api/events")
            streams.append((connection, connection.getresponse()))
        for _, answer in streams:
            equal(answer.status, 200)
            read_frame(answer)
        # Those that are refused are closed, so that they take no place of others.
        refused = []
        for _ in range(200):
            connection = http.client.HTTPConnection("127.0.0.1", daemon.http[1], timeout=300)
            connection.request("GET", "/api/events")
            answer = connection.getresponse()
            equal((answer.status, answer.getheader("Connection")), (503, "close"))
            refused.append(connection)
        equal(daemon.request("GET", "/healthz")[0], 200)
        for connection, answer in streams:
            read_frame(answer)
            read_frame(answer)
        streams[0][1].close()
        streams[0][0].close()

        def has_room():
            connection = http.client.HTTPConnection("127.0.0.1", daemon.http[1], timeout=300)
            connection.request("GET", "/api/events")
            status = connection.getresponse().status
            connection.close()
            return status == 200
        until(has_room, "room for one more")


@suite.together
def a_stream_that_is_not_read_is_closed_and_holds_up_nobody():
    """Its frames do not pile up in the daemon."""
    with Paged() as daemon, daemon.start().client() as client:
        for i in range(400):
            client.ask(f"use tube-with-a-long-name-for-larger-frames-{i:04}")
            client.put(b"x")
        slow = []
        for _ in range(20):
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.connect(("127.0.0.1", daemon.http[1]))
            sock.sendall(b"GET /api/events?tubes.count=200 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            slow.append(sock)
        until(lambda: len(daemon.now(**{"tubes.count": 200})["boards"][0]["rows"]) == 200, "rows")
        before = daemon.memory()
        # The daemon's end is gone when the kernel has no connection of that port any more.
        until(lambda: not established(daemon.http[1]), "the end of the slow ones")
        holds(daemon.memory() < before + (32 << 20), f"{before} became {daemon.memory()}")
        for sock in slow:
            sock.close()


def established(port):
    """Connections to a port of the loopback that its owner has not closed."""
    with open("/proc/net/tcp", encoding="ascii") as table:
        return [line for line in table if line.split()[1].endswith(f":{port:04X}") and
                line.split()[3] == "01"]


@suite.together
def the_daemon_ends_while_pages_are_open():
    """Streams, silent connections and a purge: it ends with status 0, and the store is whole."""
    with Paged() as daemon, daemon.start().client() as client:
        client.ask("use t")
        for _ in range(20):
            client.send(b"put 0 0 60 1\r\nx\r\n" * 500)
            for _ in range(500):
                client.reply()
        connections = []
        for _ in range(30):
            sock = socket.create_connection(("127.0.0.1", daemon.http[1]))
            sock.sendall(b"GET /api/events?tube=t HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            connections.append(sock)
        connections.append(socket.create_connection(("127.0.0.1", daemon.http[1])))
        thread = threading.Thread(target=end_quietly, args=(daemon,))
        thread.start()
        daemon.now()
        equal(daemon.stop(), 0)
        thread.join()
        for sock in connections:
            sock.close()
        equal(daemon.tool("check").returncode, 0)


def end_quietly(daemon):
    """A purge that the end of the daemon may cut."""
    try:
        daemon.act("purge", tube="t", state="ready")
    except (OSError, http.client.HTTPException):
        pass


if __name__ == "__main__":
    suite.main()
