"""Tests a real `helm install`, upgrade and uninstall: all components run, and only CRDs and keys are left."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from installation import RELEASE, as_before, helm, upgrade, wait_until_gone
from lab.cluster import Cluster
from product import ROOT, SYSTEM, install, wait_until

sys.path.insert(0, str(ROOT / "tests"))
from charts.gleaner_chart import with_another_short_name


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
    assert set(restarts) == {0}, "a container has restarted"

    upgrade(cluster, with_another_short_name(tmp_path), {"operator.replicas": "3", "operator.logLevel": "debug"})
    assert len(addresses_of(cluster, "operator")) == 3
    operator = cluster.get("deployment", "gleaner-operator", SYSTEM)
    assert "--log-level=debug" in operator["spec"]["template"]["spec"]["containers"][0]["args"]
    assert cluster.kubectl("get", "spare", "-o", "name").split(), "the upgrade did not change the CRD"
    wait_until("the next leader", lambda: addresses_of_the_coordinator(cluster) <= addresses_of(cluster, "operator"))

    helm(cluster, "uninstall", RELEASE, "--wait")
    assert wait_until_gone(cluster) == set()
    crds = listed(cluster, "crds", "-l", "app.kubernetes.io/part-of=gleaner")
    assert {crd["spec"]["names"]["kind"] for crd in crds} == {"TrainingJob", "ReductionPlan", "NodeProfile", "Topology"}
