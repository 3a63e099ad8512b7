"""Tests traces of running jobs: they are complete, and name the slow worker."""

from __future__ import annotations

import collections
import contextlib
import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import GLEANER, TIMEOUT, Job, environment, job, patient, require_build, run_job

SLOW_SECONDS = 0.25
GPU_STAGES = {"reduce", "copy out", "copy in", "broadcast"}
STAGES = {"compute", "local", "queue", "wire", "sum", "wait", "unknown"} | GPU_STAGES


def trace(started: Job, *flags: str, timeout: float = TIMEOUT) -> subprocess.CompletedProcess[str]:
    """Runs `gleaner trace` for a job."""
    command = [str(GLEANER), "trace", "--coordinator", started.coordinator_address, "--token-file", str(started.token)]
    return subprocess.run([*command, *flags], capture_output=True, text=True, timeout=timeout, env=environment())


def slices(merged: dict, track: str) -> list[dict]:
    return [e for e in merged["traceEvents"] if e["ph"] == "X" and re.fullmatch(track, e["cat"])]


def processes(merged: dict) -> dict[int, str]:
    return {e["pid"]: e["args"]["name"] for e in merged["traceEvents"] if e["name"] == "process_name"}


def check_viewable(merged: dict) -> None:
    """Checks that times begin at 0, and that each arrow has both ends: viewers drop the others."""
    assert 0 <= min(e["ts"] for e in merged["traceEvents"] if "ts" in e) < 1e6
    begins = {e["id"]: e["ts"] for e in merged["traceEvents"] if e["ph"] == "s"}
    ends = {e["id"]: e["ts"] for e in merged["traceEvents"] if e["ph"] == "f"}
    assert begins.keys() == ends.keys()
    assert all(begins[arrow] <= ends[arrow] for arrow in begins)


def check_steps(report: dict) -> None:
    """Checks that the stages of each step, and the segments of its critical path, cover the whole step."""
    assert report["steps"], report
    for step in report["steps"]:
        assert set(step["stages"]) == STAGES
        assert sum(step["stages"].values()) == pytest.approx(step["seconds"], rel=1e-6)
        assert step["stages"]["unknown"] == 0
        ends = [step["begin"], *(segment["end"] for segment in step["path"])]
        assert [segment["begin"] for segment in step["path"]] == pytest.approx(ends[:-1], abs=1e-9)
        assert ends[-1] == pytest.approx(step["end"], abs=1e-9)


def test_a_trace_of_a_bench_has_every_partition_of_every_step(tmp_path: Path) -> None:
    require_build()
    file = tmp_path / "trace.json"
    bench = [str(GLEANER), "bench", "push-pull", "--bytes", "3MiB", "--steps", "12", "--warmup", "0", "--json"]
    # The trace covers the whole job, since members leave only after the trace is fetched.
    command = [str(GLEANER), "run", "--workers", "2", "--summers", "1", "--partition-bytes", "256KiB"]
    command += ["--trace", str(file), "--trace-seconds", str(TIMEOUT), "--no-prefix", *patient(()), "--", *bench]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, env=environment())
    assert ended.returncode == 0, ended.stderr
    assert "2 workers, 1 summer:" in ended.stderr
    assert "left out" not in ended.stderr and "not in this trace" not in ended.stderr

    merged = json.loads(file.read_text())
    check_viewable(merged)
    assert processes(merged) == {0: "steps", 1: "worker 0", 2: "worker 1", 3: "summer 0"}
    sums = [e for e in slices(merged, "6 sum") if not e["args"]["tensor"].startswith("gleaner bench")]
    by_step = collections.Counter(e["args"]["step"] for e in sums)
    partitions = {e["args"]["partition"] for e in sums}
    assert sum(e["args"]["bytes"] for e in sums if e["args"]["step"] == 5) == 3 << 20
    assert by_step == dict.fromkeys(range(12), len(partitions)), "each partition is summed once in each step"
    for pid in (1, 2):
        for track in ("3 push to .*", "4 pull from .*"):
            seen = collections.Counter(
                (e["args"]["step"], e["args"]["partition"])
                for e in slices(merged, track)
                if e["pid"] == pid and not e["args"]["tensor"].startswith("gleaner bench")
            )
            assert seen == {(step, p): 1 for step in range(12) for p in partitions}, (pid, track)
    # All events are on one clock: a sum begins after all its pushes, and a pull ends after the sum. The clocks of two
    # members may both be wrong by as much as the report says.
    number, unit = re.search(r"clocks are set to within (\S+) (s|ms|us)", ended.stderr).groups()
    wrong = 2 * float(number) * {"s": 1e6, "ms": 1e3, "us": 1}[unit] + 1
    summed = {(e["args"]["tensor"], e["args"]["step"], e["args"]["partition"]): e for e in slices(merged, "6 sum")}
    for event in slices(merged, "3 push to .*|4 pull from .*"):
        of = summed[event["args"]["tensor"], event["args"]["step"], event["args"]["partition"]]
        if event["cat"].startswith("3"):
            assert event["ts"] <= of["ts"] + wrong
        else:
            assert event["ts"] + event["dur"] >= of["ts"] + of["dur"] - wrong


