"""The collectives of one process group, as works.

A collective is one call of the group (gleaner.groups), and where it adds, a sum on the rank that needs it, in the order
of ranks. Large tensors need several calls: a reduction cuts them into a part for each rank (an all-to-all), each rank
reduces its part, and the parts are gathered. Large sums go by push_pull instead, by the plan of the job: through its
summers, where it has some.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Sequence
from typing import Any, Callable, NamedTuple, Optional

import torch

from gleaner import exchange
from gleaner._abi import Collective
from gleaner.codec import SentAs
from gleaner.errors import DeadlineExceededError, InvalidArgumentError
from gleaner.exchange import PushPullOptions
from gleaner.groups import NOTHING, Block, Group
from gleaner.session import Session
from gleaner.torch.distributed import memory, reductions
from gleaner.torch.distributed.compression import label, told
from gleaner.torch.distributed.job import count_before
from gleaner.torch.distributed.tasks import Tasks
from gleaner.torch.distributed.works import GleanerWork, RequestWork, TaskWork
from gleaner.torch.tensors import DATA_TYPES, TORCH

# From this size of the tensors of all ranks on, a reduction cuts its tensor into a part for each rank. Below, each rank
# gets all tensors, which takes one call instead of two.
PARTS_BYTES = 512 << 10
# The same for an all_reduce of two ranks, which send no fewer bytes in two calls.
PARTS_BYTES_OF_TWO = 2 << 20
# From this size of a tensor on, sums go by push_pull, which takes longer to begin.
PUSH_PULL_BYTES = 1 << 20
# At most this many tensors of one type and size are in flight by push_pull. Each has a name, and a place in the plan.
SLOTS = 32
# At most this many names of tensors of a group, and groups with such names only among the first numbers. Sums beyond
# go by calls, so that the plan does not grow without bound.
MOST_NAMES = 1024
MOST_NUMBERS = 512
# Bytes of the text by which ranks compare the first sum of a type and size. The longest text has about 100.
CALL_BYTES = 128


class _Last(NamedTuple):
    has_ended: threading.Event
    work: Callable[[], Optional[GleanerWork]]
    memory: tuple[int, int]  # first address, and the address after the last one

    def meets(self, has_name: bool, memory: tuple[int, int]) -> bool:
        """Returns whether a sum with this memory, and perhaps the same name, can't begin before this one has ended."""
        return has_name or (self.memory[0] < memory[1] and memory[0] < self.memory[1])


