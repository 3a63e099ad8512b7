"""The process group of backend gleaner: torch.distributed's names for the collectives of a group.

PyTorch calls the methods from Python and, for DDP and functional collectives, from C++, which passes all arguments by
position. PyTorch 1.13 and 2 have different names for some; the class has both.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Optional

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

from gleaner.errors import InvalidArgumentError
from gleaner.torch.distributed import coalesced, job, reductions
from gleaner.torch.distributed.channels import Channels
from gleaner.torch.distributed.coalescing import Coalescing, collected
from gleaner.torch.distributed.collectives import Collectives
from gleaner.torch.distributed.compression import sent_as_of_group
from gleaner.torch.distributed.layers import Layers
from gleaner.torch.distributed.works import GleanerWork, for_cpp

NAME = "gleaner"


class ProcessGroup(Coalescing, dist.ProcessGroup):
    """A process group whose collectives are Gleaner's. One thread at a time may call a group's methods.

    Args:
        store: Store of the group.
        rank: This rank in the group.
        size: Number of ranks of the group.
        timeout: Limit of each collective.
        members: The members' ranks in the default group; None or empty: they tell each other by the store.
        devices: Types of devices whose tensors the group takes.

    Raises:
        GleanerError: The job can't be joined; see gleaner.init().
    """

    supports_coalescing = False

    def __init__(
        self,
        store: Any,
        rank: int,
        size: int,
        timeout: timedelta,
        members: Optional[Sequence[int]] = None,
        devices: Sequence[str] = ("cpu", "cuda"),
    ) -> None:
        is_default = not dist.is_initialized()
        self._prepare(store, rank, size, timeout, devices)
        joined = job.join(store, rank, size)
        if is_default:
            self._begin(joined, joined.first_number, store, range(size))
            return
        if not members:
            members = _tell_members(store, rank, size, joined.session.rank_info.rank)
        self._begin(joined, joined.numbers(store, "group", job.NUMBERS_OF_GROUP), store, members)

    def _prepare(self, store: Any, rank: int, size: int, timeout: timedelta, devices: Sequence[str]) -> None:
        """Makes PyTorch's part of the group."""
        dist.ProcessGroup.__init__(self, rank, size)
        self._is_default = not dist.is_initialized()
        self._store = store
        self._splits = 0  # number of calls of split_group()
        self._sequence = 0
        self._timeout = timeout.total_seconds()
        if hasattr(self, "_register_backend"):
            # PyTorch 2 keeps a group's name, and finds its devices, by the backends in it.
            kind = dist.ProcessGroup.BackendType.CUSTOM
            inner = _placeholder(store, rank, size, timeout)
            for device in devices:
                self._register_backend(torch.device(device), kind, inner)
            self._set_default_backend(kind)

    def _begin(self, joined: job.Job, number: int, store: Any, members: Sequence[int]) -> None:
        """Makes Gleaner's part of the group.

        Args:
            joined: The job of this process.
            number: The first of NUMBERS_OF_GROUP numbers of the group.
            store: Store of the group, with the channels' numbers.
            members: The members' ranks in the job.
        """
        self._members = list(members)
        self._layers = Layers(joined.session, number, members, self._timeout)
        self._channels = Channels(joined, store, members, self.rank())
        if self._is_default:
            self._collectives.barrier().wait()  # a rank must not leave before the others have joined

    @property
    def _collectives(self) -> Collectives:
        return self._layers.here()

    def _end(self) -> None:
        """Ends Gleaner's part of the group."""
        self._channels.close()
        self._layers.close()

    def getBackendName(self) -> str:
        return NAME

    def name(self) -> str:
        return NAME

    def _set_sequence_number_for_group(self) -> None:
        self._sequence = 0

    def _get_sequence_number_for_group(self) -> int:
        return self._sequence

    def get_group_store(self) -> Any:
        return self._store

    def split_group(
        self,
        new_ranks: Sequence[int],
        timeout: Optional[timedelta] = None,
        opts: Any = None,
        group_name: Optional[str] = None,
        group_desc: Optional[str] = None,
        device_types: Optional[Sequence[torch.device]] = None,
    ) -> Optional[ProcessGroup]:
        """Returns a new group of some ranks of this group, in this order; None on the other ranks.

        All ranks of this group must call this, but groups that are made by one call may differ between ranks.

        Args:
            new_ranks: Ranks of this group.
            timeout: Limit of each collective; None: that of `opts`, or of this group.
            opts: Options of a backend, of which only the timeout counts.
            group_name: Name of the new group.
            group_desc: Its description.
            device_types: Devices whose tensors it takes; None: those of this group.

        Raises:
            GleanerError: The session has failed.
        """
        self._splits += 1
        if self.rank() not in new_ranks:
            return None
        # The name may be that of an earlier group, which has used its keys.
        store = dist.PrefixStore(f"split/{self._splits}/{'.'.join(map(str, new_ranks))}", self._store)
        limit = timeout or getattr(opts, "_timeout", None) or timedelta(seconds=self._timeout)
        devices = [device.type for device in device_types or self._device_types]
        members = [self._members[rank] for rank in new_ranks]
        group = ProcessGroup(store, list(new_ranks).index(self.rank()), len(members), limit, members, devices)
        if group_name is not None:
            group._set_group_name(group_name)
        group._set_group_desc(group_desc or f"{self.group_desc}:split:{self._splits}")
        return group

    def shutdown(self) -> None:
        """Ends the group and, if it is the default group of a job that no launcher has made, leaves the job."""
        self._end()
        if self._is_default:
            job.leave(failed=bool(GleanerWork.late))
            GleanerWork.late.clear()

    def abort(self) -> None:
        """Leaves the job in error, without waiting for anything."""
        job.leave(failed=True)

    def set_compression(self, compression: Any) -> None:
        """Does what compression.set_compression() says for this group."""
        sent_as = sent_as_of_group(compression)
        if sent_as is not None and len(self._members) != self._layers.session.rank_info.size:
            raise InvalidArgumentError("only a group of all ranks compresses sums; this one lacks some")
        self._layers.set_sent_as(sent_as)

    def set_timeout(self, timeout: timedelta) -> None:
        self._timeout = timeout.total_seconds()
        self._layers.set_timeout(self._timeout)

    _set_default_timeout = set_timeout

    # Reductions

    def allreduce(self, tensors: Any, options: Any = None, op: Any = None, timeout: Any = None) -> GleanerWork:
        reduce_op, given = reductions.premultiplied(_op(options, op), _list(tensors), in_place=True)
        return self._collectives.all_reduce(given, reduce_op, _seconds(options, timeout))

    def allreduce_coalesced(self, tensors: Any, options: Any = None) -> GleanerWork:
        return self.allreduce(tensors, options)

    def reduce(
        self, tensors: Any, options: Any = None, root: int = 0, op: Any = None, timeout: Any = None
    ) -> GleanerWork:
        root = getattr(options, "rootRank", root)
        is_root = self.rank() == root  # other ranks keep their tensors
        reduce_op, given = reductions.premultiplied(_op(options, op), [_only(tensors)], in_place=is_root)
        return self._collectives.reduce(given[0], reduce_op, root, _seconds(options, timeout))

    def reduce_scatter(
        self, outputs: Any, inputs: Any, options: Any = None, op: Any = None, timeout: Any = None
    ) -> GleanerWork:
        parts = _list(inputs)
        parts = parts[0] if isinstance(parts[0], (list, tuple)) else parts
        reduce_op, given = reductions.premultiplied(_op(options, op), parts, in_place=False)
        return self._collectives.reduce_scatter(_only(outputs), given, reduce_op, _seconds(options, timeout))

    def reduce_scatter_single(self, output: Any, whole: Any, options: Any = None, timeout: Any = None) -> GleanerWork:
        return self.reduce_scatter(output, [whole], options, timeout=timeout)

    def reduce_scatter_single_coalesced(self, outputs: Any, inputs: Any, options: Any = None) -> GleanerWork:
        reduce_op, given = reductions.premultiplied(_op(options), inputs, in_place=False)
        return coalesced.reduce_scatter(self._collectives, outputs, given, reduce_op, _seconds(options))

    # Collectives that move

    def broadcast(self, tensors: Any, options: Any = None, root: int = 0, timeout: Any = None) -> GleanerWork:
        root = getattr(options, "rootRank", root)
        return self._collectives.broadcast(_only(tensors), root, _seconds(options, timeout))

    def allgather(self, outputs: Any, inputs: Any, options: Any = None, timeout: Any = None) -> GleanerWork:
        into = _list(outputs)
        into = into[0] if isinstance(into[0], (list, tuple)) else into
        return self._collectives.all_gather(into, _only(inputs), _seconds(options, timeout))

    def all_gather_single(self, output: Any, given: Any, options: Any = None, timeout: Any = None) -> GleanerWork:
        return self._collectives.all_gather([output], given, _seconds(options, timeout))

    def all_gather_single_coalesced(self, outputs: Any, inputs: Any, options: Any = None) -> GleanerWork:
        return coalesced.all_gather(self._collectives, [[each] for each in outputs], inputs, _seconds(options))

    def allgather_coalesced(self, outputs: Any, inputs: Any, options: Any = None) -> GleanerWork:
        """Gathers several tensors of each rank: outputs[r][i] gets inputs[i] of rank r."""
        return coalesced.all_gather(self._collectives, list(zip(*outputs)), inputs, _seconds(options))

    def gather(self, outputs: Any, inputs: Any, options: Any = None, root: int = 0, timeout: Any = None) -> GleanerWork:
        root = getattr(options, "rootRank", root)
        into = outputs[0] if outputs and isinstance(outputs[0], (list, tuple)) else outputs
        return self._collectives.gather(into, _only(inputs), root, _seconds(options, timeout))

    def gather_single(self, output: Any, given: Any, options: Any = None) -> GleanerWork:
        return self.gather([output], [given], options)

    def scatter(
        self, outputs: Any, inputs: Any, options: Any = None, root: int = 0, timeout: Any = None
    ) -> GleanerWork:
        root = getattr(options, "rootRank", root)
        given = inputs[0] if inputs and isinstance(inputs[0], (list, tuple)) else inputs
        return self._collectives.scatter(_only(outputs), given, root, _seconds(options, timeout))

    def alltoall(self, outputs: Any, inputs: Any, options: Any = None) -> GleanerWork:
        return self._collectives.all_to_all(outputs, inputs, _seconds(options))

    def all_to_all_single(
        self,
        output: Any,
        given: Any,
        received: Sequence[int] = (),
        sent: Sequence[int] = (),
        options: Any = None,
        timeout: Any = None,
    ) -> GleanerWork:
        return self._collectives.all_to_all_single(output, given, received, sent, _seconds(options, timeout))

    def barrier(self, options: Any = None, timeout: Any = None, **more: Any) -> GleanerWork:
        options = more.get("opts", options)
        return self._collectives.barrier(_seconds(options, timeout))

    def monitored_barrier(self, timeout: Any = None, wait_all_ranks: bool = False) -> None:
        seconds = self._timeout if timeout is None else timeout.total_seconds()
        self._channels.meet(seconds, wait_all_ranks)

    # Between two ranks

    def send(self, tensors: Any, destination: int, tag: int = 0) -> GleanerWork:
        return self._channels.send(_only(tensors), destination, tag, self._timeout)

    def recv(self, tensors: Any, source: int, tag: int = 0) -> GleanerWork:
        return self._channels.receive(_only(tensors), source, tag, self._timeout)

    def recv_anysource(self, tensors: Any, tag: int = 0) -> GleanerWork:
        return self._channels.receive_any(_only(tensors), tag, self._timeout)

    recvAnysource = recv_anysource  # PyTorch's name for C++

    # The names of PyTorch 1.13, of which PyTorch 2 calls some, too

    _allgather_base = all_gather_single
    _reduce_scatter_base = reduce_scatter_single
    alltoall_base = all_to_all_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced


