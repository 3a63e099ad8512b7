"""Tests jobs whose summers the API server refuses: steps go on without them, and the operator tries ever less often."""

from __future__ import annotations

import contextlib
import json
import math
import re
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest
from digits import LONG, endless
from lab.cluster import Cluster
from product import Job, wait_until

SECONDS = 25.0  # for which tries are counted
FIRST_PAUSE = 1.0  # seconds; the shortest pause between two tries, which doubles
SUMMERS = 2  # of the job, so at most as many creates in a try
Refusal = Callable[[Cluster, str], AbstractContextManager[None]]


@contextlib.contextmanager
def in_force(cluster: Cluster, namespace: str, policy: dict[str, Any]) -> Iterator[None]:
    kind, name = policy["kind"], "refuses"
    cluster.apply({"apiVersion": "v1", **policy, "metadata": {"name": name, "namespace": namespace}})
    yield
    cluster.kubectl("-n", namespace, "delete", kind, name)


def limit_range(cluster: Cluster, namespace: str) -> AbstractContextManager[None]:
    spec = {"limits": [{"type": "Container", "min": {"cpu": "10m"}}]}
    return in_force(cluster, namespace, {"kind": "LimitRange", "spec": spec})


def full_quota(cluster: Cluster, namespace: str) -> AbstractContextManager[None]:
    return in_force(cluster, namespace, {"kind": "ResourceQuota", "spec": {"hard": {"pods": "4"}}})


@contextlib.contextmanager
def no_priority_class(cluster: Cluster, namespace: str) -> Iterator[None]:
    before = cluster.get("priorityclass", "gleaner-summer")
    for field in ("uid", "resourceVersion", "creationTimestamp"):
        del before["metadata"][field]
    cluster.kubectl("delete", "priorityclass", "gleaner-summer")
    try:
        yield
    finally:
        cluster.apply(before)


def refused_creates(cluster: Cluster) -> int:
    """Returns how many creates of pods the API server has refused since it started."""
    line = r'^apiserver_request_total\{code="403",.*resource="pods",.*subresource="",verb="POST",.*\} (\d+)$'
    return sum(map(int, re.findall(line, cluster.kubectl("get", "--raw", "/metrics"), re.MULTILINE)))


def events_about_summers(job: Job) -> int:
    listed = json.loads(job.kubectl("get", "events", "-o", "json"))["items"]
    return sum(event.get("count") or 1 for event in listed if event["reason"] in ("SummerAdded", "SummerRefused"))


def most_tries(seconds: float) -> int:
    """Returns how many tries can begin within this time if each pause is twice the one before."""
    return 1 + math.ceil(math.log2(seconds / FIRST_PAUSE + 1))


def conditions_with(job: Job, words: str) -> list[str]:
    return [each["type"] for each in job.status()["conditions"] if words in each["message"]]


@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        (limit_range, "minimum cpu usage per Container is 10m"),
        (full_quota, "exceeded quota: refuses"),
        (no_priority_class, "no PriorityClass with name gleaner-summer was found"),
    ],
    ids=["limit_range", "full_quota", "no_priority_class"],
)
def test_refused_summers_are_tried_less_and_less(quick: Cluster, namespace: str, refusal: Refusal, words: str) -> None:
    job = Job(quick, "digits", namespace)
    with refusal(quick, namespace):
        quick.apply(endless("digits.yaml", namespace))
        job.wait_phase("Running", seconds=LONG)
        job.steps_go_on()

        began, creates, events = time.monotonic(), refused_creates(quick), events_about_summers(job)
        time.sleep(SECONDS)
        creates, events = refused_creates(quick) - creates, events_about_summers(job) - events
        most = SUMMERS * most_tries(time.monotonic() - began)
        print(f"{creates} creates, {events} Events, at most {most}")
        assert creates <= most
        assert events <= most
        [condition] = conditions_with(job, words)
        before = job.condition(condition)["status"]
        job.steps_go_on()
    wait_until("the summers join once they are admitted", lambda: len(job.planned_summers()) == SUMMERS)
    wait_until("the condition tells it", lambda: job.condition(condition).get("status") != before)
    job.steps_go_on()
    assert (job.status()["attempt"], job.status()["restarts"]) == (0, 0)
    job.delete()
