#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Published clients of beanstalkd, with twheelq, none of them changed.

Each has the same conversation with beanstalkd first, which shows that the test is right. Then
workers that use it run in a tube with a policy: what they release, the jobs they have when they
crash, and those whose TTR runs out are tried again, and are dead after the last attempt.

The libraries are installed into .build/queue-clients, with the versions of clients/: those of
package-lock.json, requirements.txt, go/module and go/go.sum. The one of php is Debian's.
"""

import paths  # pylint: disable=unused-import,wrong-import-order
import os
import shutil
import subprocess
import sys
import threading
import time

from daemon import Beanstalkd, HERE, Twheelq, beanstalkd_is_here
from tap import Skip, Suite, equal, holds

suite = Suite(seconds=1500)

CLIENTS = os.path.join(HERE, "clients")
INSTALLED = os.path.join(HERE, "..", "..", "..", "..", ".build", "queue-clients")
PHEANSTALK = "/usr/share/php/Pheanstalk/autoload.php"
# Errors of the installers when a registry cannot be reached.
UNREACHABLE = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ETIMEDOUT", "ENETUNREACH",
               "ECONNRESET", "ERR_SOCKET_TIMEOUT", "E403", "E502", "E503", "EHOSTUNREACH",
               "NewConnectionError", "ConnectTimeoutError", "no such host", "i/o timeout", "connection refused", "Forbidden",
               "network is unreachable", "Bad Gateway", "Service Unavailable")
ATTEMPTS = 3
POLICY = f"{ATTEMPTS} 10ms 2 1s 0"

lock = threading.Lock()
# Why a registry's libraries cannot be used, or None; by the name of the installer.
outcomes = {}


def run_installer(name, command, **options):
    """Run it. Raises Skip if its registry cannot be reached."""
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300,
                            **options)
    if not result.returncode:
        return
    if any(word in result.stdout + result.stderr for word in UNREACHABLE):
        raise Skip(f"the registry of {name} cannot be reached")
    raise AssertionError(f"{' '.join(command)}: {result.stdout}{result.stderr}")


def install_npm():
    """The libraries of npm, and what they need."""
    run_installer("npm", ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts",
                          "--fetch-retries=1", "--fetch-timeout=20000"], cwd=INSTALLED)


def install_pip():
    """The library of PyPI."""
    target = os.path.join(INSTALLED, "python")
    shutil.rmtree(target, ignore_errors=True)
    run_installer("pip", [sys.executable, "-m", "pip", "install", "--quiet", "--retries=1",
                          "--disable-pip-version-check", "--require-hashes",
                          "--target", target, "-r", os.path.join(CLIENTS, "requirements.txt")])


def build_go(folder, source, program):
    """Build a source in a folder, with the pinned modules. Kbuild deletes *.mod in its tree, so
    go.mod has another name there."""
    copied(os.path.join(CLIENTS, "go", "module"), os.path.join(folder, "go.mod"))
    copied(os.path.join(CLIENTS, "go", "go.sum"), os.path.join(folder, "go.sum"))
    run_installer("go", ["go", "build", "-o", program, source], cwd=folder)


def install_go():
    """A program with the library of Go."""
    build_go(os.path.join(INSTALLED, "go"), "talk.go", os.path.join(INSTALLED, "talk-go"))


# For each installer: what shows that it is there, the files that name versions, the function.
INSTALLERS = {
    "npm": (["npm", "--version"], ("package.json", "package-lock.json"), install_npm),
    "pip": ([sys.executable, "-m", "pip", "--version"], ("requirements.txt",), install_pip),
    "go": (["go", "version"], ("go/module", "go/go.sum", "go/talk.go"), install_go),
}


def is_there(command):
    """Can this be run?"""
    try:
        return not subprocess.run(command, capture_output=True, check=False).returncode
    except FileNotFoundError:
        return False


def install(name):
    """Install the libraries if they are missing or of other versions."""
    command, files, function = INSTALLERS[name]
    if not is_there(command):
        raise Skip(f"there is no {name}")
    done = os.path.join(INSTALLED, f"done-{name}")
    changed = False
    for file in files:
        target = os.path.join(INSTALLED, file)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        changed |= copied(os.path.join(CLIENTS, file), target)
    if not changed and os.path.exists(done):
        return
    if os.path.exists(done):
        os.unlink(done)
    function()
    with open(done, "w", encoding="ascii"):
        pass


def need(name):
    """Install once; each test that needs it has the same outcome."""
    with lock:
        if name not in outcomes:
            try:
                outcomes[name] = install(name)
            except (Skip, AssertionError, subprocess.TimeoutExpired) as error:
                outcomes[name] = error
    if outcomes[name]:
        raise outcomes[name]


def copied(source, target):
    """Copy a file if its content differs; returns whether it did."""
    with open(source, "rb") as file:
        wanted = file.read()
    if os.path.exists(target):
        with open(target, "rb") as file:
            if file.read() == wanted:
                return False
    with open(target, "wb") as file:
        file.write(wanted)
    return True


def environment():
    """Where the libraries are."""
    return dict(os.environ, NODE_PATH=os.path.join(INSTALLED, "node_modules"),
                PYTHONPATH=os.path.join(INSTALLED, "python"), PYTHONDONTWRITEBYTECODE="1")


def converse(daemon, command):
    """A client has its conversation with a daemon."""
    host, port = daemon.address.rsplit(":", 1)
    result = subprocess.run([*command, host, port], env=environment(), capture_output=True,
                            text=True, check=False, timeout=600)
    holds(result.returncode == 0,
          f"{daemon.name}: {result.stdout}{result.stderr}{daemon.said()}")


# --- retries ------------------------------------------------------------------------------

class Crew:
    """Workers in one process, which is started again when a crash has ended it."""

    def __init__(self, daemon, command, nr):
        host, port = daemon.address.rsplit(":", 1)
        self.command = [*command, host, port, "work", *([str(nr)] if nr else [])]
        self.output = os.path.join(daemon.temporary, "workers")
        self.process = None

    def look(self):
        """Start the process if there is none. Returns whether it has ended by itself."""
        status = self.process.poll() if self.process else 3
        if status is None:
            return False
        if status != 3:
            holds(status == 0, f"the workers ended with {status}: {self.said()}")
            return True
        with open(self.output, "ab") as output:
            self.process = subprocess.Popen(self.command, env=environment(), stdout=output,
                                            stderr=output)
        return False

    def said(self):
        """What the workers have printed."""
        with open(self.output, encoding="utf-8") as output:
            return output.read()

    def jobs(self, word):
        """The jobs of which they have said this."""
        return sorted(int(line.split()[1]) for line in self.said().splitlines()
                      if line.startswith(word))

    def end(self):
        """Kill what is left of them."""
        if self.process and self.process.poll() is None:
            self.process.kill()
        if self.process:
            self.process.wait()


def put_jobs(client, numbers):
    """Put so many jobs of each body, those of TTRs last: their ids."""
    client.ask("use work")
    return {body: [client.put(body.encode(), pri=10 + (body == "slow"), ttr="200ms"
                              if body == "slow" else 60) for _ in range(nr)]
            for body, nr in numbers.items()}


def see_dead(client, job, reason):
    """It has had all attempts, and each was counted."""
    stats = client.stats(f"stats-job {job}")
    equal((stats["tube"], stats["state"], stats["attempts"], stats["origin-tube"]),
          ("work.dead", "buried", str(ATTEMPTS), "work"), str(stats))
    holds(reason in stats["reason"], f"job {job}: {stats['reason']}")


REASONS = {"release": "", "crash": "connection closed", "slow": ""}


def retried(daemon, command, numbers, nr):
    """Workers do these numbers of jobs; each ends as its body has it, and only once."""
    with daemon.client() as client:
        equal(client.ask(f"policy work {POLICY}").line, "POLICY")
        jobs = put_jobs(client, numbers)
        dead = sum(numbers[body] for body in REASONS)
        crew = Crew(daemon, command, nr)
        try:
            while (int((client.stats("stats-tube work.dead") or {}).get(
                    "current-jobs-buried", 0)) < dead):
                holds(not crew.look(), f"the workers have ended: {crew.said()}")
                holds(len(crew.jobs("crashed")) <= ATTEMPTS * numbers["crash"],
                      "a crash was not counted as an attempt")
                time.sleep(0.02)
            for body, reason in REASONS.items():
                for job in jobs[body]:
                    see_dead(client, job, reason)
            stops = [client.put(b"stop", pri=1000) for _ in range(nr or 1)]
            while not crew.look():
                time.sleep(0.02)
        finally:
            crew.end()
        equal(crew.jobs("deleted"), sorted(jobs["done"] + stops), crew.said())
        equal(crew.jobs("crashed"), sorted(jobs["crash"] * ATTEMPTS))
        job = jobs["crash"][0]
        equal(client.ask(f"kick-job {job}").line, "KICKED")
        stats = client.stats(f"stats-job {job}")
        equal((stats["tube"], stats["state"], stats["attempts"]), ("work", "ready", "0"))


# --- the tests ----------------------------------------------------------------------------

def add(name, need_it, command, crowd=False):
    """Add the tests of a client: @need_it installs it, or raises Skip. @crowd: its workers may
    be many in a process."""
    def talk():
        need_it()
        for kind in [Beanstalkd] * beanstalkd_is_here() + [Twheelq]:
            with kind(tcp=True) as daemon:
                converse(daemon.start(), command)

    def retry():
        need_it()
        with Twheelq(tcp=True) as daemon:
            retried(daemon.start(), command,
                    {"release": 1, "crash": 1, "slow": 1, "done": 1}, 1 if crowd else 0)

    def many():
        need_it()
        with Twheelq(tcp=True) as daemon:
            retried(daemon.start(), command,
                    {"release": 150, "crash": 150, "slow": 50, "done": 650}, 50)

    suite.add(f"{name}_works_with_twheelq", talk, together=True)
    suite.add(f"jobs_of_a_worker_with_{name}_are_retried_and_then_dead", retry, together=True)
    if crowd:
        suite.add(f"50_workers_with_{name}_end_each_of_1000_jobs_once", many)


def need_php():
    """Debian's library."""
    if not shutil.which("php") or not os.path.exists(PHEANSTALK):
        raise Skip("there is no php or no php-pda-pheanstalk")


