"""Opens libgleaner.so in a process where other libraries have their own gRPC, protobuf or OpenSSL.

libgleaner.so uses the shared gRPC, protobuf and OpenSSL of the system. Another library, such as TensorFlow, may have
exported functions of the same names, in other versions, to the whole process; calls to these would crash. RTLD_DEEPBIND
makes libgleaner.so and its dependencies look up symbols among themselves first. RTLD_NOW binds every symbol at once, so
libraries that are loaded later have no effect.

With RTLD_DEEPBIND, libgleaner.so also uses libc's malloc and free if another library, such as jemalloc or a sanitizer,
replaces them in the process. Memory from the other malloc would then be passed to libc's free. If malloc is replaced,
open_library() therefore does without RTLD_DEEPBIND, and raises an error if symbols clash. If LD_PRELOAD is set and
malloc is not replaced, open_library() uses RTLD_DEEPBIND only if symbols clash.
"""

from __future__ import annotations

import ctypes
import os
from typing import Optional

from gleaner.errors import GleanerError

# One function of each dependency that other libraries may export as well, in another version.
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
    """Opens the library at `path`, or returns the library if this process has opened it before.

    Raises OSError if dlopen fails, and GleanerError if symbols clash with another library and malloc is replaced.
    """
    deepbind = getattr(os, "RTLD_DEEPBIND", 0)  # 0 if libc does not have it
    if not deepbind:
        return ctypes.CDLL(path)
    try:
        return ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_NOLOAD)
    except OSError:
        pass  # it is not open yet
    malloc_is_replaced = _malloc_is_replaced()
    if not malloc_is_replaced and not os.environ.get("LD_PRELOAD"):
        return ctypes.CDLL(path, mode=os.RTLD_NOW | deepbind)
    clashing_file = _clashing_library()
    if clashing_file is None:
        return ctypes.CDLL(path, mode=os.RTLD_NOW)
    if not malloc_is_replaced:
        return ctypes.CDLL(path, mode=os.RTLD_NOW | deepbind)
    raise GleanerError(
        f"cannot load {path} beside {clashing_file}, which exports its own gRPC, protobuf or OpenSSL to the whole "
        "process: they cannot be kept apart, because this process replaces malloc (LD_PRELOAD). Call gleaner.init() "
        f"before {clashing_file} is loaded, or do not replace malloc."
    )


def _malloc_is_replaced() -> bool:
    try:
        libc = ctypes.CDLL("libc.so.6")
    except OSError:
        return True  # a libc other than glibc: take the safe path
    process = ctypes.CDLL(None)
    # Every library that replaces malloc also replaces these functions. The address of malloc itself proves nothing: if
    # the executable takes it, the whole process sees an entry in the executable's linkage table instead of libc's
    # function. No Python interpreter takes the addresses of these functions.
    names = ("posix_memalign", "memalign", "malloc_usable_size")
    return any(_address(getattr(process, name)) != _address(getattr(libc, name)) for name in names)


def _clashing_library() -> Optional[str]:
    """Returns the file that exports one of _SHARED_NAMES to the whole process; None if there is none."""
    process = ctypes.CDLL(None)
    for library, name in _SHARED_NAMES.items():
        if not hasattr(process, name):
            continue
        info = _SymbolInfo()
        process.dladdr(ctypes.c_void_p(_address(getattr(process, name))), ctypes.byref(info))
        file = os.fsdecode(info.file or b"another library")
        if not os.path.basename(file).startswith(f"{library}.so"):  # else the dependency itself exports it
            return file
    return None


def _address(function: ctypes._CFuncPtr) -> Optional[int]:
    return ctypes.cast(function, ctypes.c_void_p).value
