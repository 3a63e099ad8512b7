"""CrossBarrier: step() does not wait; each module of the next forward pass waits for its own parameters.

Gradients of the last layers are therefore averaged while the first layers compute the next forward pass. A step takes
about as long as the longer of computation and communication, instead of the sum of both. Sources: ByteScheduler §3
("crossing global barriers"), BytePS §6.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, MutableMapping
from typing import Any, Optional, Union

import torch

from gleaner.errors import GleanerError, InvalidArgumentError
from gleaner.torch.compression import Compressor
from gleaner.torch.defaults import Default
from gleaner.torch.optimizer import AveragesGradients, with_gradients
from gleaner.torch.parts import Places, check_divisible, part_of, places_of
from gleaner.torch.pieces import Pieces
from gleaner.torch.sparsity import Sparsity, check_sparsity
from gleaner.torch.wrapper import check_optimizer


class UpdatesInForward(AveragesGradients):
    """The base class that CrossBarrier puts before the user's optimizer class.

    A parameter is overdue from step() until the wrapped optimizer has updated it with its average. update_overdue()
    waits for the average and makes the update, on the caller's thread: before the forward pass of the module that holds
    the parameter, or when the program asks for parameters in another way.

    One thread trains. Other threads may call state_dict(), of optimizer and model, and then update overdue parameters.
    `_lock` is held from the wait for an average to the end of the update.
    """

    __slots__ = ("_clear", "_pieces", "_places", "_stream")

    _places: Places
    _pieces: Pieces  # the updates of the last step, with its hyperparameters and arguments
    _clear: Optional[tuple[tuple[Any, ...], dict[str, Any]]]  # arguments of zero_grad(), to call after updates
    _stream: Optional[torch.cuda.Stream]  # on which the thread that trains uses the GPU; None: it uses none

    def step(self, *args: Any, **kwargs: Any) -> Any:
        """Ends the step without waiting for averages. Collective: every rank makes the same steps.

        update_overdue() makes the updates later, with the hyperparameters that the optimizer has at this call. If the
        gradients are averages already (after synchronize()), or within skip_synchronize(), step() updates the
        parameters at once.

        Takes the arguments of the wrapped optimizer, but no closure.

        Returns:
            None, or the result of the wrapped optimizer's step() if that is called at once.

        Raises:
            InvalidArgumentError: The arguments have a closure.
            FailedPreconditionError: Parameters were added or replaced after wrapping; backward() is still running or
                has failed; or a gradient was changed while it was in flight.
            GleanerError: The session has failed; see gleaner.errors.
        """
        if self._closure.find(args, kwargs) is not None:
            raise InvalidArgumentError(
                "CrossBarrier does not support closures, because a closure needs all updates at once; use "
                "DistributedOptimizer"
            )
        self._trainer = threading.get_ident()
        self._stream = torch.cuda.current_stream() if torch.cuda.is_initialized() else None
        with self._lock:
            self.check_parameters()
            self.update_overdue()
            self._clear = None
            if self._gradients.averaged or self._gradients.is_tuning or not self._should_synchronize:
                return super().step(*args, **kwargs)
            self._pieces = Pieces(self._own, self._places, args, kwargs)
            self._gradients.postpone()
            self._update_others()
            self.note_step()
            return None

    def synchronize(self) -> None:
        """Waits until every parameter of the last step is updated, and until every new gradient is an average.

        Raises:
            FailedPreconditionError: backward() is still running or has failed, a gradient was changed while it was in
                flight, or ranks are at different steps.
            GleanerError: The session has failed; see gleaner.errors.
        """
        with self._lock:
            self.update_overdue()
            if self._gradients.unaveraged:
                super().synchronize()

    def zero_grad(self, *args: Any, **kwargs: Any) -> None:
        """Clears gradients; takes the arguments of torch.optim. Overdue parameters keep theirs until their update.

        Raises:
            FailedPreconditionError: Gradients of this step are in flight, or backward() is still running or has failed.
        """
        with self._lock:
            self.forget_gradients()
            on_time = [each for each in self._places if each not in self._gradients.overdue]
            part_of(self._own, self._places, on_time).zero_grad(*args, **kwargs)
            self._clear = args, kwargs

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Updates all overdue parameters, then returns the state of the wrapped optimizer. Any thread may call it.

        Threads that do not train get a copy: the tensors of the state itself change with the next step.

        Raises:
            GleanerError: The errors of step().
        """
        with self._lock:
            self.update_overdue()
            return super().state_dict(*args, **kwargs)

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Updates all overdue parameters, then loads a state into the wrapped optimizer.

        Takes the arguments of the wrapped optimizer's class: at least the result of state_dict().

        Raises:
            GleanerError: The errors of step().
        """
        with self._lock:
            self.update_overdue()
            return super().load_state_dict(*args, **kwargs)

    def __reduce_ex__(self, protocol: Any) -> Any:
        with self._lock:
            self.update_overdue()
            return super().__reduce_ex__(protocol)

    def update_overdue(self, parameters: Optional[Iterable[torch.nn.Parameter]] = None) -> None:
        """Waits for the averages of overdue parameters and updates these parameters. Any thread may call it.

        Args:
            parameters: Updates only these parameters, if they are overdue. None: updates all overdue parameters.

        Raises:
            FailedPreconditionError: A gradient was changed while it was in flight, ranks are at different steps, or the
                wrapped optimizer cannot update a part of its parameters.
            GleanerError: The session has failed; see gleaner.errors.
        """
        with self._lock:
            failure = self._gradients.failure
            if failure is not None and not self.is_trained_elsewhere():
                self._gradients.failure = None
                raise failure
            all_overdue = self._gradients.overdue
            if not all_overdue:
                return
            overdue = list(all_overdue) if parameters is None else [each for each in parameters if each in all_overdue]
            if overdue:
                with self._as_trained():
                    self._update(overdue)

    @contextlib.contextmanager
    def _as_trained(self) -> Iterator[None]:
        """Queues work of other threads on the stream of the thread that trains, and has the caller's stream wait."""
        if self._stream is None or not self.is_trained_elsewhere():
            yield
            return
        with torch.cuda.stream(self._stream):
            yield
        torch.cuda.current_stream(self._stream.device).wait_stream(self._stream)

    def _update(self, overdue: list[torch.nn.Parameter]) -> None:
        try:
            self._gradients.finish(overdue)
            self._step_pieces(overdue)
        except GleanerError as error:
            if self.is_trained_elsewhere():
                self._gradients.failure = error
            raise
        if self._clear is not None:
            args, kwargs = self._clear
            part_of(self._own, self._places, overdue).zero_grad(*args, **kwargs)

    def _update_others(self) -> None:
        """Updates the parameters that no rank has a new gradient of, as DistributedOptimizer does with sparsity."""
        others = [each for each in self._places if each not in self._gradients.overdue and each.grad is not None]
        if self._gradients.sparse is not None and others:
            self._step_pieces(others)

    def _step_pieces(self, parameters: Collection[torch.nn.Parameter]) -> None:
        sparse = self._gradients.sparse
        self._pieces.step(parameters, None if sparse is None else sparse.runs(parameters))

    def update_before_forward(self, module: torch.nn.Module) -> None:
        """Updates the overdue parameters that the forward pass of a module itself uses.

        Args:
            module: The module, whose forward pass begins.

        Raises:
            GleanerError: As in update_overdue().
        """
        with self._lock:
            if not self._gradients.overdue and self._gradients.failure is None:
                return
            if not torch.is_grad_enabled():  # inference may use parameters without calling their modules
                self.update_overdue()
                return
            # MultiheadAttention uses the parameters of a module that it does not call.
            self.update_overdue(module.parameters(recurse=isinstance(module, torch.nn.MultiheadAttention)))

    def complete(self, state: MutableMapping[str, Any]) -> None:
        """Updates all overdue parameters, to which a model's state_dict() refers.

        In a thread that does not train, copies replace the tensors, which change with the next step. Parameters
        themselves (`keep_vars=True`) stay.

        Args:
            state: Result of state_dict().

        Raises:
            GleanerError: As in update_overdue().
        """
        with self._lock:
            self.update_overdue()
            if not self.is_trained_elsewhere():
                return
            with self._as_trained():
                copies = {
                    name: value.detach().clone()
                    for name, value in state.items()
                    if isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter)
                }
            for each in copies.values():
                if each.is_cuda:  # the allocator would give it again to the stream on which it was allocated
                    each.record_stream(torch.cuda.current_stream(each.device))
            state.update(copies)


