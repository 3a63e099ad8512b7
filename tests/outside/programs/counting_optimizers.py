"""Trains with optimizers that count their steps in various places, as fused optimizers and wrappers do."""

import gleaner.torch as gln
import torch

gln.init()


class CountsInGroup(torch.optim.Optimizer):
    """Corrects its momentum by the number of steps, which it keeps in its groups, as fused optimizers do."""

    def __init__(self, params, lr=0.1, beta=0.9):
        super().__init__(params, dict(lr=lr, beta=beta))

    def count(self, group):
        group["step"] = group.get("step", 0) + 1
        return group["step"]

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            steps = self.count(group)
            for p in group["params"]:
                if p.grad is not None:
                    mean = self.state[p].setdefault("mean", torch.zeros_like(p))
                    mean.lerp_(p.grad, 1 - group["beta"])
                    p.add_(mean, alpha=-group["lr"] / (1 - group["beta"] ** steps))


class CountsInTensor(CountsInGroup):
    def count(self, group):
        group.setdefault("step", torch.zeros(())).add_(1)
        return group["step"].item()


class CountsItself(CountsInGroup):
    """Counts in an attribute, and writes it into its state as a checkpoint needs it."""

    steps = 0

    def count(self, group):
        self.steps += group is self.param_groups[0]
        return self.steps

    def state_dict(self, with_steps=True):
        return {**super().state_dict(), "steps": self.steps} if with_steps else super().state_dict()

    def load_state_dict(self, state_dict, strict=True):
        self.steps = state_dict.pop("steps")
        super().load_state_dict(state_dict)


class CountsInState(CountsInGroup):
    def count(self, group):
        self.state["steps"] = self.state.get("steps", 0) + (group is self.param_groups[0])
        return self.state["steps"]


class CountsInOwnTensor(CountsInGroup):
    def __init__(self, params):
        super().__init__(params)
        self.steps = torch.zeros(())

    def count(self, group):
        return self.steps.add_(group is self.param_groups[0]).item()


class StepsByNorm(CountsInGroup):
    """Adapts to the norm of all gradients, which it keeps in its groups."""

    def count(self, group):
        group["norm"] = torch.stack([p.grad.norm() for p in group["params"] if p.grad is not None]).norm().item()
        return 1 + group["norm"]


def model_of(seed=1):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))


def groups_of(model):
    return [{"params": list(model[0].parameters())}, {"params": list(model[2].parameters()), "lr": 0.05}]


def loss_of(model, step):
    return model(torch.arange(12.0).view(2, 6) / (step + 1)).square().mean()


def distributed(optimizer, model):
    return gln.DistributedOptimizer(optimizer, model.named_parameters())


def same(model, expected):
    return all(torch.equal(a, b) for a, b in zip(model.parameters(), expected.parameters()))


# Each rank has the same data, so results are those of one process.
for kind in (CountsInGroup, CountsInTensor, CountsItself, CountsInState):
    for wrap in (distributed, gln.CrossBarrier):
        model, expected = model_of(), model_of()
        plain, ours = kind(groups_of(expected)), wrap(kind(groups_of(model)), model)
        for step in range(6):
            for optimizer, trained in ((plain, expected), (ours, model)):
                optimizer.zero_grad()
                loss_of(trained, step).backward()
                optimizer.step()
            if step == 2:  # a checkpoint is read by one optimizer, and loaded into another
                checkpoint = ours.state_dict()
                assert [group.get("step") for group in checkpoint["param_groups"]] == [
                    group.get("step") for group in plain.state_dict()["param_groups"]
                ], (kind, wrap, checkpoint["param_groups"], plain.state_dict()["param_groups"])
                again = model_of()
                again.load_state_dict(model.state_dict())
                model = again
                plainly_ours = kind(groups_of(model))
                ours = wrap(plainly_ours, model)
                ours.load_state_dict(checkpoint)
                assert plainly_ours.state_dict().keys() == plain.state_dict().keys()
        ours.synchronize()
        assert same(model, expected), (kind, wrap)
        assert getattr(ours, "steps", 6) == 6

# Steps that depend on all gradients, or count where nobody sees it, are refused at the first update.
for kind in (CountsInOwnTensor, StepsByNorm):
    model = model_of()
    optimizer = gln.CrossBarrier(kind(model.parameters()), model)
    loss_of(model, 0).backward()
    optimizer.step()
    try:
        loss_of(model, 1)
    except gln.GleanerError as error:
        assert "use DistributedOptimizer" in str(error) and kind.__name__ in str(error)
    else:
        raise AssertionError(f"CrossBarrier took {kind}")

print("ok")
