"""Tests the examples other than digits.yaml, by the commands in their first comments."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from digits import EXAMPLES, LONG, in_epoch, result
from lab.cluster import Cluster
from product import Job, apply_file, submit, wait_until


@pytest.mark.long
def test_the_elastic_example_uses_the_available_machines(
    gleaner: Cluster, namespace: str, reference: tuple[str, float]
) -> None:
    job = apply_file(gleaner, EXAMPLES / "digits-elastic.yaml", namespace, "digits-elastic")
    in_epoch(job, 2)
    assert len(job.pods("summer")) == 2, "six machines, four of them its workers'"
    assert job.kubectl("get", "rplan", "digits-elastic").count("\n") == 2
    job.wait_phase("Succeeded", seconds=LONG)
    assert result(job, "digits-elastic-worker-0") == reference


@pytest.mark.long
def test_the_ring_example_sums_along_a_ring(gleaner: Cluster, namespace: str, reference: tuple[str, float]) -> None:
    job = apply_file(gleaner, EXAMPLES / "digits-ring.yaml", namespace, "digits-ring")
    in_epoch(job, 2)
    wait_until("the status names the strategy", lambda: job.status().get("strategy") == "ring")
    plan = gleaner.get("reductionplan", "digits-ring", namespace)["spec"]
    assert [entry["strategy"] for entry in plan["strategies"]] == ["ring"]
    assert [schedule["algorithm"] for schedule in plan["schedules"]] == ["ring"]
    assert "ring" in job.kubectl("get", "tj", "digits-ring", "-o", "wide")
    job.wait_phase("Succeeded", seconds=LONG)
    checksum, accuracy = result(job, "digits-ring-worker-0")
    assert checksum != reference[0], "a ring adds in another order than summers"
    assert abs(accuracy - reference[1]) < 3


@pytest.fixture
def quota_namespace(gleaner: Cluster) -> Iterator[str]:
    yield "gleaner-quota"
    gleaner.kubectl("delete", "namespace", "gleaner-quota", "--ignore-not-found", "--wait=false")


@pytest.mark.long
def test_the_quota_example_waits_for_quota(
    gleaner: Cluster, quota_namespace: str, reference: tuple[str, float]
) -> None:
    gleaner.kubectl("apply", "-f", str(EXAMPLES / "quota.yaml"))
    job = Job(gleaner, "digits", quota_namespace)
    wait_until("the job says so", lambda: job.condition("Created").get("reason") == "QuotaExceeded")
    job.kubectl("patch", "quota", "pods", "--type=merge", "-p", '{"spec": {"hard": {"pods": "6"}}}')
    job.wait_phase("Succeeded", seconds=LONG)
    assert result(job, "digits-worker-0") == reference


@pytest.fixture
def shared_volume(gleaner: Cluster, tmp_path: Path) -> Iterator[None]:
    """A PersistentVolume in a folder of this machine, which all nodes see, in place of shared storage."""
    tmp_path.chmod(0o777)
    gleaner.apply({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "shared"},
        "spec": {
            "capacity": {"storage": "64Mi"},
            "accessModes": ["ReadWriteMany"],
            "persistentVolumeReclaimPolicy": "Retain",
            "hostPath": {"path": str(tmp_path), "type": "Directory"},
        },
    })  # fmt: skip
    yield
    gleaner.kubectl("delete", "persistentvolume", "shared", "--wait=false")


@pytest.mark.long
def test_the_suspended_example_continues_from_its_checkpoint(
    gleaner: Cluster, namespace: str, shared_volume: None
) -> None:
    train = ["python3", "/examples/digits/train.py", "--epochs", "30", "--reference", "4"]
    undisturbed = submit(gleaner, namespace, "undisturbed", train)
    job = apply_file(gleaner, EXAMPLES / "suspend-resume.yaml", namespace, "suspend-resume")
    in_epoch(job, 5)
    job.patch({"spec": {"runPolicy": {"suspend": True}}})
    job.wait_phase("Suspended")
    wait_until("its pods are gone", lambda: not job.pods() and not job.pods("summer"))
    job.patch({"spec": {"runPolicy": {"suspend": False}}})
    job.wait_phase("Succeeded", seconds=LONG)
    assert "resumed after epoch" in job.log("suspend-resume-worker-0-r1")
    undisturbed.wait_phase("Succeeded", seconds=LONG)
    assert result(job, "suspend-resume-worker-0-r1") == result(undisturbed, "undisturbed-worker-0")
