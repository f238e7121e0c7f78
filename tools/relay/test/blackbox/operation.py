# SPDX-License-Identifier: GPL-2.0
"""Operating the relay: its memory, its metrics, its throughput in a minute, and clients of
others."""

import json
import os
import random
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request

from ledger import PATIENCE_S, now_ms, wait_for
from scene import Scene, TooLate
from suite import in_time, many, suite
from tap import Skip, equal, holds

MIB = 1 << 20


# --- memory -------------------------------------------------------------------------------

@suite.together
@in_time
def with_little_memory_partitions_are_paused_and_all_arrive(times):
    # A partition of the mock keeps 5 MB at most.
    count = many(4000, 24000)
    partitions = 8
    with Scene(partitions=partitions, targets={"t": 8}) as scene:
        relay = scene.start("--memory", "1M")
        begun = relay.memory()
        for n in range(count):
            scene.send(delay=random.randint(4000, 8000) * times, value=os.urandom(1000),
                       key=b"%d" % n)
        scene.ledger.flush()
        lag = 'partition_lag{topic="%s",partition="%d"}'
        most = [0, 0]

        def look():
            metrics = relay.metrics()
            lags = [metrics[lag % (scene.topic, n)] for n in range(partitions)]
            most[:] = max(most[0], metrics["bytes"]), max(most[1], sum(lags))
            return metrics

        def is_paused():
            metrics = look()
            if not scene.ledger.missing():
                raise TooLate("all came without a pause, or no lag was shown")
            return metrics['paused{kind="delays"}'] == 1 and most[1] > 0
        wait_for(is_paused, "a pause, and a lag")
        wait_for(lambda: look() and not scene.ledger.missing(), "all records")
        holds(most[0] <= MIB + 4096, f"{most[0]:.0f} bytes of records are more than 1M")
        grown = relay.memory("VmHWM") / MIB
        verdict = scene.finish(most_duplicates=0)
        # librdkafka fetches up to 16 MiB ahead, in addition to the records in memory.
        holds(grown < 100, f"{grown} MiB at most")
        return (f"{verdict}; records {most[0] / MIB:.2f} MiB and lag {most[1]:.0f} at most; "
                f"RSS {begun / MIB:.1f} MiB of its own at first, {grown:.1f} MiB in all at most")


@suite.together
@in_time
def lag_grows_while_a_partition_is_paused(times):
    with Scene(partitions=1) as scene:
        relay = scene.start("--memory", "1M")
        # These are due too soon to give way.
        for _ in range(1000):
            scene.send(delay=11000 + 500 * times, value=os.urandom(1000))
        scene.ledger.flush()
        wait_for(lambda: relay.metrics()['paused{kind="delays"}'] == 1, "a pause")
        for _ in range(1000):
            scene.send(delay=0, value=os.urandom(1000))
        scene.ledger.flush()
        lag = f'partition_lag{{topic="{scene.topic}",partition="0"}}'
        pending = f'partition_pending{{topic="{scene.topic}",partition="0"}}'

        def adds_up():
            metrics = relay.metrics()
            scene.count_on(missing=2000)
            return metrics[lag] + metrics[pending] == 2000
        wait_for(adds_up, "a lag of all that was not read")
        return f"lag {relay.metrics()[lag]:.0f}, read {relay.metrics()[pending]:.0f}"


# --- metrics ------------------------------------------------------------------------------

SAMPLE = re.compile(r'([a-z_]+)(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? (-?[0-9]+(\.[0-9]+)?)')


def check_format(page):
    """Check that each number belongs to a family with HELP and TYPE; names come once."""
    families, seen = set(), set()
    for line in page.splitlines():
        if line.startswith("# HELP "):
            families.add(line.split()[2])
        elif not line.startswith("#"):
            match = SAMPLE.fullmatch(line)
            holds(match, f"no sample: {line}")
            base = re.sub("_(bucket|sum|count)$", "", match[1])
            holds({match[1], base} & families, f"no HELP before {line}")
            equal(line.rsplit(" ", 1)[0] in seen, False, f"twice: {line}")
            seen.add(line.rsplit(" ", 1)[0])
    holds(len(seen) > 40, f"few numbers: {len(seen)}")


