"""Child processes that end with this process in every case, and waiting with a deadline."""

from __future__ import annotations

import json
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
    """An error that the user can fix. Its message says how."""


class Child:
    """A program whose output goes to a log. The kernel kills the program when the thread that started it ends."""

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
                start_new_session=True,  # keeps Ctrl-C from the child, so that this process can end it in order
            )

    def signal(self, number: signal.Signals) -> None:
        if not self.alive:
            raise LabError(f"{self.name} does not run")
        os.kill(self.pid, number)

    def kill(self) -> None:
        """Sends SIGKILL, and waits for the end. Does nothing if the program was not started."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self, timeout: float) -> None:
        """Sends SIGTERM, and SIGKILL if the program takes longer than `timeout` to end."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()

    def end(self) -> str:
        """Returns the last lines of the log, for an error message."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n".join(lines[-8:])

    def wait_until(self, ready: Callable[[], bool], timeout: float) -> None:
        """Waits until `ready` returns true. Raises LabError if the program ends first, or after `timeout` seconds."""
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


def devices() -> set[str]:
    """Returns the names of the network devices of this namespace. /sys may have those of another one."""
    return {device["ifname"] for device in json.loads(output_of("ip", "-json", "link", "show"))}


def require_commands(*names: str) -> None:
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    missing = [name for name in names if shutil.which(name, path=path) is None]
    if missing:
        raise LabError(f"these commands are missing: {', '.join(missing)}. scripts/bootstrap e2e installs them")


def binaries(*names: str) -> Path:
    """Returns the folder with the named programs. Builds the programs that do not exist yet."""
    done = subprocess.run([str(HERE / "binaries"), *names], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise LabError(f"tests/e2e/binaries {' '.join(names)} failed: see above")
    return Path(done.stdout.strip())


def free_ports(count: int, address: str = "127.0.0.1") -> list[int]:
    """Returns free TCP ports outside the ephemeral range, which therefore stay free while a program restarts."""
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
