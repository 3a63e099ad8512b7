"""Tests the objects that the chart renders for different values, and the values that it refuses."""

from __future__ import annotations

import re
import subprocess
from base64 import b64decode
from typing import Any

import pytest
import yaml

from charts.gleaner_chart import CHART, EVERYTHING, ROOT, one, pod_templates, program, rendered, run, template

DEFAULT_PARTS = {"gleaner-operator", "gleaner-agent", "gleaner-scheduler-ext"}


def test_lint_finds_nothing() -> None:
    done = run(program("helm"), "lint", "--strict", "--kube-version", "1.34.4", str(CHART))
    assert done.returncode == 0, done.stdout + done.stderr


def test_default_values_render_only_objects_of_a_bare_cluster() -> None:
    objects = rendered()
    assert {name for name, _ in pod_templates(objects)} == DEFAULT_PARTS
    groups = {thing["apiVersion"].split("/")[0] for thing in objects if "/" in thing["apiVersion"]}
    assert not [group for group in groups if "." in group and not group.endswith(".k8s.io")], groups


def test_the_page_configures_the_extender_as_the_chart_does() -> None:
    [ours] = yaml.safe_load((CHART / "files" / "scheduler-extender.yaml").read_text())
    blocks = (ROOT / "docs" / "scheduler.md").read_text().split("```")
    [block] = [block for block in blocks if "kind: KubeSchedulerConfiguration" in block]
    [told] = yaml.safe_load(block.removeprefix("yaml"))["extenders"]
    assert {**told, "urlPrefix": ours["urlPrefix"]} == ours


