"""Checks that mistakes with devices are errors which say what to do, and that the session goes on afterwards."""

from __future__ import annotations

import gc
import os
import subprocess
import sys

import gleaner.torch as gln
import ranks
import torch
from checking import raises


def assert_works(name: str) -> None:
    result = gln.push_pull(torch.full((1000,), 2.0, device=ranks.device_of(gln.local_rank())), name=name)
    assert result.tolist() == [2.0] * 1000


def check_meta_tensor() -> str:
    message = raises(TypeError, lambda: gln.push_pull(torch.ones(2, device="meta"), name="meta"))
    assert "meta" in message
    assert_works("after meta")
    return message


def check_tensor_on_another_gpu() -> str:
    ranks.needs_cuda()
    if torch.cuda.device_count() < 2:
        raise ranks.Skip("needs two GPUs")
    other = (gln.local_rank() + 1) % torch.cuda.device_count()
    try:
        result = gln.push_pull(torch.ones(1000, device=f"cuda:{other}"), name="other GPU")
    except (TypeError, gln.GleanerError) as error:
        assert "cuda" in str(error) or "GPU" in str(error), str(error)
        return f"refused: {error}"
    assert result.tolist() == [1.0] * 1000
    return "summed"


def check_out_of_gpu_memory() -> str:
    ranks.needs_cuda()
    big = torch.ones(32 << 20, device="cuda")
    ranks.synchronize()
    gc.collect()
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(big.device).total_memory
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + (8 << 20)) / total)
    try:
        message = raises((RuntimeError, gln.GleanerError), lambda: gln.push_pull(big, name="too big"))
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert "memory" in message, message
    assert_works("after too big")
    return message.splitlines()[0]


def check_fork_after_init() -> str:
    tensor = torch.ones(1000, device=ranks.device_of(gln.local_rank()))
    gln.push_pull(tensor, name="before the fork")
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            gln.push_pull(tensor, name="in the child")
            text = "no error"
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        os.write(writer, text.encode())
        os._exit(0)
    os.close(writer)
    text = os.read(reader, 4096).decode()
    os.close(reader)
    os.waitpid(child, 0)
    assert "fork" in text, text
    assert_works("after the fork")
    return text


ALONE = """
import gleaner.torch as gln, torch
gln.init()
assert not torch.cuda.is_available()
print(gln.push_pull(torch.ones(1000), name="x").sum().item())
"""


def check_no_visible_gpu() -> None:
    if gln.rank() != 0:
        return
    gleaner = os.environ["GLEANER_PROGRAM"]
    mine = {name: value for name, value in os.environ.items() if not name.startswith("GLEANER_") or "LIBRARY" in name}
    command = [gleaner, "run", "--workers", "1", "--no-prefix", "--", sys.executable, "-c", ALONE]
    done = subprocess.run(
        command, env={**mine, "CUDA_VISIBLE_DEVICES": ""}, capture_output=True, text=True, timeout=ranks.ARGUMENTS.limit
    )
    assert done.stdout.strip() == "1000.0", done.stdout + done.stderr


def check_write_to_a_tensor_without_memory() -> str:
    tensor = torch.ones(1000, device=ranks.device_of(gln.local_rank()))
    tensor.untyped_storage().resize_(0) if hasattr(tensor, "untyped_storage") else tensor.storage().resize_(0)
    kinds = (TypeError, ValueError, RuntimeError, gln.GleanerError)
    message = raises(kinds, lambda: gln.push_pull_inplace(tensor, name="freed"))
    assert_works("after freed")
    return message.splitlines()[0]


if __name__ == "__main__":
    ranks.run(globals())
