"""Tests CPU summers that are killed, stopped, drained and added during a job: all sums are right, and all workers
continue."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Callable

import pytest
from conftest import Job, job, read_until

WORKERS = 3


class Disturbed:
    """A job whose workers sum until the test ends the job."""

    def __init__(self, started: Job, folder: Path) -> None:
        self.job = started
        self._stop = folder / "stop"
        self._workers = [started.start_worker(index, "changing.py", str(self._stop)) for index in range(WORKERS)]
        for worker in self._workers:
            read_until(worker, "summing")

    def finish(self) -> float:
        """Ends the job, and checks that all workers and the coordinator succeed. Returns the seconds of the longest
        step."""
        time.sleep(1)
        self._stop.touch()
        longest = 0.0
        for worker in self._workers:
            out, err = worker.communicate(timeout=30)
            assert worker.returncode == 0, err
            longest = max(longest, float(re.search(r"the longest took ([\d.]+)", out)[1]))
        assert self.job.coordinator.wait(timeout=10) == 0
        return longest

    def coordinators_words(self) -> str:
        return self.job.coordinator.communicate()[1]


@contextlib.contextmanager
def disturbed(folder: Path, summers: int) -> Iterator[Disturbed]:
    with job(folder, WORKERS, summers, "--deadline", "10") as started:
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
        longest = going.finish()
        words = going.coordinators_words()
        assert words.count("is lost") == lost, words
        # Workers notice a lost connection at once, and a silent summer within a second.
        assert longest < (3 if lose is stop else 2), words


def test_summers_lost_in_succession(tmp_path: Path) -> None:
    with disturbed(tmp_path, 3) as going:
        for summer in going.job.summers:
            kill(summer)
            time.sleep(0.05)
        going.finish()


def test_a_drained_summer(tmp_path: Path) -> None:
    with disturbed(tmp_path, 2) as going:
        leaver = going.job.summers[0]
        leaver.terminate()
        assert leaver.wait(timeout=5) == 0
        going.finish()
        assert "is lost" not in going.coordinators_words()


def test_an_added_summer(tmp_path: Path) -> None:
    with disturbed(tmp_path, 0) as going:
        late = going.job.start_summer()
        read = going.job.coordinator.stderr
        seen = ""
        while "1 summers" not in seen:
            line = read.readline()
            assert line, f"the coordinator ended: {seen}"
            seen += line
        going.finish()
        assert late.wait(timeout=10) == 0


def test_a_stopped_summer_joins_again_when_it_continues(tmp_path: Path) -> None:
    with disturbed(tmp_path, 1) as going:
        summer = going.job.summers[0]
        stop(summer)
        time.sleep(2)
        summer.send_signal(signal.SIGCONT)
        going.finish()
        words = going.coordinators_words()
        assert words.count("is lost") == 1, words
        assert words.count("joined the running job") == 1, words
        assert summer.wait(timeout=10) == 0
