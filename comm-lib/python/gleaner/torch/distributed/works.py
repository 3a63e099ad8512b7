"""Works: what the functions of torch.distributed return for a collective in flight.

A work ends in the thread that waits for it, or, once it has given a future (get_future()), in the thread gln-python.
That thread also does the local part of the collective, such as adding what came from the other ranks. wait() and the
future raise the error of a collective that has failed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Callable, ClassVar, Optional

import torch
from torch._C import _distributed_c10d as c10d
from torch._C._distributed_c10d import Work

from gleaner.completions import Completions, pool
from gleaner.errors import DeadlineExceededError, GleanerError
from gleaner.session import Session
from gleaner.torch.distributed.futures import OrderedFuture

# Seconds between looks for a sender.
_SHORTEST_PAUSE = 20e-6
_LONGEST_PAUSE = 2e-3


class GleanerWork(Work):
    """A collective in flight. Thread safe.

    Args:
        name: Name of the collective in errors.
        outputs: Its results, of which result() and the future tell.
        timeout: Seconds that wait() waits at most.

    Attributes:
        late: Works of this process that were late and have not ended. Their requests are in flight.
    """

    late: ClassVar[set[GleanerWork]] = set()

    def __init__(self, name: str, outputs: Sequence[torch.Tensor], timeout: float) -> None:
        super().__init__()
        self._name = name
        self._outputs = list(outputs)
        self._timeout = timeout
        self._lock = threading.RLock()  # held by the thread that ends the work
        self._steps: list[Callable[[], None]] = []
        self.has_ended = threading.Event()
        self._error: Optional[Exception] = None
        self._future: Optional[OrderedFuture] = None
        self.source = -1  # the rank from which a receive has its tensor

    # The methods of Work, for PyTorch and its users

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        self.end_within(timeout.total_seconds() or self._timeout)
        if self._error is not None:
            raise self._error
        return True

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        return self.has_ended.is_set() or self._ends_at_once()

    def is_success(self) -> bool:
        return self.is_completed() and self._error is None

    def exception(self) -> Optional[Exception]:
        return self._error if self.is_completed() else None

    def result(self) -> list[torch.Tensor]:
        return self._outputs

    def get_future(self) -> OrderedFuture:
        with self._lock:
            if self._future is None:
                devices = sorted({tensor.device for tensor in self._outputs if tensor.is_cuda}, key=str)
                self._future = OrderedFuture(devices)
                if self.has_ended.is_set():
                    self._set_future()
                else:
                    self._watch()
            return self._future

    def _source_rank(self) -> int:
        return self.source

    source_rank = _source_rank

    def add_step(self, step: Callable[[], None], outputs: Sequence[torch.Tensor]) -> None:
        """Adds a local step at the end of the work, which then has these outputs. Nobody else may have the work yet."""
        self._steps.append(step)
        self._outputs = list(outputs)

    # For subclasses

    def end_within(self, seconds: float) -> None:
        """Waits until the work has ended. Raises DeadlineExceededError after `seconds`."""
        raise NotImplementedError

    def _ends_at_once(self) -> bool:
        """Ends the work if that needs no waiting, and returns whether it has ended."""
        raise NotImplementedError

    def _watch(self) -> None:
        """Sees to it that the work ends without a thread that waits for it. The caller holds the lock."""

    def _end(self, error: Optional[Exception]) -> None:
        """Does the last steps, and marks the end."""
        try:
            while self._steps and error is None:
                self._steps.pop(0)()
        except Exception as failed:  # PyTorch's
            error = failed
        self._error = error
        self.has_ended.set()
        GleanerWork.late.discard(self)
        if self._future is not None:
            pool().submit(self._set_future)

    def _set_future(self) -> None:
        if self._error is not None:
            self._future.set_exception(self._error)
        else:
            self._future.set_result(self._outputs)

    def _late(self, seconds: float, detail: str = "") -> DeadlineExceededError:
        GleanerWork.late.add(self)
        return DeadlineExceededError(
            f"{self._name}: Timed out after {seconds:g} s{f': {detail}' if detail else ''}. Another rank may be late, "
            "stuck, or call something else; init_process_group(timeout=…) sets the time"
        )


class JoinedWork(GleanerWork):
    """Several works as one."""

    def __init__(self, works: Sequence[GleanerWork]) -> None:
        name = works[0]._name if works else "nothing"
        outputs = [output for work in works for output in work.result()]
        super().__init__(name, outputs, max((work._timeout for work in works), default=0))
        self._works = list(works)

    def end_within(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        for work in self._works:
            work.end_within(max(0.0, until - time.monotonic()))
        self._take_end()

    def _ends_at_once(self) -> bool:
        if all([work.is_completed() for work in self._works]):
            self._take_end()
        return self.has_ended.is_set()

    def _take_end(self) -> None:
        with self._lock:
            if not self.has_ended.is_set():
                self._end(next((work._error for work in self._works if work._error is not None), None))

    def _watch(self) -> None:
        def ended(_: Any) -> None:
            if all(work.has_ended.is_set() for work in self._works):
                self._take_end()

        for work in self._works:
            work.get_future().call_at_end(ended)
        if not self._works:
            self._take_end()


class RequestWork(GleanerWork):
    """Requests of the session, and a function that completes the work once they are done."""

    def __init__(
        self,
        session: Session,
        handles: Sequence[int],
        finish: Callable[[], None],
        name: str,
        outputs: Sequence[torch.Tensor],
        timeout: float,
    ) -> None:
        super().__init__(name, outputs, timeout)
        self._session = session
        self._handles = list(handles)
        self._finish = finish
        self._is_watched = False

    def end_within(self, seconds: float) -> None:
        if self.has_ended.is_set():
            return
        until = time.monotonic() + seconds
        if not self._lock.acquire(timeout=seconds):
            raise self._late(seconds)
        try:
            if not self._is_watched:
                return self._run(seconds, until)
        finally:
            self._lock.release()
        if not self.has_ended.wait(max(0.0, until - time.monotonic())):
            raise self._late(seconds)

    def __del__(self) -> None:
        # A work for which no thread waits must end all the same, so the session keeps it until then.
        if not self.has_ended.is_set() and not self._is_watched and not self._session.closed:
            self._watch()

    def _ends_at_once(self) -> bool:
        if not self._lock.acquire(blocking=False):
            return False
        try:
            if not self.has_ended.is_set() and not self._is_watched and self._are_done():
                self._run(0, time.monotonic())
            return self.has_ended.is_set()
        finally:
            self._lock.release()

    def _are_done(self) -> bool:
        try:
            return all(map(self._session.poll, self._handles))
        except GleanerError:  # of a session that is closed; _run() gets it again
            return True

    def _run(self, seconds: float, until: float, is_watched: bool = False) -> None:
        """Waits for the requests, and completes the work. The caller holds the lock, or the requests are done.

        `is_watched`: another thread may use the results, on other streams of their GPU.
        """
        error: Optional[Exception] = None
        try:
            while self._handles:
                self._session.synchronize(self._handles[0], max(0.0, until - time.monotonic()))
                self._handles.pop(0)
            self._finish()
            if is_watched:
                finish_copies(self._outputs)
        except DeadlineExceededError as late:
            raise self._late(seconds, _detail(late)) from None
        except Exception as failed:  # PyTorch's, too
            error = failed
        self._handles.clear()
        self._end(error)

    def _missing(self, handles: Sequence[int]) -> str:
        """Returns which ranks have not sent what a late request waits for."""
        try:
            for handle in handles:
                self._session.synchronize(handle, 0)
        except GleanerError as error:
            return _detail(error)
        return ""

    def _watch(self) -> None:
        self._is_watched = True
        completions = self._session.attached(Completions)
        handles, missing = list(self._handles), len(self._handles)

        def finish() -> None:
            nonlocal missing
            missing -= 1
            if not missing:
                self._run(0, time.monotonic(), is_watched=True)

        def failed(error: GleanerError) -> None:
            if not self.has_ended.is_set():
                self._handles.clear()
                self._end(self._late(self._timeout, self._missing(handles)) if _is_late(error) else error)

        until = time.monotonic() + self._timeout
        for handle in handles:
            completions.watch(handle, finish, failed, until)


def finish_copies(tensors: Sequence[torch.Tensor]) -> None:
    """Waits for what the calling thread has queued on the GPUs of tensors."""
    for device in {tensor.device for tensor in tensors if tensor.is_cuda}:
        torch.cuda.current_stream(device).synchronize()


def _detail(error: GleanerError) -> str:
    """Returns what a request waits for, from the error of a time limit."""
    return str(error).partition(": ")[2]


def _is_late(error: GleanerError) -> bool:
    return isinstance(error, DeadlineExceededError)


def for_cpp(work: GleanerWork) -> Work:
    """Returns a work that the C++ code of PyTorch 1.13 can use, which knows no works that are written in Python.

    Its future raises the error of the collective, and its wait() does not.
    """

    def check(_: Any) -> list[torch.Tensor]:
        work.wait()
        return work.result()

    return c10d._create_work_from_future(work.get_future().call_at_end(check))


class LaterReceive(GleanerWork):
    """A receive that begins later: from the rank that sends first, or after such receives.

    Args:
        begun: Returns the receive, once it has begun; None before. The work asks while a thread waits for it.
    """

    def __init__(self, begun: Callable[[], Optional[GleanerWork]], tensor: torch.Tensor, timeout: float) -> None:
        super().__init__("recv from any rank", [tensor], timeout)
        self._begun = begun
        self._receive: Optional[GleanerWork] = None

    def end_within(self, seconds: float) -> None:
        until, pause = time.monotonic() + seconds, _SHORTEST_PAUSE
        while not self._has_begun():
            if time.monotonic() > until:
                raise self._late(seconds)
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        if not self.has_ended.is_set():
            self._receive.end_within(max(0.0, until - time.monotonic()))
            self._take_end()

    def _ends_at_once(self) -> bool:
        if self._has_begun() and not self.has_ended.is_set() and self._receive.is_completed():
            self._take_end()
        return self.has_ended.is_set()

    def _has_begun(self) -> bool:
        """Returns whether the receive has begun, or the work has ended since it can't."""
        with self._lock:
            try:
                if self._receive is None and not self.has_ended.is_set():
                    self._receive = self._begun()
            except GleanerError as error:
                self._end(error)
            return self._receive is not None or self.has_ended.is_set()

    def _take_end(self) -> None:
        with self._lock:
            self.source = self._receive.source
            if not self.has_ended.is_set():
                self._end(self._receive._error)

    def _watch(self) -> None:
        threading.Thread(target=self._wait_quietly, name="gln-receive", daemon=True).start()

    def _wait_quietly(self) -> None:
        try:
            self.end_within(self._timeout)
        except GleanerError as error:
            self._end(error)


class TaskWork(GleanerWork):
    """A work that a thread of the process group does, in steps of which each waits for other ranks."""

    def __init__(self, task: Callable[[], None], name: str, outputs: Sequence[torch.Tensor], timeout: float) -> None:
        super().__init__(name, outputs, timeout)
        self._task = task

    def run(self) -> None:
        """Does the work, in the group's thread."""
        error: Optional[Exception] = None
        try:
            self._task()
            finish_copies(self._outputs)
        except DeadlineExceededError as late:
            error = self._late(self._timeout, _detail(late))
        except Exception as failed:
            error = failed
        with self._lock:
            self._end(error)

    def end_within(self, seconds: float) -> None:
        if not self.has_ended.wait(seconds):
            raise self._late(seconds)

    def _ends_at_once(self) -> bool:
        return self.has_ended.is_set()
