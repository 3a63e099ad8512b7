"""DistributedOptimizer: wraps any torch optimizer, and averages gradients over all ranks before each step."""

from __future__ import annotations

import contextlib
import copy
import threading
import weakref
from collections.abc import Iterable, Iterator
from typing import Any, Callable, Optional, Union

import torch

from gleaner import process
from gleaner.errors import FailedPreconditionError, InvalidArgumentError
from gleaner.torch.compression import Compression, Compressor, check_compression
from gleaner.torch.defaults import Default, chosen_compression, chosen_fusion_bytes
from gleaner.torch.deltas import Deltas
from gleaner.torch.gradients import Gradients
from gleaner.torch.packs import check_fusion_bytes
from gleaner.torch.sparse_step import check_steps_in_runs, step_in_runs
from gleaner.torch.sparsity import Sparsity, check_packets_compress, check_sparsity
from gleaner.torch.wrapper import Wrapper, check_optimizer, mixed, parameters_of

_SPARSITY = "gleaner.sparsity"  # entry of state_dict()


class AveragesGradients(Wrapper):
    """The base class that DistributedOptimizer puts before the user's optimizer class. Use it from one thread."""

    __slots__ = ("_gradients", "_should_synchronize")

    _gradients: Gradients
    _should_synchronize: bool

    def step(self, *args: Any, **kwargs: Any) -> Any:
        """Waits until all gradients are averages, then lets the user's optimizer step with them. Collective.

        Takes the arguments of the user's optimizer. The gradients of every evaluation of a closure are averaged.

        Returns:
            The result of the user's optimizer.

        Raises:
            FailedPreconditionError: Parameters were added or replaced after wrapping; a gradient was used while it was
                in flight; backward() is still running or has failed; or ranks are at different steps.
            InvalidArgumentError: A gradient is sparse, or shares memory with another gradient.
            GleanerError: The session has failed; see gleaner.errors.
        """
        closure = self._closure.find(args, kwargs)
        if closure is not None:
            args, kwargs = self._closure.replaced(args, kwargs, self._averaged(closure))
        self._trainer = threading.get_ident()
        self.check_parameters()
        if self._should_synchronize and (closure is None or self._gradients.unaveraged):
            self.synchronize()
        try:
            with self._lock:
                result = self._step_own(args, kwargs)
                self._gradients.tune()
                return result
        finally:
            self._gradients.end_step()
            self.note_step()

    def _step_own(self, args: Any, kwargs: Any) -> Any:
        """Lets the user's optimizer step for the elements that the averages update."""
        closure = self._closure.find(args, kwargs) if self._gradients.sparse is not None else None
        if closure is not None:  # its averages tell which elements to update
            loss = closure()
            args, kwargs = self._closure.replaced(args, kwargs, None)
        runs = self._gradients.runs()
        result = self._own.step(*args, **kwargs) if runs is None else step_in_runs(self._own, runs, args, kwargs)
        return result if closure is None else loss

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Returns the state of the wrapped optimizer after its last step. Any thread may call it.

        With `sparsity` the entry "gleaner.sparsity" has what the next steps need. Its history is that of this rank:
        ranks that load the state of another rank go on with that rank's history.
        """
        with self._lock:
            state = super().state_dict(*args, **kwargs)
            if self._gradients.sparse is None:
                return state
            sparse = self._gradients.sparse.pool.state()
            return {**state, _SPARSITY: copy.deepcopy(sparse) if self.is_trained_elsewhere() else sparse}

    def load_state_dict(self, state_dict: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Loads a state into the wrapped optimizer. Takes the further arguments of its class.

        Args:
            state_dict: Result of state_dict() of an optimizer of this class, wrapped or not.

        Raises:
            InvalidArgumentError: The state was saved with another Sparsity, or for other parameters.
        """
        with self._lock:
            if self._gradients.sparse is not None and _SPARSITY in state_dict:
                self._gradients.sparse.pool.load(state_dict[_SPARSITY])
            own = {name: value for name, value in state_dict.items() if name != _SPARSITY}
            return super().load_state_dict(own, *args, **kwargs)

    def _averaged(self, closure: Callable[[], Any]) -> Callable[[], Any]:
        """Returns a closure that also averages the gradients."""

        def averaged_closure(*args: Any, **kwargs: Any) -> Any:
            self._gradients.begin_step()
            with torch.enable_grad():
                loss = closure(*args, **kwargs)
            self.synchronize()
            return loss

        return averaged_closure

    def synchronize(self) -> None:
        """Averages all gradients that are not averages yet. Returns when every parameter.grad is one. Collective.

        Raises:
            FailedPreconditionError: As in step().
            InvalidArgumentError: As in step().
            GleanerError: As in step().
        """
        self._gradients.synchronize()

    @contextlib.contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """Makes step() use the gradients without averaging them, within this context."""
        self._should_synchronize = False
        try:
            yield
        finally:
            self._should_synchronize = True

    def set_backward_passes_per_step(self, passes: int) -> None:
        """Sets the number of backward passes before gradients are averaged, of the step that has begun, too.

        Args:
            passes: As `backward_passes_per_step` of DistributedOptimizer(). The same on all ranks.

        Raises:
            InvalidArgumentError: `passes` is below 1, or not a whole number.
        """
        self._gradients.set_passes_per_step(passes)

    def zero_grad(self, *args: Any, **kwargs: Any) -> None:
        """Zeros gradients as torch.optim does, with the same arguments.

        Raises:
            FailedPreconditionError: Gradients are in flight, or backward() is still running or has failed.
        """
        self.forget_gradients()
        self._own.zero_grad(*args, **kwargs)

    def forget_gradients(self) -> None:
        """Prepares for gradients to be zeroed.

        Raises:
            FailedPreconditionError: As in zero_grad().
        """
        self._gradients.check_pass()
        if self._gradients.in_flight:
            raise FailedPreconditionError(
                "zero_grad() came after backward() and before step() or synchronize(): gradients are still in flight"
            )
        self._gradients.restart()