def CrossBarrier(
    optimizer: torch.optim.Optimizer,
    model: torch.nn.Module,
    backward_passes_per_step: int = 1,
    prioritize: bool = True,
    name: Optional[str] = None,
    compression: Union[Compressor, Default] = Default.OF_JOB,
    fusion_bytes: Union[float, str, Default, None] = Default.OF_JOB,
    sparsity: Optional[Sparsity] = None,
) -> torch.optim.Optimizer:
    """Wraps an optimizer like DistributedOptimizer, but step() returns before the averages have arrived.

    When a module of `model` is called, it waits for the averages of its own parameters and updates these parameters.
    Parameters have the same bits as with DistributedOptimizer. Until its module is called a parameter can be one step
    old: read parameters through model.state_dict(), or after optimizer.synchronize(). If a module uses the parameters
    of another module without calling that module, backward() raises an error.

    All ranks must construct the same optimizers in the same order. The constructor does not wait for other ranks. Use
    the optimizer from one thread.

    Args:
        optimizer: An optimizer that updates each parameter by its own gradient alone, as all of torch.optim except
            LBFGS do, and an optimizer that uses a norm of all gradients does not. What its step() writes to parameter
            groups and attributes must not depend on the gradients.
        model: The model. Its parameters must include all parameters of `optimizer`. Parameters that require no gradient
            at this call must stay frozen.
        backward_passes_per_step: Number of backward passes whose gradients are added before each step.
        prioritize: True: gradients that the next forward pass needs first are sent first. False: in the order in which
            backward() computes them.
        name: Prefix of the names of tensors; None: optimizer.0, optimizer.1, … in the order of construction.
        compression: As in DistributedOptimizer().
        fusion_bytes: As in DistributedOptimizer(). A module waits for the whole packs that have its parameters. Until
            packs are chosen, step() waits for averages: three times with "auto", once with a number.
        sparsity: As in DistributedOptimizer(). A module waits for the packets with important chunks of its parameters.

    Returns:
        An optimizer of the class of `optimizer`, with its state and hyperparameters; use it in place of `optimizer`.

    Raises:
        InvalidArgumentError: `optimizer` is LBFGS, contains another optimizer or was wrapped before, some of its
            parameters are not in `model`, `backward_passes_per_step` is below 1, or `fusion_bytes`,
            GLEANER_FUSION_BYTES or GLEANER_COMPRESSION is out of range; or `sparsity` does not support it.
        TypeError: `optimizer` is not an optimizer, `model` is not a module, `compression` is not a compressor,
            `fusion_bytes` is neither a number nor "auto", `sparsity` is not a Sparsity, or a parameter that requires a
            gradient is not a dense tensor of a type that can be summed.
        GleanerError: There is no session, or it has failed; see gleaner.errors.
    """
    return crossing(
        UpdatesInForward,
        optimizer,
        model,
        backward_passes_per_step,
        prioritize,
        name,
        compression,
        fusion_bytes,
        sparsity,
    )


