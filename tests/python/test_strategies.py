"""Tests of jobs whose tensors a schedule sums: `gleaner run --strategy`."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from conftest import GLEANER, TIMEOUT, assert_passed, checks_of, environment, patient, run_job

STAGED = {"blueconnect": {4: "2,2", 6: "3,2"}, "racks": {4: "2,2", 6: "2,3"}, "two-level": {4: "2,2", 6: "3,2"}}
DTYPES = ["fp32", "fp64", "fp16", "bf16", "int32"]


def run(*flags: str, workers: int, bench: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    command = [str(GLEANER), "run", "--workers", str(workers), *patient(flags), "--"]
    command += [str(GLEANER), "bench", "push-pull", "--steps", "3", "--verify", "--json", *bench]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, env=environment())


def strategy_flags(strategy: str, workers: int) -> list[str]:
    stages = STAGED.get(strategy, {}).get(workers)
    return ["--strategy", strategy, *(["--stages", stages] if stages else [])]


def sums_of(done: subprocess.CompletedProcess[str]) -> list[dict]:
    assert done.returncode == 0, done.stderr
    return [json.loads(line[line.index("{") :]) for line in done.stdout.splitlines() if '"sha256"' in line]


@pytest.mark.parametrize("workers", [2, 3, 4, 6])
@pytest.mark.parametrize(
    "strategy", ["ring", "halving-doubling", "double-tree", "bcube", "blueconnect", "racks", "two-level"]
)
def test_every_bit_is_as_expected(strategy: str, workers: int) -> None:
    if strategy == "bcube" and workers == 6:
        pytest.skip("6 is no power")
    done = run(*strategy_flags(strategy, workers), workers=workers, bench=("--bytes", "300004"))
    lines = sums_of(done)
    assert len(lines) == workers
    assert {line["strategy"] for line in lines} == {strategy}
    assert len({line["sha256"] for line in lines}) == 1


def test_racks_without_stages_are_near_the_root() -> None:
    done = run("--strategy", "racks", "--log-level", "info", workers=5, bench=("--bytes", "100004"))
    assert all(line["verified"] for line in sums_of(done))
    assert "strategy=racks workers=3+2" in done.stderr


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", ["0", "8", "5MiB"])
def test_sizes_and_types(dtype: str, size: str) -> None:
    done = run("--strategy", "ring", workers=3, bench=("--bytes", size, "--dtype", dtype))
    assert all(line["verified"] for line in sums_of(done))


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_local_ranks_sum_before_the_schedule(dtype: str) -> None:
    flags = ("--strategy", "halving-doubling", "--local-ranks", "2")
    assert len(sums_of(run(*flags, workers=3, bench=("--bytes", "3MiB", "--dtype", dtype)))) == 3


def test_summers_may_stand_by() -> None:
    done = run("--strategy", "ring", "--summers", "1", workers=2, bench=("--bytes", "1MiB"))
    assert len(sums_of(done)) == 2


def test_auto_mixes_strategies_in_one_job(tmp_path: Path) -> None:
    """Sums each tensor by the fastest strategy for its size, with the bits of that strategy."""
    tensors = tmp_path / "tensors.json"
    tensors.write_text(json.dumps([{"name": "large", "bytes": 1 << 20}, {"name": "small", "bytes": 4}]))
    flags = ("--strategy", "auto", "--bits", "schedule", "--bandwidth", "10Gbit")
    flags += ("--topology", mixed_racks(tmp_path), "--log-level", "info")
    done = run(*flags, workers=8, bench=("--tensors", str(tensors)))
    assert all(line["verified"] for line in sums_of(done))
    assert "1 tensor of 1.00 MiB by " in done.stderr
    assert " B by summers" in done.stderr


def test_auto_has_the_bits_of_summers(tmp_path: Path) -> None:
    file = tmp_path / "summary.json"
    flags = ("--bandwidth", "10Gbit", "--summary", str(file))
    sums = []
    for strategy in ("auto", "summers"):
        lines = sums_of(run("--strategy", strategy, *flags, workers=8, bench=("--bytes", "1MiB")))
        sums.append({line["sha256"] for line in lines})
        summary = json.loads(file.read_text())
        assert summary["bits"] == "RankOrder"
        assert (summary["other_bits"] is not None) == (strategy == "auto")
        if strategy == "auto":
            other = summary["other_bits"]
            assert other["bits"] == "Schedule"
            assert 0 < other["seconds"] <= other["instead_of_seconds"], "more strategies are never slower"
    assert sums[0] == sums[1]


def test_auto_changes_the_strategy_of_a_running_job(tmp_path: Path) -> None:
    """Names links so fast that all models are wrong. Another strategy takes over, with every bit as expected."""
    file = tmp_path / "summary.json"
    flags = ("--strategy", "auto", "--bits", "Schedule", "--bandwidth", "400Gbit")
    command = [str(GLEANER), "run", "--workers", "4", *patient(flags)]
    command += ["--log-level", "info", "--summary", str(file), "--", str(GLEANER), "bench", "push-pull"]
    command += ["--bytes", "1MiB", "--steps", "1000000", "--verify"]
    job = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=environment())
    overdue = threading.Timer(TIMEOUT, job.kill)
    overdue.start()
    lines = []
    try:
        for line in job.stderr:
            lines.append(line)
            if "changes the strategy of" in line:
                break
        time.sleep(3)  # in which the next strategy sums
        assert job.poll() is None, "".join(lines) + job.stderr.read()
        job.terminate()
        lines += job.stderr.readlines()
        job.wait()
    finally:
        overdue.cancel()
        job.kill()
    log = "".join(lines)
    assert "by the corrected models it then takes" in log
    summary = json.loads(file.read_text())
    change = summary["strategy_changes"][0]
    assert change["from"] != change["to"]
    assert change["why"] in log
    assert change["step_seconds_after"] < 0.8 * change["step_seconds_before"]
    assert any(epoch["epoch"] >= change["epoch"] and epoch["steps"] > 0 for epoch in summary["epochs"])
    size = summary["candidates"][0]
    assert size["bytes"] == 1 << 20
    assert any(each["measured"] and each["factor"] > 1 for each in size["candidates"])


def test_the_summary_names_the_strategy(tmp_path: Path) -> None:
    file = tmp_path / "summary.json"
    flags = ("--strategy", "blueconnect", "--stages", "2,2", "--summary", str(file))
    assert sums_of(run(*flags, workers=4, bench=("--bytes", "8")))
    assert json.loads(file.read_text())["strategy"] == "blueconnect 2,2"


def test_the_bound_is_that_of_the_strategy(tmp_path: Path) -> None:
    """With a summer, the bound of owners would be lower than that of a ring."""
    file = tmp_path / "summary.json"
    flags = ("--strategy", "ring", "--summers", "1", "--bandwidth", "10Gbit", "--summary", str(file))
    assert sums_of(run(*flags, workers=4, bench=("--bytes", "1MiB")))
    summary = json.loads(file.read_text())
    ring = 2 * 3 / 4 * summary["bytes_per_step"] * 8 / 10e9
    assert summary["bound_seconds"] == pytest.approx(ring, rel=1e-6)
    assert summary["bound_seconds_without_summers"] == pytest.approx(ring, rel=1e-6)


def mixed_racks(tmp_path: Path, hosts: int = 8) -> str:
    """Writes a network in which host i is in rack i % 2, and the racks' uplinks are as slow as one host's link.

    It states the overhead of a message, so that no measurement of this machine decides about a strategy.
    """
    links = [{"a": f"h{i}", "b": f"rack{i % 2}", "bandwidth": 1e10, "latency_us": 5} for i in range(hosts)]
    links += [{"a": f"rack{rack}", "b": "core", "bandwidth": 1e10, "latency_us": 5} for rack in range(2)]
    switches = [{"name": name} for name in ("rack0", "rack1", "core")]
    file = tmp_path / "network.json"
    names = [{"name": f"h{i}", "overhead_us": 0.1} for i in range(hosts)]
    file.write_text(json.dumps({"hosts": names, "switches": switches, "links": links}))
    return str(file)


@pytest.mark.parametrize("strategy", ["racks", "two-level"])
def test_racks_may_be_unequal(tmp_path: Path, strategy: str) -> None:
    summary = tmp_path / "summary.json"
    flags = ("--strategy", strategy, "--topology", mixed_racks(tmp_path, 5), "--summary", str(summary))
    done = run(*flags, workers=5, bench=("--bytes", "1MiB", "--dtype", "bf16"))
    assert all(line["verified"] for line in sums_of(done))
    assert json.loads(summary.read_text())["strategy"] == f"{strategy} 3+2"


@pytest.mark.parametrize("strategy", ["ring", "racks", "two-level", "auto"])
def test_rank_maps_follow_the_network(tmp_path: Path, strategy: str) -> None:
    """The ranks of a network whose racks alternate are searched, and every bit is that of the schedule with them."""
    summary = tmp_path / "summary.json"
    network = mixed_racks(tmp_path, 6)
    flags = ("--strategy", strategy, "--topology", network, "--summary", str(summary), "--log-level", "info")
    if strategy == "auto":
        flags += ("--bits", "Schedule")
    done = run(*flags, workers=6, bench=("--bytes", "8MiB"))
    lines = sums_of(done)
    assert len({line["sha256"] for line in lines}) == 1
    assert all(line["verified"] for line in lines)
    maps = json.loads(summary.read_text())["rank_maps"]
    assert len(maps) == 1
    assert sorted(maps[0]["ranks"]) == list(range(6))
    assert maps[0]["ranks"] != list(range(6))
    assert 0 < maps[0]["seconds"] < maps[0]["identity_seconds"]
    assert "rank maps" in done.stderr
    if strategy == "racks":
        assert maps[0]["strategy"] == "racks 2,3"
        assert {worker % 2 for worker in range(6) if maps[0]["ranks"][worker] < 3} in ({0}, {1})


def bond(tmp_path: Path) -> str:
    """Returns the file of two joined switches with two hosts each, and a host that has a link to both of them."""
    file = tmp_path / "network.json"
    hosts = [f"h{i}" for i in range(5)]
    pairs = [
        ("h0", "left"),
        ("h0", "right"),
        ("left", "right"),
        *((f"h{i}", ("left", "right")[i % 2]) for i in range(1, 5)),
    ]
    links = [{"a": a, "b": b, "bandwidth": "10Gbit", "latency_us": 5} for a, b in pairs]
    file.write_text(json.dumps({"hosts": hosts, "switches": ["left", "right"], "links": links}))
    return str(file)


@pytest.mark.parametrize("network", ["fat-tree:4", "bigraph:2x4", "bond"])
def test_auto_takes_networks_with_several_paths(tmp_path: Path, network: str) -> None:
    topology = bond(tmp_path) if network == "bond" else network
    flags = ("--strategy", "auto", "--bits", "Schedule", "--topology", topology)
    assert all(line["verified"] for line in sums_of(run(*flags, workers=5, bench=("--bytes", "1MiB"))))


def test_a_given_rank_map_is_used(tmp_path: Path) -> None:
    summary = tmp_path / "summary.json"
    (tmp_path / "hosts").write_text("host-2\nhost-0\nhost-1\n")
    flags = ("--strategy", "ring", "--topology", "racks:3x1", "--rank-map", str(tmp_path / "hosts"))
    done = run(*flags, "--summary", str(summary), workers=3, bench=("--bytes", "1MiB", "--dtype", "fp16"))
    assert all(line["verified"] for line in sums_of(done))
    assert json.loads(summary.read_text())["rank_maps"][0]["ranks"] == [1, 2, 0]


def test_identity_keeps_the_ranks(tmp_path: Path) -> None:
    summary = tmp_path / "summary.json"
    flags = ("--strategy", "ring", "--topology", mixed_racks(tmp_path, 4), "--rank-map", "identity")
    assert sums_of(run(*flags, "--summary", str(summary), workers=4, bench=("--bytes", "8")))
    assert json.loads(summary.read_text())["rank_maps"] == []


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--topology", "star:3"], "--topology: the topology has 3 hosts, and the job 4 workers"),
        (["--topology", "star:4", "--rank-map", "twice"], "--rank-map: the rank map gives host 1 both"),
        (["--topology", "star:5", "--rank-map", "far"], "--rank-map: the rank map gives rank 3 to host 4"),
        (["--topology", "star:4", "--rank-map", "missing"], "--rank-map: "),
        (["--topology", "star:4", "--strategy", "summers"], "give --strategy auto or a schedule"),
        (["--topology", "star:8", "--max-workers", "8"], "elastic job"),
        (["--topology", "ring:4"], "--topology: "),
        (["--rank-map", "best"], "--rank-map: give --topology"),
        (["--latency", "1us"], "--latency: give --topology"),
    ],
)
def test_impossible_networks_are_refused(tmp_path: Path, flags: list[str], message: str) -> None:
    (tmp_path / "twice").write_text("host-0\nhost-1\nhost-1\nhost-2\n")
    (tmp_path / "far").write_text("host-0\nhost-1\nhost-2\nhost-4\n")
    flags = [str(tmp_path / flag) if flag in ("twice", "far", "missing") else flag for flag in flags]
    strategy = [] if "--strategy" in flags else ["--strategy", "ring"]
    done = run(*strategy, *flags, workers=4, bench=("--bytes", "8"))
    assert done.returncode in (1, 2)
    assert message in done.stderr


@pytest.fixture(scope="module")
def torch_job() -> subprocess.CompletedProcess[str]:
    """With two workers every schedule has the bits of a sum in rank order, which the program expects."""
    pytest.importorskip("torch")
    return run_job("torch_checks.py", workers=2, summers=0, flags=("--strategy", "double-tree"))


IMPOSSIBLE = [
    (["--strategy", "ring", "--stages", "3,2"], "strategy ring: "),
    (["--strategy", "ring", "--radix", "2"], "strategy ring: "),
    (["--strategy", "halving-doubling", "--stages", "6"], "strategy halving-doubling: "),
    (["--strategy", "double-tree", "--radix", "6"], "strategy double-tree: "),
    (["--strategy", "bcube", "--radix", "4"], "strategy bcube: "),
    (["--strategy", "bcube", "--stages", "3,2"], "strategy bcube: "),
    (["--strategy", "blueconnect", "--stages", "5,2"], "strategy blueconnect: "),
    (["--strategy", "blueconnect", "--radix", "2"], "strategy blueconnect: "),
    (["--strategy", "blueconnect", "--stages", "3,x"], "--stages"),
    (["--strategy", "racks", "--stages", "2,2"], "strategy racks: "),
    (["--strategy", "racks", "--stages", "4,2"], "strategy racks: "),
    (["--strategy", "two-level", "--stages", "6"], "strategy two-level: "),
    (["--strategy", "two-level", "--stages", "2,2"], "strategy two-level: "),
    (["--strategy", "triangle"], "--strategy"),
    (["--strategy", "bcube", "--radix", "1"], "--radix"),
    (["--strategy", "ring", "--bits", "RankOrder"], "choose the strategy auto, summers or gather"),
    (["--strategy", "auto", "--bits", "rank"], "--bits"),
    (["--strategy", "auto", "--radix", "2"], "leave them out"),
    (["--strategy", "auto", "--stages", "3,2"], "leave them out"),
    (["--strategy", "summers", "--stages", "3,2"], "--stages is an option of a schedule"),
    (["--stages", "3,2"], "--stages is an option of a schedule"),
    (["--radix", "3"], "--radix is an option of a schedule"),
    (["--strategy", "bcube", "--max-workers", "9"], "serves only some numbers of workers"),
    (["--strategy", "racks", "--stages", "3,2", "--max-workers", "9"], "serves only some numbers of workers"),
]


@pytest.mark.parametrize("command", ["run", "coordinator"])
@pytest.mark.parametrize(("flags", "message"), IMPOSSIBLE)
def test_impossible_strategies_are_refused(command: str, flags: list[str], message: str, tmp_path: Path) -> None:
    """Ends before a rank starts, whichever command has the flags."""
    started = tmp_path / "started"
    words = [str(GLEANER), command, "--workers", "6", *flags]
    coordinator = ["--listen", "127.0.0.1:0", "--token-file", str(tmp_path / "token")]
    words += ["--", "touch", str(started)] if command == "run" else coordinator
    done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT, env=environment())
    assert done.returncode in (1, 2)
    assert message in done.stderr
    assert not started.exists()


@pytest.mark.parametrize("local_ranks", [1, 2])
def test_a_rank_that_expects_another_strategy_ends_all_ranks(local_ranks: int) -> None:
    """Each rank names the strategy of the coordinator and that which a rank expects."""
    bench = f"exec {GLEANER} bench push-pull --bytes 8 --steps 2 --strategy"
    script = f'if [ "$GLEANER_WORKER" = 1 ]; then {bench} halving-doubling; else {bench} ring; fi'
    flags = ("--strategy", "ring", "--local-ranks", str(local_ranks))
    command = [str(GLEANER), "run", "--workers", "3", *patient(flags), "--", "sh", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, env=environment())
    assert done.returncode != 0
    told = [line for line in done.stderr.splitlines() if "the coordinator has tensor" in line]
    ranks = [f"{worker}.{i}" if local_ranks > 1 else f"{worker}" for worker in range(3) for i in range(local_ranks)]
    assert sorted(line.split("]")[0] for line in told if line.startswith("[")) == [f"[worker {r}" for r in ranks]
    assert all("summed by ring" in line and "expects halving-doubling" in line for line in told), done.stderr
    assert all("worker 1" in line.partition("summed by")[2] for line in told), done.stderr


def test_a_strategy_as_expected() -> None:
    bench = ("--bytes", "8", "--strategy", "blueconnect")
    assert len(sums_of(run("--strategy", "blueconnect", "--stages", "2,2", workers=4, bench=bench))) == 4


@pytest.mark.parametrize("check", checks_of("torch_checks.py"))
def test_torch(torch_job: subprocess.CompletedProcess[str], check: str) -> None:
    assert_passed(torch_job, check, ranks=2)


def test_a_lost_worker_ends_the_job_by_name() -> None:
    script = "import gleaner, os, numpy as np\ngleaner.init()\nx = np.ones(1 << 20, np.float32)\n"
    script += "for i in range(1000000):\n    gleaner.push_pull(x, name='w')\n"
    script += "    if i == 5 and gleaner.rank() == 1: os._exit(3)\n"
    command = [
        str(GLEANER),
        "run",
        "--workers",
        "3",
        *patient(("--strategy", "ring")),
        "--",
        sys.executable,
        "-c",
        script,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, env=environment())
    assert done.returncode != 0
    assert "worker 1" in done.stderr
