"""Sums, averages and broadcasts of pytrees.

All functions are collective: every rank must call them with trees of the same structure, in the same order. All leaves
of a tree are in flight at once. If the trees of ranks differ, all ranks raise an InvalidArgumentError that tells the
difference.

Called with the values of a jax.jit, a function becomes an ordered callback (jax.experimental.io_callback): the compiled
program makes the calls in the order in which they were traced. An error of Gleaner then ends the compiled program with
JAX's own exception, whose text contains the error. JAX can neither differentiate nor vmap such a callback.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable, Optional

import jax
import numpy
from jax.experimental import io_callback

from gleaner import process
from gleaner.bundles import Bundles, NamedArrays, check_summable


def average(tree: Any, name: Optional[str] = None) -> Any:
    """Returns the average of each leaf over all ranks; push_pull(tree, True, name)."""
    return push_pull(tree, True, name)


def push_pull(tree: Any, average: bool = True, name: Optional[str] = None) -> Any:
    """Returns the average or the sum of each leaf over all ranks, with the same bits on every rank. Collective; blocks.

    No gradient flows through it. Leaves that come first in the tree have priority.

    Args:
        tree: Pytree of arrays or numbers of float32, float64, float16, bfloat16 or, for sums, int32.
        average: True: averages; False: sums.
        name: Beginning of the tensors' names, which end with the paths of the leaves. All trees of one name must have
            the same leaves. None: the name follows from the leaves, so any tree can be passed.

    Returns:
        A tree of the same structure, with arrays on the devices of the leaves.

    Raises:
        TypeError: A leaf cannot be summed, or not averaged; the message has its path.
        InvalidArgumentError: Trees differ between ranks (all ranks raise this), or `name` was used for another tree.
        GleanerError: There is no session, or it has failed; see gleaner.errors.
    """
    if not isinstance(average, bool):
        raise TypeError(f"average must be True or False, not {average!r}; pass a name as name=…")

    def check(path: str, leaf: jax.Array) -> None:
        check_summable(path, leaf.dtype, average)

    return _exchanged(tree, lambda named: _bundles().push_pull(named, average, name), check)


def broadcast(tree: Any, root_rank: int = 0) -> Any:
    """Returns the leaves of rank `root_rank`, bit for bit. Collective; blocks.

    Args:
        tree: Pytree of arrays or numbers, with the same structure, shapes and types on all ranks. Only the root's
            values matter.
        root_rank: Rank whose leaves are copied; the same on all ranks.

    Returns:
        A tree of the same structure, with arrays on the devices of the leaves.

    Raises:
        TypeError: A leaf has no bytes, as a typed key of jax.random.
        InvalidArgumentError: `root_rank` is not a rank, or trees or roots differ between ranks (all ranks raise this).
        GleanerError: There is no session, or it has failed; see gleaner.errors.
    """
    return _exchanged(tree, lambda named: _bundles().broadcast(named, root_rank), _check_bytes)


def _bundles() -> Bundles:
    return process.current().attached(Bundles)


def _check_bytes(path: str, leaf: jax.Array) -> None:
    if jax.numpy.issubdtype(leaf.dtype, jax.dtypes.extended):
        raise TypeError(f"{path!r} is a {leaf.dtype}, which has no bytes to send; pass jax.random.key_data() of it")


def _exchanged(
    tree: Any, call: Callable[[NamedArrays], list[numpy.ndarray]], check: Callable[[str, jax.Array], None]
) -> Any:
    """Returns the tree with the results of `call` as leaves. `check` raises if it cannot take a leaf with this path."""
    process.current()  # an early error if there is no session, which jax.jit passes on as it is
    with_paths, structure = jax.tree_util.tree_flatten_with_path(tree)
    names = [jax.tree_util.keystr(path) for path, _ in with_paths]
    leaves = [jax.numpy.asarray(leaf) for _, leaf in with_paths]
    for name, leaf in zip(names, leaves):
        check(name, leaf)

    def on_host(*values: jax.Array) -> list[numpy.ndarray]:
        return call(list(zip(names, map(numpy.asarray, values))))

    if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
        shapes = [jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in leaves]
        return structure.unflatten(io_callback(on_host, shapes, *leaves, ordered=True))
    return structure.unflatten(_placed_like(leaves, on_host(*leaves)))


def _placed_like(leaves: Sequence[jax.Array], results: Sequence[numpy.ndarray]) -> list[jax.Array]:
    arrays = [jax.numpy.asarray(result) for result in results]
    return [
        array if array.sharding == leaf.sharding else jax.device_put(array, leaf.sharding)
        for array, leaf in zip(arrays, leaves)
    ]
