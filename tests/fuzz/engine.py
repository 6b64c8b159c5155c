"""Fetches atheris, from its lock with hashes, beside the other tools of the tree."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from deploy.bootstrap import Setup, inspect_machine
from deploy.setup_plan import SetupError, Tree, digest, uv_settings

ROOT = Path(__file__).resolve().parents[2]
LOCK = Path(__file__).with_name("requirements.lock")


def fetch_atheris() -> Path:
    """The folder to put on Python's path. Raises SetupError where there is none for this machine or this Python."""
    setup = Setup(Tree(ROOT), inspect_machine())
    folder = setup.tree.share / "atheris"
    stamp = folder / "lock.stamp"
    fingerprint = digest((sys.version, LOCK.read_text()))
    if not stamp.exists() or stamp.read_text() != fingerprint:
        shutil.rmtree(folder, ignore_errors=True)
        install = ["pip", "install", "--require-hashes", "--only-binary=:all:", "--python", sys.executable]
        command = [str(setup.tree.uv), *install, "--target", str(folder), "-r", str(LOCK)]
        setup.run("atheris", command, uv_settings(os.environ))
        stamp.write_text(fingerprint)
    return folder


__all__ = ["SetupError", "fetch_atheris"]
