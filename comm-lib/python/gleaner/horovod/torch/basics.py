"""init(), shutdown(), the numbers of a rank, process sets, and what this build of Horovod would have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Union

from gleaner import process
from gleaner.errors import FailedPreconditionError, InvalidArgumentError
from gleaner.horovod.torch import joining
from gleaner.horovod.torch.layer import Present, present
from gleaner.horovod.torch.process_sets import ProcessSet


def init(comm: Any = None, process_sets: Union[Iterable[Any], str, None] = None) -> None:
    """Joins the job, under `gleaner run`, torchrun or in a TrainingJob. Collective; blocks. Later calls do nothing.

    Args:
        comm: None: there are no communicators of MPI.
        process_sets: Process sets to add, the same on all ranks; a set with the ranks of another stays unusable.
            "dynamic" has no effect: sets can always be added.

    Raises:
        InvalidArgumentError: There is a `comm`, or a process set is wrong.
        FailedPreconditionError: Workers have several local ranks.
        GleanerError: As in gleaner.init().
    """
    if comm is not None and list(comm):
        raise InvalidArgumentError("init() takes no comm: pass process_sets=[…] for a subset of ranks")
    joining.join()
    info = process.current().rank_info
    if info.local_size > 1:
        raise FailedPreconditionError(
            f"gleaner.horovod needs one worker for each rank, and the workers of this job have {info.local_size} local "
            f"ranks each: start the job with --workers {info.size} and without --local-ranks"
        )
    sets = [] if process_sets is None or isinstance(process_sets, str) else list(process_sets)
    process.current().attached(Present).open(sets)


def shutdown() -> None:
    """Ends the use of Horovod's names. The rank leaves the job when the process exits, so that init() may follow."""
    if process.is_initialized():
        process.current().attached(Present).close()


def is_initialized() -> bool:
    return process.is_initialized() and process.current().attached(Present).is_open


def rank() -> int:
    return present().rank


def size() -> int:
    return present().size


def local_rank() -> int:
    """Returns the number of this rank among the ranks of its host."""
    return _on_host(present().rank)[1]


def local_size() -> int:
    """Returns the number of ranks of this rank's host."""
    hosts = present().hosts
    return hosts.count(hosts[rank()])


def cross_rank() -> int:
    """Returns the number of this rank's host, among hosts that have a rank with its local_rank()."""
    own_host, own = _on_host(rank())
    hosts = list(dict.fromkeys(each for each in present().hosts if present().hosts.count(each) > own))
    return hosts.index(own_host)


def cross_size() -> int:
    """Returns the number of hosts that have a rank with this rank's local_rank()."""
    hosts = present().hosts
    return sum(hosts.count(host) > local_rank() for host in set(hosts))


def is_homogeneous() -> bool:
    """Returns whether all hosts have the same number of ranks."""
    hosts = present().hosts
    return len({hosts.count(host) for host in hosts}) == 1


def _on_host(rank: int) -> tuple[str, int]:
    """Returns the host of a rank, and its number there."""
    hosts = present().hosts
    return hosts[rank], hosts[:rank].count(hosts[rank])


def add_process_set(process_set: Union[ProcessSet, Sequence[int]]) -> ProcessSet:
    """Makes a process set usable, and returns it. All ranks of the job must call this. Collective; blocks.

    Raises:
        InvalidArgumentError: The set has no ranks, unknown ranks, or those of another set; or ranks differ in it.
        GleanerError: The session has failed.
    """
    return present().add(process_set)


def remove_process_set(process_set: ProcessSet) -> bool:
    """Removes a process set. All ranks of the job must call this. Collective; blocks.

    Returns:
        Whether there was such a set, other than that of all ranks.
    """
    return present().remove(process_set)


def start_timeline(file_path: str, mark_cycles: bool = False) -> None:
    """Raises InvalidArgumentError: `gleaner trace` records what a timeline shows."""
    raise InvalidArgumentError("Gleaner has no timeline: `gleaner trace` records and merges the events of all ranks")


def stop_timeline() -> None:
    """Does nothing."""


def mpi_threads_supported() -> bool:
    return False


def mpi_enabled() -> bool:
    return False


def mpi_built() -> bool:
    return False


def gloo_enabled() -> bool:
    """Returns True, by which scripts choose what needs no MPI."""
    return True


def gloo_built() -> bool:
    return True


def nccl_built() -> int:
    return 0


def ddl_built() -> bool:
    return False


def ccl_built() -> bool:
    return False


def cuda_built() -> bool:
    return False


def rocm_built() -> bool:
    return False
