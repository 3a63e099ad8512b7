"""Sums and broadcasts parts of conjugated complex numbers, as a Fourier layer has them."""

import gleaner.torch as gln
import torch

gln.init()
n = gln.size()


def imaginary(elements):
    """The imaginary part is 2, 3, …, and that of the conjugate -2, -3, …"""
    numbers = torch.complex(torch.ones(elements), torch.arange(elements) + 2.0)
    return numbers.conj().imag


# A sum and an average, for one element, whose memory has no gaps, and for more.
for elements in (1, 3):
    part = imaginary(elements)
    expected = -(torch.arange(elements) + 2.0)
    assert part.is_neg() and torch.equal(part, expected)
    assert torch.equal(gln.push_pull(part, name=f"mean.{elements}"), expected)
    assert torch.equal(gln.push_pull(part, average=False, name=f"sum.{elements}"), expected * n)
    assert torch.equal(part, expected)
    gln.accumulate(part, f"running.{elements}")
    gln.push_pull(torch.zeros(1), name="all have added")
    assert torch.equal(gln.accumulate(torch.zeros(elements), f"running.{elements}"), expected * n)

    # In place, the complex numbers themselves change.
    numbers = torch.complex(torch.ones(elements), torch.arange(elements) + 2.0 + gln.rank())
    part = numbers.conj().imag
    assert gln.push_pull_inplace(part, average=False, name=f"in place.{elements}") is part
    expected = sum(torch.arange(elements) + 2.0 + rank for rank in range(n))
    assert torch.equal(part, -expected)
    assert torch.equal(numbers, torch.complex(torch.ones(elements), expected))

# Broadcasts of conjugated numbers, to a new tensor and in place.
root = n - 1
mine = torch.tensor([1 + 2j, 3 - 1j]) * (gln.rank() + 1)
assert torch.equal(gln.broadcast(mine.conj(), root), torch.tensor([1 - 2j, 3 + 1j]) * n)
gln.broadcast_(mine.conj(), root)
assert torch.equal(mine, torch.tensor([1 + 2j, 3 - 1j]) * n)
mine = torch.tensor([1 + 2j]) * (gln.rank() + 1)
gln.broadcast_(mine.conj().imag if gln.rank() == root else mine.imag, root)
imaginary_of_all = 2 * n if gln.rank() == root else -2 * n
assert torch.equal(mine, torch.tensor([gln.rank() + 1 + imaginary_of_all * 1j]))

# A model with such buffers.
model = torch.nn.Linear(2, 2)
model.register_buffer("filter", (torch.tensor([1 + 1j]) * (gln.rank() + 1)).conj())
model.register_buffer("phase", (torch.tensor([1 + 1j]) * (gln.rank() + 1)).conj().imag)
gln.broadcast_parameters(model.state_dict(), root_rank=root)
assert torch.equal(model.filter, torch.tensor([1 - 1j]) * n) and torch.equal(model.phase, torch.tensor([-1.0]) * n)

# Objects that hold such tensors.
got = gln.broadcast_object({"filter": torch.tensor([1 + 2j]).conj(), "phase": [imaginary(1)]}, root)
assert torch.equal(got["filter"], torch.tensor([1 - 2j])) and got["phase"][0].item() == -2

# PyTorch knows that this tensor is zero, and gives it no memory.
zeros = torch._efficientzerotensor((3,))
assert torch.equal(gln.push_pull(zeros, name="zeros"), torch.zeros(3))
assert torch.equal(gln.broadcast(zeros, root), torch.zeros(3))
for write in (gln.push_pull_inplace, gln.broadcast_, lambda tensor: gln.broadcast_parameters({"zeros": tensor})):
    try:
        write(zeros)
    except TypeError as error:
        assert "clone()" in str(error)
    else:
        raise AssertionError("zeros were written to a tensor without memory")

# Complex numbers themselves cannot be summed, conjugated or not.
try:
    gln.push_pull(torch.tensor([1 + 2j]).conj())
except TypeError as error:
    assert "complex64" in str(error)
else:
    raise AssertionError("complex numbers were summed")

print("ok")
