"""Tests LARS without a job, against the equations of its paper in numpy."""

from __future__ import annotations

import copy
import functools
import io
import pickle
import sys
import warnings
from typing import Any, Callable

import numpy
import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "comm-lib" / "python"))
torch = pytest.importorskip("torch")

from gleaner.errors import InvalidArgumentError  # noqa: E402
from gleaner.torch import LARS  # noqa: E402
from torch import nn  # noqa: E402

SGD = functools.partial(torch.optim.SGD, lr=0.1)


def net(kind: torch.dtype = torch.float32) -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 3)).to(kind)


def give_gradients(model: nn.Module, step: int) -> None:
    random = torch.Generator().manual_seed(step)
    for parameter in model.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=random).to(parameter.dtype)


def train(model: nn.Module, optimizer: Any, steps: int = 4) -> list[torch.Tensor]:
    for step in range(steps):
        give_gradients(model, step)
        optimizer.step()
    return [parameter.detach() for parameter in model.parameters()]


def lars_by_numpy(
    parameters: list[numpy.ndarray],
    rate: float,
    momentum: float,
    decay: float,
    trust: float,
    clip: bool,
    steps: int = 4,
) -> list[numpy.ndarray]:
    """Algorithm 1 of You et al. 2017 in float64. Vectors keep their rate."""
    velocities = [numpy.zeros_like(each) for each in parameters]
    for step in range(4):
        random = torch.Generator().manual_seed(step)
        for w, v in zip(parameters, velocities):
            g = torch.randn(w.shape, generator=random).numpy().astype(numpy.float64)
            local = 1.0
            if w.ndim > 1:
                local = trust * numpy.linalg.norm(w) / (numpy.linalg.norm(g) + decay * numpy.linalg.norm(w))
                local = min(local / rate, 1) if clip else local
            v[...] = momentum * v + rate * local * (g + decay * w)
            w -= v
    return parameters


@pytest.mark.parametrize(
    "momentum, decay, trust, clip", [(0, 0, 0.001, False), (0.9, 0.01, 0.02, False), (0.9, 1, 9, True)]
)
def test_steps_are_those_of_the_paper(momentum: float, decay: float, trust: float, clip: bool) -> None:
    model = net()
    expected = [each.detach().numpy().astype(numpy.float64) for each in model.parameters()]
    optimizer = LARS(SGD(model.parameters(), momentum=momentum, weight_decay=decay), trust, clip=clip)
    expected = lars_by_numpy(expected, 0.1, momentum, decay, trust, clip)
    for ours, theirs in zip(train(model, optimizer), expected):
        numpy.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-5, atol=1e-7)


def moved(parameter: nn.Parameter, gradient: torch.Tensor, **group: Any) -> torch.Tensor:
    """Returns the change of a parameter in a step of rate 1 with trust_coefficient 0.5."""
    optimizer = LARS(torch.optim.SGD([{"params": [parameter], **group}], lr=1.0), trust_coefficient=0.5)
    before, parameter.grad = parameter.detach().clone(), gradient
    optimizer.step()
    return before - parameter.detach()


@pytest.mark.parametrize("shape, group, factor", [
    ((2, 2), {}, 0.5), ((4,), {}, 1), ((2, 2), {"lars": False}, 1), ((4,), {"lars": True}, 0.5),
    ((2, 2), {"lars_trust_coefficient": 0.25}, 0.25),
])  # fmt: skip
def test_groups_say_which_parameters_are_scaled(shape: tuple[int, ...], group: dict[str, Any], factor: float) -> None:
    ones = torch.ones(shape)
    assert torch.allclose(moved(nn.Parameter(ones.clone()), ones, **group), factor * ones)


@pytest.mark.parametrize("weight, gradient", [(0.0, 1.0), (1.0, 0.0), (1.0, float("inf")), (1.0, float("nan"))])
def test_norms_without_a_ratio_leave_the_gradient(weight: float, gradient: float) -> None:
    given = torch.tensor([[gradient, 0.0]])
    plain, ours = (nn.Parameter(torch.full((1, 2), weight)) for _ in range(2))
    plain.grad = given.clone()
    torch.optim.SGD([plain], lr=1.0).step()
    moved(ours, given)
    assert torch.allclose(ours, plain, equal_nan=True)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_norms_of_narrow_types_are_float32(kind: torch.dtype) -> None:
    large = torch.full((100, 100), 1000.0, dtype=kind)  # its norm is above float16's largest number
    change = moved(nn.Parameter(large.clone()), large / 1000)
    assert change.dtype is kind and torch.all(change == 500)


