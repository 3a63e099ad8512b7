"""A communication hook for torch.nn.parallel.DistributedDataParallel (DDP). Gleaner averages DDP's buckets.

    model = DistributedDataParallel(model)
    model.register_comm_hook(None, gleaner.torch.ddp_hook)

DDP itself still needs a process group; gloo suffices. Each bucket is a tensor named "ddp.INDEX.ELEMENTS". When DDP
rebuilds its buckets after the first step, the new buckets become new tensors. With `sparsity` packets of important
chunks are sent instead (sparse_buckets.py).
"""

# No `from __future__ import annotations`: DDP requires the hook's annotations to be types, not strings.
import contextlib
import functools
import threading
import weakref
from collections.abc import Mapping
from typing import Any, Optional

import torch
import torch.distributed
from torch.autograd import Variable

from gleaner import exchange, process
from gleaner.completions import Completions
from gleaner.errors import FailedPreconditionError, InvalidArgumentError
from gleaner.exchange import PushPullOptions
from gleaner.lasting import LastingInputs
from gleaner.torch.compression import Compression, sent_as
from gleaner.torch.defaults import Default, chosen_compression
from gleaner.torch.sparse_buckets import SparseBuckets
from gleaner.torch.sparsity import Sparsity, check_packets_compress, check_sparsity
from gleaner.torch.tensors import TORCH


class DDPState:
    """The first argument of register_comm_hook(). A process that trains several models needs one state per model.

    Args:
        name: Prefix of the names of the model's tensors; the same on all ranks, different for each model.
        compression: Compression.fp16 and Compression.bf16 send buckets of float32 with half the bytes, others of
            Compression with fewer (docs/compression.md); buckets of other types are sent as they are. Left out: the
            environment variable GLEANER_COMPRESSION decides, as for DistributedOptimizer(). The same on all ranks.
        sparsity: A Sparsity with a momentum, that of the optimizer: a step sends only the chunks of gradients that
            matter most, in packets of at most 4 MiB. Other gradients become 0, and the state keeps them for the next
            step. The optimizer steps for all parameters. Parameters have one type and one device. The same on all
            ranks. Source: GradientFlow §3.2 (coarse-grained sparse communication).

    Raises:
        InvalidArgumentError: GLEANER_COMPRESSION names no compressor, `sparsity` has no momentum, or it comes with
            a compressor of blocks.
        TypeError: `compression` is a compressor of another kind, or `sparsity` is not a Sparsity.
    """

    def __init__(
        self, name: str = "ddp", compression: Any = Default.OF_JOB, sparsity: Optional[Sparsity] = None
    ) -> None:
        compression = chosen_compression(compression)
        if compression is not Compression.none and not hasattr(compression, "sent_as"):
            raise TypeError(
                "DDPState takes a compressor of gln.Compression, such as Compression.bf16, not "
                f"{compression!r}; with a compressor of your own use DistributedOptimizer"
            )
        self.name, self.compression = name, compression
        check_sparsity(sparsity)
        if sparsity is not None:
            check_packets_compress(compression)
        self.sparse = None if sparsity is None else SparseBuckets(name, sparsity, compression)

    def state_dict(self) -> dict[str, Any]:
        """Returns what the next steps need of earlier steps: with `sparsity` this rank's history and the chosen chunks.

        The tensors change with the next step, as those of an optimizer's state do.

        Raises:
            GleanerError: The session has failed; see gleaner.errors.
        """
        state = None if self.sparse is None else self.sparse.state()
        return {} if state is None else {"gleaner.sparsity": state}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Goes on from the state of this rank, or on all ranks from that of one rank.

        Args:
            state_dict: Result of state_dict().

        Raises:
            InvalidArgumentError: The state was saved with sparsity and this object has none, or with another Sparsity.
                Before the first step backward() raises the latter.
        """
        state = state_dict.get("gleaner.sparsity")
        if state is None:
            return
        if self.sparse is None:
            raise InvalidArgumentError(
                "this state was saved with sparsity, and this DDPState has none: pass the same Sparsity"
            )
        self.sparse.load(state)


@functools.cache
def _default_state() -> DDPState:
    return DDPState()


def ddp_hook(state: Optional[DDPState], bucket: torch.distributed.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Averages a bucket of gradients over all ranks. Pass this function to register_comm_hook().

    Collective: DDP calls it for the same buckets on all ranks. Does not block. DDP fills buckets in the order of the
    backward pass, so buckets with higher indices, which the next forward pass needs first, are sent first.

    Args:
        state: Holds the prefix of the tensors' names; None: that of DDPState(), with the prefix "ddp".
        bucket: Dense tensors of a floating-point type. The average overwrites the bucket's buffer.

    Returns:
        A future of the averaged buffer, which the thread gln-python completes. If the request fails, the future has the
        buffer as it is, and backward() raises the GleanerError of the request at its end. Outside of a backward pass,
        where DDP.join() calls the hook, the future has the error.

    Raises:
        FailedPreconditionError: There is no session, or a bucket with this name is in flight, as when two models use
            the same name; or with `sparsity` ranks are at different steps, or the model has other parameters than in
            the first step.
        InvalidArgumentError: `state` is None, and GLEANER_COMPRESSION names no compressor; or with `sparsity` the model
            has parameters of several types or devices, or a state was loaded that was saved with another Sparsity.
        TypeError: The bucket's type or device is not supported.
        GleanerError: The session has failed; see gleaner.errors.
    """
    flight = _Flight(bucket.buffer())
    try:
        _average(state, bucket, flight)
    except Exception as error:  # PyTorch's, too, such as after a failure of the GPU
        # This backward pass ends with the error, so it waits for no other bucket.
        for each in list(_in_flight):
            if each.thread == flight.thread:
                each.fail(error)
    return flight.average