class Collectives:
    """The collectives of one group. All ranks call the same methods in the same order.

    Args:
        session: The session of this rank.
        number: The first of two numbers of groups that all members agree upon.
        members: The members' ranks in the job.
        timeout: Seconds that a collective may take, if its caller names no other time.
    """

    def __init__(self, session: Session, number: int, members: Sequence[int], timeout: float) -> None:
        self.session = session
        self.timeout = timeout
        self._group = Group(session, number, members)
        self._tasks_group = Group(session, number + 1, members)
        self._tasks = Tasks()
        self._lock = threading.Lock()  # of starts
        self.rank, self.size = self._group.rank, self._group.size
        # A push_pull adds in the order of the job's ranks, which is that of the group in nearly all programs.
        self._may_push_pull = list(members) == sorted(members) and count_before(number) < MOST_NUMBERS
        self._number = number
        self._sums: dict[tuple[torch.dtype, int], int] = {}  # number of sums by push_pull, of each type and size
        self._to_compare: set[tuple[torch.dtype, int]] = set()  # types and sizes without a sum since set_sent_as()
        self._last: dict[str, _Last] = {}  # the last work under each name
        self._sent_as: Optional[SentAs] = None  # how sums of float32 by push_pull travel

    def set_sent_as(self, sent_as: Optional[SentAs]) -> None:
        """Sets how sums of float32 by push_pull travel. The next sum of each size compares this with other ranks."""
        self._sent_as = sent_as
        self._to_compare = set(self._sums)

    def close(self) -> None:
        """Ends the group's thread after its works, and removes the group."""
        self._tasks.close()
        self._group.close()
        self._tasks_group.close()

    # Collectives of one call

    def broadcast(self, tensor: torch.Tensor, root: int, timeout: Optional[float] = None) -> GleanerWork:
        memory.check(tensor)
        if self.rank == root:
            source = memory.given(tensor)
            return self.start(Collective.BROADCAST, "broadcast", memory.block(source), NOTHING, root, [tensor], timeout)
        target = memory.room(tensor)
        return self.start(
            Collective.BROADCAST,
            "broadcast",
            NOTHING,
            memory.block(target),
            root,
            [tensor],
            timeout,
            lambda: memory.take_over(tensor, target),
        )

    def all_gather(
        self, outputs: Sequence[torch.Tensor], given: torch.Tensor, timeout: Optional[float] = None
    ) -> GleanerWork:
        """Gathers `given` of all ranks: into `outputs`, one for each rank or one that has room for all."""
        rows, finish = self.rows(outputs, given)
        source = memory.given(given)
        blocks = memory.block(source), memory.block(rows)
        return self.start(Collective.ALL_GATHER, "all_gather", *blocks, 0, outputs, timeout, finish)

    def gather(
        self, outputs: Sequence[torch.Tensor], given: torch.Tensor, root: int, timeout: Optional[float] = None
    ) -> GleanerWork:
        source = memory.given(given)
        if self.rank != root:
            return self.start(Collective.GATHER, "gather", memory.block(source), NOTHING, root, [], timeout)
        rows, finish = self.rows(outputs, given)
        blocks = memory.block(source), memory.block(rows)
        return self.start(Collective.GATHER, "gather", *blocks, root, outputs, timeout, finish)

    def scatter(
        self, output: torch.Tensor, given: Sequence[torch.Tensor], root: int, timeout: Optional[float] = None
    ) -> GleanerWork:
        memory.check(output)
        target = memory.room(output)
        source = None
        if self.rank == root:
            self._check_parts(given, output, "scatter")
            source = memory.flat(given)
        return self.start(
            Collective.SCATTER,
            "scatter",
            NOTHING if source is None else memory.block(source),
            memory.block(target),
            root,
            [output],
            timeout,
            lambda: memory.take_over(output, target),
        )

    def all_to_all(
        self, outputs: Sequence[torch.Tensor], given: Sequence[torch.Tensor], timeout: Optional[float] = None
    ) -> GleanerWork:
        """Sends given[i] to rank i, and receives outputs[i] from it. Tensors may differ in size."""
        for tensors, what in ((outputs, "outputs"), (given, "inputs")):
            if len(tensors) != self.size:
                raise InvalidArgumentError(
                    f"all_to_all: {len(tensors)} {what}, expected one for each of {self.size} ranks"
                )
            for tensor in tensors:
                memory.check(tensor)
        source = memory.flat(given)
        target = torch.empty(sum(tensor.numel() for tensor in outputs), dtype=outputs[0].dtype)

        def finish() -> None:
            for tensor, part in zip(outputs, target.split([each.numel() for each in outputs])):
                memory.take_over(tensor, part)

        sent, received = ([each.numel() * each.element_size() for each in tensors] for tensors in (given, outputs))
        return self._start_exchange("all_to_all", source, target, sent, received, outputs, timeout, finish)

    def all_to_all_single(
        self,
        output: torch.Tensor,
        given: torch.Tensor,
        received: Sequence[int],
        sent: Sequence[int],
        timeout: Optional[float] = None,
    ) -> GleanerWork:
        """Does the same with one tensor in each direction.

        `received` and `sent` are the numbers of rows for each rank. Empty: all ranks have the same number.
        """
        memory.check(output)
        memory.check(given)
        source, target = memory.given(given), memory.room(output)
        bytes_sent, bytes_received = self._bytes(given, sent, "input"), self._bytes(output, received, "output")
        return self._start_exchange(
            "all_to_all_single",
            source,
            target,
            bytes_sent,
            bytes_received,
            [output],
            timeout,
            lambda: memory.take_over(output, target),
        )

    def reduce_scatter(
        self, output: torch.Tensor, given: Sequence[torch.Tensor], op: Any, timeout: Optional[float] = None
    ) -> GleanerWork:
        """Reduces given[i] of all ranks on rank i, or the parts of the only tensor of `given`."""
        memory.check(output)
        name = reductions.check(op, output)
        if len(given) != 1:
            self._check_parts(given, output, "reduce_scatter")
        else:
            self.check_whole(given[0], output)
        source = memory.given(given[0]) if len(given) == 1 else memory.flat(given)
        rows, target = self._new_rows(output), memory.room(output)

        def finish() -> None:
            reductions.reduce(name, rows, target.view(-1))
            memory.take_over(output, target)

        blocks = memory.block(source), memory.block(rows)
        return self.start(Collective.ALL_TO_ALL, "reduce_scatter", *blocks, 0, [output], timeout, finish, name)

    def check_whole(self, whole: torch.Tensor, output: torch.Tensor) -> None:
        """Raises InvalidArgumentError unless the input of a reduce_scatter has a part for each rank like its output."""
        if whole.numel() != self.size * output.numel() or whole.dtype != output.dtype:
            raise InvalidArgumentError(
                f"reduce_scatter: the input has {whole.numel()} elements of {whole.dtype}, expected "
                f"{self.size * output.numel()} of {output.dtype}: {self.size} times the output"
            )

    def barrier(self, timeout: Optional[float] = None) -> GleanerWork:
        source, rows = torch.zeros(1, dtype=torch.uint8), torch.empty(self.size, dtype=torch.uint8)
        blocks = memory.block(source), memory.block(rows)
        return self.start(Collective.ALL_GATHER, "barrier", *blocks, 0, [], timeout, op="BARRIER")

    # Reductions

    def all_reduce(self, tensors: Sequence[torch.Tensor], op: Any, timeout: Optional[float] = None) -> GleanerWork:
        """Reduces each tensor over all ranks, in place. Tensors of one type are reduced as one."""
        if len(tensors) != 1:
            return self._all_reduce_as_one(tensors, op, timeout)
        tensor = tensors[0]
        if tensor.layout is torch.sparse_coo:
            return self._submit("all_reduce", lambda wait: self._add_sparse(tensor, op, wait), [tensor], timeout)
        memory.check(tensor)
        name = reductions.check(op, tensor)
        size = tensor.numel() * tensor.element_size()
        if size >= PUSH_PULL_BYTES and self._can_push_pull(tensor, name):
            return self._push_pull(tensor, name, timeout)
        if size * self.size >= (PARTS_BYTES if self.size > 2 else PARTS_BYTES_OF_TWO):
            source = memory.given(tensor)
            return self._submit(
                "all_reduce", lambda wait: self._reduce_parts(tensor, source, name, wait), [tensor], timeout
            )
        source, rows, target = memory.given(tensor), self._new_rows(tensor), memory.room(tensor)

        def finish() -> None:
            reductions.reduce(name, rows, target.view(-1))
            memory.take_over(tensor, target)

        blocks = memory.block(source), memory.block(rows)
        return self.start(Collective.ALL_GATHER, "all_reduce", *blocks, 0, [tensor], timeout, finish, name)

    def reduce(self, tensor: torch.Tensor, op: Any, root: int, timeout: Optional[float] = None) -> GleanerWork:
        """Reduces the tensor over all ranks on rank `root`; other ranks keep theirs."""
        memory.check(tensor)
        name = reductions.check(op, tensor)
        if tensor.numel() * tensor.element_size() * self.size >= PARTS_BYTES:
            source = memory.given(tensor)
            return self._submit(
                "reduce", lambda wait: self._reduce_parts(tensor, source, name, wait, root), [tensor], timeout
            )
        source = memory.given(tensor)
        if self.rank != root:
            given = memory.block(source)
            return self.start(Collective.GATHER, "reduce", given, NOTHING, root, [tensor], timeout, op=name)
        rows, target = self._new_rows(tensor), memory.room(tensor)

        def finish() -> None:
            reductions.reduce(name, rows, target.view(-1))
            memory.take_over(tensor, target)

        blocks = memory.block(source), memory.block(rows)
        return self.start(Collective.GATHER, "reduce", *blocks, root, [tensor], timeout, finish, name)

    def _all_reduce_as_one(self, tensors: Sequence[torch.Tensor], op: Any, timeout: Optional[float]) -> GleanerWork:
        """Sums tensors of one type and device, one after the other, as one tensor."""
        for tensor in tensors:
            memory.check(tensor)
        if len({(tensor.dtype, tensor.device) for tensor in tensors}) > 1:
            raise InvalidArgumentError("all_reduce_coalesced: tensors must have one dtype and one device")
        whole = torch.cat([tensor.detach().reshape(-1) for tensor in tensors])
        work = self.all_reduce([whole], op, timeout)

        def finish() -> None:
            for tensor, part in zip(tensors, whole.split([each.numel() for each in tensors])):
                with torch.no_grad():
                    tensor.copy_(part.view(tensor.shape))

        work.add_step(finish, tensors)
        return work

    def _reduce_parts(
        self,
        tensor: torch.Tensor,
        source: torch.Tensor,
        op: str,
        wait: Callable[[int], None],
        root: Optional[int] = None,
    ) -> None:
        """Reduces the tensor in parts, one on each rank, and gathers them on all ranks, or on the root.

        `source` has the tensor's elements in memory of the host.
        """
        target = memory.room(tensor)
        elements = -(-tensor.numel() // self.size)  # of each part
        if elements * self.size != tensor.numel():  # the last parts have further elements, which nobody needs
            padded = source.new_zeros(elements * self.size)
            padded[: tensor.numel()] = source.view(-1)
            source, target = padded, padded
        rows = source.new_empty((self.size, elements))
        group, kind = self._tasks_group, reductions.kind(tensor, op)
        wait(group.start(Collective.ALL_TO_ALL, "all_reduce", memory.block(source), memory.block(rows), 0, kind))
        part = source.new_empty(elements)
        reductions.reduce(op, rows, part)
        given = memory.block(part)
        if root is None:
            wait(group.start(Collective.ALL_GATHER, "all_reduce", given, memory.block(target), 0, kind))
        else:
            result = memory.block(target) if self.rank == root else NOTHING
            wait(group.start(Collective.GATHER, "reduce", given, result, root, kind))
        if root is None or self.rank == root:
            memory.take_over(tensor, target.view(-1)[: tensor.numel()])

    def _add_sparse(self, tensor: torch.Tensor, op: Any, wait: Callable[[int], None]) -> None:
        """Adds sparse tensors: gathers how many elements each rank has, then the elements themselves."""
        if reductions.name_of(op) != "SUM":
            raise InvalidArgumentError("sparse tensors have no reduction but ReduceOp.SUM")
        own = tensor.detach().coalesce()
        counts = self._gather_now(torch.tensor([own._nnz()]), wait).view(-1).tolist()
        most = max(counts)
        indices = own.indices().new_zeros((most, own.sparse_dim()))
        values = own.values().new_zeros((most, *own.values().shape[1:]))
        indices[: own._nnz()], values[: own._nnz()] = own.indices().t(), own.values()
        all_indices, all_values = self._gather_now(indices, wait), self._gather_now(values, wait)
        parts = [
            torch.sparse_coo_tensor(all_indices[rank, :count].t(), all_values[rank, :count], own.shape)
            for rank, count in enumerate(counts)
        ]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        with torch.no_grad():
            tensor.copy_(total.coalesce())

    def _gather_now(self, tensor: torch.Tensor, wait: Callable[[int], None]) -> torch.Tensor:
        """Gathers a tensor of all ranks in the thread of the tasks. The result has a row for each rank."""
        source = memory.given(tensor)
        rows = torch.empty((self.size, *tensor.shape), dtype=tensor.dtype)
        blocks = memory.block(source), memory.block(rows)
        wait(self._tasks_group.start(Collective.ALL_GATHER, "all_reduce", *blocks, 0, reductions.kind(tensor)))
        return rows.to(tensor.device)

    def _can_push_pull(self, tensor: torch.Tensor, op: str) -> bool:
        if not self._may_push_pull or tensor.dtype not in DATA_TYPES or op not in ("SUM", "AVG"):
            return False
        slots = self._sums.get((tensor.dtype, tensor.numel()), 0)
        return slots >= SLOTS or len(self._last) < MOST_NAMES

    def _push_pull(self, tensor: torch.Tensor, op: str, timeout: Optional[float]) -> GleanerWork:
        key = tensor.dtype, tensor.numel()
        count = self._sums.get(key, 0)
        self._sums[key] = count + 1
        compares = count == 0 or key in self._to_compare
        self._to_compare.discard(key)
        dtype = str(tensor.dtype).rpartition(".")[2]
        sent_as = self._sent_as if tensor.dtype == torch.float32 else None
        members = self._group.members if sent_as is None else None  # only groups of all ranks compress
        name = f"all_reduce.{self._number}.{dtype}.{tensor.numel()}.{count % SLOTS}{label(sent_as)}"
        options = PushPullOptions(average=op == "AVG", name=name, in_place=True, members=members, sent_as=sent_as)
        begin = tensor.data_ptr()
        place = begin, begin + tensor.numel() * tensor.element_size()
        earlier = [
            last for key, last in self._last.items() if not last.has_ended.is_set() and last.meets(key == name, place)
        ]
        if earlier or compares:
            # The calling thread must not wait for the sums that have the name or the memory, or for other ranks.
            memory.settle(tensor)

            def task(wait: Callable[[int], None]) -> None:
                for last in earlier:
                    self._end(last)
                if compares:
                    self._agree_on(tensor, op, sent_as, self._gather_now if count == 0 else self._gather_changes, wait)
                wait(exchange.push_pull_async(self.session, TORCH, tensor.detach(), options))

            work: GleanerWork = self._submit("all_reduce", task, [tensor], timeout)
        else:
            handle = exchange.push_pull_async(self.session, TORCH, tensor.detach(), options)
            title = f"all_reduce of {tensor.numel()} {dtype}"  # the names of ranks that differ in it never meet
            work = RequestWork(self.session, [handle], _nothing, title, [tensor], self._seconds(timeout))
        self._last[name] = _Last(work.has_ended, weakref.ref(work), place)
        return work

    def _end(self, last: _Last) -> None:
        work = last.work()
        if work is not None:
            work.end_within(self.timeout)
        elif not last.has_ended.wait(self.timeout):
            raise DeadlineExceededError("all_reduce: an earlier sum of this size has not ended")

    def _agree_on(
        self,
        tensor: torch.Tensor,
        op: str,
        sent_as: Optional[SentAs],
        gather: Callable[[torch.Tensor, Callable[[int], None]], torch.Tensor],
        wait: Callable[[int], None],
    ) -> None:
        """Raises an error if another rank sums another type, size or compression: their names would never meet."""
        call = f"{reductions.described(reductions.kind(tensor, op), tensor.numel())} with {told(sent_as)}"
        own = torch.tensor(list(call.encode().ljust(CALL_BYTES)), dtype=torch.uint8)
        for rank, other in enumerate(gather(own, wait)):
            if not torch.equal(other, own):
                self._sums.pop((tensor.dtype, tensor.numel()), None)  # the next sum asks again
                others_call = bytes(other.tolist()).decode().rstrip()
                raise InvalidArgumentError(
                    f"all_reduce: rank {self.rank} of the group calls {call}, and rank {rank} {others_call}; all ranks "
                    "must make the same calls in the same order, with the same sizes, types and reductions, and "
                    "the same compression (gleaner.torch.distributed.set_compression)"
                )

    def _gather_changes(self, own: torch.Tensor, wait: Callable[[int], None]) -> torch.Tensor:
        """Does what _gather_now() does for bytes, as a push_pull.

        A rank that has not called set_compression() waits in a push_pull of its own meanwhile, so both end with the
        group's timeout.
        """
        rows = torch.zeros((self.size, own.numel()), dtype=torch.int32)
        rows[self.rank] = own
        name, members = f"set_compression.{self._number}", self._group.members
        options = PushPullOptions(average=False, name=name, in_place=True, members=members)
        wait(exchange.push_pull_async(self.session, TORCH, rows, options))
        return rows.to(torch.uint8)

    # Parts of the above

    def _seconds(self, timeout: Optional[float]) -> float:
        return self.timeout if timeout is None else timeout

    def start(
        self,
        collective: Collective,
        name: str,
        given: Block,
        result: Block,
        root: int,
        outputs: Sequence[torch.Tensor],
        timeout: Optional[float],
        finish: Optional[Callable[[], None]] = None,
        op: str = "MOVE",
    ) -> GleanerWork:
        """Starts a collective of one call. `finish` takes its result over."""
        with self._lock:
            handle = self._group.start(collective, name, given, result, root, _kind(given, result, op))
        return RequestWork(self.session, [handle], finish or _nothing, name, outputs, self._seconds(timeout))

    def _start_exchange(
        self,
        name: str,
        given: torch.Tensor,
        result: torch.Tensor,
        sent: Sequence[int],
        received: Sequence[int],
        outputs: Sequence[torch.Tensor],
        timeout: Optional[float],
        finish: Callable[[], None],
    ) -> GleanerWork:
        with self._lock:
            blocks = memory.block(given), memory.block(result)
            handle = self._group.start_exchange(name, *blocks, sent, received, reductions.kind(given))
        return RequestWork(self.session, [handle], finish, name, outputs, self._seconds(timeout))

    def _submit(
        self,
        name: str,
        task: Callable[[Callable[[int], None]], None],
        outputs: Sequence[torch.Tensor],
        timeout: Optional[float],
    ) -> GleanerWork:
        seconds = self._seconds(timeout)
        until = time.monotonic() + seconds

        def wait(handle: int) -> None:
            self.session.synchronize(handle, max(0.0, until - time.monotonic()))

        return self._tasks.submit(TaskWork(lambda: task(wait), name, outputs, seconds))

    def _new_rows(self, tensor: torch.Tensor) -> torch.Tensor:
        return torch.empty((self.size, tensor.numel()), dtype=tensor.dtype)

    def rows(self, outputs: Sequence[torch.Tensor], given: torch.Tensor) -> tuple[torch.Tensor, Callable[[], None]]:
        """Returns memory for a tensor of each rank, and the function that takes it over into the outputs."""
        memory.check(given)
        if len(outputs) == 1 and self.size > 1:
            whole = outputs[0]
            memory.check(whole)
            if whole.numel() != self.size * given.numel() or whole.dtype != given.dtype:
                raise InvalidArgumentError(
                    f"all_gather: the output has {whole.numel()} elements of {whole.dtype}, expected "
                    f"{self.size * given.numel()} of {given.dtype}: {self.size} times the input"
                )
            target = memory.room(whole)
            return target, lambda: memory.take_over(whole, target)
        self._check_parts(outputs, given, "all_gather")
        rows = self._new_rows(given)

        def finish() -> None:
            for output, row in zip(outputs, rows):
                memory.take_over(output, row)

        return rows, finish

    def _check_parts(self, parts: Sequence[torch.Tensor], like: torch.Tensor, name: str) -> None:
        if len(parts) != self.size:
            raise InvalidArgumentError(f"{name}: {len(parts)} tensors, expected one for each of {self.size} ranks")
        for part in parts:
            memory.check(part)
            if part.numel() != like.numel() or part.dtype != like.dtype:
                raise InvalidArgumentError(
                    f"{name}: a tensor has {part.numel()} elements of {part.dtype}, expected {like.numel()} of "
                    f"{like.dtype}, as the others"
                )

    def _bytes(self, tensor: torch.Tensor, rows: Sequence[int], what: str) -> list[int]:
        """Returns the bytes for each rank, if it gets so many rows of the tensor. No rows: all ranks get the same."""
        have = tensor.shape[0] if tensor.dim() else 0
        if not rows:
            if have % self.size:
                raise InvalidArgumentError(
                    f"all_to_all_single: {self.size} ranks can't share {have} rows of the {what} evenly"
                )
            rows = [have // self.size] * self.size
        if len(rows) != self.size or sum(rows) != have:
            raise InvalidArgumentError(
                f"all_to_all_single: the splits {list(rows)} do not fit the {have} rows of the {what} and the "
                f"{self.size} ranks"
            )
        row_bytes = tensor.numel() // have * tensor.element_size() if have else 0
        return [each * row_bytes for each in rows]


def _kind(given: Block, result: Block, op: str) -> int:
    tensor = result.owner if given.owner is None else given.owner
    return 0 if tensor is None else reductions.kind(tensor, op)


def _nothing() -> None:
    pass
