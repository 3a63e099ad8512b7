"""Sums, averages and broadcasts of tensors, with the names that Horovod and BytePS use.

All functions are collective: every rank must call them with tensors of the same shapes and types, in the same order.
All tensors of one call are in flight at once. If the tensors of ranks differ, all ranks raise an InvalidArgumentError
that tells the difference.

Inside tf.function each call is one stateful operation (tf.numpy_function), and TensorFlow runs such operations in the
order of the program. An error of Gleaner then arrives as a tf.errors.OpError whose text contains the error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Optional

import numpy
import tensorflow as tf

from gleaner import process
from gleaner.bundles import Bundles, NamedArrays, check_summable

Average = "Average"
Sum = "Sum"


def allreduce(tensor: tf.Tensor, op: str = Average, name: Optional[str] = None) -> tf.Tensor:
    """Returns the average or the sum of a tensor over all ranks; as grouped_allreduce() of one tensor."""
    return grouped_allreduce([tensor], op, name)[0]


def push_pull(tensor: tf.Tensor, average: bool = True, name: Optional[str] = None) -> tf.Tensor:
    """Returns the average (or with average=False the sum) of a tensor; as grouped_allreduce() of one tensor."""
    if not isinstance(average, bool):
        raise TypeError(f"average must be True or False, not {average!r}; pass a name as name=…")
    return grouped_allreduce([tensor], Average if average else Sum, name)[0]


def grouped_allreduce(tensors: Sequence[tf.Tensor], op: str = Average, name: Optional[str] = None) -> list[tf.Tensor]:
    """Returns the averages or the sums of tensors over all ranks, with the same bits on every rank. Collective; blocks.

    No gradient flows through it. Tensors that come first have priority.

    Args:
        tensors: Dense tensors or variables of float32, float64, float16, bfloat16 or, for sums, int32.
        op: Average or Sum; the same on all ranks.
        name: Beginning of the names of the sums. All calls of one name must pass the same shapes and types. None: the
            name follows from these.

    Raises:
        TypeError: A tensor is sparse, or cannot be summed or averaged.
        ValueError: `op` is neither Average nor Sum.
        InvalidArgumentError: Tensors differ between ranks (all ranks raise this), or `name` was used with others.
        GleanerError: There is no session, or it has failed; see gleaner.errors.
    """
    if op not in (Average, Sum):
        raise ValueError(f"op must be gleaner.tensorflow.Average or Sum, not {op!r}")
    dense = [_dense(tensor) for tensor in tensors]
    names = [f".{number}" for number in range(len(dense))]
    for each, tensor in zip(names, dense):
        check_summable(f"tensor{each}", numpy.dtype(tensor.dtype.as_numpy_dtype), op == Average)
    return _on_host(dense, lambda *values: _bundles().push_pull(_named(names, values), op == Average, name))


def broadcast(tensor: tf.Tensor, root_rank: int = 0) -> tf.Tensor:
    """Returns the tensor of rank `root_rank`, bit for bit. Collective; blocks.

    Args:
        tensor: Dense tensor of any type but strings, with the same shape and type on all ranks.
        root_rank: Rank whose tensor is copied; the same on all ranks.

    Raises:
        TypeError: `tensor` is sparse or holds strings.
        InvalidArgumentError: `root_rank` is not a rank, or tensors or roots differ between ranks (all raise this).
        GleanerError: There is no session, or it has failed; see gleaner.errors.
    """
    return _broadcast([_dense(tensor)], [""], root_rank)[0]


def broadcast_variables(variables: Iterable[Any], root_rank: int = 0) -> None:
    """Assigns the values of rank `root_rank` to variables, bit for bit. Collective; blocks.

    Args:
        variables: Variables of TensorFlow or Keras, such as model.weights or optimizer.variables: the same number,
            shapes and types on all ranks. Their names do not matter.
        root_rank: Rank whose values are copied; the same on all ranks.

    Raises:
        TypeError: As in broadcast().
        InvalidArgumentError: As in broadcast().
        GleanerError: As in broadcast().
    """
    chosen = list(variables)
    names = [f".{number}" for number in range(len(chosen))]
    values = _broadcast([_dense(each) for each in chosen], names, root_rank)
    for variable, value in zip(chosen, values):
        variable.assign(value)


def _broadcast(tensors: list[tf.Tensor], names: list[str], root: int) -> list[tf.Tensor]:
    for tensor in tensors:
        if tensor.dtype == tf.string:
            raise TypeError("a tensor of strings has no fixed size; use broadcast_object")
    return _on_host(tensors, lambda *values: _bundles().broadcast(_named(names, values), root))


def _bundles() -> Bundles:
    return process.current().attached(Bundles)


def _named(names: Sequence[str], values: Sequence[Any]) -> NamedArrays:
    return list(zip(names, map(numpy.asarray, values)))  # TensorFlow passes scalars as numbers, not as arrays


def _dense(value: Any) -> tf.Tensor:
    if isinstance(value, (tf.IndexedSlices, tf.SparseTensor)):
        raise TypeError(
            f"{type(value).__name__} is sparse, and only dense tensors can be sent: pass tf.convert_to_tensor() of it, "
            "or sparse_as_dense=True to the tape or the optimizer"
        )
    return tf.convert_to_tensor(value)


def _on_host(tensors: list[tf.Tensor], call: Callable[..., list[numpy.ndarray]]) -> list[tf.Tensor]:
    """Returns the arrays of `call` as tensors. They have the shapes and types of `tensors`, the arguments of `call`."""
    process.current()  # an early error if there is no session
    if not tensors:
        return []
    if tf.executing_eagerly():
        return [tf.convert_to_tensor(array) for array in call(*(tensor.numpy() for tensor in tensors))]
    results = tf.numpy_function(call, tensors, [tensor.dtype for tensor in tensors], stateful=True)
    for result, tensor in zip(results, tensors):
        result.set_shape(tensor.shape)
    return list(results)
