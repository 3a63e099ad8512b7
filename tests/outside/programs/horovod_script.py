"""Trains as Horovod's examples do, with the import changed: sampler, schedule, clipping, metrics, uneven data."""

import gleaner.horovod.torch as hvd
import torch
from torch import nn
from torch.nn import functional

EPOCHS, BATCH = 2, 8


def data():
    generator = torch.Generator().manual_seed(3)
    return torch.randn(8 * BATCH, 10, generator=generator), torch.randint(0, 4, (8 * BATCH,), generator=generator)


def make(scale):
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 4)).double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05 * scale, momentum=0.9)
    return model, optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)


def loss_of(model, inputs, targets):
    return functional.cross_entropy(model(inputs.double()), targets)


def train_alone(ranks):
    """Trains in one process: the average of the gradients of the ranks' parts of each batch."""
    model, optimizer, schedule = make(ranks)
    inputs, targets = data()
    for _ in range(EPOCHS):
        for start in range(0, len(inputs), ranks * BATCH):
            optimizer.zero_grad()
            for rank in range(ranks):
                part = slice(start + rank, start + ranks * BATCH, ranks)
                (loss_of(model, inputs[part], targets[part]) / ranks).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
        schedule.step()
    return model


def main():
    hvd.init()
    model, plain, schedule = make(hvd.size())
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(hvd.rank())
    optimizer = hvd.DistributedOptimizer(plain, named_parameters=model.named_parameters(), op=hvd.Average)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    dataset = torch.utils.data.TensorDataset(*data())
    sampler = torch.utils.data.distributed.DistributedSampler(
        dataset, num_replicas=hvd.size(), rank=hvd.rank(), shuffle=False
    )
    loader = torch.utils.data.DataLoader(dataset, batch_size=BATCH, sampler=sampler)
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss_of(model, inputs, targets).backward()
            optimizer.synchronize()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            with optimizer.skip_synchronize():
                optimizer.step()
        schedule.step()
    for ours, alone in zip(model.parameters(), train_alone(hvd.size()).parameters()):
        assert torch.allclose(ours, alone, rtol=1e-12), (ours - alone).abs().max()
    mine = torch.tensor(float(hvd.rank()))
    assert hvd.allreduce(mine, name="avg_loss").item() == (hvd.size() - 1) / 2

    for _ in range(3 + hvd.rank()):  # the last rank has more data
        optimizer.zero_grad()
        loss_of(model, *data()).backward()
        optimizer.step()
    assert hvd.join() == hvd.size() - 1
    print("ok", flush=True)


main()
