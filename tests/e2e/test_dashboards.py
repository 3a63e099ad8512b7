"""Tests dashboards and alerts with a real Prometheus that scrapes a running job: no panel is empty, and no metric is
missing."""

from __future__ import annotations

import itertools
import os
import re
import sys
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
import yaml
from lab.cluster import Cluster
from lab.pods import pod
from product import ROOT, Job, wait_until
from prometheus_server import Prometheus
from racks import RACK, in_racks, state_uplinks

sys.path.insert(0, str(ROOT / "tests"))
from charts.gleaner_chart import (
    alert_rules,
    dashboards,
    documented_metrics,
    panel_expressions,
    prometheus_program,
)

JOB = "digits"
NAMESPACE = f"watched-{os.getpid()}"
SETTLING_SECONDS = 720.0
ATTEMPTS = 3


# Trains without end, with gradients of 8 MiB. A link's token bucket saves 256 KiB between steps, which is less than the
# headers of such a step. So no step is faster than its bound, and the efficiency is known. The gradients of the digits
# example are so small that its steps beat their bound on a fast machine.
TRAIN = """
import torch
import gleaner.torch as gln

gln.init()
model = torch.nn.Linear(2048, 1024)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
optimizer = gln.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
while True:
    optimizer.zero_grad()
    model(torch.ones(1, 2048)).mean().backward()
    optimizer.step()
"""


def long_job(namespace: str) -> dict[str, Any]:
    """Returns an endless job, on links like those of the digits example, with three workers and a summer. (With two
    workers no summer would help.)"""
    job = yaml.safe_load((ROOT / "examples" / "digits.yaml").read_text())
    job["metadata"] = {"name": JOB, "namespace": namespace}
    job["spec"]["workers"]["replicas"] = 3
    container = job["spec"]["workers"]["template"]["spec"]["containers"][0]
    container["command"] = ["python3", "-c", TRAIN]
    container["env"] = [{"name": "OMP_NUM_THREADS", "value": "1"}]
    job["spec"]["communication"]["summers"].update({"min": 1, "max": 1})
    return job


def start_with_a_summer(cluster: Cluster, namespace: str) -> Job:
    """Starts the job until it runs with its summer.

    On a busy machine the job may begin before its summer has started. The fixture then starts the job again.
    """
    job = Job(cluster, JOB, namespace)
    for _ in range(ATTEMPTS):
        cluster.apply(long_job(namespace))
        job.wait_phase("Running", seconds=SETTLING_SECONDS)
        if job.status().get("summersReady") == 1:
            return job
        job.delete()
        wait_until("its pods are gone", lambda: not job.pods("worker") and not job.pods("summer"))
    raise AssertionError(f"the job began without its summer, {ATTEMPTS} times")


@pytest.fixture(scope="module")
def watched(gleaner: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """A Prometheus that has seen the job's steps for a while, in a cluster of two racks with known uplinks."""
    prometheus_program("prometheus")
    gleaner.kubectl("create", "namespace", NAMESPACE)
    prometheus = Prometheus(gleaner, tmp_path_factory.mktemp("prometheus"))
    try:
        with in_racks(gleaner):
            yield from watch(gleaner, prometheus)
    finally:
        prometheus.stop()
        gleaner.kubectl("delete", "namespace", NAMESPACE, "--wait=false")


def watch(gleaner: Cluster, prometheus: Prometheus) -> Iterator[Prometheus]:
    state_uplinks(gleaner, [{"level": RACK, "bandwidth": "100Gbit"}])
    try:
        job = start_with_a_summer(gleaner, NAMESPACE)
        wait_until("Prometheus sees the job's steps", lambda: prometheus.sees(SEEN), SETTLING_SECONDS)
        yield prometheus
        job.delete()
    finally:
        state_uplinks(gleaner, [])


SEEN = f'rate(gleaner_job_steps_total{{trainingjob="{JOB}"}}[20s]) > 0 and gleaner_job_efficiency_ratio > 0'


def empty_ones(prometheus: Prometheus, questions: list[tuple[str, str]]) -> list[str]:
    values = prometheus.values([expression for _, expression in questions])
    return [f"{title}: {expression}" for (title, expression), found in zip(questions, values) if not found]


def have_a_pod_scheduled(cluster: Cluster, number: int) -> None:
    """Creates a pod for which kube-scheduler calls the extender, so that the extender's latency has a value."""
    asking = pod(f"asking-{number}", ["true"], namespace=NAMESPACE)
    summer = {"gleaner.dev/summer": "1"}
    asking["spec"]["containers"][0]["resources"] = {"requests": summer, "limits": summer}
    cluster.apply(asking)


@pytest.mark.parametrize("name", dashboards())
def test_no_panel_is_empty(watched: Prometheus, gleaner: Cluster, name: str) -> None:
    questions = list(panel_expressions(dashboards()[name], {"namespace": NAMESPACE, "job": JOB}))
    assert len(questions) > 10
    deadline = time.monotonic() + SETTLING_SECONDS
    for number in itertools.count():
        have_a_pod_scheduled(gleaner, number)
        if not (empty := empty_ones(watched, questions)) or time.monotonic() > deadline:
            break
        time.sleep(3)
    assert empty == []


def test_the_job_dashboards_variables_list_the_job(watched: Prometheus) -> None:
    variables = {each["name"]: each for each in dashboards()["job"]["templating"]["list"]}
    assert variables["namespace"]["definition"] == "label_values(gleaner_job_info, namespace)"
    answer = watched.ask([f"/api/v1/series?match[]={quote('gleaner_job_info')}"])[0]
    assert {(NAMESPACE, JOB)} <= {(each["namespace"], each["trainingjob"]) for each in answer["data"]}


def test_every_target_is_scraped(watched: Prometheus) -> None:
    targets = watched.ask(["/api/v1/targets?state=active"])[0]["data"]["activeTargets"]
    wrong = [f"{target['scrapeUrl']}: {target['lastError']}" for target in targets if target["health"] == "down"]
    assert wrong == []
    pools = [target["scrapePool"] for target in targets]
    assert pools.count("gleaner-members") == 4, "three workers and a summer"
    assert pools.count("gleaner") >= 2 + 2 + 1, "operators, extenders, agents"


def test_a_healthy_cluster_raises_no_critical_alert(watched: Prometheus) -> None:
    groups = watched.ask(["/api/v1/rules?type=alert"])[0]["data"]["groups"]
    rules = {rule["name"]: rule for group in groups for rule in group["rules"]}
    assert set(rules) == {rule["alert"] for rule in alert_rules()}
    assert {name: rule["lastError"] for name, rule in rules.items() if rule.get("lastError")} == {}
    assert {rule["health"] for rule in rules.values()} == {"ok"}
    watched.values([rule["expr"] for rule in alert_rules()])
    firing = {name for name, rule in rules.items() if rule["state"] == "firing"}
    assert not {name for name in firing if rules[name]["labels"]["severity"] == "critical"}


def test_metrics_match_the_documentation(watched: Prometheus) -> None:
    """Checks that docs/metrics.md lists exactly the metrics that the programs serve."""
    names = watched.ask(["/api/v1/label/__name__/values"])[0]["data"]
    served = {re.sub(r"_(bucket|count|sum)$", "", name) for name in names if name.startswith("gleaner_")}
    assert documented_metrics() - served == set()
    assert served - documented_metrics() == set()
