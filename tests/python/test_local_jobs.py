"""Tests how `gleaner status` and `gleaner trace` find local jobs: without gleaner-cluster, without a cluster, and in
spite of what the environment says."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from conftest import GLEANER, LIBRARY, TIMEOUT, environment, require_build

KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: closed
clusters: [{name: closed, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: closed, context: {cluster: closed, user: me}}]
users: [{name: me, user: {token: secret}}]
"""
HEAD = "PID JOB WORKERS SUMMERS STEP STEPS/S GOODPUT EFFICIENCY WAIT/STEP STARTED COMMAND".split()


@contextmanager
def ending(started: subprocess.Popen) -> Iterator[subprocess.Popen]:
    """Ends a `gleaner run` with the block."""
    try:
        yield started
    finally:
        for _ in range(2):  # the second signal kills the job's processes
            started.terminate()
        started.communicate(timeout=TIMEOUT)


class Machine:
    """A machine with gleaner, a folder for local jobs, and a kubeconfig or none."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program = GLEANER
        self.variables = {"XDG_RUNTIME_DIR": str(folder), "KUBECONFIG": str(folder / "kubeconfig")}

    def remove_cluster_program(self) -> None:
        self.program = Path(shutil.copy(GLEANER, self.folder / "gleaner-alone"))

    def add_kubeconfig(self) -> None:
        (self.folder / "kubeconfig").write_text(KUBECONFIG)

    def add_job(self, folder: str = "gleaner") -> None:
        """Writes the file of a job whose `gleaner run` is this process."""
        start = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        job = {
            "version": 1,
            "pid": os.getpid(),
            "process_start": start,
            "pid_namespace": os.readlink("/proc/self/ns/pid"),
            "job": "at-home",
            "coordinator": "127.0.0.1:1",
            "token_file": str(self.folder / "no-token"),
            "workers": 2,
            "summers": 1,
            "start": "2026-11-27T13:00:00+00:00",
            "command": ["python3", "train.py"],
        }
        (self.folder / folder).mkdir(mode=0o700)
        (self.folder / folder / f"{os.getpid()}.json").write_text(json.dumps(job))

    def gleaner(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.program, *words],
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            env=environment(**{**self.variables, **variables}, LD_LIBRARY_PATH=str(LIBRARY.parent)),
        )


@pytest.fixture()
def machine(tmp_path: Path) -> Machine:
    require_build()
    return Machine(tmp_path)


def is_listed(output: str) -> bool:
    return re.search(rf"^ *{os.getpid()} +at-home ", output, re.MULTILINE) is not None


def names(listed: str) -> list[str]:
    """Returns the names of the local jobs in the output of `status -o json`."""
    return [job["job"] for job in json.loads(listed)["localJobs"] if job["pid"] == os.getpid()]


def test_status_needs_no_cluster_program(machine: Machine) -> None:
    machine.remove_cluster_program()
    machine.add_job()
    text = machine.gleaner("status")
    assert text.returncode == 0 and is_listed(text.stdout), text.stderr
    assert f"no figures of the job of process {os.getpid()}: can't read the token file" in text.stderr
    listed = machine.gleaner("status", "-o", "json")
    assert names(listed.stdout) == ["at-home"] and json.loads(listed.stdout)["items"] == []


def test_status_warns_if_the_cluster_program_is_missing(machine: Machine) -> None:
    machine.remove_cluster_program()
    machine.add_kubeconfig()
    machine.add_job()
    for words in ([], ["-o", "json"]):
        done = machine.gleaner("status", *words)
        assert done.returncode == 0 and "gleaner-cluster" in done.stderr, done.stderr
        assert "items" not in json.loads(done.stdout) if words else is_listed(done.stdout)
    for words in (["a-job"], ["-A"], ["-n", "default"], ["-o", "name"], ["--context", "closed"]):
        done = machine.gleaner("status", *words)
        assert done.returncode == 1 and done.stdout == "" and "gleaner-cluster" in done.stderr, words


def test_status_warns_of_an_unreachable_cluster(machine: Machine) -> None:
    machine.add_kubeconfig()
    machine.add_job()
    text = machine.gleaner("status")
    assert text.returncode == 0 and is_listed(text.stdout) and "can't read trainingjobs" in text.stderr, text.stderr
    listed = machine.gleaner("status", "-o", "json")
    assert listed.returncode == 0 and "can't read trainingjobs" in listed.stderr, listed.stderr
    assert names(listed.stdout) == ["at-home"] and "items" not in json.loads(listed.stdout)
    asked = machine.gleaner("status", "-A", "-o", "json")
    assert asked.returncode == 1 and asked.stdout == "", asked.stderr


def test_status_has_live_figures(machine: Machine) -> None:
    bench = [str(GLEANER), "bench", "push-pull", "--bytes", "1MiB", "--steps", "1000000"]
    run = [str(GLEANER), "run", "--workers", "2", "--summers", "1", "--job", "busy", "--no-progress", "--", *bench]
    job = subprocess.Popen(
        run,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment(**machine.variables, LD_LIBRARY_PATH=str(LIBRARY.parent)),
    )
    with ending(job) as started:
        summary: dict[str, Any] = {}
        deadline = time.monotonic() + TIMEOUT
        while summary.get("last_minute", {}).get("steps_per_second", 0) == 0 and time.monotonic() < deadline:
            listed = machine.gleaner("status", "--pid", str(started.pid), "-o", "json")
            jobs = json.loads(listed.stdout)["localJobs"] if listed.returncode == 0 else []
            summary = jobs[0].get("summary", {}) if jobs else {}
            time.sleep(0.2)
        assert summary["workers"] == 2 and summary["summers"] == 1 and summary["steps"] > 0
        head, row = machine.gleaner("status", "--job", "busy").stdout.splitlines()[1:]
        assert head.split() == HEAD
        figures = row.split()
        assert figures[:4] == [str(started.pid), "busy", "2", "1"] and int(figures[4]) >= summary["steps"]
        assert float(figures[5]) > 0 and figures[7].endswith("/s"), row
        unknown = machine.gleaner("status", "--pid", "1")
        assert unknown.returncode == 1 and "no such job" in unknown.stderr
        assert machine.gleaner("status", "--pid", str(started.pid), "-A").returncode == 2


def test_status_names_commands_as_it_was_called(machine: Machine) -> None:
    machine.add_kubeconfig()
    machine.add_job()
    for program, name in ((GLEANER, "gleaner"), (GLEANER.with_name("kubectl-gleaner"), "kubectl gleaner")):
        machine.program = program
        done = machine.gleaner("status")
        assert done.stderr.startswith(f"{name} status: warning: "), done.stderr
        assert done.stdout.startswith(f"On this machine ({name} trace "), done.stdout


def test_relative_cluster_program_is_not_run(machine: Machine) -> None:
    decoy = machine.folder / "gleaner-cluster"
    decoy.write_text("#!/bin/sh\necho decoy\n")
    decoy.chmod(0o755)
    without_proc = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"]
    if subprocess.run([*without_proc, "true"], capture_output=True).returncode != 0:
        pytest.skip("needs user namespaces")
    done = subprocess.run(
        [*without_proc, str(GLEANER), "top"],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        cwd=machine.folder,
        env=environment(LD_LIBRARY_PATH=str(LIBRARY.parent)),
    )
    assert done.returncode == 1 and done.stdout == "" and "/proc/self/exe" in done.stderr, done


@pytest.mark.parametrize("shell", [{}, {"XDG_RUNTIME_DIR": ""}, {"XDG_RUNTIME_DIR": "/nonexistent"}])
def test_jobs_are_found_from_shells_with_other_runtime_folders(machine: Machine, shell: dict[str, str]) -> None:
    run = [GLEANER, "run", "--workers", "1", "--job", "elsewhere", "--", "sleep", str(TIMEOUT)]
    variables = environment(XDG_RUNTIME_DIR="")
    with ending(subprocess.Popen(run, stderr=subprocess.PIPE, text=True, env=variables)) as started:
        assert f"--pid {started.pid}" in started.stderr.readline()
        assert re.search(rf"^ *{started.pid} +elsewhere ", machine.gleaner("status", **shell).stdout, re.MULTILINE)


def test_trace_of_a_process_ignores_the_environment(machine: Machine) -> None:
    machine.add_job()
    pid = str(os.getpid())
    exported = {"GLEANER_COORDINATOR": "127.0.0.1:2", "GLEANER_TOKEN_FILE": "/there", "GLEANER_JOB": "other"}
    for variables in ({}, exported, {"GLEANER_TOKEN_FILE": "/there"}, {"GLEANER_CA_FILE": "/there"}):
        done = machine.gleaner("trace", "--pid", pid, **variables)
        assert "no-token" in done.stderr, done.stderr  # it has chosen the job, whose token can't be read
    both = machine.gleaner("trace", "--pid", pid, "--coordinator", "127.0.0.1:2", "--token-file", "/there")
    assert both.returncode == 2 and "give either --pid or --coordinator" in both.stderr, both.stderr
    other = machine.gleaner("trace", "--pid", pid, "--job", "other", **exported)
    assert other.returncode == 1 and "no such job" in other.stderr, other.stderr


@pytest.mark.parametrize(
    ("words", "variables", "message"),
    [
        (["--token-file", "t"], {}, "--token-file needs --coordinator"),
        (["--ca-file", "c"], {}, "--ca-file needs --coordinator"),
        (["--coordinator", "127.0.0.1:2"], {}, "--coordinator needs --token-file"),
        ([], {"GLEANER_TOKEN_FILE": "t"}, "GLEANER_TOKEN_FILE needs --coordinator"),
        ([], {"GLEANER_CA_FILE": "c"}, "GLEANER_CA_FILE needs --coordinator"),
        ([], {"GLEANER_COORDINATOR": "127.0.0.1:2"}, "GLEANER_COORDINATOR needs --token-file"),
        (["--pid", "1", "--ca-file", "c"], {"GLEANER_COORDINATOR": "127.0.0.1:2"}, "--ca-file needs --coordinator"),
    ],
)
def test_trace_names_what_lacks_its_partner(
    machine: Machine, words: list[str], variables: dict[str, str], message: str
) -> None:
    done = machine.gleaner("trace", *words, **variables)
    assert done.returncode == 2 and f": {message}" in done.stderr, done.stderr
