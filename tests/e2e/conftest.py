"""Fixtures of the e2e tests. One real cluster serves all tests of a session, and goes down with the session.

If GLEANER_CLUSTER names a running cluster (`cluster up`), the tests use that cluster and leave it up.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
from digits import EPOCHS, LONG, TRAIN_WITH_DIGESTS, Digests, digests
from lab.cluster import NAME, WORKPLACE, Cluster
from product import install, machines_rest, submit, wait_until

NODES = 6
QUICK = {"autoscaler.growPauseSeconds": "2", "autoscaler.returnPauseSeconds": "5"}
REFERENCE_EPOCHS = 3 * EPOCHS  # endless trainings are compared with the last epoch that both have


def missing() -> str:
    """Returns the reason why this machine cannot run a cluster, or an empty string if it can."""
    if os.geteuid() != 0:
        return "a cluster needs root"
    built = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "gleaner" / "e2e" / "bin" / "kubelet"
    if shutil.which("go") is None and not built.exists():
        return "Kubernetes is built from source, and there is no Go compiler; scripts/bootstrap e2e installs it"
    if not Path("/sys/fs/cgroup/cpu").is_dir():
        return "the cluster knows cgroup v1 only, and /sys/fs/cgroup/cpu is missing"
    return ""


def start_cluster(name: str, *flags: str) -> subprocess.Popen[str]:
    """Starts a cluster and waits until it is up. The cluster goes down when its standard input closes."""
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
    assert process.wait(timeout=240) == 0


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A cluster of six nodes, n1 to n6, which claim to have 8 CPUs and 16 GiB each."""
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


@contextlib.contextmanager
def temporary_namespace(cluster: Cluster, name: str) -> Iterator[str]:
    """Creates a namespace with its default service account, and deletes it at the end of the with-statement."""
    cluster.kubectl("create", "namespace", name)
    try:
        cluster.kubectl("wait", "--for=create", "serviceaccount/default", "-n", name, "--timeout=80s")
        yield name
    finally:
        cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def namespace(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace for one test."""
    words = "".join(letter if letter.isalnum() else "-" for letter in request.node.name.lower())
    with temporary_namespace(cluster, f"{words[:50].strip('-')}-{zlib.crc32(words.encode()):08x}") as name:
        yield name


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Saves events, objects and logs of the cluster when a test fails, since the cluster ends with the session."""
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
    """Waits, before each test with Gleaner, until all machines may have summers again after the last test."""
    if "gleaner" in request.fixturenames:
        installed: Cluster = request.getfixturevalue("gleaner")
        wait_until("every machine is as it was at the start", lambda: machines_rest(installed), LONG)


@pytest.fixture(scope="module")
def quick(gleaner: Cluster) -> Iterator[Cluster]:
    """The cluster with an autoscaler whose pauses are shorter than a real cluster would have."""
    install(gleaner, QUICK)
    yield gleaner
    install(gleaner)


@pytest.fixture(scope="session")
def reference_digests(gleaner: Cluster) -> Digests:
    """The digests that four ranks must reach, computed by one process in a pod."""
    job = submit(gleaner, "default", "reference", [*TRAIN_WITH_DIGESTS, str(REFERENCE_EPOCHS), "--reference", "4"])
    job.wait_phase("Succeeded", seconds=LONG)
    found = digests(job, "reference-worker-0")
    job.delete()
    return found


@pytest.fixture(scope="session")
def reference(reference_digests: Digests) -> tuple[str, float]:
    """The result that digits.yaml must have."""
    return reference_digests[EPOCHS]
