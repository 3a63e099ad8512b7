"""Steps of others, on the workers of a lab: Gloo's algorithms (that of torch's backend among them) and Open MPI's."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path

from wire.lab import ROOT, Lab
from wire.steps import Steps

SOURCE = ROOT / "tests" / "bench" / "peers"
PROGRAMS = ROOT / "build" / "bench-peers"
GLOO = ["ring", "ring_chunked", "halving_doubling", "bcube", "torch"]
# coll_tuned_allreduce_algorithm; 0 is its own choice by size.
MPI = {"default": 0, "recursive_doubling": 3, "ring": 4, "segmented_ring": 5, "rabenseifner": 6}
# What mpirun calls in place of ssh: HOST COMMAND...; a host is a namespace here.
AGENT = """#!/bin/sh
host=$1; shift
exec ip netns exec "$(sed -n "s/^$host //p" "$GLEANER_LAB_SPACES")" sh -c "$*"
"""


def build() -> None:
    for command in (["cmake", "-S", SOURCE, "-B", PROGRAMS, "-G", "Ninja"], ["ninja", "-C", PROGRAMS]):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"the peers can't be built ({SOURCE}): {done.stdout[-1500:]}{done.stderr[-1500:]}")


def sizes(tensors: list[int], folder: Path) -> list[str]:
    path = folder / "bytes"
    path.write_text("\n".join(map(str, tensors)))
    return ["--bytes-file", str(path)]


def check(name: str, lines: list[dict[str, object]], workers: int) -> None:
    if len(lines) != workers or not all(line["right"] for line in lines):
        raise RuntimeError(
            f"{name}: {len(lines)} of {workers} ranks ended, and their sums should all be right: {lines}"
        )


def gloo(lab: Lab, algorithm: str, tensors: list[int], steps: int, warmup: int = 2) -> Steps:
    with tempfile.TemporaryDirectory(prefix="gleaner-gloo-") as folder:
        (Path(folder) / "store").mkdir()
        ranks = []
        for i in range(lab.workers):
            command = [*lab.prefix(f"worker{i}"), str(PROGRAMS / "gloo_allreduce"), "--rank", str(i)]
            command += ["--size", str(lab.workers), "--address", lab.address(f"worker{i}")]
            command += ["--store", str(Path(folder) / "store"), "--algorithm", algorithm]
            command += [*sizes(tensors, Path(folder)), "--steps", str(steps), "--warmup", str(warmup)]
            ranks.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        try:
            lines = [json.loads(rank.communicate()[0] or "null") for rank in ranks]
        finally:
            for rank in ranks:
                rank.kill()
                rank.wait()
    check(f"gloo {algorithm}", [line for line in lines if line], lab.workers)
    return Steps.of_ranks(lines)


def mpi(lab: Lab, algorithm: str, tensors: list[int], steps: int, warmup: int = 2) -> Steps:
    with tempfile.TemporaryDirectory(prefix="gleaner-mpi-") as name:
        folder = Path(name)
        addresses = [lab.address(f"worker{i}") for i in range(lab.workers)]
        subnet = addresses[0].rsplit(".", 1)[0] + ".0/24"
        spaces = [lab.prefix(f"worker{i}")[-1] for i in range(lab.workers)]
        (folder / "spaces").write_text("".join(f"{a} {s}\n" for a, s in zip(addresses, spaces)))
        (folder / "hosts").write_text("".join(f"{address} slots=1\n" for address in addresses))
        (folder / "agent").write_text(AGENT)
        (folder / "agent").chmod(0o755)
        command = ["mpirun", "--allow-run-as-root", "--hostfile", str(folder / "hosts"), "-np", str(lab.workers)]
        settings = {
            "plm_rsh_agent": str(folder / "agent"),
            "plm_rsh_no_tree_spawn": "1",
            "oob_tcp_if_include": subnet,
            "btl": "tcp,self",
            "btl_tcp_if_include": subnet,
            "pml": "ob1",
            "mpi_yield_when_idle": "1",  # more ranks than cores: whoever waits does not spin
            "hwloc_base_binding_policy": "none",
        }
        if MPI[algorithm]:
            settings |= {"coll_tuned_use_dynamic_rules": "1", "coll_tuned_allreduce_algorithm": str(MPI[algorithm])}
        for key, value in settings.items():
            command += ["--mca", key, value]
        command += [str(PROGRAMS / "mpi_allreduce"), *sizes(tensors, folder)]
        command += ["--steps", str(steps), "--warmup", str(warmup)]
        environment = {**os.environ, "GLEANER_LAB_SPACES": str(folder / "spaces")}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode != 0:
            raise RuntimeError(f"mpirun ended with {done.returncode}: {done.stderr[-2000:]}")
    check(f"mpi {algorithm}", lines, lab.workers)
    return Steps.of_ranks(lines)
