"""Opens libgleaner.so in a process where other libraries bring a gRPC, protobuf or OpenSSL of their own.

libgleaner.so uses the shared gRPC, protobuf and OpenSSL of the system. A library that was loaded before and offers
functions of the same names to the whole process, as TensorFlow does, would answer in their place: in another version,
with a crash. RTLD_DEEPBIND makes libgleaner.so and its dependencies look among themselves first. Every symbol is bound
when the library is opened, so that nothing that is loaded later can come between.

RTLD_DEEPBIND also puts libc before what replaces parts of it: memory from the malloc of jemalloc or of a sanitizer
would be given to libc's free. So a process with another malloc opens the library without it, and a clash of symbols is
an error there. A process that preloads something else (LD_PRELOAD) gets RTLD_DEEPBIND only when symbols clash.
"""

from __future__ import annotations

import ctypes
import os
from typing import Optional

from gleaner.errors import GleanerError

# A function of each dependency that other libraries bring along, too, in one version or another.
_SHARED_NAMES = {
    "libprotobuf": "_ZN6google8protobuf14DescriptorPool14generated_poolEv",
    "libgrpc": "grpc_init",
    "libre2": "_ZN3re211FilteredRE2C1Ev",
    "libcrypto": "EVP_DigestInit_ex",
    "libssl": "SSL_CTX_new",
}


class _SymbolInfo(ctypes.Structure):
    """Dl_info of dladdr(3)."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


def open_library(path: str) -> ctypes.CDLL:
    """Opens the library, or finds it again. OSError as of dlopen; GleanerError when it would clash with another one."""
    deep = getattr(os, "RTLD_DEEPBIND", 0)  # where libc has it
    if not deep:
        return ctypes.CDLL(path)
    try:
        return ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_NOLOAD)
    except OSError:
        pass  # it is not open yet
    malloc_is_replaced = _malloc_is_replaced()
    if not malloc_is_replaced and not os.environ.get("LD_PRELOAD"):
        return ctypes.CDLL(path, mode=os.RTLD_NOW | deep)
    stranger = _clashing_library()
    if stranger is None:
        return ctypes.CDLL(path, mode=os.RTLD_NOW)
    if not malloc_is_replaced:
        return ctypes.CDLL(path, mode=os.RTLD_NOW | deep)
    raise GleanerError(
        f"cannot load {path} beside {stranger}: it offers its own gRPC, protobuf or OpenSSL to the whole process, and "
        "this process replaces malloc (LD_PRELOAD), so that they cannot be kept apart. Call gleaner.init() before that "
        "library is imported, or do not replace malloc."
    )


def _malloc_is_replaced() -> bool:
    try:
        libc = ctypes.CDLL("libc.so.6")
    except OSError:
        return True  # some other libc: nothing is known about it
    process = ctypes.CDLL(None)
    # Functions that come with every malloc, and whose address no interpreter takes: an executable that takes that of
    # malloc itself has an entry of its own for it.
    names = ("posix_memalign", "memalign", "malloc_usable_size")
    return any(_address(getattr(process, name)) != _address(getattr(libc, name)) for name in names)


def _clashing_library() -> Optional[str]:
    """The file that offers one of _SHARED_NAMES to the whole process; None when there is none."""
    process = ctypes.CDLL(None)
    for library, name in _SHARED_NAMES.items():
        if not hasattr(process, name):
            continue
        info = _SymbolInfo()
        process.dladdr(ctypes.c_void_p(_address(getattr(process, name))), ctypes.byref(info))
        file = os.fsdecode(info.file or b"another library")
        if not os.path.basename(file).startswith(f"{library}.so"):  # that is the dependency itself
            return file
    return None


def _address(function: ctypes._CFuncPtr) -> Optional[int]:
    return ctypes.cast(function, ctypes.c_void_p).value
