#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What a person does by hand: put, peek, jobs, kick, delete, purge, pause, policy and every,
with what they print and how they end."""

import paths  # pylint: disable=unused-import,wrong-import-order
import json
import os
import pty
import re
import select
import socket
import subprocess
import tempfile
import threading
import time

from daemon import TWHEELQ, Twheelq
from tap import Skip, Suite, equal, holds

suite = Suite(seconds=900)


def run(daemon, *words, stdin=b""):
    """twheelq WORDS... of a daemon: status, stdout and stderr."""
    result = subprocess.run([TWHEELQ, words[0], "-a", daemon.address, *words[1:]], input=stdin,
                            capture_output=True, check=False, timeout=300)
    return (result.returncode, result.stdout.decode(errors="replace"),
            result.stderr.decode(errors="replace").replace(daemon.address, "ADDRESS"))


def says(daemon, line, stdout, stdin=b""):
    """The command succeeds, and prints this; "*" is anything but a line end."""
    status, out, err = run(daemon, *line.split("|"), stdin=stdin)
    equal((status, err), (0, ""), line)
    pattern = ".*".join(re.escape(part) for part in stdout.split("*"))
    holds(re.fullmatch(pattern, out), f"{line}: {out!r}, expected: {stdout!r}")
    return out


def refuses(daemon, line, stderr, status=1, stdin=b""):
    """The command fails with this status, and says this."""
    code, _, err = run(daemon, *line.split("|"), stdin=stdin)
    equal(code, status, f"{line}: {err}")
    holds(stderr in err, f"{line}: {err!r}, expected: {stderr!r}")
    holds("\x1b" not in err, err)


def as_json(daemon, line, stdin=b""):
    """What the command prints: JSON, a line each."""
    status, out, err = run(daemon, *line.split("|"), "--json", stdin=stdin)
    equal(status, 0, err)
    return [json.loads(one) for one in out.splitlines()]


def knows(daemon, command):
    """Does the daemon know a command beyond those of the first version?"""
    with daemon.client() as client:
        return client.ask(command).line != "UNKNOWN_COMMAND"


@suite.test
def a_put_says_the_id_and_has_what_the_options_say():
    with Twheelq() as daemon:
        daemon.start()
        says(daemon, "put|hello", "job 1 is put\n")
        says(daemon, "put|-t|mails|-d|1h|-p|5|--ttr|90s|-", "job 2 is put\n", b"\0\xff\n")
        path = os.path.join(daemon.temporary, "body")
        with open(path, "wb") as file:
            file.write(b"x" * 60000)
        equal(as_json(daemon, f"put|--file|{path}"), [{"result": "inserted", "id": 3}])
        says(daemon, "put|--at|2100-01-01 00:00 UTC|--tube|mails|x", "job 4 is put\n")
        says(daemon, "put|--|-dash", "job 5 is put\n")
        with daemon.client() as client:
            equal([client.ask(f"peek {job}").body for job in (1, 2, 3, 5)],
                  [b"hello", b"\0\xff\n", b"x" * 60000, b"-dash"])
        two, four = as_json(daemon, "peek|2")[0], as_json(daemon, "peek|4")[0]
        equal([two[key] for key in ("tube", "state", "pri", "delay", "ttr")],
              ["mails", "delayed", 5, 3600, 90])
        equal((two["body64"], four["state"], four["body"]), ("AP8K", "delayed", "x"))
        left = 4102444800 - time.time()
        holds(left - 300 < four["time-left"] < left + 300, four)


@suite.test
def a_key_is_put_once_replaced_kept_or_reserved():
    with Twheelq() as daemon:
        daemon.start()
        says(daemon, "put|--key|user:1|a", "job 1 is put\n")
        says(daemon, "put|--key|user:1|b", "job 1 had this key, and is replaced\n")
        says(daemon, "put|--key|user:1|--keep|c", "job 1 has this key, and stays as it is\n")
        equal(as_json(daemon, "peek|1")[0]["body"], "b")
        with daemon.client() as client:
            client.ask("reserve")
            equal(run(daemon, "put", "--key", "user:1", "d"),
                  (1, "job 1 has this key, and a worker has it: nothing is put\n", ""))


@suite.test
def a_peek_shows_a_job_for_people_for_programs_and_raw():
    with Twheelq() as daemon:
        daemon.start()
        says(daemon, "put|-t|mails|two\nlines", "job 1 is put\n")
        says(daemon, "put|-t|mails|-d|1h|-", "job 2 is put\n", b"\x1b[31mred\0")
        says(daemon, "peek|1", """job 1
  tube         mails
  state        ready
  pri          1024
  delay        0 s
  ttr          60 s
  reserves     0
  timeouts     0
  releases     0
  buries       0
  kicks        0
  time-left    *
  attempts     0
