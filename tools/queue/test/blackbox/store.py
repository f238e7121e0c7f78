# SPDX-License-Identifier: GPL-2.0
"""What a daemon that does not run has in its store, by twheelq's own check and dump."""

import base64
import json

from ledger import State
from tap import holds


def check(daemon):
    """twheelq check has nothing to say."""
    result = daemon.tool("check")
    holds(result.returncode == 0,
          f"twheelq check says {result.returncode}: {result.stdout}{result.stderr}")


def lines(daemon):
    """Jobs of twheelq dump, as dictionaries."""
    result = daemon.tool("dump")
    holds(result.returncode == 0, f"twheelq dump says {result.returncode}: {result.stderr}")
    jobs = [json.loads(line) for line in result.stdout.splitlines()]
    return [job for job in jobs if "id" in job and "every" not in job]


def schedules(daemon):
    """Schedules of twheelq dump, as dictionaries."""
    result = daemon.tool("dump")
    holds(result.returncode == 0, f"twheelq dump says {result.returncode}: {result.stderr}")
    return [line for line in map(json.loads, result.stdout.splitlines()) if "every" in line]


def body_of(job):
    """The body: a string where it is text, else base64."""
    if "body" in job:
        return job["body"].encode()
    return base64.b64decode(job["body64"])


def state_of(job):
    """A line of the dump as a State."""
    place = {"wall": "delayed"}.get(job["state"], job["state"])
    due_ms = job["due_ns"] / 1e6 if place == "delayed" else 0
    return State(place, job["tube"], job["pri"], body_of(job), job.get("key"), due_ms, due_ms,
                 job.get("attempts", 0))


def jobs_of(daemon):
    """All jobs: State by id. No id is there twice."""
    jobs = lines(daemon)
    found = {job["id"]: state_of(job) for job in jobs}
    holds(len(found) == len(jobs), "an id is twice in the dump")
    return found
