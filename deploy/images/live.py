"""Runs a command on packages that may change beside it: the first process of images that Tilt keeps up to date.

The root of a container cannot be written, so our packages are copied to a folder that can, which Python searches first.
Whoever changes files there then changes the time of the file MARK in it, and the command is started again.
Standard library of Python 3.11 only; no part of an image that is deployed.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

FOLDER = Path("/tmp/live")  # noqa: S108 - the container's own; the Tiltfile names it too
MARK = ".changed"
_POLL_S = 0.2
_STOP_S_MAX = 40.0  # a processor lets its batch end
_PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPWR)


def main(words: Sequence[str]) -> int:
    """Runs the words until they end by themselves or by a signal; their exit code."""
    lay_out(Path(sysconfig.get_path("purelib")), FOLDER)
    return run_command(words, FOLDER)


def lay_out(packages: Path, folder: Path) -> None:
    """Copies our packages, without byte code: that of images is never compared with its source."""
    if folder.exists():
        return  # the container was started again; what was changed here stays
    fresh = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    for package in packages.glob("bettong*"):
        if (package / "__init__.py").exists():
            shutil.copytree(package, fresh / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    (fresh / MARK).touch()
    fresh.rename(folder)


def run_command(words: Sequence[str], folder: Path) -> int:
    """Runs the words with `folder` before all other packages, and again after each change of its mark.

    Passes signals on. Returns the exit code, 128 and the signal's number for one that a signal ended.
    """
    child: subprocess.Popen[bytes] | None = None

    def pass_on(number: int, _frame: FrameType | None) -> None:
        if child is not None:
            child.send_signal(number)

    for number in _PASSED_ON:
        signal.signal(number, pass_on)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(_paths(folder))}
    while True:
        seen = (folder / MARK).stat().st_mtime_ns
        child = subprocess.Popen(words, env=environment)
        while (status := child.poll()) is None and (folder / MARK).stat().st_mtime_ns == seen:
            time.sleep(_POLL_S)
        if status is not None:
            return status if status >= 0 else 128 - status
        print("live: files have changed, starting again", file=sys.stderr, flush=True)
        _end(child)


def _paths(folder: Path) -> list[str]:
    return [str(folder), *filter(None, [os.environ.get("PYTHONPATH", "")])]


def _end(child: subprocess.Popen[bytes]) -> None:
    child.terminate()
    try:
        child.wait(_STOP_S_MAX)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
