"""Runs the digits example, and reads its output."""

from __future__ import annotations

import re
from typing import Any, Optional

import yaml
from lab.cluster import Cluster
from product import ROOT, Job, wait_until

EXAMPLES = ROOT / "examples"
EPOCHS = 10
TRAIN = ["python3", "/examples/digits/train.py", "--epochs", str(EPOCHS)]
LONG = 720.0  # seconds for a training on a busy machine

# The example, but each epoch's line ends with the digest and the accuracy of the parameters.
DIGESTS = """
import sys
sys.path.insert(0, "/examples/digits")
import torch, train

def tell_epoch(epoch, epochs, loss, model, digits):
    accuracy = train.accuracy(model, digits)
    print(f"epoch {epoch + 1:2d}/{epochs}  SHA-256 {train.sha256(model)}  test accuracy {accuracy:.2%}", flush=True)

train.tell_epoch = tell_epoch
torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)
arguments = train.parse_arguments()
(train.train_reference if arguments.reference else train.train_with_gleaner)(arguments)
"""
TRAIN_WITH_DIGESTS = ["python3", "-c", DIGESTS, "--epochs"]
ENDLESS = [*TRAIN_WITH_DIGESTS, "1000000"]
Digests = dict[int, tuple[str, float]]  # SHA-256 of the parameters, and accuracy, by epoch


def result(job: Job, pod: str) -> tuple[str, float]:
    log = job.log(pod)
    found = re.search(r"parameters' SHA-256 ([0-9a-f]{64})\s+test accuracy ([0-9.]+)%", log)
    assert found, f"{pod} printed no result:\n{log}"
    return found[1], float(found[2])


def digests(job: Job, pod: str) -> Digests:
    """Returns the digests that a pod with TRAIN_WITH_DIGESTS has printed so far."""
    lines = re.findall(r"epoch +(\d+)/\d+  SHA-256 ([0-9a-f]{64})  test accuracy ([0-9.]+)%", job.log(pod))
    return {int(epoch): (sha256, float(accuracy)) for epoch, sha256, accuracy in lines}


def bits_are_those_of(reference: Digests, job: Job, pod: str) -> None:
    """Checks the parameters after the last epoch that both trainings have reached."""
    seen = digests(job, pod)
    last = max(seen.keys() & reference.keys())
    assert seen[last] == reference[last], f"after epoch {last} of {max(seen)}"


def in_epoch(job: Job, epoch: int, attempt: int = 0) -> None:
    """Waits until the training has reached the given epoch."""
    suffix = f"-r{attempt}" if attempt else ""
    job.wait_log(f"{job.name}-worker-0{suffix}", f"epoch {epoch:2d}/", LONG)


def endless(example: str, namespace: str, replicas: Optional[int] = None) -> dict[str, Any]:
    """Returns the TrainingJob of a file in `examples`, with a training that does not end and prints digests."""
    job: dict[str, Any] = yaml.safe_load((EXAMPLES / example).read_text())
    job["metadata"]["namespace"] = namespace
    workers = job["spec"]["workers"]
    workers["replicas"] = replicas or workers["replicas"]
    workers["template"]["spec"]["containers"][0]["command"] = ENDLESS
    return job


def start_endless(cluster: Cluster, namespace: str) -> Job:
    """Starts examples/digits.yaml with an endless training, and waits for its second epoch and for both summers."""
    cluster.apply(endless("digits.yaml", namespace))
    job = Job(cluster, "digits", namespace)
    in_epoch(job, 2)
    wait_until("both summers take part", lambda: len(job.planned_summers()) == 2, LONG)
    return job
