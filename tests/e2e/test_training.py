"""Tests training on a real cluster: examples/digits.yaml as users apply it, undisturbed and with a lost worker."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from digits import ENDLESS, EXAMPLES, LONG, TRAIN, Digests, bits_are_those_of, in_epoch, result
from lab.cluster import Cluster
from product import BUILD, apply_file, kill, submit, wait_until


def test_digits_through_summers(gleaner: Cluster, namespace: str, reference: tuple[str, float]) -> None:
    job = apply_file(gleaner, EXAMPLES / "digits.yaml", namespace, "digits")
    in_epoch(job, 3)
    # The second summer may join later than the first.
    wait_until(
        "four workers and two summers are in the plan",
        lambda: gleaner.get("reductionplan", "digits", namespace)["status"].get("acknowledged") == 6,
    )
    workers, summers = job.pods(), job.pods("summer")
    assert len(workers) == 4 and len(summers) == 2
    nodes = [pod["spec"]["nodeName"] for pod in [*workers.values(), *summers.values()]]
    assert len(set(nodes)) == 6, "four workers' machines and two others"
    assert {pod["metadata"]["annotations"]["kubernetes.io/egress-bandwidth"] for pod in summers.values()} == {
        "100000000"
    }
    wait_until("goodput and efficiency are known", lambda: bool(job.status().get("efficiency")))
    plan = gleaner.get("reductionplan", "digits", namespace)
    assert [member["name"] for member in plan["spec"]["members"]] == [
        *(f"worker-{i}" for i in range(4)),
        "summer-0",
        "summer-1",
    ]
    # ownedBytes counts all tensors of the plan, including tensors that were only broadcast at the start.
    assert sum(member["ownedBytes"] for member in plan["spec"]["members"]) >= plan["spec"]["bytesPerStep"] > 0
    assert plan["status"]["committedEpoch"] >= 2 and plan["status"]["acknowledged"] == 6
    shown = job.kubectl("get", "tj", "digits")
    assert re.search(r"digits\s+Running\s+4/4\s+2\s+\d+\s+[0-9.]+ MB/s\s+[0-9.]+ %", shown), shown
    job.wait_phase("Succeeded", seconds=LONG)
    assert result(job, "digits-worker-0") == reference
    wait_until("summers give their machines back", lambda: not job.pods("summer"))


@pytest.mark.long
def test_digits_without_summers(gleaner: Cluster, namespace: str, reference: tuple[str, float]) -> None:
    job = apply_file(gleaner, EXAMPLES / "digits-k0.yaml", namespace, "digits-k0")
    job.wait_phase("Succeeded", seconds=LONG)
    assert not job.pods("summer")
    assert result(job, "digits-k0-worker-0") == reference


def test_a_killed_worker_starts_again_from_the_checkpoint(
    gleaner: Cluster, namespace: str, reference_digests: Digests, tmp_path: Path
) -> None:
    # Only worker 0 uses the checkpoint. A folder of this machine, which all nodes see, serves as shared storage.
    node = "n1"
    spec = {
        "nodeSelector": {"kubernetes.io/hostname": node},
        "initContainers": [{"name": "open", "image": "gleaner-example:0.1.0", "securityContext": {"runAsUser": 0},
                            "command": ["chmod", "0777", "/checkpoint"],
                            "volumeMounts": [{"name": "checkpoint", "mountPath": "/checkpoint"}]}],
        "volumes": [{"name": "checkpoint", "hostPath": {"path": str(tmp_path), "type": "Directory"}}],
    }  # fmt: skip
    mount = {"volumeMounts": [{"name": "checkpoint", "mountPath": "/checkpoint"}]}
    job = submit(gleaner, namespace, "killed", [*ENDLESS, "--checkpoint", "/checkpoint"], replicas=4, pod=spec,
                 container=mount, communication={"strategy": "Summers"})  # fmt: skip
    in_epoch(job, 3)
    kill(gleaner, job.pods()["killed-worker-2"], "python3")
    wait_until("the job reports the restart", lambda: job.status().get("restarts") == 1)
    assert "killed-worker-2" in job.condition("Restarting")["message"]
    wait_until("the next attempt has a plan", lambda: job.plan()["spec"].get("attempt") == 1)
    job.steps_go_on()
    assert "resumed after epoch" in job.log("killed-worker-0-r1")
    bits_are_those_of(reference_digests, job, "killed-worker-0-r1")


def test_a_foreign_jobs_token_is_refused(gleaner: Cluster, namespace: str) -> None:
    victim = submit(gleaner, namespace, "victim", TRAIN, replicas=2)
    victim.wait_phase("Running")
    # The thief presents its own token, but claims to be worker 1 of the other job.
    pretend = f"GLEANER_JOB={namespace}/victim/0 GLEANER_WORKER=1 exec {' '.join(TRAIN)}"
    thief = submit(gleaner, namespace, "thief", ["sh", "-c", pretend])
    thief.wait_phase("Failed", seconds=LONG)
    assert "is not that of this member" in thief.log("thief-worker-0")
    victim.wait_phase("Succeeded", seconds=LONG)


def test_the_command_line_tells_what_a_job_does(gleaner: Cluster, namespace: str) -> None:
    job = apply_file(gleaner, EXAMPLES / "digits.yaml", namespace, "digits")
    in_epoch(job, 2)
    wait_until(
        "the plan has tensors", lambda: job.status().get("epoch", 0) >= 2 and bool(job.status().get("efficiency"))
    )
    program = str(BUILD / "bin" / "gleaner")
    shown = gleaner.run(program, "explain", "digits", "-n", namespace).stdout
    assert "summer-1" in shown and "worker-3" in shown
    listed = json.loads(gleaner.run(program, "status", "-n", namespace, "-o", "json").stdout)
    assert "digits" in json.dumps(listed)
