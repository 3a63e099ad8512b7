"""The stages of scripts/test: what each runs, and how long it usually takes on 2 cores.

The check (`make test`) is the first stages. It needs no root, cluster, virtual machine or second compilation.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Optional

from testing import commands
from testing.commands import LOGS, ROOT
from testing.results import Case, Verdict
from testing.suites import PROCESSORS, command, counted_output, ctest, pytest, skipped


@dataclass(frozen=True)
class Stage:
    name: str
    summary: str
    usual: str  # duration on 2 cores, once packages and compiled objects are there
    packages: str  # the set of scripts/bootstrap that the stage needs
    run: Callable[[], list[Case]]
    in_check: bool = False


_built: dict[str, list[Case]] = {}


def build(preset: str, *targets: str) -> list[Case]:
    """Builds a preset once in this run. Returns the results; the last one is not PASSED if there is nothing to test."""
    if preset not in _built:
        _built[preset] = [command(f"configure {preset}", "cmake", "--preset", preset, "-DGLEANER_TESTS=ON")]
        if _built[preset][-1].verdict is Verdict.PASSED:
            ninja = ("ninja", "-C", f"build/{preset}", "-j", str(PROCESSORS), *targets)
            _built[preset].append(command(f"build {preset}", *ninja))
        return _built[preset]
    # A later stage counts only a failed build, not a build that another stage has counted.
    return [case for case in _built[preset] if case.verdict is not Verdict.PASSED]


def after_build(preset: str, run: Callable[[], list[Case]], *targets: str) -> list[Case]:
    built = build(preset, *targets)
    if any(case.verdict is not Verdict.PASSED for case in built):
        return built
    return built + run()


def after(first: Case, run: Callable[[], list[Case]]) -> list[Case]:
    return [first] if first.verdict is not Verdict.PASSED else [first, *run()]


def format_() -> list[Case]:
    return [command("format", "scripts/format", "--check")]


def release() -> list[Case]:
    return after_build("release", lambda: ctest("release", "release", "-LE", "long"))


def build_helm() -> None:
    """Builds helm for the tests of the chart, if there is Go. Without helm these tests skip themselves."""
    if not shutil.which("helm") and shutil.which("go"):
        log = LOGS / "helm.log"
        if commands.run(log, ("tests/e2e/binaries", "helm")) != 0:
            print(f"  helm could not be built (all of the output: {log.relative_to(ROOT)})")


def python() -> list[Case]:
    build_helm()
    run = lambda: pytest("python", ["tests/python", "tests/outside", "tests/charts"], "not long", parallel=True)  # noqa: E731
    return after_build("release", run)


def simulation() -> list[Case]:
    return after_build("release", lambda: ctest("simulation", "release", "-L", "^long$", "-LE", "kube|rdma"))


def python_long() -> list[Case]:
    run = lambda: pytest("python-long", ["tests/python", "tests/outside"], "long")  # noqa: E731
    return with_kubernetes("python-long", lambda: after_build("release", run))


def kubernetes_missing() -> Optional[str]:
    """Returns the reason why this machine cannot build or run an API server, or None if it can."""
    if os.geteuid() != 0:
        return "an API server and its packages need root here"
    if not shutil.which("go") and not shutil.which("apt-get"):
        return "there is no Go compiler to build Kubernetes with"
    return None


def with_kubernetes(name: str, run: Callable[[], list[Case]]) -> list[Case]:
    """Provides Kubernetes for tests that use it. Without it these tests skip themselves, with the reason."""
    why = kubernetes_missing()
    if why is not None:
        print(f"  without Kubernetes: {why}")
        return run()
    first = command(f"{name} packages", "scripts/bootstrap", "e2e")
    return after(first, lambda: after(command("Kubernetes binaries", "tests/e2e/binaries", "kube", "helm"), run))


def charts() -> list[Case]:
    def run() -> list[Case]:
        return ctest("charts-ctest", "release", "-L", "kube") + pytest("charts", ["tests/charts"], "long")

    return with_kubernetes("charts", lambda: after_build("release", run))


def chaos() -> list[Case]:
    # Tests that need root, network namespaces or virtual machines skip themselves where these are missing.
    return after_build("release", lambda: pytest("chaos", ["tests/vm", "tests/chaos"]))


def rdma() -> list[Case]:
    if not shutil.which("qemu-system-x86_64"):
        return skipped("rdma", "there is no qemu-system-x86_64; scripts/bootstrap vm installs it")
    if not list((ROOT / "build" / "vm" / "kernel" / "boot").glob("vmlinuz-*")):
        return skipped("rdma", "there is no kernel in build/vm; scripts/bootstrap vm gets one")
    return after_build("release", lambda: counted_output("rdma", "tests/rdma-lab/check", "--long"))


def lab_missing() -> Optional[str]:
    """Returns the reason why this machine cannot run a lab (tests/lab), or None if it can."""
    if os.geteuid() != 0:
        return "it needs root"
    if not shutil.which("ip") or not shutil.which("iperf3"):
        return "it needs ip and iperf3; scripts/bootstrap test installs them"
    probe = f"glabprobe{os.getpid()}"
    if subprocess.run(["ip", "netns", "add", probe], capture_output=True).returncode != 0:
        return "no network namespaces can be made here"
    subprocess.run(["ip", "netns", "del", probe], check=True)
    return None


def bench() -> list[Case]:
    why = lab_missing()
    if why is not None:
        return skipped("bench", why)
    return after_build("release", lambda: counted_output("bench", "bench/guard"))


def e2e() -> list[Case]:
    why = kubernetes_missing()
    if why is None and not Path("/sys/fs/cgroup/cpu").is_dir():
        why = "a cluster needs cgroup v1 (/sys/fs/cgroup/cpu)"
    if why is not None:
        return skipped("e2e", why)

    def run() -> list[Case]:
        return after(command("images", "images/build"), lambda: pytest("e2e", ["tests/e2e"]))

    return with_kubernetes("e2e", lambda: after_build("release", run))


def asan() -> list[Case]:
    return after_build("asan", lambda: ctest("asan", "asan", "-LE", "kube|rdma"))


def tsan() -> list[Case]:
    return after_build("tsan", lambda: ctest("tsan", "tsan", "-L", "threads"), "threaded_tests")


def tidy() -> list[Case]:
    # The asan build knows which headers each source includes.
    return after_build("asan", lambda: [command("tidy", "scripts/tidy")])


def ccache() -> list[Case]:
    return [command("ccache", "tests/install/ccache_hits")]


def install() -> list[Case]:
    if os.geteuid() != 0:
        return skipped("install", "a chroot needs root")
    return after(
        command("install debootstrap", "scripts/bootstrap", "e2e"),
        lambda: [command("fresh machine", "tests/install/fresh_machine")],
    )


STAGES = [
    Stage("format", "clang-format, ruff, shellcheck", "5 s", "check", format_, in_check=True),
    Stage("release", "gcc build, every ctest but those labelled long", "3 min", "check", release, in_check=True),
    Stage("python", "pytest over tests in Python and of the chart, but those marked long", "3 min", "check", python,
          in_check=True),
    Stage("simulation", "ctests labelled long, among them simulations of 20,000 seeds", "2 min", "check", simulation),
    Stage("python-long", "pytest over tests in Python, those marked long", "4 min", "test", python_long),
    Stage("charts", "chart, agent and operator against a real API server", "3 min", "test", charts),
    Stage("chaos", "training through faults, on this machine and in virtual machines", "5 min", "vm", chaos),
    Stage("rdma", "conformance, faults and a job over RDMA, in a virtual machine", "4 min", "vm", rdma),
    Stage("bench", "ratios of speed, beside a record of this processor or the parent commit", "2 min", "test", bench),
    Stage("e2e", "container images, and pytest over tests/e2e in a Kubernetes cluster", "25 min", "test", e2e),
    Stage("asan", "every ctest with ASan and UBSan, each fuzzer for 20 seconds", "9 min", "test", asan),
    Stage("tsan", "the ctests labelled threads with TSan", "5 min", "test", tsan),
    Stage("tidy", "clang-tidy of the sources that changed since they were clean", "4 min", "test", tidy),
    Stage("ccache", "a clone at another path compiles from ccache", "2 min", "test", ccache),
    Stage("install", "make demo on a bare Debian 12, twice", "10 min", "test", install),
]  # fmt: skip
