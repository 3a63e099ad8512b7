"""Tests how bench/run_all processes measurements. The measurements themselves are not tested."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import GLEANER, ROOT, TIMEOUT, require_build
from requirements import require_namespaces

BENCH = ROOT / "bench"
sys.path.insert(0, str(BENCH))
from wire import jobs, model, peers, ranks, record, sweep, table  # noqa: E402
from wire.jobs import lines_of  # noqa: E402
from wire.lab import Lab, Setting, bits, bits_per_second  # noqa: E402
from wire.processes import Sample, between, processor_share  # noqa: E402
from wire.row import MIB, Measured, Row, enough, estimate  # noqa: E402
from wire.rows import rows  # noqa: E402
from wire.steps import Steps, paces, spread  # noqa: E402
from wire.stolen import LIMIT, RUNS, StealSampler, limit_runs, stolen_seconds, undisturbed  # noqa: E402


def row(name: str, aim: float = 1.0, setting: Setting = Setting(2, 0), **more: object) -> Row:  # noqa: B008
    return Row(name, aim, setting, lambda lab, steps: Measured(1.0, 0.0), lambda steps: 10.0 * steps, **more)


def test_a_step_lasts_from_the_first_begin_to_the_last_end() -> None:
    steps = Steps.of_ranks([
        {"step_begins": [10.0, 20.0], "step_ends": [12.0, 21.0]},
        {"step_begins": [11.0, 19.5], "step_ends": [13.0, 20.5]},
    ])  # fmt: skip
    assert steps.seconds == [3.0, 1.5]
    assert steps.median == 2.25
    assert steps.pauses == [math.inf, 6.5]
    assert (steps + steps).where([False, True, True, False]).pauses == [6.5, math.inf]


def test_a_split_line_of_a_worker_is_joined_again() -> None:
    output = '[worker 0] {"begins":[1,\n[worker 1] {"begins":[3,\n[worker 1] 4]}\n[worker 0] 2]}\nnot ours\n'
    assert [json.loads(line)["begins"] for line in lines_of(output)] == [[1, 2], [3, 4]]


def test_paces_count_only_the_time_in_which_all_jobs_make_steps() -> None:
    early = Steps([0.0, 1.0, 2.0, 3.0], [1.0, 2.0, 3.0, 4.0])
    late = Steps([2.0, 4.0], [4.0, 6.0])  # half as fast; both jobs make steps only from 2 to 4 s
    assert paces([early, late]) == [1.0, 0.5]
    with pytest.raises(RuntimeError, match="more steps"):
        paces([Steps([0.0], [1.0]), Steps([2.0], [3.0])])


def test_spread_is_half_the_range_of_the_middle_half() -> None:
    assert spread([10.0, 10.0, 10.0, 10.0]) == 0.0
    assert spread([9.0, 10.0, 11.0]) == 0.1
    assert spread([8.0, 9.0, 10.0, 11.0, 12.0, 1000.0]) < 30


def sampled(monkeypatch: pytest.MonkeyPatch, samples: list[tuple[float, float]]) -> StealSampler:
    """Returns a sampler with the given samples (time, stolen seconds until then) on a machine with two CPUs."""
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    sampler = StealSampler(lambda: 0.0)
    sampler._samples = samples
    return sampler


def test_steps_that_other_machines_disturbed_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    # A tenth of both CPUs' time is stolen between 1 and 2 s, and slightly less than LIMIT allows between 3 and 4 s.
    allowed = 0.2 + 1.9 * LIMIT
    sampler = sampled(monkeypatch, [(0.0, 0.0), (1.0, 0.0), (2.0, 0.2), (3.0, 0.2), (4.0, allowed), (5.0, allowed)])
    assert sampler.share(1.2, 1.3) == pytest.approx(0.1)
    assert sampler.share() == pytest.approx(allowed / 10)
    steps = Steps([0.0, 0.5, 1.5, 2.0, 3.0], [0.4, 1.5, 1.9, 3.0, 3.9], [1.0, 2.0, 3.0, 4.0, 5.0])
    left = sampler.undisturbed_steps(steps)
    assert (left.begins, left.ends, left.latencies) == ([0.0, 2.0, 3.0], [0.4, 3.0, 3.9], [1.0, 4.0, 5.0])


def test_disturbed_steps_are_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[Steps] = []
    good_in_run = {1: 1, 2: 1, 3: 0, 4: 0}  # number of undisturbed steps among the four of each run

    @undisturbed
    def measure() -> Steps:
        first = 10.0 * len(runs)
        runs.append(Steps([first + number for number in range(4)], [first + number + 1 for number in range(4)]))
        return runs[-1]

    def undisturbed_steps(sampler: StealSampler, steps: Steps) -> Steps:
        return steps.where([number < good_in_run[len(runs)] for number in range(4)])

    monkeypatch.setattr(StealSampler, "undisturbed_steps", undisturbed_steps)
    with limit_runs() as heard:
        assert measure().begins == [0.0, 10.0]
    assert not heard

    runs.clear()
    good_in_run[1] = good_in_run[2] = 0
    good_in_run[3] = 1
    with limit_runs() as heard:
        assert len(measure().begins) == 4 * RUNS
    assert heard == ["15 of 16 steps"]

    runs.clear()
    with limit_runs(runs=1) as heard:
        assert len(measure().begins) == 4
    assert heard == ["4 of 4 steps"]


def test_stolen_time_is_read_from_proc_stat(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu  100 0 50 800 0 0 3 250 0 0\ncpu0 1 2 3\n")
    assert stolen_seconds(stat) == pytest.approx(250 / os.sysconf("SC_CLK_TCK"))
    stat.write_text("cpu  100 0 50 800\n")
    assert stolen_seconds(stat) == 0.0


def test_rates_in_the_notation_of_tc_are_parsed() -> None:
    assert [bits_per_second(rate) for rate in ("20mbit", "1gbit", "64kbit")] == [20e6, 1e9, 64e3]
    with pytest.raises(ValueError, match="200mbit"):
        bits_per_second("fast")


@pytest.mark.parametrize(
    ("workers", "summers"),
    [
        ([200] * 8, []),
        ([200] * 8, [200] * 3),
        ([200] * 8, [200] * 10),
        ([100] + [200] * 7, [200] * 8),
        ([200] * 2, [50]),
    ],
)
def test_estimates_use_the_bandwidth_model_of_plans(workers: list[int], summers: list[int]) -> None:
    require_build()
    command = [str(GLEANER), "plan", "--bytes", "64MiB", "-o", "json"]
    command += ["--worker-bandwidths", ",".join(f"{rate}Mbit" for rate in workers)]
    if summers:
        command += ["--summer-bandwidths", ",".join(f"{rate}Mbit" for rate in summers)]
    planned = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    ours = model.bound(64 << 20, [1e6 * rate for rate in workers], [1e6 * rate for rate in summers])
    assert ours == pytest.approx(planned["bound_seconds"], rel=1e-6)


def test_a_bound_subtracts_the_bytes_that_shapers_let_through_at_once() -> None:
    # With equal links the bound is shorter by the time that a link needs for the bytes that its shaper has saved up.
    for workers, summers in (([2e6] * 2, []), ([2e6] * 8, []), ([2e6] * 8, [2e6] * 3)):
        whole, less = (model.bound(MIB, workers, summers, saved) for saved in (0.0, 1e6))
        assert whole - less == pytest.approx(0.5)
    # Here a slow worker's own link limits the step.
    assert model.bound(MIB, [1e6, *[2e6] * 7], [2e6] * 8, 1e6) == pytest.approx((8 * MIB - 1e6) / 1e6)
    assert bits("128kb") == 8 * 128 * 1024
    with pytest.raises(ValueError, match="128kb"):
        bits("128")


@pytest.mark.long
def test_steps_after_pauses_have_shorter_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    require_namespaces()
    require_build()
    monkeypatch.setattr(jobs, "GLEANER", str(GLEANER))
    with Lab(Setting(2, 0, "100mbit", "64kb")) as lab:
        monkeypatch.setattr(Lab, "payload_of", lambda self, host: 90e6)
        part, sizes = lab.part(2, 0), ["--bytes", "1000000"]
        bucket = 64 * 1024 * 8 * 0.9
        assert lab.bucket == pytest.approx(bucket)
        full = jobs.bound(part, sizes)
        assert full == pytest.approx((8e6 - bucket) / 90e6)
        assert jobs.bound(part, sizes, Steps([], [], [], [math.inf, 1.0])) == pytest.approx(full)
        assert jobs.bound(part, sizes, Steps([], [], [], [0.0])) == pytest.approx(8e6 / 90e6)
        half = jobs.bound(part, sizes, Steps([], [], [], [bucket / 2 / 90e6]))
        assert half == pytest.approx((8e6 - bucket / 2) / 90e6)


@pytest.mark.long
def test_processes_on_pinned_hosts_stay_on_one_core_and_are_found() -> None:
    """Checks processes that `gleaner run` starts by a host's prefix, and processes that mpirun's agent starts."""
    require_namespaces()
    cores = sorted(os.sched_getaffinity(0))
    wanted = [{cores[number % len(cores)]} for number in range(3)]
    tell = ["python3", "-c", "import os; print(sorted(os.sched_getaffinity(0)))"]
    with Lab(Setting(2, 1, "none", pinned=True)) as lab:
        part = lab.part(2, 1)
        kept = json.loads(part.hosts_file().read_text())
        prefixes = [entry["prefix"] for entry in kept["workers"] + kept["summers"]]
        told = [subprocess.run([*prefix, *tell], capture_output=True, text=True).stdout for prefix in prefixes]
        assert [set(json.loads(line)) for line in told] == wanted
        listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout.split()
        assert all(lab.space(host) in listed for host in lab.setting.hosts)
        control = [*lab.prefix("summer0"), "cat", "/proc/sys/net/ipv4/tcp_congestion_control"]
        assert subprocess.run(control, capture_output=True, text=True).stdout == "reno\n"
        agent = peers.mpi_hosts(part, lab.folder)["plm_rsh_agent"]
        environment = {**os.environ, "GLEANER_LAB_PREFIXES": str(lab.folder / "prefixes")}
        command = [agent, lab.address("worker1"), "taskset", "-cp", "$$"]
        said = subprocess.run(command, capture_output=True, text=True, env=environment).stdout
        assert said.split(":")[-1].strip() == str(cores[1 % len(cores)])


@pytest.mark.long
def test_all_hosts_on_the_loopback_are_one_namespace_with_the_same_congestion_control() -> None:
    require_namespaces()
    with Lab(Setting(2, 1, "")) as lab:
        assert {lab.space(host) for host in lab.setting.hosts} == {lab.starter()[-1]}
        control = [*lab.starter(), "cat", "/proc/sys/net/ipv4/tcp_congestion_control"]
        assert subprocess.run(control, capture_output=True, text=True).stdout == "reno\n"
        talk = "import socket; s = socket.create_server(('127.0.0.1', 0)); socket.create_connection(s.getsockname(), 5)"
        assert subprocess.run([*lab.prefix("summer0"), "python3", "-c", talk]).returncode == 0
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout
    assert lab.name not in listed


def test_rows_with_long_steps_measure_fewer_steps() -> None:
    assert enough(0.001, 10) == (10, 2)
    assert enough(9.0, 10) == (6, 2)
    assert enough(60.0, 10) == (3, 1)


def test_rows_that_follow_each_other_share_a_lab() -> None:
    other = Setting(4, 0)
    apart = [row("a"), row("b", setting=other), row("c")]
    assert estimate(apart, 1) - estimate([row("a"), row("c"), row("b", setting=other)], 1) == 12.0


def test_the_table_has_every_row_once_and_few_labs() -> None:
    listed = rows()
    names = [each.name for each in listed]
    assert len(set(names)) == len(names)
    settings = [each.setting for each in listed]
    changes = sum(1 for before, after in zip(settings, settings[1:]) if before != after)
    assert changes + 1 == len(set(settings))


def test_run_all_lists_without_root_or_hosts() -> None:
    listed = subprocess.run([BENCH / "run_all", "--list", "--rows", "n=16 k=18"], capture_output=True, text=True)
    assert listed.returncode == 0
    assert "n=16 k=18" in listed.stdout
    assert "1 rows, about" in listed.stdout
    nothing = subprocess.run([BENCH / "run_all", "--rows", "no such"], capture_output=True, text=True)
    assert nothing.returncode == 2
    assert "--list" in nothing.stderr


def test_samples_cover_the_time_of_the_steps() -> None:
    samples = [Sample(time, time / 2, 100, 100) for time in (0.0, 1.0, 2.0, 3.0, 4.0)]
    assert [each.time for each in between(samples, 1.5, 2.5)] == [1.0, 2.0, 3.0]
    with pytest.raises(RuntimeError, match="too short"):
        between(samples[:1], 1.5, 2.5)


def test_a_processor_share_refers_to_the_time_between_samples() -> None:
    samples = [Sample(time, used, 100, 100) for time, used in ((0.0, 9.0), (1.0, 10.0), (2.0, 10.5), (3.0, 11.0))]
    assert processor_share(samples, 1.5, 2.5) == 0.5


def python(program: str) -> list[str]:
    return [sys.executable, "-c", program]


def test_output_of_a_rank_is_read_while_other_ranks_run() -> None:
    much = python("import sys; sys.stderr.write('e' * 1000000); print(list(range(100000)))")
    found = ranks.together([python("import time; time.sleep(0.3); print([1])"), much, python("")], TIMEOUT)
    assert [len(line) for line in found] == [1, 100000]


def test_a_failed_rank_is_reported_and_ends_the_other_ranks(tmp_path: Path) -> None:
    began, ended = tmp_path / "began", tmp_path / "ended"
    lasting = python(
        f"import pathlib, time; pathlib.Path({str(began)!r}).touch(); time.sleep({TIMEOUT}); "
        f"pathlib.Path({str(ended)!r}).touch()"
    )
    failing = python(
        f"import os, sys, time\nwhile not os.path.exists({str(began)!r}): time.sleep(0.01)\n"
        "sys.stderr.write('no link'); sys.exit(3)"
    )
    with pytest.raises(RuntimeError, match="ended with 3: no link"):
        ranks.together([lasting, failing], TIMEOUT)
    with pytest.raises(subprocess.TimeoutExpired):
        ranks.together([["true"], lasting], 0.2)
    assert not ended.exists()


def test_steps_need_correct_output_of_all_ranks() -> None:
    line = {"step_begins": [1.0], "step_ends": [2.0]}
    assert ranks.steps_of([line, line], 2).seconds == [1.0]
    with pytest.raises(RuntimeError, match="1 of 2 ranks"):
        ranks.steps_of([line], 2)
    with pytest.raises(RuntimeError, match="sums differ"):
        ranks.steps_of([{**line, "sha256": "a"}, {**line, "sha256": "b"}], 2)
    with pytest.raises(RuntimeError, match="wrong sums"):
        ranks.steps_of([{**line, "right": True}, {**line, "right": False}], 2)


def test_the_aim_of_small_steps_is_lower() -> None:
    aims = [row.aim for row in sweep.size_rows()]
    assert aims == sorted(aims)
    assert aims[-1] == 0.975
    assert sweep.reachable(1.0) == pytest.approx(0.9, abs=0.005)
    assert sweep.reachable(3.8e-3) == pytest.approx(0.45)


def test_results_are_saved_and_loaded_again(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    first = table.Results(path, None, 10)
    first.add(table.result(row("good"), Measured(1.5, 0.1, {"step": 2.0}), 3.0))
    first.add(table.failure(row("bad"), RuntimeError("no link"), 1.0))
    again = table.Results(None, path, 10)
    assert again.has(row("good"))
    assert not again.has(row("bad"))  # so the row is measured again
    again.add(table.result(row("bad"), Measured(0.5, 0.1), 3.0))
    kept = json.loads(path.read_text())
    assert [each["row"] for each in kept["rows"]] == ["good", "bad"]
    assert kept["machine"]["processors"] >= 1
    assert [each["row"] for each in again.in_order([row("bad"), row("good"), row("not measured")])] == ["bad", "good"]


def test_tables_show_met_missed_and_failed_aims() -> None:
    entries = [
        table.result(row("more"), Measured(1.5, 0.1), 1.0),
        table.result(row("less", at_least=False), Measured(1.5, 0.1), 1.0),
        table.failure(row("broken"), RuntimeError("why"), 1.0),
    ]
    lines = table.markdown(entries).splitlines()[2:]
    assert lines[0] == "| more | ≥ 1 | 1.500 ± 0.100 |"
    assert lines[1] == "| less | ≤ 1 | **1.500** ± 0.100 |"
    assert lines[2] == "| broken | ≥ 1 | failed |"
    assert table.verdict(entries[2]) == "FAILED: why"


def test_tables_have_a_line_for_rows_that_differ_in_k_or_size() -> None:
    names = ["n=8 k=0: 64 MiB", "n=8 k=1: 64 MiB", "n=8 k=2: 64 MiB", "n=8 k=0: 4 B over it", "n=8 k=0: 16 KiB over it"]
    ratios = [1.5, 0.9, 1.1, 1.0, 2.0]
    entries = [table.result(row(name), Measured(ratio, 0.1), 1.0) for name, ratio in zip(names, ratios)]
    entries[2]["disturbed"] = ["a step"]
    entries.append(table.failure(row("n=8 k=1: 4 B over it"), RuntimeError("why"), 1.0))
    lines = table.markdown(entries).splitlines()[2:]
    assert lines == [
        "| n=8 k=0 to 2: 64 MiB | ≥ 1 | 1.500 **0.900** 1.100 ± 0.100, 1 disturbed |",
        "| n=8 k=0: 4 B, 16 KiB over it | ≥ 1 | 1.000 2.000 ± 0.100 |",
        "| n=8 k=1: 4 B over it | ≥ 1 | failed |",
    ]


def test_a_record_includes_its_command_and_is_compared_with_a_wide_margin(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    record.write(path, "guard --record", {"processors": 2}, {"a row": 0.91})
    assert record.read(path) == {"a row": 0.91}
    assert json.loads(path.read_text())["command"] == "guard --record"
    assert not record.too_low(0.73, 0.91)
    assert record.too_low(0.72, 0.91)
    assert "below 0.8 of the record" in record.judge("a row", 0.5, 0.91)
    assert record.judge("a row", 2.0, 0.91).endswith("ok")


def test_the_record_has_every_row_of_the_guard() -> None:
    from wire import short

    assert list(record.read(BENCH / "record.json")) == [row.name for row in short.rows()]
