"""Checks torch.compile beside Gleaner. Apart from training.py, since compilation takes long."""

from __future__ import annotations

import shutil

import gleaner.torch as gln
import ranks
import torch
import training


def needs_compiler() -> None:
    if not hasattr(torch, "compile"):
        raise ranks.Skip("this PyTorch has no torch.compile")
    if shutil.which("g++") is None:
        raise ranks.Skip("torch.compile needs a C++ compiler")


def check_compiled_model() -> None:
    needs_compiler()
    model = training.model_of()
    optimizer = training.distributed(model)
    training.train(torch.compile(model), optimizer)
    training.assert_same_on_all_ranks(model, "compiled")
    for one, other in zip(model.parameters(), training.expected().parameters()):
        assert torch.allclose(one, other, rtol=0.05, atol=0.01), (one - other).abs().max()


def check_push_pull_beside_a_compiled_function() -> None:
    needs_compiler()

    @torch.compile
    def double(tensor: torch.Tensor) -> torch.Tensor:
        return tensor * 2

    tensor = torch.ones(1000, device=training.device())
    result = double(gln.push_pull(double(tensor), name="compiled"))
    assert result.tolist() == [4.0] * 1000


if __name__ == "__main__":
    ranks.run(globals())
