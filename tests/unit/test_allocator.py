"""Freed memory goes back to the system, seen by the size of a process of its own."""

import subprocess
import sys

import pytest

# A large block is freed once, so that glibc raises its threshold; then one below a small block that lives on.
_PROGRAM = """
import ctypes, sys
from bettong.allocator import give_memory_back
if "back" in sys.argv:
    give_memory_back()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]

def block(size_bytes):
    found = libc.malloc(size_bytes)
    ctypes.memset(found, 1, size_bytes)
    return found

def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

libc.free(block(24 << 20))
before = resident_bytes()
large = block(16 << 20)
small = block(4096)
libc.free(large)
print(resident_bytes() - before)
"""


def _kept_bytes(*arguments: str) -> int:
    found = subprocess.run(
        [sys.executable, "-c", _PROGRAM, *arguments], check=True, capture_output=True, text=True
    )
    return int(found.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="it is glibc that keeps memory")
def test_a_large_block_that_is_freed_leaves_the_process() -> None:
    assert _kept_bytes("back") < 1 << 20 < 8 << 20 < _kept_bytes()
