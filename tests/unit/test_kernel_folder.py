"""Compiled functions are cached only where no other user can have written them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from bettong.edges.kernel_folder import kernel_folder


def test_the_folder_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "kernels"
    reported: list[str] = []
    assert kernel_folder(folder, reported.append) == folder
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o777)
    assert kernel_folder(folder, reported.append) == folder
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert reported == []


def test_files_that_others_may_have_written_are_removed(tmp_path: Path) -> None:
    below = tmp_path / "__pycache__"
    below.mkdir()
    own, writable, deep = tmp_path / "kernel_own.py", tmp_path / "kernel_writable.py", below / "kernel.nbc"
    for path, mode in ((own, 0o644), (writable, 0o666), (deep, 0o664)):
        path.touch()
        path.chmod(mode)
    assert kernel_folder(tmp_path) == tmp_path
    assert own.exists()
    assert not writable.exists()
    assert not deep.exists()


def test_a_folder_that_others_could_replace_is_not_used(tmp_path: Path) -> None:
    above = tmp_path / "open"
    above.mkdir()
    folder = above / "kernels"
    folder.mkdir()
    above.chmod(0o777)
    reported: list[str] = []
    assert kernel_folder(folder, reported.append) is None
    assert "BETTONG_KERNEL_CACHE" in reported[0]
    above.chmod(0o1777)
    assert kernel_folder(folder, reported.append) == folder


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    reported: list[str] = []
    assert kernel_folder(tmp_path / "link", reported.append) is None
    assert len(reported) == 1


def test_another_users_folder_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretends to be another user, because only root could change a folder's owner."""
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    reported: list[str] = []
    assert kernel_folder(tmp_path, reported.append) is None
    assert "is another user's" in reported[0]
