"""Tests that a summer gives way: it uses almost no CPU time and bandwidth that other processes need."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import time
from pathlib import Path

import pytest
from conftest import TIMEOUT, Log, job, read_until, wait_until

WORKERS = 2
PAUSE = 0.02  # seconds that workers sleep after each step, so that the machine is idle most of the time
BUSY = ["sh", "-c", "while :; do :; done"]


def processor_seconds(pid: int) -> float:
    """Returns the CPU time of a process so far. Works also for a process that has ended and was not yet waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def planned_summers(log: Log) -> int:
    """Returns the number of summers in the current plan, from the coordinator's log."""
    found = re.findall(r"plan committed: .*\b(\d+) summers?\b", log.text)
    return int(found[-1]) if found else 0


@pytest.mark.long  # measures processor time, which needs a machine without other load
def test_a_summer_leaves_a_machine_whose_cpu_others_need(tmp_path: Path) -> None:
    """The job soon continues without the summer. The summer's process has low priority, and may take long to end."""
    stop = tmp_path / "stop"
    with job(tmp_path, WORKERS, 0) as started:
        workers = [started.start_worker(i, "changing.py", str(stop), str(PAUSE)) for i in range(WORKERS)]
        for worker in workers:
            read_until(worker, "summing")
        log = started.log_of(started.coordinator)
        summer = started.start_summer("--background", "--yield-above", "0.8")
        wait_until(lambda: summer.poll() is not None or planned_summers(log) == 1)
        time.sleep(1)
        if summer.poll() is not None or planned_summers(log) == 0:
            pytest.skip("others need this machine's processors already")
        spent = processor_seconds(summer.pid)
        burners = [subprocess.Popen(BUSY) for _ in range(2 * (os.cpu_count() or 1))]
        begin = time.monotonic()
        try:
            wait_until(lambda: planned_summers(log) == 0)
            seconds = time.monotonic() - begin
            assert summer.poll() in (None, 0)
            time.sleep(max(0.0, begin + 2 - time.monotonic()))
            if summer.poll() is None:
                spent = processor_seconds(summer.pid) - spent
                assert spent < 0.02 * 2 * (os.cpu_count() or 1), f"{spent} s of processor time"
        finally:
            for burner in burners:
                burner.kill()
                burner.wait()
        assert seconds < 2
        assert summer.wait(timeout=TIMEOUT) == 0
        said = summer.stderr.read()
        assert "other processes need this machine's processors" in said, said
        time.sleep(0.5)
        stop.touch()
        for worker in workers:
            out, err = worker.communicate(timeout=TIMEOUT)
            assert worker.returncode == 0, err
            assert " steps" in out, out
        assert started.coordinator.wait(timeout=TIMEOUT) == 0


def paces(pid: int) -> set[str]:
    """Returns the pacing rates of the process's connections in the kernel."""
    sockets = subprocess.run(["ss", "-HtniOp"], capture_output=True, text=True, check=True).stdout
    found = [
        re.search(r"pacing_rate [^ ]+bps/(\S+bps)", line) for line in sockets.splitlines() if f"pid={pid}," in line
    ]
    return {each.group(1) for each in found if each}


def policies(pid: int) -> list[int]:
    """Returns the scheduling policy of each thread of a process but the one that waits for signals."""
    found = []
    for thread in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):  # the thread has ended meanwhile
            if "signals" not in Path(f"/proc/{pid}/task/{thread}/comm").read_text():
                found.append(os.sched_getscheduler(int(thread)))
    return found


def test_a_summer_in_the_background_runs_only_on_idle_processors(tmp_path: Path) -> None:
    with job(tmp_path, WORKERS, 0) as started:
        summer = started.start_summer("--background")
        started.log_of(summer).wait_for("listening")  # which a busy machine delays
        found = policies(summer.pid)
        while len(found) == 1 and summer.poll() is None:  # a summer that gets no processor time may fail to join
            found = policies(summer.pid)
        assert set(found) == {os.SCHED_IDLE}


def test_a_summer_sends_at_the_rate_of_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLEANER_TRANSPORTS", "tcp")  # pacing applies only to TCP
    stop = tmp_path / "stop"
    with job(tmp_path, WORKERS, 1, summer_flags=("--bandwidth", "60Mbit", "--pace", "plan")) as started:
        workers = [started.start_worker(i, "changing.py", str(stop), str(PAUSE)) for i in range(WORKERS)]
        for worker in workers:
            read_until(worker, "summing")
        pid = started.summers[0].pid
        wait_until(lambda: paces(pid) == {"30000000bps"})
        stop.touch()
        for worker in workers:
            _, err = worker.communicate(timeout=TIMEOUT)
            assert worker.returncode == 0, err
