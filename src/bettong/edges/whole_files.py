"""Files that other processes see whole or not at all."""

import tempfile
from collections.abc import Callable
from pathlib import Path


def write_whole(path: Path, data: bytes, *, prefix: str, sync: Callable[[int], object] | None) -> None:
    """Writes a file beside its place, under a name with that prefix, and renames it: atomic, as renames are.

    `sync` is called with its descriptor before. Makes the folder. Raises OSError; FileNotFoundError also where another
    process removed folder or file meanwhile. A killed writer leaves the file with the prefix.
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
