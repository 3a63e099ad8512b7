"""Renders the chart, and runs helm, kubectl, prometheus and promtool for the tests."""

from __future__ import annotations

import copy
import functools
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Optional

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "charts" / "gleaner"
NAMESPACE = "gleaner-system"
# (verb, RESOURCE[.GROUP][/NAME][:SUBRESOURCE], namespace; empty: cluster-wide)
Question = tuple[str, str, str]
KUBERNETES = "1.34.4"
# Values that enable all parts of the chart.
EVERYTHING = {
    "networkPolicy.enabled": "true",
    "networkPolicy.schedulerCIDRs": "{10.0.0.0/28}",
    "serviceMonitor.enabled": "true",
    "podMonitor.enabled": "true",
    "prometheusRule.enabled": "true",
    "agent.nvidia.enabled": "true",
    "agent.bandwidth": "25Gbit",
    "agent.measure.enabled": "true",
    "schedulerExtender.service.clusterIP": "10.96.0.76",
    "image.pullSecrets": "{registry}",
    "operator.priorityClassName": "system-cluster-critical",
    "transports.sharedMemory.enabled": "true",
    "transports.rdma.enabled": "true",
}

sys.path.insert(0, str(ROOT / "tests" / "e2e"))


def with_another_short_name(folder: Path) -> Path:
    """Returns a copy of the chart with a changed CRD, as a later version may have."""
    newer = folder / "newer"
    shutil.copytree(CHART, newer)
    path = newer / "files" / "crds" / "nodeprofile.yaml"
    crd = yaml.safe_load(path.read_text())
    crd["spec"]["names"]["shortNames"].append("spare")
    path.write_text(yaml.safe_dump(crd))
    return newer


@functools.cache
def installed_helm() -> Optional[str]:
    """Returns the path of a helm in PATH if its version is that of tests/e2e/binaries, up to the patch version.

    Other versions word their errors differently.
    """
    found = shutil.which("helm")
    if found is None:
        return None
    module = (ROOT / "tests" / "e2e" / "kubernetes" / "go.mod").read_text()
    wanted = re.search(r"helm\.sh/helm/v3 (v\d+\.\d+)\.", module)
    assert wanted, "tests/e2e/kubernetes/go.mod does not name helm"
    return found if re.match(rf"{wanted[1]}\b", run(found, "version", "--short").stdout) else None


