"""Tests the command `gleaner plan`: its JSON, its errors, and its bound against an independent linear program.

Test names contain the seeds, so -k runs one seed again. The binary is in GLEANER_BIN_DIR, or in the build that
GLEANER_BUILD names (default: build/release)."""

import json
import os
import random
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest
from scipy.optimize import linprog

SOURCE = Path(__file__).resolve().parents[2]
BUILD = os.environ.get("GLEANER_BUILD", SOURCE / "build/release")
GLEANER = Path(os.environ.get("GLEANER_BIN_DIR", Path(BUILD) / "bin")) / "gleaner"
MODELS = SOURCE / "examples/models"


def run(*arguments):
    return subprocess.run([GLEANER, "plan", *map(str, arguments)], capture_output=True, text=True, timeout=240)


def plan(*arguments):
    result = run(*arguments, "-o", "json")
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    return json.loads(result.stdout)


def lists(workers, summers):
    arguments = ["--workers", len(workers), "--summers", len(summers)]
    arguments += ["--worker-bandwidths", ",".join(f"{b:.0f}" for b in workers)]
    if summers:
        arguments += ["--summer-bandwidths", ",".join(f"{b:.0f}" for b in summers)]
    return arguments


def bandwidths(plan):
    return [m["bandwidth"] for m in plan["workers"]], [m["bandwidth"] for m in plan["summers"]]


def least_seconds(workers, summers, total, ratio=1):
    """Returns the bound, computed by a linear program over x, y and T from the bytes that each machine has to move.

    The gradient's size and the fastest link's bandwidth are the units, so that the program is well scaled. Workers push
    `ratio` bytes for each byte of the result.
    """
    n, k = len(workers), len(summers)
    unit = max(workers + summers)
    rows, limits = [], []
    for i, bandwidth in enumerate(workers):
        sent = [0.0] * (n + k) + [-bandwidth / unit]  # r (1 - x_i) + (n-1) x_i <= T B_i
        sent[i] = n - 1 - ratio
        received = [0.0] * (n + k) + [-bandwidth / unit]  # 1 - x_i + r (n-1) x_i <= T B_i
        received[i] = ratio * (n - 1) - 1
        rows += [sent, received]
        limits += [-ratio, -1]
    for j, bandwidth in enumerate(summers):  # r n y_j <= T C_j
        row = [0.0] * (n + k) + [-bandwidth / unit]
        row[n + j] = ratio * n
        rows.append(row)
        limits.append(0)
    result = linprog(
        [0] * (n + k) + [1], A_ub=rows, b_ub=limits, A_eq=[[1] * (n + k) + [0]], b_eq=[1], bounds=(0, None)
    )
    assert result.success, result.message
    return result.fun * total * 8 / unit


def seconds_of(plan, ratio=1):
    """Returns the step time of the listed partitions, by the same formulas."""
    owned = defaultdict(int)
    for partition in plan["partitions"]:
        owned[partition["owner"]] += partition["bytes"]
    total = sum(owned.values())
    n = len(plan["workers"])
    times = []
    for role, machines in ("worker", plan["workers"]), ("summer", plan["summers"]):
        for index, machine in enumerate(machines):
            own = owned[f"{role}/{index}"]
            assert own == machine["bytes"]
            sent, received = ratio * (total - own) + (n - 1) * own, total - own + ratio * (n - 1) * own
            traffic = max(sent, received) if role == "worker" else ratio * n * own
            times.append(traffic * 8 / machine["bandwidth"])
    return max(times)


def check_coverage(plan, tensors, partition_bytes=4 << 20):
    """Checks that aligned partitions cover every byte of every tensor exactly once, in generation order."""
    pieces = iter(plan["partitions"])
    for tensor in tensors:
        offset = 0
        while offset < tensor["bytes"]:
            piece = next(pieces)
            assert piece["tensor"] == tensor["name"]
            assert piece["offset"] == offset
            assert 0 < piece["bytes"] <= partition_bytes
            assert piece["offset"] % 4 == 0 and piece["bytes"] % 4 == 0
            offset += piece["bytes"]
        assert offset == tensor["bytes"]
    assert next(pieces, None) is None


