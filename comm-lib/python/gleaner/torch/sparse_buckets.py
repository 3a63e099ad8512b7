"""Sends the important chunks of DDP's buckets (coarse-grained sparse communication). Source: GradientFlow §3.2.

DDP gives a step's gradients to its hook in buckets, which it composes anew after the first step. Chunks are cut from
all gradients of the model, so a chunk may lie in several buckets, and averages come back when the backward pass ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional, Protocol

import torch
from torch.autograd import Variable

from gleaner.errors import FailedPreconditionError, InvalidArgumentError
from gleaner.session import Session
from gleaner.torch.compression import Compressor
from gleaner.torch.packs import Fusion
from gleaner.torch.roll_call import RollCall
from gleaner.torch.sparse_pool import SparsePool
from gleaner.torch.sparse_step import flat
from gleaner.torch.sparsity import Sparsity


class Flight(Protocol):
    """A bucket that waits for its average (ddp.py)."""

    def finish(self, tensor: torch.Tensor) -> None: ...

    def fail(self, error: Exception) -> None: ...


class SparseBuckets:
    """The buckets of one model, and the history of its gradients. Not thread safe.

    The first pass tells the parameters. Their order is that of model.parameters() from the last to the first, whatever
    size buckets have, as for DistributedOptimizer.

    Args:
        name: Prefix of the names of tensors.
        sparsity: The settings.
        compression: The compressor of packets.

    Raises:
        InvalidArgumentError: `sparsity` has no momentum of its own.
    """

    def __init__(self, name: str, sparsity: Sparsity, compression: Compressor) -> None:
        if sparsity.momentum is None:
            raise InvalidArgumentError(
                "DDP's hook does not see the optimizer, by whose momentum gradients that are not sent fade: pass it, "
                "as in Sparsity(0.85, warm_up_steps=500, momentum=0.9)"
            )
        self._name, self._sparsity, self._compression = name, sparsity, compression
        self._number_of: dict[torch.Tensor, int] = {}
        self._pool: Optional[SparsePool] = None  # None: before the end of the first pass
        self._loaded: Optional[Mapping[str, Any]] = None  # the state for `_pool` to begin with
        self._session: Optional[Session] = None
        self._passes = 0
        self._reset()

    def _reset(self) -> None:
        self._gradients: dict[torch.Tensor, torch.Tensor] = {}  # of the pass so far, in its buckets
        self._flights: list[tuple[Flight, torch.Tensor]] = []  # with the buffers of their buckets

    def average(self, session: Session, bucket: torch.distributed.GradBucket, flight: Flight) -> None:
        """Sends the packets that a bucket completes. With the last bucket, `flight` of all buckets ends after the pass.

        Raises:
            FailedPreconditionError: The bucket has parameters that the first pass did not have, or lacks some.
            InvalidArgumentError: As in SparsePool, or a loaded state is of other chunks.
            GleanerError: The session has failed.
        """
        if bucket.index() == 0:  # after a pass that failed, there is a rest of it
            self._reset()
            if self._pool is not None:
                self._pool.forget()
        gradients = dict(zip(bucket.parameters(), bucket.gradients()))
        self._flights.append((flight, bucket.buffer()))
        # The last parameter of a bucket is the first whose gradient backward() makes.
        self._gradients.update(reversed(gradients.items()))
        if self._pool is None:
            if not bucket.is_last():
                return
            self._make_pool()
            gradients = self._gradients
        self._enter(session)
        self._take(gradients)
        if bucket.is_last():
            self._check_complete()
            self._pool.send_rest()
            try:  # DDP queues its own callback after this one, and waits there for all buckets
                Variable._execution_engine.queue_callback(self._end_pass)
            except RuntimeError:  # this is no backward pass, but DDP.join()
                self._end_pass()

    def _make_pool(self) -> None:
        named = [(f"parameter {number}", each) for number, each in enumerate(self._gradients)]
        pool = SparsePool(named, self._sparsity, None, self._compression, True, lambda: ())
        if self._loaded is not None:
            pool.load(self._loaded)
        self._pool, self._loaded = pool, None
        self._number_of = {parameter: number for number, parameter in enumerate(self._gradients)}

    def _enter(self, session: Session) -> None:
        """Begins a pass in `session`, unless it has begun."""
        if session is not self._session:
            self._session, self._passes = session, 0
            self._pool.enter(session, self._name)
            fusion = Fusion(0, (), 0, self._sparsity.share)
            self._roll = RollCall(session, f"{self._name}.roll", 0, fusion, self._pool.fingerprint)
        if not self._pool.taken:
            self._passes += 1
            self._roll.start([], self._passes, 1)

    def _take(self, gradients: Mapping[torch.Tensor, torch.Tensor]) -> None:
        unknown = [each for each in gradients if each not in self._number_of]
        if unknown:
            raise self._other_parameters(
                f"a parameter of shape {tuple(unknown[0].shape)} that the first step did not have"
            )
        for parameter, gradient in gradients.items():
            number = self._number_of[parameter]
            flat(self._pool.places[number]).copy_(gradient.reshape(-1))
            self._pool.take(number)

    def _check_complete(self) -> None:
        known, here = len(self._number_of), len(self._gradients)
        if here != known:
            raise self._other_parameters(f"gradients of {here} parameters, and had {known} in the first step")

    def _other_parameters(self, what: str) -> FailedPreconditionError:
        return FailedPreconditionError(
            f"the model of DDPState({self._name!r}) has {what}: make a DDPState for each DistributedDataParallel"
        )

    def _end_pass(self) -> None:
        """Waits for all averages, which overwrite the gradients in their buckets."""
        flights = self._flights
        try:
            roll = self._roll.finish()
            roll.check()
            self._pool.complete()
            for parameter, gradient in self._gradients.items():
                gradient.copy_(flat(self._pool.places[self._number_of[parameter]]).view(gradient.shape))
        except Exception as error:  # PyTorch's, too, such as after a failure of the GPU
            self._pool.forget()
            for flight, _ in flights:
                flight.fail(error)
        else:
            for flight, buffer in flights:
                flight.finish(buffer)
        finally:
            self._reset()

    def state(self) -> Optional[Mapping[str, Any]]:
        """Returns what load() needs to go on after the last step; None: there was no step."""
        return self._loaded if self._pool is None else self._pool.state()

    def load(self, state: Mapping[str, Any]) -> None:
        """Goes on from a state(). Raises InvalidArgumentError if it is of other chunks, now or in the first step."""
        if self._pool is None:
            self._loaded = state
        else:
            self._pool.load(state)
