"""Tests the container images of images/build in pods, and the image layout in which they are stored."""

from __future__ import annotations

import hashlib
import io
import json
import re
import subprocess
import tarfile
from pathlib import Path

import pytest
from lab.cluster import WORKPLACE, Cluster

ROOT = Path(__file__).resolve().parents[2]
VERSION = re.search(r"^project\(gleaner VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE).group(1)
PROGRAMS = ("gleaner", "gleaner-summer", "gleaner-operator", "gleaner-agent", "gleaner-scheduler-ext")

USE_GLEANER = """
import os
import sklearn, torch
import gleaner.torch
from gleaner import _abi
print(os.getuid(), _abi.load_library()._name, os.path.exists("/examples/digits/train.py"))
"""


def run_pod(cluster: Cluster, namespace: str, image: str, *command: str) -> str:
    """Runs a command in a pod that the Pod Security level "restricted" admits. Returns its output."""
    context = {"runAsNonRoot": True, "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    context["seccompProfile"] = {"type": "RuntimeDefault"}
    container = {"name": "main", "image": f"{image}:{VERSION}", "command": list(command), "securityContext": context}
    spec = {"restartPolicy": "Never", "containers": [container]}
    cluster.kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    metadata = {"name": "runs", "namespace": namespace}
    cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    over = "jsonpath={.status.containerStatuses[0].state.terminated.reason}"
    cluster.kubectl("wait", f"--for={over}", "pod/runs", "-n", namespace, "--timeout=360s")
    output = cluster.kubectl("logs", "runs", "-n", namespace)
    (status,) = cluster.get("pod", "runs", namespace)["status"]["containerStatuses"]
    assert status["state"]["terminated"]["exitCode"] == 0, output
    return output


@pytest.fixture(scope="module", autouse=True)
def built(request: pytest.FixtureRequest) -> None:
    if not (WORKPLACE.parent / "images" / "oci" / "index.json").exists():
        pytest.skip("there are no images; images/build makes them")


def test_every_program_runs_in_the_image(cluster: Cluster, namespace: str) -> None:
    script = " && ".join(f"{program} --help >/dev/null && echo {program}" for program in PROGRAMS)
    assert run_pod(cluster, namespace, "gleaner", "sh", "-c", script).split() == list(PROGRAMS)


def test_example_image_has_torch_and_gleaner(cluster: Cluster, namespace: str) -> None:
    output = run_pod(cluster, namespace, "gleaner-example", "python3", "-c", USE_GLEANER)
    assert output.split() == ["65532", "/usr/lib/python3/dist-packages/gleaner/libgleaner.so", "True"]


def docker_archive(layers: list[bytes]) -> bytes:
    """Returns an archive like those of buildah, in which layers are named by their digests."""
    names = [hashlib.sha256(layer).hexdigest() for layer in layers]
    configuration = json.dumps({"rootfs": {"diff_ids": [f"sha256:{name}" for name in names]}}).encode()
    manifest = [{"Config": "abc.json", "RepoTags": [], "Layers": [f"{name}.tar" for name in names]}]
    files = {f"{name}.tar": layer for name, layer in zip(names, layers)}
    files.update({"abc.json": configuration, "manifest.json": json.dumps(manifest).encode()})
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as out:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            out.addfile(entry, io.BytesIO(content))
    return archive.getvalue()


def add(folder: Path, name: str, layers: list[bytes]) -> None:
    subprocess.run([str(ROOT / "images" / "oci-layout"), str(folder), name], input=docker_archive(layers), check=True)


def blobs(folder: Path) -> dict[bytes, int]:
    return {path.read_bytes(): path.stat().st_ino for path in (folder / "blobs" / "sha256").iterdir()}


def test_the_layout_keeps_shared_layers_and_drops_unnamed_images(tmp_path: Path) -> None:
    add(tmp_path, "one:1", [b"base", b"first"])
    before = blobs(tmp_path)
    add(tmp_path, "two:1", [b"base", b"second"])
    add(tmp_path, "one:1", [b"base", b"third"])
    after = blobs(tmp_path)
    assert after[b"base"] == before[b"base"], "an existing layer is not written again"
    assert b"first" not in after
    assert {b"base", b"second", b"third"} <= after.keys()
    for path in (tmp_path / "blobs" / "sha256").iterdir():
        assert path.name == hashlib.sha256(path.read_bytes()).hexdigest()

    manifests = json.loads((tmp_path / "index.json").read_text())["manifests"]
    layers = {}
    for entry in manifests:
        manifest = json.loads((tmp_path / "blobs" / "sha256" / entry["digest"][7:]).read_text())
        name = entry["annotations"]["org.opencontainers.image.ref.name"]
        layers[name] = [(tmp_path / "blobs/sha256" / each["digest"][7:]).read_bytes() for each in manifest["layers"]]
    assert layers == {"one:1": [b"base", b"third"], "two:1": [b"base", b"second"]}
