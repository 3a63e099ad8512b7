"""join(): a rank whose data has ended takes part in the averaging rounds of other ranks until all ranks have joined."""

from __future__ import annotations

import gc
import time

from gleaner import process
from gleaner.errors import FailedPreconditionError
from gleaner.torch.broadcasts import broadcast_optimizer_state, broadcast_parameters
from gleaner.torch.gradients import Gradients
from gleaner.torch.passes import Passes
from gleaner.torch.roll_call import Roll

_PAUSE_SECONDS = 0.0005  # between polls of the roll calls of several optimizers


def join() -> int:
    """Contributes zeros to the steps of other ranks until all ranks have called join(). Collective; blocks.

    Call it when this rank's data has ended, for example at the end of an epoch. Averages still divide by the number of
    all ranks, as in Horovod. At the end all ranks have the parameters and the optimizer state of the rank that made the
    most steps; each rank keeps its own buffers, such as running means of batch normalization.

    join() answers only for the DistributedOptimizers of this process: a loop that ends earlier on some ranks must
    contain no other push_pulls or broadcasts. Call it from the thread that trains.

    Returns:
        The rank that made the most steps; the highest such rank if there are several. If the process has several
        optimizers, each optimizer gets the parameters of the rank that made the most steps with it, and join() returns
        that rank for the last optimizer on which ranks differ.

    Raises:
        FailedPreconditionError: This rank has no session or no DistributedOptimizer that averages gradients; an
            optimizer is a CrossBarrier; or a gradient is not yet averaged, because no step() or zero_grad() followed
            backward().
        GleanerError: The session has failed; see gleaner.errors.
    """
    gc.collect()  # frees optimizers that the program has dropped, so that all ranks find the same ones
    optimizers = [each for each in process.current().attached(Passes).optimizers() if isinstance(each, Gradients)]
    if not optimizers:
        raise FailedPreconditionError(
            "join() needs a DistributedOptimizer that averages gradients, and this rank has none: asynchronous "
            "training and ddp_hook do not support join()"
        )
    for each in optimizers:
        each.check_can_join()
    for each in optimizers:
        each.begin_absence()
    last = process.size() - 1
    for each, roll in zip(optimizers, _answer_until_all_have_joined(optimizers)):
        if roll.all_alike():
            continue
        last = roll.last()
        broadcast_parameters(each.named, last)
        broadcast_optimizer_state(each.optimizer(), last)
    return last


def _answer_until_all_have_joined(optimizers: list[Gradients]) -> list[Roll]:
    rolls: dict[Gradients, Roll] = {}
    while len(rolls) < len(optimizers):
        waiting = [each for each in optimizers if each not in rolls]
        called = waiting if len(waiting) == 1 else [each for each in waiting if each.roll_is_called()]
        for each in called:
            roll = each.answer_absent()
            if roll.all_joined():
                rolls[each] = roll
        if not called:
            time.sleep(_PAUSE_SECONDS)
    return [rolls[each] for each in optimizers]
