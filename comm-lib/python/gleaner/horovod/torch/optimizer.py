"""DistributedOptimizer as Horovod has it: backward() starts reductions of gradients, and step() waits for them."""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Callable, Optional, Union

import torch

from gleaner.errors import FailedPreconditionError, InvalidArgumentError
from gleaner.horovod.torch.compression import Compression, Compressor
from gleaner.horovod.torch.operations import Adasum, Average, ReduceOp
from gleaner.horovod.torch.process_sets import ProcessSet, global_process_set
from gleaner.horovod.torch.reductions import Options, Reduction
from gleaner.torch.hooks import Hooks
from gleaner.torch.wrapper import Wrapper, check_optimizer, mixed, parameters_of

Groups = Union[int, Sequence[Sequence[torch.Tensor]], None]


class ReducesGradients(Wrapper):
    """The base class that DistributedOptimizer puts before the user's optimizer class. Use it from one thread."""

    __slots__ = ("_is_synchronized", "_parameter_names", "_reductions", "_should_synchronize")

    _parameter_names: dict[torch.nn.Parameter, str]
    _reductions: _Reductions
    _is_synchronized: bool  # since the last step()
    _should_synchronize: bool

    def step(self, *args: Any, **kwargs: Any) -> Any:
        """Waits for the reductions of all gradients, then lets the user's optimizer step. Collective.

        Takes the arguments of the user's optimizer. The gradients of every evaluation of a closure are reduced.
        """
        closure = self._closure.find(args, kwargs)
        if closure is not None and self._should_synchronize:
            args, kwargs = self._closure.replaced(args, kwargs, self._reduced(closure))
        self._trainer = threading.get_ident()
        self.check_parameters()
        if closure is None and self._should_synchronize:
            if self._is_synchronized:
                warnings.warn(
                    "optimizer.step() called without optimizer.skip_synchronize() after optimizer.synchronize(): it "
                    "reduces the gradients again",
                    stacklevel=3,
                )
            self.synchronize()
        self._is_synchronized = False
        try:
            with self._lock:
                return self._own.step(*args, **kwargs)
        finally:
            self.note_step()

    def _reduced(self, closure: Callable[[], Any]) -> Callable[[], Any]:
        def reduced_closure(*args: Any, **kwargs: Any) -> Any:
            with torch.enable_grad():
                loss = closure(*args, **kwargs)
            self._reductions.finish()
            return loss

        return reduced_closure

    def synchronize(self) -> None:
        """Waits until the gradients of all parameters are reduced. Collective.

        A parameter that has no gradient contributes zeros.
        """
        self._reductions.finish()
        self._is_synchronized = True

    @contextlib.contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """Makes step() use the gradients as they are, within this context: after synchronize()."""
        self._should_synchronize = False
        try:
            yield
        finally:
            self._should_synchronize = True

    def set_backward_passes_per_step(self, passes: int) -> None:
        """Sets the number of backward passes before each reduction."""
        for each in self._reductions.all:
            each.passes = passes

    def zero_grad(self, *args: Any, **kwargs: Any) -> None:
        """Zeros gradients as torch.optim does, with the same arguments.

        Raises:
            FailedPreconditionError: Reductions are in flight.
        """
        if any(each.is_in_flight for each in self._reductions.all):
            raise FailedPreconditionError(
                "zero_grad() came after backward() and before step() or synchronize(): gradients are still in flight"
            )
        self._own.zero_grad(*args, **kwargs)

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Loads a state into the user's optimizer, and drops reductions in flight."""
        for each in self._reductions.all:
            each.forget()
        self._is_synchronized = False
        return super().load_state_dict(*args, **kwargs)


class _Reductions:
    """The reductions of an optimizer, and the hooks that start them."""

    def __init__(self) -> None:
        self.all: list[Reduction] = []
        self._of: dict[int, tuple[Reduction, int]] = {}  # by the place of a parameter
        self._hooks: list[Hooks] = []

    def add(self, reduction: Reduction, parameters: Sequence[torch.nn.Parameter]) -> None:
        self.all.append(reduction)
        for place, parameter in enumerate(parameters):
            number = len(self._of)
            self._of[number] = reduction, place
            self._hooks.append(Hooks(parameter, self, number))

    def before_gradient(self, place: int, gradient: torch.Tensor) -> None:
        pass

    def on_gradient(self, place: int) -> None:
        reduction, own = self._of[place]
        reduction.on_gradient(own)

    def finish(self) -> None:
        for each in self.all:
            each.start()
        for each in self.all:
            each.finish()

    def __del__(self) -> None:
        for each in self._hooks:
            each.remove()