def test_gradients_and_decays_are_the_users_again_after_a_step() -> None:
    model = net()
    optimizer = LARS(SGD(model.parameters(), weight_decay=0.1))
    give_gradients(model, 0)
    before = [(each.grad, each.grad.clone()) for each in model.parameters()]
    optimizer.step()
    assert all(each.grad is same and torch.equal(same, kept) for each, (same, kept) in zip(model.parameters(), before))
    assert optimizer.param_groups[0]["weight_decay"] == 0.1


def test_maximizing_is_minimizing_of_the_negative() -> None:
    down, up = net(), net()
    first = LARS(SGD(down.parameters(), weight_decay=0.1))
    second = LARS(SGD(up.parameters(), weight_decay=0.1, maximize=True))
    give_gradients(down, 0)
    for one, other in zip(down.parameters(), up.parameters()):
        other.grad = -one.grad
    first.step(), second.step()
    assert all(torch.equal(a, b) for a, b in zip(down.parameters(), up.parameters()))


class Twice(torch.optim.SGD):
    """An optimizer that evaluates its closure twice in a step, and steps by the second gradients."""

    def step(self, closure: Any) -> Any:
        closure()
        return super().step(closure)


@pytest.mark.parametrize("kind", [torch.optim.SGD, Twice])
def test_closures_are_evaluated_with_unscaled_gradients(kind: type[torch.optim.SGD]) -> None:
    model, expected = net(), net()
    optimizer, data = LARS(kind(model.parameters(), lr=0.1, weight_decay=0.1)), torch.ones(2, 6)

    def closure() -> torch.Tensor:
        assert optimizer.param_groups[0]["weight_decay"] == 0.1
        optimizer.zero_grad()
        loss = model(data).square().mean()
        loss.backward()
        return loss

    assert optimizer.step(closure) > 0
    assert optimizer.param_groups[0]["weight_decay"] == 0.1
    expected(data).square().mean().backward()
    LARS(SGD(expected.parameters(), weight_decay=0.1)).step()
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), expected.parameters()))


@pytest.mark.parametrize("early", [True, False])
def test_schedulers_may_be_made_before_or_after(early: bool) -> None:
    model, expected = net(), net()
    plain = SGD(model.parameters())
    optimizer = plain if early else LARS(plain)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    optimizer = LARS(plain) if early else optimizer
    other = LARS(SGD(expected.parameters()))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # PyTorch warns if it thinks that step() was replaced, or comes too late
        for step in range(3):
            for each, optimizes in ((model, optimizer), (expected, other)):
                give_gradients(each, step)
                optimizes.step()
            scheduler.step()
            other.param_groups[0]["lr"] *= 0.5
    assert optimizer.param_groups[0]["lr"] == 0.1 * 0.5**3
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), expected.parameters()))


def through_torch_save(optimizer: Any) -> Any:
    file = io.BytesIO()
    torch.save(optimizer, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each)), through_torch_save])
def test_copies_scale_too(copied: Callable[[Any], Any]) -> None:
    model = net()
    optimizer = LARS(SGD(model.parameters(), momentum=0.9), trust_coefficient=0.3)
    train(model, optimizer, steps=1)
    step = type(optimizer).step
    again = copied(optimizer)
    assert type(again) is type(optimizer) and isinstance(again, torch.optim.SGD)
    assert type(again).step is step, "PyTorch must not wrap it for the profiler once more"
    theirs = nn.ParameterList(again.param_groups[0]["params"])
    give_gradients(theirs, 0)
    again.step()
    give_gradients(model, 0)
    optimizer.step()
    assert all(torch.equal(a, b) for a, b in zip(theirs, model.parameters()))


def test_a_checkpoint_brings_its_settings_and_one_without_lars_brings_none() -> None:
    model, trained = net(), net()
    first = LARS(SGD(trained.parameters(), momentum=0.9), trust_coefficient=0.3)
    train(trained, first)
    model.load_state_dict(trained.state_dict())
    second = LARS(SGD(model.parameters(), momentum=0.9), trust_coefficient=7)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    assert all(torch.equal(a, b) for a, b in zip(train(model, second), train(trained, first)))
    plain = SGD(net().parameters(), momentum=0.9)
    second.load_state_dict(plain.state_dict())
    assert "lars_trust_coefficient" not in second.param_groups[0]
    before = model[0].weight.detach().clone()
    train(model, second, steps=1)
    assert (before - model[0].weight.detach()).norm().item() == pytest.approx(0.1 * 7 * before.norm().item(), rel=1e-4)


def test_groups_that_are_added_later_are_scaled() -> None:
    optimizer = LARS(torch.optim.SGD([nn.Parameter(torch.ones(2, 2))], lr=1.0), trust_coefficient=0.5)
    later = nn.Parameter(torch.ones(2, 2))
    optimizer.add_param_group({"params": [later]})
    later.grad = torch.full((2, 2), 10.0)
    optimizer.step()
    assert torch.allclose(later, torch.full((2, 2), 0.5))


