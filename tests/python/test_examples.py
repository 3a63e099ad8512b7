"""Tests examples/*.yaml with a real API server, which must admit them without a warning, and their pods in namespaces
with the Pod Security level restricted."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import BUILD, ROOT, TIMEOUT
from real_api import Api, real_api

EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
SAMPLE = BUILD / "tests" / "api_sample"
# A namespace with the strictest Pod Security level.
STRICT = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "strict", "labels": {"pod-security.kubernetes.io/enforce": "restricted"}},
}


@pytest.fixture(scope="module")
def api(kubernetes: None) -> Iterator[Api]:
    with real_api() as api:
        api.install()
        assert api.ask("POST", "/api/v1/namespaces", STRICT).ok
        yield api


def jobs_of(path: Path) -> list[dict[str, Any]]:
    return [manifest for manifest in yaml.safe_load_all(path.read_text()) if manifest["kind"] == "TrainingJob"]


JOBS = [pytest.param(job, id=f"{path.name}") for path in EXAMPLES for job in jobs_of(path)]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_admitted_without_a_warning(api: Api, path: Path) -> None:
    done = api.kubectl("apply", "--validate=strict", "-f", str(path))
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


@pytest.mark.parametrize("job", JOBS)
def test_pods_of_an_example_are_admitted_in_a_restricted_namespace(api: Api, job: dict[str, Any]) -> None:
    template = job["spec"]["workers"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "worker", **template.get("metadata", {})}}
    pod["spec"] = {"restartPolicy": "Never", **template["spec"]}
    path = "/api/v1/namespaces/strict/pods?dryRun=All&fieldValidation=Strict"
    answer = api.ask("POST", path, pod)
    assert answer.ok, answer.message
    assert answer.warnings == []


@pytest.mark.parametrize("job", JOBS)
def test_commands_in_an_example_name_its_objects(job: dict[str, Any]) -> None:
    version = re.search(r"project\(gleaner VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())
    pod = job["spec"]["workers"]["template"]["spec"]
    container = pod["containers"][0]
    gpus = container["resources"]["limits"].get("nvidia.com/gpu")
    assert container["image"] == f"gleaner-example{'-cuda' if gpus else ''}:{version[1]}"
    command = container["command"]
    if gpus:
        assert job["spec"]["workers"]["localRanks"] == gpus
        launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={gpus}"]
        assert command[1:5] == launcher
        command = [command[0], *command[5:]]
    assert command[0] == "python3"
    script = ROOT / command[1].lstrip("/")
    for flag in command[2:]:
        assert not flag.startswith("--") or f'add_argument("{flag}"' in script.read_text(), flag
    term = pod["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"][0]["podAffinityTerm"]
    assert term["labelSelector"]["matchLabels"]["gleaner.dev/job"] == job["metadata"]["name"]
    mounted = {mount["name"] for mount in container.get("volumeMounts", [])}
    assert mounted == {volume["name"] for volume in pod.get("volumes", [])}


@pytest.mark.parametrize("job", JOBS)
def test_cpp_parses_an_example(job: dict[str, Any]) -> None:
    done = subprocess.run([str(SAMPLE)], input=json.dumps(job), capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["spec"]["workers"] == {"localRanks": 1, **job["spec"]["workers"]}


def test_examples_named_in_documents_exist() -> None:
    named = {path.stem: jobs_of(path)[0]["spec"]["communication"] for path in EXAMPLES if jobs_of(path)}
    assert named["digits"]["strategy"] == "Summers"  # digits-k0 promises the same bits
    assert named["digits"]["summers"] == {"min": 0, "max": 2, "bandwidth": "100Mbit"}
    assert named["digits-elastic"]["summers"]["max"] == 4
    assert named["digits-k0"] == {"strategy": "Colocated"}
    assert named["digits-ring"] == {"strategy": "Ring"}
    assert named["digits-auto"]["strategy"] == "Auto"
    assert named["digits-auto"]["bits"] == "Schedule"  # its comment promises schedules
    assert {"suspend-resume", "quota"} <= set(named)
