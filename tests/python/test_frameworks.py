"""Tests that Gleaner works in one process with frameworks that bring their own gRPC, protobuf and OpenSSL.

TensorFlow exports the symbols of its versions to the whole process. The download of TensorFlow and JAX from PyPI takes
long, so the tests that always run use a small library that exports the same symbols."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import LIBRARY, PROGRAMS, ROOT, TIMEOUT, environment, require_build, run_job

ENVIRONMENTS = ROOT / "build" / "frameworks"
ORDERS = pytest.mark.parametrize("when", ["before", "after"])


def beside(when: str, *names: str, python: str | None = None, **more: str) -> subprocess.CompletedProcess[str]:
    """Runs two workers that sum, and that load these modules or libraries before or after gleaner.init()."""
    return run_job("beside.py", when, *names, python=python or sys.executable, variables=more)


def assert_summed(job: subprocess.CompletedProcess[str]) -> None:
    assert job.returncode == 0, job.stdout + job.stderr
    assert job.stdout.count("summed") == 2, job.stdout + job.stderr


def install(name: str, *packages: str) -> str:
    """Returns the Python of a virtual environment with these packages. The first call makes the environment.

    Skips the test if the packages cannot be installed.
    """
    folder = ENVIRONMENTS / name
    done = folder / "installed"
    if not done.exists() or done.read_text().split() != list(packages):
        make = [sys.executable, "-m", "venv", "--clear", str(folder)]
        pip = [str(folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", *packages]
        for command in (make, pip):
            made = subprocess.run(command, capture_output=True, text=True)
            if made.returncode != 0:
                pytest.skip(f"cannot install {' '.join(packages)}: {(made.stderr or made.stdout).strip()[-300:]}")
        done.write_text(" ".join(packages))
    return str(folder / "bin" / "python")


def shared_library(folder: Path, name: str, source: str, *flags: str) -> str:
    file = folder / f"lib{name}.so"
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(file), *flags], input=source, text=True, check=True
    )
    return str(file)


@pytest.fixture(scope="module")
def framework(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A library that exports functions with names that libgleaner.so uses. A call of such a function is fatal."""
    require_build()
    wanted = subprocess.run(["nm", "-D", "--undefined-only", str(LIBRARY)], capture_output=True, text=True, check=True)
    names = {line.split()[-1].split("@")[0] for line in wanted.stdout.splitlines()}
    # Without OpenSSL's functions, which the interpreter itself uses.
    clashing = {name for name in names if name.startswith(("grpc", "_ZN4grpc", "_ZN6google8protobuf"))}
    assert len(clashing) > 50, "libgleaner.so uses none of the expected functions; update this list"
    clashing.add("_ZN6google8protobuf14DescriptorPool14generated_poolEv")  # gleaner._loading detects protobuf by it
    assembly = "".join(
        f'__asm__(".globl {name}\\n.type {name}, @function\\n{name}: ud2");\n' for name in sorted(clashing)
    )
    return shared_library(tmp_path_factory.mktemp("framework"), "framework", assembly)


# A malloc whose free() recognizes its own memory and aborts for any other.
MALLOC = """
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
extern void* __libc_malloc(size_t);
extern void* __libc_memalign(size_t, size_t);
extern void __libc_free(void*);
struct head { void* start; size_t size; unsigned long magic, more; };
static void* give(size_t alignment, size_t size) {
  const size_t before = alignment > sizeof(struct head) ? alignment : sizeof(struct head);
  char* start = __libc_memalign(alignment > 16 ? alignment : 16, before + size);
  if (!start) return NULL;
  struct head* head = (struct head*)(start + before) - 1;
  head->start = start; head->size = size; head->magic = 0x676c65616e65726dUL;
  return start + before;
}
static struct head* head_of(void* data) {
  struct head* head = (struct head*)data - 1;
  static const char message[] = "memory of another malloc\\n";
  if (head->magic != 0x676c65616e65726dUL) { (void)!write(2, message, sizeof message - 1); abort(); }
  return head;
}
void* malloc(size_t size) { return give(16, size); }
void* calloc(size_t count, size_t size) {
  void* data = give(16, count * size);
  return data ? memset(data, 0, count * size) : NULL;
}
void* memalign(size_t alignment, size_t size) { return give(alignment, size); }
void* aligned_alloc(size_t alignment, size_t size) { return give(alignment, size); }
int posix_memalign(void** data, size_t alignment, size_t size) { *data = give(alignment, size); return *data ? 0 : 12; }
void free(void* data) { if (data) { struct head* head = head_of(data); head->magic = 0; __libc_free(head->start); } }
void* realloc(void* data, size_t size) {
  if (!data) return malloc(size);
  const size_t had = head_of(data)->size;
  void* result = malloc(size);
  if (result) { memcpy(result, data, had < size ? had : size); free(data); }
  return result;
}
size_t malloc_usable_size(void* data) { return data ? head_of(data)->size : 0; }
"""


@pytest.fixture(scope="module")
def malloc(tmp_path_factory: pytest.TempPathFactory) -> str:
    return shared_library(tmp_path_factory.mktemp("malloc"), "ourmalloc", MALLOC, "-fno-builtin")


@ORDERS
def test_library_with_the_same_symbols(when: str, framework: str) -> None:
    assert_summed(beside(when, framework))


def test_the_library_uses_a_preloaded_malloc(malloc: str) -> None:
    assert_summed(beside("before", "math", LD_PRELOAD=malloc))


def test_clashing_symbols_with_another_malloc_need_an_early_init(framework: str, malloc: str) -> None:
    assert_summed(beside("after", framework, LD_PRELOAD=malloc))
    command = [sys.executable, str(PROGRAMS / "beside.py"), "before", framework]
    alone = subprocess.run(command, capture_output=True, text=True, env=environment(LD_PRELOAD=malloc), timeout=TIMEOUT)
    assert alone.returncode == 1, alone.stderr
    assert framework in alone.stderr and "Call gleaner.init() before" in alone.stderr


def test_clashing_symbols_and_a_preloaded_library(framework: str, tmp_path: Path) -> None:
    harmless = shared_library(tmp_path, "harmless", "int gleaner_test_harmless(void) { return 0; }")
    assert_summed(beside("before", framework, LD_PRELOAD=harmless))


@ORDERS
def test_torch(when: str) -> None:
    pytest.importorskip("torch")
    assert_summed(beside(when, "torch"))


@pytest.mark.long
@ORDERS
def test_grpcio_and_protobuf(when: str) -> None:
    python = install("grpcio", "grpcio", "protobuf", "numpy")
    assert_summed(beside(when, "grpc", "google.protobuf.descriptor_pool", "google.protobuf.any_pb2", python=python))


@pytest.mark.long
@ORDERS
@pytest.mark.parametrize("module", ["tensorflow", "jax", "jax.numpy"])
def test_tensorflow_and_jax(module: str, when: str) -> None:
    python = install("tensorflow-jax", "tensorflow-cpu", "jax", "grpcio", "numpy")
    assert_summed(beside(when, module, python=python, TF_CPP_MIN_LOG_LEVEL="3"))


@pytest.mark.long
@ORDERS
def test_current_torch(when: str) -> None:
    python = ROOT / "build" / "current-torch" / "bin" / "python"
    if not python.exists():
        pytest.skip("tests/python/current_torch.sh has not been run: it installs the current PyTorch, of several GB")
    assert_summed(beside(when, "torch", python=str(python)))