def test_a_trace_of_a_ring_has_each_slice_of_its_schedule(tmp_path: Path) -> None:
    require_build()
    file, ranks, steps = tmp_path / "trace.json", 3, 8
    bench = [str(GLEANER), "bench", "push-pull", "--bytes", "3MiB", "--steps", str(steps), "--warmup", "0", "--verify"]
    command = [str(GLEANER), "run", "--workers", str(ranks), "--strategy", "ring", "--partition-bytes", "256KiB"]
    command += ["--trace", str(file), "--trace-seconds", str(TIMEOUT), "--no-prefix", *patient(()), "--", *bench]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, env=environment())
    assert ended.returncode == 0, ended.stderr
    assert "left out" not in ended.stderr and "not in this trace" not in ended.stderr
    assert re.search(r"Schedule 0 \(ring\): \d+ partitions, \d+ slices, ", ended.stderr), ended.stderr

    merged = json.loads(file.read_text())
    check_viewable(merged)

    def count(track: str) -> collections.Counter:
        """Counts the slices of a track by worker, step and partition, without the small tensors of the bench."""
        return collections.Counter(
            (e["pid"] - 1, e["args"]["step"], e["args"]["partition"])
            for e in slices(merged, track)
            if not e["args"]["tensor"].startswith("gleaner bench")
        )

    # A ring of n ranks sends 2(n-1) slices of each partition from each rank, in as many steps, and receives as many.
    runs = count("3 schedule")
    assert {step for _, step, _ in runs} == set(range(steps))
    assert len(runs) == ranks * steps * len({partition for *_, partition in runs}) and set(runs.values()) == {1}
    every = dict.fromkeys(runs, 2 * (ranks - 1))
    assert count("4 send to .*") == every
    assert count("5 receive from .*") == every
    received = slices(merged, "5 receive from .*")
    kinds = collections.Counter((e["args"]["schedule_step"], e["args"]["operation"]) for e in received)
    assert set(kinds) == {(step, "add" if step < ranks - 1 else "copy") for step in range(2 * (ranks - 1))}
    assert len(set(kinds.values())) == 1, kinds
    # Each arrow leads from a send to the receive of the same slice, on the next worker of the ring.
    begins = {e["id"]: e for e in merged["traceEvents"] if e["ph"] == "s"}
    ends = {e["id"]: e for e in merged["traceEvents"] if e["ph"] == "f"}
    assert len(received) == len(begins) == len(ends)
    assert all(ends[arrow]["pid"] - 1 == begin["pid"] % ranks for arrow, begin in begins.items())


@pytest.mark.parametrize("slow", [0, 2])
def test_a_slow_worker_is_named(tmp_path: Path, slow: int) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    with job(tmp_path, 3, 1) as started:
        for worker in range(3):
            started.start_worker(worker, "slow_worker.py", "100000", str(slow), str(SLOW_SECONDS), str(marks))
        file = tmp_path / "trace.json"
        taken = trace(started, "--steps", "9", "--json", "-o", str(file))
        assert taken.returncode == 0, taken.stderr
        report = json.loads(taken.stdout)
        seconds, in_seconds = 0.5, []
        while not in_seconds and seconds < TIMEOUT:  # until some step is whole within this time
            seconds *= 2
            again = trace(started, "--seconds", str(seconds), "--json")
            assert again.returncode == 0, again.stderr
            in_seconds = json.loads(again.stdout)["steps"]
        text = trace(started, "--steps", "5")
        assert f"Waited for worker {slow}" in text.stdout, text.stdout + text.stderr
    assert report["missing"] == [] and report["remarks"] == []
    check_steps(report)
    assert all(step["stages"][stage] == 0 for step in report["steps"] for stage in GPU_STAGES), "nothing is on a GPU"
    assert "copy" not in text.stdout
    waits = [step["stages"]["wait"] for step in report["steps"]]
    assert sorted(waits)[len(waits) // 2] > SLOW_SECONDS / 2, waits
    named = collections.Counter(step["slowest"] and step["slowest"]["worker"] for step in report["steps"])
    assert named.most_common(1)[0][0] == slow, named
    assert all(clock["uncertainty_seconds"] > 0 for clock in report["clocks"] if clock["member"] != "worker/0")
    assert len(report["steps"]) == 9
    assert in_seconds and sum(step["seconds"] for step in in_seconds[1:]) <= seconds, in_seconds
    assert processes(json.loads(file.read_text()))[1 + slow] == f"worker {slow}"


@contextlib.contextmanager
def running(runtime: Path, name: str) -> Iterator[subprocess.Popen[str]]:
    """Starts a job of `gleaner run` that does not end by itself, and waits until it says how to trace it."""
    bench = [str(GLEANER), "bench", "push-pull", "--bytes", "64KiB", "--steps", "100000000"]
    command = [str(GLEANER), "run", "--workers", "2", "--summers", "1", "--job", name, *patient(()), "--", *bench]
    started = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=environment(XDG_RUNTIME_DIR=str(runtime))
    )
    try:
        told = started.stderr.readline()
        assert told.endswith(f"gleaner trace --pid {started.pid}\n"), told
        yield started
    finally:
        for _ in range(2):  # the second signal kills the job's processes
            started.terminate()
        started.communicate(timeout=TIMEOUT)


