"""Messages of errors about gradients that are used or computed at the wrong time."""

from __future__ import annotations

_ADVICE = {
    "backward": "call optimizer.synchronize() before you change gradients of fewer backward passes than "
    "backward_passes_per_step, and do not use them in hooks",
    "step": "call optimizer.synchronize() before you clip, scale, zero or read gradients, or leave out wait='step'",
    "forward": "call optimizer.synchronize() before you clip, scale or read gradients, and zero them by "
    "optimizer.zero_grad() alone",
}


def of_use(wait: str, name: str, done: str) -> str:
    """Returns the message for the gradient of `name`, which the program has `done` ("used") too early."""
    return (
        f"the gradient of {name} was {done} after backward() made it and before its average was in place: "
        f"{_ADVICE[wait]}"
    )


def of_second_gradient(wait: str, name: str, is_overdue: bool, passes: int) -> str:
    """Returns the message for a gradient of `name` that is computed while the one before is in flight.

    Args:
        wait: As in Gradients.
        name: Name of the parameter.
        is_overdue: Whether the parameter waits for its update by CrossBarrier.
        passes: Number of backward passes of a step.
    """
    if is_overdue:
        return (
            f"{name} was used before its last update, since the module that holds it was not called; call "
            "optimizer.synchronize() before the forward pass, or use DistributedOptimizer"
        )
    if wait == "backward":
        return (
            f"the gradient of {name} was computed twice within one backward pass: a parameter that several "
            "checkpointed segments share needs checkpoint(..., use_reentrant=False)"
        )
    return (
        f"the gradient of {name} was computed more than {passes} times before "
        "optimizer.step() or synchronize(); raise backward_passes_per_step to accumulate gradients"
    )


def of_graph(name: str) -> str:
    """Returns the message for a gradient of `name` that backward(create_graph=True) has made."""
    return (
        f"backward(create_graph=True) has made a gradient of {name} with a graph, and averages have no graph: for a "
        "penalty on gradients, use torch.autograd.grad(loss, parameters, create_graph=True), which averages nothing, "
        "and call backward() for the loss with the penalty"
    )


def of_unfrozen(name: str) -> str:
    """Returns the message for a gradient of `name`, which required none when CrossBarrier was called."""
    return (
        f"{name} required no gradient when CrossBarrier was called, and requires one now; call CrossBarrier before "
        "parameters are frozen, or use DistributedOptimizer"
    )


def of_added_average(name: str) -> str:
    """Returns the message for a gradient of `name` that backward() adds to an average of the same step."""
    return (
        f"backward() added to the gradient of {name}, which is an average of this step already, and compression in "
        "blocks or sparsity would count that average again: pass backward_passes_per_step= for several backward passes "
        "in a step, or, to drop the average, zero_grad() of the optimizer of this parameter before backward()"
    )
