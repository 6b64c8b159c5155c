"""What a kill would leave of a folder: copies of it around each call that changes a file."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bettong_receiver.connectors import durable


@contextmanager
def kill_images(folder: Path, kept: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Path]]:
    """Copies of the folder as a kill would leave it: before and after each call that changes a file."""
    found: list[Path] = []

    def keep() -> None:
        if folder.exists():
            found.append(kept / str(len(found)))
            shutil.copytree(folder, found[-1])

    def watched(call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **more: Any) -> Any:
            keep()
            try:
                return call(*arguments, **more)
            finally:
                keep()

        return run

    with monkeypatch.context() as patch:
        for name in ("write", "fdatasync", "fsync", "ftruncate", "open"):
            patch.setattr(os, name, watched(getattr(os, name)))
        patch.setattr(durable, "replace", watched(durable.replace))
        patch.setattr(Path, "replace", watched(Path.replace))
        yield found