def test_jobs_of_gleaner_run_are_found(tmp_path: Path) -> None:
    require_build()
    variables = environment(XDG_RUNTIME_DIR=str(tmp_path), KUBECONFIG=str(tmp_path / "none"))

    def gleaner(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([GLEANER, *words], capture_output=True, text=True, timeout=TIMEOUT, env=variables)

    folder = tmp_path / "gleaner"
    # Other jobs of this user may run on this machine.
    name = f"lone-{os.getpid()}"
    with running(tmp_path, name) as first:
        assert "2 workers, 1 summer" in gleaner("trace", "--job", name, "--seconds", "0.2").stdout
        listed = json.loads(gleaner("status", "-o", "json").stdout)
        assert listed["kind"] == "List" and listed["items"] == []
        assert (first.pid, name, 2) in [(job["pid"], job["job"], job["workers"]) for job in listed["localJobs"]]
        with running(tmp_path, name) as second:
            for several in (gleaner("trace", "--seconds", "0.2"), gleaner("trace", "--job", name)):
                assert several.returncode == 2, several.stderr
                for pid in (first.pid, second.pid):
                    assert re.search(rf"^ *{pid} ", several.stderr, re.MULTILINE), several.stderr
            for pid in (first.pid, second.pid):
                assert re.search(rf"^ *{pid} ", gleaner("status").stdout, re.MULTILINE)
                assert "2 workers" in gleaner("trace", "--pid", str(pid), "--seconds", "0.2").stdout
            second.kill()
            second.wait()
        assert "2 workers" in gleaner("trace", "--job", name, "--seconds", "0.2").stdout
        assert [file.name for file in folder.iterdir()] == [f"{first.pid}.json"]
    assert list(folder.iterdir()) == []
    none = gleaner("trace", "--job", name)
    assert none.returncode == 1 and re.search("no (such )?job", none.stderr), none.stderr


def test_local_ranks_are_in_the_trace(tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    flags = ("--trace", str(file), "--trace-seconds", str(TIMEOUT))
    ended = run_job("slow_worker.py", "8", "1", "0.02", workers=2, summers=1, local_ranks=2, flags=flags)
    assert ended.returncode == 0, ended.stderr
    merged = json.loads(file.read_text())
    assert list(processes(merged).values()) == [
        "steps",
        "worker 0.0",
        "worker 0.1",
        "worker 1.0",
        "worker 1.1",
        "summer 0",
    ]
    for pid in range(1, 5):
        assert len([e for e in slices(merged, "1 push_pull") if e["pid"] == pid]) == 8 * 3


def test_a_trace_names_a_member_that_does_not_answer(tmp_path: Path) -> None:
    with job(tmp_path, 2, 1, "--deadline", "100000") as started:
        workers = [started.start_worker(i, "slow_worker.py", "100000", "0", "0") for i in range(2)]
        assert trace(started, "--seconds", "1").returncode == 0  # shows that the job has begun
        workers[1].send_signal(signal.SIGSTOP)
        try:
            taken = trace(started, "--seconds", "1", "--json")
        finally:
            workers[1].send_signal(signal.SIGCONT)
    assert taken.returncode == 0, taken.stderr
    report = json.loads(taken.stdout)
    assert report["missing"] == ["worker 1"]
    assert any("worker 1 is not in this trace" in remark for remark in report["remarks"])


def test_errors_of_wrong_uses_give_advice(tmp_path: Path) -> None:
    with job(tmp_path, 2, 0) as started:
        other = tmp_path / "other"
        other.write_text("another token\n")
        command = [str(GLEANER), "trace", "--coordinator", started.coordinator_address]
        refused = subprocess.run(
            [*command, "--token-file", str(other)], capture_output=True, text=True, timeout=TIMEOUT
        )
        assert refused.returncode == 1 and "token" in refused.stderr, refused.stderr
        wrong = trace(started, "--job", "another")
        assert wrong.returncode != 0 and "'default'" in wrong.stderr, wrong.stderr
        for flag, needed in (("--coordinator", "--token-file"), ("--token-file", "--coordinator")):
            lacking = subprocess.run([GLEANER, "trace", flag, "127.0.0.1:9"], capture_output=True, text=True)
            assert lacking.returncode == 2 and needed in lacking.stderr, lacking.stderr
        both = trace(started, "--seconds", "1", "--steps", "1")
        assert both.returncode == 2 and "either" in both.stderr, both.stderr
        started.coordinator.kill()
        started.coordinator.wait()
        gone = trace(started, "--seconds", "1")
        assert gone.returncode == 1 and started.coordinator_address in gone.stderr, gone.stderr
