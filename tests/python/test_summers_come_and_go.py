"""Tests CPU summers that are killed, stopped, drained and added during a job: all sums are right, and all workers
continue."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Callable

import pytest
from conftest import TIMEOUT, Job, job, read_until

WORKERS = 3


class Disturbed:
    """A job whose workers sum until the test ends the job."""

    def __init__(self, started: Job, folder: Path) -> None:
        self.job = started
        self.log = started.log_of(started.coordinator)
        self._stop = folder / "stop"
        self._workers = [started.start_worker(index, "changing.py", str(self._stop)) for index in range(WORKERS)]
        for worker in self._workers:
            read_until(worker, "summing")

    def finish(self) -> str:
        """Ends the job after further steps, and checks that all workers and the coordinator succeed. Returns the
        coordinator's log."""
        self._stop.touch()
        for worker in self._workers:
            _, err = worker.communicate(timeout=TIMEOUT)
            assert worker.returncode == 0, err
        assert self.job.coordinator.wait(timeout=TIMEOUT) == 0, self.log.whole()
        return self.log.whole()


@contextlib.contextmanager
def disturbed(folder: Path, summers: int) -> Iterator[Disturbed]:
    # No test waits for the deadline: workers notice a lost connection at once, and a silent summer soon.
    with job(folder, WORKERS, summers, "--deadline", "100000") as started:
        yield Disturbed(started, folder)


def kill(summer: subprocess.Popen[str]) -> None:
    summer.kill()


def stop(summer: subprocess.Popen[str]) -> None:
    summer.send_signal(signal.SIGSTOP)


@pytest.mark.parametrize("lose", [kill, stop])
@pytest.mark.parametrize("transports, lost", [("tcp", 1), ("tcp", 2), ("auto", 2)], ids=["one", "all", "all-auto"])
def test_a_lost_summer(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    lose: Callable[[subprocess.Popen[str]], None],
    transports: str,
    lost: int,
) -> None:
    monkeypatch.setenv("GLEANER_TRANSPORTS", transports)
    with disturbed(tmp_path, 2) as going:
        for summer in going.job.summers[:lost]:
            lose(summer)
        for summer in going.job.summers[:lost]:
            going.job.wait_for_loss(summer)
        going.finish()


def test_summers_lost_in_succession(tmp_path: Path) -> None:
    with disturbed(tmp_path, 3) as going:
        for summer in going.job.summers:
            kill(summer)
            time.sleep(0.05)  # any time: the losses may or may not overlap
        for summer in going.job.summers:
            going.job.wait_for_loss(summer)
        going.finish()


def test_a_drained_summer(tmp_path: Path) -> None:
    with disturbed(tmp_path, 2) as going:
        leaver = going.job.summers[0]
        leaver.terminate()
        assert leaver.wait(timeout=TIMEOUT) == 0
        address = going.job.log_of(leaver).wait_for(r"listening address=(\S+)")[1]
        assert f"at {address} is lost" not in going.finish()


def test_an_added_summer(tmp_path: Path) -> None:
    with disturbed(tmp_path, 0) as going:
        late = going.job.start_summer()
        going.log.wait_for("1 summer,")
        going.finish()
        assert late.wait(timeout=TIMEOUT) == 0


def test_a_stopped_summer_joins_again_when_it_continues(tmp_path: Path) -> None:
    with disturbed(tmp_path, 1) as going:
        summer = going.job.summers[0]
        stop(summer)
        going.job.wait_for_loss(summer)
        summer.send_signal(signal.SIGCONT)
        going.log.wait_for("(?s)is lost.*joined the running job")
        going.finish()
        assert summer.wait(timeout=TIMEOUT) == 0


def cpu_nanoseconds(process: int) -> int:
    """Returns the processor time that the present threads of a process have had."""
    total = 0
    for task in Path(f"/proc/{process}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended
            total += int((task / "schedstat").read_text().split()[0])
    return total


@contextlib.contextmanager
def throttled(process: int) -> Iterator[None]:
    """Gives a process little processor time, as under a low CPU limit: it stops for 0.1 s after each 4 ms that it had.

    Afterwards it runs on.
    """
    over = threading.Event()

    def throttle() -> None:
        while not over.is_set():
            os.kill(process, signal.SIGSTOP)
            over.wait(0.1)
            before, end = cpu_nanoseconds(process), time.monotonic() + 0.2
            os.kill(process, signal.SIGCONT)
            while cpu_nanoseconds(process) - before < 4_000_000 and time.monotonic() < end:
                time.sleep(0.001)

    thread = threading.Thread(target=throttle)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_a_slow_summer_is_named_and_loses_its_share(tmp_path: Path) -> None:
    """All sums stay right, and the summer stays in the job (changing.py checks every sum)."""
    with disturbed(tmp_path, 2) as going:
        slow, fast = going.job.summers
        address = going.job.log_of(slow).wait_for(r"listening address=(\S+)")[1]
        name = going.log.wait_for(rf"(summer \d+) at {address} joined")[1]
        with throttled(slow.pid):
            # On a busy machine it may be silent for so long that it is lost, and joins again at another address.
            going.log.wait_for(rf"{name} at \S+ is slow: a step takes [^\n]* with it and ")
        going.finish()
        assert slow.wait(timeout=TIMEOUT) == fast.wait(timeout=TIMEOUT) == 0