class _Flight:
    """The future of one bucket, and the error that backward() raises. Thread safe.

    In a backward pass the future always gets a result, since DDP would make a RuntimeError of an error of the future.
    """

    def __init__(self, buffer: torch.Tensor) -> None:
        devices = [buffer.device] if buffer.is_cuda else None
        self.average: torch.futures.Future[torch.Tensor] = torch.futures.Future(devices=devices)
        self.thread = threading.get_ident()  # a thread runs one backward pass at a time
        self._buffer = buffer
        self._error: Optional[Exception] = None
        self._lock = threading.Lock()
        try:
            Variable._execution_engine.queue_callback(self._raise_after_ddp)
            self._is_in_backward = True
        except RuntimeError:
            self._is_in_backward = False
        _in_flight.add(self)

    def finish(self, tensor: torch.Tensor) -> None:
        with self._lock:
            if not self.average.done():
                _in_flight.discard(self)
                self.average.set_result(tensor)

    def fail(self, error: Exception) -> None:
        """Ends the flight without an average. A request that is under way still overwrites the buffer."""
        with self._lock:
            if self.average.done():
                return
            self._error = error
            _in_flight.discard(self)
            if self._is_in_backward:
                with contextlib.suppress(RuntimeError):  # a failed GPU can't record the events of a result
                    self.average.set_result(self._buffer)
            if not self.average.done():
                self.average.set_exception(error)

    def _raise_after_ddp(self) -> None:
        """Raises the error after the callback in which DDP waits for all buckets, at the end of the backward pass.

        DDP queues its callback with its last bucket, so this function queues another one, which comes after that.
        """
        Variable._execution_engine.queue_callback(self._raise)

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error.with_traceback(None) from None


_in_flight: set[_Flight] = set()


class _Pass:
    """One backward pass: the names of its buckets so far. torch's engine keeps it until the pass ends, or fails."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._has_ended = False
        Variable._execution_engine.queue_callback(self._end)

    @staticmethod
    def of_thread() -> "Optional[_Pass]":
        """Returns the pass that this thread runs, or None outside of backward()."""
        present: Optional[_Pass] = getattr(_thread, "present", lambda: None)()
        if present is None or present._has_ended:
            try:
                present = _Pass()
            except RuntimeError:
                return None
            _thread.present = weakref.ref(present)
        return present

    def has(self, name: str) -> bool:
        """Notes a bucket, and returns whether there was one of that name. DDP sends each bucket of a model once."""
        if name in self._names:
            return True
        self._names.add(name)
        return False

    def _end(self) -> None:
        self._has_ended = True


_thread = threading.local()


def _results_stream(buffer: torch.Tensor) -> "contextlib.AbstractContextManager[Any]":
    """Returns the context in which the thread gln-python waits for a bucket's copy to the GPU.

    Its stream is not one on which the backward pass goes on meanwhile. The future makes DDP's stream wait for it.
    """
    if not buffer.is_cuda:
        return contextlib.nullcontext()
    torch.cuda.set_device(buffer.device)  # the thread's own device would be GPU 0, and get a context of this process
    return torch.cuda.stream(_stream_of(buffer.device))


@functools.cache
def _stream_of(device: torch.device) -> "torch.cuda.Stream":
    return torch.cuda.Stream(device)


def _average(state: Optional[DDPState], bucket: torch.distributed.GradBucket, flight: _Flight) -> None:
    """Starts the request of a bucket. Later the thread gln-python ends its flight."""
    session = process.current()
    state = state or _default_state()
    buffer = bucket.buffer()
    name = f"{state.name}.{bucket.index()}.{buffer.numel()}"
    # Requests of two models under one name would mix their gradients if ranks reach the models in another order.
    present = _Pass.of_thread()
    if session.in_flight(name) or (present is not None and present.has(name)):
        raise FailedPreconditionError(
            f"bucket '{name}' comes twice in one backward pass, or is still in flight from the last one. If this "
            "process trains several models with DDP, register the hook of each model with its own name: "
            'register_comm_hook(gln.DDPState("encoder"), gln.ddp_hook)'
        )
    if state.sparse is not None:
        state.sparse.average(session, bucket, flight)
        return
    sent = sent_as(state.compression, buffer)
    if sent is None:  # otherwise the library sends from memory of its own
        session.attached(LastingInputs).register_if_unmoved(name, TORCH, buffer)
    options = PushPullOptions(name=name, priority=-bucket.index(), in_place=True, sent_as=sent)
    completions = session.attached(Completions)
    completions.on_done(
        lambda: exchange.push_pull_async(session, TORCH, buffer, options),
        done=flight.finish,
        failed=flight.fail,
        within=lambda: _results_stream(buffer),
    )
    if bucket.is_last():  # DDP waits next, for all futures
        completions.count_wait()