class AccumulatesDeltas(Wrapper):
    """The base class that DistributedOptimizer puts before the user's class if training is asynchronous."""

    __slots__ = ("_deltas",)

    _deltas: Deltas

    def step(self, *args: Any, **kwargs: Any) -> Any:
        """Lets the user's optimizer step with this rank's gradients, and exchanges the changes with all ranks.

        The first step is collective: it copies the parameters of rank 0 to all ranks. Later steps wait for no other
        rank, or, if `staleness` is set, only for ranks that are more than `staleness` steps behind.

        Takes the arguments of the user's optimizer. The gradients of a closure's evaluations are not averaged.

        Returns:
            The result of the user's optimizer.

        Raises:
            FailedPreconditionError: Parameters were added or replaced after wrapping, or a parameter was changed other
                than by step() since the last step.
            GleanerError: The session has failed; see gleaner.errors.
        """
        self._trainer = threading.get_ident()
        self.check_parameters()
        self.note_step()
        with self._deltas.exchanged(), self._lock:
            return self._own.step(*args, **kwargs)

    def synchronize(self) -> None:
        """Waits until every rank calls this, and gives all ranks the same parameters. Collective.

        These parameters contain all steps of all ranks.

        Raises:
            FailedPreconditionError: A parameter was changed other than by step() since the last step.
            GleanerError: The session has failed; see gleaner.errors.
        """
        self._deltas.synchronize()