def worst_prefix(plan, shares):
    """Returns the largest deviation of an owner from its share, over all prefixes, in units of the largest
    partition."""
    owned = dict.fromkeys(shares, 0)
    passed, worst = 0, 0.0
    for partition in plan["partitions"]:
        passed += partition["bytes"]
        owned[partition["owner"]] += partition["bytes"]
        worst = max(worst, max(abs(owned[name] - share * passed) for name, share in shares.items()))
    return worst / max(p["bytes"] for p in plan["partitions"])


def equal_shares(n, k):
    """Returns the shares of equal machines (BytePS, section 4.1, equations 1 and 2)."""
    slots = n * n + k * n - 2 * k
    shares = {f"worker/{i}": (n - k) / slots for i in range(n)}
    return shares | {f"summer/{j}": 2 * (n - 1) / slots for j in range(k)}


def random_fleet(rng):
    n, k = rng.randint(2, 24), rng.randint(0, 36)
    spread = rng.choice([0, 0.5, 2])
    slow = 10 ** rng.uniform(-1.5, 0.5)
    workers = [round(25e9 * 10 ** rng.uniform(-spread / 2, spread / 2)) for _ in range(n)]
    summers = [round(25e9 * slow * 10 ** rng.uniform(-spread, spread)) for _ in range(k)]
    return workers, summers


@pytest.mark.parametrize("seed", range(300))
def test_the_bound_equals_the_result_of_the_linear_program(seed):
    rng = random.Random(seed)
    workers, summers = random_fleet(rng)
    total = rng.choice([4 << 20, 64 << 20, 1 << 30])
    result = plan(*lists(workers, summers), "--bytes", total)
    assert bandwidths(result) == (workers, summers)
    assert result["bound_seconds"] == pytest.approx(least_seconds(workers, summers, total), rel=1e-6)
    assert result["seconds"] == pytest.approx(seconds_of(result), rel=1e-12)
    assert result["seconds"] >= result["bound_seconds"] * (1 - 1e-9)
    assert result["bound_seconds"] > 0


# Workers of several ranks push fp32 sums of the fp16 tensor, twice its bytes.
@pytest.mark.parametrize("seed", range(100))
def test_the_bound_with_local_ranks_equals_the_result_of_the_linear_program(seed, tmp_path):
    rng = random.Random(seed)
    workers, summers = random_fleet(rng)
    tensors = [{"name": "half", "bytes": 64 << 20, "dtype": rng.choice(["fp16", "bf16"])}]
    tensors += [{"name": "single", "bytes": rng.choice([0, 16 << 20])}]
    total = sum(tensor["bytes"] for tensor in tensors)
    ratio = 1 + (64 << 20) / total
    path = tmp_path / "tensors.json"
    path.write_text(json.dumps(tensors))
    result = plan(*lists(workers, summers), "--tensors", path, "--local-ranks", 2)
    assert result["bound_seconds"] == pytest.approx(least_seconds(workers, summers, total, ratio), rel=1e-6)
    assert result["seconds"] == pytest.approx(seconds_of(result, ratio), rel=1e-12)
    assert result["bound_seconds"] * (1 - 1e-9) <= result["seconds"] <= result["bound_seconds"] * 1.01


@pytest.mark.parametrize("seed", range(40))
def test_plans_of_unequal_machines_come_close_to_the_bound(seed):
    workers, summers = random_fleet(random.Random(1000 + seed))
    result = plan(*lists(workers, summers), "--tensors", MODELS / "gpt2_small.json")
    assert result["seconds"] <= result["bound_seconds"] * 1.005