def test_a_fused_optimizer_gets_unscaled_gradients() -> None:
    model = net()
    optimizer = LARS(SGD(model.parameters()))
    optimizer.grad_scale = torch.tensor(1024.0)  # as GradScaler sets it if the optimizer is fused
    give_gradients(model, 0)
    with pytest.raises(InvalidArgumentError, match=r"scaler.unscale_\(optimizer\)"):
        optimizer.step()


@pytest.mark.skipif(not hasattr(torch.amp, "GradScaler"), reason="this PyTorch scales no gradients on CPUs")
@pytest.mark.parametrize("fused", [False, True])
def test_grad_scaler_unscales_gradients_and_skips_infinite_ones(fused: bool) -> None:
    model, expected = net(), net()
    ours, other = (LARS(SGD(each.parameters(), fused=fused)) for each in (model, expected))
    scaler, data = torch.amp.GradScaler("cpu", init_scale=1024.0), torch.ones(2, 6)
    for step in range(3):
        ours.zero_grad()
        scaler.scale(model(data).square().mean()).backward()
        if step == 1:
            model[0].weight.grad[0, 0] = float("inf")
        scaler.unscale_(ours)
        scaler.step(ours)
        scaler.update(1024.0)
        if step != 1:
            other.zero_grad()
            expected(data).square().mean().backward()
            other.step()
    assert all(torch.allclose(a, b, rtol=1e-5) for a, b in zip(model.parameters(), expected.parameters()))


class Stepping(torch.optim.SGD):
    """An optimizer of a program, with another name of the closure and one more argument."""

    def step(self, scale: float = 1.0, loss_closure: Any = None) -> Any:
        return scale, super().step(loss_closure)


def test_optimizers_of_programs_keep_their_arguments() -> None:
    model = net()
    optimizer = LARS(Stepping(model.parameters(), lr=0.1))
    give_gradients(model, 0)
    assert optimizer.step(scale=3.0) == (3.0, None)
    assert optimizer.step(2.0, loss_closure=lambda: 5) == (2.0, 5)


def replaced(optimizer: Any) -> Any:
    optimizer.step = lambda: None
    return optimizer


PARAMETERS = [nn.Parameter(torch.ones(2, 2))]


@pytest.mark.parametrize("make, says", [
    (lambda: LARS(LARS(SGD(PARAMETERS))), "call LARS.. once"),
    (lambda: LARS(torch.optim.Adam(PARAMETERS)), "Adam divides gradients .* pass torch.optim.SGD"),
    (lambda: LARS(torch.optim.LBFGS(PARAMETERS)), "LBFGS searches .* pass torch.optim.SGD"),
    (lambda: LARS(replaced(SGD(PARAMETERS))), "call LARS.. before that"),
    (lambda: LARS(SGD(PARAMETERS), trust_coefficient=0), "trust_coefficient .* above 0"),
    (lambda: LARS(SGD(PARAMETERS), eps=-1), "eps .* at least 0"),
    (lambda: LARS(SGD(PARAMETERS), trust_coefficient=float("nan")), "finite"),
    (lambda: LARS(SGD([{"params": PARAMETERS, "lars_trust_coefficient": -1}])), "above 0"),
])  # fmt: skip
def test_unsuitable_optimizers_and_numbers_are_refused(make: Callable[[], Any], says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=says):
        make()


@pytest.mark.parametrize("make, says", [
    (lambda: LARS(torch.optim.SGD), "expected an optimizer"),
    (lambda: LARS(SGD(PARAMETERS), clip=1), "clip .* True or False"),
    (lambda: LARS(SGD(PARAMETERS), trust_coefficient="1"), "must be a number"),
    (lambda: LARS(SGD([{"params": PARAMETERS, "lars": 1}])), "True, False or None"),
])  # fmt: skip
def test_arguments_of_another_type_are_refused(make: Callable[[], Any], says: str) -> None:
    with pytest.raises(TypeError, match=says):
        make()


def test_sparse_gradients_are_refused() -> None:
    model = nn.Embedding(5, 3, sparse=True)
    optimizer = LARS(SGD(model.parameters()))
    model(torch.tensor([1])).sum().backward()
    with pytest.raises(InvalidArgumentError, match="sparse=False"):
        optimizer.step()


def test_a_refused_optimizer_is_unchanged() -> None:
    optimizer = SGD(PARAMETERS)
    with pytest.raises(InvalidArgumentError):
        LARS(optimizer, eps=-1)
    assert type(optimizer) is torch.optim.SGD and "lars" not in optimizer.param_groups[0]
