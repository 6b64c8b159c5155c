"""Writes files atomically: other processes see them complete or not at all."""

import tempfile
from collections.abc import Callable
from pathlib import Path


def write_whole(path: Path, data: bytes, *, prefix: str, sync: Callable[[int], object] | None) -> None:
    """Writes a temporary file in the same folder, with that prefix, and renames it, which is atomic.

    `sync` is called with its descriptor before. Creates the folder. Raises OSError; FileNotFoundError also when another
    process removed folder or file meanwhile. A killed writer leaves the temporary file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=prefix, delete=False) as file:
        saving = Path(file.name)
        try:
            file.write(data)
            file.flush()
            if sync is not None:
                sync(file.fileno())
            saving.replace(path)
        except BaseException:
            saving.unlink(missing_ok=True)
            raise
