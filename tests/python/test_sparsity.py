"""Tests the parts of sparse communication that need no job: chunks, the share of each step, and steps in runs."""

from __future__ import annotations

import copy
import itertools
import sys
from typing import Any, Callable

import numpy
import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "comm-lib" / "python"))
torch = pytest.importorskip("torch")

from gleaner.torch.chunks import Chunks, most_important, packet_sizes  # noqa: E402
from gleaner.torch.lars import LARS  # noqa: E402
from gleaner.torch.sparse_pool import halved_norms, l1_norms  # noqa: E402
from gleaner.torch.sparse_step import flat, step_in_runs  # noqa: E402
from gleaner.torch.sparsity import Sparsity, sent_in, share_in  # noqa: E402


def test_chunks_of_parameters() -> None:
    chunks = Chunks([6, 1, 0, 3], 4)
    assert chunks.number == 3, "as in the example of chunks.py"
    assert [list(chunks.of(number)) for number in range(4)] == [[0, 1], [1], [], [1, 2]]


def test_runs_cover_the_chosen_chunks_once() -> None:
    dice = numpy.random.default_rng(1)
    for _ in range(200):
        sizes = [int(each) for each in dice.integers(0, 20, dice.integers(1, 8))]
        chunks = Chunks(sizes, int(dice.integers(1, 12)))
        chosen = dice.random(chunks.number) < 0.5
        begins = [0, *itertools.accumulate(sizes)]
        for number, (begin, end) in enumerate(zip(begins, begins[1:])):
            covered = [i for first, last in chunks.runs(number, chosen) for i in range(first, last)]
            assert covered == [i - begin for i in range(begin, end) if chosen[i // chunks.elements]]
            runs = chunks.runs(number, chosen)
            assert all(a[1] < b[0] for a, b in zip(runs, runs[1:])), "neighbours make one run"


def test_equal_norms_go_to_lower_chunks() -> None:
    norms = numpy.array([1, 3, 3, 0, 3, 2], numpy.float32)
    assert most_important(norms, 2).tolist() == [1, 2]
    assert most_important(norms, 4).tolist() == [1, 2, 4, 5]


@pytest.mark.parametrize("columns", [1, 2, 3, 64, 1000])
def test_norms_are_sums_in_one_order(columns: int) -> None:
    rows = torch.randn(5, columns)
    sums = rows.abs().numpy()
    while sums.shape[1] > 1:
        half = -(-sums.shape[1] // 2)
        sums = numpy.array(
            [[row[i] + row[i + half] if i + half < len(row) else row[i] for i in range(half)] for row in sums]
        )
    assert l1_norms(rows).tolist() == halved_norms(rows).tolist() == sums[:, 0].tolist()
    assert torch.allclose(l1_norms(rows), rows.abs().sum(1))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("columns", [1, 7, 4099, 32_000])
def test_norms_have_the_same_bits_on_cpus_and_gpus(dtype: str, columns: int) -> None:
    """halved_norms() computes those on GPUs. The rows differ in their largest kind of value."""
    rows = torch.randn(5, columns, dtype=torch.float64)
    rows[1] *= 1e-40
    rows[2] *= -0.0
    rows[3, columns // 2] = -float("inf")
    rows[4, -1] = -float("nan")
    rows = rows.to(getattr(torch, dtype))
    assert torch.equal(l1_norms(rows).view(torch.int32), halved_norms(rows).view(torch.int32))


@pytest.mark.parametrize("most", [1, 2, 5, 8, 32])
def test_packets_carry_all_chunks_in_few_sizes(most: int) -> None:
    for chunks in range(70):
        sizes = packet_sizes(chunks, most)
        assert sum(sizes) == chunks
        assert all(size == most or (size < most and size & (size - 1) == 0) for size in sizes)
        rest = [size for size in sizes if size != most]
        assert len(set(rest)) == len(rest), "each tensor is sent once in a step"


def test_the_share_rises_linearly_from_a_dense_step() -> None:
    sparsity = Sparsity(0.8, warm_up_steps=4)
    assert [round(share_in(sparsity, step), 9) for step in range(7)] == [0, 0.2, 0.4, 0.6, 0.8, 0.8, 0.8]
    assert [sent_in(sparsity, step, 10) for step in range(6)] == [10, 8, 6, 4, 2, 2]
    assert [sent_in(Sparsity(0.8, warm_up_steps=0), step, 10) for step in range(3)] == [10, 2, 2]
    assert [sent_in(Sparsity(0.99, warm_up_steps=0), 1, chunks) for chunks in (0, 1, 2, 99, 200)] == [0, 1, 1, 1, 2]


OPTIMIZERS: dict[str, Callable[..., Any]] = {
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.1),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=0.01),
    "Nesterov": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, nesterov=True),
    "Adam": lambda parameters: torch.optim.Adam(parameters, lr=0.1, amsgrad=True),
    "AdamW": lambda parameters: torch.optim.AdamW(parameters, lr=0.1),
    "RMSprop": lambda parameters: torch.optim.RMSprop(parameters, lr=0.1, momentum=0.9, centered=True),
    "Adagrad": lambda parameters: torch.optim.Adagrad(parameters, lr=0.1),
    "Rprop": lambda parameters: torch.optim.Rprop(parameters, lr=0.1),
}


@pytest.mark.parametrize("memory_format", ["contiguous_format", "channels_last"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_step_in_runs_changes_these_elements_alone(name: str, memory_format: str) -> None:
    """These elements become what a whole step makes of them; the others keep values and state."""
    torch.manual_seed(1)
    image = torch.randn(3, 4, 5, 6).to(memory_format=getattr(torch, memory_format))
    parameters = [torch.nn.Parameter(image), torch.nn.Parameter(torch.randn(50)), torch.nn.Parameter(torch.randn(7))]
    optimizer = OPTIMIZERS[name](parameters)
    for step in range(4):
        for each in parameters:
            each.grad = torch.randn_like(each)
        runs = {parameters[0]: [(3, 40), (100, 360)], parameters[1]: []} if step > 0 else {}
        whole = copy.deepcopy(optimizer)
        theirs = [each for group in whole.param_groups for each in group["params"]]
        for each, ours in zip(theirs, parameters):
            each.grad = ours.grad.clone()
        whole.step()
        before = copy.deepcopy(optimizer)
        befores = [each for group in before.param_groups for each in group["params"]]
        step_in_runs(optimizer, runs, (), {})
        for ours, all_changed, unchanged in zip(parameters, theirs, befores):
            chosen = torch.zeros(ours.numel(), dtype=torch.bool)
            for begin, end in runs.get(ours, [(0, ours.numel())]):
                chosen[begin:end] = True
            expected = torch.where(chosen, flat(all_changed), flat(unchanged))
            assert torch.equal(flat(ours), expected)
            for entry, value in optimizer.state[ours].items():
                if isinstance(value, torch.Tensor) and value.shape == ours.shape:
                    then, now = before.state[unchanged].get(entry, 0), whole.state[all_changed][entry]
                    kept, stepped = (flat(torch.zeros_like(ours) + each) for each in (then, now))
                    assert torch.equal(flat(torch.zeros_like(ours) + value), torch.where(chosen, stepped, kept)), entry
                elif chosen.any():
                    assert value == whole.state[all_changed][entry], entry


def test_a_parameter_that_was_never_updated_begins_its_state_in_runs() -> None:
    parameter = torch.nn.Parameter(torch.zeros(10))
    optimizer = torch.optim.SGD([parameter], lr=1, momentum=0.5)
    parameter.grad = torch.ones(10)
    step_in_runs(optimizer, {parameter: [(2, 4)]}, (), {})
    step_in_runs(optimizer, {parameter: [(3, 6)]}, (), {})
    assert parameter.tolist() == [0, 0, -1, -2.5, -1, -1, 0, 0, 0, 0]
    assert optimizer.state[parameter]["momentum_buffer"].tolist() == [0, 0, 1, 1.5, 1, 1, 0, 0, 0, 0]


def test_lars_scales_runs_by_the_norms_of_whole_parameters() -> None:
    dice = numpy.random.default_rng(1)
    weights, velocity = dice.standard_normal(12), numpy.zeros(12)
    parameter = torch.nn.Parameter(torch.from_numpy(weights.reshape(3, 4).copy()))
    optimizer = LARS(
        torch.optim.SGD([parameter], lr=0.5, momentum=0.9, weight_decay=0.1), trust_coefficient=0.02, eps=0
    )
    for runs in ([(0, 12)], [(2, 5), (9, 12)], [], [(4, 6)]):
        chosen = [i for begin, end in runs for i in range(begin, end)]
        gradient = numpy.zeros(12)
        gradient[chosen] = dice.standard_normal(len(chosen))
        parameter.grad = torch.from_numpy(gradient.reshape(3, 4).copy())
        step_in_runs(optimizer, {parameter: runs}, (), {})
        assert torch.equal(
            parameter.grad, torch.from_numpy(gradient.reshape(3, 4))
        ), "step() leaves gradients as they are"
        if chosen:
            norm = numpy.linalg.norm(weights)
            ratio = 0.02 * norm / (numpy.linalg.norm(gradient) + 0.1 * norm)
            direction = (ratio * (gradient + 0.1 * weights))[chosen]
            velocity[chosen] = 0.9 * velocity[chosen] + direction
            weights[chosen] -= 0.5 * velocity[chosen]
        numpy.testing.assert_allclose(parameter.detach().numpy().reshape(-1), weights, rtol=1e-12)
    assert optimizer.param_groups[0]["weight_decay"] == 0.1
