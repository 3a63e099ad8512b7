"""Tests summers that join, leave and are deleted while a job runs, and the autoscaler with a real Prometheus."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import QUICK
from digits import LONG, Digests, bits_are_those_of, endless, start_endless
from lab.cluster import Cluster
from product import BUILD, Job, install, owners, wait_until
from prometheus_server import URL, Prometheus

MEASURED = {
    **QUICK,
    "autoscaler.prometheus.url": URL,
    "autoscaler.prometheus.intervalSeconds": "2",
    "autoscaler.prometheus.windowSeconds": "20",
}
SECONDS_TO_LEAVE = 240.0  # usually ten
STALE = 30.0  # more than the window and two intervals, so that all earlier measurements are stale


def summer_nodes(job: Job) -> list[str]:
    found = job.pods("summer").values()
    return [each["spec"].get("nodeName", "") for each in found if "deletionTimestamp" not in each["metadata"]]


def test_deleted_summers_are_replaced_and_no_bit_differs(
    quick: Cluster, namespace: str, reference_digests: Digests
) -> None:
    job = start_endless(quick, namespace)
    workers = {name: each["metadata"]["uid"] for name, each in job.pods().items()}
    job.kubectl("delete", "pod", "digits-summer-0", "--wait=false")
    wait_until("another summer replaces it", lambda: "summer-2" in job.planned_summers())
    assert "digits-summer-0" not in job.pods("summer"), "no name is used twice"
    job.steps_go_on()

    lost = job.planned_summers()
    for name in lost:
        job.kubectl("delete", "pod", f"digits-{name}", "--wait=false", "--grace-period=0", "--force")
    wait_until("a plan omits the summers", lambda: not {*job.planned_summers()} & {*lost})
    job.steps_go_on()
    wait_until("other summers replace them", lambda: len(job.planned_summers()) == 2)
    assert {name: each["metadata"]["uid"] for name, each in job.pods().items()} == workers
    status = job.status()
    assert (status["attempt"], status["restarts"]) == (0, 0)
    assert status["nextSummer"] >= 5
    job.wait_event("SummerAdded")
    bits_are_those_of(reference_digests, job, "digits-worker-0")
    job.delete()


@pytest.fixture(scope="module")
def measured(gleaner: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    prometheus = Prometheus(gleaner, tmp_path_factory.mktemp("prometheus"))
    try:
        install(gleaner, MEASURED)
        yield prometheus
        install(gleaner)
    finally:
        prometheus.stop()


@pytest.mark.long
def test_a_summer_leaves_a_loaded_machine_and_returns(gleaner: Cluster, measured: Prometheus, namespace: str) -> None:
    gleaner.apply(endless("digits.yaml", namespace))
    job = Job(gleaner, "digits", namespace)
    job.wait_phase("Running")

    def seen(condition: Any) -> Any:
        def looks() -> bool:
            measured.discover()  # the set of pods changes
            return bool(condition())

        return looks

    both = seen(lambda: len(job.planned_summers()) == 2 and "" not in summer_nodes(job))
    wait_until("two summers are planned with", both, LONG)
    wait_until("the autoscaler looks", seen(lambda: job.status()["summers"].get("reason") == "AtMaximum"), LONG)
    node = summer_nodes(job)[0]
    began = time.monotonic()
    gleaner.apply(owners(gleaner, node, namespace, spare=10))
    wait_until("its summer leaves", lambda: node not in summer_nodes(job), SECONDS_TO_LEAVE)
    print(f"left {node} after {time.monotonic() - began:.1f} s")
    assert "OwnersNeedIt" in job.status()["summers"]["lastChange"]
    job.wait_event("SummerRemoved")
    explained = json.loads(
        gleaner.run(str(BUILD / "bin" / "gleaner"), "explain", "digits", "-n", namespace, "-o", "json").stdout
    )
    assert explained["autoscaler"]["wanted"] == 1

    job.kubectl("delete", "pod", "owners", "--grace-period=0", "--force")
    began = time.monotonic()
    wait_until("it returns", seen(lambda: node in summer_nodes(job)), LONG)
    print(f"back on {node} after {time.monotonic() - began:.1f} s")
    wait_until("and takes part", seen(lambda: len(job.planned_summers()) == 2))
    status = job.status()
    assert (status["attempt"], status["restarts"], status["phase"]) == (0, 0, "Running")
    change = status["summers"]["lastChange"]
    assert "WorthIt" in change and "of which wait for sums" in change, "by what Prometheus says"

    measured.stop()
    time.sleep(STALE)
    assert len(job.planned_summers()) == 2 and job.status()["summers"]["lastChange"] == change, "it holds"
    assert job.phase() == "Running"
    job.delete()
