"""Kernels that a process of tests compiles once: the library's own cache of them, in a folder that goes with it."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from bettong.edges.kernel_cache import KernelFolder


@cache
def kept_kernels() -> KernelFolder:
    """For programs of the same functions: compiling one takes a second or two of CPU, loading it some milliseconds."""
    folder = Path(tempfile.mkdtemp(prefix="bettong-kernels-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return KernelFolder(folder)
