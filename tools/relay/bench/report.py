# SPDX-License-Identifier: GPL-2.0
"""The results: tables for people, and what tools/bench/judge says of them."""

import datetime
import os
import subprocess

from programs import TITLES

JUDGE = "tools/bench/judge"
TARGETS = "tools/relay/bench/targets"

# Of each case: what it is called, and its columns: (title, figure, divisor, digits).
CPU = ("CPU, us", "cpu", 1, 1)
BROKERS = ("brokers' CPU, us", "brokers_cpu", 1, 1)
MEMORY = ("memory, MB", "memory", 1e6, 0)
WRITTEN = ("written, bytes", "written", 1, 0)
COUNTS = [("twice", "duplicates", 1, 0), ("lost", "lost", 1, 0), ("early", "early", 1, 0)]
LATENESS = [("p50, ms", "p50", 1, 1), ("p99, ms", "p99", 1, 1), ("p99.9, ms", "p99.9", 1, 1),
            ("max, ms", "max", 1, 0)]
FAULT = [("late until, s", "late_until", 1, 1), ("latest, s", "max", 1e3, 1), *COUNTS]
TABLES = {
    "drain": ("all are due at the start", [
        ("records/s", "per_s", 1, 0), CPU, BROKERS, MEMORY, WRITTEN, *COUNTS]),
    "steady": ("a steady rate", [*LATENESS, CPU, BROKERS, MEMORY, WRITTEN, *COUNTS]),
    "kill": ("kill -9 of one of two", FAULT),
    "restart": ("both of two are started again in order", FAULT),
}


def where():
    """Lines that describe the machine."""
    def first(command):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stdout.strip() or "unknown"
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as info:
        host = next((line.split(":", 1)[1].strip() for line in info
                     if line.startswith("model name")), "unknown")
    return [f"where date {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}",
            f"where host {host}, {os.cpu_count()} CPUs",
            f"where commit {first(['git', 'rev-parse', '--short', 'HEAD'])}"]


def values_of(lines):
    """{name: value} of lines "result NAME VALUE UNIT"."""
    words = [line.split() for line in lines if line.startswith("result ")]
    return {word[1]: float(word[2]) for word in words}


def table(case, values):
    """A table as lines of markdown, or nothing if nothing was measured."""
    title, columns = TABLES[case]
    names = [name for name in TITLES if f"{case}.{name}.lost" in values]
    if not names:
        return []
    lines = ["| " + " | ".join([title, *(column[0] for column in columns)]) + " |",
             "|---|" + "---:|" * len(columns)]
    for name in names:
        cells = [TITLES[name]]
        for _, figure, divisor, digits in columns:
            value = values.get(f"{case}.{name}.{figure}")
            cells.append("-" if value is None else f"{value / divisor:,.{digits}f}")
        lines.append("| " + " | ".join(cells) + " |")
    return [*lines, ""]


def aligned(lines):
    """The same for a terminal: columns of equal width, without lines of hyphens."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")]
            for line in lines if not line.startswith("|---")]
    widths = [max(len(row[i]) for row in rows if i < len(row)) for i in range(len(rows[0]))]
    return ["  ".join(cell.rjust(width) if i else cell.ljust(width)
                      for i, (cell, width) in enumerate(zip(row, widths))) for row in rows]


def show(out, complete):
    """Print all there is, and write it to files; the status of the judge."""
    with open(os.path.join(out, "all"), encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in file]
    with open(os.path.join(out, "results"), "w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines if line.startswith(("result ", "where ")))
    values = values_of(lines)
    markdown = []
    for case in TABLES:
        rows = table(case, values)
        markdown += rows
        if rows:
            print("\n".join(["", *aligned(rows[:-1])]))
    with open(os.path.join(out, "table.md"), "w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in markdown)
    print(flush=True)
    measured = [] if complete else ["--measured"]
    return subprocess.run([JUDGE, *measured, "--json", os.path.join(out, "relay.json"),
                           os.path.join(out, "results"), TARGETS], check=False).returncode
