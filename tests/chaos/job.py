"""Runs a job on the hosts of a lab: a coordinator, workers in PyTorch, and summers that are restarted when they end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Optional

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
from wire.lab import ROOT, Lab

BUILD = Path(os.environ.get("GLEANER_BUILD", ROOT / "build" / "release")).resolve()
TRAIN = Path(__file__).resolve().parent / "train.py"
PYTHON = "/usr/bin/python3"  # Debian's Python, which has Debian's PyTorch
PORT, SUMMER_PORT = 7077, 7078


class ChaosError(Exception):
    """The job did not behave as it should. The last line of the message gives the deviation."""


def environment(**more: str) -> dict[str, str]:
    package, library = ROOT / "comm-lib" / "python", BUILD / "lib" / "libgleaner.so"
    return {**os.environ, "PYTHONPATH": str(package), "GLEANER_LIBRARY": str(library), "OMP_NUM_THREADS": "1", **more}


def quiet_digest(workers: int, steps: int, options: list[str]) -> str:
    """Returns the digest of the parameters after `steps` steps of a job without summers, faults and shaped links.

    Summers, faults and shaped links must not change a bit of the result.
    """
    command = [BUILD / "bin" / "gleaner", "run", "--no-prefix", "--workers", workers, "--summers", 0]
    command += ["--start-timeout", 300, "--", PYTHON, TRAIN, "--steps", steps, *options]
    done = subprocess.run([str(word) for word in command], env=environment(), capture_output=True, text=True)
    if done.returncode != 0:
        raise ChaosError(f"{done.stderr}\nthe run without faults failed")
    results = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    digests = {str(each["sha256"]) for each in results}
    if len(results) != workers or len(digests) != 1:
        raise ChaosError(f"ranks of the run without faults have different parameters: {digests}")
    return digests.pop()


class Summer:
    """The summer of one host. update() starts it again some time after it has ended."""

    def __init__(self, job: Job, host: str) -> None:
        self._job, self.host = job, host
        self._process: Optional[subprocess.Popen[str]] = None
        self._back_at = 0.0
        self._stopped_until: Optional[float] = None

    def update(self, now: float) -> None:
        """Resumes or starts the summer if its pause is over. The caller calls this several times a second."""
        if self._stopped_until is not None and now >= self._stopped_until:
            self.signal(signal.SIGCONT)
            self._stopped_until = None
        if self._process is not None and self._process.poll() is not None:
            self._process, self._stopped_until = None, None
            self._back_at = max(self._back_at, now + 0.3)
        if self._process is None and now >= self._back_at:
            self._process = self._job.start_summer(self.host)

    def end(self, number: signal.Signals, back_at: float) -> None:
        self._back_at = back_at
        self.signal(number)

    def freeze(self, until: float) -> None:
        self.signal(signal.SIGSTOP)
        self._stopped_until = until

    def signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


class Worker:
    """A worker's process. A thread reads its output, since its last line may be longer than a pipe's buffer."""

    def __init__(self, command: list[str], env: dict[str, str], log: Any) -> None:
        self.process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=log, text=True)
        self.training = False
        self.result: Optional[dict[str, Any]] = None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def finish(self, timeout: float) -> None:
        self.process.wait(timeout)
        self._reader.join(timeout)

    def _read(self) -> None:
        for line in self.process.stdout:
            self.training |= line.startswith("training")
            if line.startswith("{"):
                self.result = json.loads(line)


class Job:
    def __init__(self, lab: Lab, options: list[str], start_timeout: float) -> None:
        self.lab = lab
        self.stop_file = lab.folder / "stop"
        self._start_timeout = start_timeout
        self._token = lab.folder / "token"
        self._address = f"{lab.coordinator['address']}:{PORT}"
        self._log = (lab.folder / "log").open("w+")
        self.coordinator = self._start_coordinator()
        self._coordinator_killed = False
        self.summers = [Summer(self, f"summer{j}") for j in range(lab.setting.summers)]
        self.update()
        options = ["--stop", str(self.stop_file), *options]
        self.workers = [self._start_worker(i, options) for i in range(lab.setting.workers)]

    def update(self) -> None:
        """Updates all summers. The caller calls this several times a second."""
        for summer in self.summers:
            summer.update(time.monotonic())

    def kill_coordinator(self) -> None:
        self._coordinator_killed = True
        self.coordinator.kill()
        self.coordinator.wait()

    def log(self) -> str:
        """Returns the log of the coordinator and the summers."""
        self._log.flush()
        return Path(self._log.name).read_text()

    def log_since(self, place: int) -> tuple[str, int]:
        """Returns the complete lines of the log after `place`, and the place after them."""
        with open(self._log.name) as log:
            log.seek(place)
            text = log.read()
        whole = text[: text.rfind("\n") + 1]
        return whole, place + len(whole.encode())

    def wait_for_training(self) -> None:
        end = time.monotonic() + self._start_timeout
        while not all(worker.training for worker in self.workers):
            self.check()
            if time.monotonic() > end:
                raise ChaosError(f"{self.log()}\nworkers do not train after {self._start_timeout:g} s")
            self.update()
            time.sleep(0.05)

    def check(self) -> None:
        """Raises ChaosError if a worker, or a coordinator that was not killed, has ended."""
        ended = [i for i, worker in enumerate(self.workers) if worker.process.poll() is not None]
        if ended or (self.coordinator.poll() is not None and not self._coordinator_killed):
            names = [f"worker {i}" for i in ended] or ["the coordinator"]
            raise ChaosError(f"{self.log()}\n{', '.join(names)} ended before the end of the job")

    def finish(self, timeout: float) -> list[dict[str, Any]]:
        """Ends the job, whose workers all end after the same step. Returns the workers' results."""
        self.stop_file.touch()
        end = time.monotonic() + timeout
        while any(worker.process.poll() is None for worker in self.workers):
            if time.monotonic() > end:
                raise ChaosError(f"{self.log()}\nworkers did not end within {timeout:g} s")
            self.update()
            time.sleep(0.05)
        for worker in self.workers:
            worker.finish(10)
        results = [worker.result for worker in self.workers]
        bad = [f"worker {i}: {w.process.returncode}" for i, w in enumerate(self.workers) if w.process.returncode != 0]
        if bad or None in results:
            raise ChaosError(f"{self.log()}\nexit statuses {', '.join(bad)}")
        if not self._coordinator_killed and self.coordinator.wait(20) != 0:
            raise ChaosError(f"{self.log()}\nthe coordinator ended with {self.coordinator.returncode}")
        return results

    def close(self) -> None:
        for summer in self.summers:
            summer.kill()
        for process in (self.coordinator, *(worker.process for worker in getattr(self, "workers", []))):
            process.kill()
            process.wait()
        self._log.close()

    def start_summer(self, host: str) -> subprocess.Popen[str]:
        listen = f"{self.lab.address(host)}:{SUMMER_PORT}"
        command = [BUILD / "bin" / "gleaner-summer", "--coordinator", self._address, "--listen", listen]
        command += ["--token-file", self._token, "--log-level", "warning", "--start-timeout", self._start_timeout]
        command = [*self.lab.prefix(host), *map(str, command)]
        return subprocess.Popen(command, env=environment(), stdout=self._log, stderr=self._log, text=True)

    def _start_coordinator(self) -> subprocess.Popen[str]:
        setting = self.lab.setting
        command = [BUILD / "bin" / "gleaner", "coordinator", "--listen", self._address, "--token-file", self._token]
        command += ["--workers", setting.workers, "--summers", setting.summers]
        command += ["--start-timeout", self._start_timeout]
        if setting.rate != "none":
            command += ["--bandwidth", setting.rate]
        command = [*self.lab.starter(), *map(str, command)]
        process = subprocess.Popen(command, env=environment(), stdout=self._log, stderr=self._log, text=True)
        while not self._token.exists():
            if process.poll() is not None:
                raise ChaosError(f"{self.log()}\nthe coordinator ended")
            time.sleep(0.02)
        return process

    def _start_worker(self, index: int, options: list[str]) -> Worker:
        host = f"worker{index}"
        identity = {
            "GLEANER_COORDINATOR": self._address,
            "GLEANER_WORKER": str(index),
            "GLEANER_ADDRESS": f"{self.lab.address(host)}:0",
            "GLEANER_TOKEN_FILE": str(self._token),
            "GLEANER_OPEN_TIMEOUT": str(self._start_timeout),
        }
        command = [*self.lab.prefix(host), PYTHON, str(TRAIN), *options]
        return Worker(command, environment(**identity), self._log)
