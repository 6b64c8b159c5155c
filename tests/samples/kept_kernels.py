"""Kernels that a machine's tests compile once: the library's own cache of them."""

from functools import cache

from bettong.edges.kernel_cache import KernelFolder
from tests.cache import cache_folder


@cache
def kept_kernels() -> KernelFolder:
    """For programs of the same functions: compiling one takes a second or two of CPU, loading it some milliseconds.

    Of all processes, and of later runs: whatever its machine code depends on gives a kernel another name, of ours the
    extensions of Numba too.
    """
    return KernelFolder(cache_folder() / "kernels")
