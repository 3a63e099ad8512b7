"""Describes the machine: GPU, driver, PyTorch, NCCL, processor, C library."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

GPU_FIELDS = ("name", "driver_version", "memory.total", "pcie.link.gen.max", "pcie.link.width.max", "pci.bus_id")

TORCH_FACTS = """
import json, torch
facts = {"torch": torch.__version__, "cuda": torch.version.cuda, "gpus": torch.cuda.device_count()}
if torch.cuda.is_available():
    facts["gpu"] = torch.cuda.get_device_name(0)
    facts["capability"] = ".".join(map(str, torch.cuda.get_device_capability(0)))
try:
    facts["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
except Exception as error:
    facts["nccl"] = f"none: {error}"
print(json.dumps(facts))
"""


def output_of(*command: str) -> str:
    """Returns what a command prints; "" if it does not exist or does not end."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def processor() -> str:
    found = re.search(r"^model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found[1] if found else platform.processor()


def system() -> str:
    """Returns the name of the Linux distribution."""
    file = Path("/etc/os-release")
    found = re.search(r'^PRETTY_NAME="?([^"\n]*)', file.read_text() if file.exists() else "", re.MULTILINE)
    return found[1] if found else ""


def gpus() -> list[dict[str, str]]:
    listed = output_of("nvidia-smi", f"--query-gpu={','.join(GPU_FIELDS)}", "--format=csv,noheader")
    return [dict(zip(GPU_FIELDS, (cell.strip() for cell in line.split(",")))) for line in listed.splitlines()]


def gather() -> dict[str, Any]:
    facts: dict[str, Any] = {
        "system": system(),
        "kernel": platform.release(),
        "glibc": os.confstr("CS_GNU_LIBC_VERSION"),
        "python": platform.python_version(),
        "processor": processor(),
        "processors": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "nvidia_smi": gpus(),
        "nvcc": (re.findall(r"release ([\d.]+)", output_of("nvcc", "--version")) or [""])[0],
    }
    told = output_of(sys.executable, "-c", TORCH_FACTS)
    facts.update(json.loads(told.splitlines()[-1]) if told else {"torch": ""})
    return facts


def find_cuda_runtime() -> str:
    """Returns the path of libcudart, of PyTorch's packages or of a CUDA Toolkit; "" if there is none."""
    folders = [Path(entry) for entry in sys.path if entry] + [Path("/usr/local/cuda/lib64")]
    patterns = ("nvidia/*/lib/libcudart.so.*", "libcudart.so.1?", "torch/lib/libcudart*.so*")
    return next((str(path) for folder in folders for pattern in patterns for path in folder.glob(pattern)), "")
