"""An optax transformation that averages gradients over all ranks before another transformation uses them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from gleaner.jax.operations import push_pull

if TYPE_CHECKING:
    import optax


def distributed(
    optimizer: optax.GradientTransformation, name: Optional[str] = None
) -> optax.GradientTransformationExtraArgs:
    """Returns `optimizer` with an update() that first averages the gradients over all ranks. Collective.

    The update may run inside jax.jit. Clipping and scaling that are part of `optimizer` see the averages. Ranks that
    begin with the same parameters and optimizer state, as after broadcast(), keep the same bits.

    Args:
        optimizer: Any optax transformation.
        name: As in push_pull().

    Raises:
        TypeError: As in push_pull(); raised by update().
        GleanerError: As in push_pull(); raised by update().
    """
    import optax  # the other functions of gleaner.jax work without it

    inner = optax.with_extra_args_support(optimizer)

    def update(updates: Any, state: Any, params: Any = None, **extra: Any) -> tuple[Any, Any]:
        return inner.update(push_pull(updates, True, name), state, params, **extra)

    return optax.GradientTransformationExtraArgs(inner.init, update)


DistributedOptimizer = distributed  # the name that Horovod's users know
