#!/usr/bin/python3
"""Runs BytePS's PyTorch examples with gleaner.byteps.torch, and prints a table of the outcomes (docs/compatibility.md).

    tests/outside/byteps_examples.py FOLDER

FOLDER is a checkout of github.com/bytedance/byteps. The examples need torchvision, tensorboardX and tqdm. The imports
of an example are changed; where it fails for reasons of its own, a second run changes what the table says. Data that an
example would download is random, and its arguments make it short. GLEANER_BUILD names the build, as in tests/python.
"""

from __future__ import annotations

import argparse
import os
import re
import struct
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("GLEANER_BUILD", ROOT / "build" / "release")).resolve()
SECONDS = 900  # until an example counts as stuck
BENCHMARK = (
    "--no-cuda --model resnet18 --batch-size 2 --num-warmup-batches 1 --num-batches-per-iter 1 --num-iters 2".split()
)
RESNET50 = "--no-cuda --train-dir train --val-dir val --epochs 2 --batch-size 2 --val-batch-size 2".split()
RESNET18 = "-a resnet18 --epochs 2 -b 4 -j 0 --multiprocessing-distributed --world-size 1 --rank 0 .".split()

# Runs a script that needs CUDA on the CPU. Each rank finds as many GPUs as there are local ranks.
WITHOUT_CUDA = """
import runpy, sys, torch
torch.Tensor.cuda = torch.nn.Module.cuda = lambda self, *arguments, **named: self
torch.cuda.device_count, torch.cuda.set_device = lambda: 2, lambda device: None
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


# Calls that current versions of PyTorch refuse, and what they take instead.
CALLS = {
    "profile(enable_profiling, True)": "profile(enable_profiling, use_cuda=True)",
    "correct[:k].view(-1)": "correct[:k].reshape(-1)",
}
ADAPTED = {
    "calls": "`profile(…, use_cuda=True)` for PyTorch 1.13",
    "cuda": "`.reshape(-1)` for PyTorch 1.13, and `.cuda()` does nothing",
}


@dataclass(frozen=True)
class Example:
    """An example and how it is run. `adapted` is a key of ADAPTED, or empty if only the imports change."""

    file: str
    arguments: list[str]
    adds: str = ""  # arguments that the table shows
    job: str = "--workers 2"
    adapted: str = ""


EXAMPLES = (
    Example("benchmark_byteps.py", BENCHMARK),
    Example("benchmark_byteps.py", BENCHMARK, "--fp16-pushpull"),
    Example("benchmark_byteps_ddp.py", BENCHMARK),
    Example("benchmark_byteps_ddp.py", BENCHMARK, adapted="calls"),
    Example("benchmark_cross_barrier_byteps.py", BENCHMARK),
    Example("benchmark_cross_barrier_byteps.py", BENCHMARK, adapted="calls"),
    Example("benchmark_cross_barrier_byteps.py", BENCHMARK, "--fp16-allreduce", adapted="calls"),
    Example("elastic_benchmark_byteps.py", BENCHMARK, job="--workers 2 --min-workers 2"),
    Example("elastic_benchmark_byteps.py", BENCHMARK, job="--workers 2 --min-workers 2", adapted="calls"),
    Example("train_mnist_byteps.py", ["--no-cuda", "--epochs", "2", "--batch-size", "16"]),
    Example("train_mnist_byteps.py", ["--no-cuda", "--epochs", "2", "--batch-size", "16"], "--fp16-pushpull"),
    Example("train_imagenet_resnet50_byteps.py", RESNET50),
    Example("train_imagenet_resnet50_byteps.py", RESNET50, "--batches-per-pushpull 2"),
    Example("train_imagenet_resnet_byteps_ddp.py", RESNET18, job="--workers 1 --local-ranks 2"),
    Example("train_imagenet_resnet_byteps_ddp.py", RESNET18, job="--workers 1 --local-ranks 2", adapted="cuda"),
)


def make_data(folder: Path) -> None:
    """Makes random digits as MNIST's files, and random photographs in folders as ImageNet's."""
    from PIL import Image

    random = numpy.random.default_rng(1)
    for rank in range(2):
        raw = folder / f"data-{rank}" / "MNIST" / "raw"
        raw.mkdir(parents=True)
        for part, count in (("train", 128), ("t10k", 32)):
            images = random.integers(0, 256, (count, 28, 28), numpy.uint8)
            labels = random.integers(0, 10, count, numpy.uint8)
            (raw / f"{part}-images-idx3-ubyte").write_bytes(struct.pack(">4i", 2051, count, 28, 28) + images.tobytes())
            (raw / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">2i", 2049, count) + labels.tobytes())
    for part in ("train", "val"):
        for kind in ("cat", "dog"):
            (folder / part / kind).mkdir(parents=True)
            for number in range(4):
                pixels = random.integers(0, 256, (80, 80, 3), numpy.uint8)
                Image.fromarray(pixels).save(folder / part / kind / f"{number}.png")


def run(example: Example, source: str, folder: Path) -> str:
    """Runs an example in `folder`. Returns an empty string if it ended well, else the last line of its error."""
    script = folder / example.file
    script.write_text(re.sub(r"\bbyteps\.torch\b", "gleaner.byteps.torch", source))
    for call, instead in CALLS.items() if example.adapted else ():
        script.write_text(script.read_text().replace(call, instead))
    command = [str(BUILD / "bin" / "gleaner"), "run", "--summers", "1", *example.job.split(), "--", sys.executable]
    command += ["-c", WITHOUT_CUDA] if example.adapted == "cuda" else []
    command += [str(script), *example.arguments, *example.adds.split()]
    paths = [str(ROOT / "comm-lib" / "python"), os.environ.get("PYTHONPATH", "")]
    variables = {"PYTHONPATH": ":".join(filter(None, paths)), "GLEANER_LIBRARY": str(BUILD / "lib" / "libgleaner.so")}
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"did not end within {SECONDS} s"
    (folder / "log").write_text(done.stdout + done.stderr)
    if done.returncode == 0:
        return ""
    errors = re.findall(r"^\[worker .*?\] (\w[\w.]*(?:Error|Exception): .*)$", done.stderr, re.MULTILINE)
    return errors[0] if errors else f"exit status {done.returncode}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="checkout of github.com/bytedance/byteps")
    parser.add_argument("--only", default="", help="runs the examples whose name contains this text")
    parser.add_argument(
        "--keep", type=Path, help="folder for the examples, their data and logs; default: a temporary one"
    )
    arguments = parser.parse_args()
    print("| example | job | changed | result | reason |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as temporary:
        for number, example in enumerate(EXAMPLES):
            if arguments.only not in example.file:
                continue
            folder = (arguments.keep or Path(temporary)) / str(number)
            folder.mkdir(parents=True)
            make_data(folder)
            error = run(example, (arguments.folder / "example" / "pytorch" / example.file).read_text(), folder)
            name = " ".join(filter(None, (example.file, example.adds)))
            change = f"the import, {ADAPTED[example.adapted]}" if example.adapted else "the import"
            outcome = f"fails | `{error}` |" if error else "passes | |"
            print(f"| `{name}` | `{example.job}` | {change} | {outcome}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