def DistributedOptimizer(
    optimizer: torch.optim.Optimizer,
    named_parameters: Optional[Iterable[tuple[str, torch.nn.Parameter]]] = None,
    backward_passes_per_step: int = 1,
    prioritize: bool = True,
    asynchronous: bool = False,
    staleness: Optional[int] = None,
    wait: str = "backward",
    name: Optional[str] = None,
    compression: Union[Compressor, Default] = Default.OF_JOB,
    fusion_bytes: Union[float, str, Default, None] = Default.OF_JOB,
    sparsity: Optional[Sparsity] = None,
) -> torch.optim.Optimizer:
    """Wraps an optimizer so that gradients are averaged over all ranks.

    Each gradient is sent as soon as backward() has computed it. When backward() returns, parameter.grad is the average
    over all ranks, so gradients can be clipped, unscaled, logged and zeroed as in a program of one process. A rank
    without a gradient that another rank has contributes zeros. A gradient that no rank has stays None, so that no step
    changes the parameter.

    All ranks must construct the same optimizers with the same parameters in the same order, and make the same calls of
    backward() and step(). The constructor does not wait for other ranks. Use all optimizers of a process from one
    thread. Call gleaner.torch.broadcast_parameters() before the first step; a warning tells if ranks begin with
    different parameters.

    Args:
        optimizer: The optimizer to wrap, with dense gradients and with parameters of a type that can be summed.
            Parameter groups cannot be added after wrapping.
        named_parameters: model.named_parameters(), in the order in which the forward pass uses the parameters. It must
            include all parameters of `optimizer`; other parameters are ignored. None: the names are parameter.0,
            parameter.1, … in the order of the optimizer's parameter groups.
        backward_passes_per_step: Number of backward passes before gradients are averaged. Gradients are added over
            these passes, not averaged: divide the loss by this number for the mean of the passes.
        prioritize: True: gradients of parameters that come first in `named_parameters` are sent first. False:
            gradients are sent in the order in which backward() computes them.
        asynchronous: True: gradients are not averaged. Each rank steps at its own pace, and adds the change of its step
            to the parameters of all ranks. Results differ from run to run. Parameters must be float32.
        staleness: With `asynchronous`, a step waits while another rank is more than this many steps behind. None: no
            step waits.
        wait: "backward": backward() waits for averages. "step": step() or synchronize() waits, and every use of a
            gradient before that is an error. Not used with `asynchronous`.
        name: Prefix of the names of tensors; None: optimizer.0, optimizer.1, … in the order of construction.
        compression: Compression.fp16 and Compression.bf16 send gradients with 16 bits. Each worker's gradient is
            rounded once, and so is the average, whose sum is float32. A float32 gradient that is too large for float16
            becomes infinite on all ranks, so GradScaler skips the step. The other compressors of Compression send
            blocks with fewer bits (docs/compression.md). An object with compress() and decompress() of
            gleaner.torch.compression.Compressor does as these say; the constructor calls its compress() once for each
            parameter, to learn the size and type of the tensors to send. Left out: the environment variable
            GLEANER_COMPRESSION decides, and without it gradients are sent as they are. The same on all ranks; not used
            with `asynchronous`.
        fusion_bytes: Gradients of parameters of at most this many bytes are sent in packs of more than this many bytes,
            each as one tensor, since many small tensors take longer than a large one. math.inf: all gradients of a type
            are sent as one tensor when backward() ends. None: every gradient is a tensor of its own. "auto": the end of
            the third step() chooses one of these by measured times, the same on all ranks; with `sparsity` it is None.
            Left out: the environment variable GLEANER_FUSION_BYTES decides (a number, auto or inf), and without it
            None. The same on all ranks; not used with `asynchronous`. Averages have the same bits with every value in
            jobs whose class of bits is RankOrder. Wrap the optimizer after parameters are frozen, moved and converted:
            packs are of the parameters that require a gradient now, or at the end of the step that chooses. Source:
            GradientFlow §3.1 (lazy all-reduce; θ is `fusion_bytes`).
        sparsity: A Sparsity: a step sends and updates only the chunks of gradients that matter most, in packets of at
            most `fusion_bytes` bytes (None: 4 MiB). Needs an optimizer that updates each element by its own gradient,
            and dense parameters of one type on one device. Wrap the optimizer after parameters are frozen. The same on
            all ranks; not used with `asynchronous`. Source: GradientFlow §3.2 (coarse-grained sparse communication).

    Returns:
        An optimizer of the class of `optimizer`, with its state and hyperparameters; use it in place of `optimizer`.

    Raises:
        InvalidArgumentError: `optimizer` was wrapped before; `named_parameters` lacks a parameter or has a name twice;
            or another argument, or GLEANER_COMPRESSION or GLEANER_FUSION_BYTES, is out of range, or cannot be combined
            with the others.
        TypeError: `optimizer` is not an optimizer; `named_parameters` has elements that are not pairs; `asynchronous`
            is not a bool; `compression` is not a compressor; `fusion_bytes` is neither a number nor "auto"; or a
            parameter that requires a gradient is not a dense tensor of a type that can be summed.
        GleanerError: There is no session, or it has failed; see gleaner.errors.
    """
    if not isinstance(asynchronous, bool):
        raise TypeError(f"asynchronous must be True or False, not {asynchronous!r}")
    if wait not in ("backward", "step"):
        raise InvalidArgumentError(f"wait must be 'backward' or 'step', not {wait!r}")
    if staleness is not None and not asynchronous:
        raise InvalidArgumentError("staleness needs asynchronous=True: otherwise every step waits for all ranks")
    check_sparsity(sparsity)
    if asynchronous:
        if sparsity is not None:
            raise InvalidArgumentError("sparsity must be None with asynchronous=True: no gradients are averaged")
        if fusion_bytes is not None and fusion_bytes is not Default.OF_JOB:
            raise InvalidArgumentError(
                "fusion_bytes must be None with asynchronous=True: it fuses gradients, not changes"
            )
        if backward_passes_per_step != 1:
            raise InvalidArgumentError(
                "backward_passes_per_step must be 1 with asynchronous=True: to use several backward passes per step, "
                "call step() after the last of them"
            )
        if compression is not Compression.none and compression is not Default.OF_JOB:
            raise InvalidArgumentError("compression must be Compression.none with asynchronous=True: sums are float32")
        named = _named(optimizer, named_parameters)
        distributed = mixed(AccumulatesDeltas, optimizer)
        distributed._deltas = Deltas(process.current(), named, staleness, prioritize, name)
        return distributed
    return with_gradients(
        AveragesGradients,
        optimizer,
        named_parameters,
        backward_passes_per_step,
        prioritize,
        wait,
        name,
        compression,
        fusion_bytes,
        sparsity,
    )


