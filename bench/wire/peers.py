"""Measures peers on a part's workers: the algorithms of Gloo (including PyTorch's) and of Open MPI, and bare TCP."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from wire import ranks
from wire.lab import ROOT, Part
from wire.steps import Steps
from wire.stolen import undisturbed

SOURCE = ROOT / "bench" / "peers"
PROGRAMS = ROOT / "build" / "bench-peers"
GLOO = ["ring", "ring_chunked", "halving_doubling", "bcube", "torch"]
# Values of coll_tuned_allreduce_algorithm. With 0, Open MPI chooses the algorithm by the size.
MPI = {"default": 0, "recursive_doubling": 3, "ring": 4, "segmented_ring": 5, "rabenseifner": 6}
# mpirun calls this script in place of ssh, with the arguments HOST COMMAND... The file GLEANER_LAB_PREFIXES has, for
# each host, the prefix that runs a command there. Each daemon gets a folder for its files, because daemons that shared
# a folder hung at the start in 7 of 95 runs.
AGENT = """#!/bin/sh
host=$1; shift
export OMPI_MCA_orte_tmpdir_base="$(dirname "$GLEANER_LAB_PREFIXES")/$host"
mkdir -p "$OMPI_MCA_orte_tmpdir_base"
exec $(sed -n "s/^$host //p" "$GLEANER_LAB_PREFIXES") sh -c "$*"
"""
TIMEOUT = 300.0  # seconds after which a single run counts as hanging


def build(with_mpi: bool = True) -> None:
    configure = ["cmake", "-S", SOURCE, "-B", PROGRAMS, "-G", "Ninja", f"-DGLEANER_PEERS_MPI={with_mpi}"]
    for command in (configure, ["ninja", "-C", PROGRAMS]):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(
                f"the peers can't be built ({SOURCE}); `scripts/bootstrap bench` installs what they need: "
                f"{done.stdout[-1500:]}{done.stderr[-1500:]}"
            )


def sizes(tensors: list[int], folder: Path) -> list[str]:
    path = folder / "bytes"
    path.write_text("\n".join(map(str, tensors)))
    return ["--bytes-file", str(path)]


@undisturbed
def gloo(part: Part, algorithm: str, tensors: list[int], steps: int, warmup: int) -> Steps:
    with tempfile.TemporaryDirectory(prefix="gleaner-gloo-") as folder:
        (Path(folder) / "store").mkdir()
        flags = ["--size", str(part.n), "--store", str(Path(folder) / "store"), "--algorithm", algorithm]
        flags += [*sizes(tensors, Path(folder)), "--steps", str(steps), "--warmup", str(warmup)]
        program = str(PROGRAMS / "gloo_allreduce")
        commands = [
            [*part.lab.prefix(host), program, "--rank", str(i), "--address", part.lab.address(host), *flags]
            for i, host in enumerate(part.workers)
        ]
        return ranks.steps_of(ranks.together(commands, TIMEOUT), part.n)


def mpi_hosts(part: Part, folder: Path) -> dict[str, str]:
    """Writes the files that tell mpirun where to start ranks. Returns the settings by which they connect, over TCP."""
    if part.lab.setting.loopback:
        (folder / "hosts").write_text(f"localhost slots={part.n}\n")
        return {"btl_tcp_if_include": "lo"}
    addresses = [part.lab.address(host) for host in part.workers]
    subnet = addresses[0].rsplit(".", 1)[0] + ".0/24"
    prefixes = [" ".join(part.lab.prefix(host)) for host in part.workers]
    (folder / "prefixes").write_text("".join(f"{a} {p}\n" for a, p in zip(addresses, prefixes)))
    (folder / "hosts").write_text("".join(f"{address} slots=1\n" for address in addresses))
    (folder / "agent").write_text(AGENT)
    (folder / "agent").chmod(0o755)
    return {
        "plm_rsh_agent": str(folder / "agent"),
        "plm_rsh_no_tree_spawn": "1",
        "oob_tcp_if_include": subnet,
        "btl_tcp_if_include": subnet,
    }


@undisturbed
def mpi(part: Part, algorithm: str, tensors: list[int], steps: int, warmup: int) -> Steps:
    with tempfile.TemporaryDirectory(prefix="gleaner-mpi-") as name:
        folder = Path(name)
        settings = mpi_hosts(part, folder) | {
            "btl": "tcp,self",
            "pml": "ob1",
            "mpi_yield_when_idle": "1",  # there are more ranks than cores, so a waiting rank must not spin
            "hwloc_base_binding_policy": "none",
        }
        if MPI[algorithm]:
            settings |= {"coll_tuned_use_dynamic_rules": "1", "coll_tuned_allreduce_algorithm": str(MPI[algorithm])}
        command = [*part.lab.starter(), "mpirun", "--allow-run-as-root", "-np", str(part.n)]
        command += ["--hostfile", str(folder / "hosts")]
        for key, value in settings.items():
            command += ["--mca", key, value]
        command += [str(PROGRAMS / "mpi_allreduce"), *sizes(tensors, folder)]
        # mpirun would mix the lines of several ranks in its output.
        (folder / "results").mkdir()
        command += ["--steps", str(steps), "--warmup", str(warmup), "--results", str(folder / "results")]
        environment = {**os.environ, "GLEANER_LAB_PREFIXES": str(folder / "prefixes")}
        mpirun = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment
        )
        try:
            said = mpirun.communicate(timeout=TIMEOUT)[1]
        finally:
            if mpirun.poll() is None:
                mpirun.terminate()  # mpirun ends its ranks, too
                mpirun.communicate()
        if mpirun.returncode != 0:
            raise RuntimeError(f"mpirun ended with {mpirun.returncode}: {said[-2000:]}")
        lines = [json.loads(path.read_text()) for path in (folder / "results").iterdir()]
    return ranks.steps_of(lines, part.n)


NEAR = 1.25  # peers that take longer than this multiple of the fastest peer's time are measured for a few steps only


def fastest(part: Part, tensors: list[int], steps: int, mpi_too: bool = True) -> dict[str, Steps]:
    """Measures a few steps of each peer, and `steps` steps of the peers near the fastest. Leaves out peers that
    fail."""
    runs = {f"gloo {name}": (gloo, name) for name in GLOO}
    if mpi_too:
        runs |= {f"mpi {name}": (mpi, name) for name in MPI}
    found: dict[str, Steps] = {}

    def measure(name: str, steps: int, warmup: int) -> None:
        run, which = runs[name]
        try:
            found[name] = run(part, which, tensors, steps, warmup)
        except (RuntimeError, ValueError, subprocess.TimeoutExpired) as error:
            print(f"  {name}, {steps} steps, is left out: {error}", file=sys.stderr, flush=True)

    for name in runs:
        measure(name, max(1, steps // 10), 1)
    if not found:
        raise RuntimeError("no peer could be measured")
    near = NEAR * min(each.median for each in found.values())
    for name in [name for name in found if found[name].median <= near]:
        measure(name, steps, 2)
    return found


@undisturbed
def round_trips(part: Part, bytes_: int, steps: int) -> Steps:
    """Measures two round trips of bare TCP between the first worker and all others."""
    with tempfile.TemporaryDirectory(prefix="gleaner-tcp-") as folder:
        flags = ["--size", str(part.n), "--address", part.lab.address(part.workers[0])]
        flags += [*sizes([bytes_], Path(folder)), "--steps", str(steps), "--warmup", str(max(2, steps // 10))]
        program = str(PROGRAMS / "tcp_round_trips")
        commands = [
            [*part.lab.prefix(host), program, "--rank", str(rank), *flags] for rank, host in enumerate(part.workers)
        ]
        return ranks.steps_of(ranks.together(commands, TIMEOUT), part.n - 1)  # the first worker measures nothing