def crossing(
    kind: type[UpdatesInForward],
    optimizer: torch.optim.Optimizer,
    model: torch.nn.Module,
    backward_passes_per_step: int,
    prioritize: bool,
    name: Optional[str],
    compression: Union[Compressor, Default],
    fusion_bytes: Union[float, str, Default, None] = Default.OF_JOB,
    sparsity: Optional[Sparsity] = None,
) -> Any:
    """Returns `optimizer` wrapped by `kind`. Arguments and errors are those of CrossBarrier()."""
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"CrossBarrier() takes the model, a torch.nn.Module, not {type(model).__name__}")
    check_optimizer(optimizer)
    check_divisible(optimizer)
    check_sparsity(sparsity)
    named = model.named_parameters()
    wrapped = with_gradients(
        kind,
        optimizer,
        named,
        backward_passes_per_step,
        prioritize,
        "forward",
        name,
        compression,
        fusion_bytes,
        sparsity,
    )
    wrapped._places = places_of(optimizer)
    wrapped._clear = None
    for module in model.modules():
        hook = module.register_forward_pre_hook(_UpdateBeforeForward(wrapped))
        # Hooks of others, such as those of weight_norm() and spectral_norm(), compute with parameters.
        module._forward_pre_hooks.move_to_end(hook.id, last=False)
        module.__dict__["__getstate__"] = _UpdatedState(wrapped, module)
    model._register_state_dict_hook(_UpdateAll(wrapped))  # the tensors of state_dict() share memory with parameters
    return wrapped


class _UpdatingHook:
    """Base class of the hooks that CrossBarrier adds to modules."""

    def __init__(self, optimizer: UpdatesInForward) -> None:
        self.optimizer = optimizer


class _UpdateAll(_UpdatingHook):
    """Updates all overdue parameters before model.state_dict() returns."""

    def __call__(self, _: torch.nn.Module, state: MutableMapping[str, Any], *__: Any) -> None:
        self.optimizer.complete(state)


class _UpdateBeforeForward(_UpdatingHook):
    """Updates the overdue parameters of a module before its forward pass."""

    def __call__(self, module: torch.nn.Module, _: Any) -> None:
        self.optimizer.update_before_forward(module)


class _UpdatedState(_UpdatingHook):
    """Replaces a module's __getstate__, so that its copies have updated parameters and no hooks of this file."""

    def __init__(self, optimizer: UpdatesInForward, module: torch.nn.Module) -> None:
        super().__init__(optimizer)
        self._module = weakref.ref(module)

    def __call__(self) -> Any:
        self.optimizer.update_overdue()
        module = self._module()
        of_class = getattr(type(module), "__getstate__", None)  # every class has one from Python 3.11 on
        state = module.__dict__ if of_class is None else of_class(module)
        if not isinstance(state, dict):
            return state
        others = {name: value for name, value in state.items() if name != "__getstate__"}
        for name in ("_forward_pre_hooks", "_state_dict_hooks"):
            hooks = others.get(name, {})
            others[name] = OrderedDict(
                (key, hook) for key, hook in hooks.items() if not isinstance(hook, _UpdatingHook)
            )
        return others
