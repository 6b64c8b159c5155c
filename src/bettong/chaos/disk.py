"""A small file system in memory that holds a whole suite, so that its disk can be filled."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from bettong.errors import LocalError

_BLOCK_BYTES = 1024 * 1024
_FILLER = "filler"


def why_not() -> str | None:
    """Why this machine, or this user, cannot have such a disk; None when it can."""
    if not sys.platform.startswith("linux") or shutil.which("mount") is None:
        return "a file system of its own size needs Linux with mount(8)"
    return None if os.geteuid() == 0 else "a file system of its own size needs root (mount)"


class SmallDisk:
    """A context manager: a tmpfs of `size_mb`. `suite` is a folder in it. Raises LocalError where mounting fails."""

    def __init__(self, size_mb: int) -> None:
        self._size_mb = size_mb
        self._mount = Path(tempfile.mkdtemp(prefix="bettong-disk-"))

    @property
    def suite(self) -> Path:
        """The suite's folder."""
        return self._mount / "suite"

    def fill(self) -> None:
        """Fills all free space."""
        with (self._mount / _FILLER).open("ab", buffering=0) as file:
            try:
                for size in (_BLOCK_BYTES, 4096):
                    block = bytes(size)
                    while file.write(block) == size:
                        pass
            except OSError:
                return  # full

    def free(self) -> None:
        """Frees that space."""
        (self._mount / _FILLER).unlink(missing_ok=True)

    def __enter__(self) -> Self:
        command = [
            "mount",
            "-t",
            "tmpfs",
            "-o",
            f"size={self._size_mb}m,mode=700",
            "bettong",
            str(self._mount),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            self._mount.rmdir()
            raise LocalError(f"cannot mount a file system of {self._size_mb} MB: {done.stderr.strip()}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        subprocess.run(["umount", "-l", str(self._mount)], capture_output=True, check=False)
        self._mount.rmdir()
