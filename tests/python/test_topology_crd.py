"""Tests crds/topology.yaml with a real API server: invalid and valid Topologies, and the limits of lists."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from real_api import TOPOLOGY, Api, changed, real_api, rules_in, sample, schema_of


@pytest.fixture(scope="module")
def api(kubernetes: None) -> Iterator[Api]:
    with real_api() as api:
        api.install()
        yield api


def topology(name: str = "cluster", **entry: Any) -> dict[str, Any]:
    uplink = {"level": "topology.kubernetes.io/rack", "bandwidth": "100Gbit", **entry}
    return {
        "apiVersion": "gleaner.dev/v1alpha1",
        "kind": "Topology",
        "metadata": {"name": name},
        "spec": {"uplinks": [uplink]},
    }


UPLINK = "spec.uplinks[0]"
REFUSED = [
    (topology("other"), "metadata.name must be cluster"),
    *[
        (topology(bandwidth=value), f"{UPLINK}.bandwidth")
        for value in ("100", "100GB", "0Gbit", "-1Gbit", "fast", 1, None)
    ],
    *[
        (topology(level=value), f"{UPLINK}.level")
        for value in ("", "a b", "/rack", "a/b/c", "rack-", f"a/{'b' * 64}", None)
    ],
    *[(topology(group=value), f"{UPLINK}.group") for value in ("", "-rack", "zone/rack", "r" * 259)],
    (changed(topology(), "spec.uplinks", [topology()["spec"]["uplinks"][0]] * 1025), "spec.uplinks"),
    (changed(topology(), "spec.Uplinks", []), 'unknown field "spec.Uplinks"'),
]


@pytest.mark.parametrize(("manifest", "named"), REFUSED, ids=lambda value: str(value)[-60:])
def test_an_invalid_topology_is_refused_by_its_field(api: Api, manifest: dict[str, Any], named: str) -> None:
    answer = api.create(manifest, "&dryRun=All")
    assert not answer.ok
    assert named in answer.message


TAKEN = [
    *[topology(bandwidth=value) for value in ("100Gbit", "1.6Tbit", "200mbit", "100000000bit")],
    *[topology(level=value) for value in ("rack", "fabric.topograph.run/tier-0", f"{'a' * 253}/{'b' * 63}")],
    *[topology(group=value) for value in ("1", "rack_1.b", f"near-{'n' * 253}")],
    changed(topology(), "spec.uplinks", [topology()["spec"]["uplinks"][0]] * 1024),
    changed(topology(), "spec", {}),
]


@pytest.mark.parametrize("manifest", TAKEN, ids=lambda value: str(value)[-60:])
def test_a_valid_topology_is_taken_by_the_server_and_by_cpp(api: Api, manifest: dict[str, Any]) -> None:
    answer = api.create(manifest, "&dryRun=All")
    assert answer.ok, answer.message
    assert answer.warnings == []
    again = sample(stdin=json.dumps(answer.body))["spec"].get("uplinks", [])
    uplinks = manifest["spec"].get("uplinks", [])
    assert [(uplink["level"], uplink.get("group")) for uplink in again] == [
        (uplink["level"], uplink.get("group")) for uplink in uplinks
    ]


def test_every_rule_refuses_something(api: Api) -> None:
    said = " ".join(api.create(manifest, "&dryRun=All").message for manifest, _ in REFUSED)
    rules = list(rules_in(schema_of(TOPOLOGY)))
    assert len(rules) == 2
    assert [rule for rule in rules if rule not in said] == []


def test_the_topology_is_its_only_one(api: Api) -> None:
    manifest = topology()
    assert api.create(manifest).ok
    assert "already exists" in api.create(manifest).message
    assert api.patch(manifest, {"spec": {"uplinks": []}}).ok, "its spec can change at any time"
    assert api.patch(manifest, {"status": {"nodeCount": 7}}).ok
    assert "status" not in api.get(manifest), "only the subresource writes the status"
    api.delete(manifest)


def test_lists_of_a_topology_have_limits(api: Api) -> None:
    manifest = topology()
    assert api.create(manifest).ok
    group = {"name": "zone-a", "level": "zone"}
    nodes = {"name": "zone-a", "level": "zone", "nodes": [f"node-{index}" for index in range(8192)]}
    assert api.patch(manifest, {"status": {"groups": [group] * 8192}}, "/status").ok
    assert api.patch(manifest, {"status": {"groups": [nodes]}}, "/status").ok
    assert "status.groups" in api.patch(manifest, {"status": {"groups": [group] * 8193}}, "/status").message
    nodes["nodes"].append("node")
    assert "status.groups[0].nodes" in api.patch(manifest, {"status": {"groups": [nodes]}}, "/status").message
    api.delete(manifest)
