"""A worker of an elastic job with Horovod's names. The last rank of the first round fails before step 5."""

from __future__ import annotations

import gleaner.horovod.torch as hvd
import torch

hvd.init()
first_size = hvd.size()
weight = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))
plain = torch.optim.SGD([weight], lr=1.0)
optimizer = hvd.DistributedOptimizer(plain, named_parameters=[("weight", weight)])
state = hvd.elastic.TorchState(model=None, optimizer=optimizer, step=0, weight=0.0)


@hvd.elastic.run
def train(state: hvd.elastic.TorchState) -> None:
    with torch.no_grad():
        weight.fill_(state.weight)
    while state.step < 10:
        if state.step == 5 and hvd.rank() == first_size - 1:
            raise RuntimeError("on purpose")
        optimizer.zero_grad()
        (weight * -(hvd.rank() + 1)).sum().backward()
        optimizer.step()
        state.step, state.weight = state.step + 1, weight.item()
        state.commit()


train(state)
assert hvd.allgather_object(hvd.size()) == [hvd.size()] * hvd.size()
print(f"ended with {hvd.size()} ranks and weight {weight.item()}", flush=True)
