"""Tests linear scaling and the warm-up, without a job."""

from __future__ import annotations

import copy
import json
import re
import sys
import warnings
from pathlib import Path
from typing import Any, Callable, Optional

import pytest
from conftest import ROOT, programs_of, run_job

sys.path.insert(0, str(ROOT / "comm-lib" / "python"))
torch = pytest.importorskip("torch")

from gleaner.errors import InvalidArgumentError  # noqa: E402
from gleaner.torch import LARS, WarmUp, linear_scaling  # noqa: E402
from torch.optim import lr_scheduler  # noqa: E402


def sgd(rate: float = 0.4) -> Any:
    groups = [{"params": [torch.nn.Parameter(torch.ones(2, 2))], "lr": rate * factor} for factor in (1, 2)]
    return torch.optim.SGD(groups, lr=rate)


def rates(optimizer: Any, scheduler: Any, steps: int, *arguments: Any) -> list[float]:
    """Returns the rates of the first group in the next steps."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(steps):
            found.append(optimizer.param_groups[0]["lr"])
            assert optimizer.param_groups[1]["lr"] == pytest.approx(2 * found[-1])
            optimizer.step()
            scheduler.step(*arguments)
    return found


def test_the_rate_grows_with_the_batch() -> None:
    assert linear_scaling(0.1, 8192) == pytest.approx(3.2)
    assert linear_scaling(0.1, 64, base_batch=32) == pytest.approx(0.2)


@pytest.mark.parametrize("numbers", [(0, 8), (0.1, 0), (0.1, 8, -1), (float("nan"), 8)])
def test_numbers_that_are_not_positive_are_refused(numbers: tuple[float, ...]) -> None:
    with pytest.raises(InvalidArgumentError, match="above 0"):
        linear_scaling(*numbers)


def test_rates_rise_linearly_and_stay() -> None:
    optimizer = sgd()
    assert rates(optimizer, WarmUp(optimizer, 4, start=0.25), 6) == pytest.approx([0.1, 0.175, 0.25, 0.325, 0.4, 0.4])
    optimizer = sgd()
    assert rates(optimizer, WarmUp(optimizer, 3), 5) == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.4])
    assert optimizer.param_groups[0]["lr"] == 0.4, "exactly"


@pytest.mark.parametrize("make", [
    lambda optimizer: lr_scheduler.CosineAnnealingLR(optimizer, T_max=10),
    lambda optimizer: lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5),
    lambda optimizer: lr_scheduler.PolynomialLR(optimizer, total_iters=8, power=2),
    lambda optimizer: lr_scheduler.LambdaLR(optimizer, lambda step: 0.5 / (step + 1)),
    lambda optimizer: lr_scheduler.OneCycleLR(optimizer, max_lr=[1, 2], total_steps=20),
], ids=["cosine", "step", "polynomial", "lambda", "one cycle"])  # fmt: skip
@pytest.mark.parametrize("wrap", [lambda each: each, LARS], ids=["plain", "LARS"])
def test_another_scheduler_takes_over(make: Callable[[Any], Any], wrap: Callable[[Any], Any]) -> None:
    alone, warmed = sgd(), wrap(sgd())
    expected = rates(alone, make(alone), 8)
    after = make(warmed)
    found = rates(warmed, WarmUp(warmed, 3, after, start=0.5), 11)
    assert found[3:] == pytest.approx(expected)
    assert found[:3] == pytest.approx([expected[0] * factor for factor in (3 / 6, 4 / 6, 5 / 6)])


def test_a_scheduler_that_needs_the_loss_gets_it() -> None:
    optimizer = sgd()
    after = lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
    found = rates(optimizer, WarmUp(optimizer, 2, after, start=0.5), 6, 1.0)
    assert found == pytest.approx([0.2, 0.3, 0.4, 0.4, 0.2, 0.1])


@pytest.mark.parametrize("saved", [2, 7])
@pytest.mark.parametrize("has_after", [True, False])
def test_training_resumes_from_a_checkpoint(saved: int, has_after: bool) -> None:
    def make(rate: float) -> tuple[Any, WarmUp]:
        optimizer = sgd(rate)
        after: Optional[Any] = lr_scheduler.StepLR(optimizer, 2, gamma=0.5) if has_after else None
        return optimizer, WarmUp(optimizer, 4, after)

    whole = rates(*make(0.4), 12)
    first, second = make(0.4), make(0.3)
    begun = rates(*first, saved)
    for old, new in zip(first, second):
        new.load_state_dict(copy.deepcopy(old.state_dict()))
    assert begun + rates(*second, 12 - saved) == pytest.approx(whole)


def test_rates_that_are_tensors_are_set_in_place() -> None:
    optimizer = sgd()
    held = optimizer.param_groups[0]["lr"] = torch.tensor(0.4)
    WarmUp(optimizer, 4, start=0.5).step()
    assert held.item() == pytest.approx(0.25)


@pytest.mark.parametrize("make, says", [
    (lambda: WarmUp(sgd(), 0), "whole number above 0"),
    (lambda: WarmUp(sgd(), 2.5), "whole number above 0"),
    (lambda: WarmUp(sgd(), 2, start=1.5), "from 0 to 1"),
    (lambda: WarmUp(sgd(), 2, lr_scheduler.StepLR(sgd(), 1)), "another optimizer: make it for this one"),
])  # fmt: skip
def test_unsuitable_arguments_are_refused(make: Callable[[], Any], says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=says):
        make()


def test_a_checkpoint_of_another_schedule_is_refused() -> None:
    optimizer = sgd()
    state = WarmUp(optimizer, 4).state_dict()
    with pytest.raises(InvalidArgumentError, match="the checkpoint has no scheduler"):
        WarmUp(optimizer, 4, lr_scheduler.StepLR(optimizer, 2)).load_state_dict(state)
    with pytest.raises(InvalidArgumentError, match="has 2 parameter groups, the optimizer 1"):
        WarmUp(torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1), 4).load_state_dict(state)


def test_the_documented_rate_follows_the_ranks_of_an_elastic_job(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(*programs_of("large-batches.md", "Elastic jobs"))
    done = run_job("elastic_rates.py", str(program), workers=3, flags=("--min-workers", "1"))
    assert done.returncode == 0, done.stdout + done.stderr
    seen = [json.loads(each) for each in re.findall(r"ended (.*)$", done.stdout, re.MULTILINE)]
    assert len(seen) == 2 and seen[0] == seen[1]
    assert [size for _, size, _, _ in seen[0]] == [3] * 12 + [2] * 12
    full = {size: linear_scaling(0.8, 32 * size) for size in (2, 3)}
    expected = [min(full[3], full[3] * (step + 1) / 6) if size == 3 else full[2] for step, size, _, _ in seen[0]]
    assert [rate for _, _, rate, _ in seen[0]] == pytest.approx(expected)
    assert all(used == pytest.approx(rate * (1 - step / 24) ** 2) for step, _, rate, used in seen[0])