@functools.cache
def built_helm() -> Optional[Path]:
    """Returns the path of the helm that tests/e2e/binaries has built before, or None."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    found = cache / "gleaner" / "e2e" / "bin" / "helm"
    return found if found.exists() else None


def program(name: str) -> str:
    """Returns the path of helm or kubectl. tests/e2e/binaries builds them, unless a suitable helm is in PATH.

    Skips the test if the build is not possible.
    """
    from lab.processes import LabError, binaries

    if name == "helm":
        if (installed := installed_helm()) is not None:
            return installed
        if built_helm() is None and shutil.which("go") is None:
            pytest.skip("helm is missing and there is no Go to build it with")
    try:
        return str(binaries("kube" if name == "kubectl" else name) / name)
    except LabError as error:
        pytest.skip(f"{name}: {error}")


def prometheus_program(name: str) -> str:
    """Returns the path of prometheus or promtool, either installed or unpacked by `scripts/bootstrap check`."""
    found = shutil.which(name) or shutil.which(name, path=str(ROOT / "build" / "tools" / "bin"))
    if found is None:
        pytest.skip(f"{name} (package prometheus) is missing; scripts/bootstrap check unpacks it")
    return found


def go_module(name: str, version: str) -> Path:
    """Returns the folder of a Go module, downloading it if needed. Skips the test if the download fails."""
    if shutil.which("go") is None:
        pytest.skip(f"go is missing, and {name} cannot be downloaded without it")
    done = run("go", "mod", "download", "-json", f"{name}@{version}", timeout=300)
    answer = json.loads(done.stdout or "{}")
    if "Dir" not in answer:
        pytest.skip(f"{name}@{version} could not be downloaded: {answer.get('Error', done.stderr)}")
    return Path(answer["Dir"])


def run(*command: str, text: Optional[str] = None, timeout: float = 240) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=timeout)


class StrictLoader(yaml.SafeLoader):
    """Refuses mappings that have a key twice. Kubernetes and PyYAML's own loaders silently take the last value."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            if (key := self.construct_object(key_node, deep=True)) in seen:
                raise yaml.constructor.ConstructorError(None, None, f"duplicate key {key!r}", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def documents(text: str) -> list[Any]:
    """Returns the documents of YAML that are not empty. Raises ConstructorError for a duplicate key."""
    return [document for document in yaml.load_all(text, StrictLoader) if document]


def flags_of(values: dict[str, str]) -> list[str]:
    return [part for name, value in values.items() for part in ("--set", f"{name}={value}")]


def template(values: Optional[dict[str, str]] = None, *flags: str) -> subprocess.CompletedProcess[str]:
    return run(
        program("helm"),
        *("template", "gleaner", str(CHART), "--namespace", NAMESPACE, "--kube-version", KUBERNETES),
        *flags_of(values or {}),
        *flags,
    )


@functools.cache
def _rendered(values: tuple[tuple[str, str], ...]) -> list[dict[str, Any]]:
    done = template(dict(values))
    assert done.returncode == 0, done.stderr
    return documents(done.stdout)


def rendered(values: Optional[dict[str, str]] = None) -> list[dict[str, Any]]:
    """Returns the objects of the chart with these values."""
    return copy.deepcopy(_rendered(tuple((values or {}).items())))


def one(objects: list[dict[str, Any]], kind: str, name: str) -> dict[str, Any]:
    found = [thing for thing in objects if thing["kind"] == kind and thing["metadata"]["name"] == name]
    assert len(found) == 1, f"expected one {kind} {name}; found {len(found)}"
    return found[0]


def pod_templates(objects: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    for thing in objects:
        if thing["kind"] in ("Deployment", "DaemonSet"):
            yield thing["metadata"]["name"], thing["spec"]["template"]


def dashboards() -> dict[str, dict[str, Any]]:
    return {path.stem: json.loads(path.read_text()) for path in sorted((CHART / "dashboards").glob("*.json"))}


def panel_expressions(dashboard: dict[str, Any], variables: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yields the title and the expression of every query, with the variables replaced by their values."""
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            expression = target["expr"].replace("$__rate_interval", "1m")
            for name, value in variables.items():
                expression = expression.replace(f"${name}", value)
            yield panel["title"], expression


def alert_rules() -> Iterator[dict[str, Any]]:
    for path in sorted((CHART / "alerts").glob("*.yaml")):
        for group in yaml.safe_load(path.read_text())["groups"]:
            yield from group["rules"]


def metric_names(expression: str) -> set[str]:
    names = set(re.findall(r"\bgleaner_[a-z_]+", expression))
    return {re.sub(r"_(bucket|count|sum)$", "", name) for name in names}


def documented_metrics() -> set[str]:
    """Returns the metric names in docs/metrics.md, which lists the coordinator's metrics without their common
    prefix."""
    text = (ROOT / "docs" / "metrics.md").read_text()
    names = set(re.findall(r"`(gleaner_[a-z_]+)`", text))
    section = re.search(r"^## Coordinator.*?(?=^## )", text, re.MULTILINE | re.DOTALL)
    assert section, "docs/metrics.md has no section about the coordinator"
    short = {name for name in re.findall(r"`([a-z_]+)`", section.group()) if not name.startswith("gleaner_")}
    return names | {f"gleaner_coordinator_{name}" for name in short}


class Plane:
    """Runs kubectl and helm as an administrator of an API server."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = str(kubeconfig)

    def kubectl(self, *arguments: str, text: Optional[str] = None) -> subprocess.CompletedProcess[str]:
        return run(program("kubectl"), "--kubeconfig", self._kubeconfig, *arguments, text=text)

    def must(self, *arguments: str, text: Optional[str] = None) -> str:
        done = self.kubectl(*arguments, text=text)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    def get(self, *arguments: str) -> dict[str, Any]:
        return json.loads(self.must("get", "-o", "json", *arguments))

    def helm(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run(program("helm"), "--kubeconfig", self._kubeconfig, "--namespace", NAMESPACE, *arguments)

    def may(self, user: str, groups: list[str], questions: list[Question]) -> list[bool]:
        """Returns for each question whether the user may do it, like `kubectl auth can-i` but in a single call."""
        reviews = [access_review(user, groups, question) for question in questions]
        listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": reviews})
        lines = self.must("create", "-o", 'jsonpath={.status.allowed}{"\\n"}', "-f", "-", text=listed).split()
        assert set(lines) <= {"true", "false"}, lines
        return [line == "true" for line in lines]


def access_review(user: str, groups: list[str], question: Question) -> dict[str, Any]:
    verb, what, namespace = question
    named, _, subresource = what.partition(":")
    kind, _, name = named.partition("/")
    resource, _, group = kind.partition(".")
    attributes = {"verb": verb, "group": group, "resource": resource, "subresource": subresource, "name": name}
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": user,
            "groups": [*groups, "system:authenticated"],
            "resourceAttributes": {**attributes, "namespace": namespace},
        },
    }
