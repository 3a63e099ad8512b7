"""A real `helm install`, upgrade and uninstall: everything runs, and nothing but CRDs stays."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from installation import RELEASE, as_before, helm, upgrade, wait_until_gone
from lab.cluster import Cluster
from product import CHART, SYSTEM, install, wait_until


@pytest.fixture
def own_release(cluster: Cluster, tmp_path: Path) -> Iterator[Cluster]:
    with as_before(cluster, tmp_path):
        helm(cluster, "uninstall", RELEASE, "--ignore-not-found", "--wait")
        yield cluster


def listed(cluster: Cluster, kind: str, *flags: str) -> list[dict[str, Any]]:
    return json.loads(cluster.kubectl("get", kind, "-o", "json", *flags))["items"]


def addresses_of_the_coordinator(cluster: Cluster) -> set[str]:
    slices = listed(cluster, "endpointslices", "-n", SYSTEM, "-l", "kubernetes.io/service-name=gleaner-coordinator")
    return {address for each in slices for endpoint in each["endpoints"] for address in endpoint["addresses"]}


def addresses_of(cluster: Cluster, part: str) -> set[str]:
    pods = listed(cluster, "pods", "-n", SYSTEM, "-l", f"app.kubernetes.io/name=gleaner-{part}")
    return {pod["status"]["podIP"] for pod in pods if "deletionTimestamp" not in pod["metadata"]}


def with_another_short_name(folder: Path) -> Path:
    """The chart as a later version of it may be, with another CRD."""
    newer = folder / "newer"
    shutil.copytree(CHART, newer)
    path = newer / "files" / "crds" / "nodeprofile.yaml"
    crd = yaml.safe_load(path.read_text())
    crd["spec"]["names"]["shortNames"].append("spare")
    path.write_text(yaml.safe_dump(crd))
    return newer


def test_install_upgrade_uninstall(own_release: Cluster, tmp_path: Path) -> None:
    cluster = own_release
    assert wait_until_gone(cluster) == set()

    install(cluster)
    wait_until("one replica leads", lambda: len(addresses_of_the_coordinator(cluster)) == 1)
    assert addresses_of_the_coordinator(cluster) <= addresses_of(cluster, "operator")
    restarts = [
        state["restartCount"]
        for pod in listed(cluster, "pods", "-n", SYSTEM)
        for state in pod["status"].get("containerStatuses", [])
    ]
    assert set(restarts) == {0}, "something crashed on the way"

    upgrade(cluster, with_another_short_name(tmp_path), {"operator.replicas": "3", "operator.logLevel": "debug"})
    assert len(addresses_of(cluster, "operator")) == 3
    operator = cluster.get("deployment", "gleaner-operator", SYSTEM)
    assert "--log-level=debug" in operator["spec"]["template"]["spec"]["containers"][0]["args"]
    assert cluster.kubectl("get", "spare", "-o", "name").split(), "the upgrade did not change the CRD"
    wait_until("the next leader", lambda: addresses_of_the_coordinator(cluster) <= addresses_of(cluster, "operator"))

    helm(cluster, "uninstall", RELEASE, "--wait")
    assert wait_until_gone(cluster) == set()
    crds = listed(cluster, "crds", "-l", "app.kubernetes.io/part-of=gleaner")
    assert {crd["spec"]["names"]["kind"] for crd in crds} == {"TrainingJob", "ReductionPlan", "NodeProfile"}