def _placeholder(store: Any, rank: int, size: int, timeout: timedelta) -> Any:
    """Returns a backend to register in a group. A collective that the group's class lacks would reach it, and fail."""
    fake = getattr(c10d, "FakeProcessGroup", None)
    if fake is not None and hasattr(fake.Options(), "error_on_collective"):
        options = fake.Options()
        options.error_on_collective = True
        return fake._create_internal(rank, size, options)
    return c10d.ProcessGroupGloo(store, rank, size, timeout)


def _tell_members(store: Any, rank: int, size: int, own: int) -> list[int]:
    """Returns the ranks in the default group of this group's members. `own`: that of this rank."""
    store.set(f"gleaner/member/{rank}", str(own))
    return [int(store.get(f"gleaner/member/{each}")) for each in range(size)]


def _list(tensors: Any) -> Any:
    return [tensors] if isinstance(tensors, torch.Tensor) else tensors


def _only(tensors: Any) -> torch.Tensor:
    """Returns the only tensor of a list."""
    if isinstance(tensors, torch.Tensor):
        return tensors
    if len(tensors) != 1:
        raise InvalidArgumentError(f"expected one tensor, not {len(tensors)}")
    return tensors[0]


def _op(options: Any, op: Any = None) -> Any:
    """Returns the operation of a reduction: of its options, or what is passed instead of options, or a sum."""
    if options is not None:
        return getattr(options, "reduceOp", options)
    return dist.ReduceOp.SUM if op is None else op