def test_every_object_is_rendered_once() -> None:
    names = [(thing["kind"], thing["metadata"]["name"]) for thing in rendered(EVERYTHING)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("values", [{}, EVERYTHING], ids=["default", "everything"])
def test_namespaced_objects_are_in_the_releases_namespace_and_all_are_labelled(values: dict[str, str]) -> None:
    cluster_wide = {"ClusterRole", "ClusterRoleBinding", "PriorityClass", "CustomResourceDefinition"}
    for thing in rendered(values):
        if thing["kind"].startswith("ValidatingAdmissionPolicy"):
            continue
        assert thing["metadata"]["labels"]["app.kubernetes.io/part-of"] == "gleaner", thing["metadata"]["name"]
        if thing["kind"] not in cluster_wide:
            assert thing["metadata"].get("namespace") == "gleaner-system", thing["metadata"]["name"]


@pytest.mark.parametrize("values", [{}, EVERYTHING], ids=["default", "everything"])
def test_pods_are_hardened(values: dict[str, str]) -> None:
    for name, pod in pod_templates(rendered(values)):
        spec = pod["spec"]
        assert spec["securityContext"]["runAsNonRoot"] is True, name
        assert spec["securityContext"]["runAsUser"] == 65532, name
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert not spec.get("hostPID"), name
        assert not spec.get("hostIPC"), name
        for container in spec["containers"]:
            context = container["securityContext"]
            assert context["readOnlyRootFilesystem"] is True, name
            assert context["allowPrivilegeEscalation"] is False, name
            assert context["capabilities"] == {"drop": ["ALL"]}, name
            assert "limits" in container["resources"], name
            assert {"startupProbe", "livenessProbe", "readinessProbe"} <= set(container), name


def test_only_the_agent_sees_the_host_and_cannot_write_there() -> None:
    for name, pod in pod_templates(rendered()):
        spec = pod["spec"]
        host_paths = {volume["name"] for volume in spec.get("volumes", []) if "hostPath" in volume}
        if name != "gleaner-agent":
            assert not host_paths, name
            assert not spec.get("hostNetwork"), name
            continue
        mounts = [mount for mount in spec["containers"][0]["volumeMounts"] if mount["name"] in host_paths]
        assert sorted(mount["mountPath"] for mount in mounts) == ["/host/proc", "/host/sys"]
        assert all(mount["readOnly"] for mount in mounts)
        assert spec["hostNetwork"] is True


def test_tokens_are_mounted_only_in_pods_that_request_them() -> None:
    objects = rendered()
    accounts = [thing for thing in objects if thing["kind"] == "ServiceAccount"]
    assert {account["metadata"]["name"] for account in accounts} == DEFAULT_PARTS
    assert all(account["automountServiceAccountToken"] is False for account in accounts)
    assert all(pod["spec"]["serviceAccountName"] == name for name, pod in pod_templates(objects))


def test_the_coordinators_service_has_no_selector() -> None:
    service = one(rendered(), "Service", "gleaner-coordinator")
    assert "selector" not in service["spec"]
    assert [port["port"] for port in service["spec"]["ports"]] == [7070]


@pytest.mark.parametrize("values", [{}, EVERYTHING], ids=["default", "everything"])
def test_services_and_monitors_select_existing_pods_and_ports(values: dict[str, str]) -> None:
    objects = rendered(values)
    pods = list(pod_templates(objects))
    selected = 0
    for thing in objects:
        if thing["kind"] != "Service" or "selector" not in thing["spec"]:
            continue
        wanted = thing["spec"]["selector"].items()
        found = [pod for _, pod in pods if wanted <= pod["metadata"]["labels"].items()]
        # Agents of both DaemonSets measure with each other.
        assert len(found) == (2 if "measure" in thing["metadata"]["name"] else 1), thing["metadata"]["name"]
        for pod in found:
            ports = {port["name"]: port["containerPort"] for port in pod["spec"]["containers"][0]["ports"]}
            assert all(ports[port["targetPort"]] == port["port"] for port in thing["spec"]["ports"])
        selected += 1
    assert selected == (4 if values else 3)
    for monitor in [thing for thing in objects if thing["kind"] == "ServiceMonitor"]:
        wanted = monitor["spec"]["selector"]["matchLabels"].items()
        services = [thing for thing in objects if thing["kind"] == "Service"]
        matching = [service for service in services if wanted <= service["metadata"]["labels"].items()]
        port = monitor["spec"]["endpoints"][0]["port"]
        named = [service for service in matching if port in {entry["name"] for entry in service["spec"]["ports"]}]
        assert len(named) == 1, monitor["metadata"]["name"]


def test_the_image_of_the_values_is_in_every_pod_and_given_to_summers() -> None:
    digest = "sha256:" + "a" * 64
    cases = {
        "registry.example/lab/gleaner:1.2": {"image.repository": "registry.example/lab/gleaner", "image.tag": "1.2"},
        f"gleaner@{digest}": {"image.digest": digest, "image.tag": "1.2"},
        f"gleaner:{yaml.safe_load((CHART / 'Chart.yaml').read_text())['appVersion']}": {},
    }
    for image, values in cases.items():
        objects = rendered(values)
        for name, pod in pod_templates(objects):
            assert [container["image"] for container in pod["spec"]["containers"]] == [image], name
        operator = one(objects, "Deployment", "gleaner-operator")["spec"]["template"]["spec"]["containers"][0]
        assert f"--summer-image={image}" in operator["args"]


def test_the_operator_gets_the_enabled_transports() -> None:
    def arguments(values: dict[str, str]) -> list[str]:
        pod = one(rendered(values), "Deployment", "gleaner-operator")["spec"]["template"]
        found = pod["spec"]["containers"][0]["args"]
        return [word for word in found if word.startswith(("--shm", "--rdma"))]

    assert arguments({}) == []
    assert arguments({"transports.sharedMemory.enabled": "true"}) == ["--shm-host-path=/dev/shm"]
    named = {"transports.rdma.enabled": "true", "transports.rdma.resource": "nvidia.com/hostdev"}
    assert arguments(named) == ["--rdma-resource=nvidia.com/hostdev"]


def test_agents_that_measure_share_a_secret() -> None:
    objects = rendered({"agent.measure.enabled": "true"})
    assert len(b64decode(one(objects, "Secret", "gleaner-agent-measure")["data"]["secret"])) == 48
    agent = one(objects, "DaemonSet", "gleaner-agent")["spec"]["template"]["spec"]
    mounts = {mount["name"]: mount["mountPath"] for mount in agent["containers"][0]["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in agent["volumes"]}
    assert volumes["measure"]["secret"]["secretName"] == "gleaner-agent-measure"
    assert f"--measure-secret-file={mounts['measure']}/secret" in agent["containers"][0]["args"]
    assert not [thing for thing in rendered() if "measure" in thing["metadata"]["name"]]


def test_the_chart_has_the_version_of_the_programs() -> None:
    version = re.search(r"^project\(gleaner VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)
    assert version
    assert yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"] == version.group(1)


def test_no_object_of_a_disabled_extender_is_rendered() -> None:
    objects = rendered({**EVERYTHING, "schedulerExtender.enabled": "false"})
    assert not [thing for thing in objects if "scheduler-ext" in thing["metadata"]["name"]]


def test_crds_are_optional_and_outlive_the_release() -> None:
    crds = [thing for thing in rendered() if thing["kind"] == "CustomResourceDefinition"]
    assert {crd["spec"]["names"]["kind"] for crd in crds} == {"TrainingJob", "ReductionPlan", "NodeProfile", "Topology"}
    for crd in crds:
        assert crd["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    without = rendered({"crds.install": "false"})
    assert not [thing for thing in without if thing["kind"] == "CustomResourceDefinition"]


def test_crds_of_the_chart_match_the_folder_crds() -> None:
    done = subprocess.run([ROOT / "scripts" / "chart-crds", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    originals = {path.name: yaml.safe_load(path.read_text()) for path in (ROOT / "crds").glob("*.yaml")}
    for name, original in originals.items():
        copy: dict[str, Any] = yaml.safe_load((CHART / "files" / "crds" / name).read_text())
        del copy["metadata"]["annotations"], copy["metadata"]["labels"]
        assert copy == original, name


REFUSED = {
    "operator.replicas=0": "/operator/replicas",
    "operator.replica=2": "replica",
    "operator=null": "operator",
    "operator.logLevel=loud": "/operator/logLevel",
    "operator.resources.requests.cpu=much": "/operator/resources/requests/cpu",
    "image.digest=latest": "/image/digest",
    "image.repository=": "/image/repository",
    "image.pullPolicy=Sometimes": "/image/pullPolicy",
    "crds.install=perhaps": "/crds/install",
    "agent.bandwidth=25Gbps": "/agent/bandwidth",
    "agent.tolerations[0].effect=NoWay": "/agent/tolerations/0/effect",
    "agent.nvidia.nodeLabel=nvidia\\.com/gpu\\.present": "/agent/nvidia/nodeLabel",
    "schedulerExtender.service.clusterIP=extender.local": "/schedulerExtender/service/clusterIP",
    "summers.priorityClass.value=2000000000": "/summers/priorityClass/value",
    "transports.sharedMemory.hostPath=shm": "/transports/sharedMemory/hostPath",
    "transports.rdma.resource=hca": "/transports/rdma/resource",
    "serviceMonitor.interval=15": "/serviceMonitor/interval",
    "networkPolicy.schedulerCIDRs={10.0.0.1}": "/networkPolicy/schedulerCIDRs/0",
    "dashboards.labels.a=1": "/dashboards/labels/a",
    "dashbords.enabled=true": "dashbords",
}


@pytest.mark.parametrize("value", REFUSED)
def test_wrong_values_are_refused_with_their_names(value: str) -> None:
    done = template(None, "--set", value)
    assert done.returncode != 0, f"{value} was accepted"
    assert "schema" in done.stderr, done.stderr
    assert REFUSED[value] in done.stderr, done.stderr
