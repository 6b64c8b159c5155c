"""Keeps compiled kernels between runs: compiling takes seconds, loading milliseconds.

Numba caches functions that come from files. So a kernel's source is written to a file named by everything that its
machine code depends on (see `code_facts`). An edited function gives another name; an old file is never wrong, only
unused, and removed in time.
"""

import importlib.util
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

# A kernel that no run has loaded for this long is removed when another one is added.
_UNUSED_S_MAX = 30 * 24 * 3600


def folder_of(cache: Path) -> Path | None:
    """The folder with `~` resolved; None, that is no cache, for a user without a home."""
    try:
        return cache.expanduser()
    except RuntimeError:
        return None


def load(folder: Path, name: str, source: str, names: Mapping[str, Any]) -> Callable[..., Any] | None:
    """The function `kernel` of a source that lies in a file of the folder, with `names` as its globals.

    None when the folder cannot be written, or another process removes that file at this moment: then the kernel is
    compiled without a cache.
    """
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
    with suppress(OSError):  # a folder of another user's, or another process removes the same
        # Noted beside it: Numba takes a file of another time of change for another file.
        used = path.with_suffix(".used")
        used.touch()
        if is_new:
            _remove_unused(folder, before_s=used.stat().st_mtime - _UNUSED_S_MAX)
    specification = importlib.util.spec_from_file_location(path.stem, path)
    if specification is None or specification.loader is None:
        return None
    module = importlib.util.module_from_spec(specification)
    # Numba finds the globals of what it loads by the module's name.
    sys.modules[path.stem] = module
    vars(module).update(names)
    try:
        specification.loader.exec_module(module)
    except OSError:
        return None
    kernel: Callable[..., Any] = module.kernel
    return kernel


def _remove_unused(folder: Path, *, before_s: float) -> None:
    """Removes kernels last loaded before that time, with their machine code if Numba keeps it beside them."""
    for path in folder.glob("kernel_*.py"):
        files = list(folder.glob(f"{path.stem}.*"))
        # There are none where another process has just removed them.
        if max((each.stat().st_mtime for each in files), default=before_s) < before_s:
            for each in (*folder.glob(f"__pycache__/{path.stem}.*"), *files):
                each.unlink(missing_ok=True)
