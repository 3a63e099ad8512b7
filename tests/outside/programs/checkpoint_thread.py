"""Writes checkpoints in a second thread while training goes on, as large models do to hide the time that this takes."""

import copy
import io
import pickle
import threading

import gleaner.torch as gln
import torch

STEPS = 60

gln.init()


class Tower(torch.nn.Module):
    """The gradient of every parameter is 1, and every step of SGD with lr=1 subtracts 1."""

    def __init__(self, layers=12):
        super().__init__()
        self.layers = torch.nn.ModuleList(Layer() for _ in range(layers))

    def forward(self):
        return sum(layer() for layer in self.layers)


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(2000))

    def forward(self):
        return self.weight.sum()


class CountingSgd(torch.optim.Optimizer):
    """Keeps a copy of each parameter in its state."""

    def __init__(self, params):
        super().__init__(params, dict(lr=1.0))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.sub_(p.grad, alpha=group["lr"])
                    self.state[p].setdefault("copy", torch.zeros_like(p)).copy_(p)


def check_one_step(tensors):
    values = torch.cat([tensor.reshape(-1) for tensor in tensors])
    assert (values == values[0]).all(), f"tensors of steps {sorted(-values.unique())}"


class Checkpoints(threading.Thread):
    """Takes checkpoints, one after the other, until the program calls finish()."""

    def __init__(self, model, optimizer, is_crossing):
        super().__init__()
        self.model, self.optimizer, self.is_crossing = model, optimizer, is_crossing
        self.taken, self.error, self.ended, self.first = 0, None, False, threading.Event()
        self.start()

    def run(self):
        try:
            while not self.ended or not self.taken:
                self.take()
                self.taken += 1
                self.first.set()
        except BaseException as error:
            self.error = error
        finally:
            self.first.set()

    def take(self):
        state = self.optimizer.state_dict()
        file = io.BytesIO()
        torch.save(state, file)
        file.seek(0)
        saved = torch.load(file)
        if saved["state"]:
            check_one_step([each["copy"] for each in saved["state"].values()])
        if self.is_crossing:  # with DistributedOptimizer the model is PyTorch's alone
            check_one_step(copy.deepcopy(self.model.state_dict()).values())
        check_one_step(pickle.loads(pickle.dumps(self.optimizer)).param_groups[0]["params"])

    def finish(self):
        self.ended = True
        self.join()
        if self.error:
            raise self.error


for crossing in (True, False):
    model = Tower()
    plain = CountingSgd(model.parameters())
    if crossing:
        optimizer = gln.CrossBarrier(plain, model)
    else:
        optimizer = gln.DistributedOptimizer(plain, model.named_parameters())
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
    thread = None
    for step in range(STEPS):
        optimizer.zero_grad()
        model().backward()
        optimizer.step()
        schedule.step()
        if step == 0:
            thread = Checkpoints(model, optimizer, crossing)
            thread.first.wait()
    thread.finish()
    optimizer.synchronize()
    assert all((each == -STEPS).all() for each in model.parameters())

# An error of the session reaches the thread that trains, too, if the other thread met it first.
model = Tower()
optimizer = gln.CrossBarrier(CountingSgd(model.parameters()), model)
model().backward()
if gln.rank() == 0:
    optimizer.synchronize()
else:
    optimizer.step()
model().backward()
optimizer.step()
met = []


def read():
    try:
        optimizer.state_dict()
    except gln.GleanerError as error:
        met.append(str(error))


reader = threading.Thread(target=read)
reader.start()
reader.join()
assert "ranks are at different steps" in met[0], met
try:
    model()
except gln.GleanerError as error:
    assert str(error) == met[0]
else:
    raise AssertionError("training went on after an error")

print("ok")
