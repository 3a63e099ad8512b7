"""What a summer takes of its machine: next to nothing that others need, of processors and of bandwidth."""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path

import pytest
from conftest import job, read_until, wait_until

WORKERS = 2
PAUSE = 0.02  # of workers after a step: they leave the machine idle most of the time
BUSY = ["sh", "-c", "while :; do :; done"]


def test_leaves_for_others(tmp_path: Path) -> None:
    stop = tmp_path / "stop"
    with job(tmp_path, WORKERS, 0) as started:
        workers = [started.start_worker(i, "changing.py", str(stop), str(PAUSE)) for i in range(WORKERS)]
        for worker in workers:
            read_until(worker, "summing")
        summer = started.start_summer("--background", "--yield-above", "0.8")
        while "1 summers" not in (line := started.coordinator.stderr.readline()):
            assert line, "the coordinator ended"
        time.sleep(1)
        if summer.poll() is not None:
            pytest.skip("others need this machine's processors already")
        burners = [subprocess.Popen(BUSY) for _ in range(2 * (os.cpu_count() or 1))]
        begin = time.monotonic()
        try:
            assert summer.wait(timeout=10) == 0
            seconds = time.monotonic() - begin
        finally:
            for burner in burners:
                burner.kill()
                burner.wait()
        assert seconds < 2
        said = summer.stderr.read()
        assert "others need this machine's processors" in said, said
        time.sleep(0.5)
        stop.touch()
        for worker in workers:
            out, err = worker.communicate(timeout=30)
            assert worker.returncode == 0, err
            assert "steps, the longest took" in out, out
        assert started.coordinator.wait(timeout=10) == 0
        words = started.coordinator.stderr.read()
        assert "is lost" not in words, words


def paces(pid: int) -> set[str]:
    """Of its connections from workers, as the kernel was told."""
    sockets = subprocess.run(["ss", "-HtniOp"], capture_output=True, text=True, check=True).stdout
    found = [
        re.search(r"pacing_rate [^ ]+bps/(\S+bps)", line) for line in sockets.splitlines() if f"pid={pid}," in line
    ]
    return {each.group(1) for each in found if each}


def test_is_in_the_background_and_sends_no_faster_than_the_plan_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLEANER_TRANSPORTS", "tcp")  # shared memory takes nothing of the network
    stop = tmp_path / "stop"
    flags = ("--bandwidth", "60Mbit", "--pace", "plan", "--background")
    with job(tmp_path, WORKERS, 1, summer_flags=flags) as started:
        workers = [started.start_worker(i, "changing.py", str(stop), str(PAUSE)) for i in range(WORKERS)]
        for worker in workers:
            read_until(worker, "summing")
        pid = started.summers[0].pid
        wait_until(lambda: paces(pid) == {"30000000bps"})
        threads = [int(thread) for thread in os.listdir(f"/proc/{pid}/task")]
        assert {os.sched_getscheduler(thread) for thread in threads} == {os.SCHED_IDLE}
        stop.touch()
        for worker in workers:
            _, err = worker.communicate(timeout=30)
            assert worker.returncode == 0, err
