"""Caches compiled kernels between runs: compiling takes seconds, loading milliseconds.

Numba caches functions that are in files. So a kernel's source is written to a file named by everything that its machine
code depends on (see `worker.code_facts`). An edited function gets another name; old files are never wrong, only unused,
and are removed later.
"""

import hashlib
import importlib.util
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numba
import numpy as np

from bettong.edges.kernel_folder import kernel_folder
from bettong.worker import numba_types, prefetching

# A kernel that no run has loaded for this long is removed when another one is added.
_UNUSED_S_MAX = 30 * 24 * 3600


def _version() -> str:
    """The version of everything that determines machine code besides users' functions: Numba extensions, packages."""
    extensions = (*sorted(Path(numba_types.__path__[0]).glob("*.py")), Path(prefetching.__file__))
    digest = hashlib.blake2b(b"".join(path.read_bytes() for path in extensions), digest_size=16)
    return f"{digest.hexdigest()} {numba.__version__} {np.__version__} {sys.version}"


_VERSION = _version()


def kernel_cache(folder: Path) -> "KernelFolder | None":
    """The cache in the folder of `BETTONG_KERNEL_CACHE`; None if it cannot be trusted or created."""
    found = kernel_folder(folder)
    return KernelFolder(found) if found is not None else None


class KernelFolder:
    """A `KernelCache` in a folder. Several processes may use it concurrently."""

    version = _VERSION

    def __init__(self, folder: Path) -> None:
        """`folder` is created when first needed. A user who can write to it can run code in this process."""
        self.folder = folder

    def load(self, name: str, source: str, names: Mapping[str, Any]) -> Callable[..., Any] | None:
        """See KernelCache. Returns None also when another process removes the file meanwhile."""
        folder = self.folder
        path = folder / f"kernel_{name}.py"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            is_new = not path.exists()
            if is_new:
                with tempfile.NamedTemporaryFile("w", dir=folder, suffix=".draft", delete=False) as draft:
                    draft.write(source)
                Path(draft.name).replace(path)
        except OSError:
            return None
        with suppress(OSError):  # another user's folder, or another process removes the same files
            # In a file beside it, because Numba treats a kernel file with another modification time as changed.
            used = path.with_suffix(".used")
            used.touch()
            if is_new:
                _remove_unused(folder, before_s=used.stat().st_mtime - _UNUSED_S_MAX)
        specification = importlib.util.spec_from_file_location(path.stem, path)
        if specification is None or specification.loader is None:
            return None
        module = importlib.util.module_from_spec(specification)
        # Numba finds the globals of loaded functions by the module's name.
        sys.modules[path.stem] = module
        vars(module).update(names)
        try:
            specification.loader.exec_module(module)
        except OSError:
            return None
        kernel: Callable[..., Any] = module.kernel
        return kernel


def _remove_unused(folder: Path, *, before_s: float) -> None:
    """Removes kernels last loaded before that time, with their machine code if Numba stores it beside them."""
    for path in folder.glob("kernel_*.py"):
        files = list(folder.glob(f"{path.stem}.*"))
        # Empty if another process has just removed them.
        if max((each.stat().st_mtime for each in files), default=before_s) < before_s:
            for each in (*folder.glob(f"__pycache__/{path.stem}.*"), *files):
                each.unlink(missing_ok=True)
