"""join(): a rank whose data has ended answers the others' rounds of averaging until all ranks have joined."""

from __future__ import annotations

import gc
import time

from gleaner import process
from gleaner.errors import FailedPreconditionError
from gleaner.torch.broadcasts import broadcast_optimizer_state, broadcast_parameters
from gleaner.torch.gradients import Gradients
from gleaner.torch.passes import Passes
from gleaner.torch.roll_call import Roll

_PAUSE_SECONDS = 0.0005  # between looks at the roll calls of several optimizers


def join() -> int:
    """Takes part in the others' steps with gradients of zeros until all ranks have called this; blocks.

    Call it when this rank's data has ended, say at the end of an epoch. Averages divide by the number of all ranks, as
    Horovod's. Returns the rank that made the most steps, of several the last; all ranks then have its parameters and
    optimizer state. It answers for every DistributedOptimizer of this process, and for nothing else: in a loop that
    ends earlier on some ranks there may be no other push_pulls or broadcasts, and buffers are each rank's own.
    """
    gc.collect()  # a dropped optimizer may still be there on some ranks, and is to be there on none
    optimizers = [each for each in process.current().attached(Passes).optimizers() if isinstance(each, Gradients)]
    if not optimizers:
        raise FailedPreconditionError(
            "join() is for ranks with a DistributedOptimizer that averages gradients, and this rank has none: "
            "asynchronous training and DDP's hook have no join"
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
