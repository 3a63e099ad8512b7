"""Tests permissions with a real API server: each component has those that it needs, and none that could do harm."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from charts.gleaner_chart import CHART, NAMESPACE, Plane, Question, one, rendered

TEAM = "team"

ALLOWED: dict[str, list[Question]] = {
    "operator": [
        *[(verb, "trainingjobs.gleaner.dev", TEAM) for verb in ("get", "list", "watch", "delete")],
        ("patch", "trainingjobs.gleaner.dev:status", TEAM),
        *[(verb, "reductionplans.gleaner.dev", TEAM) for verb in ("get", "list", "watch", "create", "patch")],
        ("patch", "reductionplans.gleaner.dev:status", TEAM),
        ("list", "nodeprofiles.gleaner.dev", ""),
        *[(verb, "topologies.gleaner.dev", "") for verb in ("get", "list", "watch", "create", "patch")],
        *[(verb, "topologies.gleaner.dev:status", "") for verb in ("get", "patch", "update")],
        *[(verb, "pods", TEAM) for verb in ("get", "list", "watch", "create", "patch", "delete")],
        *[(verb, "services", TEAM) for verb in ("list", "watch", "create", "patch")],
        ("create", "configmaps", TEAM),
        *[(verb, "configmaps/gleaner-bootstrap", TEAM) for verb in ("list", "watch", "patch", "delete")],
        ("watch", "nodes", ""),
        ("get", "namespaces/team", ""),
        ("create", "events", TEAM),
        ("patch", "events.events.k8s.io", TEAM),
        ("create", "tokenreviews.authentication.k8s.io", ""),
        ("update", "leases.coordination.k8s.io/gleaner-operator", NAMESPACE),
        ("get", "secrets/gleaner-operator", NAMESPACE),
        ("patch", "secrets/gleaner-operator", NAMESPACE),
        ("update", "endpointslices.discovery.k8s.io/gleaner-coordinator", NAMESPACE),
    ],
    "agent": [
        *[(verb, "nodeprofiles.gleaner.dev", "") for verb in ("get", "create", "patch")],
        ("get", "topologies.gleaner.dev", ""),
        ("patch", "nodeprofiles.gleaner.dev:status", ""),
        ("get", "nodes/n1", ""),
        ("patch", "nodes/n1:status", ""),
        ("watch", "pods", TEAM),
    ],
    "scheduler-ext": [
        *[(verb, what, "") for verb in ("list", "watch") for what in ("nodes", "nodeprofiles.gleaner.dev")],
        *[(verb, "pods", TEAM) for verb in ("list", "watch")],
    ],
}

REFUSED: dict[str, list[Question]] = {
    "operator": [
        ("get", "secrets", TEAM),
        ("list", "secrets", ""),
        ("list", "secrets", NAMESPACE),
        ("get", "secrets/other", NAMESPACE),
        ("patch", "trainingjobs.gleaner.dev", TEAM),
        ("create", "trainingjobs.gleaner.dev", TEAM),
        ("patch", "nodeprofiles.gleaner.dev", ""),
        ("delete", "topologies.gleaner.dev", ""),
        ("delete", "services", TEAM),
        ("delete", "reductionplans.gleaner.dev", TEAM),
        ("get", "configmaps/other", TEAM),
        ("list", "configmaps", TEAM),
        ("patch", "configmaps/kube-root-ca.crt", TEAM),
        ("create", "pods:exec", TEAM),
        ("create", "pods:ephemeralcontainers", TEAM),
        ("create", "serviceaccounts:token", TEAM),
        ("patch", "nodes", ""),
        ("patch", "nodes:status", ""),
        ("create", "namespaces", ""),
        ("update", "leases.coordination.k8s.io/kube-scheduler", "kube-system"),
        ("update", "endpointslices.discovery.k8s.io/kubernetes", "default"),
        ("update", "endpointslices.discovery.k8s.io/other", NAMESPACE),
        ("get", "clusterroles.rbac.authorization.k8s.io/gleaner-operator", ""),
        ("create", "clusterroles.rbac.authorization.k8s.io", ""),
        ("bind", "clusterroles.rbac.authorization.k8s.io", ""),
        ("create", "deployments.apps", TEAM),
        ("impersonate", "users", ""),
    ],
    "agent": [
        ("patch", "nodes", ""),
        ("delete", "nodes", ""),
        ("delete", "nodeprofiles.gleaner.dev", ""),
        ("list", "nodeprofiles.gleaner.dev", ""),
        ("list", "topologies.gleaner.dev", ""),
        ("create", "pods", TEAM),
        ("delete", "pods", TEAM),
        ("patch", "pods:status", TEAM),
        ("list", "secrets", NAMESPACE),
        ("get", "secrets/gleaner-operator", NAMESPACE),
        ("list", "trainingjobs.gleaner.dev", TEAM),
        ("create", "tokenreviews.authentication.k8s.io", ""),
    ],
    "scheduler-ext": [
        ("patch", "nodes", ""),
        ("patch", "pods", TEAM),
        ("create", "pods:binding", TEAM),
        ("patch", "nodeprofiles.gleaner.dev", ""),
        ("patch", "topologies.gleaner.dev", ""),
        ("get", "trainingjobs.gleaner.dev", TEAM),
        ("get", "secrets/gleaner-operator", NAMESPACE),
        ("list", "configmaps", NAMESPACE),
    ],
}

PEOPLE_ALLOWED: dict[str, list[Question]] = {
    "view": [("list", "trainingjobs.gleaner.dev", TEAM), ("get", "reductionplans.gleaner.dev", TEAM)],
    "edit": [
        *[(verb, "trainingjobs.gleaner.dev", TEAM) for verb in ("get", "create", "patch", "delete")],
        ("patch", "trainingjobs.gleaner.dev:scale", TEAM),
        ("watch", "reductionplans.gleaner.dev", TEAM),
    ],
    "admin": [("create", "trainingjobs.gleaner.dev", TEAM), ("get", "reductionplans.gleaner.dev", TEAM)],
}
PEOPLE_REFUSED: dict[str, list[Question]] = {
    "view": [("create", "trainingjobs.gleaner.dev", TEAM), ("delete", "trainingjobs.gleaner.dev", TEAM)],
    "edit": [
        ("patch", "trainingjobs.gleaner.dev:status", TEAM),
        ("patch", "reductionplans.gleaner.dev", TEAM),
        ("create", "trainingjobs.gleaner.dev", "default"),
        ("patch", "nodeprofiles.gleaner.dev", ""),
        ("patch", "topologies.gleaner.dev", ""),
        ("get", "secrets/gleaner-operator", NAMESPACE),
    ],
    "admin": [
        ("patch", "reductionplans.gleaner.dev", TEAM),
        ("patch", "nodeprofiles.gleaner.dev", ""),
        ("patch", "topologies.gleaner.dev", ""),
    ],
}
CLUSTER_WIDE = ("nodeprofiles.gleaner.dev", "topologies.gleaner.dev")


@pytest.fixture(scope="module")
def installed(plane: Plane) -> Iterator[Plane]:
    done = plane.helm("upgrade", "--install", "gleaner", str(CHART))
    assert done.returncode == 0, done.stderr
    plane.must(
        "wait", "crd", "-l", "app.kubernetes.io/part-of=gleaner", "--for=condition=Established", "--timeout=120s"
    )
    plane.must("create", "namespace", TEAM)
    for role in PEOPLE_ALLOWED:
        plane.must("create", "rolebinding", role, "-n", TEAM, f"--clusterrole={role}", f"--user={role}er")
    plane.must("create", "clusterrolebinding", "reader", "--clusterrole=gleaner-view", "--user=reader")
    yield plane
    plane.must("delete", "clusterrolebinding", "reader")
    plane.must("delete", "namespace", TEAM, "--wait=false")
    plane.helm("uninstall", "gleaner", "--wait")
    plane.must("delete", "crd", "-l", "app.kubernetes.io/part-of=gleaner")


def wrong(plane: Plane, user: str, groups: list[str], questions: list[Question], expected: bool) -> list[Question]:
    answers = plane.may(user, groups, questions)
    assert len(answers) == len(questions)
    return [question for question, answer in zip(questions, answers) if answer != expected]


def account(part: str) -> tuple[str, list[str]]:
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}"]
    return f"system:serviceaccount:{NAMESPACE}:gleaner-{part}", groups


@pytest.mark.parametrize("part", ALLOWED)
def test_each_component_has_the_permissions_that_it_needs(installed: Plane, part: str) -> None:
    assert wrong(installed, *account(part), ALLOWED[part], expected=True) == []


def test_the_operator_lists_only_its_own_configmaps(installed: Plane) -> None:
    user = f"--as={account('operator')[0]}"
    installed.must("get", "configmaps", "-A", "--field-selector=metadata.name=gleaner-bootstrap", user)
    for selector in ((), ("--field-selector=metadata.name=other",), ("-l", "app.kubernetes.io/managed-by=gleaner")):
        assert "forbidden" in installed.kubectl("get", "configmaps", "-A", *selector, user).stderr


@pytest.mark.parametrize("part", REFUSED)
def test_no_component_has_further_permissions(installed: Plane, part: str) -> None:
    assert wrong(installed, *account(part), REFUSED[part], expected=False) == []


def test_the_tested_permissions_are_about_existing_resources(installed: Plane) -> None:
    known = set(installed.must("api-resources", "-o", "name").split())
    verbs_without_one = {"users"}  # impersonate
    everything = [*ALLOWED.values(), *REFUSED.values(), *PEOPLE_ALLOWED.values(), *PEOPLE_REFUSED.values()]
    asked = {what.partition(":")[0].partition("/")[0] for questions in everything for _, what, _ in questions}
    assert asked - known - verbs_without_one == set()


@pytest.mark.parametrize("role", PEOPLE_ALLOWED)
def test_users_have_their_roles_for_jobs(installed: Plane, role: str) -> None:
    # The controller manager aggregates Gleaner's rules into the role with a short delay.
    deadline = time.monotonic() + 120
    while wrong(installed, f"{role}er", [], PEOPLE_ALLOWED[role], expected=True) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert wrong(installed, f"{role}er", [], PEOPLE_ALLOWED[role], expected=True) == []
    assert wrong(installed, f"{role}er", [], PEOPLE_REFUSED[role], expected=False) == []


def test_the_role_view_of_the_cluster_reads_cluster_wide_objects(installed: Plane) -> None:
    reading = [(verb, what, "") for verb in ("get", "list", "watch") for what in CLUSTER_WIDE]
    writing = [(verb, what, "") for verb in ("create", "patch", "delete") for what in CLUSTER_WIDE]
    assert wrong(installed, "reader", [], reading, expected=True) == []
    assert wrong(installed, "reader", [], writing, expected=False) == []


@pytest.mark.parametrize("part", ALLOWED)
def test_no_rule_has_a_wildcard(part: str) -> None:
    rules = one(rendered(), "ClusterRole", f"gleaner-{part}")["rules"]
    assert rules
    for rule in rules:
        assert "*" not in [*rule["verbs"], *rule["resources"], *rule["apiGroups"]]