def _seconds(options: Any, timeout: Any = None) -> Optional[float]:
    """Returns the time limit of a collective; None: that of its group."""
    limit = timeout if timeout is not None else getattr(options, "timeout", None)
    if limit is None or limit.total_seconds() <= 0:
        return None
    return limit.total_seconds()


def _is_called_by_cpp() -> bool:
    """Returns whether the method that asks was called by the C++ code of PyTorch 1.13, such as that of DDP.

    The frame above is then of a thread of the autograd engine, or of PyTorch's Python code that has called C++.
    """
    frame = sys._getframe(1).f_back
    file = "" if frame is None else frame.f_code.co_filename
    return frame is None or (file.startswith(_TORCH) and not file.endswith("distributed_c10d.py"))


def _serving_cpp(name: str) -> Any:
    """Returns a method that returns works which C++ can use, where C++ calls it."""
    method = getattr(ProcessGroup, name)

    @functools.wraps(method)
    def called(self: ProcessGroup, *arguments: Any, **named: Any) -> Any:
        work = method(self, *arguments, **named)
        if not _is_called_by_cpp():
            return work
        if (
            name != "allreduce"
        ):  # DDP uses the future of an allreduce, which has the error, and else wait(), which has not
            work.wait()
        return for_cpp(work)

    return called


for _name in (
    *("allreduce", "allreduce_coalesced", "reduce", "broadcast", "barrier", "send", "recv"),
    *("reduce_scatter", "reduce_scatter_single", "_reduce_scatter_base"),
    *("reduce_scatter_single_coalesced", "reduce_scatter_tensor_coalesced"),
    *("allgather", "all_gather_single", "_allgather_base", "allgather_coalesced"),
    *("all_gather_single_coalesced", "allgather_into_tensor_coalesced"),
    *("gather", "gather_single", "scatter", "alltoall", "all_to_all_single", "alltoall_base"),
    *("recv_anysource", "recvAnysource"),
):
    setattr(ProcessGroup, _name, collected(getattr(ProcessGroup, _name)))

_TORCH = str(Path(torch.__file__).parent)
if not hasattr(dist.ProcessGroup, "_register_backend"):
    for _name in ("allreduce", "allgather", "_allgather_base", "broadcast", "reduce", "barrier"):
        setattr(ProcessGroup, _name, _serving_cpp(_name))