@pytest.mark.parametrize("model", ["alexnet", "vgg16", "resnet50", "gpt2_small", "bert_large"])
@pytest.mark.parametrize(("n", "k"), [(8, 4), (32, 16), (8, 0), (8, 8)])
def test_real_models(model, n, k):
    path = MODELS / f"{model}.json"
    tensors = json.loads(path.read_text())
    result = plan("--workers", n, "--summers", k, "--bandwidth", "25Gbit", "--tensors", path)
    check_coverage(result, tensors)
    total = sum(t["bytes"] for t in tensors)
    expected = 2 * n * (n - 1) * total * 8 / ((n * n + k * n - 2 * k) * 25e9)  # Eq. 6
    assert result["bound_seconds"] == pytest.approx(expected, rel=1e-12)
    assert result["seconds"] <= result["bound_seconds"] * 1.005
    assert worst_prefix(result, equal_shares(n, k)) <= 1 + 1e-9


def test_json_has_exactly_the_documented_fields():
    result = plan("--workers", 3, "--summers", 2, "--bandwidth", "200Mbit", "--bytes", "1MiB")
    assert list(result) == ["workers", "summers", "partitions", "seconds", "bound_seconds"]
    assert [len(result["workers"]), len(result["summers"])] == [3, 2]
    for machine in result["workers"] + result["summers"]:
        assert list(machine) == ["bandwidth", "bytes"]
        assert machine["bandwidth"] == 200_000_000
    for partition in result["partitions"]:
        assert list(partition) == ["tensor", "offset", "bytes", "owner"]
    check_coverage(result, [{"name": "tensor", "bytes": 1 << 20}])


@pytest.mark.parametrize("k", [0, 1, 2, 5])
def test_two_workers_take_as_long_as_the_slower_link(k):
    result = plan(*lists([2e9, 1e9], [3e9] * k), "--bytes", "64MiB")
    assert result["bound_seconds"] == pytest.approx((64 << 20) * 8 / 1e9)
    assert result["seconds"] <= result["bound_seconds"] * 1.005


def test_one_worker_moves_nothing():
    result = plan("--workers", 1, "--summers", 2, "--bandwidth", "1Gbit", "--bytes", "1MiB")
    assert result["seconds"] == result["bound_seconds"] == 0
    assert {p["owner"] for p in result["partitions"]} == {"worker/0"}


def test_full_parameter_server_and_beyond():
    for k in (8, 11):
        result = plan("--workers", 8, "--summers", k, "--bandwidth", "1Gbit", "--bytes", "8MiB")
        assert result["bound_seconds"] == pytest.approx((8 << 20) * 8 / 1e9)
        assert all(p["owner"].startswith("summer/") for p in result["partitions"])


def test_partition_bytes_is_a_limit():
    result = plan("--workers", 4, "--bandwidth", "1Gbit", "--bytes", "10MiB", "--partition-bytes", "96KiB")
    check_coverage(result, [{"name": "tensor", "bytes": 10 << 20}], 96 << 10)


def test_odd_tensors(tmp_path):
    tensors = [
        {"name": "none", "bytes": 0},
        {"name": 'quote " slash \\ \u00e9 \u4e2d', "bytes": 4},
        {"name": "half", "bytes": 2, "dtype": "fp16"},
        {"name": "double", "bytes": 800_000, "dtype": "fp64"},
        {"name": "guessed", "bytes": 6},
    ]
    path = tmp_path / "tensors.json"
    path.write_text(json.dumps(tensors), encoding="utf-8")
    result = plan("--workers", 3, "--bandwidth", "1Gbit", "--tensors", path)
    sizes = defaultdict(int)
    for piece in result["partitions"]:
        sizes[piece["tensor"]] += piece["bytes"]
        assert piece["tensor"] != "double" or piece["offset"] % 8 == piece["bytes"] % 8 == 0
    assert sizes == {t["name"]: t["bytes"] for t in tensors if t["bytes"]}


def test_no_tensors_at_all(tmp_path):
    path = tmp_path / "tensors.json"
    path.write_text("[]")
    result = plan("--workers", 3, "--bandwidth", "1Gbit", "--tensors", path)
    assert result["partitions"] == []
    assert result["seconds"] == result["bound_seconds"] == 0