for library in ("beanstalkd", "fivebeans", "node-beanstalk", "jackd"):
    add(f"npms_{library.replace('-', '_')}", lambda: need("npm"),
        ["node", os.path.join(CLIENTS, "talk.js"), library])
add("debians_pheanstalk", need_php, ["php", os.path.join(CLIENTS, "talk.php"), "pheanstalk"])
add("pypis_greenstalk", lambda: need("pip"),
    [sys.executable, os.path.join(CLIENTS, "talk.py"), "greenstalk"], crowd=True)
add("go_beanstalk", lambda: need("go"), [os.path.join(INSTALLED, "talk-go")], crowd=True)


# --- the page of clients --------------------------------------------------------------------

PAGE = os.path.join(HERE, "..", "..", "clients.md")


def block(language):
    """The code on the page in this language."""
    with open(PAGE, encoding="utf-8") as page:
        return page.read().split(f"\n```{language}\n", 1)[1].split("\n```\n", 1)[0] + "\n"


def go_of(path):
    """Build a Go program beside the modules that are pinned: what runs it."""
    program = path + ".program"
    build_go(os.path.dirname(path), os.path.basename(path), program)
    return [program]


def need_python():
    """Our own client."""
    if sys.version_info < (3, 11):
        raise Skip("python3 is older than 3.11")