body of 9 bytes:
two
lines
""")
        out = says(daemon, "peek|mails|delayed", "job 2\n" + "*\n" * 12 +
                   "body of 9 bytes, in hex:\n"
                   "00000000  1b 5b 33 31 6d 72 65 64  00*|.[31mred.|\n")
        holds("\x1b" not in out, out)
        equal(as_json(daemon, "peek|2")[0]["body"], "\x1b[31mred\0")
        equal(run(daemon, "peek", "2", "--raw")[1], "\x1b[31mred\0")
        refuses(daemon, "peek|3", "twheelq: there is no job 3\n")
        refuses(daemon, "peek|mails|buried", 'the tube "mails" has no buried job\n')
        refuses(daemon, "peek|nope|ready", 'ADDRESS has no tube "nope"\n')


@suite.test
def no_control_character_of_a_reason_or_a_daemon_is_printed():
    with Twheelq() as daemon:
        daemon.start()
        reason = b"\x1b[2J\nbad \xc2\x9b31m\x7f\x07"
        with daemon.client() as client:
            for line, body in (("policy default 1 1s 2 1h 0 dead", None), ("put 0 0 60 1", b"x"),
                               ("reserve", None)):
                client.ask(line, body)
            equal(client.ask(f"fail 1 {len(reason)}", reason).line, "DEAD")
        for words in (("peek", "1"), ("jobs", "dead"), ("jobs", "dead", "--json"),
                      ("peek", "1", "--json")):
            status, out, err = run(daemon, *words)
            equal((status, err), (0, ""), words)
            holds("bad" in out, out)
            holds(not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", out), f"{words}: {out!r}")
    with socket.create_server(("127.0.0.1", 0)) as server:
        def answer():
            for _ in range(2):
                with server.accept()[0] as sock:
                    sock.recv(1000)
                    sock.sendall(b"\x1b[31mred\x9b\x07\r\n")
        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        for words in (("delete", "1"), ("jobs", "t")):
            result = subprocess.run([TWHEELQ, words[0], "-a", f"127.0.0.1:{server.getsockname()[1]}",
                                     *words[1:]], capture_output=True, check=False, timeout=300)
            equal(result.returncode, 1)
            holds(b"has answered \"?[31mred??\"" in result.stderr, result.stderr)
        thread.join()


@suite.test
def the_reason_of_a_daemon_that_hangs_up_is_printed():
    with tempfile.TemporaryDirectory() as folder, \
            socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        path = os.path.join(folder, "socket")
        server.bind(path)
        server.listen()
        # Nothing is sent until standard input is at its end, and then the daemon has hung up.
        program = subprocess.Popen([TWHEELQ, "put", "-a", f"unix:{path}", "-"],
                                   stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        with server.accept()[0] as sock:
            sock.sendall(b"DRAINING\r\n")
        said = program.communicate(b"x", timeout=300)[1]
        equal((program.returncode, said.count(b"it is draining")), (1, 1), said)


@suite.test
def jobs_are_listed_by_state_a_page_after_the_other():
    with Twheelq() as daemon:
        daemon.start()
        with daemon.client() as client:
            client.ask("use t")
            for _ in range(450):
                client.ask("put 7 1h 60 1", b"x")
            client.ask("put-unique key 0 0 60 1", b"x")
            client.ask("watch t")
            equal(client.ask("put 9 0 60 1", b"y").line, "INSERTED 452")
            client.ask("reserve")
            lines = says(daemon, "jobs|t|--limit|1000", "*\n" * 453).splitlines()
            equal(lines[0].split(), "id state priority attempts time left key, or reason".split())
            equal(lines[1].split(), ["452", "ready", "9", "0", "-"])
            equal(lines[2].split()[:4] + lines[2].split()[5:],
                  ["451", "reserved", "0", "0", "key"])
            equal([line.split()[0] for line in lines[3:]], [str(one) for one in range(1, 451)])
            equal(len(as_json(daemon, "jobs|t|delayed")), 100)
            equal([job["id"] for job in as_json(daemon, "jobs|t|delayed|-n|201")],
                  list(range(1, 202)))
            equal(as_json(daemon, "jobs|t|buried"), [])
        refuses(daemon, "jobs|nope", 'ADDRESS has no tube "nope"\n')


@suite.test
def kicks_and_deletes_say_how_many_and_which_are_not_there():
    with Twheelq() as daemon:
        daemon.start()
        for number in range(1, 6):
            says(daemon, "put|-t|t|-d|1h|x", f"job {number} is put\n")
        says(daemon, "kick|t|2", "2 jobs kicked\n")
        equal(as_json(daemon, "kick|t|1"), [{"kicked": 1}])
        says(daemon, "kick|--job|4", "1 job kicked\n")
        equal(run(daemon, "kick", "--job", "4", "5", "9"),
              (1, "1 job kicked\n", "twheelq: job 4 is neither buried nor delayed\n"
               "twheelq: job 9 is neither buried nor delayed\n"))
        says(daemon, "kick|t|10", "0 jobs kicked\n")
        refuses(daemon, "kick|nope|1", 'ADDRESS has no tube "nope"\n')
        says(daemon, "delete|1|2", "2 jobs deleted\n")
        equal(run(daemon, "delete", "3", "1", "4", "--json"),
              (1, '{"deleted":[3,4]}\n', "twheelq: job 1 is not there, or a worker has it\n"))
        equal([job["id"] for job in as_json(daemon, "jobs|t")], [5])


@suite.test
def a_tube_is_paused_and_goes_on():
    with Twheelq() as daemon:
        daemon.start()
        says(daemon, "put|-t|t|x", "job 1 is put\n")
        says(daemon, "pause|t|10m", "t is paused for 10m\n")
        with daemon.client() as client:
            client.ask("watch t")
            equal(client.ask("reserve-with-timeout 0").line, "TIMED_OUT")
            equal(as_json(daemon, "pause|t|0"), [{"tube": "t", "pause-ms": 0}])
            equal(client.ask("reserve").line, "RESERVED 1 1")
        refuses(daemon, "pause|nope|1s", 'ADDRESS has no tube "nope"\n')


@suite.test
def a_policy_keeps_what_no_option_says():
    with Twheelq() as daemon:
        daemon.start()
        refuses(daemon, "policy|t", 'ADDRESS has no tube "t"\n')
        says(daemon, "policy|t|--attempts|5|--base|10s",
             "t (set): 5 attempts, base 10.0s, factor 2, cap 1.00h, jitter 10 %, "
             "dead tube t.dead\n")
        says(daemon, "policy|t|--factor|1.5|--cap|2h|--jitter|0|--dead-tube|grave",
             "t (set): 5 attempts, base 10.0s, factor 1.5, cap 2.00h, jitter 0 %, "
             "dead tube grave\n")
        equal(as_json(daemon, "policy|t"),
              [{"tube": "t", "policy": "set", "attempts": 5, "base-ms": 10000, "factor": 1.5,
                "cap-ms": 7200000, "jitter-percent": 0, "dead-tube": "grave"}])
        says(daemon, "policy|t|--default", "t has no policy of its own\n")
        refuses(daemon, "policy|t", 'ADDRESS has no tube "t"\n')


@suite.test
def a_purge_deletes_a_state_and_asks_before():
    with Twheelq() as daemon:
        daemon.start()
        for number in range(1, 4):
            says(daemon, "put|-t|t|x", f"job {number} is put\n")
        refuses(daemon, "purge|t|ready", "--yes is missing: there is no terminal", 2)
        refuses(daemon, "purge|nope|ready|--yes", 'ADDRESS has no tube "nope"\n')
        holds(b'Delete 3 jobs of the tube "t" in the state ready? [y/N]' in
              on_terminal(daemon, "purge", "t", "ready", answer=b"n\n"), "it asks")
        equal(len(as_json(daemon, "jobs|t")), 3)
        if not knows(daemon, "purge x ready"):
            refuses(daemon, "purge|t|ready|--yes", "ADDRESS does not know this command")
            raise Skip("this daemon has no purge")
        says(daemon, "purge|t|delayed|--yes", "0 jobs deleted\n")
        holds(b"3 jobs deleted" in on_terminal(daemon, "purge", "t", "ready", answer=b"y\n"),
              "yes deletes")
        says(daemon, "put|-t|t|x", "job 4 is put\n")
        equal(as_json(daemon, "purge|t|ready|-y"), [{"deleted": 1}])


def on_terminal(daemon, *words, answer=None):
    """Run twheelq on a terminal, and type an answer when it asks: what the terminal shows."""
    pid, fd = pty.fork()
    if not pid:
        os.execv(TWHEELQ, [TWHEELQ, words[0], "-a", daemon.address, *words[1:]])
    shown = b""
    while select.select([fd], [], [], 300)[0]:
        try:
            data = os.read(fd, 65536)
        except OSError:
            break
        shown += data
        if answer and b"?" in shown:
            os.write(fd, answer)
            answer = None
        if not data:
            break
    os.close(fd)
    os.waitpid(pid, 0)
    return shown


@suite.test
def raw_bytes_do_not_go_to_a_terminal_unless_they_are_text():
    with Twheelq() as daemon:
        daemon.start()
        says(daemon, "put|-", "job 1 is put\n", b"\x1b[31m")
        says(daemon, "put|plain", "job 2 is put\n")
        shown = on_terminal(daemon, "peek", "1", "--raw")
        holds(b"is no text" in shown and b"\x1b" not in shown, shown)
        equal(on_terminal(daemon, "peek", "2", "--raw"), b"plain")


@suite.test
def a_periodic_job_is_begun_listed_and_stopped():
    with Twheelq() as daemon:
        daemon.start()
        if not knows(daemon, "list-every"):
            refuses(daemon, "every|--list", "ADDRESS does not know this command")
            raise Skip("this daemon has no every")
        says(daemon, "every|tick|-t|t|--interval|1h|--first|now+1s|body",
             "tick is put again and again in t\n")
        says(daemon, "every|tock|-t|t|--interval|1d|--first|2100-01-01 UTC|--json|-",
             '{"tube":"t","name":"tock","result":"every"}\n', b"x")
        with daemon.client() as client:
            client.ask("watch t")
            equal(client.ask("reserve").body, b"body")
        listed = as_json(daemon, "every|--list|-t|t")
        equal([(one["name"], one["tube"], one["interval-ms"]) for one in listed],
              [("tick", "t", 3600000), ("tock", "t", 86400000)])
        equal(listed[1]["next"], 4102444800000)
        lines = run(daemon, "every", "--list", "-t", "t")[1].splitlines()
        holds(lines[0] == "tick" and "  tube         t" in lines and "tock" in lines, lines)
        says(daemon, "every|tick|-t|t|--stop", "tick is stopped in t\n")
        refuses(daemon, "every|tick|-t|t|--stop", 't has no periodic job "tick"\n')
        equal([one["name"] for one in as_json(daemon, "every|--list|-t|t")], ["tock"])


@suite.test
def wrong_use_is_status_2_and_says_what_is_wrong():
    with Twheelq() as daemon:
        daemon.start()
        for line, words in (
                ("put", "BODY is missing"), ("put|a|b", "one argument too many"),
                ("put|a|-f|x", "not both"), ("put|a|-t|a b", "not the name of a tube"),
                ("put|a|-t|", "not the name of a tube"), ("put|a|-t|-x", "not the name of a tube"),
                ("put|a|-t|" + "x" * 201, "not the name of a tube"),
                ("put|a|-d|1x", "is not a time"), ("put|a|--at|never", "is not a time"),
                ("put|a|--at|now|-d|1s", "--at does not go"), ("put|a|--keep", "--keep needs"),
                ("put|a|-k|a b", "is not a key"), ("put|a|-p|-1", "--priority"),
                ("put|a|-p|4294967296", "--priority"), ("put|a|--ttr|0", "--ttr"),
                ("peek", "missing"), ("peek|x", "not the id"), ("peek|-1", "invalid option"),
                ("peek|18446744073709551616", "not the id"), ("peek|t|nope", "is not a state"),
                ("peek|t|reserved", "by its id only"), ("peek|1|--raw|--json", "do not go"),
                ("peek|t|ready|x", "too many"), ("jobs", "TUBE is missing"),
                ("jobs|t|nope", "is not a state"), ("jobs|t|ready|x", "too many"),
                ("jobs|t|-n|0", "--limit"), ("kick", "TUBE is missing"), ("kick|t", "is missing"),
                ("kick|t|0", "number of jobs"), ("kick|t|x", "number of jobs"),
                ("kick|t|1|2", "too many"), ("kick|--job", "is missing"),
                ("kick|--job|x", "not the id"), ("delete", "is missing"),
                ("delete|1|x", "not the id"), ("purge", "TUBE is missing"),
                ("purge|t|-y", "is missing"), ("purge|t|reserved|-y", "cannot be purged"),
                ("purge|t|all|-y", "is not a state"), ("pause|t", "DURATION is missing"),
                ("pause|t|x", "is not a time"), ("pause|t|1|2", "too many"),
                ("policy", "TUBE is missing"), ("policy|t|--default|-n|1", "does not go together"),
                ("policy|t|-n|0", "--attempts"), ("policy|t|-f|x", "is not a factor"),
                ("policy|t|-f|2 3", "is not a factor"), ("policy|t|--jitter|101", "--jitter"),
                ("every", "NAME is missing"), ("every|n", "BODY is missing"),
                ("every|n|b", "--interval is missing"), ("every|n|b|-i|1h", "--first is missing"),
                ("every|n|b|--stop", "--stop has no BODY"), ("every|--list|n", "--list has no"),
                ("every|a b|b", "is not a name")):
            refuses(daemon, line, words, 2)
            holds("twheelq " + line.split("|", maxsplit=1)[0] in run(daemon, *line.split("|"))[2],
                  line)


@suite.test
def output_that_cannot_be_written_or_is_closed_is_status_1():
    """A disk that is full, and files that are closed: nothing else gets their numbers."""
    with Twheelq() as daemon:
        daemon.start()
        equal(run(daemon, "put", "x")[0], 0)
        for words in ("stats", "stats --json", "stats default", "jobs default", "peek 1", "top -c 1",
                      "top -c 1 -j", "peek --help"):
            name, *rest = words.split()
            for redirection in (">/dev/full", ">&-", "<&- >&-", "<&- >&- 2>&-"):
                command = f'exec "$0" {name} -a "$1" {" ".join(rest)} {redirection}'
                result = subprocess.run(["sh", "-c", command, TWHEELQ, daemon.address],
                                        stderr=subprocess.PIPE, check=False, timeout=300)
                equal(result.returncode, 1, f"{words} {redirection}: {result.stderr}")
                if "2>" not in redirection:
                    holds(b"cannot write" in result.stderr, f"{words}: {result.stderr}")
        with daemon.client() as client:
            equal(client.stats("stats")["cmd-put"], "1")
            equal(client.stats("stats")["current-jobs-ready"], "1")


@suite.test
def a_daemon_that_is_not_there_drains_or_is_full_is_said():
    with Twheelq(options=["--max-jobs", "1"]) as daemon:
        for line in ("put|x", "peek|1", "jobs|t", "kick|t|1", "delete|1", "purge|t|ready|-y",
                     "pause|t|1", "policy|t", "every|--list", "backup|/nonexistent/x"):
            refuses(daemon, line, "Start it with \"systemctl start twheelq\"")
        daemon.start()
        refuses(daemon, "put|--file|/nonexistent", "cannot open /nonexistent")
        refuses(daemon, "put|-", "takes no body of this size", stdin=b"x" * 70000)
        says(daemon, "put|x", "job 1 is put\n")
        refuses(daemon, "put|y", "has no room")
        os.kill(daemon.pid(), 10)
        while "draining" not in daemon.said():
            time.sleep(0.01)
        refuses(daemon, "put|y", "takes no new jobs: it is draining")


if __name__ == "__main__":
    suite.main()