def counts_of(scene):
    """The numbers of written records that the page has to have, by the ledger."""
    found = {"target": 0, "dead": 0, "invalid": 0, "bucket": 0}
    for topic, records in scene.reader.records.items():
        if topic == scene.topic:
            continue
        kind = topic.rsplit(".", 1)[1] if topic.endswith((".dead", ".invalid")) else "target"
        found["bucket" if scene.ledger.is_bucket(topic) else kind] += len(records)
    return {f'written_total{{to="{kind}"}}': count for kind, count in found.items()}


@suite.together
@in_time
def metrics_have_the_format_and_agree_with_the_ledger(times):
    policies = {"t": (2, 100, 1, 100, 0)}
    with Scene(horizon_s=3600, scale=20000 // times, policies=policies) as scene:
        relay = scene.start()
        for n in range(400):
            scene.send(delay=random.randrange(100000000))
            scene.send(attempt=1 + n % 2)
            scene.ledger.send_invalid([], "there is no twheel-target")
        scene.ledger.flush()
        scene.ledger.wait()
        scene.wait_until_committed()
        expected = counts_of(scene)
        # The relay gets the answer to its commit a bit later than the cluster has it.
        soon = expected | {"duplicates_possible": 0}
        wait_for(lambda: soon.items() <= relay.metrics().items() or scene.count_on_the_group(),
                 str(soon))
        metrics, page = relay.metrics(), relay.page()
        scene.count_on_the_group()
        check_format(page)
        if expected['written_total{to="bucket"}'] <= 100:
            raise TooLate(f"too few were parked: {expected}")
        nothing = ("records", "in_flight", "records_held", "targets_failing",
                   "write_errors_total", "write_unknown_total", "duplicates_possible",
                   "commit_errors_total", "done_before_total")
        equal({name: metrics[name] for name in nothing}, dict.fromkeys(nothing, 0))
        # The map of done offsets has some pieces.
        holds(metrics["bytes"] < 65536, metrics["bytes"])
        late = 'lateness_seconds_count{to="target"}'
        holds(0 < metrics[late] <= expected['written_total{to="target"}'], metrics[late])
        read = [name for name in metrics if name.startswith(("partition_lag", "partition_pending"))]
        equal({metrics[name] for name in read}, {0}, read)
        equal(metrics["partitions"], len(scene.source_partitions()))
        return scene.finish(most_duplicates=0)


# --- the page for people ------------------------------------------------------------------

def asked(relay, path, **headers):
    """Status and body of the answer to a request."""
    address = re.findall(r"metrics on (\S+)", relay.said_now())[-1]
    request = urllib.request.Request(f"http://{address}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as page:
            return page.status, page.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def boards_of(relay):
    """{board: {row: {column: value}}} of a frame, and its tiles."""
    frame = json.loads(asked(relay, "/api/now?partitions.count=200")[1])
    boards = {}
    for board in frame["boards"]:
        keys = [column["key"] for column in board["columns"]]
        boards[board["name"]] = {row["name"]: dict(zip(keys, row["values"]))
                                 for row in board["rows"]}
    return boards, {tile["key"]: tile["value"] for tile in frame["tiles"]}, frame


def page_is_that_of_the_metrics(scene, relay):
    """Does a frame say what the metrics say?"""
    boards, tiles, frame = boards_of(relay)
    metrics = relay.metrics()
    pairs = [(tiles["near"], "near"), (tiles["records"], "records"),
             (tiles["delivered"], 'written_total{to="target"}'),
             (tiles["parked"], 'written_total{to="bucket"}'),
             (tiles["dead"], 'written_total{to="dead"}'),
             (tiles["invalid"], 'written_total{to="invalid"}'),
             (tiles["partitions"], "partitions"),
             (frame["lateness"][0]["count"], 'lateness_seconds_count{to="target"}')]
    for name, row in boards["targets"].items():
        pairs.append((row["written"], f'target_written_total{{target="{name}"}}'))
        pairs.append((row["held"], f'target_held{{target="{name}"}}'))
    for topic, number in scene.source_partitions():
        row = boards["partitions"].get(f"{topic} [{number}]")
        if not row:
            return False
        pairs.append((row["pending"],
                      f'partition_pending{{topic="{topic}",partition="{number}"}}'))
        pairs.append((row["done_above"],
                      f'partition_done_above{{topic="{topic}",partition="{number}"}}'))
    holds(scene.target("t") in boards["targets"], boards["targets"])
    equal(set(boards["topics"]), {topic for topic, _ in scene.source_partitions()})
    return all(value == metrics[name] for value, name in pairs)


@suite.together
def the_page_says_what_the_metrics_say():
    with Scene(horizon_s=3600) as scene:
        relay = scene.start()
        for n in range(50):
            scene.send(delay=10 if n % 2 else 1000000)
            scene.ledger.send_invalid([], "there is no twheel-target")
        scene.ledger.flush()
        wait_for(lambda: page_is_that_of_the_metrics(scene, relay) and
                 boards_of(relay)[1]["delivered"] == 25, "25 records, everywhere")
        equal((boards_of(relay)[1]["near"], boards_of(relay)[1]["invalid"]), (25, 50))
        status, page = asked(relay, "/")
        holds(status == 200 and "page.js" in page, page)
        equal(asked(relay, "/healthz"), (200, "ok\n"))
        equal(asked(relay, "/api/now", Host="evil.example")[0], 403)
        equal(asked(relay, "/none"), (404, "Not found; see /, /metrics and /healthz.\n"))
        equal(asked(relay, "/api/jobs")[0], 404)


# --- in a minute --------------------------------------------------------------------------

@suite.together
def many_delayed_records_a_minute_go_through_one_relay():
    count, seconds = many((12000, 8), (100000, 60))
    # A partition of the mock keeps 5 MB at most.
    with Scene(partitions=8, targets={"t": 8}) as scene:
        relay = scene.start()
        time.sleep(1)
        cpu, begun = relay.cpu_seconds(), time.monotonic()
        for n in range(count):
            ahead = n * seconds / count - (time.monotonic() - begun)
            if ahead > 0:
                time.sleep(ahead)
            scene.send(delay=random.randint(1000, 5000), value=b"x" * 100, key=b"%d" % n)
        scene.ledger.flush()
        scene.ledger.wait()
        took, cpu = time.monotonic() - begun, relay.cpu_seconds() - cpu
        peak = relay.memory("VmHWM") / MIB
        verdict = scene.finish(most_duplicates=0)
        return (f"{verdict}\n{count} records within {took:.1f} s ({count / seconds * 60:.0f} were "
                f"sent a minute): {cpu:.1f} s of CPU, RSS {peak:.1f} MiB at most")


@suite.together
def many_records_due_at_one_instant_come():
    count = many(10000, 60000)
    with Scene(partitions=4, targets={"t": 8}) as scene:
        relay = scene.start()
        due_ms = now_ms() + many(4000, 20000)
        for n in range(count):
            scene.send(deliver_at=due_ms, value=b"x" * 50, key=b"%d" % n)
        scene.ledger.flush()
        verdict = scene.finish(most_duplicates=0)
        return f"{verdict}; {relay.name} had {count} at once"


# --- clients of others --------------------------------------------------------------------

def kcat(scene, *words, **how):
    """Run kcat; returns its output."""
    command = ["kcat", "-b", scene.cluster.address, "-q", *words]
    result = subprocess.run(command, capture_output=True, text=True, check=False,
                            timeout=PATIENCE_S, **how)
    equal(result.returncode, 0, f"{command}: {result.stderr}")
    return result.stdout


@suite.together
def kcat_sends_and_receives():
    if not shutil.which("kcat"):
        raise Skip("no kcat")
    with Scene(partitions=1, targets={"t": 1}) as scene:
        scene.start()
        target = scene.target("t")
        sent_ms = now_ms()
        for delay in (1500, 0, 700):
            kcat(scene, "-P", "-t", scene.topic, "-k", f"key {delay}", "-H", "mine=1", "-H",
                 f"twheel-target={target}", "-H", f"twheel-delay={delay}",
                 input=f"after {delay} ms")
        said = kcat(scene, "-C", "-t", target, "-o", "beginning", "-c", "3", "-f",
                    "%k|%s|%h|%T\n").splitlines()
        # Each comes at its time; in which order depends on how long it took to start kcat.
        equal(sorted(line.split("|")[:2] for line in said),
              sorted([f"key {delay}", f"after {delay} ms"] for delay in (0, 700, 1500)))
        for line in said:
            headers = dict(pair.split("=", 1) for pair in line.split("|")[2].split(","))
            equal(set(headers), {"mine", "twheel-id", "twheel-due", "twheel-attempt",
                                 "twheel-timestamp"})
            holds(int(line.split("|")[3]) >= int(headers["twheel-due"]) >= sent_ms, line)
        scene.stop()
