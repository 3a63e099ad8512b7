"""Runs each program of docs/pytorch.md with backends gleaner and gloo, and compares the parameters after training.

With Debian's PyTorch 1.13 only DDP's runs; tests/python/current_torch.sh runs all with the current PyTorch.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
from conftest import ROOT, run_ranks

torch = pytest.importorskip("torch")

RANKS = 4
PROGRAMS = dict(
    re.findall(r"^### (\w+)\n.*?^```python\n(.*?)^```", (ROOT / "docs/pytorch.md").read_text(), re.M | re.S)
)
NEEDS = {"Accelerate": "accelerate", "Lightning": "lightning"}
BEFORE = """
import torch
torch.set_default_dtype(torch.float64)
torch.manual_seed(1)
"""
SAVE = """
_whole = [getattr(each, "full_tensor", lambda each=each: each)().detach() for each in model.parameters()]
if torch.distributed.get_rank() == 0:
    torch.save(_whole, RESULT)
"""


def train(program: str, backend: str, folder: Path) -> list[torch.Tensor]:
    """Runs a program with a backend on RANKS ranks, and returns the parameters of its model in float64."""
    result, script = folder / f"{backend}.pt", folder / f"train_{backend}.py"
    lines = program.replace('"gleaner"', f'"{backend}"').splitlines()
    assert lines[-1].endswith("destroy_process_group()")
    script.write_text("\n".join([BEFORE, *lines[:-1], SAVE.replace("RESULT", repr(str(result))), lines[-1]]))
    done = run_ranks(script, RANKS, folder=folder)
    assert done.returncode == 0, done.stdout
    return torch.load(result)


def test_programs_have_at_most_ten_lines() -> None:
    assert set(PROGRAMS) == {"DDP", "FSDP2", "HSDP", "Accelerate", "Lightning"}
    for program in PROGRAMS.values():
        assert len([line for line in program.splitlines() if line.strip()]) <= 10


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_train_as_with_gloo(name: str, tmp_path: Path) -> None:
    if name != "DDP" and not hasattr(torch.distributed, "init_device_mesh"):
        pytest.skip(f"PyTorch {torch.__version__} is too old")
    if name in NEEDS and importlib.util.find_spec(NEEDS[name]) is None:
        pytest.skip(f"{NEEDS[name]} is not installed")
    results = [train(PROGRAMS[name], backend, tmp_path) for backend in ("gleaner", "gloo")]
    for own, other in zip(*results):
        assert own.dtype == torch.float64
        torch.testing.assert_close(own, other, rtol=1e-12, atol=1e-12)
