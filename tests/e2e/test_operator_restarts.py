"""Tests that running jobs are coordinated again after the operator, its lease or the API server was lost for a while.

Training itself goes on without a coordinator until a summer is lost. So after each fault the tests await steps that the
operator reports, remove a summer, and await further steps."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from conftest import QUICK, temporary_namespace
from digits import Digests, bits_are_those_of, endless, in_epoch, start_endless
from installation import RELEASE, helm
from lab.cluster import Cluster
from product import SYSTEM, Job, install, kill, leader, leading_pod, wait_for_apiserver, wait_until

AWAY_SECONDS = 20  # longer than the operator's lease lasts
Accident = Callable[[Cluster], None]


def leading_process_killed(cluster: Cluster) -> None:
    before = leader(cluster)
    kill(cluster, leading_pod(cluster), "gleaner-operator")
    wait_until("another operator leads", lambda: leader(cluster) not in ("", before))


def leading_pod_deleted(cluster: Cluster) -> None:
    before = leader(cluster)
    name = leading_pod(cluster)["metadata"]["name"]
    cluster.kubectl("-n", SYSTEM, "delete", "pod", name, "--grace-period=0", "--force")
    wait_until("another operator leads", lambda: leader(cluster) not in ("", before))


def operators_restarted(cluster: Cluster) -> None:
    before = leader(cluster)
    cluster.kubectl("-n", SYSTEM, "rollout", "restart", "deployment/gleaner-operator")
    cluster.kubectl("-n", SYSTEM, "rollout", "status", "deployment/gleaner-operator", "--timeout=480s")
    wait_until("another operator leads", lambda: leader(cluster) not in ("", before))


def lease_deleted(cluster: Cluster) -> None:
    cluster.kubectl("-n", SYSTEM, "delete", "lease", "gleaner-operator")
    wait_until("an operator leads", lambda: leader(cluster) != "")


def apiserver_away(cluster: Cluster) -> None:
    cluster.ask("kill-apiserver")
    try:
        time.sleep(AWAY_SECONDS)
    finally:
        cluster.ask("start-apiserver")
    wait_for_apiserver(cluster)


def reinstalled(cluster: Cluster) -> None:
    helm(cluster, "uninstall", RELEASE, "--wait")
    install(cluster, QUICK)


def uids(job: Job) -> dict[str, str]:
    return {name: pod["metadata"]["uid"] for name, pod in job.pods().items()}


@pytest.fixture(scope="module")
def jobs_namespace(quick: Cluster) -> Iterator[str]:
    with temporary_namespace(quick, "operator-restarts") as name:
        yield name


@pytest.fixture
def jobs(quick: Cluster, jobs_namespace: str, request: pytest.FixtureRequest) -> Iterator[tuple[Job, Job]]:
    """Two endless trainings, with two summers and without summers. They go on from test to test until one fails."""
    failed = request.session.testsfailed
    without = Job(quick, "digits-k0", jobs_namespace)
    quick.apply(endless("digits-k0.yaml", jobs_namespace, replicas=2))
    both = start_endless(quick, jobs_namespace), without
    in_epoch(without, 2)
    yield both
    if request.session.testsfailed > failed:
        for job in both:
            job.delete()


def summer_with_most_bytes(plan: dict[str, Any]) -> str:
    """Returns the summer that sums most. (A slow summer may sum nothing, and then its loss stops nobody.)"""
    summers = [member for member in plan["spec"]["members"] if member["role"] == "summer"]
    return str(max(summers, key=lambda member: member.get("ownedBytes", 0))["name"])


@pytest.mark.parametrize(
    "accident",
    [leading_process_killed, leading_pod_deleted, operators_restarted, lease_deleted, apiserver_away, reinstalled],
)
def test_steps_go_on_and_lost_summers_are_replaced(
    quick: Cluster, jobs: tuple[Job, Job], reference_digests: Digests, accident: Accident
) -> None:
    workers = [uids(job) for job in jobs]
    accident(quick)
    for job in jobs:
        job.steps_go_on()

    summed = jobs[0]
    # The operator may have sent summers away while the API server believed their machines lost.
    wait_until("both summers take part", lambda: len(summed.planned_summers()) == 2)
    plan = summed.plan()
    lost = summer_with_most_bytes(plan)
    summed.kubectl("delete", "pod", f"digits-{lost}", "--grace-period=0", "--force", "--ignore-not-found")
    wait_until("a plan omits the summer", lambda: lost not in summed.planned_summers())
    wait_until("that plan is in force", lambda: summed.plan()["status"]["committedEpoch"] > plan["spec"]["epoch"])
    summed.steps_go_on()
    wait_until("another summer replaces it", lambda: len(summed.planned_summers()) == 2)
    wait_until("the status has the plan's epoch", lambda: summed.status()["epoch"] == summed.plan()["spec"]["epoch"])

    for job, before in zip(jobs, workers):
        assert uids(job) == before, "no pod of a worker is lost or made twice"
        assert (job.phase(), job.status()["attempt"], job.status()["restarts"]) == ("Running", 0, 0)
    bits_are_those_of(reference_digests, summed, "digits-worker-0")
