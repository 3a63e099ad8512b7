"""Tests jobs that lose summers because a machine fails, or because a pod of higher priority preempts a summer."""

from __future__ import annotations

from typing import Any

from digits import Digests, bits_are_those_of, start_endless
from lab.cluster import Cluster
from product import Job, leading_pod, owners, wait_until


def machines(pods: dict[str, Any]) -> dict[str, str]:
    return {name: each["spec"].get("nodeName", "") for name, each in pods.items()}


def trains_on(job: Job, workers: dict[str, Any], reference: Digests) -> None:
    """Checks that steps go on with the same workers, in the first attempt, and with the reference's bits."""
    job.steps_go_on()
    assert {name: each["metadata"]["uid"] for name, each in job.pods().items()} == {
        name: each["metadata"]["uid"] for name, each in workers.items()
    }
    assert (job.phase(), job.status()["attempt"], job.status()["restarts"]) == ("Running", 0, 0)
    bits_are_those_of(reference, job, "digits-worker-0")


def test_a_summer_on_a_node_that_lost_power_is_replaced(
    gleaner: Cluster, namespace: str, reference_digests: Digests
) -> None:
    job = start_endless(gleaner, namespace)
    workers, where = job.pods(), machines(job.pods("summer"))
    # Prefers a machine without the coordinator, whose loss is the subject of another test.
    away = leading_pod(gleaner)["spec"]["nodeName"]
    name, node = sorted(where.items(), key=lambda each: each[1] == away)[0]
    member = name.removeprefix("digits-")
    gleaner.ask("node-off", node)
    try:
        wait_until("a plan omits the summer", lambda: member not in job.planned_summers())
        trains_on(job, workers, reference_digests)
    finally:
        gleaner.ask("node-on", node)
        gleaner.kubectl("wait", "--for=condition=Ready", f"node/{node}", "--timeout=240s")


def test_a_summer_gives_way_to_a_pod_of_higher_priority(
    gleaner: Cluster, namespace: str, reference_digests: Digests
) -> None:
    job = start_endless(gleaner, namespace)
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
        trains_on(job, workers, reference_digests)
    finally:
        job.kubectl("delete", "pod", "owners", "--grace-period=0", "--force")
