"""Trains with gleaner.byteps.torch, suspends and resumes, and trains on. The argument is the number for resume()."""

from __future__ import annotations

import sys
import warnings

import gleaner.byteps.torch as bps
import gleaner.byteps.torch.cross_barrier as crossing
import torch
from checking import raises
from gleaner import FailedPreconditionError
from gleaner.byteps.torch.parallel import DistributedDataParallel
from small_training import assert_same_parameters, momentum, net, reference, take_step

torch.set_num_threads(1)
bps.init()
numbers = bps.rank(), bps.size(), 0, 1
models = [net(), net(), DistributedDataParallel(net())]
optimizers = [
    bps.DistributedOptimizer(momentum(models[0]), models[0].named_parameters()),
    crossing.CrossBarrier(models[1], momentum(models[1])),
    momentum(models[2]),
]
expected = net()
reference(expected, momentum(expected), steps=4)
for step in range(4):
    if step == 2:
        bps.suspend()
        assert (bps.rank(), bps.size(), bps.local_rank(), bps.local_size()) == numbers
        raises(FailedPreconditionError, lambda: bps.push_pull(torch.ones(1), name="between"))
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            bps.resume(int(sys.argv[1]), 1, 0)
        print("warned:", [str(each.message) for each in told], flush=True)
    for model, optimizer in zip(models, optimizers):
        take_step(model, optimizer, step)
optimizers[1].synchronize()
for model in (*models[:2], models[2].module):
    assert_same_parameters(model, expected)
print("trained on", flush=True)