def with_gradients(
    kind: type[AveragesGradients],
    optimizer: torch.optim.Optimizer,
    named_parameters: Optional[Iterable[tuple[str, torch.nn.Parameter]]],
    backward_passes_per_step: int,
    prioritize: bool,
    wait: str,
    name: Optional[str],
    compression: Union[Compressor, Default],
    fusion_bytes: Union[float, str, Default, None] = Default.OF_JOB,
    sparsity: Optional[Sparsity] = None,
) -> torch.optim.Optimizer:
    """Returns `optimizer` wrapped by `kind`, with Gradients of its parameters."""
    compression, fusion_bytes = chosen_compression(compression), chosen_fusion_bytes(fusion_bytes)
    check_compression(compression)
    check_fusion_bytes(fusion_bytes)
    named = _named(optimizer, named_parameters)
    if sparsity is not None:
        check_packets_compress(compression)
        check_steps_in_runs(optimizer, sparsity)
    distributed = mixed(kind, optimizer)
    distributed._gradients = Gradients(
        process.current(), named, backward_passes_per_step, prioritize, wait, name, compression, fusion_bytes, sparsity
    )
    distributed._lock = distributed._gradients.lock
    distributed._gradients.optimizer = weakref.ref(distributed)
    distributed._should_synchronize = True
    return distributed


def _named(
    optimizer: torch.optim.Optimizer, named_parameters: Optional[Iterable[tuple[str, torch.nn.Parameter]]]
) -> list[tuple[str, torch.nn.Parameter]]:
    """Returns all parameters of the optimizer with their names, which must be unique."""
    check_optimizer(optimizer)
    parameters = parameters_of(optimizer)
    if named_parameters is None:
        named = [(f"parameter.{place}", parameter) for place, parameter in enumerate(parameters)]
    else:
        named = _pairs(named_parameters)
    _check_names(named, parameters)
    own = set(parameters)
    return [(name, parameter) for name, parameter in named if parameter in own]


def _pairs(named_parameters: Iterable[tuple[str, torch.nn.Parameter]]) -> list[tuple[str, torch.nn.Parameter]]:
    """Returns the pairs as a list; raises TypeError if these are not pairs, as of model.parameters()."""
    pairs = list(named_parameters) if isinstance(named_parameters, Iterable) else None
    if pairs is None or not all(isinstance(each, (tuple, list)) and len(each) == 2 for each in pairs):
        raise TypeError(
            "named_parameters takes pairs of a name and a parameter: pass model.named_parameters(), not "
            f"{type(named_parameters).__name__}"
        )
    return pairs


def _check_names(named: list[tuple[str, torch.nn.Parameter]], parameters: list[torch.nn.Parameter]) -> None:
    names = [name for name, _ in named]
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise InvalidArgumentError(f"named_parameters has {twice[0]} twice; every parameter needs its own name")
    known = {parameter for _, parameter in named}
    unnamed = sum(parameter not in known for parameter in parameters)
    if unnamed:
        raise InvalidArgumentError(
            f"{unnamed} of {len(parameters)} parameters of the optimizer are not in named_parameters; pass "
            "model.named_parameters() of every model that it optimizes"
        )
