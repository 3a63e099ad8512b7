"""Tests jobs that lose summers because a machine fails, or because a pod of higher priority preempts a summer."""

from __future__ import annotations

from typing import Any

from digits import EXAMPLES, LONG, in_epoch, result
from lab.cluster import Cluster
from product import SYSTEM, Job, apply_file, leader, owners, wait_until


def machines(pods: dict[str, Any]) -> dict[str, str]:
    return {name: each["spec"].get("nodeName", "") for name, each in pods.items()}


def in_training(cluster: Cluster, namespace: str) -> Job:
    """Starts the digits example, and waits for its second epoch and for both of its summers."""
    job = apply_file(cluster, EXAMPLES / "digits.yaml", namespace, "digits")
    in_epoch(job, 2)
    wait_until("both summers take part", lambda: len(job.planned_summers()) == 2, LONG)
    return job


def ends_well(job: Job, workers: dict[str, Any], reference: tuple[str, float]) -> None:
    """Checks that the job succeeds with the same workers, in its first attempt, and with the reference's bits."""
    job.wait_phase("Succeeded", seconds=LONG)
    assert {name: each["metadata"]["uid"] for name, each in job.pods().items()} == {
        name: each["metadata"]["uid"] for name, each in workers.items()
    }
    assert (job.status()["attempt"], job.status()["restarts"]) == (0, 0)
    assert result(job, "digits-worker-0") == reference


def leading_machine(cluster: Cluster) -> str:
    return str(cluster.get("pod", leader(cluster).split("_")[0], SYSTEM)["spec"]["nodeName"])


def test_a_summer_on_a_node_that_lost_power_is_replaced(
    gleaner: Cluster, namespace: str, reference: tuple[str, float]
) -> None:
    job = in_training(gleaner, namespace)
    workers, where = job.pods(), machines(job.pods("summer"))
    # Prefers a machine without the coordinator, whose loss is the subject of another test.
    away = leading_machine(gleaner)
    name, node = sorted(where.items(), key=lambda each: each[1] == away)[0]
    member = name.removeprefix("digits-")
    gleaner.ask("node-off", node)
    try:
        wait_until("a plan omits the summer", lambda: member not in job.planned_summers())
        assert job.phase() == "Running", "the training continues"
        ends_well(job, workers, reference)
    finally:
        gleaner.ask("node-on", node)
        gleaner.kubectl("wait", "--for=condition=Ready", f"node/{node}", "--timeout=240s")


def test_a_summer_gives_way_to_a_pod_of_higher_priority(
    gleaner: Cluster, namespace: str, reference: tuple[str, float]
) -> None:
    job = in_training(gleaner, namespace)
    workers = job.pods()
    name, node = sorted(machines(job.pods("summer")).items())[0]
    member = name.removeprefix("digits-")
    gleaner.apply(owners(gleaner, node, namespace))
    try:
        wait_until("a plan omits the summer", lambda: member not in job.planned_summers())
        of_it = f"involvedObject.name={name}"
        assert "Preempted" in job.kubectl("get", "events", "--field-selector", of_it, "-o", "jsonpath={..reason}")
        wait_until(
            "the summer's machine is free for the other pod", lambda: machines(job.pods("summer")).get(name) is None
        )
        job.kubectl("wait", "--for=condition=Ready", "pod/owners", "--timeout=240s")
        ends_well(job, workers, reference)
    finally:
        job.kubectl("delete", "pod", "owners", "--grace-period=0", "--force")
