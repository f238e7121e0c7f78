# SPDX-License-Identifier: GPL-2.0
"""A cluster of brokers.py for shell scripts: a service that tools/relay/test/brokers starts and
talks to. The head of that file has the commands.

The service is a process in the background. It holds the cluster, and takes a command for each
connection to the socket DIR/control: a line of JSON comes, and one goes. It ends after "stop",
by a signal, or with the process of --for; the brokers end with it.
"""

import argparse
import contextlib
import inspect
import json
import os
import select
import signal
import socket
import subprocess
import sys

import brokers
from tap import Skip


class Refused(Exception):
    """What is wrong with a command."""


def pairs(words):
    """{name: value} of words such as name=value."""
    for word in words:
        if "=" not in word:
            raise Refused(f'"{word}" is not NAME=VALUE')
    return dict(word.split("=", 1) for word in words)


def by_broker(words):
    """[(id, text)] of words such as 1:text."""
    for word in words:
        if not word.partition(":")[0].isdigit():
            raise Refused(f'"{word}" does not begin with the id of a broker and a colon')
    return [(int(word.partition(":")[0]), word.partition(":")[2]) for word in words]


def options_of_start(words):
    """The options of start."""
    parser = argparse.ArgumentParser(prog="brokers start DIR", add_help=False)
    parser.add_argument("--for", dest="owner", type=int)
    parser.add_argument("--version", default="3.9", choices=brokers.VERSIONS)
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--property", action="append", default=[])
    parser.add_argument("--of", action="append", default=[])
    parser.add_argument("--secure", action="store_true")
    parser.add_argument("--disk", action="append", default=[])
    parser.add_argument("--jit", action="store_true")
    return parser.parse_args(words)


def open_cluster(directory, options):
    """The cluster with these options."""
    each = {}
    for number, text in by_broker(options.of):
        each.setdefault(number, {}).update(pairs([text]))
    return brokers.Brokers(
        options.brokers, version=options.version, directory=directory,
        properties=pairs(options.property), each=each, secure=options.secure,
        disks=dict(by_broker(options.disk)), jvm=() if options.jit else brokers.QUICK_START)


def obey(kafka, command, words):
    """Do what a command says; the text of the answer."""
    commands = {
        "address": lambda: kafka.address,
        "secure-address": lambda: kafka.secure_address,
        "topic": lambda name, partitions, *config: kafka.make_topics(
            {name: int(partitions)}, config=pairs(config)),
        "delete": kafka.delete_topics,
        "leader": lambda topic, partition: kafka.leader(topic, int(partition)),
        "coordinator": kafka.coordinator,
        "transaction-coordinator": kafka.transaction_coordinator,
        "controller": kafka.controller,
        "kill": lambda number: kafka.kill(int(number)),
        "term": lambda number: kafka.stop(int(number)),
        "pause": lambda number: kafka.pause(int(number)),
        "resume": lambda number: kafka.resume(int(number)),
        "run": lambda number: kafka.start(int(number)),
        "wait-isr": kafka.wait_isr,
        "configure": lambda topic, *config: kafka.configure_topic(topic, pairs(config)),
        "pid": lambda number: kafka.pid(int(number)),
        "log": kafka.said,
        "stop": lambda: None,
    }
    if command not in commands:
        raise Refused(f"unknown command: {command} (known: {' '.join(commands)})")
    try:
        inspect.signature(commands[command]).bind(*words)
    except TypeError as error:
        raise Refused(f"{command}: {error}; see --help") from None
    answer = commands[command](*words)
    return "" if answer is None else str(answer)


def answer_to(kafka, line):
    """The answer to a line: {"text"} or {"error"}."""
    try:
        command, *words = json.loads(line)
        return {"text": obey(kafka, command, words)}
    except Refused as error:
        return {"error": str(error)}
    except Exception as error:  # pylint: disable=broad-except
        return {"error": f"{type(error).__name__}: {error}"}


@contextlib.contextmanager
def control(directory):
    """The path of the socket; DIR may be too long for an address."""
    fd = os.open(directory, os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{fd}/control"
    finally:
        os.close(fd)


def serve_commands(kafka, listener, owner):
    """Until "stop", or the end of the owner, which is a pidfd or None."""
    while True:
        ready = select.select([listener] + ([] if owner is None else [owner]), [], [])[0]
        if owner in ready:
            return
        with listener.accept()[0] as peer, peer.makefile("rw") as file:
            line = file.readline()
            answer = answer_to(kafka, line)
            stops = line.startswith('["stop"')
            if stops:
                kafka.close()
            with contextlib.suppress(OSError):
                print(json.dumps(answer), file=file, flush=True)
            if stops:
                return


def serve(directory, words):
    """The service; its first line of output says how the start went."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    options = options_of_start(words)
    owner = None if options.owner is None else os.pidfd_open(options.owner)
    try:
        kafka = open_cluster(directory, options)
    except Skip as skip:
        print(json.dumps({"skip": str(skip)}), flush=True)
        return
    except Exception as error:  # pylint: disable=broad-except
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}), flush=True)
        return
    with kafka, socket.socket(socket.AF_UNIX) as listener, control(directory) as path:
        listener.bind(path)
        listener.listen()
        print(json.dumps({"text": kafka.address}), flush=True)
        serve_commands(kafka, listener, owner)


def start(directory, words):
    """Start the service; its first line. While it starts, it ends with this process."""
    options_of_start(words)
    os.makedirs(directory)
    with open(os.path.join(directory, "service.log"), "ab") as log:
        # pylint: disable=consider-using-with
        service = subprocess.Popen(
            [sys.executable, "-B", __file__, "serve", directory, *words], stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL, stderr=log, start_new_session=True, text=True)
    try:
        line = service.stdout.readline()
    except BaseException:
        service.terminate()
        raise
    if not line:
        raise Refused(brokers.read(os.path.join(directory, "service.log")))
    return json.loads(line)


def ask(directory, command, words):
    """Send a command to the service; its answer."""
    try:
        with socket.socket(socket.AF_UNIX) as peer, control(directory) as path:
            peer.connect(path)
            with peer.makefile("rw") as file:
                print(json.dumps([command, *words]), file=file, flush=True)
                line = file.readline()
    except OSError as error:
        raise Refused(f"no cluster runs in {directory}: {error.strerror}") from None
    if not line:
        raise Refused(f"the cluster in {directory} has ended")
    return json.loads(line)


def main():
    """A command, as tools/relay/test/brokers takes it."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    command, directory, *words = sys.argv[1:]
    if command == "serve":
        serve(directory, words)
        return
    try:
        answer = start(directory, words) if command == "start" else ask(directory, command, words)
    except (Refused, FileExistsError) as error:
        answer = {"error": str(error)}
    if "skip" in answer:
        print(answer["skip"])
        sys.exit(77)
    if "error" in answer:
        sys.exit(f"brokers: {answer['error']}")
    if answer["text"]:
        print(answer["text"])


if __name__ == "__main__":
    main()
