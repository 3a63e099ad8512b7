"""A real cluster for the tests in this folder: one for all of them, taken down with them, however they end.

GLEANER_CLUSTER names a cluster that is up already (`cluster up`), and stays up.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
from digits import LONG, TRAIN, result
from lab.cluster import NAME, WORKPLACE, Cluster
from product import install, machines_rest, submit, wait_until

NODES = 6


def missing() -> str:
    """Why there can be no cluster here; empty if there can."""
    if os.geteuid() != 0:
        return "a cluster needs root"
    built = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "gleaner" / "e2e" / "bin" / "kubelet"
    if shutil.which("go") is None and not built.exists():
        return "Kubernetes is built from source, and there is no Go compiler; scripts/bootstrap e2e installs it"
    if not Path("/sys/fs/cgroup/cpu").is_dir():
        return "the cluster knows cgroup v1 only, and /sys/fs/cgroup/cpu is missing"
    return ""


def start_cluster(name: str, *flags: str) -> subprocess.Popen[str]:
    """Up on return, and down as soon as its standard input closes."""
    command = [str(Path(__file__).parent / "cluster"), "--name", name, "up", "--hold", *flags]
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True)
        if not process.stdout.readline():
            ended = process.wait()
            errors.seek(0)
            pytest.fail(f"`{' '.join(command)}` ended with {ended}: {errors.read()[-2000:]}", pytrace=False)
    return process


def stop_cluster(process: subprocess.Popen[str]) -> None:
    process.stdin.close()
    assert process.wait(timeout=60) == 0


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Six nodes, n1 to n6, of 8 CPUs and 16 GiB each as they claim."""
    given = os.environ.get(NAME)
    if given:
        yield Cluster(given)
        return
    why = missing()
    if why:
        pytest.skip(why)
    process = start_cluster("e2e", "--nodes", str(NODES))
    try:
        yield Cluster("e2e")
    finally:
        stop_cluster(process)


@pytest.fixture
def namespace(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace for one test; with its default service account, and gone afterwards."""
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name.lower())[:50].strip("-")
    cluster.kubectl("create", "namespace", name)
    cluster.kubectl("wait", "--for=create", "serviceaccount/default", "-n", name, "--timeout=20s")
    try:
        yield name
    finally:
        cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Keeps what the cluster knows when a test fails: it is gone when somebody comes to look."""
    outcome = yield
    report = outcome.get_result()
    used = item.funcargs.get("cluster") if hasattr(item, "funcargs") else None
    if report.when != "call" or not report.failed or used is None:
        return
    kept = WORKPLACE / "failed" / item.name
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    for what in ("events", "pods", "nodes"):
        text = used.run("kubectl", "get", what, "-A", "-o", "json", check=False).stdout
        (kept / f"{what}.json").write_text(text)
    for log in [*used.folder.glob("*.log"), *used.folder.glob("*/*.log"), *used.folder.glob("nodes/*/*.log")]:
        shutil.copyfile(log, kept / "-".join(log.relative_to(used.folder).parts))
    report.sections.append(("cluster", f"events, pods, nodes and logs are in {kept}"))


@pytest.fixture(scope="session")
def gleaner(cluster: Cluster) -> Cluster:
    """The cluster with Gleaner installed by its chart."""
    install(cluster)
    return cluster


@pytest.fixture(autouse=True)
def rest(request: pytest.FixtureRequest) -> None:
    """A test with Gleaner begins on six machines that all may have summers, whatever the one before did to them."""
    if "gleaner" in request.fixturenames:
        installed: Cluster = request.getfixturevalue("gleaner")
        wait_until("every machine is as it was at the start", lambda: machines_rest(installed), LONG)


@pytest.fixture(scope="session")
def reference(gleaner: Cluster) -> tuple[str, float]:
    """SHA-256 of the parameters that four ranks must come to, and the accuracy: computed in one process, in one pod."""
    job = submit(gleaner, "default", "reference", [*TRAIN, "--reference", "4"])
    job.wait_phase("Succeeded", seconds=LONG)
    found = result(job, "reference-worker-0")
    job.delete()
    return found
