"""Child processes that end with us, however we end, and waiting with a deadline."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Callable, Optional

HERE = Path(__file__).resolve().parents[1]


class LabError(Exception):
    """Something that the user should read and mend."""


class Child:
    """One program with its output in a log. The kernel kills it when the thread that started it is gone."""

    def __init__(
        self, name: str, command: list[str], log: Path, environment: Optional[Mapping[str, str]] = None
    ) -> None:
        self.name = name
        self.log = log
        self._command = command
        self._environment = environment
        self._process: Optional[subprocess.Popen[bytes]] = None

    @property
    def pid(self) -> int:
        if self._process is None:
            raise LabError(f"{self.name} was not started")
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        if self.alive:
            raise LabError(f"{self.name} runs already, as process {self.pid}")
        environment = None if self._environment is None else {**os.environ, **self._environment}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", *self._command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,  # a Ctrl-C is ours to handle
            )

    def signal(self, number: signal.Signals) -> None:
        if not self.alive:
            raise LabError(f"{self.name} does not run")
        os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL, and gone on return. Nothing if it did not run."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self, timeout: float) -> None:
        """SIGTERM, and SIGKILL for one that takes longer."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()

    def end(self) -> str:
        """The last lines of its log, for a message."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n".join(lines[-8:])

    def wait_until(self, ready: Callable[[], bool], timeout: float) -> None:
        """LabError if it ends before, or does not get there in time."""
        deadline = time.monotonic() + timeout
        while not ready():
            if not self.alive:
                raise LabError(f"{self.name} ended before it was ready; its log {self.log} ends with\n{self.end()}")
            if time.monotonic() > deadline:
                raise LabError(f"{self.name} was not ready in {timeout} s; its log {self.log} ends with\n{self.end()}")
            time.sleep(0.03)


def wait_until(condition: Callable[[], bool], what: str, timeout: float, pause: float = 0.05) -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise LabError(f"waited {timeout} s in vain for {what}")
        time.sleep(pause)


def output_of(*command: str, text: Optional[str] = None) -> str:
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode != 0:
        raise LabError(f"`{' '.join(command)}` failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def require_commands(*names: str) -> None:
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    missing = [name for name in names if shutil.which(name, path=path) is None]
    if missing:
        raise LabError(f"these commands are missing: {', '.join(missing)}. scripts/bootstrap e2e installs them")


def binaries(*names: str) -> Path:
    """The folder with the Kubernetes programs, built if they are not there yet."""
    done = subprocess.run([str(HERE / "binaries"), *names], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise LabError(f"tests/e2e/binaries {' '.join(names)} failed: see above")
    return Path(done.stdout.strip())


def free_ports(count: int, address: str = "127.0.0.1") -> list[int]:
    """TCP ports that nobody listens on. None of the ephemeral ones: they stay free while a program is restarted."""
    found: list[int] = []
    for port in random.sample(range(20000, 32000), 2000):
        with socket.socket() as probe:
            try:
                probe.bind((address, port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise LabError(f"expected {count} free ports among 20000-32000 on {address}")
