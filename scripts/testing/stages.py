"""The stages of the tests: the steps of each, and how long it usually takes on 2 cores.

The check (`make test`) is the first stages. It needs no root, cluster, virtual machine or second compilation.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

PROCESSORS = len(os.sched_getaffinity(0))


@dataclass(frozen=True)
class Stage:
    """A stage runs its steps in this order, and ends when one that is no suite of tests fails.

    A step is `ctest PRESET FLAG...`, `pytest FLAG...`, or a command of the shell, which counts as one test or, if it
    ends with the line "N passed, M failed", as that many. A command that another stage has run does not run again.
    """

    name: str
    summary: str
    usual: str  # duration on 2 cores, once packages and compiled objects are there
    packages: str  # the set of scripts/bootstrap that the stage needs
    steps: Mapping[str, str]  # by the name of its log in build/test-logs
    requires: tuple[tuple[str, str], ...] = ()  # conditions of the shell, and why the stage is skipped without them
    in_check: bool = False


def _build(preset: str, *targets: str) -> dict[str, str]:
    return {
        f"configure-{preset}": f"cmake --preset {preset} -DGLEANER_TESTS=ON",
        f"build-{preset}": " ".join(["ninja", "-C", f"build/{preset}", "-j", str(PROCESSORS), *targets]),
    }


ROOT_USER = ("((EUID == 0))", "it needs root")
GO = ("type go || type apt-get", "there is no Go compiler to build Kubernetes with")
CGROUPS = ("test -d /sys/fs/cgroup/cpu", "a cluster needs cgroup v1 (/sys/fs/cgroup/cpu)")
QEMU = ("type qemu-system-x86_64", "there is no qemu-system-x86_64; scripts/bootstrap vm installs it")
KERNEL = ("ls build/vm/kernel/boot/vmlinuz-*", "there is no kernel in build/vm; scripts/bootstrap vm gets one")
LAB_PROGRAMS = ("type ip && type iperf3", "it needs ip and iperf3; scripts/bootstrap test installs them")
NAMESPACES = ("ip netns add glab$$ && ip netns del glab$$", "no network namespaces can be made here")

RELEASE = _build("release")
# Tests that use helm or Kubernetes skip themselves, with the reason, where these are missing.
HELM = {"helm": "type helm || ! type go || tests/e2e/binaries helm || true"}
KUBERNETES = {
    "kubernetes": f"if {ROOT_USER[0]} && {{ {GO[0]}; }}; then scripts/bootstrap e2e && tests/e2e/binaries kube helm; fi"
}
PARALLEL = f"-n {PROCESSORS} --dist loadfile"

STAGES = [
    Stage("format", "clang-format, ruff, shellcheck", "5 s", "check", {"format": "scripts/format --check"},
          in_check=True),
    Stage("release", "gcc build, every ctest but those labelled long", "3 min", "check",
          {**RELEASE, "release": "ctest release -LE long"}, in_check=True),
    Stage("python", "pytest over tests in Python and of the chart, but those marked long", "3 min", "check",
          {**HELM, **RELEASE, "python": f"pytest tests/python tests/outside tests/charts -m 'not long' {PARALLEL}"},
          in_check=True),
    Stage("simulation", "ctests labelled long, among them simulations of 20,000 seeds", "2 min", "check",
          {**RELEASE, "simulation": "ctest release -L ^long$ -LE 'kube|rdma'"}),
    Stage("python-long", "pytest over tests in Python, those marked long", "4 min", "test",
          {**KUBERNETES, **RELEASE, "python-long": "pytest tests/python tests/outside -m long"}),
    Stage("frameworks", "pytest with PyTorch, JAX and TensorFlow from PyPI, 8 GB", "10 min", "test",
          {**RELEASE, "current-torch": "tests/python/current_torch.sh",
           "current-frameworks": "tests/python/current_frameworks.sh"}),
    Stage("charts", "chart, agent and operator against a real API server", "3 min", "test",
          {**KUBERNETES, **RELEASE, "charts-ctest": "ctest release -L kube", "charts": "pytest tests/charts -m long"}),
    Stage("chaos", "training through faults, on this machine and in virtual machines", "5 min", "vm",
          {**RELEASE, "chaos": "pytest tests/vm tests/chaos"}),
    Stage("rdma", "conformance, faults and a job over RDMA, in a virtual machine", "4 min", "vm",
          {**RELEASE, "rdma": "tests/rdma-lab/check --long"}, (QEMU, KERNEL)),
    Stage("bench", "ratios of speed, beside a record of this processor or the parent commit", "2 min", "test",
          {**RELEASE, "bench": "bench/guard"}, (ROOT_USER, LAB_PROGRAMS, NAMESPACES)),
    Stage("e2e", "container images, and pytest over tests/e2e in a Kubernetes cluster", "25 min", "test",
          {**KUBERNETES, **RELEASE, "images": "images/build", "e2e": "pytest tests/e2e"}, (ROOT_USER, GO, CGROUPS)),
    Stage("asan", "every ctest with ASan and UBSan, each fuzzer for 20 seconds", "9 min", "test",
          {**_build("asan"), "asan": "ctest asan -LE 'kube|rdma'"}),
    Stage("tsan", "the ctests labelled threads with TSan", "5 min", "test",
          {**_build("tsan", "threaded_tests"), "tsan": "ctest tsan -L threads"}),
    # The asan build knows which headers each source includes.
    Stage("tidy", "clang-tidy of the sources that changed since they were clean", "4 min", "test",
          {**_build("asan"), "tidy": "scripts/tidy"}),
    Stage("ccache", "a clone at another path compiles from ccache", "2 min", "test",
          {"ccache": "tests/install/ccache_hits"}),
    Stage("wheel", "the Python wheel on a bare Debian without compilers", "4 min", "test",
          {"debootstrap": "scripts/bootstrap e2e", "wheel": "tests/install/wheel"}, (ROOT_USER,)),
    Stage("install", "make demo on a bare Debian 12, twice", "10 min", "test",
          {"debootstrap": "scripts/bootstrap e2e", "fresh-machine": "tests/install/fresh_machine"}, (ROOT_USER,)),
]  # fmt: skip

# The long stages that a change needs: those of the longest path here that is the changed file or a folder above it.
_ROWS = [
    ("operator agent scheduler-ext charts crds common/kube common/api common/placement cli/cluster tests/charts "
     "tests/unit/kube tests/unit/agent tests/unit/operation", "charts e2e"),
    ("images tests/e2e", "e2e"),
    ("common/http", "asan tsan charts e2e"),
    ("examples", "python-long e2e"),
    ("tests/e2e/lab tests/e2e/kubernetes", "python-long charts e2e"),
    ("summation-service/engine comm-lib/session comm-lib/supervision common/plan common/wire tests/protocol_sim",
     "simulation asan tsan"),
    ("comm-lib/executor comm-lib/exchange common/collective common/strategy", "simulation asan tsan python-long"),
    ("comm-lib/network", "simulation asan tsan chaos"),
    ("coordinator common/control common/member common/proto", "simulation asan tsan python-long"),
    ("summation-service/service comm-lib/runtime comm-lib/pipeline comm-lib/local comm-lib/include common/base "
     "common/trace tests/abi", "asan tsan chaos"),
    ("common/transport tests/conformance", "asan tsan rdma chaos"),
    ("common/transport/rdma tests/rdma-lab tests/unit/rdma", "asan rdma"),
    ("comm-lib/device tests/unit/device tests/doubles", "asan tsan"),
    ("common/kernels common/scavenger common/metrics common/flags common/netsim tests/unit tests/fuzz", "asan"),
    ("comm-lib/python tests/python tests/outside", "python-long"),
    ("cli tests/unit/run", "python-long asan"),
    ("tests/chaos tests/vm tests/lab", "chaos"),
    ("bench scripts/bench", "bench"),
    ("tests/install scripts/bootstrap scripts/build scripts/demo", "install"),
    ("tests/install/ccache_hits", "ccache"),
    ("tests/install/chroot", "install wheel"),
    ("tests/install/wheel scripts/wheel pyproject.toml cmake/GleanerWheel.cmake comm-lib/python/backend "
     "comm-lib/python/CMakeLists.txt", "wheel"),
    ("comm-lib/python/gleaner/_programs.py", "python-long wheel"),
    ("comm-lib/python/gleaner/jax comm-lib/python/gleaner/tensorflow comm-lib/python/gleaner/bundles.py "
     "tests/python/test_jax.py tests/python/test_tensorflow.py tests/python/current_frameworks.sh "
     "tests/python/current_torch.sh", "frameworks"),
    ("CMakeLists.txt CMakePresets.json cmake", "asan tsan ccache install"),
    (".clang-tidy scripts/tidy", "tidy"),
    ("docs README.md ARCHITECTURE.md CONTRIBUTING.md LICENSE Makefile .ci .clang-format .gitignore scripts tests "
     "comm-lib common summation-service pytest.ini ruff.toml", ""),
]  # fmt: skip
LONG_STAGES = {path: stages.split() for paths, stages in _ROWS for path in paths.split()}