def test_a_hundred_thousand_tensors(tmp_path):
    rng = random.Random(1)
    tensors = [{"name": f"layer.{i}", "bytes": 4 * rng.randint(0, 5000)} for i in range(100_000)]
    path = tmp_path / "tensors.json"
    path.write_text(json.dumps(tensors))
    result = plan("--workers", 16, "--summers", 8, "--bandwidth", "25Gbit", "--tensors", path)
    check_coverage(result, tensors)
    assert result["seconds"] <= result["bound_seconds"] * 1.005


def test_the_same_plan_every_time():
    arguments = ("--workers", 7, "--summers", 3, "--bandwidth", "10Gbit", "--tensors", MODELS / "resnet50.json")
    assert plan(*arguments) == plan(*arguments)


def test_explain_and_table():
    arguments = (*lists([25e9, 25e9, 10e9], [25e9] * 4), "--bytes", "64MiB")
    explained = run(*arguments, "-o", "explain")
    assert explained.returncode == 0
    for word in ("worker/0", "worker/2", "summer/3", "worker/2 binds", "One more", "no gain", "1.4 ms", "Transports"):
        assert word in explained.stdout
    table = run(*arguments)
    assert table.returncode == 0
    assert "worker/0 .. worker/1" in table.stdout
    assert len(table.stdout) < len(explained.stdout)


@pytest.mark.parametrize("text", ["20GB/s", "160Gbit", "160000Mbit/s"])
def test_copies_overlap_with_the_network_or_add_to_it(text):
    # 4 GPUs copy 100 MB each: 20 ms each way. With 8 + 4 links of 25 Gbit/s the network takes 40.7 ms (Eq. 6).
    arguments = ("--workers", 8, "--summers", 4, "--bandwidth", "25Gbit", "--bytes", "100MB", "--local-ranks", 4)
    result = plan(*arguments, "--copy", text)
    copy = result["copy"]
    assert copy["bytes_per_second"] == 20e9 and copy["bytes"] == 400e6 and copy["seconds"] == 0.02
    assert copy["overlapped_seconds"] == result["seconds"] == pytest.approx(0.0407, rel=0.01)
    assert copy["added_seconds"] == pytest.approx(result["seconds"] + 0.04) and not copy["limits"]
    slow = plan(*arguments, "--copy", "1GB/s")
    assert slow["copy"]["limits"] and slow["copy"]["overlapped_seconds"] == 0.4
    assert slow["seconds"] == result["seconds"], "the other figures are those of the network"
    assert "the copies limit" in run(*arguments, "--copy", "1GB/s", "-o", "explain").stdout


def test_copies_in_a_network():
    result = plan(
        "--workers", 4, "--topology", "racks:2x2", "--bandwidth", "1Gbit", "--bytes", "1MB", "--copy", "1GB/s"
    )
    assert result["copy"]["overlapped_seconds"] == result["seconds"]


GOOD = {"--workers": "2", "--bandwidth": "1Gbit", "--bytes": "8"}