def add_shown(language, need_it, command):
    """Add the test of a program of the page; @command makes the words that run its file."""
    def run():
        need_it()
        with Twheelq(tcp=True) as daemon:
            port = daemon.start().address.rsplit(":", 1)[1]
            path = os.path.join(daemon.temporary, f"shown.{language}")
            with open(path, "w", encoding="utf-8") as file:
                file.write(block(language).replace("11300", port))
            path_of_own = os.path.join(HERE, "..", "..", "python")
            result = subprocess.run(command(path), env=dict(environment(), PYTHONPATH=path_of_own),
                                    capture_output=True, text=True, check=False, timeout=300)
            equal(result.stdout, block("text"), result.stderr)
            with daemon.client() as client:
                equal(client.names("list-tubes"), ["default", "mails"])
                equal(client.stats("stats-tube mails")["cmd-delete"], "1")
                equal(client.stats("stats")["retries"], "1")
    suite.add(f"the_page_of_clients_has_{language}_that_works", run, together=True)


add_shown("python", need_python, lambda path: [sys.executable, path])
add_shown("php", need_php, lambda path: ["php", path])
add_shown("js", lambda: need("npm"), lambda path: ["node", path])
add_shown("go", lambda: need("go"), go_of)
add_shown("bash", lambda: None, lambda path: ["bash", path])


if __name__ == "__main__":
    suite.main()
