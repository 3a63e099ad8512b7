"""Measures the Python layer: a call through torch.distributed, beside the same call by the C ABI alone.

This needs a job of one rank, in which no call waits for others. The calls take turns. Those by the C ABI have their
arguments ready, in structs of ctypes.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from gleaner import _abi, process
from gleaner._abi import Collective, DataType
from gleaner.groups import Group
from gleaner.session import Op
from gleaner.sums import sum_memory

ELEMENTS = 1024
NUMBER = 2**31 - 1  # of a group; the process groups have lower ones
WARM_CALLS = 100


def call_of_abi(
    group: Group, collective: Collective, given: torch.Tensor, output: torch.Tensor | None
) -> Callable[[], None]:
    """Returns a function that makes a call by the C ABI: starts it, and waits for it."""
    call = _abi.Call(ctypes.sizeof(_abi.Call), group.number, collective)
    call.input, call.input_bytes = given.data_ptr(), given.numel() * given.element_size()
    if output is not None:
        call.output, call.output_bytes = output.data_ptr(), output.numel() * output.element_size()
    session, handle = group.session, ctypes.c_uint64()
    pointer, start, wait = session._open(), session._library.gln_start_call, session._library.gln_wait
    to_call, to_handle = ctypes.byref(call), ctypes.byref(handle)

    def made() -> None:
        if start(pointer, to_call, to_handle) != 0 or wait(pointer, handle, 60.0) != 0:
            raise RuntimeError("a call by the C ABI has failed")

    return made


def calls(group: Group) -> dict[str, tuple[Callable[[], Any], Callable[[], None]]]:
    """Returns for each collective its call by torch.distributed and that by the C ABI."""
    given, output = torch.zeros(ELEMENTS), torch.zeros(ELEMENTS)
    gather = call_of_abi(group, Collective.ALL_GATHER, given, output)

    def gather_and_add() -> None:
        gather()
        sum_memory(DataType.FLOAT32, Op.SUM, [output.data_ptr()], given.data_ptr(), ELEMENTS)

    return {
        "all_reduce": (lambda: dist.all_reduce(given), gather_and_add),
        "broadcast": (lambda: dist.broadcast(given, 0), call_of_abi(group, Collective.BROADCAST, given, None)),
        "all_to_all_single": (
            lambda: dist.all_to_all_single(output, given),
            call_of_abi(group, Collective.ALL_TO_ALL, given, output),
        ),
    }


def measure(count: int) -> dict[str, dict[str, list[float]]]:
    """Returns for each collective the seconds of calls by torch.distributed ("torch") and by the C ABI ("abi")."""
    group = Group(process.current(), NUMBER, [0])
    found: dict[str, dict[str, list[float]]] = {}
    for name, (by_torch, by_abi) in calls(group).items():
        times: dict[str, list[float]] = {"torch": [], "abi": []}
        for _ in range(WARM_CALLS + count):
            for way, call in (("torch", by_torch), ("abi", by_abi)):
                begin = time.perf_counter()
                call()
                times[way].append(time.perf_counter() - begin)
        found[name] = {way: each[WARM_CALLS:] for way, each in times.items()}
    group.close()
    return found
