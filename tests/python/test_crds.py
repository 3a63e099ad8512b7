"""Tests crds/ with a real API server: validation, defaults, errors that name fields, columns, and objects from C++."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import ROOT
from real_api import (
    CRD_PATH,
    CRDS,
    TOPOLOGY,
    Answer,
    Api,
    changed,
    real_api,
    rules_in,
    sample,
    schema_of,
    small_job,
)

KINDS = ("TrainingJob", "NodeProfile", "Topology", "ReductionPlan")
LOCKED = "only while the job is suspended"
CONTAINERS = "spec.workers.template.spec.containers"
OPERATORS = (
    "GLEANER_COORDINATOR GLEANER_JOB GLEANER_ATTEMPT GLEANER_WORKER GLEANER_WORKERS GLEANER_LOCAL_SIZE GLEANER_POD_IP "
    "GLEANER_ADDRESS GLEANER_TOKEN_FILE GLEANER_CA_FILE GLEANER_METRICS GLEANER_BANDWIDTH GLEANER_TRANSPORTS "
    "GLEANER_SHM_DIR"
).split()


@pytest.fixture(scope="module")
def installed(kubernetes: None) -> Iterator[tuple[Api, list[Answer]]]:
    with real_api() as api:
        yield api, api.install()


@pytest.fixture
def api(installed: tuple[Api, list[Answer]]) -> Api:
    return installed[0]


@pytest.fixture
def job(api: Api) -> Iterator[dict[str, Any]]:
    """A running job: not suspended, and with a start time."""
    manifest = small_job("running", communication={"summers": {"min": 1, "max": 2}})
    assert api.create(manifest).ok
    assert api.patch(manifest, {"status": {"startTime": "2026-01-31T12:00:00Z"}}, "/status").ok
    yield manifest
    api.delete(manifest)


def test_the_api_server_accepts_the_crds_without_a_warning(installed: tuple[Api, list[Answer]]) -> None:
    api, answers = installed
    for answer in answers:
        assert answer.ok, answer.message
        assert answer.warnings == []
    for definition in api.ask("GET", CRD_PATH).body["items"]:
        conditions = {entry["type"]: entry["status"] for entry in definition["status"]["conditions"]}
        assert conditions == {"NamesAccepted": "True", "Established": "True"}, definition["status"]


def test_applying_them_again_changes_nothing(api: Api) -> None:
    for path in CRDS:
        assert api.kubectl("apply", "--server-side", "-f", str(path)).returncode == 0
        before = api.kubectl("get", "-f", str(path), "-o", "jsonpath={.metadata.resourceVersion}").stdout
        assert api.kubectl("apply", "--server-side", "-f", str(path)).returncode == 0
        assert api.kubectl("get", "-f", str(path), "-o", "jsonpath={.metadata.resourceVersion}").stdout == before


def test_every_field_has_a_description_and_a_unit() -> None:
    units = ("second", "byte", "bits per second", "number of", "version", "cores", "epoch", "generation", "attempt",
             "percent")  # fmt: skip

    def check(schema: dict[str, Any], path: str) -> None:
        for name, field in schema.get("properties", {}).items():
            below = f"{path}.{name}"
            if below == ".metadata":
                continue  # the API server describes it
            words = field.get("description", "").lower()
            assert words, f"{below} has no description"
            if field.get("type") == "integer" and name not in ("numaNode", "max"):
                assert any(unit in words for unit in units), f"{below}: the description names no unit: {words}"
            check(field, below)
            check(field.get("items", {}), below + "[]")

    for path in CRDS:
        check(schema_of(path), "")


def test_defaults(api: Api) -> None:
    manifest = small_job("defaults")
    del manifest["spec"]["workers"]["replicas"]
    created = api.create(manifest, "&dryRun=All")
    assert created.ok, created.message
    spec = created.body["spec"]
    assert (spec["workers"]["replicas"], spec["workers"]["localRanks"]) == (1, 1)
    assert spec["workers"]["template"]["spec"]["restartPolicy"] == "Never"
    assert spec["communication"] == {
        "strategy": "Auto",
        "rankMap": "Topology",
        "transport": "Auto",
        "compression": "None",
        "summers": {"min": 0, "max": 0, "resources": {"requests": {"cpu": "2m", "memory": "256Mi"}}},
    }
    assert spec["runPolicy"] == {
        "backoffLimit": 3,
        "startDeadlineSeconds": 600,
        "cleanPodPolicy": "Running",
        "suspend": False,
    }


def test_defaults_inside_given_objects(api: Api) -> None:
    created = api.create(small_job("defaults", communication={"summers": {"max": 2}}), "&dryRun=All")
    assert created.body["spec"]["communication"]["summers"]["min"] == 0
    assert created.body["spec"]["communication"]["strategy"] == "Auto"


OF_CLASS_SCHEDULE = ("Ring", "HalvingDoubling", "DoubleTree", "BCube", "BlueConnect", "TwoLevel", "Racks")
SCHEDULES = (*OF_CLASS_SCHEDULE, "Gather")
REFUSED = [
    ("metadata.name", "a" * 45, "metadata.name must have at most 44 characters"),
    ("metadata.name", "1job", "metadata.name must be a DNS label"),
    ("metadata.name", "my.job", "metadata.name must be a DNS label"),
    ("spec.workers", None, "spec.workers"),
    ("spec.workers.replicas", 0, "spec.workers.replicas"),
    ("spec.workers.replicas", 4097, "spec.workers.replicas"),
    ("spec.workers.localRanks", 0, "spec.workers.localRanks"),
    ("spec.workers.localRanks", 65, "spec.workers.localRanks"),
    ("spec.workers.template", {}, "spec.workers.template.spec"),
    (CONTAINERS, [], CONTAINERS),
    (CONTAINERS, [{"name": "a"}], f"{CONTAINERS}[0].image"),
    (CONTAINERS, [{"name": "a", "image": "b"}, {"name": "a", "image": "c"}], f"{CONTAINERS}[1]"),
    (f"{CONTAINERS}.0.name", "Train!", f"{CONTAINERS}[0].name"),
    ("spec.workers.template.spec.restartPolicy", "OnFailure", "spec.workers.template.spec.restartPolicy"),
    *[
        (f"{CONTAINERS}.0.env", [{"name": "A", "value": "1"}, {"name": name, "value": "1"}], f"{CONTAINERS}[0].env")
        for name in OPERATORS
    ],
    (f"{CONTAINERS}.0.ports", [{"containerPort": 80, "name": "metrics"}], CONTAINERS + ": "),
    (f"{CONTAINERS}.0.ports", [{"containerPort": 80}, {"containerPort": 81, "name": "gleaner"}], CONTAINERS + ": "),
    ("spec.workers.template.spec.volumes", [{"name": "gleaner-bootstrap"}], "spec.workers.template.spec.volumes: "),
    ("spec.communication.strategy", "ring", "spec.communication.strategy"),
    *[
        (
            "spec.communication",
            {"strategy": strategy, "summers": {"min": 1, "max": 2}},
            "spec.communication.summers.min",
        )
        for strategy in SCHEDULES
    ],
    *[
        ("spec.communication", {"strategy": strategy, "stages": [2, 2]}, "spec.communication.stages")
        for strategy in ("Auto", "Colocated", "Summers", "Ring", "HalvingDoubling", "DoubleTree", "BCube")
    ],
    *[
        ("spec.communication", {"strategy": strategy, "radix": 2}, "spec.communication.radix")
        for strategy in ("Auto", "Colocated", "Summers", *(name for name in SCHEDULES if name != "BCube"))
    ],
    *[
        ("spec.communication", {"strategy": "BlueConnect", "stages": stages}, "spec.communication.stages")
        for stages in ([2], [2, 2, 2], [0, 4], [4097], [], [1] * 13, [4096] * 12, ["2", "2"])
    ],
    *[
        ("spec.communication", {"strategy": strategy, "stages": stages}, "spec.communication.stages")
        for strategy in ("TwoLevel", "Racks")
        for stages in ([4], [2, 2, 1], [2, 3])
    ],
    *[
        ("spec.communication", {"strategy": "BCube", "radix": radix}, "spec.communication.radix")
        for radix in (3, 8, 4096, 1, 0)
    ],
    *[
        ("spec.communication", {"strategy": strategy, "stages": [2, 2], "bits": "RankOrder"}, "spec.communication.bits")
        for strategy in OF_CLASS_SCHEDULE
    ],
    ("spec.communication.bits", "rankorder", "spec.communication.bits"),
    ("spec.communication.rankMap", "topology", "spec.communication.rankMap"),
    ("spec.communication", {"strategy": "Colocated", "summers": {"max": 1}}, "spec.communication.summers.max"),
    ("spec.communication.transport", "rdma", "spec.communication.transport"),
    *[
        ("spec.communication.partitionBytes", value, "spec.communication.partitionBytes")
        for value in (4095, 4194305, "5Mi", "4KiB", "4096500m", "many", "", -1)
    ],
    ("spec.communication.compression", "fp16", "spec.communication.compression"),
    *[
        ("spec.communication.fusion", value, "spec.communication.fusion")
        for value in (0, -1, "0", "-4Mi", "500m", "max", "Auto ", "4MiB", "")
    ],
    ("spec.communication.summers", {"min": 2, "max": 1}, "spec.communication.summers.min"),
    ("spec.communication.summers", {"min": 1}, "spec.communication.summers.min"),
    ("spec.communication.summers.min", -1, "spec.communication.summers.min"),
    ("spec.communication.summers.max", 513, "spec.communication.summers.max"),
    *[
        ("spec.communication.summers.bandwidth", value, "spec.communication.summers.bandwidth")
        for value in ("25", "25GB", "0Gbit", "0.0Mbit", "-1Gbit", "1e9bit", " 1Gbit", "fast")
    ],
    (
        "spec.communication.summers.resources",
        {"requests": {"cpu": "1"}, "limits": {"cpu": "500m"}},
        "spec.communication.summers.resources.requests",
    ),
    ("spec.communication.summers.resources.limits", {"cpu": "x"}, "spec.communication.summers.resources.limits.cpu"),
    ("spec.runPolicy.backoffLimit", -1, "spec.runPolicy.backoffLimit"),
    ("spec.runPolicy.activeDeadlineSeconds", 0, "spec.runPolicy.activeDeadlineSeconds"),
    ("spec.runPolicy.startDeadlineSeconds", 0, "spec.runPolicy.startDeadlineSeconds"),
    ("spec.runPolicy.ttlSecondsAfterFinished", -1, "spec.runPolicy.ttlSecondsAfterFinished"),
    ("spec.runPolicy.cleanPodPolicy", "Some", "spec.runPolicy.cleanPodPolicy"),
    ("spec.runPolicy.suspend", "yes", "spec.runPolicy.suspend"),
    ("spec.runpolicy", {}, 'unknown field "spec.runpolicy"'),
]


@pytest.mark.parametrize(("path", "value", "named"), REFUSED, ids=lambda value: str(value)[:60])
def test_an_invalid_job_is_refused_by_its_field(api: Api, path: str, value: Any, named: str) -> None:
    answer = api.create(changed(small_job("bad"), path, value))
    assert not answer.ok
    assert named in answer.message


def test_every_rule_refuses_something(api: Api) -> None:
    said = " ".join(api.create(changed(small_job("bad"), path, value)).message for path, value, _ in REFUSED)
    rules = [rule for path in CRDS if path != TOPOLOGY for rule in rules_in(schema_of(path))]
    assert len(rules) >= 10
    assert [rule for rule in rules if rule not in said] == []


def with_workers(replicas: int, communication: dict[str, Any]) -> dict[str, Any]:
    spec = small_job("sized", communication=communication)["spec"]
    return {**spec, "workers": {**spec["workers"], "replicas": replicas}}


TAKEN = [
    ("metadata.name", "a" * 44),
    ("spec.workers.replicas", 4096),
    (f"{CONTAINERS}.0.env", [{"name": "GLEANER_LOG_LEVEL", "value": "debug"}]),
    *[("spec.communication.partitionBytes", value) for value in (4096, "4Ki", "256Ki", "1Mi", "4Mi", 4194304, "100k")],
    *[("spec.communication.compression", value) for value in ("None", "FP16", "BF16")],
    *[("spec.communication.fusion", value) for value in (1, 65536, "4Mi", "1Gi", "100k", "Auto", "Max")],
    *[("spec.communication.summers.bandwidth", value) for value in ("25Gbit", "1.5Gbit", "200mbit", "100000000bit")],
    ("spec.communication.summers", {"min": 2, "max": 2}),
    *[("spec.communication.strategy", strategy) for strategy in ("Auto", "Colocated", "Summers", *SCHEDULES)],
    ("spec.communication", {"strategy": "Ring", "summers": {"max": 2}}),
    *[
        ("spec.communication", {"strategy": strategy, "bits": bits})
        for strategy in ("Auto", "Colocated", "Summers", "Gather")
        for bits in ("RankOrder", "Schedule")
    ],
    ("spec.communication", {"strategy": "Ring", "bits": "Schedule"}),
    *[("spec.communication", {"strategy": "BlueConnect", "stages": stages}) for stages in ([2, 2], [4], [1, 4, 1])],
    *[("spec.communication", {"strategy": strategy, "stages": [2, 2]}) for strategy in ("TwoLevel", "Racks")],
    *[("spec.communication", {"strategy": "BCube", "radix": radix}) for radix in (2, 4)],
    *[("spec.communication.rankMap", order) for order in ("Topology", "Identity")],
    ("spec", with_workers(4096, {"strategy": "BCube", "radix": 2})),
    ("spec", with_workers(1, {"strategy": "BCube", "radix": 3})),
    ("spec", with_workers(4096, {"strategy": "BlueConnect", "stages": [2] * 12})),
    ("spec.communication.summers.resources", {"requests": {"cpu": 1}, "limits": {"cpu": "1000m", "memory": "1Gi"}}),
    ("spec.communication.summers.resources", {}),
    ("spec.runPolicy", {"backoffLimit": 0, "activeDeadlineSeconds": 1, "ttlSecondsAfterFinished": 0, "suspend": True}),
    (f"{CONTAINERS}.0.ports", [{"containerPort": 80}, {"containerPort": 81, "name": "web"}]),
    ("spec.workers.template.spec.volumes", [{"name": "data", "emptyDir": {}}]),
    ("spec.workers.template.spec.affinity", {"podAntiAffinity": {"anything": [1]}}),
]


@pytest.mark.parametrize(("path", "value"), TAKEN, ids=lambda value: str(value)[:60])
def test_a_valid_job_is_taken_by_the_server_and_by_cpp(api: Api, path: str, value: Any) -> None:
    answer = api.create(changed(small_job("good"), path, value), "&dryRun=All")
    assert answer.ok, answer.message
    assert answer.warnings == []
    again = sample(stdin=json.dumps(answer.body))
    assert again["spec"]["workers"] == answer.body["spec"]["workers"]
    assert again["spec"]["runPolicy"] == answer.body["spec"]["runPolicy"]
    for option in ("strategy", "stages", "radix", "rankMap"):
        assert again["spec"]["communication"].get(option) == answer.body["spec"]["communication"].get(option)


LOCKED_FIELDS = [
    ("workers.replicas", 5),
    ("workers.localRanks", 2),
    ("workers.template", {"spec": {"nodeSelector": {"gpu": "yes"}}}),
    ("workers.template", {"spec": {"containers": [{"name": "train", "image": "example:2"}]}}),
    ("workers.template", {"spec": {"affinity": {"podAntiAffinity": {}}}}),
    ("workers.template", {"metadata": {"annotations": {"kubernetes.io/egress-bandwidth": "100M"}}}),
    ("communication.strategy", None),
    ("communication.stages", None),
    ("communication.radix", None),
    ("communication.rankMap", "Identity"),
    ("communication.transport", "TCP"),
    ("communication.bits", "Schedule"),
    ("communication.partitionBytes", "64Ki"),
    ("communication.compression", "FP16"),
    ("communication.fusion", "Max"),
    ("communication.summers.min", 0),
    ("communication.summers.resources", {"limits": {"cpu": 1}}),
    ("communication.summers.bandwidth", "1Gbit"),
]


def test_every_locked_field_is_tested() -> None:
    locked = {
        rule["fieldPath"].removeprefix(".spec.")
        for rule in schema_of(CRDS[-1])["x-kubernetes-validations"]
        if "oldSelf" in rule["rule"]
    }
    assert locked == {path for path, _ in LOCKED_FIELDS}


def change_of(path: str, value: Any) -> dict[str, Any]:
    if path == "communication.strategy":
        return {"spec": {"communication": {"strategy": "Colocated", "summers": {"max": 0, "min": 0}}}}
    if path == "communication.stages":
        return {"spec": {"communication": {"strategy": "TwoLevel", "stages": [2, 2], "summers": {"min": 0}}}}
    if path == "communication.radix":
        return {"spec": {"communication": {"strategy": "BCube", "radix": 2, "summers": {"min": 0}}}}
    return changed({}, "spec." + path, value)


@pytest.mark.parametrize(("path", "value"), LOCKED_FIELDS, ids=lambda value: str(value)[:60])
def test_fields_that_shape_pods_change_only_while_the_job_is_suspended(
    api: Api, job: dict[str, Any], path: str, value: Any
) -> None:
    change = change_of(path, value)
    refused = api.patch(job, change)
    assert not refused.ok
    assert f"spec.{path}: " in refused.message and LOCKED in refused.message
    assert not api.patch(job, {**change, "spec": {**change["spec"], "runPolicy": {"suspend": True}}}).ok
    assert api.patch(job, {"spec": {"runPolicy": {"suspend": True}}}).ok
    assert LOCKED in api.patch(job, change).message, "its pods are still there"
    assert api.patch(job, {"status": {"startTime": None}}, "/status").ok
    taken = api.patch(job, {**change, "spec": {**change["spec"], "runPolicy": {"suspend": False}}})
    assert taken.ok, taken.message


@pytest.mark.parametrize(
    "spec",
    [
        {"communication": {"summers": {"max": 9}}},
        {"runPolicy": {"suspend": True}},
        {"runPolicy": {"backoffLimit": 0, "activeDeadlineSeconds": 60, "ttlSecondsAfterFinished": 5}},
        {"runPolicy": {"cleanPodPolicy": "All", "startDeadlineSeconds": 30}},
    ],
    ids=str,
)
def test_other_fields_change_at_any_time(api: Api, job: dict[str, Any], spec: dict[str, Any]) -> None:
    taken = api.patch(job, {"spec": spec})
    assert taken.ok, taken.message
    relabelled = api.patch(job, {"metadata": {"labels": {"a": "b"}}})
    assert relabelled.ok, relabelled.message


def test_status_is_written_through_its_subresource_only(api: Api, job: dict[str, Any]) -> None:
    assert api.patch(job, {"status": {"phase": "Failed"}}).ok
    assert "phase" not in api.get(job)["status"]
    refused = api.patch(job, {"status": {"phase": "Lost"}}, "/status")
    assert not refused.ok and "status.phase" in refused.message


def test_the_scale_subresource_sets_the_number_of_workers(api: Api, job: dict[str, Any]) -> None:
    status = {"workersReady": 3, "selector": "gleaner.dev/job=running,gleaner.dev/role=worker"}
    assert api.patch(job, {"status": status}, "/status").ok
    scale = api.ask("GET", api.path(job, "running") + "/scale").body
    assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (4, 3)
    assert scale["status"]["selector"] == status["selector"]
    refused = api.kubectl("scale", "tj", "running", "--replicas=6")
    assert refused.returncode != 0 and LOCKED in refused.stderr
    assert api.patch(job, {"spec": {"runPolicy": {"suspend": True}}}).ok
    assert api.patch(job, {"status": {"startTime": None}}, "/status").ok
    assert api.kubectl("scale", "tj", "running", "--replicas=6").returncode == 0
    assert api.get(job)["spec"]["workers"]["replicas"] == 6


@pytest.mark.parametrize("kind", KINDS)
def test_objects_from_cpp_are_admitted_and_come_back_equal(api: Api, kind: str) -> None:
    manifest = sample(kind)
    status = manifest.pop("status")
    created = api.create(manifest)
    assert created.ok, created.message
    assert created.warnings == []
    assert api.patch(manifest, {"status": status}, "/status").ok
    stored = api.get(manifest)
    assert stored.get("spec") == manifest.get("spec")
    assert stored["status"] == status
    again = sample(stdin=json.dumps(stored))
    assert again == {**manifest, "status": status}
    api.delete(manifest)


COLUMNS = {
    "tj": (
        "PHASE WORKERS SUMMERS EPOCH GOODPUT EFFICIENCY AGE",
        "PHASE WORKERS SUMMERS EPOCH GOODPUT EFFICIENCY BOUND STRATEGY BITS RESTARTS AGE",
        ["Running", "3/4", "3", "11", "12.3 MB/s", "97.2 %", "59.6 ms", "summers, halving-doubling", "Schedule", "10"],
    ),
    "nprof": (
        "GPUS NICS SPEED SOURCE SPARE-CPU SPARE-BANDWIDTH AGE",
        "GPUS NICS SPEED SOURCE SPARE-CPU SPARE-BANDWIDTH AGE",
        ["1", "1", "24 Gbit/s", "Label", "12250m", "21.3 Gbit/s"],
    ),
    "gtopo": ("NODES GROUPS READY AGE", "NODES GROUPS READY AGE", ["40", "1", "AllThere"]),
    "rplan": (
        "EPOCH MEMBERS ACKED BOUND AGE",
        "EPOCH MEMBERS ACKED BOUND STRATEGY AGE",
        ["3", "1", "5", "59.6 ms", "summers, blueconnect 2,3"],
    ),
}


@pytest.mark.parametrize(("short", "kind"), zip(COLUMNS, KINDS))
def test_printer_columns(api: Api, short: str, kind: str) -> None:
    columns, wide, cells = COLUMNS[short]
    manifest = sample(kind)
    assert api.create(manifest).ok
    assert api.patch(manifest, {"status": manifest["status"]}, "/status").ok
    lines = api.kubectl("get", short).stdout.splitlines()
    assert lines[0].split() == ["NAME", *columns.split()]
    lines = api.kubectl("get", short, "-o", "wide").stdout.splitlines()
    assert lines[0].split() == ["NAME", *wide.split()]
    name = manifest["metadata"]["name"]
    assert lines[1].split() == [name, *" ".join(cells).split(), lines[1].split()[-1]]
    assert name in api.kubectl("get", "gleaner", "-o", "name").stdout
    api.delete(manifest)


def test_kubectl_explain_describes_fields(api: Api) -> None:
    told = api.kubectl("explain", "tj.spec.communication.partitionBytes").stdout
    assert "quantity from 4Ki to 4Mi" in " ".join(told.split())


def test_the_epoch_of_a_plan_cannot_decrease(api: Api) -> None:
    plan = sample("ReductionPlan")
    assert api.create(plan).ok
    refused = api.patch(plan, {"spec": {"epoch": 2}})
    assert "spec.epoch: " in refused.message and "may not go back" in refused.message
    assert "spec.attempt: " in api.patch(plan, {"spec": {"attempt": 1, "epoch": 9}}).message
    assert api.patch(plan, {"spec": {"epoch": 4}}).ok
    assert api.patch(plan, {"spec": {"attempt": 3, "epoch": 1}}).ok
    api.delete(plan)


def groups_of_two(workers: int) -> list[dict[str, Any]]:
    return [
        {
            "name": f"eu-central-1/eu-central-1a/rack-{first // 2}",
            "workers": f"{first}-{first + 1}",
            "uplinkBitsPerSecond": 400000000000,
        }
        for first in range(0, workers, 2)
    ]


def large_plan(members: int) -> dict[str, Any]:
    """Returns a plan whose members have all fields, with long names, and whose workers share groups in pairs."""
    plan = sample("ReductionPlan")
    member = {**plan["spec"]["members"][0], "pod": "p" * 63, "node": "n" * 40, "address": "[2001:db8::1234:5678]:7071"}
    del member["slow"]  # no worker is slow
    plan["spec"]["members"] = [{**member, "name": f"worker-{index}", "rank": 64 * index} for index in range(members)]
    plan["spec"]["rankMap"]["groups"] = groups_of_two(members)
    return plan


def test_the_largest_plan_with_all_fields_fits(api: Api) -> None:
    plan = large_plan(2048)
    created = api.create(plan)
    assert created.ok, created.message
    api.delete(plan)


def test_the_largest_plan_fits(api: Api) -> None:
    """Creates a plan of 4,096 workers and 512 summers, which has no transports, ranks and groups."""
    plan = large_plan(4608)
    del plan["spec"]["rankMap"]["groups"]
    for member in plan["spec"]["members"]:
        del member["transports"], member["rank"]
    created = api.create(plan)
    assert created.ok, created.message
    assert api.patch(plan, {"spec": {"epoch": 4}}).ok
    api.delete(plan)
    plan["spec"]["members"].append(member)
    assert "spec.members" in api.create(plan).message


def test_the_largest_rank_map_fits(api: Api, job: dict[str, Any]) -> None:
    rank_map = {**sample("TrainingJob")["status"]["rankMap"], "groups": groups_of_two(4096)}
    rank_map["workers"] = list(reversed(range(4096)))
    taken = api.patch(job, {"status": {"rankMap": rank_map}}, "/status")
    assert taken.ok, taken.message
    assert taken.body["status"]["rankMap"] == rank_map
    for field, value in (("workers", [0] * 4097), ("workers", [4096]), ("groups", [rank_map["groups"][0]] * 4097)):
        assert f"status.rankMap.{field}" in api.patch(job, {"status": {"rankMap": {field: value}}}, "/status").message


def test_validation_rules_admit_a_large_template(api: Api) -> None:
    container = {
        "image": "example:1",
        "command": ["python3", "-c", "x" * 20000],
        "args": [f"--flag-{index}" for index in range(200)],
        "env": [{"name": f"VARIABLE_{index}", "value": "v" * 100} for index in range(200)],
    }
    manifest = small_job("large")
    containers = [{**container, "name": f"c{index}"} for index in range(8)]
    manifest["spec"]["workers"]["template"]["spec"]["containers"] = containers
    created = api.create(manifest)
    assert created.ok, created.message
    touched = api.patch(manifest, {"metadata": {"labels": {"a": "b"}}})
    assert touched.ok, touched.message
    api.delete(manifest)


def test_the_tables_in_docs_match_the_crds() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "generate-crds"), "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
