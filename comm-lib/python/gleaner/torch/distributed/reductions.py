"""Reduces the tensors of all ranks on one rank, in the order of ranks, for each operation of torch.distributed.

Sums and averages of the types that push_pull sums have its bits: 16-bit floats are added as float32, and rounded once.
All other types and operations are PyTorch's, from the left to the right.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any, Callable

import torch
from torch.distributed import ReduceOp

from gleaner.errors import InvalidArgumentError
from gleaner.session import Op
from gleaner.sums import sum_memory
from gleaner.torch.distributed import memory
from gleaner.torch.tensors import DATA_TYPES

# By the operation's name, which PyTorch 1.13 and 2 spell in the same way.
_STEPS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "SUM": torch.add,
    "AVG": torch.add,
    "PRODUCT": torch.mul,
    "MIN": torch.minimum,
    "MAX": torch.maximum,
    "BAND": torch.bitwise_and,
    "BOR": torch.bitwise_or,
    "BXOR": torch.bitwise_xor,
}
_TYPES = (
    *(torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.complex128),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
)
_MOST_TYPES = 200
_MOVES = ("MOVE", "BARRIER", *_STEPS)  # MOVE: no reduction
_KERNEL_OPS = {"SUM": Op.SUM, "AVG": Op.AVERAGE}
_PREMULTIPLIED = (torch.float32, torch.float64, torch.float16, torch.bfloat16)  # the types that PREMUL_SUM takes


def name_of(op: Any) -> str:
    """Returns the name of an operation: SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR or PREMUL_SUM."""
    kind = getattr(op, "op", op)  # a ReduceOp of PyTorch 2 holds a RedOpType
    return getattr(kind, "name", None) or str(kind).rpartition(".")[2]


def check(op: Any, tensor: torch.Tensor) -> str:
    """Returns the name of an operation that is possible for the tensor.

    Raises:
        RuntimeError: The operation is unknown, or not possible for the tensor's type.
    """
    name = name_of(op)
    if name not in _STEPS:
        raise InvalidArgumentError(f"backend gleaner has no ReduceOp.{name}; it has {', '.join(_STEPS)}")
    if name.startswith("B") and (tensor.is_floating_point() or tensor.is_complex()):
        raise InvalidArgumentError(f"cannot use ReduceOp.{name} with {tensor.dtype}, whose bits are not an integer")
    if name in ("MIN", "MAX") and tensor.is_complex():
        raise InvalidArgumentError(f"{tensor.dtype} does not support ReduceOp.{name}: complex numbers have no order")
    if name == "AVG" and not (tensor.is_floating_point() or tensor.is_complex()):
        raise InvalidArgumentError(f"an average of {tensor.dtype} is not an integer: use ReduceOp.SUM")
    return name


def premultiplied(op: Any, tensors: Sequence[torch.Tensor], in_place: bool) -> tuple[Any, list[torch.Tensor]]:
    """Returns SUM, and tensors multiplied by the factor of a PREMUL_SUM. Returns other operations as they are.

    As in NCCL, the factor is rounded to the type of the tensor, and each product as well. Ranks may have different
    factors.

    Args:
        op: The operation of a reduction.
        tensors: The contributions of this rank.
        in_place: True: overwrites the tensors with their products. False: makes new tensors.

    Raises:
        InvalidArgumentError: A tensor has no type that PREMUL_SUM takes, or the operation tells no factor.
    """
    if name_of(op) != "PREMUL_SUM":
        return op, list(tensors)
    for tensor in tensors:
        memory.check(tensor)
        if tensor.dtype not in _PREMULTIPLIED:
            names = ", ".join(str(dtype).rpartition(".")[2] for dtype in _PREMULTIPLIED)
            raise InvalidArgumentError(f"ReduceOp.PREMUL_SUM takes tensors of {names}, not of {tensor.dtype}")
    factor = _factor_of(op)
    products = []
    for tensor in tensors:
        own = factor.detach() if isinstance(factor, torch.Tensor) else torch.tensor(factor, dtype=torch.float64)
        own = own.to(tensor.device, tensor.dtype).reshape(())
        if in_place:
            tensor.detach().mul_(own)
        products.append(tensor if in_place else tensor.detach() * own)
    return ReduceOp.SUM, products


def _factor_of(op: Any) -> Any:
    """Returns the factor of a PREMUL_SUM: a number, or a tensor of one element."""
    state = getattr(op, "__getstate__", lambda: None)()  # PyTorch 1.13 has no state, and tells no factor
    if not isinstance(state, tuple) or len(state) != 2:
        raise InvalidArgumentError(
            "ReduceOp.PREMUL_SUM needs a factor: make it with torch.distributed._make_nccl_premul_sum(factor), with "
            "PyTorch 2. With PyTorch 1.13 multiply the tensor before a SUM"
        )
    return state[1]


def kind(tensor: torch.Tensor, op: str = "MOVE") -> int:
    """Returns the number of Group.start() that tells ranks with other types of elements or reductions apart."""
    if tensor.dtype in _TYPES:
        number = _TYPES.index(tensor.dtype)
    else:  # a rare type, such as one of 8-bit floats
        number = len(_TYPES) + zlib.crc32(str(tensor.dtype).encode()) % (_MOST_TYPES - len(_TYPES))
    return _MOVES.index(op) * _MOST_TYPES + number


def described(kind: int, elements: int) -> str:
    """Returns a text of a reduction with this kind()."""
    op, number = divmod(kind, _MOST_TYPES)
    return f"{_MOVES[op]} of {elements} {_TYPES[number] if number < len(_TYPES) else 'elements of a rare type'}"


def reduce(op: str, rows: torch.Tensor, result: torch.Tensor) -> None:
    """Reduces rows[0], rows[1], … into `result`.

    Args:
        op: Name of the operation.
        rows: The tensors of all ranks in the order of ranks, each with the elements of `result` in one dimension, in
            memory of the host without gaps.
        result: One dimension, without gaps; may be one of the rows.
    """
    kernel_op = _KERNEL_OPS.get(op)
    if kernel_op is not None and rows.dtype in DATA_TYPES:
        addresses = [row.data_ptr() for row in rows]
        sum_memory(DATA_TYPES[rows.dtype], kernel_op, addresses, result.data_ptr(), result.numel())
        return
    with torch.no_grad():
        total = rows[0]
        for row in rows[1:]:
            total = _STEPS[op](total, row)
        result.copy_(total / len(rows) if op == "AVG" else total)


__all__ = ["ReduceOp", "check", "name_of", "premultiplied", "reduce"]