@pytest.mark.parametrize(
    ("changes", "status", "message"),
    [
        ({"--workers": "0"}, 2, "--workers"),
        ({"--workers": "-3"}, 2, "--workers"),
        ({"--workers": "two"}, 2, "--workers"),
        ({"--workers": "99999999999999999999"}, 2, "--workers"),
        ({"--workers": None}, 2, "--workers"),
        ({"--summers": "-1"}, 2, "--summers"),
        ({"--summers": "65536"}, 2, "at most 65536"),
        ({"--bandwidth": None}, 2, "--bandwidth"),
        ({"--bandwidth": "25Gibbit"}, 2, "25Gibbit"),
        ({"--bandwidth": "0"}, 2, "above zero"),
        ({"--bandwidth": "-1Gbit"}, 2, "-1Gbit"),
        ({"--worker-bandwidths": "1Gbit"}, 2, "lists 1 bandwidths"),
        ({"--worker-bandwidths": "1Gbit,,"}, 2, "--worker-bandwidths"),
        ({"--summer-bandwidths": "1Gbit,x", "--summers": "2"}, 2, "'x'"),
        ({"--summer-bandwidths": "1Gbit,1Gbit", "--summers": "3"}, 2, "--summers is 3"),
        ({"--bytes": None}, 2, "--tensors FILE or --bytes N"),
        ({"--tensors": "x.json"}, 2, "--tensors FILE or --bytes N"),
        ({"--bytes": "7"}, 2, "7 bytes"),
        ({"--bytes": "-8"}, 2, "-8"),
        ({"--bytes": "8 potatoes"}, 2, "potatoes"),
        ({"--bytes": "1000000TiB"}, 2, "partitions"),
        ({"--partition-bytes": "5MiB"}, 2, "8 bytes to 4MiB"),
        ({"--partition-bytes": "0"}, 2, "--partition-bytes"),
        ({"--partition-bytes": "many"}, 2, "many"),
        ({"--copy": "20Gb/s"}, 2, "--copy: '20Gb/s'"),
        ({"--copy": "20G"}, 2, "20GB/s"),
        ({"--copy": "0GB/s"}, 2, "above zero"),
        ({"--copy": "20GB/s", "--collective": "all-gather"}, 2, "--copy: only for"),
        ({"--copy": "20GB/s", "--compute-time": "1s"}, 2, "--copy: only for"),
        ({"--colour": "red"}, 2, "--colour"),
        ({"-o": "xml"}, 2, "xml"),
        ({"--bytes": None, "--tensors": "/nonexistent.json"}, 1, "/nonexistent.json"),
        ({"--bytes": None, "--tensors": "/"}, 1, "directory"),
    ],
)
def test_bad_command_lines(changes, status, message):
    flags = {**GOOD, **changes}
    result = run(*(word for flag, value in flags.items() if value is not None for word in (flag, value)))
    assert result.returncode == status, result.stderr
    assert message in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "malformed JSON"),
        ("", "malformed JSON"),
        ('[{"name": "\xff", "bytes": 4}]', "malformed JSON"),
        (r'[{"name": "tab\t", "bytes": 4}]', r"'tab\x09' has a control character"),
        (r'[{"name": "\u0085", "bytes": 4}]', "control character"),
        ("[" * 100_000, "malformed JSON"),
        ("{}", "expected a JSON list"),
        ("[1]", "entry 0"),
        ('[{"name": "a", "bytes": 4}, {"bytes": 4}]', "entry 1"),
        ('[{"name": "", "bytes": 4}]', '"name"'),
        ('[{"name": 3, "bytes": 4}]', '"name"'),
        ('[{"name": "a"}]', "'a'"),
        ('[{"name": "a", "bytes": -4}]', "-4"),
        ('[{"name": "a", "bytes": 4.5}]', "4.5"),
        ('[{"name": "a", "bytes": "4"}]', "'a'"),
        ('[{"name": "a", "bytes": 1e30}]', "'a'"),
        ('[{"name": "a", "bytes": 18446744073709551612}]', "'a'"),
        ('[{"name": "a", "bytes": 6, "dtype": "fp32"}]', "whole number of fp32"),
        ('[{"name": "a", "bytes": 3}]', "'a'"),
        ('[{"name": "a", "bytes": 4, "dtype": "fp8"}]', "fp8"),
        ('[{"name": "twin", "bytes": 4}, {"name": "twin", "bytes": 8}]', "'twin' appears twice"),
    ],
)
def test_bad_tensor_files(tmp_path, text, message):
    path = tmp_path / "tensors.json"
    path.write_text(text, encoding="latin-1")
    result = run("--workers", 2, "--bandwidth", "1Gbit", "--tensors", path)
    assert result.returncode in (1, 2)
    assert message in result.stderr or (text == "" and "empty" in result.stderr)
    assert "tensors.json" in result.stderr
    assert result.stdout == ""


def test_a_full_disk_is_an_error():
    with open("/dev/full", "w") as full:
        command = [GLEANER, "plan", *(word for pair in GOOD.items() for word in pair), "-o", "json"]
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=240)
    assert result.returncode == 1
    assert "standard output" in result.stderr