def DistributedOptimizer(
    optimizer: torch.optim.Optimizer,
    named_parameters: Optional[Iterable[tuple[str, torch.nn.Parameter]]] = None,
    compression: type[Compressor] = Compression.none,
    backward_passes_per_step: int = 1,
    op: ReduceOp = Average,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: Groups = None,
    sparse_as_dense: bool = False,
    process_set: ProcessSet = global_process_set,
) -> torch.optim.Optimizer:
    """Wraps an optimizer so that step() uses gradients that are reduced over all ranks.

    Args:
        optimizer: The optimizer to wrap. Parameter groups cannot be added after wrapping.
        named_parameters: model.named_parameters(); None: names are made of the places of parameters.
        compression: Compression.none, Compression.fp16, or a subclass of Compressor.
        backward_passes_per_step: Number of backward passes before gradients are reduced. Gradients are added over them.
        op: Average, Sum, Min, Max or Product.
        gradient_predivide_factor: With Average: gradients are divided by this before the sum, and multiplied after it.
        num_groups: Earlier form of `groups`.
        groups: Gradients that are reduced as one operation: a number of groups, or lists of parameters. Parameters
            that no list has are reduced alone.
        sparse_as_dense: True: sparse gradients are reduced as dense ones. False: their elements are gathered.
        process_set: The ranks. The optimizer of another rank reduces nothing.

    Returns:
        An optimizer of the class of `optimizer`, with its state and hyperparameters; use it in place of `optimizer`.

    Raises:
        InvalidArgumentError: An argument is out of range, or does not fit the others.
        GleanerError: There is no session.
    """
    check_optimizer(optimizer)
    if op is Adasum:
        raise InvalidArgumentError("Gleaner has no Adasum: use op=Average")
    if gradient_predivide_factor != 1.0 and op is not Average:
        raise InvalidArgumentError("gradient_predivide_factor needs op=Average")
    if backward_passes_per_step <= 0:
        raise InvalidArgumentError("backward_passes_per_step must be at least 1")
    if num_groups:
        warnings.warn("num_groups is now called groups", DeprecationWarning, stacklevel=2)
    names = _names(optimizer, named_parameters)
    scales = (1.0 / gradient_predivide_factor, gradient_predivide_factor)
    options = Options(compression, op, scales, sparse_as_dense, process_set)
    members = _groups(list(names), groups or num_groups or None)
    reductions = _Reductions()
    if process_set.included():
        places = {parameter: place for place, parameter in enumerate(names)}
        for group in members:
            priority = places[group[0]]
            reductions.add(Reduction(names[group[0]], group, priority, options, backward_passes_per_step), group)
    wrapped = mixed(ReducesGradients, optimizer)
    wrapped._parameter_names, wrapped._reductions = names, reductions
    wrapped._is_synchronized, wrapped._should_synchronize = False, True
    return wrapped


def _names(
    optimizer: torch.optim.Optimizer, named_parameters: Optional[Iterable[tuple[str, torch.nn.Parameter]]]
) -> dict[torch.nn.Parameter, str]:
    """Returns the names of the optimizer's parameters, in the order of named_parameters."""
    own = parameters_of(optimizer)
    if named_parameters is None:
        return {parameter: f"noname.{place}" for place, parameter in enumerate(own)}
    pairs = list(named_parameters)
    if not all(isinstance(each, tuple) and len(each) == 2 for each in pairs):
        raise InvalidArgumentError("named_parameters takes pairs of a name and a parameter: model.named_parameters()")
    twice = sorted({name for name, _ in pairs if sum(name == other for other, _ in pairs) > 1})
    if twice:
        raise InvalidArgumentError(f"named_parameters must have unique names, and has twice: {', '.join(twice)}")
    names = {parameter: name for name, parameter in pairs}
    unnamed = sum(parameter not in names for parameter in own)
    if unnamed:
        raise InvalidArgumentError(f"{unnamed} of {len(own)} parameters of the optimizer are not in named_parameters")
    of_optimizer = set(own)
    return {parameter: name for parameter, name in names.items() if parameter in of_optimizer}


def _groups(parameters: Sequence[torch.nn.Parameter], groups: Groups) -> list[list[torch.nn.Parameter]]:
    """Returns the parameters that need gradients, by group. All ranks have the same model, so they have the same."""
    trained = [each for each in parameters if each.requires_grad]
    if groups is None:
        return [[each] for each in trained]
    if isinstance(groups, int):
        if groups < 0:
            raise InvalidArgumentError(f"groups must not be negative, and is {groups}")
        size = -(-len(trained) // groups)
        return [trained[start : start + size] for start in range(0, len(trained), max(1, size))]
    listed = [each for group in groups for each in group]
    if not all(isinstance(each, torch.Tensor) for each in listed):
        raise InvalidArgumentError("groups must be a number, or lists of parameters")
    if len(set(listed)) < len(listed):
        raise InvalidArgumentError("a parameter may only be in one of the groups")
    known = set(trained)
    found = [[each for each in group if each in known] for group in groups]
    return [group for group in found if group] + [[each] for each in trained if each not in set(listed)]
