"""Tests the chart against a real API server: it accepts every object, and install, upgrade and uninstall work."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from charts.gleaner_chart import (
    CHART,
    EVERYTHING,
    NAMESPACE,
    Plane,
    flags_of,
    go_module,
    pod_templates,
    rendered,
    with_another_short_name,
)

MONITORING = "monitoring.coreos.com"
LISTED = (
    "deployments,daemonsets,replicasets,pods,services,serviceaccounts,secrets,configmaps,roles,rolebindings,leases,"
    "endpointslices,poddisruptionbudgets,networkpolicies"
)
CLUSTER_WIDE = (
    "clusterroles,clusterrolebindings,priorityclasses,validatingadmissionpolicies,validatingadmissionpolicybindings"
)


@pytest.fixture(scope="module")
def monitoring(plane: Plane) -> Iterator[None]:
    """Installs the CRDs of Prometheus Operator, from its Go module."""
    crds = (
        go_module("github.com/prometheus-operator/prometheus-operator", "v0.83.0") / "example/prometheus-operator-crd"
    )
    files = [
        part
        for kind in ("servicemonitors", "podmonitors", "prometheusrules")
        for part in ("-f", str(crds / f"{MONITORING}_{kind}.yaml"))
    ]
    plane.must("create", *files)
    plane.must("wait", *files, "--for=condition=Established", "--timeout=120s")
    yield
    plane.must("delete", *files)


def owned_by_the_release(plane: Plane) -> set[str]:
    """Returns Gleaner's objects: those in its namespace that Kubernetes does not create, and cluster-wide ones by
    name. The Secret of the operator is not among them: it stays when the release is uninstalled."""
    given = {"ServiceAccount/default", "ConfigMap/kube-root-ca.crt", "Secret/gleaner-operator"}
    here = plane.get(LISTED, "--namespace", NAMESPACE)["items"]
    found = {f"{thing['kind']}/{thing['metadata']['name']}" for thing in here} - given
    for thing in plane.get(CLUSTER_WIDE)["items"]:
        if "gleaner" in thing["metadata"]["name"]:
            found.add(f"{thing['kind']}/{thing['metadata']['name']}")
    return found


def wait_until_nothing_is_left(plane: Plane, seconds: float = 120) -> set[str]:
    deadline = time.monotonic() + seconds
    while (left := owned_by_the_release(plane)) and time.monotonic() < deadline:
        time.sleep(0.3)
    return left


@pytest.fixture
def clean(plane: Plane) -> Iterator[Plane]:
    yield plane
    plane.helm("uninstall", "gleaner", "--ignore-not-found", "--wait")
    plane.kubectl("delete", "crd", "-l", "app.kubernetes.io/part-of=gleaner", "--wait")
    plane.kubectl("delete", "secret", "gleaner-operator", "-n", NAMESPACE, "--ignore-not-found")
    assert wait_until_nothing_is_left(plane) == set()


def install(plane: Plane, chart: Path = CHART, **values: str) -> None:
    done = plane.helm("upgrade", "--install", "gleaner", str(chart), *flags_of(values))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("values", [{}, EVERYTHING], ids=["default", "everything"])
@pytest.mark.usefixtures("monitoring")
def test_the_server_accepts_every_object_and_warns_of_nothing(plane: Plane, values: dict[str, str]) -> None:
    objects = rendered(values)
    assert len(objects) > 20
    text = yaml.safe_dump_all(objects)
    done = plane.kubectl("apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-", text=text)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr, done.stderr
    assert len(done.stdout.splitlines()) == len(objects)


def test_install_upgrade_uninstall_leave_crds_and_the_keys(clean: Plane) -> None:
    assert owned_by_the_release(clean) == set()
    install(clean)
    assert {"Deployment/gleaner-operator", "DaemonSet/gleaner-agent"} <= owned_by_the_release(clean)
    clean.must("wait", "crd/trainingjobs.gleaner.dev", "--for=condition=Established", "--timeout=120s")

    install(clean, **{"operator.replicas": "3", "schedulerExtender.enabled": "false"})
    assert clean.get("deployment", "gleaner-operator", "-n", NAMESPACE)["spec"]["replicas"] == 3
    assert not [name for name in owned_by_the_release(clean) if "scheduler-ext" in name and "Pod/" not in name]

    # Upgrades must keep what the operator writes into objects of the release.
    clean.must("patch", "secret", "gleaner-operator", "-n", NAMESPACE, "-p", json.dumps({"data": {"key": "a2V5"}}))
    endpoints = [{"addresses": ["10.244.0.7"], "conditions": {"ready": True}}]
    ports = [{"name": "grpc", "port": 7070, "protocol": "TCP"}]
    led = json.dumps({"endpoints": endpoints, "ports": ports})
    clean.must("patch", "endpointslice", "gleaner-coordinator", "-n", NAMESPACE, "--type=merge", "-p", led)
    install(clean, **{"operator.logLevel": "debug"})
    assert clean.get("endpointslice", "gleaner-coordinator", "-n", NAMESPACE)["endpoints"] == endpoints
    assert clean.get("secret", "gleaner-operator", "-n", NAMESPACE)["data"] == {
        "key": "a2V5"
    }, "an upgrade overwrote it"

    done = clean.helm("uninstall", "gleaner", "--wait")
    assert done.returncode == 0, done.stderr
    assert wait_until_nothing_is_left(clean) == set()
    left = clean.get("crd", "-l", "app.kubernetes.io/part-of=gleaner")["items"]
    assert {crd["spec"]["names"]["kind"] for crd in left} == {"TrainingJob", "ReductionPlan", "NodeProfile", "Topology"}

    install(clean)  # a second installation takes over the CRDs and the Secret that stayed
    secret = clean.get("secret", "gleaner-operator", "-n", NAMESPACE)
    assert secret["data"] == {"key": "a2V5"}, "members of running jobs trust these keys"


def test_an_upgrade_changes_crds_and_keeps_objects(clean: Plane, tmp_path: Path) -> None:
    install(clean)
    clean.must("wait", "crd/nodeprofiles.gleaner.dev", "--for=condition=Established", "--timeout=120s")
    profile = {"apiVersion": "gleaner.dev/v1alpha1", "kind": "NodeProfile", "metadata": {"name": "node-1"}}
    clean.must("apply", "-f", "-", text=json.dumps(profile))

    install(clean, with_another_short_name(tmp_path))

    assert "spare" in clean.get("crd", "nodeprofiles.gleaner.dev")["spec"]["names"]["shortNames"]
    assert clean.get("nodeprofiles.gleaner.dev", "node-1")["metadata"]["name"] == "node-1"


def as_pod(template: dict[str, Any], name: str) -> dict[str, Any]:
    spec = copy.deepcopy(template["spec"])
    spec["serviceAccountName"] = "default"
    metadata = {"name": name, "labels": template["metadata"]["labels"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize("level", ["restricted", "baseline", "privileged"])
def test_pod_security_admits_all_but_the_agent(plane: Plane, level: str) -> None:
    """Only level "privileged" admits the agent, which mounts /proc and /sys of its host."""
    namespace = f"level-{level}"
    plane.must("create", "namespace", namespace)
    try:
        plane.must("label", "namespace", namespace, f"pod-security.kubernetes.io/enforce={level}")
        plane.must("wait", "serviceaccount/default", "-n", namespace, "--for=create", "--timeout=120s")
        for name, template in pod_templates(rendered()):
            pod = json.dumps(as_pod(template, name))
            done = plane.kubectl("create", "-n", namespace, "--dry-run=server", "-f", "-", text=pod)
            admitted = done.returncode == 0
            assert admitted == (name != "gleaner-agent" or level == "privileged"), f"{name}: {done.stderr}"
            if not admitted:
                assert "violates PodSecurity" in done.stderr, done.stderr
    finally:
        plane.must("delete", "namespace", namespace, "--wait=false")


def test_notes_show_the_schedulers_configuration(clean: Plane) -> None:
    def notes(*flags: str) -> str:
        done = clean.helm("upgrade", "--install", "gleaner", str(CHART), *flags)
        assert done.returncode == 0, done.stderr
        return done.stdout.split("NOTES:")[1]

    text = notes("--set", "schedulerExtender.service.clusterIP=10.96.0.76")
    extenders = yaml.safe_load(text[text.index("extenders:") :].split("\n\n")[0])["extenders"]
    [ours] = yaml.safe_load((CHART / "files" / "scheduler-extender.yaml").read_text())
    assert extenders == [{**ours, "urlPrefix": "http://10.96.0.76:7076"}]
    assert "extenders:" not in notes("--set", "schedulerExtender.enabled=false")
